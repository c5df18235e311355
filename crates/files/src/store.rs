//! What a store is: the trait and the values that go in and out. No I/O here.

use std::{
    ffi::OsString,
    ops::{ControlFlow, Range},
    sync::Arc,
    time::{Duration, SystemTime},
};

use text::{LineRange, Text};

use crate::{Call, DirPath, FilePath, Hash, StoreError};

/// A place for files. Disk holds a lock while it changes one, an editor or an object store compares and retries; the
/// closure of [`Store::update`] serves them all.
pub trait Store: Send + Sync {
    /// The whole file; `None` when it is missing. Never waits for a lock.
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError>;

    /// The same for whoever is about to change the file: refuses what [`Store::update`] would refuse before it asks its
    /// change.
    fn look(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read(at, call)
    }

    /// Reads a file that was listed a moment ago into `buffer`, for whoever looks at many and keeps none; its stamp.
    fn read_listed(
        &self,
        at: &FilePath,
        buffer: &mut Vec<u8>,
        call: &Call,
    ) -> Result<Option<Stamp>, StoreError> {
        Ok(self.read(at, call)?.map(|version| version.move_into(buffer)))
    }

    /// How many bytes a file has, where that can be told without reading it. It may be another number by the time it is.
    fn size(&self, _at: &FilePath) -> Option<u64> {
        None
    }

    /// Whether an update comes back only when the disk has what it wrote, which takes longer than all the rest of it.
    fn waits_for_disk(&self) -> bool {
        true
    }

    /// Lines of a file that is text, where that takes less than to read all of it. `None` where it does not, and for
    /// whatever is odd: [`Store::read`] tells.
    fn excerpt(&self, _at: &FilePath, _lines: LineRange, _call: &Call) -> Option<Excerpt> {
        None
    }

    /// Every regular file of one folder and every link that leads to one inside the root, in no order. Hidden files
    /// are there too; our own temporary files are not.
    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Every file that [`Store::list`] has, of this folder and all below it, but for those that are hidden, are in a
    /// hidden folder or have a name that cannot be written down. An entry's name is its path, with `/` between names;
    /// they come in the order of the bytes of that, from the first after `after` on, which need not be there (any more).
    /// Links to folders are not followed.
    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Reads the files, asks `change` what becomes of each and saves all of it or nothing.
    ///
    /// `change` must be pure: it runs again whenever a file turned out to have changed meanwhile. It returns one change
    /// for each path, in the order of `at`.
    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError>;

    /// Makes `folder` and those it is in, as far as they are missing; answers those it made, outermost first.
    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError>;

    /// Takes back what [`Store::make_folders`] made, as far as nothing is in there by now.
    fn remove_folders(&self, made: &[DirPath]);
}

/// Decides, from what the files are, what becomes of each.
pub type Decide<'a> = dyn FnMut(&[Option<Version>]) -> Result<Vec<Change>, Stop> + 'a;

/// A file as it was when it was read.
#[derive(Clone, Debug)]
pub struct Version {
    pub bytes: Arc<Vec<u8>>,
    pub stamp: Stamp,
    /// What whoever reads it should know besides.
    pub note: Option<&'static str>,
}

impl Version {
    pub(crate) fn new(bytes: Vec<u8>, stamp: Stamp) -> Version {
        Version { bytes: Arc::new(bytes), stamp, note: None }
    }

    pub(crate) fn move_into(self, buffer: &mut Vec<u8>) -> Stamp {
        *buffer = Arc::unwrap_or_clone(self.bytes);
        self.stamp
    }
}

/// Lines of a file, and what is known of the rest of it.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// With all their terminators, and without the byte order mark of the file.
    pub text: Text,
    /// Which lines these are, counted from 0: those that were asked for, as far as there are any.
    pub lines: Range<usize>,
    /// Lines of the whole file.
    pub total: usize,
    /// Of the whole file.
    pub hash: Hash,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Keep,
    /// The whole new contents. The same bytes as before count as `Keep`: the file is not touched.
    Write(Arc<Vec<u8>>),
    Remove,
}

impl Change {
    /// These are the new contents.
    pub fn write(bytes: impl Into<Vec<u8>>) -> Change {
        Change::Write(Arc::new(bytes.into()))
    }
}

