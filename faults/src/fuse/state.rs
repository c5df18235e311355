//! What is in the file system, and whether it is time for a fault.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo, RenameFlags};

use super::{Fault, Feature, File, Keeps, Locks, Nature, NewFiles, Op, Plan, Span, Times};

pub const ROOT: u64 = 1;

const DEFAULT_ACL: &str = "system.posix_acl_default";

/// Read and write for the owner, nothing for the group, nothing for others; each with no id.
const PRIVATE_ACL: [u8; 28] = {
    let mut acl = [0xff; 28];
    let head = [2, 0, 0, 0];
    let entries = [[0x01, 0, 6, 0], [0x04, 0, 0, 0], [0x20, 0, 0, 0]];
    let mut at = 0;
    while at < 4 {
        acl[at] = head[at];
        acl[4 + at] = entries[0][at];
        acl[12 + at] = entries[1][at];
        acl[20 + at] = entries[2][at];
        at += 1;
    }
    acl
};

pub struct Inode {
    /// `Some` for a folder.
    pub entries: Option<BTreeMap<OsString, u64>>,
    pub file: File,
    pub changed: SystemTime,
    pub modified: SystemTime,
    links: u32,
    /// How often the kernel was told of it and has not forgotten.
    known: u64,
    /// Some of it is neither flushed nor synced.
    pub unflushed: bool,
}

impl Inode {
    pub fn of(file: File) -> Self {
        let now = SystemTime::now();
        Self {
            entries: None,
            file,
            changed: now,
            modified: now,
            links: 0,
            known: 0,
            unflushed: false,
        }
    }

    pub fn file(mode: u16) -> Self {
        Self::of(File { bytes: Vec::new(), mode, uid: 0, gid: 0, attributes: BTreeMap::default() })
    }

    pub fn folder(mode: u16) -> Self {
        Self { entries: Some(BTreeMap::new()), ..Self::file(mode) }
    }

    pub fn attr(&self, number: u64, times: Times) -> FileAttr {
        let size = self.file.bytes.len() as u64;
        let kept = |time: SystemTime| match times {
            Times::Fine => time,
            Times::WholeSeconds => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
            }
        };
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(512),
            atime: kept(self.modified),
            mtime: kept(self.modified),
            ctime: kept(self.changed),
            crtime: kept(self.changed),
            kind: self.kind(),
            perm: self.file.mode,
            nlink: self.links,
            uid: self.file.uid,
            gid: self.file.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    pub fn kind(&self) -> FileType {
        if self.entries.is_some() { FileType::Directory } else { FileType::RegularFile }
    }
}

pub struct State {
    pub nature: Nature,
    pub inodes: HashMap<u64, Inode>,
    last: u64,
    /// Of a file, who has its lock.
    locks: HashMap<u64, u64>,
    pub plan: Option<Plan>,
    pub seen: Vec<Op>,
    pub struck: Vec<Op>,
}

/// How much of a read or write is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Half,
    Nothing,
}

impl Extent {
    pub fn of(self, size: usize) -> usize {
        match self {
            Self::Whole => size,
            Self::Half => size.div_ceil(2),
            Self::Nothing => 0,
        }
    }
}

impl State {
    pub fn new(nature: Nature) -> Self {
        let mut root = Inode::folder(0o755);
        root.links = 1;
        if nature.new_files == NewFiles::Private {
            root.file.attributes.insert(DEFAULT_ACL.into(), PRIVATE_ACL.into());
        }
        Self {
            nature,
            inodes: HashMap::from([(ROOT, root)]),
            last: ROOT,
            locks: HashMap::new(),
            plan: None,
            seen: Vec::new(),
            struck: Vec::new(),
        }
    }

    /// Whether this operation is one that fails.
    pub fn strike(&mut self, op: Op) -> Option<Fault> {
        self.seen.push(op);
        let plan = self.plan?;
        if plan.op.is_some_and(|planned| planned != op) {
            return None;
        }
        let nth = self.seen.iter().filter(|&&seen| plan.op.is_none_or(|op| op == seen)).count();
        let due = match plan.span {
            Span::Once => nth == plan.nth,
            Span::FromThenOn => nth >= plan.nth,
        };
        // The kernel makes of an interrupted lock what no program knows.
        let is_told = (op, plan.fault) != (Op::Lock, Fault::Errno(libc::EINTR));
        (due && is_told).then(|| self.struck.push(op))?;
        Some(plan.fault)
    }

    pub fn inode(&mut self, number: u64) -> Result<&mut Inode, i32> {
        self.inodes.get_mut(&number).ok_or(libc::ENOENT)
    }

    pub fn entries(&self, folder: u64) -> Result<&BTreeMap<OsString, u64>, i32> {
        let inode = self.inodes.get(&folder).ok_or(libc::ENOENT)?;
        inode.entries.as_ref().ok_or(libc::ENOTDIR)
    }

