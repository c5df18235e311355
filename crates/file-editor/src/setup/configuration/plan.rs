//! The change to a configuration: what it does to the entry, and the new text.

use std::fmt;
use std::path::{Path, PathBuf};

use text::{Text, printable};

use super::Configuration;
use super::other_settings::{OtherSettings, OtherSettingsPolicy};
use crate::setup::entry::{Entry, FoundEntry, ParseError};

/// Wanted state of the configuration.
pub enum WantedEntry {
    Present(Entry),
    Absent,
}

/// Outcome of a change.
pub struct SavedChange {
    pub action: Action,
    pub file: PathBuf,
    /// Lines to show besides.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Add,
    Change,
    Remove,
    /// Nothing else was in the file.
    RemoveFile,
    AlreadyPresent,
    AlreadyAbsent,
}

impl Action {
    pub fn changes_nothing(self) -> bool {
        matches!(self, Self::AlreadyPresent | Self::AlreadyAbsent)
    }
}

impl SavedChange {
    /// Returns the message about what was done, for the client of this name.
    pub fn describe(&self, name: &str) -> String {
        // Paths and settings may come from others.
        printable(&format!("{name}: {self}\n")).into_owned()
    }
}

impl fmt::Display for SavedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.action {
            Action::Add => "added to",
            Action::Change => "changed in",
            Action::Remove => "removed from",
            Action::RemoveFile => "removed; deleted the file, which had no other content:",
            Action::AlreadyPresent => "already configured in",
            Action::AlreadyAbsent => "not configured in",
        };
        write!(f, "{done} {}", self.file.display())?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

/// Change to make if the file still is as it was read.
pub struct Plan {
    pub action: Action,
    /// The entry in the file before the change.
    pub old_entry: FoundEntry,
    /// The entry after the change.
    pub entry: Option<Entry>,
    /// Lines to show about other settings of the entry.
    pub notes: Vec<String>,
    /// New text with its byte order mark; `None` to remove the file.
    pub text: Option<String>,
}

impl Configuration {
    /// Computes the change that makes the entry as wanted.
    pub fn plan(
        &self,
        file: &Path,
        old: Option<&Text>,
        wanted: &WantedEntry,
    ) -> Result<Plan, String> {
        let text = old.map_or("", Text::as_str);
        let refused = |error: ParseError| match wanted {
            WantedEntry::Present(entry) => self.refused(&error, entry),
            WantedEntry::Absent => self.parse_failure(&error),
        };
        let old_entry = self.client.find(text).map_err(refused)?;
        let other_settings = match wanted {
            WantedEntry::Present(_) => self.other_settings_in(text),
            WantedEntry::Absent => OtherSettings::default(),
        };
        // The user's own file was written by the user, or by programs that run for the user anyway: other settings
        // stay. A project's file comes with the project: its variables could load libraries into the server, its flags
        // switch off the sandbox.
        let removes = self
            .project
            .as_ref()
            .is_some_and(|it| it.other_settings == OtherSettingsPolicy::Remove);
        let entry = match (wanted, &old_entry) {
            (WantedEntry::Present(entry), FoundEntry::Entry(old)) if !removes => {
                Some(entry.with_flags_of(old))
            }
            (WantedEntry::Present(entry), _) => Some(entry.clone()),
            (WantedEntry::Absent, _) => None,
        };
        let new = match &entry {
            Some(entry) if old.is_none() => Ok(self.client.whole(entry)),
            Some(entry) if removes && !other_settings.fields.is_empty() => {
                self.client.replace(text, entry)
            }
            Some(entry) => self.client.put(text, entry),
            None => self.client.remove(text),
        };
        let new = new.map_err(refused)?;
        let (is_same, is_present) = (new == text, entry.is_some());
        let is_all =
            !is_present && is_blank(&new) && !self.is_made_by_setup(text, &old_entry, &new);
        let mark = if old.is_some_and(Text::has_bom) { "\u{feff}" } else { "" };
        let action = match (is_present, &old_entry) {
            (true, _) if is_same => Action::AlreadyPresent,
            (true, FoundEntry::Missing) => Action::Add,
            (true, _) => Action::Change,
            (false, _) if is_same => Action::AlreadyAbsent,
            (false, _) if is_all && file == self.path => Action::RemoveFile,
            (false, _) => Action::Remove,
        };
        // The target of a link is not removed, since it may have another use.
        let new = if is_all { self.client.empty_configuration() } else { &new };
        let text = (action != Action::RemoveFile).then(|| format!("{mark}{new}"));
        let notes = self.notes(&other_settings);
        Ok(Plan { action, old_entry, entry, notes, text })
    }

    /// Returns the lines about other settings.
    fn notes(&self, other_settings: &OtherSettings) -> Vec<String> {
        if other_settings.is_empty() {
            return Vec::new();
        }
        let fate = match self.project.as_ref().map(|project| project.other_settings) {
            Some(OtherSettingsPolicy::Remove) => {
                "not kept, since it came with the project (--keep keeps it):"
            }
            Some(OtherSettingsPolicy::Keep) => "kept, though it came with the project (--keep):",
            None => "kept unchanged:",
        };
        let lines = other_settings.describe(self.project.as_ref()).into_iter();
        [fate.into()].into_iter().chain(lines.map(|setting| format!("  {setting}"))).collect()
    }

    /// True if the whole entry is as `setup` writes it, in a file that has the text `rest` without it.
    pub fn is_made_by_setup(&self, text: &str, old_entry: &FoundEntry, rest: &str) -> bool {
        matches!(old_entry, FoundEntry::Entry(entry) if self.client.put(rest, entry).as_deref() == Ok(text))
    }
}

/// True if a text has nothing but a byte order mark and blanks: nothing is left of a file that was made for the entry.
pub fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}
