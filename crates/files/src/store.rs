//! The trait [`Store`] and the values that it takes and returns. No I/O here.

use std::{
    ffi::OsString,
    ops::{ControlFlow, Range},
    sync::Arc,
    time::{Duration, SystemTime},
};

use text::{LineRange, Text};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Call, DirPath, FilePath, Hash, StoreError};

/// A store of files. A disk holds a lock while it changes one, an editor or an object store compares and retries; the
/// closure of [`Store::update`] fits them all.
pub trait Store: Send + Sync {
    /// Reads the whole file; `None` when it is missing. Never waits for a lock.
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError>;

    /// Reads the whole file for a caller that is about to change it. A store that can refuses here what
    /// [`Store::update`] would refuse before it calls its closure; the default is a plain read.
    fn read_for_update(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read(at, call)
    }

    /// Reads a file that was listed a moment ago into `buffer`, for callers that read many and keep none. Returns its
    /// stamp.
    fn read_listed(
        &self,
        at: &FilePath,
        buffer: &mut Vec<u8>,
        call: &Call,
    ) -> Result<Option<Stamp>, StoreError> {
        Ok(self.read(at, call)?.map(|version| version.move_into(buffer)))
    }

    /// Returns the size of a file in bytes, if it is known without reading it. It may have changed by the time it is
    /// read.
    fn size(&self, _at: &FilePath) -> Option<u64> {
        None
    }

    /// True if an update returns only when its bytes are on the disk, and the disk takes longer than all the rest of
    /// it.
    fn waits_for_disk(&self) -> bool {
        true
    }

    /// Reads a line range of a text file without reading the whole file. `None` if that would not be cheaper, and for
    /// an unusual file; then use [`Store::read`].
    fn excerpt(&self, _at: &FilePath, _lines: LineRange, _call: &Call) -> Option<Excerpt> {
        None
    }

    /// Lists every regular file of one folder and every link that leads to one inside the root, in no order. Includes
    /// hidden files, but not our own temporary files.
    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Lists every file that [`Store::list`] has, of the root and all folders below it, except files that are hidden,
    /// are in a hidden folder, or have a name that is not UTF-8 or has a control character. An entry's name is its
    /// path, with `/` between names. Entries come in byte order of their paths, starting after the path `after`, which
    /// need not exist (any more). Links to folders are not followed.
    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Reads the files, asks `change` for a change of each and saves all of them or nothing.
    ///
    /// `change` must be pure: it runs again whenever a file turned out to have changed meanwhile. It returns one change
    /// for each path, in the order of `at`.
    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError>;

    /// Makes `folder` and its parents, as far as they are missing. Returns those it made, outermost first.
    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError>;

    /// Removes folders that [`Store::make_folders`] made, as far as they are empty.
    fn remove_folders(&self, made: &[DirPath]);
}

/// The closure of an update: decides from the versions of the files what to change in each.
pub type Decide<'a> = dyn FnMut(&[Option<Version>]) -> Result<Vec<Change>, Stop> + 'a;

/// A file as it was when it was read.
#[derive(Clone, Debug)]
pub struct Version {
    pub bytes: Arc<Vec<u8>>,
    pub stamp: Stamp,
    /// Note that a reader of the file should see besides its bytes.
    pub note: Option<&'static str>,
}

impl Version {
    pub(crate) fn new(bytes: Vec<u8>, stamp: Stamp) -> Self {
        Self { bytes: Arc::new(bytes), stamp, note: None }
    }

    pub(crate) fn move_into(self, buffer: &mut Vec<u8>) -> Stamp {
        *buffer = Arc::unwrap_or_clone(self.bytes);
        self.stamp
    }
}

/// Lines of a file, with the line count and the hash of the whole file.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// The lines with all their terminators, without the byte order mark of the file.
    pub text: Text,
    /// Range of the lines, counted from 0: the requested ones, as far as they exist.
    pub lines: Range<usize>,
    /// Number of lines of the whole file.
    pub total: usize,
    /// Hash of the whole file.
    pub hash: Hash,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Keep,
    /// The whole new contents. The same bytes as before count as `Keep`: the file is not touched.
    Write(Arc<Vec<u8>>),
    Remove,
}

impl Change {
    /// Creates a change that writes these contents.
    pub fn write(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Write(Arc::new(bytes.into()))
    }
}

/// Result of a closure that gave up. Its reason stays with the caller that made the closure; see [`crate::Updater`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// Outcome of an update for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// True if the file was missing, and this call is the one that made it.
    pub created: bool,
    /// Stamp of the file now; [`Stamp::MISSING`] if there is none.
    pub stamp: Stamp,
    pub durable: Durable,
    /// Number of other hard links of the replaced file, which keep the old text.
    pub links: u64,
    /// Attributes that the new version could not be given: "owner", "group", "access list", "extended attributes",
    /// "mode".
    pub lost: Vec<&'static str>,
    /// True if the file had a setuid or setgid bit or capabilities, and has them no more.
    pub drops_privileges: bool,
    pub interference: Interference,
    /// Hash of the stored text, if the store keeps it with other line breaks than it was given, or without a byte order
    /// mark.
    pub restyled: Option<Hash>,
}

impl Saved {
    /// True if another program changed the file during the update.
    pub fn is_contested(&self) -> bool {
        self.interference == Interference::Contested
    }

