//! Visits every file below a folder on several threads, for searching and ranking.
//!
//! Ignored files (`.gitignore`, `.ignore` and `.git/info/exclude` of every folder from the root down; nothing above the
//! root is read, and it need not be a repository), hidden files and links are left out: the file behind a link inside
//! the root is visited at its own path. Globs override the rules for ignored and hidden files, as with
//! ripgrep's `-g`.
//!
//! Files are visited in no order. Memory does not grow with their number: it holds folders that are still to be read,
//! of each level of the walk, and a few names of files. Every folder is opened from the root's handle, and every file
//! from its folder's, never through a link.

mod glob;
mod globs;
mod rules;
mod work;

use std::{
    ffi::OsStr,
    io,
    ops::{AddAssign, ControlFlow},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use cap_std::fs::{Dir, DirEntry};
use memchr::memchr;

use crate::{
    Call, DirPath, Root, StoreError,
    os::{self, FileKind},
    resolve::{OpenFolder, open_folder, resolve, retry_on_interrupt},
    root::PATH_MAX,
    temp_name,
};
pub use globs::{GlobError, Globs};
use rules::Rules;
use work::{Rest, Task, Work};

/// Maximum number of threads: more would wait for each other.
const THREADS_MAX: usize = 8;

/// Number of files of one folder that are handed to another thread at once.
const BATCH: usize = 64;

/// Maximum number of folders in one folder that wait at a time; it is read on when they are done.
const FOLDERS_WAITING: usize = 4096;

/// Size above which files are visited one at a time and their memory is freed, so that not each thread holds one.
const LARGE: u64 = 1 << 20;

/// Number of bytes that are read first: if there is a NUL among them, the rest does not matter.
const BEGINNING: usize = 64 * 1024;

/// Options that select the files to visit.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// Folder to walk through, even if it is ignored or hidden itself. If it is a file, that file is visited.
    pub within: DirPath,
    pub globs: Globs,
    /// True to visit hidden files and folders too. `.git` is never entered.
    pub hidden: bool,
    /// True to visit ignored files and folders too.
    pub ignored: bool,
    /// Largest file that is read, in bytes.
    pub max_size: u64,
}

/// Counts of what was not visited, or could not be read when it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files and folders that ignore files or globs leave out. The contents of such a folder are not counted.
    pub ignored: u64,
    /// Hidden files and folders.
    pub hidden: u64,
    /// Links, and anything else that is neither a file nor a folder.
    pub special: u64,
    pub too_large: u64,
    /// Files that were requested as text and are not text.
    pub binary: u64,
    /// Files and folders that could not be opened or read, whose path is too long, or whose name is not UTF-8 or has
    /// control characters.
    pub unreadable: u64,
    /// Rules of ignore files that are too long or too many.
    pub ignore_rules: u64,
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, more: Skipped) {
        self.ignored += more.ignored;
        self.hidden += more.hidden;
        self.special += more.special;
        self.too_large += more.too_large;
        self.binary += more.binary;
        self.unreadable += more.unreadable;
        self.ignore_rules += more.ignore_rules;
    }
}

/// The result of a walk.
#[derive(Debug)]
pub struct Visited<S> {
    /// The final state of each thread.
    pub states: Vec<S>,
    pub skipped: Skipped,
}

