//! Paths of the files that updates are working on, so that two updates of one file run one after the other.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use files::{Call, StoreError, wait_for_lock};

/// Paths of the files that updates are working on, in all stores that share this set.
#[derive(Clone, Debug, Default)]
pub struct PathsInUse(Arc<Mutex<BTreeSet<PathBuf>>>);

/// Claim of an update on its file. Released on drop.
#[derive(Debug)]
pub(super) struct PathGuard<'a> {
    path: PathBuf,
    paths: &'a PathsInUse,
}

impl PathsInUse {
    /// Waits until no other update works on the file, and keeps others out until the guard is dropped. Two paths that
    /// lead to one file by links are two files here.
    pub(super) fn claim(&self, path: PathBuf, call: &Call) -> Result<PathGuard<'_>, StoreError> {
        wait_for_lock(call, || Ok(self.lock().insert(path.clone())))?;
        Ok(PathGuard { path, paths: self })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // No foreign code runs under this lock, so the set is whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PathGuard<'_> {
    fn drop(&mut self) {
        self.paths.lock().remove(&self.path);
    }
}
