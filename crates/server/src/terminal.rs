//! Stdout and stderr as people read them. The one place where the binaries write there, but for the protocol's own
//! messages on stdout; `cargo xtask walls` refuses any other.
//!
//! Whatever is written may come from a file, a model or another program. On a terminal it is escaped ([`text::printable`]),
//! so that it can neither command the terminal nor hide; anywhere else it is left as it is, byte for byte.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use text::{printable, printable_json, printable_line};

/// Back to the first column, and nothing behind it.
const CLEAR_LINE: &str = "\r\x1b[K";
/// Characters of a status: a line that wraps could not be cleared.
const LONGEST_STATUS: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The colours and weights that are in use, by their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Cyan = 36,
}

/// Some text and its colour.
pub type Piece<'t> = (Option<Color>, &'t str);

impl Stream {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }

    /// True for a terminal that obeys escape sequences, rather than show them.
    pub fn takes_sequences(self) -> bool {
        let understands = match variable("TERM") {
            Some(term) => term != "dumb",
            // Windows Terminal obeys escape sequences by default.
            None => !cfg!(windows) || variable("WT_SESSION").is_some(),
        };
        understands && self.is_terminal()
    }

    /// True if text is to be coloured unless somebody says otherwise.
    pub fn takes_color(self) -> bool {
        self.takes_sequences() && variable("NO_COLOR").is_none()
    }

    fn put(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Self::Stderr => io::stderr().lock().write_all(bytes),
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Writes text of any origin.
pub fn write(stream: Stream, text: &str) -> io::Result<()> {
    if stream.is_terminal() {
        stream.put(printable(text).as_bytes())
    } else {
        stream.put(text.as_bytes())
    }
}

/// Writes what another program said.
pub fn write_bytes(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    if stream.is_terminal() {
        stream.put(printable(&String::from_utf8_lossy(bytes)).as_bytes())
    } else {
        stream.put(bytes)
    }
}

/// Writes valid JSON; on a terminal it is still the same JSON.
pub fn write_json(stream: Stream, json: &str) -> io::Result<()> {
    if stream.is_terminal() {
        stream.put(printable_json(json).as_bytes())
    } else {
        stream.put(json.as_bytes())
    }
}

/// Writes coloured text. Somebody looks at it, be it by way of a pager, so that it is escaped wherever it goes.
pub fn write_colored(stream: Stream, pieces: &[Piece<'_>]) -> io::Result<()> {
    stream.put(colored(pieces).as_bytes())
}

fn colored(pieces: &[Piece<'_>]) -> String {
    let mut shown = String::new();
    for (color, text) in pieces {
        let text = printable(text);
        match color {
            Some(color) => {
                let _ = write!(shown, "\x1b[{}m", *color as u8);
                shown.push_str(&text);
                shown.push_str("\x1b[m");
            }
            None => shown.push_str(&text),
        }
    }
    shown
}

/// Writes a message to stderr, with a line break behind it. There is nobody to tell when stderr is gone.
pub fn write_message(message: &str) {
    let _ = write(Stream::Stderr, &format!("{message}\n"));
}

/// A line on the terminal while something takes long, in place of the one before it; nothing if stderr is no terminal.
/// True if it is shown.
pub fn show_status(doing: &str, since: Duration) -> bool {
    let stream = Stream::Stderr;
    stream.takes_sequences() && {
        let _ = stream.put(format!("{CLEAR_LINE}{}", status(doing, since)).as_bytes());
        true
    }
}

/// Takes away what [`show_status`] has shown.
pub fn clear_status() {
    let _ = Stream::Stderr.put(CLEAR_LINE.as_bytes());
}

fn status(doing: &str, since: Duration) -> String {
    let doing: String = printable_line(doing).chars().take(LONGEST_STATUS).collect();
    format!("{doing}, {} s", since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_ours_and_all_else_is_escaped() {
        let pieces = [(Some(Color::Red), "-\x1b[32m\u{202e}"), (None, "\n+ä\u{9b}")];
        assert_eq!(colored(&pieces), "\x1b[31m-\\u{1b}[32m\\u{202e}\x1b[m\n+ä\\u{9b}");
    }

    #[test]
    fn a_status_is_one_short_line() {
        let status = |doing: &str| status(doing, Duration::from_millis(2500));
        assert_eq!(status("writing\r\x1b[2J\n"), r"writing\u{d}\u{1b}[2J\n, 2 s");
        assert_eq!(status(&"x".repeat(1000)), format!("{}, 2 s", "x".repeat(60)));
    }
}
