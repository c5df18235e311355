//! Settings of the server's entry that `setup` would not write.

use text::printable_line;

use super::Project;
use crate::setup::entry::Field;

/// Limit of the other settings of an entry that are listed.
const SETTINGS_MAX: usize = 20;
/// Limit of the characters of one setting.
pub const SETTING_MAX: usize = 200;

/// Treatment of settings in the server's entry that `setup` would not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherSettingsPolicy {
    Keep,
    Remove,
}

/// Settings of the server's entry that `setup` would not write.
#[derive(Debug, Default)]
pub struct OtherSettings {
    pub flags: Vec<String>,
    pub fields: Vec<Field>,
}

impl OtherSettings {
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty() && self.fields.is_empty()
    }

    /// Formats the settings, one a line.
    pub fn describe(&self, project: Option<&Project>) -> Vec<String> {
        let flags = self.flags.iter().map(|flag| short(flag, SETTING_MAX));
        let fields = self.fields.iter().map(|Field { name, value }| match project {
            Some(_) => format!("{} = {}", short(name, SETTING_MAX), short(value, SETTING_MAX)),
            // Values of the user's own file are not shown, since users keep passwords there and know what they wrote.
            None => short(name, SETTING_MAX),
        });
        let mut lines: Vec<_> = flags.chain(fields).collect();
        if lines.len() > SETTINGS_MAX {
            let more = lines.len() - SETTINGS_MAX;
            lines.truncate(SETTINGS_MAX);
            lines.push(format!("and {more} more"));
        }
        lines
    }
}

/// Returns the beginning of a text, on one line.
pub fn short(text: &str, max_chars: usize) -> String {
    let begin: String = text.chars().take(max_chars).collect();
    let ending = if begin.len() < text.len() { "..." } else { "" };
    format!("{}{ending}", printable_line(&begin))
}
