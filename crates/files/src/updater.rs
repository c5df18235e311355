//! Updates files with the caller's own error type: read, change in memory, save all or nothing. An error of the closure
//! is returned as [`UpdateError::Change`].

use std::ops::ControlFlow;
use std::slice;

use crate::{Call, Change, DirPath, FilePath, Saved, Stamp, Stop, Store, StoreError, Version};

/// Runs updates of a store with the caller's own error type.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    store: &'a dyn Store,
    missing_folders: MissingFolders,
}

/// Handling of a file whose folder is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingFolders {
    /// The file is refused: [`StoreError::NoFolder`].
    Refuse,
    /// The folder is made, and removed again if the file is not written after all.
    Create,
}

/// Reason why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    #[error(transparent)]
    Store(StoreError),
    /// The closure gave up, with this error.
    #[error("{0}")]
    Change(E),
}

impl<'a> Updater<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, missing_folders: MissingFolders::Refuse }
    }

    #[must_use]
    pub fn with_missing_folders(self, missing_folders: MissingFolders) -> Self {
        Self { missing_folders, ..self }
    }

    /// Changes one file. `change` also returns a value of its own, which is returned once its change is saved; it may
    /// run more than once, and the last run counts.
    pub fn update_one<T, E>(
        &self,
        at: &FilePath,
        call: &Call,
        mut change: impl FnMut(Option<&Version>) -> Result<(Change, T), E>,
    ) -> Result<(Saved, T), UpdateError<E>> {
        let mut made = Vec::new();
        let outcome = self.update_in_folder(at, call, &mut change, &mut made);
        if outcome.is_err() {
            self.store.remove_folders(&made);
        }
        outcome
    }

    /// Changes one file, and adds the folders that are made for it to `made`.
    fn update_in_folder<T, E>(
        &self,
        at: &FilePath,
        call: &Call,
        change: &mut impl FnMut(Option<&Version>) -> Result<(Change, T), E>,
        made: &mut Vec<DirPath>,
    ) -> Result<(Saved, T), UpdateError<E>> {
        let mut found_all = false;
        loop {
            let outcome = self.update(slice::from_ref(at), call, |versions| {
                let (change, value) = change(versions.first().and_then(Option::as_ref))?;
                Ok((vec![change], value))
            });
            match outcome {
                Err(UpdateError::Store(StoreError::NoFolder))
                    if self.missing_folders == MissingFolders::Create => {}
                outcome => {
                    let (saved, value) = outcome?;
                    let saved = saved.into_iter().next().expect("a store answers for each path");
                    return Ok((saved, value));
                }
            }
            // No folder is made for a change that would not write.
            let (change, value) = change(None).map_err(UpdateError::Change)?;
            if !matches!(change, Change::Write(_)) {
                if self.is_blocked_by_file(&at.parent(), call) {
                    return Err(UpdateError::Store(StoreError::NoFolder));
                }
                return Ok((Saved::kept(Stamp::MISSING), value));
            }
            let now = self.store.make_folders(&at.parent(), call).map_err(UpdateError::Store)?;
            // Nothing was missing: another call made it a moment ago, or something that is not a folder is in the way.
            if now.is_empty() && std::mem::replace(&mut found_all, true) {
                return Err(UpdateError::Store(StoreError::NoFolder));
            }
            made.extend(now);
        }
    }

    /// True if a file has the name of a folder that would have to be made.
    fn is_blocked_by_file(&self, folder: &DirPath, call: &Call) -> bool {
        let mut above = DirPath::root();
        for folder in folder.with_parents() {
            let found = self.store.list(&folder, call, &mut |_| ControlFlow::Break(()));
            if found.is_err() {
                let name = folder.as_path().file_name();
                let mut is_file = false;
                let _ = self.store.list(&above, call, &mut |entry| {
                    is_file = Some(entry.name.as_os_str()) == name;
                    if is_file { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                return is_file;
            }
            above = folder;
        }
        false
    }

    /// Changes several files at once.
    pub fn update<T, E>(
        &self,
        at: &[FilePath],
        call: &Call,
        mut change: impl FnMut(&[Option<Version>]) -> Result<(Vec<Change>, T), E>,
    ) -> Result<(Vec<Saved>, T), UpdateError<E>> {
        let mut last = None;
        let saved = self.store.update(at, call, &mut |versions| match change(versions) {
            Ok((changes, value)) => {
                last = Some(Ok(value));
                Ok(changes)
            }
            Err(reason) => {
                last = Some(Err(reason));
                Err(Stop)
            }
        });
        match (saved, last) {
            (Ok(saved), Some(Ok(value))) => Ok((saved, value)),
            (Ok(_), _) => unreachable!("a store saves only what its last change returned"),
            (Err(StoreError::Stopped), Some(Err(reason))) => Err(UpdateError::Change(reason)),
            (Err(error), _) => Err(UpdateError::Store(error)),
        }
    }
}
