//! `file-editor doctor`: checks for problems, and what would help against each.
//!
//! Each check reports a finding, a state, and help if there is a problem. Nothing is left changed: files that are
//! made for a check are removed afterwards.

mod check;
mod clients;
mod edit_test;
mod environment;
mod folder;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Args;
use files::Access;
use server::terminal::{self, Stream};

use check::{Check, State};

/// Check the folder, the file system, the port and the clients
///
/// Each check is `ok`, a `warning` or a `fault`, with what to do about it.
///
/// Exit status: 1 if there is a fault, otherwise 0.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder to check [default: the current one]
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// Port of the HTTP transport [default: 8080]
    #[arg(long, value_name = "NUMBER", default_value_t = 8080, hide_default_value = true)]
    port: u16,

    /// Check for a server with --read-only
    #[arg(long)]
    read_only: bool,

    /// Answer with JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> ExitCode {
    let folder = arguments.dir.as_deref().unwrap_or(OsStr::new("."));
    let access = if arguments.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let mut checks = folder::checks(folder, access);
    checks.extend(environment::checks(arguments.port));
    checks.extend(clients::checks(folder));
    // Stdout may be closed; the exit status is right all the same.
    let _ = if arguments.json {
        terminal::write_json(Stream::Stdout, &to_json(&checks))
    } else {
        terminal::write(Stream::Stdout, &to_lines(&checks))
    };
    if checks.iter().any(|check| check.state == State::Fault) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Formats the checks, one a line.
fn to_lines(checks: &[Check]) -> String {
    checks.iter().flat_map(|check| [check.to_string(), "\n".into()]).collect()
}

fn to_json(checks: &[Check]) -> String {
    let rows: Vec<_> = checks.iter().map(Check::to_json).collect();
    format!("[\n  {}\n]\n", rows.join(",\n  "))
}
