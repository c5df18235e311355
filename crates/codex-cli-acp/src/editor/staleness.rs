//! Detects that an editor's text is older than the file on disk.
//!
//! A difference alone says nothing: most often the person has not saved yet. The text counts as stale if the file on
//! disk was written while a command ran, or changed since the last snapshot while the editor's text did not. It does not
//! if the disk has the text that the editor showed at the last snapshot, since then the editor saved it. The state of the
//! disk at the last snapshot is no news, so that typing on after a reload is not stale.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use files::{FilePath, Hash, Version};

use super::{command_periods::Writer, normalize::normalized};

/// Last snapshot of each file that calls have read.
#[derive(Debug, Default)]
pub(super) struct Snapshots(Mutex<BTreeMap<FilePath, Snapshot>>);

/// State of a file at one moment, on disk and in the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// `None` if the editor made the file.
    pub disk: Option<DiskText>,
    /// [`text_digest`] of the editor's text.
    pub buffer: Hash,
    pub is_stale: bool,
    /// True if the model was told.
    pub is_reported: bool,
}

/// State of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskText {
    pub modified: SystemTime,
    /// [`text_digest`] of its text.
    text: Hash,
}

/// Hashes a text. Equal for texts that differ only in what editors change when they load or save: byte order mark, line
/// breaks, and those at the end.
pub(super) fn text_digest(bytes: &[u8]) -> Hash {
    let text = normalized(bytes);
    let end = text.iter().rposition(|&byte| byte != b'\n').map_or(0, |last| last + 1);
    Hash::of(&text[..end])
}

/// True if both are missing, or equal by [`text_digest`].
pub(super) fn same_text(one: Option<&Version>, other: Option<&Version>) -> bool {
    let digest = |version: &Version| text_digest(&version.bytes);
    one.map(digest) == other.map(digest)
}

impl DiskText {
    pub fn of(version: &Version) -> Self {
        Self { modified: version.stamp.modified(), text: text_digest(&version.bytes) }
    }
}

impl Snapshot {
    /// Compares the disk and the editor with the last snapshot. `writer` is who last wrote the file on disk.
    pub fn after(last: Option<Self>, disk: DiskText, buffer: Hash, writer: Writer) -> Self {
        let now = Self { disk: Some(disk), buffer, is_stale: false, is_reported: false };
        let is_by_command = writer == Writer::Command;
        let (is_stale, is_reported) = match last {
            _ if now.is_same() => (false, false),
            None => (is_by_command, false),
            Some(last) if last.disk == Some(disk) => {
                (last.is_stale && last.buffer == buffer, last.is_reported)
            }
            Some(last) => {
                let is_disk_new = last.disk.is_none_or(|before| before.text != disk.text);
                let is_overtaken = is_disk_new && last.buffer == buffer;
                let is_saved = last.buffer == disk.text;
                (is_overtaken || (is_by_command && !is_saved), false)
            }
        };
        Self { is_stale, is_reported, ..now }
    }

    /// True if the disk and the editor have the same text.
    pub fn is_same(&self) -> bool {
        self.disk.is_none_or(|disk| disk.text == self.buffer)
    }
}

impl Snapshots {
    pub fn last(&self, at: &FilePath) -> Option<Snapshot> {
        self.lock().get(at).copied()
    }

    pub fn record(&self, at: &FilePath, snapshot: Snapshot) {
        self.lock().insert(at.clone(), snapshot);
    }

