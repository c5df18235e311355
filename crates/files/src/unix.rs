//! System calls on Unix that check and open files, one name in an open folder at a time, never through a link.

mod attributes;
mod exchange;
mod file_lock;
mod folder_lock;
mod journal;
mod lease;
#[cfg(target_os = "linux")]
mod lock_table;
mod temp_file;

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStringExt, fs::FileExt},
    },
    path::PathBuf,
};

use cap_std::fs::Dir;
use rustix::{
    buffer::spare_capacity,
    fs::{Access, AtFlags, FileType, Mode, OFlags},
    io::{Errno, retry_on_intr},
};

use crate::{Stamp, StoreError};

#[cfg(target_os = "linux")]
pub(crate) use attributes::umask;
pub(crate) use file_lock::{FileLock, LockedFile};
pub(crate) use folder_lock::FolderLock;
pub(crate) use journal::journaled_device;
pub(crate) use lease::{Lease, Writers};
#[cfg(target_os = "linux")]
pub(crate) use lock_table::table as lock_table;
pub(crate) use temp_file::{ReplacedFile, TempFile};

/// Number of bytes of names that are read from the system at once: about a thousand names.
#[cfg(target_os = "linux")]
const NAMES_BUFFER_SIZE: usize = 32 * 1024;

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
    /// Permission bits, with setuid, setgid and sticky.
    mode: Mode,
    uid: u32,
    gid: u32,
}

impl Stat {
    /// True if nobody may write the file. It is left alone even by root, who could, and by a rename, which would not
    /// check.
    pub fn is_read_only(&self) -> bool {
        !self.mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH)
    }

    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the fields have other types on other systems"
    )]
    fn new(stat: &rustix::fs::Stat) -> Self {
        let nanos =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self {
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Symlink => FileKind::Link,
                FileType::Directory => FileKind::Folder,
                _ => FileKind::Other,
            },
            stamp: Stamp {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
                size: stat.st_size as u64,
                modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                changed: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            },
            links: stat.st_nlink as u64,
            mode: Mode::from_raw_mode(stat.st_mode),
            uid: stat.st_uid,
            gid: stat.st_gid,
        }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.stamp.device, self.stamp.inode) == (other.stamp.device, other.stamp.inode)
    }
}

