//! Removes temporary files that a killed server left behind: exactly our pattern, regular, and locked by nobody. A living
//! server holds the lock of its temporary file from before others can see it.
//!
//! A folder is swept at the first write there, and again at a write when somebody else has changed it since: a folder's
//! times tell. What others do in the middle of a change of our own they do not tell, so whoever works alone looks again
//! now and then.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cap_std::fs::Dir;

use crate::{Stamp, os, temp_name};

/// Where many work, a large folder is not listed all the time: after a sweep it rests so many times as long as that took.
const REST: u32 = 8;
/// Names from which on a folder is large.
const LARGE: usize = 1000;

/// Folders that are known at once: to look once more costs little, to know them all for ever does not.
const REMEMBERED: usize = 4096;

/// How long a folder counts as clean that was changed by us since it was looked at.
const TRUST: Duration = Duration::from_secs(1);

/// What this process knows of the folders it writes in.
#[derive(Debug, Default)]
pub(crate) struct Sweeps(Mutex<HashMap<PathBuf, Folder>>);

#[derive(Debug)]
struct Folder {
    /// What the folder was when nothing but files was in it; `None` if there was more, or that is not known.
    clean: Option<Stamp>,
    /// Set once it was changed by us: somebody else may have left something in the same moment.
    trusted_until: Option<Instant>,
    rests_until: Instant,
}

impl Folder {
    fn is_clean(&self, found: Option<Stamp>, now: Instant) -> bool {
        found.is_some() && found == self.clean && self.trusted_until.is_none_or(|until| now < until)
    }
}

impl Sweeps {
    /// Sweeps `dir` if somebody else may have left something there; `path` is what tells folders apart.
    pub fn sweep(&self, dir: &Dir, path: &Path) {
        let found = os::stamp_of_folder(dir);
        let began = Instant::now();
        if let Some(folder) = self.folders().get(path)
            && (began < folder.rests_until || folder.is_clean(found, began))
        {
            return;
        }
        let Found { names, is_clean } = sweep(dir);
        let rest = if names < LARGE { Duration::ZERO } else { began.elapsed() * REST };
        let clean = found.filter(|_| is_clean);
        let folder = Folder { clean, trusted_until: None, rests_until: Instant::now() + rest };
        let mut folders = self.folders();
        if folders.len() >= REMEMBERED {
            folders.clear();
        }
        folders.insert(path.into(), folder);
    }

    /// What the folder was before a change of our own, and what it is now: as clean as it was.
    pub fn changed_by_us(&self, dir: &Dir, path: &Path, before: Option<&Stamp>) {
        if let Some(folder) = self.folders().get_mut(path)
            && before.is_some()
            && folder.clean.as_ref() == before
        {
            folder.clean = os::stamp_of_folder(dir);
            folder.trusted_until.get_or_insert_with(|| Instant::now() + TRUST);
        }
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<PathBuf, Folder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Found {
    names: usize,
    /// Nothing was there to sweep, nor anything that may have to be one day: a living server's file is left alone, and
    /// it may be killed yet.
    is_clean: bool,
}

/// A folder that cannot be swept is left as it is: litter is no reason to refuse work.
fn sweep(dir: &Dir) -> Found {
    let mut found = Found { names: 0, is_clean: true };
    let Ok(entries) = dir.entries() else { return Found { names: 0, is_clean: false } };
    for entry in entries {
        let Ok(entry) = entry else { return Found { is_clean: false, ..found } };
        found.names += 1;
        let name = entry.file_name();
        if temp_name::is_ours(&name) {
            found.is_clean = false;
            let _ = os::remove_if_abandoned(dir, &name);
        }
    }
    found
}
