//! Sweeps folders: removes temporary files that a killed server left behind. A file is removed only if its name matches
//! our pattern exactly, and it is regular and not locked. A running server holds the lock of its temporary file from
//! before other programs can see it.
//!
//! A folder is swept at the first write there, and again at a write when another program has changed it since, as the
//! folder's times show. They do not show what another program does in the middle of a change of our own, so a server
//! that works alone sweeps again now and then.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cap_std::fs::Dir;

use crate::{Stamp, os, temp_name};

/// Pause after the sweep of a large folder, as a multiple of the sweep's duration. Where many programs work, it is not
/// listed all the time.
const PAUSE_FACTOR: u32 = 8;
/// Number of names from which on a folder is large.
const LARGE_FOLDER_MIN: usize = 1000;

/// Maximum number of folders that are remembered: sweeping one again costs little, remembering all for ever does not.
const FOLDERS_MAX: usize = 4096;

/// Time for which a folder counts as clean that we changed since its last sweep.
const CLEAN_TIME_MAX: Duration = Duration::from_secs(1);

/// State of the folders that this process writes in.
#[derive(Debug, Default)]
pub(crate) struct SweptFolders(Mutex<HashMap<PathBuf, SweptFolder>>);

#[derive(Debug)]
struct SweptFolder {
    /// Stamp of the folder when no temporary file was in it; `None` if there was one, or that is not known.
    clean: Option<Stamp>,
    /// Time until which the folder counts as clean, set once we changed it: another program may have left a file in the
    /// same moment.
    clean_until: Option<Instant>,
    paused_until: Instant,
}

impl SweptFolder {
    /// Creates the state after a sweep that began and ended at these times.
    fn swept(clean: Option<Stamp>, names: usize, began: Instant, ended: Instant) -> Self {
        let pause =
            if names < LARGE_FOLDER_MIN { Duration::ZERO } else { (ended - began) * PAUSE_FACTOR };
        Self { clean, clean_until: None, paused_until: ended + pause }
    }

    /// True if the folder need not be swept.
    fn can_skip(&self, found: Option<Stamp>, now: Instant) -> bool {
        now < self.paused_until || self.is_clean(found, now)
    }

    fn is_clean(&self, found: Option<Stamp>, now: Instant) -> bool {
        found.is_some() && found == self.clean && self.clean_until.is_none_or(|until| now < until)
    }
}

impl SweptFolders {
    /// Sweeps `dir` if another program may have left a file there; `path` tells folders apart.
    pub fn sweep(&self, dir: &Dir, path: &Path) {
        let found = os::stamp_of_folder(dir);
        let began = Instant::now();
        if let Some(folder) = self.folders().get(path)
            && folder.can_skip(found, began)
        {
            return;
        }
        let SweepResult { names, is_clean } = sweep_folder(dir);
        let clean = found.filter(|_| is_clean);
        let folder = SweptFolder::swept(clean, names, began, Instant::now());
        let mut folders = self.folders();
        if folders.len() >= FOLDERS_MAX {
            folders.clear();
        }
        folders.insert(path.into(), folder);
    }

