//! The right to change a file: an exclusive `flock` on the file itself.
//!
//! An edit replaces the file, so whoever waited for the lock may hold one on a file that is no longer there. After
//! locking, the name must still lead to the locked file, or the claim is worth nothing. A missing file has nothing to
//! lock: there the no-replace link that creates it decides.

use std::fs::File;

use rustix::{
    fs::{FlockOperation, OFlags},
    io::{Errno, retry_on_intr},
};

use super::{Kind, Stat};
use crate::{StoreError, Version, disk::read_whole, resolve::Place};

pub(crate) struct Claim {
    /// `None`: the file was missing.
    file: Option<File>,
}

/// What is there once the lock is held.
pub(crate) enum Look {
    Missing,
    Present(Stat),
    /// Something else took the file's place meanwhile.
    Moved,
}

impl Claim {
    /// Opens the file to be locked; `None` if something else took its place.
    pub fn open(place: &Place<'_>) -> Result<Option<Claim>, StoreError> {
        let Some(stat) = place.regular()? else { return Ok(Some(Claim { file: None })) };
        if stat.is_protected() {
            return Err(StoreError::denied("the file is read-only"));
        }
        // Opened for writing, though it is only read: that asks whether we may write, and NFS locks need it.
        let file = super::open(&place.folder, &place.name, OFlags::RDWR)
            .map_err(StoreError::when("open the file"))?;
        Ok(file.map(|file| Claim { file: Some(file) }))
    }

    /// Sorts claims so that everybody locks in the same order; equal for two names of one file.
    pub fn key(&self) -> Result<Option<(u64, u64)>, StoreError> {
        self.file
            .as_ref()
            .map(|file| super::stat_open(file).map(|stat| (stat.stamp.device, stat.stamp.inode)))
            .transpose()
            .map_err(StoreError::when("look at the file"))
    }

    pub fn try_lock(&mut self) -> Result<bool, StoreError> {
        self.file.as_ref().map_or(Ok(true), try_lock)
    }

    pub fn look(&mut self, place: &Place<'_>) -> Result<Look, StoreError> {
        let Some(file) = &self.file else { return Ok(Look::Missing) };
        let failed = StoreError::when("look at the file");
        let locked = match super::stat_open(file) {
            Ok(stat) => stat,
            Err(error) => return Err(failed(error)),
        };
        let named = super::stat(&place.folder, &place.name).map_err(failed)?;
        // No names left: a dead file, whatever the number says.
        let is_alive = locked.links > 0 && named.is_some_and(|named| named.is_same_file(&locked));
        // What is no file any more was put there after it was looked at.
        let is_alive = is_alive && locked.kind == Kind::File;
        Ok(if is_alive { Look::Present(locked) } else { Look::Moved })
    }

    /// The bytes of the file that [`Claim::look`] found.
    pub fn read(&self, place: &Place<'_>, stat: &Stat, max: u64) -> Result<Vec<u8>, StoreError> {
        debug_assert!(place.stat.is_some());
        self.file.as_ref().map_or(Ok(Vec::new()), |file| read_whole(file, stat.stamp.size, max))
    }

    /// Whether the file still begins with what [`Claim::read`] gave. That nothing follows is for its size to tell.
    pub fn begins_with(&self, place: &Place<'_>, version: &Version) -> Result<bool, StoreError> {
        debug_assert!(place.stat.is_some());
        self.file.as_ref().map_or(Ok(false), |file| {
            super::begins_with(file, &version.bytes).map_err(StoreError::when("read the file"))
        })
    }

    /// What somebody who takes no lock wrote into the file since it was looked at, even if it has been replaced: it is
    /// still open here.
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

/// Without waiting; the lock goes when the file is closed. A file system that has no locks is refused, since an edit
/// there could be lost.
pub(super) fn try_lock(file: &File) -> Result<bool, StoreError> {
    match retry_on_intr(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(StoreError::NoLocks { file_system: super::file_system(file) })
        }
        Err(error) => Err(StoreError::os("lock the file", error.into())),
    }
}