/// Visits every file, on several threads. Each has a state of its own, which it passes to `each` with every file, so
/// that no thread waits for another; [`ControlFlow::Break`] ends the walk for all.
pub fn visit<S: Send>(
    root: &Root,
    options: &TreeOptions,
    call: &Call,
    start: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &mut TreeFile<'_>) -> ControlFlow<()> + Sync,
) -> Result<Visited<S>, StoreError> {
    let walk =
        Walk { root: root.dir(), options, call, work: Work::default(), turn: Mutex::default() };
    let skipped = match walk.begin() {
        Err(StoreError::NoFolder) => {
            let mut state = start();
            let skipped = walk.visit_one(&mut |file| each(&mut state, file))?;
            return Ok(Visited { states: vec![state], skipped });
        }
        begun => begun?,
    };
    let run = || {
        let mut state = start();
        let skipped = Worker::new(&walk, &mut |file| each(&mut state, file)).run();
        (state, skipped)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let mut visited = Visited { states: Vec::with_capacity(threads), skipped };
    let mut add = |(state, skipped)| {
        visited.states.push(state);
        visited.skipped += skipped;
    };
    thread::scope(|scope| {
        // If no more threads can be started, the existing ones do all the work.
        let others: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        add(run());
        for other in others {
            match other.join() {
                Ok(ended) => add(ended),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    walk.work.outcome()?;
    Ok(visited)
}

/// A file that is visited.
pub struct TreeFile<'a> {
    path: &'a str,
    name: &'a OsStr,
    folder: &'a Dir,
    max_size: u64,
    buffer: &'a mut Vec<u8>,
    skipped: &'a mut Skipped,
    turn: &'a Mutex<()>,
    /// Held for a large file as long as it is in memory.
    has_turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> TreeFile<'a> {
    /// Returns the path from the root, with `/` between names.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// Returns the size in bytes, as it is now. `None` if the file is gone.
    pub fn size(&self) -> Option<u64> {
        let stat = os::stat(self.folder, self.name).ok()??;
        (stat.kind == FileKind::File).then_some(stat.stamp.size)
    }

    /// Reads the whole file. `None`, and counted, if it is too large or cannot be read; not counted if it is gone.
    pub fn read(&mut self) -> Option<&[u8]> {
        let Loaded { length, .. } = self.load(|_| false)?;
        self.buffer.get(..length)
    }

    /// Reads the whole file as text, with its byte order mark. `None`, and counted, also if it is not UTF-8 or has a
    /// NUL.
    pub fn text(&mut self) -> Option<&str> {
        let has_nul = |bytes: &[u8]| memchr(0, bytes).is_some();
        let Loaded { beginning, length } = self.load(has_nul)?;
        let bytes = &self.buffer[..length];
        let text = simdutf8::basic::from_utf8(bytes).ok();
        // The beginning is known to have no NUL.
        let text = text.filter(|_| !has_nul(&bytes[beginning..]));
        if text.is_none() {
            self.skipped.binary += 1;
        }
        text
    }

    /// Reads the file into the buffer, unless its beginning shows that it is binary.
    fn load(&mut self, is_binary: impl Fn(&[u8]) -> bool) -> Option<Loaded> {
        let Ok(file) = os::open_read(self.folder, self.name) else {
            self.skipped.unreadable += 1;
            return None;
        };
        // The file is gone, or something else by now.
        let file = file?;
        let Ok(stat) = os::stat_open(&file) else {
            self.skipped.unreadable += 1;
            return None;
        };
        if stat.kind != FileKind::File {
            self.skipped.special += 1;
            return None;
        }
        let size = stat.stamp.size;
        if size > LARGE && size <= self.max_size && self.has_turn.is_none() {
            self.has_turn = Some(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let mut loaded = Loaded { beginning: 0, length: 0 };
        loop {
            let length = loaded.length as u64;
            if size.max(length) > self.max_size {
                self.skipped.too_large += 1;
                return None;
            }
            // Reading one byte more than the size shows the end of the file. A file that is longer has no known size.
            let room =
                if length > size { length.saturating_mul(2) } else { size.saturating_add(1) };
            let room = room.min(self.max_size.saturating_add(1));
            let room = if length == 0 { room.min(BEGINNING as u64) } else { room };
            let room = usize::try_from(room).ok()?;
            grow(self.buffer, room);
            let rest = &mut self.buffer[loaded.length..room];
            let Ok(read) = retry_on_interrupt(|| os::read_at(&file, rest, length)) else {
                self.skipped.unreadable += 1;
                return None;
            };
            if length == 0 {
                loaded.beginning = read;
                if is_binary(&rest[..read]) {
                    self.skipped.binary += 1;
                    return None;
                }
            }
            loaded.length += read;
            if read == 0 || (loaded.length as u64 == size && loaded.length < room) {
                return Some(loaded);
            }
        }
    }
}

/// Number of bytes that were read of a file: at first, and in all.
struct Loaded {
    beginning: usize,
    length: usize,
}

impl Drop for TreeFile<'_> {
    /// Frees the memory before another thread may read a large file.
    fn drop(&mut self) {
        if self.has_turn.is_some() {
            *self.buffer = Vec::new();
        }
    }
}

/// Grows the buffer to `length` bytes. It never shrinks, so that the next file need not clear it again.
fn grow(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        let length = length.next_multiple_of(BEGINNING);
        buffer.reserve_exact(length - buffer.len());
        buffer.resize(length, 0);
    }
}

/// State that all threads share.
struct Walk<'w> {
    root: &'w Dir,
    options: &'w TreeOptions,
    call: &'w Call,
    work: Work<'w>,
    /// Locked by the thread that may hold a large file.
    turn: Mutex<()>,
}

impl Walk<'_> {
    /// Adds the first task: the folder to walk through.
    fn begin(&self) -> Result<Skipped, StoreError> {
        let within = self.options.within.as_path();
        let folder = open_folder(self.root, within)?;
        if os::is_removed(&folder) {
            return Err(StoreError::NoFolder);
        }
        let (mut path, mut rules, mut skipped) = (String::new(), None, Skipped::default());
        for name in within {
            self.call.check()?;
            let folder = open_folder(self.root, Path::new(&path))?;
            rules = self.rules(&folder, &path, rules, &mut skipped);
            path.push_str(name.to_str().ok_or(StoreError::NoFolder)?);
            path.push('/');
        }
        self.work.add([Task::Folder { parent: path.into(), name: "".into(), rules }]);
        Ok(skipped)
    }

    /// Returns the ignore rules for the contents of the folder at `path`.
    fn rules(
        &self,
        folder: &Dir,
        path: &str,
        outer: Option<Arc<Rules>>,
        skipped: &mut Skipped,
    ) -> Option<Arc<Rules>> {
        if self.options.ignored {
            return None;
        }
        Rules::within(folder, path, outer, &mut skipped.ignore_rules)
    }

    /// Visits a single file, which was requested by its path.
    fn visit_one(&self, each: &mut Each<'_>) -> Result<Skipped, StoreError> {
        let at = self.options.within.as_path();
        let resolved = resolve(self.root, at).map_err(|error| match error {
            StoreError::IsFolder => StoreError::NoFolder,
            other => other,
        })?;
        let is_file = matches!(resolved.regular(), Ok(Some(_)));
        let path = at.to_str().filter(|_| is_file).ok_or(StoreError::NoFolder)?;
        let path = path.replace(std::path::MAIN_SEPARATOR, "/");
        let mut worker = Worker::new(self, each);
        // A break changes nothing: there is no other file.
        let _ = worker.visit(&resolved.folder, &resolved.name, &path);
        Ok(worker.skipped)
    }
}

type Each<'e> = dyn FnMut(&mut TreeFile<'_>) -> ControlFlow<()> + 'e;

/// Reason why a thread stops: an error, or `None` if it was asked to.
type Halt = Option<StoreError>;

/// Decision about a name in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Shown,
    Ignored,
    Hidden,
}

