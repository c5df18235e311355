//! One file of an update: opened, locked, read, given its change, checked.

use std::{io, time::SystemTime};

use cap_std::fs::Dir;

use crate::{
    Call, Change, StoreError, Version,
    attempt::{AttemptError, WriterWait},
    lock,
    os::{self, FileLock, Lease, LockedFile, Stat, Writers},
    resolve::ResolvedPath,
};

/// One file of an update.
pub(crate) struct Target<'r> {
    pub path: ResolvedPath<'r>,
    file_lock: FileLock,
    /// State of the file under the lock; `None` if it is missing, as in `version`.
    pub stat: Option<Stat>,
    pub version: Option<Version>,
    times: FileTimes,
    /// The change to make.
    pub change: Change,
}

/// Reliability of the times of a file: if a change since the read would show in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTimes {
    ShowChanges,
    /// Another change may have the same time, since the file was changed shortly before it was read. Or a program has
    /// it mapped, and may change it without changing its times.
    MayHideChanges,
}

/// Protection of a file from writes by other programs while it is replaced.
pub(crate) enum WriteProtection<'t> {
    /// No program has the file open for writing, and one that opens it now has to wait.
    Lease(Lease<'t>),
    /// No protection: a program has the file open for writing.
    OpenElsewhere,
    /// No protection.
    None,
}

impl WriteProtection<'_> {
    /// True if a program waits to open the file for writing.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Lease(lease) if lease.is_broken())
    }
}

impl<'r> Target<'r> {
    pub fn open(resolved: ResolvedPath<'r>) -> Result<Self, AttemptError> {
        let file_lock = FileLock::open(&resolved)?.ok_or(AttemptError::Retry)?;
        Ok(Self {
            path: resolved,
            file_lock,
            stat: None,
            version: None,
            times: FileTimes::ShowChanges,
            change: Change::Keep,
        })
    }

    fn lock(&mut self, call: &Call) -> Result<(), StoreError> {
        lock::wait(call, || self.file_lock.try_lock(&self.path)).map_err(|error| match error {
            StoreError::LockTimeout { .. } => {
                StoreError::LockTimeout { holder: self.file_lock.lock_holder() }
            }
            error => error,
        })
    }

    /// Reads the file, which is protected by the lock now.
    pub fn load(&mut self, max: u64, writer_wait: WriterWait) -> Result<(), AttemptError> {
        // A file that is only half saved must not be edited.
        if let Some(Writers::Present) = self.file_lock.writers() {
            writer_wait.on_writer()?;
            self.times = FileTimes::MayHideChanges;
        }
        match self.file_lock.check(&self.path)? {
            LockedFile::Replaced => return Err(AttemptError::Retry),
            LockedFile::Missing => {}
            // A program that saves a file in place empties it first: in a moment it will be filled.
            LockedFile::Present(stat)
                if stat.stamp.size == 0 && stat.stamp.is_fresh(SystemTime::now()) =>
            {
                return Err(AttemptError::Retry);
            }
            LockedFile::Present(stat) => {
                if !stat.stamp.shows_later_changes(SystemTime::now()) {
                    self.times = FileTimes::MayHideChanges;
                }
                let bytes = self.file_lock.read(&self.path, &stat, max)?;
                if bytes.len() as u64 != stat.stamp.size {
                    return Err(self.short_read_error(&stat));
                }
                self.version = Some(Version::new(bytes, stat.stamp));
                self.stat = Some(stat);
            }
        }
        Ok(())
    }

    /// Returns the error for a read that did not return the whole file: another program changed it meanwhile, or the
    /// system did not return all of it. An edit of half a text would lose the other half.
    fn short_read_error(&mut self, stat: &Stat) -> AttemptError {
        match self.file_lock.check(&self.path) {
            Ok(LockedFile::Present(now)) if now.stamp == stat.stamp => {
                let source = io::Error::other("its length is not its size");
                StoreError::Io { doing: "read the file", source }.into()
            }
            Ok(_) => AttemptError::Retry,
            Err(error) => error.into(),
        }
    }

    /// Sets the change, if it changes anything. Refuses a second one that differs.
    pub fn set_change(&mut self, change: Change, max: u64) -> Result<(), StoreError> {
        let change = match (change, &self.version) {
            (Change::Remove, None) => Change::Keep,
            (Change::Write(bytes), Some(version)) if bytes == version.bytes => Change::Keep,
            (Change::Write(bytes), _) if bytes.len() as u64 > max => {
                return Err(StoreError::TooLarge { size: bytes.len() as u64, max });
            }
            (change, _) => change,
        };
        if change == Change::Keep || change == self.change {
            return Ok(());
        }
        if self.change != Change::Keep {
            return Err(StoreError::SameFile);
        }
        self.change = change;
        Ok(())
    }

    /// Returns the size of the file as it was read, in bytes.
    pub fn size(&self) -> u64 {
        self.version.as_ref().map_or(0, |version| version.bytes.len() as u64)
    }

    pub fn original(&self) -> Option<(&FileLock, &Stat)> {
        self.stat.as_ref().map(|stat| (&self.file_lock, stat))
    }

    pub fn can_exchange(&self) -> bool {
        self.file_lock.can_exchange()
    }

