//! `file-editor setup`: clients are told of the server, in their own configuration.

use std::process::ExitCode;

use clap::Args;

/// Tell a client of this server, in its configuration
#[derive(Debug, Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> ExitCode {
    ExitCode::FAILURE
}
