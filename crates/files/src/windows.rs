//! Windows: the interface of the Unix module, through cap-std alone.

#![allow(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "signatures are those of the Unix module"
)]

mod file_lock;
mod temp_file;

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::windows::fs::FileExt,
    path::PathBuf,
    time::SystemTime,
};

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use crate::{Stamp, StoreError};

pub(crate) use file_lock::{FileLock, LockedFile};
pub(crate) use temp_file::{ReplacedFile, TempFile};

/// Errors for a file in use, or one being removed: `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`,
/// `ERROR_DELETE_PENDING`. Virus scanners cause them too.
const BUSY: [i32; 3] = [5, 32, 303];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Link,
    Folder,
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Stat {
    pub kind: FileKind,
    pub stamp: Stamp,
    /// Number of names of the file.
    pub links: u64,
    is_read_only: bool,
}

impl Stat {
    fn new(found: &Metadata) -> Self {
        let kind = found.file_type();
        let modified = found.modified().map(cap_std::time::SystemTime::into_std).map_or(0, nanos);
        Self {
            kind: if kind.is_symlink() {
                FileKind::Link
            } else if kind.is_file() {
                FileKind::File
            } else if kind.is_dir() {
                FileKind::Folder
            } else {
                FileKind::Other
            },
            stamp: Stamp {
                device: found.dev(),
                inode: found.ino(),
                size: found.len(),
                modified,
                // Windows has no such time here.
                changed: modified,
            },
            links: found.nlink(),
            is_read_only: found.permissions().readonly(),
        }
    }

    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

/// Converts a time to nanoseconds since 1970, negative before.
fn nanos(time: SystemTime) -> i128 {
    let signed = |span: std::time::Duration| i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => signed(after),
        Err(before) => -signed(before.duration()),
    }
}

/// True for the error of links that lead in a circle.
pub(crate) fn is_link_loop(error: &io::Error) -> bool {
    const CANT_RESOLVE_FILENAME: i32 = 1921;
    error.raw_os_error() == Some(CANT_RESOLVE_FILENAME)
}

/// Returns the state of the name itself, not of a link's target; `None` if nothing is there.
pub(crate) fn stat(dir: &Dir, name: &OsStr) -> io::Result<Option<Stat>> {
    match dir.symlink_metadata(name) {
        Ok(found) => Ok(Some(Stat::new(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn stat_open(file: &File) -> io::Result<Stat> {
    Ok(Stat::new(&Metadata::from_file(file)?))
}

/// Programs that can write into a file without opening it first. The system does not tell about them.
#[expect(dead_code, reason = "there are no leases here")]
pub(crate) enum Writers<'f> {
    None(Lease<'f>),
    Present,
}

pub(crate) struct Lease<'f>(std::marker::PhantomData<&'f File>);

impl Lease<'_> {
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn is_broken(&self) -> bool {
        false
    }
}

pub(crate) struct FolderLock;

impl FolderLock {
    /// Returns `None`: the lock is needed only for exchanges, which do not exist here.
    pub fn acquire(_: &Dir) -> Option<Self> {
        None
    }
}

/// Returns the device and inode of a folder, which tell folders apart.
pub(crate) fn identity(dir: &Dir) -> io::Result<(u64, u64)> {
    let found = dir.dir_metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Returns the stamp of a folder, which changes whenever a name is made, renamed or removed in it.
pub(crate) fn stamp_of_folder(dir: &Dir) -> Option<Stamp> {
    dir.dir_metadata().ok().map(|found| Stat::new(&found).stamp)
}

/// Returns `None`: syncing a file before or after it has its name makes no difference here.
pub(crate) fn journaled_device(_: &Dir) -> Option<u64> {
    None
}

/// Returns false: a folder's times are not updated at once here.
pub(crate) fn is_local_file_system(_: &Dir) -> bool {
    false
}

/// Reads the target of a link; `None` if it is gone.
pub(crate) fn read_link(dir: &Dir, name: &OsStr) -> io::Result<Option<PathBuf>> {
    match dir.read_link_contents(name) {
        Ok(target) => Ok(Some(target)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file that was opened just now to its end, or up to `most` bytes.
pub(crate) fn read_all(file: &File, bytes: &mut Vec<u8>, max: u64) -> io::Result<()> {
    file.take(max).read_to_end(bytes).map(drop)
}

/// Opens a file for reading that [`stat`] found to be regular; `None` if it is gone.
pub(crate) fn open_read(dir: &Dir, name: &OsStr) -> io::Result<Option<File>> {
    open(dir, name, OpenOptions::new().read(true))
}

fn open(dir: &Dir, name: &OsStr, options: &mut OpenOptions) -> io::Result<Option<File>> {
    match dir.open_with(name, options.follow(FollowSymlinks::No)) {
        Ok(file) => Ok(Some(file.into_std())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads from a position of the file; like any read it may return less than fits.
pub(crate) fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(into, at)
}

pub(crate) fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    dir.remove_file_or_symlink(name)
}

/// Does nothing: NTFS keeps its own journal of names, and a folder cannot be synced by us.
pub(crate) fn sync_dir(_: &Dir) -> io::Result<()> {
    Ok(())
}

/// Returns false: a folder cannot be removed while its handle is open.
pub(crate) fn is_removed(_: &Dir) -> bool {
    false
}

pub(crate) fn is_writable(dir: &Dir) -> bool {
    dir.dir_metadata().is_ok_and(|found| !found.permissions().readonly())
}

/// Returns `unknown`: cap-std offers neither the name of a file system nor its free space.
pub(crate) fn file_system(_: &Dir) -> String {
    "unknown".into()
}

pub(crate) fn free_bytes(_: &Dir) -> Option<u64> {
    None
}

/// Returns false: cap-std does not offer this either.
pub(crate) fn is_mounted_read_only(_: &Dir) -> bool {
    false
}

/// Returns false: there are no unnamed files.
pub(crate) fn has_unnamed_files(_: &Dir) -> bool {
    false
}

pub(crate) fn has_leases(_: &File) -> bool {
    false
}

pub(crate) fn can_exchange(_: &Dir, _: &OsStr, _: &OsStr) -> bool {
    false
}

/// Removes a temporary file of a dead server. That of a running one cannot be removed, since it is opened without
/// sharing.
pub(crate) fn remove_if_abandoned(dir: &Dir, name: &OsStr) -> Result<(), StoreError> {
    if stat(dir, name).is_ok_and(|found| found.is_some_and(|found| found.kind == FileKind::File)) {
        remove(dir, name).map_err(StoreError::when("sweep"))?;
    }
    Ok(())
}
