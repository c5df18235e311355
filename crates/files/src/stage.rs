//! Read, change in memory, save all or nothing, with the caller's own error type: what gave up inside the closure comes
//! out as [`StageError::Change`].

use std::slice;

use crate::{Call, Change, FilePath, Saved, Stop, Store, StoreError, Version};

/// A store seen by someone who edits.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    store: &'a dyn Store,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum StageError<E> {
    #[error(transparent)]
    Store(StoreError),
    /// The change itself gave up.
    #[error("{0}")]
    Change(E),
}

impl<'a> Stage<'a> {
    pub fn new(store: &'a dyn Store) -> Stage<'a> {
        Stage { store }
    }

    /// [`Store::read`].
    pub fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.store.read(at, call)
    }

    /// Changes one file. `change` also gives back a value of its own, which is returned once its change is saved; it
    /// may run more than once, and the last run counts.
    pub fn update_one<T, E>(
        &self,
        at: &FilePath,
        call: &Call,
        mut change: impl FnMut(Option<&Version>) -> Result<(Change, T), E>,
    ) -> Result<(Saved, T), StageError<E>> {
        let (saved, value) = self.update(slice::from_ref(at), call, |versions| {
            let (change, value) = change(versions.first().and_then(Option::as_ref))?;
            Ok((vec![change], value))
        })?;
        let saved = saved.into_iter().next().expect("a store answers for each path");
        Ok((saved, value))
    }

    /// Changes several files at once.
    pub fn update<T, E>(
        &self,
        at: &[FilePath],
        call: &Call,
        mut change: impl FnMut(&[Option<Version>]) -> Result<(Vec<Change>, T), E>,
    ) -> Result<(Vec<Saved>, T), StageError<E>> {
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
            (Err(StoreError::Stopped), Some(Err(reason))) => Err(StageError::Change(reason)),
            (Err(error), _) => Err(StageError::Store(error)),
        }
    }
}