    /// Returns the outcome of an update that had nothing to save.
    pub fn kept(stamp: Stamp) -> Self {
        Self {
            created: false,
            stamp,
            durable: Durable::Yes,
            links: 0,
            lost: Vec::new(),
            drops_privileges: false,
            interference: Interference::None,
            restyled: None,
        }
    }
}

/// Interference by another program during the update, in a store that cannot keep it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    None,
    /// Another program has the file open for writing. Its further writes reach the version that was replaced.
    OpenElsewhere,
    /// Another program changed the file, and its change is lost or mixed with ours.
    Contested,
}

/// Durability of a change in a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The change survives, or nothing had to be saved.
    Yes,
    /// The change may be lost: durability was not requested.
    No,
    /// Durability was requested, and its last step failed after the change became visible.
    Unknown,
}

/// A stamp tells two states of a file apart. Opaque: only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub(crate) modified: i128,
    /// Time of the last change, in nanoseconds since 1970. Unlike `modified` it cannot be set back.
    pub(crate) changed: i128,
}

/// Age below which a file may change again while its times stay the same.
const SETTLED_AGE_MIN: Duration = Duration::from_secs(2);

/// Age below which an empty file may still be filled: longer than a program takes that emptied it to fill it again.
const FRESH_AGE_MAX: Duration = Duration::from_millis(50);

/// Longer than one tick of the clock that dates changes.
const CLOCK_TICK_MAX: Duration = Duration::from_millis(20);

impl Stamp {
    /// The stamp of a missing file.
    pub const MISSING: Self = Self { device: 0, inode: 0, size: 0, modified: 0, changed: 0 };

    /// Makes the stamp of a file of which nothing is known but its bytes. Equal bytes have equal stamps.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { inode: xxh3_64(bytes), size: bytes.len() as u64, ..Self::MISSING }
    }

    /// Returns the time of the last write to the file.
    pub fn modified(&self) -> SystemTime {
        system_time(self.modified)
    }

    /// True if any change after `now` gives the file another stamp. Many systems date changes by a clock that ticks a
    /// hundred times a second, and some file systems keep whole seconds only.
    pub(crate) fn shows_later_changes(&self, now: SystemTime) -> bool {
        let has_whole_seconds = self.changed % 1_000_000_000 == 0;
        let step = if has_whole_seconds { SETTLED_AGE_MIN } else { CLOCK_TICK_MAX };
        now.checked_sub(step).is_some_and(|limit| system_time(self.changed) <= limit)
    }

    /// True if the file was written to a moment ago.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let age = now.duration_since(system_time(self.modified));
        age.is_ok_and(|age| age < FRESH_AGE_MAX)
    }

    /// True if the file has been unchanged long enough for its stamp to stand for its contents.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        now.checked_sub(SETTLED_AGE_MIN).is_some_and(|limit| system_time(self.changed) <= limit)
    }
}

/// Converts nanoseconds since 1970 to a time. One that no clock can show becomes 1970.
pub(crate) fn system_time(nanos: i128) -> SystemTime {
    let time = duration(nanos.unsigned_abs()).and_then(|duration| {
        if nanos < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(duration)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(duration)
        }
    });
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn duration(nanos: u128) -> Option<Duration> {
    // Covers times up to the year 2554, and is many times as quick.
    if let Ok(nanos) = u64::try_from(nanos) {
        return Some(Duration::from_nanos(nanos));
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).ok()?))
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name as the OS has it: not always UTF-8, and not always one that [`crate::Root`] accepts.
    pub name: OsString,
    /// Size in bytes.
    pub size: u64,
    pub modified: SystemTime,
    pub stamp: Stamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_1970() {
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(system_time(0), epoch);
        assert_eq!(system_time(1_500_000_000), epoch + Duration::from_millis(1500));
        assert_eq!(system_time(-1_500_000_000), epoch - Duration::from_millis(1500));
        let far = Duration::new(1 << 40, 5);
        assert_eq!(system_time((1_i128 << 40) * 1_000_000_000 + 5), epoch + far);
        assert_eq!(system_time(i128::MAX), epoch);
    }

    #[test]
    fn a_stamp_shows_changes_once_the_clock_has_ticked() {
        let stamp = |changed| Stamp { changed, ..Stamp::MISSING };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(stamp(99_980_000_000).shows_later_changes(now));
        assert!(!stamp(99_980_000_001).shows_later_changes(now));
        assert!(!stamp(99_000_000_000).shows_later_changes(now), "whole seconds");
        assert!(stamp(98_000_000_000).shows_later_changes(now));
        assert!(!stamp(200_000_000_001).shows_later_changes(now), "from the future");
    }

    #[test]
    fn a_young_file_is_not_settled() {
        let stamp = |changed| Stamp { changed, ..Stamp::MISSING };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(stamp(98_000_000_000).is_settled(now));
        assert!(!stamp(98_000_000_001).is_settled(now));
        assert!(!stamp(200_000_000_000).is_settled(now), "from the future");
    }

    #[test]
    fn a_file_is_fresh_for_a_moment() {
        let stamp = |modified| Stamp { modified, ..Stamp::MISSING };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(stamp(100_000_000_000).is_fresh(now));
        assert!(stamp(99_950_000_001).is_fresh(now));
        assert!(!stamp(99_950_000_000).is_fresh(now));
        assert!(!stamp(200_000_000_000).is_fresh(now), "from the future");
    }
}
