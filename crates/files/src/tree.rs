//! Visits every file below a folder on several threads, for searching and ranking.
//!
//! Ignored files (`.gitignore`, `.ignore` and `.git/info/exclude` of every folder from the root down; nothing above the
//! root is read, and it need not be a repository), hidden files and links are left out: the file behind a link inside
//! the root is visited at its own path. Globs override the rules for ignored and hidden files, as with
//! ripgrep's `-g`.
//!
//! Files are visited in no order. Memory does not grow with their number: it holds folders that are still to be read,
//! of each level of the walk, and a few names of files. Every folder is opened from the root's handle, and every file
//! from its folder's, never through a link. The walker of the crate `ignore` cannot open files beneath a directory
//! handle, so it is not used.

mod file;
mod glob;
mod globs;
mod rules;
mod task_queue;
mod walk_thread;

use std::{
    ops::{AddAssign, ControlFlow},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use cap_std::fs::Dir;

use crate::{
    Call, DirPath, Root, StoreError, os,
    resolve::{open_folder, resolve},
};
pub use file::TreeFile;
pub use globs::{GlobError, Globs};
use rules::Rules;
use task_queue::{Task, TaskQueue};
use walk_thread::{FileVisitor, WalkThread};

/// Maximum number of threads: more would wait for each other.
const THREADS_MAX: usize = 8;

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
    fn add_assign(&mut self, more: Self) {
        self.ignored += more.ignored;
        self.hidden += more.hidden;
        self.special += more.special;
        self.too_large += more.too_large;
        self.binary += more.binary;
        self.unreadable += more.unreadable;
        self.ignore_rules += more.ignore_rules;
    }
}

/// Kind of an entry of a folder that can be visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
}

/// Result of a walk.
#[derive(Debug)]
pub struct VisitResult<S> {
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
) -> Result<VisitResult<S>, StoreError> {
    let walk = Walk {
        root: root.dir(),
        options,
        call,
        tasks: TaskQueue::default(),
        large_file_lock: Mutex::default(),
    };
    let skipped = match walk.begin() {
        Err(StoreError::NoFolder) => {
            let mut state = start();
            let skipped = walk.visit_one(&mut |file| each(&mut state, file))?;
            return Ok(VisitResult { states: vec![state], skipped });
        }
        begun => begun?,
    };
    let run = || {
        let mut state = start();
        let skipped = WalkThread::new(&walk, &mut |file| each(&mut state, file)).run();
        (state, skipped)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let mut visited = VisitResult { states: Vec::with_capacity(threads), skipped };
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
    walk.tasks.outcome()?;
    Ok(visited)
}

/// State that all threads share.
struct Walk<'w> {
    root: &'w Dir,
    options: &'w TreeOptions,
    call: &'w Call,
    tasks: TaskQueue<'w>,
    /// Locked by the thread that may hold a large file.
    large_file_lock: Mutex<()>,
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
        self.tasks.add([Task::Folder { parent: path.into(), name: "".into(), rules }]);
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
        Rules::for_folder(folder, path, outer, &mut skipped.ignore_rules)
    }

    /// Visits a single file, which was requested by its path.
    fn visit_one(&self, each: &mut FileVisitor<'_>) -> Result<Skipped, StoreError> {
        let at = self.options.within.as_path();
        let resolved = resolve(self.root, at).map_err(|error| match error {
            StoreError::IsFolder => StoreError::NoFolder,
            other => other,
        })?;
        let is_file = matches!(resolved.regular_file(), Ok(Some(_)));
        let path = at.to_str().filter(|_| is_file).ok_or(StoreError::NoFolder)?;
        let path = path.replace(std::path::MAIN_SEPARATOR, "/");
        let mut thread = WalkThread::new(self, each);
        // A break changes nothing: there is no other file.
        let _ = thread.visit(&resolved.folder, &resolved.name, &path);
        Ok(thread.skipped)
    }
}
