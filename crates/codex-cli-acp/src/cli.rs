//! Command line flags and environment variables.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use server::terminal::{self, Stream};

/// Codex CLI for editors that speak the Agent Client Protocol (ACP): Zed, JetBrains, Neovim and others.
///
/// An editor starts it and talks to it on stdin and stdout. It runs `codex app-server` and gives it tools that read and
/// edit the editor's buffers, including unsaved changes. Codex keeps its own configuration and login.
#[derive(Debug, Parser)]
#[command(name = "codex-cli-acp", version, max_term_width = 100)]
pub struct Cli {
    /// Codex CLI to run [default: `CODEX_BIN`, otherwise `codex` on the PATH]
    #[arg(long, value_name = "PATH")]
    codex: Option<OsString>,

    /// Format of the events about the file tools
    #[arg(long, value_name = "SHAPE", value_enum, default_value_t = EventFormat::Acp)]
    pub events: EventFormat,

    /// Disable Codex's own commands and patches, so that files are edited only through the editor
    #[arg(long)]
    pub editor_only: bool,
}

/// The format of the events about the file tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventFormat {
    /// As ACP defines them
    Acp,
    /// As the contracts of the tools define them; editors ignore these
    Contract,
    /// Both formats in one message
    Both,
}

impl Cli {
    /// Parses the command line. On a mistake or after help it is printed, and the exit code is returned.
    pub fn read() -> Result<Self, ExitCode> {
        Self::try_parse().map_err(|error| {
            let stream = if error.use_stderr() { Stream::Stderr } else { Stream::Stdout };
            let _ = terminal::write(stream, &error.render().to_string());
            ExitCode::from(u8::from(error.use_stderr()))
        })
    }

    /// Returns the Codex program to run: `--codex`, else `CODEX_BIN`, else `codex`.
    pub fn codex(&self) -> OsString {
        let named = self.codex.clone().or_else(|| std::env::var_os("CODEX_BIN"));
        named.filter(|name| !name.is_empty()).unwrap_or_else(|| "codex".into())
    }
}
