//! Errors of a request to Codex, worded for a person.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;

use super::{INITIALIZE_TIMEOUT, MESSAGE_BYTES_MAX, VERSION_MIN};

/// Errors of a request to Codex.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CodexError {
    #[error(
        "Codex CLI was not found at `{program}`: install it with `npm install -g @openai/codex`, or say where it is \
         with --codex or CODEX_BIN"
    )]
    NotFound { program: String },
    #[error(
        "Codex CLI could not be started from `{program}`: {reason}; --codex or CODEX_BIN can name another"
    )]
    NotStarted { program: String, reason: String },
    #[error(
        "Codex CLI {found} is too old, {}.{} or newer is needed: update it with `npm install -g @openai/codex`",
        VERSION_MIN.0, VERSION_MIN.1
    )]
    TooOld { found: String },
    #[error("Codex CLI ended unexpectedly ({how}); send the prompt again to start it anew{}", log_end_sentence(.log_end))]
    Ended { how: String, log_end: String },
    #[error(
        "Codex CLI was ended because it sent a message of more than {} MB; send the prompt again to start it anew, or begin \
         a new session if that happens again",
        MESSAGE_BYTES_MAX >> 20
    )]
    TooLong,
    #[error("Codex CLI did not answer within {} s; try again, or name another with --codex or CODEX_BIN", INITIALIZE_TIMEOUT.as_secs())]
    NoAnswer,
    /// Codex answered with an error.
    #[error("{message}")]
    Refused { code: i64, message: String },
}

impl CodexError {
    pub(super) fn not_started(program: &OsStr, error: &io::Error) -> Self {
        let program = program.to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            _ => Self::NotStarted { program, reason: error.to_string() },
        }
    }

    /// Makes the error of a Codex that ended. Its stderr is quoted only after an exit with a failure: a killed
    /// process had no time to write a reason.
    pub(super) fn ended(status: Option<ExitStatus>, log_end: &str) -> Self {
        let how = status.map_or("it closed its output".into(), |status| status.to_string());
        let failed = status.is_some_and(|status| status.code().is_some_and(|code| code != 0));
        Self::Ended { how, log_end: if failed { without_colors(log_end) } else { String::new() } }
    }
}

fn log_end_sentence(log_end: &str) -> String {
    if log_end.is_empty() { String::new() } else { format!(". It said: {log_end}") }
}

/// Removes the escape sequences that color a log on a terminal.
fn without_colors(log: &str) -> String {
    let mut parts = log.trim().split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_taken_out() {
        assert_eq!(
            without_colors(" \x1b[2mnow\x1b[0m \x1b[31mERROR\x1b[0m: no [m] \n"),
            "now ERROR: no [m]"
        );
    }
}
