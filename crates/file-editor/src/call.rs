//! `file-editor call`: one tool, from the shell.

use std::process::ExitCode;

use clap::Args;

/// Call one tool, as an agent would
#[derive(Debug, Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> ExitCode {
    ExitCode::FAILURE
}
