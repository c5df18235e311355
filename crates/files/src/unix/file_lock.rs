//! An exclusive `flock` on the file itself: the right to change it.
//!
//! An edit replaces the file, so a call that waited for the lock may hold one on a file that is no longer there. After
//! locking, the name must still lead to the locked file, or the lock is worth nothing. A missing file has nothing to
//! lock: there the no-replace link that creates it decides.

use std::{cell::OnceCell, ffi::OsStr, fs::File};

use cap_std::fs::Dir;
use rustix::{
    fs::{Access, AtFlags, FlockOperation, OFlags, accessat},
    io::{Errno, retry_on_intr},
};

#[cfg(target_os = "linux")]
use super::lock_table;
use super::{FileKind, Stat, Writers, lease};
use crate::{StoreError, Version, attempt::read_whole, resolve::ResolvedPath};

pub(crate) struct FileLock {
    /// The open file; `None` if it was missing.
    file: Option<File>,
    /// True if the file is on a file system that is known to support leases and exchanges.
    is_on_known_fs: OnceCell<bool>,
}

impl From<Option<File>> for FileLock {
    fn from(file: Option<File>) -> Self {
        Self { file, is_on_known_fs: OnceCell::new() }
    }
}

/// The file that a lock was taken for, once the lock is held.
pub(crate) enum LockedFile {
    Missing,
    Present(Stat),
    /// Something else has the name of the file by now.
    Replaced,
}

impl FileLock {
    /// Opens the file to lock; `None` if something else took its place.
    pub fn open(path: &ResolvedPath<'_>) -> Result<Option<Self>, StoreError> {
        let Some(stat) = path.regular_file()? else { return Ok(Some(None.into())) };
        if stat.is_read_only() {
            return Err(StoreError::denied("the file is read-only"));
        }
        // Opened for reading only: a descriptor that could write would look like another program that is writing.
        let file = super::open_read(&path.folder, &path.name)
            .map_err(StoreError::when("open the file"))?;
        match retry_on_intr(|| {
            accessat(&*path.folder, &path.name, Access::WRITE_OK, AtFlags::EACCESS)
        }) {
            Ok(()) | Err(Errno::NOENT) => Ok(file.map(|file| Some(file).into())),
            Err(error) => Err(StoreError::from_os("open the file", error.into())),
        }
    }

    /// Returns a key that sorts locks, so that all calls lock in the same order; equal for two names of one file.
    pub fn key(&self) -> Result<Option<(u64, u64)>, StoreError> {
        self.file
            .as_ref()
            .map(|file| super::stat_open(file).map(|stat| (stat.stamp.device, stat.stamp.inode)))
            .transpose()
            .map_err(StoreError::when("look at the file"))
    }

    pub fn try_lock(&mut self, path: &ResolvedPath<'_>) -> Result<bool, StoreError> {
        let Some(file) = &mut self.file else { return Ok(true) };
        try_lock_named(file, &path.folder, &path.name)
    }

    /// Returns the process that has the lock, where the system tells.
    #[cfg(target_os = "linux")]
    pub fn lock_holder(&self) -> Option<u32> {
        self.file.as_ref().and_then(lock_table::holder)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the signature is that of Linux")]
    pub fn lock_holder(&self) -> Option<u32> {
        None
    }

    /// Checks for other programs that may be writing into the file. `None` if it was missing.
    pub fn writers(&self) -> Option<Writers<'_>> {
        let has_leases = self.is_on_known_fs();
        self.file
            .as_ref()
            .map(|file| if has_leases { lease::writers(file) } else { Writers::Unknown })
    }

    /// True if files can be exchanged here. Some file systems in user space ignore the flag, and would move the file
    /// away.
    pub fn can_exchange(&self) -> bool {
        self.is_on_known_fs()
    }

    fn is_on_known_fs(&self) -> bool {
        *self
            .is_on_known_fs
            .get_or_init(|| self.file.as_ref().is_some_and(lease::are_known_to_work))
    }

    pub fn check(&mut self, path: &ResolvedPath<'_>) -> Result<LockedFile, StoreError> {
        let Some(file) = &self.file else { return Ok(LockedFile::Missing) };
        let failed = StoreError::when("look at the file");
        let locked = match super::stat_open(file) {
            Ok(stat) => stat,
            Err(error) => return Err(failed(error)),
        };
        let named = super::stat(&path.folder, &path.name).map_err(failed)?;
        // A file without names is dead, whatever its inode number is.
        let is_alive = locked.links > 0 && named.is_some_and(|named| named.is_same_file(&locked));
        // Anything but a regular file was put there after the check of the path.
        let is_alive = is_alive && locked.kind == FileKind::File;
        Ok(if is_alive { LockedFile::Present(locked) } else { LockedFile::Replaced })
    }

    /// Reads the file that [`FileLock::check`] found.
    pub fn read(
        &self,
        path: &ResolvedPath<'_>,
        stat: &Stat,
        max: u64,
    ) -> Result<Vec<u8>, StoreError> {
        debug_assert!(path.stat.is_some());
        self.file.as_ref().map_or(Ok(Vec::new()), |file| read_whole(file, stat.stamp.size, max))
    }

    /// True if the file still begins with the bytes that [`FileLock::read`] returned. Its size shows that nothing
    /// follows.
    pub fn begins_with(
        &self,
        path: &ResolvedPath<'_>,
        version: &Version,
    ) -> Result<bool, StoreError> {
        debug_assert!(path.stat.is_some());
        self.file.as_ref().map_or(Ok(false), |file| {
            super::begins_with(file, &version.bytes).map_err(StoreError::when("read the file"))
        })
    }

    /// Reads what a program without the lock wrote into the file since `stat`, even if the file has been replaced: it
    /// is still open here.
    pub fn written_since(&self, stat: &Stat, max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(file) = &self.file else { return Ok(None) };
        let written = |stat: &Stat| (stat.stamp.size, stat.stamp.modified);
        match super::stat_open(file) {
            Ok(now) if written(&now) != written(stat) => {
                read_whole(file, now.stamp.size, max).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

/// Locks a file that is open for reading. NFS grants such a lock only to programs that may write, so the file is opened
/// again there; by then the name may lead to another file.
pub(super) fn try_lock_named(
    file: &mut File,
    folder: &Dir,
    name: &OsStr,
) -> Result<bool, StoreError> {
    match flock(file) {
        Err(Errno::BADF) => {
            let again = super::open(folder, name, OFlags::RDWR);
            let again = again.map_err(StoreError::when("open the file"))?;
            if let Some(again) = again {
                *file = again;
            }
            try_lock(file)
        }
        outcome => locked(outcome, file),
    }
}

/// Locks a file without waiting; closing it releases the lock. A file system that has no locks is refused, since an
/// edit there could be lost.
pub(super) fn try_lock(file: &File) -> Result<bool, StoreError> {
    locked(flock(file), file)
}

fn flock(file: &File) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive))
}

fn locked(outcome: Result<(), Errno>, file: &File) -> Result<bool, StoreError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(StoreError::NoLocks { file_system: super::file_system(file) })
        }
        Err(error) => Err(StoreError::from_os("lock the file", error.into())),
    }
}
