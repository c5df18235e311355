//! A store that passes its updates to a function, for calls that are rehearsed, checked or recorded.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use files::{
    Call, Decide, DirPath, Entry, Excerpt, FilePath, Saved, Stamp, Store, StoreError, Version,
};
use text::LineRange;

pub(super) type Update<'a> = dyn Fn(&[FilePath], &Call, &mut Decide<'_>) -> Result<Vec<Saved>, StoreError>
    + Send
    + Sync
    + 'a;

/// A store with an `update` of its own, which passes all else to the store behind it.
pub(super) struct InterceptedStore<'a> {
    pub store: &'a dyn Store,
    pub update: &'a Update<'a>,
    /// Given if folders are not really made; set once the call asks for them.
    pub pretends_folders: Option<&'a AtomicBool>,
}

impl Store for InterceptedStore<'_> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.store.read(at, call)
    }

    fn read_for_update(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.store.read_for_update(at, call)
    }

    fn read_listed(
        &self,
        at: &FilePath,
        buffer: &mut Vec<u8>,
        call: &Call,
    ) -> Result<Option<Stamp>, StoreError> {
        self.store.read_listed(at, buffer, call)
    }

    fn size(&self, at: &FilePath) -> Option<u64> {
        self.store.size(at)
    }

    fn waits_for_disk(&self) -> bool {
        self.store.waits_for_disk()
    }

    fn excerpt(&self, at: &FilePath, lines: LineRange, call: &Call) -> Option<Excerpt> {
        self.store.excerpt(at, lines, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        (self.update)(at, call, change)
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        let Some(pretends) = self.pretends_folders else {
            return self.store.make_folders(folder, call);
        };
        pretends.store(true, Ordering::Relaxed);
        Ok(vec![folder.clone()])
    }

    fn remove_folders(&self, made: &[DirPath]) {
        if self.pretends_folders.is_none() {
            self.store.remove_folders(made);
        }
    }
}
