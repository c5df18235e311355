//! Detects that an editor's text is older than the file on disk.
//!
//! A difference alone says nothing: most often the person has not saved yet. The text counts as stale if the file on
//! disk was written while a command ran, or changed since the last look while the editor's text did not. It does not if
//! the disk has the text that the editor showed at the last look, since then the editor saved it. The state of the disk
//! at the last look is no news, so that typing on after a reload is not stale.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use files::{FilePath, Hash, Version, unstyled};

/// State of each file when a call last looked at it.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<BTreeMap<FilePath, Look>>);

/// State of a file at one moment, on disk and in the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// `None` if the editor made the file.
    pub disk: Option<Disk>,
    /// [`print`] of the editor's text.
    pub buffer: Hash,
    pub stale: bool,
    /// True if the agent was told.
    pub told: bool,
}

/// State of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    pub modified: SystemTime,
    /// [`print`] of its text.
    text: Hash,
}

/// Hashes a text. Equal for texts that differ only in what editors change when they load or save: byte order mark, line
/// breaks, and those at the end.
pub(super) fn print(bytes: &[u8]) -> Hash {
    let text = unstyled(bytes);
    let end = text.iter().rposition(|&byte| byte != b'\n').map_or(0, |last| last + 1);
    Hash::of(&text[..end])
}

/// True if both are missing, or equal by [`print`].
pub(super) fn same_text(one: Option<&Version>, other: Option<&Version>) -> bool {
    let print = |version: &Version| print(&version.bytes);
    one.map(print) == other.map(print)
}

impl Disk {
    pub fn of(version: &Version) -> Self {
        Self { modified: version.stamp.modified(), text: print(&version.bytes) }
    }
}

impl Look {
    /// Compares the disk and the editor with the last look. `at_work`: a command ran when the file on disk was last
    /// written.
    pub fn after(last: Option<Self>, disk: Disk, buffer: Hash, at_work: bool) -> Self {
        let look = Self { disk: Some(disk), buffer, stale: false, told: false };
        let (stale, told) = match last {
            _ if look.is_same() => (false, false),
            None => (at_work, false),
            Some(last) if last.disk == Some(disk) => {
                (last.stale && last.buffer == buffer, last.told)
            }
            Some(last) => {
                let was_other = last.disk.is_none_or(|before| before.text != disk.text);
                let overtaken = was_other && last.buffer == buffer;
                let saved = last.buffer == disk.text;
                (overtaken || (at_work && !saved), false)
            }
        };
        Self { stale, told, ..look }
    }

    /// True if the disk and the editor have the same text.
    pub fn is_same(&self) -> bool {
        self.disk.is_none_or(|disk| disk.text == self.buffer)
    }
}

impl Looks {
    pub fn last(&self, at: &FilePath) -> Option<Look> {
        self.hold().get(at).copied()
    }

    pub fn keep(&self, at: &FilePath, look: Look) {
        self.hold().insert(at.clone(), look);
    }

    /// Records that the editor accepted a new text, whatever the disk has.
    pub fn wrote(&self, at: &FilePath, buffer: Hash) {
        let new = Look { disk: None, buffer, stale: false, told: false };
        let mut looks = self.hold();
        let look = looks.entry(at.clone()).or_insert(new);
        *look = Look { disk: look.disk, ..new };
    }

    fn hold(&self) -> MutexGuard<'_, BTreeMap<FilePath, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const QUIET: bool = false;
    const AT_WORK: bool = true;

    fn disk(seconds: u64, text: &str) -> Disk {
        Disk {
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            text: print(text.as_bytes()),
        }
    }

    fn look(last: Option<Look>, disk: Disk, buffer: &str, at_work: bool) -> Look {
        Look::after(last, disk, print(buffer.as_bytes()), at_work)
    }

    fn told(look: Look) -> Look {
        Look { told: look.stale, ..look }
    }