/// The change gave up. Its reason stays with whoever wrote the closure; see [`crate::Stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// What was done to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The file was missing, and this call is the one that made it.
    pub created: bool,
    /// The file as it is now; [`Stamp::MISSING`] if there is none.
    pub stamp: Stamp,
    pub durable: Durable,
    /// How many other hard links of the replaced file keep the old text.
    pub links: u64,
    /// What the new version could not be given: "owner", "group", "access list", "extended attributes".
    pub lost: Vec<&'static str>,
    /// The file had a setuid or setgid bit or capabilities, and has them no more.
    pub drops_privileges: bool,
    pub interference: Interference,
    /// The store keeps the same text with other line breaks than it was given, or without a byte order mark: the hash of
    /// what it has.
    pub restyled: Option<Hash>,
}

impl Saved {
    /// True if another program changed the file during the update.
    pub fn is_contested(&self) -> bool {
        self.interference == Interference::Contested
    }

    /// Nothing had to be saved.
    pub fn kept(stamp: Stamp) -> Saved {
        Saved {
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

/// Another program at the file during the update, in a store that cannot keep it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    None,
    /// It has the file open for writing. What it writes from now on goes to the version that was replaced.
    OpenElsewhere,
    /// It changed the file, and its change is lost or mixed with ours.
    Contested,
}

/// Whether the change survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// It does, or nothing had to be saved.
    Yes,
    /// Not for certain: it was not asked for.
    No,
    /// It was asked for, and the last step of it failed after the change became visible.
    Unknown,
}

/// Tells two states of a file apart. Opaque: only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i128,
    /// Nanoseconds since 1970. Unlike `modified` nobody can set it back.
    pub(crate) changed: i128,
}

/// A file younger than this may change again without its times telling.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Longer than it takes to fill a file that was emptied for that.
const FRESH: Duration = Duration::from_millis(50);

/// Longer than the clock that dates changes takes from one tick to the next.
const TICKS: Duration = Duration::from_millis(20);

impl Stamp {
    /// The stamp of no file.
    pub const MISSING: Stamp = Stamp { device: 0, inode: 0, size: 0, modified: 0, changed: 0 };

    /// When the file was last written to.
    pub fn modified(&self) -> SystemTime {
        system_time(self.modified)
    }

    /// Whether any change after `now` gives the file another stamp. Many systems take the time of a change from a clock
    /// that ticks a hundred times a second, and some file systems keep whole seconds only.
    pub(crate) fn tells_changes(&self, now: SystemTime) -> bool {
        let has_whole_seconds = self.changed % 1_000_000_000 == 0;
        let step = if has_whole_seconds { SETTLED_AFTER } else { TICKS };
        now.checked_sub(step).is_some_and(|limit| system_time(self.changed) <= limit)
    }

    /// Whether the file was written to a moment ago.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let age = now.duration_since(system_time(self.modified));
        age.is_ok_and(|age| age < FRESH)
    }

    /// Whether the file has been left alone long enough for its stamp to stand for its contents.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        now.checked_sub(SETTLED_AFTER).is_some_and(|limit| system_time(self.changed) <= limit)
    }
}

/// A time given in nanoseconds since 1970; one no clock can show becomes 1970.
pub(crate) fn system_time(nanos: i128) -> SystemTime {
    let time = span(nanos.unsigned_abs()).and_then(|span| {
        if nanos < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(span)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(span)
        }
    });
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn span(nanos: u128) -> Option<Duration> {
    // Up to the year 2554, and many times as quick.
    if let Ok(nanos) = u64::try_from(nanos) {
        return Some(Duration::from_nanos(nanos));
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).ok()?))
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As the OS has it: not always UTF-8, and not always a name [`crate::Root`] takes.
    pub name: OsString,
    /// In bytes.
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
    fn a_stamp_tells_changes_once_the_clock_has_ticked() {
        let stamp = |changed| Stamp { changed, ..Stamp::MISSING };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(stamp(99_980_000_000).tells_changes(now));
        assert!(!stamp(99_980_000_001).tells_changes(now));
        assert!(!stamp(99_000_000_000).tells_changes(now), "whole seconds");
        assert!(stamp(98_000_000_000).tells_changes(now));
        assert!(!stamp(200_000_000_001).tells_changes(now), "from the future");
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
