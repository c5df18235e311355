//! A check: its name, its state, what was found, and help.

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
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub finding: String,
    /// Help, unless all is well.
    pub help: Option<String>,
}

impl Check {
    pub fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Self { name, state: State::Ok, finding: finding.into(), help: None }
    }

    pub fn warning(
        name: &'static str,
        finding: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { name, state: State::Warning, finding: finding.into(), help: Some(help.into()) }
    }

    pub fn fault(name: &'static str, finding: impl Into<String>, help: impl Into<String>) -> Self {
        Self { name, state: State::Fault, finding: finding.into(), help: Some(help.into()) }
    }

    pub fn to_json(&self) -> String {
        let help = self.help.as_deref().map_or_else(|| "null".into(), quoted);
        let (name, state) = (quoted(self.name), quoted(self.state.name()));
        let finding = quoted(&self.finding);
        format!(
            "{{ \"check\": {name}, \"state\": {state}, \"seen\": {finding}, \"help\": {help} }}"
        )
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line each, even if a file name has line breaks.
        let (state, finding) = (self.state.name(), printable_line(&self.finding));
        write!(f, "{state:<8} {}: {finding}", self.name)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, ". {}", printable_line(help)))
    }
}