    #[test]
    fn what_was_typed_and_not_saved_is_not_stale() {
        let first = look(None, disk(1, "a"), "a", QUIET);
        let typed = look(Some(first), disk(1, "a"), "ab", QUIET);
        let saved = look(Some(typed), disk(2, "ab"), "ab", QUIET);
        let more = look(Some(saved), disk(2, "ab"), "abc", QUIET);
        assert!([first, typed, saved, more].iter().all(|look| !look.stale));
        assert!(!look(None, disk(1, "a"), "typed before the first look", QUIET).stale);
    }

    #[test]
    fn what_a_command_wrote_is_news_unless_the_editor_shows_it() {
        assert!(look(None, disk(5, "new"), "old", AT_WORK).stale);
        let reloaded = look(None, disk(5, "new"), "new", AT_WORK);
        assert!(!reloaded.stale);
        // Typing after the reload is no difference to report, though the file's time does not change.
        assert!(!look(Some(reloaded), disk(5, "new"), "new and typed", AT_WORK).stale);
    }

    #[test]
    fn a_disk_that_changed_while_the_buffer_did_not_is_news() {
        let first = look(None, disk(1, "old"), "old", QUIET);
        assert!(look(Some(first), disk(2, "new"), "old", QUIET).stale);
        let unsaved = look(None, disk(1, "old"), "old and typed", QUIET);
        assert!(look(Some(unsaved), disk(2, "new"), "old and typed", QUIET).stale);
        assert!(!look(Some(unsaved), disk(2, "new"), "typed on", QUIET).stale, "not known");
        assert!(!look(Some(unsaved), disk(2, "old"), "old and typed", QUIET).stale, "touched");
    }

    #[test]
    fn what_was_saved_while_a_command_ran_came_from_the_editor() {
        let first = look(None, disk(1, "a"), "ab", QUIET);
        assert!(!look(Some(first), disk(5, "ab"), "abc", AT_WORK).stale);
        // A text other than the shown one was not saved by the editor: a checked out file, for instance.
        assert!(look(Some(first), disk(5, "a"), "abc", AT_WORK).stale);
    }

    #[test]
    fn it_stays_stale_until_one_of_both_changes_and_is_told_once_for_each_text_on_disk() {
        let first = look(None, disk(5, "new"), "old", AT_WORK);
        assert!(first.stale && !first.told);
        let again = look(Some(told(first)), disk(5, "new"), "old", AT_WORK);
        assert!(again.stale && again.told);
        assert!(!look(Some(told(again)), disk(5, "new"), "old and typed", AT_WORK).stale);
        let newer = look(Some(told(again)), disk(6, "newer"), "old", QUIET);
        assert!(newer.stale && !newer.told);
    }

    #[test]
    fn the_style_of_a_text_and_its_last_line_break_make_no_difference() {
        for style in ["a\nb\n", "a\r\nb\r\n", "\u{feff}a\r\nb", "a\rb\r", "a\nb\n\n"] {
            assert_eq!(print(style.as_bytes()), print(b"a\nb"), "{style:?}");
        }
        for other in ["", "a", "a\n\nb", "ab", "a\nb ", "\na\nb"] {
            assert_ne!(print(other.as_bytes()), print(b"a\nb"), "{other:?}");
        }
    }

    #[test]
    fn what_we_wrote_is_what_the_editor_shows() {
        let (looks, at) = (Looks::default(), FilePath::flat("a").unwrap());
        looks.wrote(&at, print(b"new"));
        // The editor saved it; then the person typed, and a command runs.
        assert!(!look(looks.last(&at), disk(5, "new"), "new and typed", AT_WORK).stale);
        // Another program wrote it.
        assert!(look(looks.last(&at), disk(5, "other"), "new", QUIET).stale);
        looks.keep(&at, look(None, disk(1, "old"), "old", QUIET));
        looks.wrote(&at, print(b"new"));
        assert!(!look(looks.last(&at), disk(1, "old"), "new", QUIET).stale, "not saved yet");
    }
}
