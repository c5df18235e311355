//! Removes temporary files that a killed server left behind: exactly our pattern, regular, ours, and locked by nobody.
//! A living server holds the lock of its temporary file from before others can see it.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use cap_std::fs::Dir;

use crate::{os, temp_name};

/// Which folders this process has swept: each is swept once.
#[derive(Debug, Default)]
pub(crate) struct Swept(Mutex<HashSet<PathBuf>>);

impl Swept {
    /// Sweeps `dir` unless that was done before; `path` is what tells folders apart.
    pub fn sweep_once(&self, dir: &Dir, path: &PathBuf) {
        {
            let mut swept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if swept.contains(path) {
                return;
            }
            swept.insert(path.clone());
        }
        sweep(dir);
    }
}

/// A folder that cannot be swept is left as it is: litter is no reason to refuse work.
fn sweep(dir: &Dir) {
    let Ok(entries) = dir.entries() else { return };
    for name in entries.flatten().map(|entry| entry.file_name()) {
        if temp_name::is_ours(&name) {
            let _ = os::remove_if_abandoned(dir, &name);
        }
    }
}