/// A thread of the walk.
struct Worker<'a, 'w, 'e> {
    walk: &'a Walk<'w>,
    each: &'e mut Each<'e>,
    buffer: Vec<u8>,
    skipped: Skipped,
}

impl<'a, 'w, 'e> Worker<'a, 'w, 'e> {
    fn new(walk: &'a Walk<'w>, each: &'e mut Each<'e>) -> Worker<'a, 'w, 'e> {
        Worker { walk, each, buffer: Vec::new(), skipped: Skipped::default() }
    }

    fn run(mut self) -> Skipped {
        let place = self.walk.work.enter();
        while let Some(task) = place.next() {
            let done = match task {
                Task::Folder { parent, name, rules } => self.open_folder(&parent, &name, rules),
                Task::Rest(rest) => self.read_folder(rest),
                Task::Files { folder, path, names } => self.visit_all(&folder, &path, &names),
            };
            if let Err(halt) = done {
                self.walk.work.stop(halt);
            }
        }
        self.skipped
    }

    fn open_folder(
        &mut self,
        parent: &str,
        name: &str,
        rules: Option<Arc<Rules>>,
    ) -> Result<(), Halt> {
        self.walk.call.check()?;
        let path = if name.is_empty() { parent.to_owned() } else { [parent, name, "/"].concat() };
        let Ok(folder) = open_folder(self.walk.root, Path::new(&path)) else {
            self.skipped.unreadable += 1;
            return Ok(());
        };
        let rules = self.walk.rules(&folder, &path, rules, &mut self.skipped);
        let Ok(entries) = retry_on_interrupt(|| folder.entries()) else {
            self.skipped.unreadable += 1;
            return Ok(());
        };
        self.read_folder(Rest { folder: Arc::new(folder), path: path.into(), entries, rules })
    }

    fn read_folder(&mut self, mut rest: Rest<'w>) -> Result<(), Halt> {
        let Rest { folder, path: outer, rules, .. } = &rest;
        let (folder, outer, rules) = (Arc::clone(folder), Arc::clone(outer), rules.clone());
        let mut path = outer.to_string();
        let (mut names, mut folders) = (Vec::new(), Vec::new());
        let mut is_read = false;
        while folders.len() < FOLDERS_WAITING {
            // Checking even one name takes some time if there are many rules.
            self.walk.call.check()?;
            let Some(entry) = rest.entries.next() else {
                is_read = true;
                break;
            };
            let Some((name, kind)) = self.take(&folder, entry) else { continue };
            path.push_str(&name);
            match self.verdict(rules.as_deref(), &path, kind) {
                Verdict::Ignored => self.skipped.ignored += 1,
                Verdict::Hidden => self.skipped.hidden += 1,
                // The path is too long for callers to use.
                Verdict::Shown if path.len() > PATH_MAX => self.skipped.unreadable += 1,
                Verdict::Shown if kind == FileKind::Folder => folders.push(name.into_boxed_str()),
                Verdict::Shown => names.push(name),
            }
            path.truncate(outer.len());
            if names.len() == BATCH {
                self.share(&folder, &path, std::mem::take(&mut names))?;
            }
        }
        let later = (!is_read).then_some(Task::Rest(rest)).into_iter();
        let folders = folders.into_iter().map(|name| {
            let (parent, rules) = (Arc::clone(&outer), rules.clone());
            Task::Folder { parent, name, rules }
        });
        self.walk.work.add(later.chain(folders));
        self.visit_all(&folder, &path, &names)
    }

    /// Returns the name of an entry that may be visited, and its kind: a file or a folder.
    fn take(&mut self, folder: &Dir, entry: io::Result<DirEntry>) -> Option<(String, FileKind)> {
        let name =
            entry.ok().and_then(|entry| Some((entry.file_name().into_string().ok()?, entry)));
        let Some((name, entry)) = name.filter(|(name, _)| !name.contains(char::is_control)) else {
            self.skipped.unreadable += 1;
            return None;
        };
        if temp_name::is_ours(name.as_ref()) {
            return None;
        }
        match crate::walk::entry_kind(folder, &entry, name.as_ref()) {
            Some(kind @ (FileKind::File | FileKind::Folder)) => Some((name, kind)),
            Some(_) => {
                self.skipped.special += 1;
                None
            }
            // The entry is gone.
            None => None,
        }
    }

    /// Decides about a path: globs come first, then ignore files, then hidden names. `.git` is always hidden.
    fn verdict(&self, rules: Option<&Rules>, path: &str, kind: FileKind) -> Verdict {
        let is_folder = kind == FileKind::Folder;
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == ".git" {
            return Verdict::Hidden;
        }
        let globs = &self.walk.options.globs;
        let is_ignored = globs
            .leave_out(path, is_folder)
            .or_else(|| rules.and_then(|rules| rules.leave_out(path, is_folder)));
        match is_ignored {
            Some(true) => Verdict::Ignored,
            None if !self.walk.options.hidden && name.starts_with('.') => Verdict::Hidden,
            _ => Verdict::Shown,
        }
    }

    /// Hands files of a folder to another thread, or visits them if all threads have enough to do.
    fn share(
        &mut self,
        folder: &Arc<OpenFolder<'w>>,
        path: &str,
        names: Vec<String>,
    ) -> Result<(), Halt> {
        let task = Task::Files { folder: Arc::clone(folder), path: path.into(), names };
        match self.walk.work.offer(task) {
            Some(Task::Files { names, .. }) => self.visit_all(folder, path, &names),
            _ => Ok(()),
        }
    }

    fn visit_all(&mut self, folder: &Dir, path: &str, names: &[String]) -> Result<(), Halt> {
        let mut path = path.to_owned();
        let outer = path.len();
        for name in names {
            self.walk.call.check()?;
            if self.walk.work.is_stopped() {
                break;
            }
            path.push_str(name);
            if self.visit(folder, name.as_ref(), &path).is_break() {
                return Err(None);
            }
            path.truncate(outer);
        }
        Ok(())
    }

    fn visit(&mut self, folder: &Dir, name: &OsStr, path: &str) -> ControlFlow<()> {
        (self.each)(&mut TreeFile {
            path,
            name,
            folder,
            max_size: self.walk.options.max_size,
            buffer: &mut self.buffer,
            skipped: &mut self.skipped,
            turn: &self.walk.turn,
            has_turn: None,
        })
    }
}
