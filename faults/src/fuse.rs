//! A file system in memory, mounted by FUSE, that fails when it is told to and lacks what it is told to lack.
//!
//! Nothing is cached for it: every call of the server arrives here. Files are put in and looked at directly, so that
//! what is tried costs little and nobody but the server is met by a fault.

mod mounted;
mod state;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{BackgroundSession, Config, MountOption};

use mounted::Mounted;
use state::{Inode, ROOT, State};

/// What can fail. Closing a file and forgetting it cannot: nobody would hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Lookup,
    Getattr,
    Setattr,
    Open,
    Create,
    Read,
    Write,
    Flush,
    Fsync,
    Opendir,
    Readdir,
    Fsyncdir,
    Rename,
    Unlink,
    Link,
    Mkdir,
    Rmdir,
    Getxattr,
    Listxattr,
    Setxattr,
    Removexattr,
    Lock,
    Access,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not done.
    Errno(i32),
    /// It is done, and said to have failed.
    Done(i32),
    /// Half of what was asked for is read or written.
    Half,
    /// No byte is read or written, and that is said to be well.
    Nothing,
}

/// Which operations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `None`: of any kind.
    pub op: Option<Op>,
    /// Counted from 1.
    pub nth: usize,
    pub span: Span,
    pub fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    Once,
    FromThenOn,
}

/// What a file system may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    HardLinks,
    /// A rename that replaces nothing.
    NoReplace,
    Attributes,
    /// Every file has the same mode.
    Modes,
    /// Modes are what they were made; none can be changed.
    Chmod,
    Chown,
    Sync,
}

/// Who keeps locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// The kernel, for all on this machine.
    Kernel,
    /// This file system.
    Ours,
    /// Nobody: asking for one is answered so.
    Refused(i32),
}

/// What a file system is like.
#[derive(Clone, Debug)]
pub struct Nature {
    pub locks: Locks,
    /// What it lacks, and how it says so.
    pub lacks: Vec<(Feature, i32)>,
    pub io: Io,
    pub keeps: Keeps,
    pub new_files: NewFiles,
    pub times: Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Through the kernel's pages, for which a short read is the end of the file.
    Cached,
    /// Every count of bytes goes to the caller.
    Direct,
}

/// When what was written is safe from a failure of the network or the disk behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    AtOnce,
    /// A flush or a sync that fails loses it, as on a network file system.
    OnceFlushed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewFiles {
    AsAsked,
    /// The root has a default access list that leaves them to their owner alone.
    Private,
}

/// How exactly it is kept when a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Fine,
    WholeSeconds,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            locks: Locks::Ours,
            lacks: Vec::new(),
            io: Io::Cached,
            keeps: Keeps::AtOnce,
            new_files: NewFiles::AsAsked,
            times: Times::Fine,
        }
    }
}

impl Nature {
    pub fn without(lacks: &[(Feature, i32)]) -> Self {
        Self { lacks: lacks.to_vec(), locks: Locks::Kernel, ..Self::default() }
    }

    fn has(&self, feature: Feature) -> Result<(), i32> {
        match self.lacks.iter().find(|(lacking, _)| *lacking == feature) {
            Some((_, errno)) => Err(*errno),
            None => Ok(()),
        }
    }
}

/// Everything there is, by path from the root.
pub type Tree = BTreeMap<String, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Folder,
    File(File),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub attributes: BTreeMap<OsString, Vec<u8>>,
}

/// A mounted one. It is gone when this is dropped.
pub struct Disk {
    state: Arc<Mutex<State>>,
    mount: tempfile::TempDir,
    _session: BackgroundSession,
}

impl Disk {
    pub fn mount(nature: Nature) -> std::io::Result<Self> {
        let mount = tempfile::tempdir()?;
        let state = Arc::new(Mutex::new(State::new(nature)));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("faults".into())];
        let session = fuser::spawn_mount(Mounted(Arc::clone(&state)), mount.path(), &config)?;
        Ok(Self { state, mount, _session: session })
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }

    /// Makes `tree` all there is.
    pub fn put(&self, tree: &Tree) {
        let mut state = lock(&self.state);
        state.clear(ROOT);
        for (path, node) in tree {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let folder =
                folder.split('/').filter(|name| !name.is_empty()).fold(ROOT, |at, name| {
                    state.entries(at).unwrap()[OsStr::new(name)] // a folder comes before what is in it
                });
            let inode = match node {
                Node::Folder => Inode::folder(0o755),
                Node::File(file) => Inode::of(file.clone()),
            };
            state.add(folder, name.as_ref(), inode).unwrap();
        }
    }

    /// All there is.
    pub fn tree(&self) -> Tree {
        let state = lock(&self.state);
        let mut tree = Tree::new();
        let mut folders = vec![(String::new(), ROOT)];
        while let Some((prefix, folder)) = folders.pop() {
            for (name, &number) in state.entries(folder).unwrap() {
                let path = format!("{prefix}{}", name.display());
                let inode = &state.inodes[&number];
                if inode.entries.is_some() {
                    folders.push((format!("{path}/"), number));
                    tree.insert(path, Node::Folder);
                } else {
                    tree.insert(path, Node::File(inode.file.clone()));
                }
            }
        }
        tree
    }

    /// The connection breaks. What the kernel says to that does not matter: it is never free while it is used.
    pub fn abort(&self) {
        let _ = rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::FORCE);
    }

    /// From now on this is what fails; counting starts anew.
    pub fn plan(&self, plan: Option<Plan>) {
        let mut state = lock(&self.state);
        state.plan = plan;
        state.seen.clear();
        state.struck.clear();
    }

    /// What there was to do since [`Disk::plan`], in order.
    pub fn seen(&self) -> Vec<Op> {
        lock(&self.state).seen.clone()
    }

    /// What of it failed.
    pub fn struck(&self) -> Vec<Op> {
        lock(&self.state).struck.clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.mount.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