    pub fn entries_mut(&mut self, folder: u64) -> Result<&mut BTreeMap<OsString, u64>, i32> {
        let inode = self.inode(folder)?;
        let now = SystemTime::now();
        (inode.changed, inode.modified) = (now, now);
        inode.entries.as_mut().ok_or(libc::ENOTDIR)
    }

    pub fn find(&self, folder: u64, name: &OsStr) -> Result<u64, i32> {
        self.entries(folder)?.get(name).copied().ok_or(libc::ENOENT)
    }

    /// Tells the kernel of it.
    pub fn told(&mut self, number: u64) -> Result<FileAttr, i32> {
        let times = self.nature.times;
        let inode = self.inode(number)?;
        inode.known += 1;
        Ok(inode.attr(number, times))
    }

    pub fn add(&mut self, folder: u64, name: &OsStr, inode: Inode) -> Result<u64, i32> {
        if self.find(folder, name).is_ok() {
            return Err(libc::EEXIST);
        }
        self.last += 1;
        let number = self.last;
        self.inodes.insert(number, inode);
        self.link(number, folder, name)?;
        Ok(number)
    }

    pub fn link(&mut self, number: u64, folder: u64, name: &OsStr) -> Result<(), i32> {
        self.entries_mut(folder)?.insert(name.into(), number);
        let inode = self.inode(number)?;
        inode.links += 1;
        inode.changed = SystemTime::now();
        Ok(())
    }

    pub fn unlink(&mut self, folder: u64, name: &OsStr) -> Result<u64, i32> {
        let number = self.entries_mut(folder)?.remove(name).ok_or(libc::ENOENT)?;
        let inode = self.inode(number)?;
        inode.links -= 1;
        inode.changed = SystemTime::now();
        self.drop_if_unused(number);
        Ok(number)
    }

    pub fn clear(&mut self, folder: u64) {
        for (name, number) in self.entries(folder).unwrap().clone() {
            if self.inodes[&number].entries.is_some() {
                self.clear(number);
            }
            self.unlink(folder, &name).unwrap();
        }
    }

    pub fn forget(&mut self, number: u64, times: u64) {
        if let Some(inode) = self.inodes.get_mut(&number) {
            inode.known = inode.known.saturating_sub(times);
            self.drop_if_unused(number);
        }
    }

    pub fn drop_if_unused(&mut self, number: u64) {
        let inode = &self.inodes[&number];
        if inode.links == 0 && inode.known == 0 && number != ROOT {
            self.inodes.remove(&number);
        }
    }

    /// Whatever mode was asked for, this is what a new file gets.
    pub fn mode_of_new(&self, asked: u32) -> u16 {
        let asked = u16::try_from(asked & 0o7777).unwrap_or_default();
        match (self.nature.has(Feature::Modes), self.nature.new_files) {
            (Err(_), _) => 0o644,
            (Ok(()), NewFiles::AsAsked) => asked,
            (Ok(()), NewFiles::Private) => asked & 0o600,
        }
    }

    pub fn rename(
        &mut self,
        (from, name): (u64, &OsStr),
        (to, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), i32> {
        if !flags.is_empty() {
            self.nature.has(Feature::NoReplace)?;
        }
        let number = self.find(from, name)?;
        let replaced = self.find(to, new_name).ok();
        if replaced.is_some() && flags.contains(RenameFlags::RENAME_NOREPLACE) {
            return Err(libc::EEXIST);
        }
        if replaced == Some(number) {
            return Ok(());
        }
        if replaced.is_some() {
            self.unlink(to, new_name)?;
        }
        self.link(number, to, new_name)?;
        self.unlink(from, name).map(drop)
    }

    pub fn lock(&mut self, number: u64, owner: u64, kind: i32) -> Result<(), i32> {
        if let Locks::Refused(errno) = self.nature.locks {
            return Err(errno);
        }
        if kind == libc::F_UNLCK {
            self.unlock(number, owner);
            return Ok(());
        }
        match self.locks.insert(number, owner) {
            Some(other) if other != owner => {
                self.locks.insert(number, other);
                Err(libc::EAGAIN)
            }
            _ => Ok(()),
        }
    }

    pub fn unlock(&mut self, number: u64, owner: u64) {
        if self.locks.get(&number) == Some(&owner) {
            self.locks.remove(&number);
        }
    }

    /// After a flush or a sync.
    pub fn flushed(&mut self, number: u64, outcome: Result<(), i32>) {
        let loses = self.nature.keeps == Keeps::OnceFlushed;
        if let Ok(inode) = self.inode(number)
            && std::mem::take(&mut inode.unflushed)
            && outcome.is_err()
            && loses
        {
            inode.file.bytes.clear();
        }
    }
}
