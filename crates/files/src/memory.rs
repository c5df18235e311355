//! A store in memory, for tests. It is optimistic: it compares before it saves, and retries.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{
    Call, Change, Decide, DirPath, Entry, FilePath, Saved, Stamp, Stop, Store, StoreError, Version,
    walk::is_shown,
};

/// Files in memory, for tests. There are no links, and every folder exists.
#[derive(Debug)]
pub struct MemoryStore {
    files: Mutex<Files>,
    max_size: u64,
}

#[derive(Debug, Default)]
struct Files {
    versions: BTreeMap<FilePath, (Version, SystemTime)>,
    /// Number of versions so far. The newest one has it as its inode.
    count: u64,
}

impl MemoryStore {
    /// Creates an empty store. `max_size` is in bytes.
    pub fn new(max_size: u64) -> Self {
        Self { files: Mutex::default(), max_size }
    }

    /// Writes a file as another program would that does not use [`Store::update`].
    pub fn put(&self, at: &FilePath, bytes: impl Into<Vec<u8>>) {
        self.files().put(at, bytes.into());
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // The closure of a test never panics under the lock, so the map is whole.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_size(&self, size: usize) -> Result<(), StoreError> {
        let (size, max) = (size as u64, self.max_size);
        if size > max { Err(StoreError::TooLarge { size, max }) } else { Ok(()) }
    }
}

impl Files {
    fn put(&mut self, at: &FilePath, bytes: Vec<u8>) -> Stamp {
        self.count += 1;
        let stamp = Stamp { inode: self.count, size: bytes.len() as u64, ..Stamp::MISSING };
        let version = Version::new(bytes, stamp);
        self.versions.insert(at.clone(), (version, SystemTime::now()));
        stamp
    }

    fn version(&self, at: &FilePath) -> Option<Version> {
        self.versions.get(at).map(|(version, _)| version.clone())
    }

    /// Returns copies, so that the caller may use the store meanwhile.
    fn entries(&self) -> Vec<Entry> {
        let entry = |(at, (version, modified)): (&FilePath, &(Version, SystemTime))| Entry {
            name: at.to_string().replace(std::path::MAIN_SEPARATOR, "/").into(),
            size: version.stamp.size,
            modified: *modified,
            stamp: version.stamp,
        };
        self.versions.iter().map(entry).collect()
    }

    fn apply(&mut self, at: &FilePath, change: Change) -> Saved {
        let old = self.version(at);
        let kept = old.as_ref().map_or(Stamp::MISSING, |old| old.stamp);
        let (created, stamp) = match change {
            Change::Write(bytes) if old.as_ref().is_none_or(|old| old.bytes != bytes) => {
                (old.is_none(), self.put(at, Arc::unwrap_or_clone(bytes)))
            }
            Change::Keep | Change::Write(_) => (false, kept),
            Change::Remove => {
                self.versions.remove(at);
                (false, Stamp::MISSING)
            }
        };
        Saved { created, ..Saved::kept(stamp) }
    }
}

impl Store for MemoryStore {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        call.check()?;
        let version = self.files().version(at);
        version.iter().try_for_each(|version| self.check_size(version.bytes.len()))?;
        Ok(version)
    }

    fn list(
        &self,
        _: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        call.check()?;
        let entries = self.files().entries();
        let _ = entries.into_iter().try_for_each(each);
        Ok(())
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        call.check()?;
        let mut entries = self.files().entries();
        entries.retain(|entry| {
            let path = entry.name.to_str();
            path.is_some_and(|path| path > after && path.split('/').all(is_shown))
        });
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let _ = entries.into_iter().try_for_each(each);
        Ok(())
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        loop {
            let before = at.iter().map(|at| self.read(at, call)).collect::<Result<Vec<_>, _>>()?;
            let changes = change(&before).map_err(|Stop| StoreError::Stopped)?;
            assert_eq!(changes.len(), at.len(), "one change for each path");
            for change in &changes {
                if let Change::Write(bytes) = change {
                    self.check_size(bytes.len())?;
                }
            }
            call.check()?;
            let mut files = self.files();
            let stamp = |version: Option<&Version>| version.map(|version| version.stamp);
            let same = |(at, before): (_, &Option<Version>)| {
                stamp(files.version(at).as_ref()) == stamp(before.as_ref())
            };
            if at.iter().zip(&before).all(same) {
                return Ok(at
                    .iter()
                    .zip(changes)
                    .map(|(at, change)| files.apply(at, change))
                    .collect());
            }
        }
    }

    fn make_folders(&self, _: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        call.check()?;
        Ok(Vec::new())
    }

    fn remove_folders(&self, _: &[DirPath]) {}
}
