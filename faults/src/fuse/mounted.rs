//! The file system as FUSE talks to it.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};

use super::state::{Extent, Inode, State};
use super::{Fault, Feature, Io, Locks, Op, lock};

/// The kernel keeps nothing.
const AGE: Duration = Duration::ZERO;

pub struct Mounted(pub Arc<Mutex<State>>);

impl Mounted {
    /// Does something, unless it is time for a fault.
    fn act<T>(
        &self,
        op: Op,
        act: impl FnOnce(&mut State, Extent) -> Result<T, i32>,
    ) -> Result<T, Errno> {
        let state = &mut *lock(&self.0);
        let outcome = match state.strike(op) {
            None => act(state, Extent::Whole),
            Some(Fault::Errno(errno)) => Err(errno),
            Some(Fault::Done(errno)) => act(state, Extent::Whole).and(Err(errno)),
            Some(Fault::Half) => act(state, Extent::Half),
            Some(Fault::Nothing) => act(state, Extent::Nothing),
        };
        outcome.map_err(Errno::from_i32)
    }

    /// The same for a flush or a sync, after which some of the file may be lost.
    fn settle(&self, op: Op, number: u64, feature: Option<Feature>) -> Result<(), Errno> {
        let outcome =
            self.act(op, |state, _| feature.map_or(Ok(()), |feature| state.nature.has(feature)));
        lock(&self.0).flushed(number, outcome.map_err(Errno::code));
        outcome
    }

    fn open_flags(&self) -> FopenFlags {
        match lock(&self.0).nature.io {
            Io::Cached => FopenFlags::empty(),
            Io::Direct => FopenFlags::FOPEN_DIRECT_IO,
        }
    }
}

