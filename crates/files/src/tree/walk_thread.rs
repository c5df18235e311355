//! A thread of a walk: reads folders, decides which of their files and folders are visited, and visits files.

use std::{ffi::OsStr, io, ops::ControlFlow, path::Path, sync::Arc};

use cap_std::fs::{Dir, DirEntry};

use super::{
    EntryKind, Skipped, TreeFile, Walk,
    rules::Rules,
    task_queue::{PartlyReadFolder, Task},
};
use crate::{
    StoreError,
    os::FileKind,
    resolve::{OpenFolder, open_folder, retry_on_interrupt},
    root::PATH_MAX,
    temp_name, walk,
};

/// Number of files of one folder that are handed to another thread at once.
const BATCH_MAX: usize = 64;

/// Maximum number of folders in one folder that wait at a time; it is read on when they are done.
const FOLDERS_WAITING_MAX: usize = 4096;

/// Called with each file; [`ControlFlow::Break`] ends the walk.
pub(super) type FileVisitor<'e> = dyn FnMut(&mut TreeFile<'_>) -> ControlFlow<()> + 'e;

/// Reason why a thread stops: an error, or `None` if it was asked to.
type StopReason = Option<StoreError>;

/// Decision about a name in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selection {
    Selected,
    Ignored,
    Hidden,
}

/// A thread of the walk.
pub(super) struct WalkThread<'a, 'w, 'e> {
    walk: &'a Walk<'w>,
    each: &'e mut FileVisitor<'e>,
    buffer: Vec<u8>,
    pub(super) skipped: Skipped,
}

impl<'a, 'w, 'e> WalkThread<'a, 'w, 'e> {
    pub(super) fn new(walk: &'a Walk<'w>, each: &'e mut FileVisitor<'e>) -> Self {
        Self { walk, each, buffer: Vec::new(), skipped: Skipped::default() }
    }

    pub(super) fn run(mut self) -> Skipped {
        let receiver = self.walk.tasks.register();
        while let Some(task) = receiver.next() {
            let done = match task {
                Task::Folder { parent, name, rules } => self.open_folder(&parent, &name, rules),
                Task::PartlyRead(rest) => self.read_folder(rest),
                Task::Files { folder, path, names } => self.visit_all(&folder, &path, &names),
            };
            if let Err(reason) = done {
                self.walk.tasks.stop(reason);
            }
        }
        self.skipped
    }

    fn open_folder(
        &mut self,
        parent: &str,
        name: &str,
        rules: Option<Arc<Rules>>,
    ) -> Result<(), StopReason> {
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
        self.read_folder(PartlyReadFolder {
            folder: Arc::new(folder),
            path: path.into(),
            entries,
            rules,
        })
    }

    fn read_folder(&mut self, mut rest: PartlyReadFolder<'w>) -> Result<(), StopReason> {
        let PartlyReadFolder { folder, path: folder_path, rules, .. } = &rest;
        let (folder, folder_path, rules) =
            (Arc::clone(folder), Arc::clone(folder_path), rules.clone());
        let mut path = folder_path.to_string();
        let (mut names, mut folders) = (Vec::new(), Vec::new());
        let mut is_read = false;
        while folders.len() < FOLDERS_WAITING_MAX {
            // Checking even one name takes some time if there are many rules.
            self.walk.call.check()?;
            let Some(entry) = rest.entries.next() else {
                is_read = true;
                break;
            };
            let Some((name, kind)) = self.name_and_kind(&folder, entry) else { continue };
            path.push_str(&name);
            match self.select(rules.as_deref(), &path, kind) {
                Selection::Ignored => self.skipped.ignored += 1,
                Selection::Hidden => self.skipped.hidden += 1,
                // The path is too long for callers to use.
                Selection::Selected if path.len() > PATH_MAX => self.skipped.unreadable += 1,
                Selection::Selected if kind == EntryKind::Folder => {
                    folders.push(name.into_boxed_str());
                }
                Selection::Selected => names.push(name),
            }
            path.truncate(folder_path.len());
            if names.len() == BATCH_MAX {
                self.hand_over(&folder, &path, std::mem::take(&mut names))?;
            }
        }
        let later = (!is_read).then_some(Task::PartlyRead(rest)).into_iter();
        let folders = folders.into_iter().map(|name| {
            let (parent, rules) = (Arc::clone(&folder_path), rules.clone());
            Task::Folder { parent, name, rules }
        });
        self.walk.tasks.add(later.chain(folders));
        self.visit_all(&folder, &path, &names)
    }

    /// Returns the name of an entry that may be visited, and its kind: a file or a folder.
    fn name_and_kind(
        &mut self,
        folder: &Dir,
        entry: io::Result<DirEntry>,
    ) -> Option<(String, EntryKind)> {
        let name =
            entry.ok().and_then(|entry| Some((entry.file_name().into_string().ok()?, entry)));
        let Some((name, entry)) = name.filter(|(name, _)| !name.contains(char::is_control)) else {
            self.skipped.unreadable += 1;
            return None;
        };
        if temp_name::is_ours(name.as_ref()) {
            return None;
        }
        match walk::entry_kind(folder, &entry, name.as_ref()) {
            Some(FileKind::File) => Some((name, EntryKind::File)),
            Some(FileKind::Folder) => Some((name, EntryKind::Folder)),
            Some(_) => {
                self.skipped.special += 1;
                None
            }
            // The entry is gone.
            None => None,
        }
    }

    /// Decides about a path: globs come first, then ignore files, then hidden names. `.git` is always hidden.
    fn select(&self, rules: Option<&Rules>, path: &str, kind: EntryKind) -> Selection {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == ".git" {
            return Selection::Hidden;
        }
        let globs = &self.walk.options.globs;
        let is_ignored = globs
            .is_excluded(path, kind)
            .or_else(|| rules.and_then(|rules| rules.is_excluded(path, kind)));
        match is_ignored {
            Some(true) => Selection::Ignored,
            None if !self.walk.options.hidden && name.starts_with('.') => Selection::Hidden,
            _ => Selection::Selected,
        }
    }

    /// Hands files of a folder to another thread, or visits them if all threads have enough to do.
    fn hand_over(
        &mut self,
        folder: &Arc<OpenFolder<'w>>,
        path: &str,
        names: Vec<String>,
    ) -> Result<(), StopReason> {
        let task = Task::Files { folder: Arc::clone(folder), path: path.into(), names };
        match self.walk.tasks.offer(task) {
            Some(Task::Files { names, .. }) => self.visit_all(folder, path, &names),
            _ => Ok(()),
        }
    }

    fn visit_all(&mut self, folder: &Dir, path: &str, names: &[String]) -> Result<(), StopReason> {
        let mut path = path.to_owned();
        let folder_len = path.len();
        for name in names {
            self.walk.call.check()?;
            if self.walk.tasks.is_stopped() {
                break;
            }
            path.push_str(name);
            if self.visit(folder, name.as_ref(), &path).is_break() {
                return Err(None);
            }
            path.truncate(folder_len);
        }
        Ok(())
    }

    pub(super) fn visit(&mut self, folder: &Dir, name: &OsStr, path: &str) -> ControlFlow<()> {
        (self.each)(&mut TreeFile {
            path,
            name,
            folder,
            max_size: self.walk.options.max_size,
            buffer: &mut self.buffer,
            skipped: &mut self.skipped,
            large_file_lock: &self.walk.large_file_lock,
            large_file_guard: None,
        })
    }
}