    /// Prevents other programs from writing into the file, as far as the system can.
    pub fn protect(&self, writer_wait: WriterWait) -> Result<WriteProtection<'_>, AttemptError> {
        match self.file_lock.writers() {
            Some(Writers::None(lease)) if self.change != Change::Keep => {
                Ok(WriteProtection::Lease(lease))
            }
            Some(Writers::Present) => {
                writer_wait.on_writer().map(|()| WriteProtection::OpenElsewhere)
            }
            _ => Ok(WriteProtection::None),
        }
    }

    /// Returns what was written into the file after [`Target::check_unchanged`], and before it was replaced.
    pub fn late_write(&self, max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.stat.as_ref().map_or(Ok(None), |stat| self.file_lock.written_since(stat, max))
    }

    /// True if something was written into the file that was replaced just now.
    pub fn has_late_write(&self, max: u64) -> bool {
        let is_changed = || {
            let version = self.version.as_ref().filter(|_| self.times == FileTimes::MayHideChanges);
            version.is_some_and(|version| {
                !self.file_lock.begins_with(&self.path, version).is_ok_and(|begins| begins)
            })
        };
        !matches!(self.late_write(max), Ok(None)) || is_changed()
    }

    /// Fails with [`AttemptError::Retry`] if another program moved the folder.
    pub fn check_unmoved(&self, root: &Dir) -> Result<(), AttemptError> {
        if self.path.is_reached_from(root)? { Ok(()) } else { Err(AttemptError::Retry) }
    }

    /// Fails with [`AttemptError::Retry`] if another program changed the file without taking the lock.
    pub fn check_unchanged(&self) -> Result<(), AttemptError> {
        if let (FileTimes::MayHideChanges, Some(version)) = (self.times, &self.version)
            && !self.file_lock.begins_with(&self.path, version)?
        {
            return Err(AttemptError::Retry);
        }
        // The last check is one system call, and the next one publishes.
        let now = os::stat(&self.path.folder, &self.path.name)
            .map_err(StoreError::when("look at the file"))?;
        let stamp = |stat: Option<&Stat>| stat.map(|stat| stat.stamp);
        if stamp(now.as_ref()) == stamp(self.stat.as_ref()) {
            Ok(())
        } else {
            Err(AttemptError::Retry)
        }
    }
}

/// Locks all targets, always in the same order, so that two calls never wait for each other.
pub(crate) fn lock_all(targets: &mut [Target<'_>], call: &Call) -> Result<(), StoreError> {
    if let [target] = targets {
        return target.lock(call);
    }
    let mut order = Vec::with_capacity(targets.len());
    for (index, target) in targets.iter().enumerate() {
        order.push((target.file_lock.key()?, index));
    }
    order.sort_unstable();
    // Two names of one file share one lock.
    order.dedup_by(|one, other| one.0 == other.0);
    order.into_iter().try_for_each(|(_, index)| targets[index].lock(call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Root, resolve::resolve};
    use std::{fs, path::Path};

    /// Times hide a change only on some systems, so the test sets the stamp by hand.
    #[test]
    fn a_change_that_the_times_do_not_tell_is_found_by_reading() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let resolved = resolve(root.dir(), Path::new("a.txt")).unwrap();
        let mut target = Target::open(resolved).ok().unwrap();
        target.load(100, WriterWait::Wait).ok().unwrap();
        target.times = FileTimes::MayHideChanges;
        assert!(target.check_unchanged().is_ok());

        fs::write(&path, "two").unwrap();
        target.stat = os::stat(&target.path.folder, &target.path.name).unwrap();
        assert!(matches!(target.check_unchanged(), Err(AttemptError::Retry)));
        target.times = FileTimes::ShowChanges;
        assert!(target.check_unchanged().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_written_after_it_was_read_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        fs::write(&path, "one").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let load = |name| {
            let resolved = resolve(root.dir(), Path::new(name)).unwrap();
            let mut target = Target::open(resolved).ok().unwrap();
            target.load(100, WriterWait::Wait).ok().unwrap();
            target
        };
        let target = load("a.txt");
        assert_eq!((target.size(), target.late_write(100).unwrap()), (3, None));
        fs::write(&path, "longer").unwrap();
        assert_eq!(target.late_write(100).unwrap().as_deref(), Some(&b"longer"[..]));
        assert_eq!(target.size(), 3);
        let missing = load("b.txt");
        assert_eq!((missing.size(), missing.late_write(100).unwrap()), (0, None));
    }

    #[test]
    fn a_file_has_one_change() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "one").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let plan = |changes: &[Change]| {
            let resolved = resolve(root.dir(), Path::new("a.txt")).unwrap();
            let mut target = Target::open(resolved).ok().unwrap();
            target.load(100, WriterWait::Wait).ok().unwrap();
            let outcome =
                changes.iter().try_for_each(|change| target.set_change(change.clone(), 5));
            (outcome.is_ok(), target.change == Change::Keep)
        };
        let write = |text: &str| Change::write(text.as_bytes());
        assert_eq!(plan(&[Change::Keep, write("one")]), (true, true));
        assert_eq!(plan(&[write("two"), Change::Keep, write("one"), write("two")]), (true, false));
        assert_eq!(plan(&[write("two"), write("three")]), (false, false));
        assert_eq!(plan(&[write("two"), Change::Remove]), (false, false));
        assert_eq!(plan(&[write("three")]), (true, false));
        assert_eq!(plan(&[write("three!")]), (false, true));
    }
}
