//! A test of edits in the folder: replacing, locking and syncing, each with a temporary file.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{
    Call, Change, DiskOptions, DiskStore, Durability, Durable, FilePath, Root, Saved, Stop, Store,
    StoreError, probe,
};

use super::check::Check;

/// Time that an edit may wait for the disk without a warning.
const SLOW_SYNC: Duration = Duration::from_millis(100);
/// Time limit of an edit.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that another server waits for the lock in the test.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// A test of edits on a temporary file, by two stores that act as two servers.
pub struct EditTest {
    first: DiskStore,
    second: DiskStore,
    path: FilePath,
    /// True if the file system is in memory.
    is_memory: bool,
}

impl EditTest {
    pub fn new(root: &Root) -> Result<Self, Check> {
        let failed = |why: &dyn std::fmt::Display| {
            Check::fault(
                "edits",
                format!("could not be tested: {why}"),
                "Check the permissions of the folder",
            )
        };
        let open = || Root::open(root.path()).map_err(|error| failed(&error));
        let path = FilePath::flat(&format!(".file-editor-doctor-{}", std::process::id()));
        Ok(Self {
            first: store(open()?, Durability::Full),
            second: store(open()?, Durability::None),
            path: path.map_err(|error| failed(&error))?,
            is_memory: probe::file_system(root).is_memory(),
        })
    }

    pub fn run(&self) -> Vec<Check> {
        let made = match self.write("one", Expected::Missing) {
            Ok(made) => made,
            Err(error) => return vec![edit_fault(&error)],
        };
        let mut checks = vec![self.replacing(), self.locking(), self.syncing(&made)];
        if let Err(error) = self.change(&self.first, CALL_TIMEOUT, &Change::Remove) {
            checks.push(Check::warning(
                "edits",
                format!("the test file {} could not be removed: {error}", self.path),
                "Remove it by hand",
            ));
        }
        checks
    }

    fn replacing(&self) -> Check {
        let read = |_| self.second.read(&self.path, &call(CALL_TIMEOUT));
        match self.write("two", Expected::Present).and_then(read) {
            Ok(Some(version)) if **version.bytes == *b"two" => {
                Check::ok("replacing", "atomic: a reader sees the old text or the new text")
            }
            Ok(_) => Check::fault(
                "replacing",
                "a replaced file does not have its new text",
                "Edits are not safe on this file system; serve a folder on another one",
            ),
            Err(error) => edit_fault(&error),
        }
    }

    fn locking(&self) -> Check {
        let second = RefCell::new(None);
        let mut change = |_: &[Option<files::Version>]| {
            *second.borrow_mut() =
                Some(self.change(&self.second, LOCK_TIMEOUT, &Change::write("three")));
            Ok(vec![Change::Keep])
        };
        let paths = std::slice::from_ref(&self.path);
        let first = self.first.update(paths, &call(CALL_TIMEOUT), &mut change);
        let second = second.into_inner();
        match (first, second) {
            (Ok(_), Some(Err(StoreError::LockTimeout { .. } | StoreError::TimedOut))) => {
                Check::ok("locks", "supported: another server cannot edit a locked file")
            }
            (Err(StoreError::NoLocks { file_system }), _) => Check::fault(
                "locks",
                format!(
                    "not supported by the file system ({file_system}), so every edit is refused"
                ),
                "Mount the file system with locks, or serve a folder on another one",
            ),
            (Err(error), _) => edit_fault(&error),
            (Ok(_), _) => Check::fault(
                "locks",
                "another server can edit a locked file",
                "Let only one server edit these files, or serve a folder on another file system",
            ),
        }
    }

    fn syncing(&self, made: &Saved) -> Check {
        if made.durable == Durable::Unknown {
            return Check::warning(
                "syncing",
                "the folder cannot be synced",
                "A power cut may lose the last edits, but leaves each file old or new",
            );
        }
        if self.is_memory {
            return Check::warning(
                "syncing",
                "the folder is in memory; its files do not survive a restart",
                "Serve a folder on a disk if the files must survive",
            );
        }
        let mut times = Vec::new();
        for text in ["four", "five", "six"] {
            let began = Instant::now();
            if let Err(error) = self.write(text, Expected::Present) {
                return edit_fault(&error);
            }
            times.push(began.elapsed());
        }
        times.sort();
        let finding =
            format!("an edit takes {:.1} ms to reach the disk", times[1].as_secs_f64() * 1e3);
        if times[1] < SLOW_SYNC {
            return Check::ok("syncing", finding);
        }
        let help = "Use a faster disk, or --durability=none, with which a power cut may lose the last edits";
        Check::warning("syncing", finding, help)
    }

    fn write(&self, text: &str, expected: Expected) -> Result<Saved, StoreError> {
        let mut change = |versions: &[Option<files::Version>]| {
            let exists = versions.iter().any(Option::is_some);
            // Another file of this name is left alone.
            if exists == (expected == Expected::Present) {
                Ok(vec![Change::write(text)])
            } else {
                Err(Stop)
            }
        };
        let saved = self.first.update(
            std::slice::from_ref(&self.path),
            &call(CALL_TIMEOUT),
            &mut change,
        )?;
        saved.into_iter().next().ok_or(StoreError::Unconfirmed)
    }

    fn change(&self, store: &DiskStore, time: Duration, new: &Change) -> Result<(), StoreError> {
        let paths = std::slice::from_ref(&self.path);
        store.update(paths, &call(time), &mut |_| Ok(vec![new.clone()])).map(drop)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Missing,
    Present,
}

fn edit_fault(error: &StoreError) -> Check {
    let help = match error {
        StoreError::DiskFull => "Free some space",
        StoreError::ReadOnly => {
            "Mount the file system for writing, or serve the folder with --read-only"
        }
        StoreError::NoLocks { .. } => {
            "Mount the file system with locks, or serve a folder on another one"
        }
        StoreError::Write { doing: "sync", .. } => {
            "Check the disk; --durability=none does not wait for it"
        }
        _ => "Check whether files can be created and renamed in the folder",
    };
    Check::fault("edits", format!("a file cannot be edited: {error}"), help)
}

pub fn store(root: Root, durability: Durability) -> DiskStore {
    DiskStore::open(Arc::new(root), DiskOptions { max_size: 1 << 20, durability })
}

fn call(time: Duration) -> Call {
    Call::until(Instant::now() + time)
}