    /// Records a change of our own: a folder that was clean with the stamp `before` is clean with its present stamp.
    pub fn record_own_change(&self, dir: &Dir, path: &Path, before: Option<&Stamp>) {
        if let Some(folder) = self.folders().get_mut(path)
            && before.is_some()
            && folder.clean.as_ref() == before
        {
            folder.clean = os::stamp_of_folder(dir);
            folder.clean_until.get_or_insert_with(|| Instant::now() + CLEAN_TIME_MAX);
        }
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<PathBuf, SweptFolder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SweepResult {
    names: usize,
    /// True if no temporary file was there. That of a running server is left alone, and may have to be removed later:
    /// the server may still be killed.
    is_clean: bool,
}

/// Sweeps a folder. One that cannot be swept is left as it is: leftover files are no reason to refuse work.
fn sweep_folder(dir: &Dir) -> SweepResult {
    let mut result = SweepResult { names: 0, is_clean: true };
    let Ok(entries) = dir.entries() else { return SweepResult { names: 0, is_clean: false } };
    for entry in entries {
        let Ok(entry) = entry else { return SweepResult { is_clean: false, ..result } };
        result.names += 1;
        let name = entry.file_name();
        if temp_name::is_ours(&name) {
            result.is_clean = false;
            let _ = os::remove_if_abandoned(dir, &name);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_is_clean_until_it_changes_or_the_time_is_over() {
        let now = Instant::now();
        let later = now + Duration::from_millis(1);
        let stamp = |size| Some(Stamp { size, ..Stamp::MISSING });
        let folder = |clean_until| SweptFolder { clean: stamp(1), clean_until, paused_until: now };
        assert!(folder(None).is_clean(stamp(1), now));
        assert!(!folder(None).is_clean(stamp(2), now));
        assert!(!folder(None).is_clean(None, now));
        assert!(!SweptFolder { clean: None, ..folder(None) }.is_clean(None, now));
        assert!(folder(Some(later)).is_clean(stamp(1), now));
        assert!(!folder(Some(now)).is_clean(stamp(1), now));
        assert!(!folder(Some(now)).is_clean(stamp(1), later));
    }

    #[test]
    fn a_large_folder_is_not_swept_for_a_while() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let ended = began + second;
        let swept = |names| SweptFolder::swept(None, names, began, ended);
        assert_eq!(swept(999).paused_until, ended);
        assert_eq!(swept(1000).paused_until, ended + 8 * second);
        assert_eq!(swept(1001).paused_until, ended + 8 * second);
        let (clean, other) = (Some(Stamp::MISSING), None);
        let folder = SweptFolder { clean, ..swept(1000) };
        let resumed = ended + 8 * second;
        assert!(folder.can_skip(other, ended) && folder.can_skip(clean, resumed));
        assert!(!folder.can_skip(other, resumed));
    }

    #[test]
    fn what_is_left_behind_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        let looked = || {
            let SweepResult { names, is_clean } = sweep_folder(&folder);
            (names, is_clean)
        };
        for name in ["a", ".fe-1-0123456789abcdef.tm", ".fe-1-0123456789abcdef.tmp.bak"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(looked(), (3, true));
        fs::write(dir.path().join(".fe-1-0123456789abcdef.tmp"), "").unwrap();
        assert_eq!(looked(), (4, false));
        assert_eq!(looked(), (3, true));
    }

    #[test]
    fn a_folder_is_looked_at_again_once_somebody_else_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        let (swept, path) = (SweptFolders::default(), Path::new("here"));
        let clean_until = |swept: &SweptFolders| swept.folders()[path].clean_until;
        swept.sweep(&folder, path);
        let before = os::stamp_of_folder(&folder);
        assert_eq!(swept.folders()[path].clean, before);
        // A change of our own: the folder stays clean, for a while.
        fs::write(dir.path().join("ours"), "").unwrap();
        let now = Instant::now();
        swept.record_own_change(&folder, path, before.as_ref());
        assert_eq!(swept.folders()[path].clean, os::stamp_of_folder(&folder));
        assert!(
            before.is_none()
                || clean_until(&swept).is_some_and(|until| until >= now + CLEAN_TIME_MAX)
        );
        // A change from a stamp that is not the recorded one is not recorded.
        swept.record_own_change(&folder, path, Some(&Stamp::MISSING));
        assert_eq!(swept.folders()[path].clean, os::stamp_of_folder(&folder));
        swept.record_own_change(&folder, Path::new("elsewhere"), before.as_ref());
        assert_eq!(swept.folders().len(), 1);
        swept.sweep(&folder, Path::new("elsewhere"));
        assert_eq!(swept.folders().len(), 2);
        // The clock of a file system may tick only a hundred times a second.
        std::thread::sleep(Duration::from_millis(30));
        fs::write(dir.path().join(".fe-1-0123456789abcdef.tmp"), "").unwrap();
        swept.sweep(&folder, path);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(swept.folders()[path].clean, None);
    }
}
