//! A hidden lock file beside the file: the right to change it. It is opened without sharing and deleted when it is
//! closed, by us or by the death of the process. (A lock on the file itself would be mandatory here, and would prevent
//! the rename.) It also guards names that do not exist yet.

use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

use cap_std::fs::{OpenOptions, OpenOptionsExt};
use xxhash_rust::xxh3::xxh3_64;

use super::{BUSY, Stat, Writers};
use crate::{StoreError, Version, attempt::read_whole, resolve::ResolvedPath};

const FILE_ATTRIBUTE_HIDDEN: u32 = 0x2;
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const DELETE: u32 = 0x0001_0000;

/// Time for which "access denied" means a lock file that is being removed, not a folder we may not write to.
const DENIED_TIME_MAX: Duration = Duration::from_secs(1);

pub(crate) struct FileLock {
    dir: cap_std::fs::Dir,
    lock_name: String,
    key: (u64, u64),
    denied_since: Option<Instant>,
    lock: Option<File>,
}

/// The file that a lock was taken for, once the lock is held.
pub(crate) enum LockedFile {
    Missing,
    Present(Stat),
    /// Something else has the name of the file by now.
    Replaced,
}

impl FileLock {
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn can_exchange(&self) -> bool {
        false
    }

    /// Finds the lock file's name. Never `None`, which is for systems that open the file here.
    pub fn open(path: &ResolvedPath<'_>) -> Result<Option<Self>, StoreError> {
        if path.regular_file()?.is_some_and(Stat::is_read_only) {
            return Err(StoreError::denied("the file is read-only"));
        }
        let failed = |error: io::Error| StoreError::from_os("open the folder", error);
        let (device, inode) = super::identity(&path.folder).map_err(failed)?;
        // Names that differ only in case are one file.
        let name = xxh3_64(path.name.to_string_lossy().to_lowercase().as_bytes());
        Ok(Some(Self {
            dir: path.folder.try_clone().map_err(failed)?,
            lock_name: format!(".fe-{name:016x}.lock"),
            key: (device ^ inode.rotate_left(32), name),
            denied_since: None,
            lock: None,
        }))
    }

    /// Returns a key that sorts locks, so that all calls lock in the same order; equal for two spellings of one name.
    pub fn key(&self) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(Some(self.key))
    }

    pub fn try_lock(&mut self, _: &ResolvedPath<'_>) -> Result<bool, StoreError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).share_mode(0).access_mode(GENERIC_WRITE | DELETE);
        options.attributes(FILE_ATTRIBUTE_HIDDEN).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
        match super::open(&self.dir, self.lock_name.as_ref(), &mut options) {
            Ok(lock) => self.lock = lock,
            Err(error) if error.raw_os_error().is_some_and(|code| BUSY.contains(&code)) => {
                let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                let since = *self.denied_since.get_or_insert_with(Instant::now);
                if is_denied && since.elapsed() > DENIED_TIME_MAX {
                    return Err(StoreError::from_os("lock the file", error));
                }
                if !is_denied {
                    self.denied_since = None;
                }
            }
            Err(error) => return Err(StoreError::from_os("lock the file", error)),
        }
        Ok(self.lock.is_some())
    }

    /// Returns `None`: the system does not tell who holds the lock.
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn lock_holder(&self) -> Option<u32> {
        None
    }

    /// Returns `None`: the system does not tell about writers.
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn writers(&self) -> Option<Writers<'_>> {
        None
    }

    pub fn check(&mut self, path: &ResolvedPath<'_>) -> Result<LockedFile, StoreError> {
        let found =
            super::stat(&path.folder, &path.name).map_err(StoreError::when("look at the file"))?;
        Ok(match found {
            None => LockedFile::Missing,
            Some(stat) if stat.kind != super::FileKind::File || stat.is_read_only() => {
                LockedFile::Replaced
            }
            Some(stat) => LockedFile::Present(stat),
        })
    }

    /// Reads the file that [`FileLock::check`] found, and closes it again: an open file is hard to replace.
    pub fn read(
        &self,
        path: &ResolvedPath<'_>,
        stat: &Stat,
        max: u64,
    ) -> Result<Vec<u8>, StoreError> {
        read_whole(&open_present(path)?, stat.stamp.size, max)
    }

    /// True if the file still begins with the bytes that [`FileLock::read`] returned. Its size shows that nothing
    /// follows.
    pub fn begins_with(
        &self,
        path: &ResolvedPath<'_>,
        version: &Version,
    ) -> Result<bool, StoreError> {
        let mut bytes = Vec::with_capacity(version.bytes.len());
        super::read_all(&open_present(path)?, &mut bytes, version.bytes.len() as u64)
            .map_err(StoreError::when("read the file"))?;
        Ok(bytes == *version.bytes)
    }

    /// Returns `None`: a file that is not open cannot be seen once it is replaced.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is that of Unix"
    )]
    pub fn written_since(&self, _: &Stat, _: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
}

/// Opens the file, which was there a moment ago.
fn open_present(path: &ResolvedPath<'_>) -> Result<File, StoreError> {
    let failed = |error: io::Error| StoreError::from_os("open the file", error);
    let file = super::open_read(&path.folder, &path.name).map_err(failed)?;
    file.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}