/// Answers with nothing but how it went.
fn answer(reply: ReplyEmpty, outcome: Result<(), Errno>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn answer_entry(reply: ReplyEntry, outcome: Result<FileAttr, Errno>) {
    match outcome {
        Ok(attr) => reply.entry(&AGE, &attr, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn answer_attr(reply: ReplyAttr, outcome: Result<FileAttr, Errno>) {
    match outcome {
        Ok(attr) => reply.attr(&AGE, &attr),
        Err(errno) => reply.error(errno),
    }
}

fn answer_open(reply: ReplyOpen, outcome: Result<FopenFlags, Errno>) {
    match outcome {
        Ok(flags) => reply.opened(FileHandle(0), flags),
        Err(errno) => reply.error(errno),
    }
}

/// A value, or only its size if that is what was asked for.
fn answer_xattr(reply: ReplyXattr, outcome: Result<Vec<u8>, Errno>, room: u32) {
    match outcome {
        Ok(value) if room == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Mounted {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        if lock(&self.0).nature.locks != Locks::Kernel {
            let added = config.add_capabilities(InitFlags::FUSE_FLOCK_LOCKS);
            added.map_err(|_| std::io::Error::other("this kernel has no locks for FUSE"))?;
        }
        // A page at a time, so that even a small text takes several reads and writes.
        let _ = (config.set_max_write(4096), config.set_max_readahead(1));
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.act(Op::Lookup, |state, _| {
            let number = state.find(parent.0, name)?;
            state.told(number)
        });
        answer_entry(reply, found);
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        lock(&self.0).forget(number.0, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let attr = |state: &mut State, _| {
            let times = state.nature.times;
            Ok(state.inode(number.0)?.attr(number.0, times))
        };
        answer_attr(reply, self.act(Op::Getattr, attr));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = self.act(Op::Setattr, |state, _| {
            if uid.is_some() || gid.is_some() {
                state.nature.has(Feature::Chown)?;
            } else if mode.is_some() {
                state.nature.has(Feature::Modes).and_then(|()| state.nature.has(Feature::Chmod))?;
            }
            let times = state.nature.times;
            let inode = state.inode(number.0)?;
            inode.changed = SystemTime::now();
            inode.file.uid = uid.unwrap_or(inode.file.uid);
            inode.file.gid = gid.unwrap_or(inode.file.gid);
            if let Some(mode) = mode {
                inode.file.mode = u16::try_from(mode & 0o7777).unwrap_or_default();
            }
            if let Some(size) = size {
                inode.file.bytes.resize(usize::try_from(size).map_err(|_| libc::EFBIG)?, 0);
                inode.modified = SystemTime::now();
            }
            Ok(inode.attr(number.0, times))
        });
        answer_attr(reply, done);
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let folder = self.act(Op::Mkdir, |state, _| {
            let folder = Inode::folder(u16::try_from(mode & 0o7777).unwrap_or_default());
            let number = state.add(parent.0, name, folder)?;
            state.told(number)
        });
        answer_entry(reply, folder);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.act(Op::Unlink, |state, _| state.unlink(parent.0, name).map(drop)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.act(Op::Rmdir, |state, _| {
            let number = state.find(parent.0, name)?;
            if !state.entries(number)?.is_empty() {
                return Err(libc::ENOTEMPTY);
            }
            state.unlink(parent.0, name).map(drop)
        });
        answer(reply, done);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        answer(reply, self.act(Op::Rename, |state, _| state.rename(from, to, flags)));
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.act(Op::Link, |state, _| {
            state.nature.has(Feature::HardLinks)?;
            if state.find(parent.0, name).is_ok() {
                return Err(libc::EEXIST);
            }
            state.link(number.0, parent.0, name)?;
            state.told(number.0)
        });
        answer_entry(reply, linked);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = self.open_flags();
        answer_open(reply, self.act(Op::Open, |_, _| Ok(flags)));
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let flags = self.open_flags();
        let created = self.act(Op::Create, |state, _| {
            let mode = state.mode_of_new(mode);
            let number = state.add(parent.0, name, Inode::file(mode))?;
            state.told(number)
        });
        match created {
            Ok(attr) => reply.created(&AGE, &attr, Generation(0), FileHandle(0), flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.act(Op::Read, |state, extent| {
            let bytes = &state.inode(number.0)?.file.bytes;
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            let rest = &bytes[from..bytes.len().min(from.saturating_add(size as usize))];
            Ok(rest[..extent.of(rest.len())].to_vec())
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.act(Op::Write, |state, extent| {
            let data = &data[..extent.of(data.len())];
            let inode = state.inode(number.0)?;
            let from = usize::try_from(offset).map_err(|_| libc::EFBIG)?;
            let bytes = &mut inode.file.bytes;
            bytes.resize(bytes.len().max(from + data.len()), 0);
            bytes[from..from + data.len()].copy_from_slice(data);
            let now = SystemTime::now();
            (inode.changed, inode.modified, inode.unflushed) = (now, now, true);
            Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
        });
        match written {
            Ok(size) => reply.written(size),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, number: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer(reply, self.settle(Op::Flush, number.0, None));
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        owner: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(owner) = owner {
            lock(&self.0).unlock(number.0, owner.0);
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.settle(Op::Fsync, number.0, Some(Feature::Sync)));
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        answer_open(reply, self.act(Op::Opendir, |_, _| Ok(FopenFlags::empty())));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.act(Op::Readdir, |state, _| {
            let entries = state.entries(number.0)?.iter();
            let rows = entries.map(|(name, &at)| (at, state.inodes[&at].kind(), name.clone()));
            Ok(rows.collect::<Vec<_>>())
        });
        match listed {
            Ok(rows) => {
                for ((number, kind, name), next) in rows.into_iter().zip(1..) {
                    if next > offset && reply.add(INodeNo(number), next, kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.act(Op::Fsyncdir, |state, _| state.nature.has(Feature::Sync)));
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let set = self.act(Op::Setxattr, |state, _| {
            state.nature.has(Feature::Attributes)?;
            state.inode(number.0)?.file.attributes.insert(name.into(), value.into());
            Ok(())
        });
        answer(reply, set);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let value = self.act(Op::Getxattr, |state, _| {
            state.nature.has(Feature::Attributes)?;
            state.inode(number.0)?.file.attributes.get(name).cloned().ok_or(libc::ENODATA)
        });
        answer_xattr(reply, value, room);
    }

    fn listxattr(&self, _: &Request, number: INodeNo, room: u32, reply: ReplyXattr) {
        let names = self.act(Op::Listxattr, |state, _| {
            state.nature.has(Feature::Attributes)?;
            let names = state.inode(number.0)?.file.attributes.keys();
            let names = names.flat_map(|name| [name.as_encoded_bytes(), &[0]].concat());
            Ok(names.collect::<Vec<_>>())
        });
        answer_xattr(reply, names, room);
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.act(Op::Removexattr, |state, _| {
            state.nature.has(Feature::Attributes)?;
            let found = state.inode(number.0)?.file.attributes.remove(name);
            found.map(drop).ok_or(libc::ENODATA)
        });
        answer(reply, removed);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        answer(reply, self.act(Op::Access, |_, _| Ok(())));
    }

    fn setlk(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        _: u64,
        _: u64,
        kind: i32,
        _: u32,
        _: bool,
        reply: ReplyEmpty,
    ) {
        answer(reply, self.act(Op::Lock, |state, _| state.lock(number.0, owner.0, kind)));
    }
}