    /// Records that the editor accepted a new text, whatever the disk has.
    pub fn record_write(&self, at: &FilePath, buffer: Hash) {
        let new = Snapshot { disk: None, buffer, is_stale: false, is_reported: false };
        let mut snapshots = self.lock();
        let snapshot = snapshots.entry(at.clone()).or_insert(new);
        *snapshot = Snapshot { disk: snapshot.disk, ..new };
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<FilePath, Snapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const UNKNOWN: Writer = Writer::Unknown;
    const COMMAND: Writer = Writer::Command;

    fn disk(seconds: u64, text: &str) -> DiskText {
        DiskText {
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            text: text_digest(text.as_bytes()),
        }
    }

    fn snapshot(last: Option<Snapshot>, disk: DiskText, buffer: &str, writer: Writer) -> Snapshot {
        Snapshot::after(last, disk, text_digest(buffer.as_bytes()), writer)
    }

    fn reported(snapshot: Snapshot) -> Snapshot {
        Snapshot { is_reported: snapshot.is_stale, ..snapshot }
    }

    #[test]
    fn what_was_typed_and_not_saved_is_not_stale() {
        let first = snapshot(None, disk(1, "a"), "a", UNKNOWN);
        let typed = snapshot(Some(first), disk(1, "a"), "ab", UNKNOWN);
        let saved = snapshot(Some(typed), disk(2, "ab"), "ab", UNKNOWN);
        let more = snapshot(Some(saved), disk(2, "ab"), "abc", UNKNOWN);
        assert!([first, typed, saved, more].iter().all(|snapshot| !snapshot.is_stale));
        assert!(!snapshot(None, disk(1, "a"), "typed before the first snapshot", UNKNOWN).is_stale);
    }

    #[test]
    fn what_a_command_wrote_is_news_unless_the_editor_shows_it() {
        assert!(snapshot(None, disk(5, "new"), "old", COMMAND).is_stale);
        let reloaded = snapshot(None, disk(5, "new"), "new", COMMAND);
        assert!(!reloaded.is_stale);
        // Typing after the reload is no difference to report, though the file's time does not change.
        assert!(!snapshot(Some(reloaded), disk(5, "new"), "new and typed", COMMAND).is_stale);
    }

    #[test]
    fn a_disk_that_changed_while_the_buffer_did_not_is_news() {
        let first = snapshot(None, disk(1, "old"), "old", UNKNOWN);
        assert!(snapshot(Some(first), disk(2, "new"), "old", UNKNOWN).is_stale);
        let unsaved = snapshot(None, disk(1, "old"), "old and typed", UNKNOWN);
        assert!(snapshot(Some(unsaved), disk(2, "new"), "old and typed", UNKNOWN).is_stale);
        assert!(
            !snapshot(Some(unsaved), disk(2, "new"), "typed on", UNKNOWN).is_stale,
            "not known"
        );
        assert!(
            !snapshot(Some(unsaved), disk(2, "old"), "old and typed", UNKNOWN).is_stale,
            "touched"
        );
    }

    #[test]
    fn what_was_saved_while_a_command_ran_came_from_the_editor() {
        let first = snapshot(None, disk(1, "a"), "ab", UNKNOWN);
        assert!(!snapshot(Some(first), disk(5, "ab"), "abc", COMMAND).is_stale);
        // A text other than the shown one was not saved by the editor: a checked out file, for instance.
        assert!(snapshot(Some(first), disk(5, "a"), "abc", COMMAND).is_stale);
    }

    #[test]
    fn it_stays_stale_until_one_of_both_changes_and_is_told_once_for_each_text_on_disk() {
        let first = snapshot(None, disk(5, "new"), "old", COMMAND);
        assert!(first.is_stale && !first.is_reported);
        let again = snapshot(Some(reported(first)), disk(5, "new"), "old", COMMAND);
        assert!(again.is_stale && again.is_reported);
        assert!(
            !snapshot(Some(reported(again)), disk(5, "new"), "old and typed", COMMAND).is_stale
        );
        let newer = snapshot(Some(reported(again)), disk(6, "newer"), "old", UNKNOWN);
        assert!(newer.is_stale && !newer.is_reported);
    }

    #[test]
    fn the_style_of_a_text_and_its_last_line_break_make_no_difference() {
        for style in ["a\nb\n", "a\r\nb\r\n", "\u{feff}a\r\nb", "a\rb\r", "a\nb\n\n"] {
            assert_eq!(text_digest(style.as_bytes()), text_digest(b"a\nb"), "{style:?}");
        }
        for other in ["", "a", "a\n\nb", "ab", "a\nb ", "\na\nb"] {
            assert_ne!(text_digest(other.as_bytes()), text_digest(b"a\nb"), "{other:?}");
        }
    }

    #[test]
    fn what_we_wrote_is_what_the_editor_shows() {
        let (snapshots, at) = (Snapshots::default(), FilePath::flat("a").unwrap());
        snapshots.record_write(&at, text_digest(b"new"));
        // The editor saved it; then the person typed, and a command runs.
        assert!(!snapshot(snapshots.last(&at), disk(5, "new"), "new and typed", COMMAND).is_stale);
        // Another program wrote it.
        assert!(snapshot(snapshots.last(&at), disk(5, "other"), "new", UNKNOWN).is_stale);
        snapshots.record(&at, snapshot(None, disk(1, "old"), "old", UNKNOWN));
        snapshots.record_write(&at, text_digest(b"new"));
        assert!(
            !snapshot(snapshots.last(&at), disk(1, "old"), "new", UNKNOWN).is_stale,
            "not saved yet"
        );
    }
}
