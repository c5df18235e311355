//! A disk as one file of a FUSE file system, for a loop device. It records what is written to it and can be set to any
//! state.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use super::Mark;

/// What a disk writes whole or not at all.
const BLOCK: usize = 4096;
const NAME: &str = "disk";
const DISK: INodeNo = INodeNo(2);
/// Nothing here changes its attributes.
const AGE: Duration = Duration::from_secs(1000);

/// Blocks by number. Those that were never written are zero.
pub type Blocks = HashMap<u64, Arc<[u8; BLOCK]>>;

#[derive(Clone, Debug)]
pub enum Event {
    /// Within one block.
    Write {
        at: u64,
        bytes: Vec<u8>,
    },
    /// What was written before is safe.
    Flush,
    Mark(Mark),
}

#[derive(Default)]
struct State {
    blocks: Blocks,
    /// `None` while nothing is recorded.
    events: Option<Vec<Event>>,
}

/// Unmounted on drop.
pub struct Disk {
    state: Arc<Mutex<State>>,
    mount: tempfile::TempDir,
    _session: BackgroundSession,
}

impl Disk {
    pub fn new(megabytes: u64) -> std::io::Result<Self> {
        let mount = tempfile::tempdir()?;
        let state = Arc::default();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("power".into())];
        let served = Served { state: Arc::clone(&state), size: megabytes << 20 };
        let session = fuser::spawn_mount(served, mount.path(), &config)?;
        Ok(Self { state, mount, _session: session })
    }

    pub fn path(&self) -> PathBuf {
        self.mount.path().join(NAME)
    }

    pub fn set_blocks(&self, blocks: Blocks) {
        lock(&self.state).blocks = blocks;
    }

    /// Begins to record; the blocks as they are now.
    pub fn record(&self) -> Blocks {
        let state = &mut *lock(&self.state);
        state.events = Some(Vec::new());
        state.blocks.clone()
    }

    pub fn mark(&self, mark: Mark) {
        lock(&self.state).note(Event::Mark(mark));
    }

    /// Ends the recording.
    pub fn recorded(&self) -> Vec<Event> {
        lock(&self.state).events.take().unwrap_or_default()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.mount.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

impl State {
    fn note(&mut self, event: Event) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes `bytes`, which are within one block.
pub fn write(blocks: &mut Blocks, at: u64, bytes: &[u8]) {
    let (number, from) = place(at);
    let block = Arc::make_mut(blocks.entry(number).or_insert_with(|| Arc::new([0; BLOCK])));
    block[from..from + bytes.len()].copy_from_slice(bytes);
}

/// The number of a block, and where in it an offset is.
fn place(at: u64) -> (u64, usize) {
    (at / BLOCK as u64, usize::try_from(at % BLOCK as u64).unwrap_or_default())
}

/// Ranges of at most one block each that make up `at..at + length`.
fn pieces(at: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let here = at + done as u64;
        let piece = (BLOCK - place(here).1).min(length - done);
        done += piece;
        (piece > 0).then_some((here, done - piece..done))
    })
}

/// The file system: a root with one file.
struct Served {
    state: Arc<Mutex<State>>,
    size: u64,
}

impl Served {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let is_disk = number == DISK;
        FileAttr {
            ino: number,
            size: if is_disk { self.size } else { 0 },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: u32::try_from(BLOCK).unwrap_or(u32::MAX),
            flags: 0,
        }
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = (config.add_capabilities(InitFlags::FUSE_MAX_PAGES), config.set_max_write(1 << 20));
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&AGE, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&AGE, &self.attributes(number));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&AGE, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel keeps no copy, so that a new state is what is read next.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        length: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = u64::from(length).min(self.size.saturating_sub(at));
        let mut read = vec![0; usize::try_from(length).unwrap_or_default()];
        let state = lock(&self.state);
        for (here, range) in pieces(at, read.len()) {
            let (number, from) = place(here);
            if let Some(block) = state.blocks.get(&number) {
                let length = range.len();
                read[range].copy_from_slice(&block[from..from + length]);
            }
        }
        reply.data(&read);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let state = &mut *lock(&self.state);
        for (at, range) in pieces(at, data.len()) {
            let bytes = &data[range];
            write(&mut state.blocks, at, bytes);
            state.note(Event::Write { at, bytes: bytes.to_vec() });
        }
        reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        lock(&self.state).note(Event::Flush);
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}
