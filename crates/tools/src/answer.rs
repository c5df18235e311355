//! Parts that the answers of several tools have in common.

use files::{Durable, Hash, Interference, Saved, Version};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::Failure;

// The fields have no descriptions, which would cost tokens: agents know what an error looks like.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ErrorShape {
    code: i64,
    message: String,
    hint: String,
    hash: String,
}

/// The effect that a call that writes had on its file, or would have.
pub(crate) struct Outcome {
    /// See [`hash_before`].
    pub before: Option<Hash>,
    /// The hash after the call, or the one it would be in a dry run.
    pub after: Hash,
    pub changed: bool,
    pub mode: Mode,
    /// Notes on what else the caller should know.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    DryRun,
}

impl Mode {
    pub fn of(dry_run: Option<bool>) -> Self {
        if dry_run == Some(true) { Self::DryRun } else { Self::Write }
    }
}

impl Outcome {
    /// Returns the hash of the file as it is, so that it can be given as the next `expected_hash`.
    pub fn hash(&self) -> Option<Hash> {
        match self.mode {
            Mode::Write => Some(self.after),
            Mode::DryRun => self.before,
        }
    }

    /// Returns the hashes and the notes, in words.
    pub fn hash_lines(&self) -> Vec<String> {
        let would_be = (self.mode == Mode::DryRun && self.changed)
            .then(|| format!("the hash would be {}", self.after));
        let hash = self.hash().map(|hash| format!("hash {hash}"));
        would_be.into_iter().chain(hash).chain(self.notes.iter().cloned()).collect()
    }

    /// Returns the whole outcome in words; `done` is what to say if all went as asked.
    pub fn lines(&self, done: Option<String>) -> Vec<String> {
        let did = match (self.mode, self.changed) {
            (Mode::Write, true) => done,
            (Mode::Write, false) => Some("nothing changed: the file already has this text".into()),
            (Mode::DryRun, true) => {
                Some(format!("dry run: nothing was written; the hash would be {}", self.after))
            }
            (Mode::DryRun, false) => Some("dry run: nothing would change".into()),
        };
        let hash = self.hash().map(|hash| format!("hash {hash}"));
        did.into_iter().chain(hash).chain(self.notes.iter().cloned()).collect()
    }

    /// Adds the outcome to the data of the answer.
    pub fn add_to(&self, data: &mut Map<String, Value>) {
        data.extend(self.hash().map(|hash| ("hash".into(), hash.to_string().into())));
        data.insert("changed".into(), self.changed.into());
        if self.mode == Mode::DryRun {
            data.insert("dry_run".into(), true.into());
            data.insert("hash_would_be".into(), self.after.to_string().into());
        }
        if !self.notes.is_empty() {
            data.insert("notes".into(), json!(self.notes));
        }
    }
}

/// Returns the hash before the call, if it is needed: to hash a large file takes as long as much of the edit.
pub(crate) fn hash_before(
    version: Option<&Version>,
    expected: Option<Hash>,
    mode: Mode,
) -> Option<Hash> {
    let is_wanted = expected.is_some() || mode == Mode::DryRun;
    version.filter(|_| is_wanted).map(|version| Hash::of(&version.bytes))
}

/// Refuses a file that is not what the caller last saw.
pub(crate) fn check_hash(
    name: &str,
    expected: Option<Hash>,
    current: Option<Hash>,
) -> Result<(), Failure> {
    match expected {
        Some(_) if expected != current => Err(Failure::stale(name, current)),
        _ => Ok(()),
    }
}

pub(crate) fn has_nul(text: &str) -> bool {
    memchr::memchr(0, text.as_bytes()).is_some()
}

/// Returns the note that other hard links of a file keep the old text, if it has any.
pub fn hard_links_note(links: u64) -> Option<String> {
    match links {
        0 => None,
        1 => Some("1 other hard link of this file keeps the old text".into()),
        _ => Some(format!("{links} other hard links of this file keep the old text")),
    }
}

/// Returns the notes on a file that was saved.
pub(crate) fn notes(saved: &Saved) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(hard_links_note(saved.links));
    if !saved.lost.is_empty() {
        notes.push(format!(
            "the server's user has no permission to keep: {}",
            saved.lost.join(", ")
        ));
    }
    if saved.drops_privileges {
        notes.push("setuid, setgid and file capabilities were removed, as by any write".into());
    }
    match saved.durable {
        Durable::Unknown => {
            notes.push("applied, durability unknown: the folder could not be synced".into());
        }
        Durable::Yes | Durable::No => {}
    }
    if saved.restyled.is_some() {
        notes.push("the editor keeps this text with line breaks of its own".into());
    }
    match saved.interference {
        Interference::Contested => {
            notes.push("another program changed the file at the same moment: read it again".into());
        }
        Interference::OpenElsewhere => notes.push(
            "another program has this file open for writing: what it writes there from now on is lost"
                .into(),
        ),
        Interference::None => {}
    }
    notes
}

/// Shortens a caller's own text for a message that repeats it.
pub(crate) fn short(text: &str) -> String {
    cut(text, 1000)
}

/// Cuts `text` to `most` characters, and says how many more there are.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            format!("{}... ({} more characters)", &text[..end], text[end..].chars().count())
        }
        None => text.into(),
    }
}

/// Writes megabytes with up to two decimals, rounded up, so that what exceeds a limit never looks equal to it.
pub(crate) fn megabytes(bytes: u64) -> String {
    let hundredths = (u128::from(bytes) * 100).div_ceil(1 << 20);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    format!("{whole}.{rest:02}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_are_rounded_up() {
        let check = |bytes, shown: &str| assert_eq!(megabytes(bytes), shown);
        check(0, "0");
        check(1, "0.01");
        check(1 << 20, "1");
        check((1 << 20) + 1, "1.01");
        check(10 << 20, "10");
        check((15 << 20) / 10, "1.5");
        check(u64::MAX, "17592186044416");
    }
}
