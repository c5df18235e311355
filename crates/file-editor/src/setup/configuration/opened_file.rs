//! A configuration file that is opened to be changed, and its backups.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::{Call, DiskOptions, DiskStore, Durability, FilePath, Root, Store, StoreError, machine};

use super::plan::is_blank;
use super::{Configuration, Project, help};
use crate::setup::entry::FoundEntry;

/// Limit of the bytes of a user's file, in which a client may store other data too.
const USER_FILE_MAX: u64 = 64 << 20;
/// Limit of the bytes of a project's file, which anybody may have written. It names a few servers, and parsing it takes
/// up to thirty times its size in memory.
const PROJECT_FILE_MAX: u64 = 1 << 20;
/// Suffix of the copy of a file as it was without the server's entry.
const BACKUP_SUFFIX: &str = ".before-file-editor";
/// Suffix of the copy of a file whose entry has changes that `setup` did not make, if there is a copy without the entry
/// already.
const LAST_BACKUP_SUFFIX: &str = ".before-last-change";

/// An opened file to edit, in a folder that exists.
pub struct OpenedFile {
    pub store: DiskStore,
    pub path: FilePath,
    backup: FilePath,
    last_backup: FilePath,
    pub file: PathBuf,
}

impl OpenedFile {
    /// Opens the file. The file of a `project` is opened beneath a handle of its folder, so that no link that is
    /// changed meanwhile leads out.
    pub fn open(file: &Path, project: Option<&Project>) -> Result<Self, String> {
        let failed =
            |what: &dyn fmt::Display| format!("{} cannot be opened: {what}", file.display());
        let folder = project.map(|project| project.folder.as_path()).or(file.parent());
        let folder = folder.ok_or_else(|| failed(&"it is not a file"))?;
        let name = file.strip_prefix(folder).map_err(|error| failed(&error))?;
        let name = name.to_str().ok_or_else(|| failed(&"its name is not UTF-8"))?;
        let root = Root::open(folder).map_err(|error| failed(&error))?;
        let relative =
            |end: &str| root.relative(&format!("{name}{end}")).map_err(|error| failed(&error));
        let (path, backup, last_backup) =
            (relative("")?, relative(BACKUP_SUFFIX)?, relative(LAST_BACKUP_SUFFIX)?);
        let store = DiskStore::open(Arc::new(root), options(project));
        Ok(Self { store, path, backup, last_backup, file: file.into() })
    }
}

pub fn options(project: Option<&Project>) -> DiskOptions {
    let max_size = if project.is_some() { PROJECT_FILE_MAX } else { USER_FILE_MAX };
    DiskOptions { max_size, durability: Durability::Full }
}

impl Configuration {
    /// Returns the path for a copy of the file; `None` if nothing in it can be lost. A copy without the entry is never
    /// replaced by one with it.
    pub fn backup_path<'p>(
        &self,
        opened: &'p OpenedFile,
        text: &str,
        was: &FoundEntry,
    ) -> Option<&'p FilePath> {
        let is_kept = opened.store.size(&opened.backup).is_some();
        let rest = self.client.remove(text).unwrap_or_default();
        let is_ours = match was {
            FoundEntry::Missing if is_blank(text) => return None,
            FoundEntry::Missing => return Some(&opened.backup),
            FoundEntry::OtherForm => false,
            FoundEntry::Entry(entry) => {
                entry.has_only_own_flags()
                    && (text == self.client.whole(entry) || self.is_made_by_setup(text, was, &rest))
            }
        };
        match (is_ours, is_kept) {
            (true, _) if is_kept || is_blank(&rest) => None,
            (false, true) => Some(&opened.last_backup),
            _ => Some(&opened.backup),
        }
    }

    /// Copies the file beside itself if it still has these bytes. False if it has not.
    pub fn make_backup(
        &self,
        opened: &OpenedFile,
        copy: &FilePath,
        path: &Path,
        bytes: &[u8],
        call: &Call,
    ) -> Result<bool, String> {
        let refused = |why: &dyn fmt::Display| {
            let (file, copy) = (self.path.display(), path.display());
            format!("{file} left unchanged: its copy {copy} cannot be created: {why}")
        };
        if self.project.is_some() && machine::is_link(path) {
            return Err(refused(&"a link has that name"));
        }
        let failed = |error: StoreError| refused(&format!("{error}{}", help(&error)));
        opened.store.copy(&opened.path, copy, bytes, call).map_err(failed)
    }
}
