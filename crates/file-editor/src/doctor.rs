//! `file-editor doctor`: what could be in the way, and what would help.

use std::process::ExitCode;

use clap::Args;

/// Look for what could be in the way, and say what would help
#[derive(Debug, Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> ExitCode {
    ExitCode::FAILURE
}