/// Returns the state of the name itself, not of a link's target; `None` if nothing is there.
pub(crate) fn stat(dir: &Dir, name: &OsStr) -> io::Result<Option<Stat>> {
    match retry_on_intr(|| rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)) {
        Ok(stat) => Ok(Some(Stat::new(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn stat_open(file: &File) -> io::Result<Stat> {
    Ok(Stat::new(&retry_on_intr(|| rustix::fs::fstat(file))?))
}

/// Returns the device and inode of a folder, which tell folders apart.
pub(crate) fn identity(dir: &Dir) -> io::Result<(u64, u64)> {
    let Stamp { device, inode, .. } = Stat::new(&retry_on_intr(|| rustix::fs::fstat(dir))?).stamp;
    Ok((device, inode))
}

/// Returns the stamp of a folder, which changes whenever a name is made, renamed or removed in it.
pub(crate) fn stamp_of_folder(dir: &Dir) -> Option<Stamp> {
    retry_on_intr(|| rustix::fs::fstat(dir)).ok().map(|stat| Stat::new(&stat).stamp)
}

/// True for file systems of this machine's own disks and memory. They date a folder whenever a name is added or
/// removed, and know which programs have a file open; others may make up times, or ask a server for them now and then.
pub(crate) fn is_local_file_system(at: impl AsFd) -> bool {
    #[cfg(target_os = "linux")]
    {
        // ext, XFS, Btrfs, tmpfs, F2FS, overlay, ZFS.
        const LOCAL_FILE_SYSTEMS: [u32; 7] =
            [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x794c_7630, 0x2fc1_2fc1];
        retry_on_intr(|| rustix::fs::fstatfs(&at)).is_ok_and(|found| {
            u32::try_from(found.f_type & 0xffff_ffff)
                .is_ok_and(|kind| LOCAL_FILE_SYSTEMS.contains(&kind))
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = at;
        false
    }
}

/// Returns the name of the file system that a file or folder is on, or its number.
#[cfg(target_os = "linux")]
pub(crate) fn file_system(at: impl AsFd) -> String {
    // The numbers are those of linux/magic.h.
    match rustix::fs::fstatfs(at)
        .map(|found| u32::try_from(found.f_type & 0xffff_ffff).unwrap_or_default())
    {
        Ok(0xef53) => "ext4".into(),
        Ok(0x5846_5342) => "xfs".into(),
        Ok(0x9123_683e) => "btrfs".into(),
        Ok(0x2fc1_2fc1) => "zfs".into(),
        Ok(0xf2f5_2010) => "f2fs".into(),
        Ok(0x0102_1994) => "tmpfs".into(),
        Ok(0x8584_58f6) => "ramfs".into(),
        Ok(0x9fa0) => "proc".into(),
        Ok(0x6265_6572) => "sysfs".into(),
        Ok(0x794c_7630) => "overlay".into(),
        Ok(0x4d44) => "vfat".into(),
        Ok(0x2011_bab0) => "exfat".into(),
        Ok(0x7366_746e) => "ntfs".into(),
        Ok(0x6969) => "nfs".into(),
        Ok(0x517b) => "smb".into(),
        Ok(0xff53_4d42) => "cifs".into(),
        Ok(0xfe53_4d42) => "smb2".into(),
        Ok(0x6573_5546) => "fuse".into(),
        Ok(0x0102_1997) => "9p".into(),
        Ok(0x0bd0_0bd0) => "lustre".into(),
        Ok(0x00c3_6400) => "ceph".into(),
        Ok(0x5346_414f) => "afs".into(),
        Ok(number) => format!("type {number:#x}"),
        Err(_) => "unknown".into(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn file_system(_: impl AsFd) -> String {
    "unknown".into()
}

#[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
pub(crate) fn free_bytes(dir: &Dir) -> Option<u64> {
    let found = retry_on_intr(|| rustix::fs::fstatvfs(dir)).ok()?;
    (found.f_bavail as u64).checked_mul(found.f_frsize as u64)
}

pub(crate) fn is_mounted_read_only(dir: &Dir) -> bool {
    let read_only = rustix::fs::StatVfsMountFlags::RDONLY;
    retry_on_intr(|| rustix::fs::fstatvfs(dir)).is_ok_and(|found| found.f_flag.contains(read_only))
}

/// True if a file can be written before it has a name.
#[cfg(target_os = "linux")]
pub(crate) fn has_unnamed_files(dir: &Dir) -> bool {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(dir, ".", flags, Mode::RUSR | Mode::WUSR)).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_unnamed_files(_: &Dir) -> bool {
    false
}

/// True if the system tells which programs have a file open for writing. The file must be open for reading only.
pub(crate) fn has_leases(file: &File) -> bool {
    lease::are_known_to_work(file) && matches!(lease::writers(file), Writers::None(_))
}

/// Exchanges two names of a folder; false if the system cannot.
pub(crate) fn can_exchange(dir: &Dir, one: &OsStr, two: &OsStr) -> bool {
    is_local_file_system(dir) && exchange::exchange(dir, one, two).is_ok()
}

/// True if the folder was removed: it has no name left.
pub(crate) fn is_removed(dir: &Dir) -> bool {
    retry_on_intr(|| rustix::fs::fstat(dir)).is_ok_and(|stat| stat.st_nlink == 0)
}

/// True for the error of links that lead in a circle.
pub(crate) fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Calls `each` with each name in a folder that may be a file's: the system need not tell what it is.
#[cfg(target_os = "linux")]
pub(crate) fn read_file_names(dir: &Dir, each: &mut dyn FnMut(&OsStr)) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;

    let dir = reopen(dir)?;
    let mut buffer = Vec::with_capacity(NAMES_BUFFER_SIZE);
    let mut entries = rustix::fs::RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) => {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if entry.file_type() != FileType::Directory && name != "." && name != ".." {
                    each(name);
                }
            }
            Err(Errno::INTR) => {}
            // The folder was removed meanwhile.
            Err(Errno::NOENT) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads the target of a link; `None` if it is not a link, or gone.
pub(crate) fn read_link(dir: &Dir, name: &OsStr) -> io::Result<Option<PathBuf>> {
    match retry_on_intr(|| rustix::fs::readlinkat(dir, name, Vec::new())) {
        Ok(target) => Ok(Some(std::ffi::OsString::from_vec(target.into_bytes()).into())),
        Err(Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file from its beginning to its end, or up to `most` bytes.
pub(crate) fn read_all(file: &File, bytes: &mut Vec<u8>, max: u64) -> io::Result<()> {
    const READ_SIZE_MIN: u64 = 64 * 1024;
    while (bytes.len() as u64) < max {
        if bytes.len() == bytes.capacity() {
            let more = READ_SIZE_MIN.max(bytes.len() as u64).min(max - bytes.len() as u64);
            bytes.reserve_exact(usize::try_from(more).unwrap_or_default());
        }
        if read_more(file, bytes.len() as u64, bytes)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Appends what is in a file from `offset` on to `bytes`, as much as one call returns and they have room for. The
/// file's own position stays where it is, so that it need not be set back.
fn read_more(file: &File, offset: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::pread(file, spare_capacity(bytes), offset))?)
}

/// True if a file begins with `bytes`. It is read block by block: memory for all of it would cost more than the
/// reading.
fn begins_with(file: &File, bytes: &[u8]) -> io::Result<bool> {
    const BLOCK_SIZE: usize = 64 * 1024;
    let mut block = Vec::with_capacity(bytes.len().min(BLOCK_SIZE));
    let mut rest = bytes;
    while !rest.is_empty() {
        block.clear();
        let read = read_more(file, (bytes.len() - rest.len()) as u64, &mut block)?;
        let (expected, unread) = rest.split_at(read.min(rest.len()));
        if read == 0 || !block.starts_with(expected) {
            return Ok(false);
        }
        rest = unread;
    }
    Ok(true)
}

/// Opens a file for reading that [`stat`] found to be regular; `None` if it is gone, or a link, folder or socket by
/// now.
pub(crate) fn open_read(dir: &Dir, name: &OsStr) -> io::Result<Option<File>> {
    open(dir, name, OFlags::RDONLY)
}

/// Opens a file without blocking, because a FIFO may have taken its place since it was checked.
fn open(dir: &Dir, name: &OsStr, access: OFlags) -> io::Result<Option<File>> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty())) {
        Ok(file) => Ok(Some(file.into())),
        // Gone, or a link, a folder or a socket by now.
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads from a position of the file; like any read it may return less than fits.
pub(crate) fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(into, at)
}

pub(crate) fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))?)
}

/// Opens a folder again for reading: the given handle may allow lookups only.
fn reopen(dir: &Dir) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(dir, ".", flags, Mode::empty()))
}

pub(crate) fn sync_dir(dir: &Dir) -> io::Result<()> {
    File::from(reopen(dir)?).sync_all()
}

pub(crate) fn is_writable(dir: &Dir) -> bool {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    retry_on_intr(|| rustix::fs::accessat(dir, ".", access, AtFlags::EACCESS)).is_ok()
}

/// Removes a temporary file of a dead server: a regular file of this user whose lock is free. Root removes those of
/// other users too, since a server that may change owners has given its temporary file to the owner of the one that it
/// replaces.
pub(crate) fn remove_if_abandoned(dir: &Dir, name: &OsStr) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::from_os("sweep", error);
    let user = rustix::process::geteuid();
    let is_ours =
        |stat: &Stat| stat.kind == FileKind::File && (stat.uid == user.as_raw() || user.is_root());
    if !stat(dir, name).map_err(failed)?.is_some_and(|stat| is_ours(&stat)) {
        return Ok(());
    }
    // While a server exchanges two files, another program's file may have the temporary name for a moment.
    let Some(_lock) = FolderLock::acquire(dir) else { return Ok(()) };
    let Some(mut file) = open_read(dir, name).map_err(failed)? else { return Ok(()) };
    let opened = stat_open(&file).map_err(failed)?;
    if is_ours(&opened)
        && file_lock::try_lock_named(&mut file, dir, name)?
        && stat(dir, name).map_err(failed)?.is_some_and(|now| now.is_same_file(&opened))
    {
        remove(dir, name).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_file_that_nobody_may_write_is_read_only() {
        let file = file(b"");
        for mode in 0..=0o777 {
            rustix::fs::fchmod(&file, Mode::from(mode)).unwrap();
            assert_eq!(stat_open(&file).unwrap().is_read_only(), mode & 0o222 == 0, "{mode:o}");
        }
    }

    #[test]
    fn only_files_are_opened_and_names_of_files_are_read() {
        let temp_dir = tempfile::tempdir().unwrap();
        let at = |name: &str| temp_dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let dir = Dir::open_ambient_dir(temp_dir.path(), cap_std::ambient_authority()).unwrap();
        let opens = |name: &str| open_read(&dir, name.as_ref()).unwrap().is_some();
        assert!(opens("file") && !opens("link") && !opens("missing"));
        assert!(open(&dir, "folder".as_ref(), OFlags::RDWR).unwrap().is_none());
        #[cfg(target_os = "linux")]
        {
            // Nothing is ever written into this FIFO.
            let path = at("fifo");
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
            assert!(opens("fifo"));
            let mut names = Vec::new();
            read_file_names(&dir, &mut |name| names.push(name.to_owned())).unwrap();
            names.sort();
            assert_eq!(names, ["fifo", "file", "link"]);
        }
    }

    /// The size that was expected and the file's position after other reads do not matter.
    #[test]
    fn a_file_is_read_to_its_end_or_to_the_limit() {
        let bytes: Vec<u8> = (0..=250).cycle().take(300_000).collect();
        let file = file(&bytes);
        for (told, max, expected) in
            [(0, 400_000, 300_000), (300_000, 400_000, 300_000), (9, 300_000, 300_000), (9, 7, 7)]
        {
            let mut read = Vec::with_capacity(told.min(max) + 1);
            read.shrink_to(max);
            read_all(&file, &mut read, max as u64).unwrap();
            assert!(read == bytes[..expected], "{told} {max}: {}", read.len());
        }
    }

    #[test]
    fn a_file_begins_with_what_it_holds() {
        let bytes = [b"abc".repeat(50_000), b"end".into()].concat();
        for size in [0, 1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, bytes.len()] {
            let (bytes, next) = (&bytes[..size], b'!');
            let file = file(bytes);
            let begins_with = |bytes: &[u8]| begins_with(&file, bytes).unwrap();
            assert!(begins_with(bytes), "{size}");
            assert!(begins_with(bytes), "{size}, once more");
            assert!(!begins_with(&[bytes, &[next]].concat()), "{size}: less");
            if let Some((last, others)) = bytes.split_last() {
                assert!(begins_with(others), "{size}: more");
                assert!(!begins_with(&[others, &[last ^ 1]].concat()), "{size}: other");
            }
        }
    }

    #[test]
    fn a_file_is_read_to_its_end_or_as_far_as_it_may_be() {
        let mut file = tempfile::tempfile().unwrap();
        let all: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
        file.write_all(&all).unwrap();
        for max in [0, 1, 70_000, 140_000, 199_999, 200_000, u64::MAX] {
            let mut bytes = Vec::new();
            read_all(&file, &mut bytes, max).unwrap();
            let expected = usize::try_from(max).unwrap_or(usize::MAX).min(all.len());
            assert!(bytes == all[..expected], "{max}: {}", bytes.len());
        }
    }
}
