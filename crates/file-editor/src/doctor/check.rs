//! A check: what was looked at, its state, and help.

use std::fmt;

use text::printable_line;

use crate::setup::entry::quoted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Works, but not as well as it could.
    Warning,
    /// Fails when it is used.
    Fault,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Fault => "fault",
        }
    }
}

pub struct Check {
    /// Name of the check.
    pub what: &'static str,
    pub state: State,
    pub seen: String,
    /// Help, unless all is well.
    pub help: Option<String>,
}

impl Check {
    pub fn ok(what: &'static str, seen: impl Into<String>) -> Check {
        Check { what, state: State::Ok, seen: seen.into(), help: None }
    }

    pub fn warning(what: &'static str, seen: impl Into<String>, help: impl Into<String>) -> Check {
        Check { what, state: State::Warning, seen: seen.into(), help: Some(help.into()) }
    }

    pub fn fault(what: &'static str, seen: impl Into<String>, help: impl Into<String>) -> Check {
        Check { what, state: State::Fault, seen: seen.into(), help: Some(help.into()) }
    }

    pub fn json(&self) -> String {
        let help = self.help.as_deref().map_or_else(|| "null".into(), quoted);
        let (what, state) = (quoted(self.what), quoted(self.state.name()));
        let seen = quoted(&self.seen);
        format!("{{ \"check\": {what}, \"state\": {state}, \"seen\": {seen}, \"help\": {help} }}")
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line each, even if a file name has line breaks.
        let (state, seen) = (self.state.name(), printable_line(&self.seen));
        write!(f, "{state:<8} {}: {seen}", self.what)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, ". {}", printable_line(help)))
    }
}
