//! Resolves a path to a folder handle and a name, following links one by one from the root's handle.
//!
//! A link's target is appended to the link's folder and `..` is never folded: `a/../b` is not `b` when `a` is a link.
//! cap-std opens the folder and proves that it lies beneath the root; the last name is never opened through a link.

use std::{
    ffi::OsString,
    io,
    ops::Deref,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;

use crate::{
    StoreError,
    os::{self, FileKind, Stat},
    temp_name,
};

/// Maximum number of links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// A folder inside the root. The root itself is not opened again.
pub(crate) enum OpenFolder<'r> {
    Root(&'r Dir),
    Inner(Dir),
}

impl Deref for OpenFolder<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Self::Root(dir) => dir,
            Self::Inner(dir) => dir,
        }
    }
}

/// A path with every link followed: its folder and its name there.
pub(crate) struct ResolvedPath<'r> {
    pub folder: OpenFolder<'r>,
    /// Path of the folder from the root. It serves as a key, and never to open the file.
    pub parent: PathBuf,
    pub name: OsString,
    /// State of the file a moment ago, which is not a link; `None` if it was missing.
    pub stat: Option<Stat>,
}

impl ResolvedPath<'_> {
    /// Returns a key that is equal for two paths that lead to one name.
    pub fn key(&self) -> Result<((u64, u64), OsString), StoreError> {
        let folder = os::identity(&self.folder).map_err(StoreError::when("look at the folder"))?;
        Ok((folder, self.name.clone()))
    }

    /// True if the folder's path still leads to it: another program may have moved it, even out of the root.
    pub fn is_reached_from(&self, root: &Dir) -> Result<bool, StoreError> {
        if matches!(self.folder, OpenFolder::Root(_)) {
            return Ok(true);
        }
        let identity =
            |dir: &Dir| os::identity(dir).map_err(StoreError::when("look at the folder"));
        match open_folder(root, &self.parent) {
            Ok(now) => Ok(identity(&now)? == identity(&self.folder)?),
            Err(StoreError::NoFolder) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the regular file that was there a moment ago. Refuses a folder, or any other kind of file.
    pub fn regular_file(&self) -> Result<Option<&Stat>, StoreError> {
        match &self.stat {
            Some(Stat { kind: FileKind::Folder, .. }) => Err(StoreError::IsFolder),
            Some(stat) if stat.kind != FileKind::File => Err(StoreError::NotRegular),
            stat => Ok(stat.as_ref()),
        }
    }
}

pub(crate) fn open_folder<'r>(root: &'r Dir, path: &Path) -> Result<OpenFolder<'r>, StoreError> {
    if path.as_os_str().is_empty() {
        return Ok(OpenFolder::Root(root));
    }
    retry_on_interrupt(|| root.open_dir(path)).map(OpenFolder::Inner).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreError::NoFolder,
            _ => StoreError::from_os("open the folder", error),
        }
    })
}

/// Repeats a call that a signal interrupted: cap-std leaves that to its callers.
pub(crate) fn retry_on_interrupt<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

pub(crate) fn resolve<'r>(root: &'r Dir, path: &Path) -> Result<ResolvedPath<'r>, StoreError> {
    let mut path = path.to_path_buf();
    for _ in 0..=LINKS_MAX {
        let Some(name) = path.file_name().map(OsString::from) else {
            // The path ends in `..`: a folder, if it is inside at all.
            return open_folder(root, &path).and(Err(StoreError::IsFolder));
        };
        let parent = path.parent().map(PathBuf::from).unwrap_or_default();
        let folder = open_folder(root, &parent)?;
        let stat = os::stat(&folder, &name).map_err(StoreError::when("look at the file"))?;
        if stat.as_ref().is_none_or(|stat| stat.kind != FileKind::Link) {
            // A sweep would remove a file that is made under this name through a link.
            if temp_name::is_ours(&name) {
                return Err(StoreError::denied("it leads to a temporary file of the server"));
            }
            return Ok(ResolvedPath { folder, parent, name, stat });
        }
        match os::read_link(&folder, &name).map_err(StoreError::when("read the link"))? {
            Some(target) if is_absolute(&target) => {
                return Err(StoreError::denied("absolute links are not followed"));
            }
            Some(target) if names_a_folder(&target) => {
                return open_folder(root, &parent.join(target)).and(Err(StoreError::IsFolder));
            }
            Some(target) => path = parent.join(target),
            // No longer a link: check the name again.
            None => {}
        }
    }
    Err(StoreError::denied("too many links"))
}

/// True if a path is absolute, or has a root or a drive of its own on Windows: `\a`, `c:a`.
fn is_absolute(path: &Path) -> bool {
    path.has_root() || matches!(path.components().next(), Some(std::path::Component::Prefix(_)))
}

/// True if a path ends as only a folder's does: `f/` and `f/.`, even where `Path` would drop the ending.
fn names_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
    bytes.is_empty() || bytes.last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_signal_interrupts_is_done_again() {
        let mut outcomes =
            vec![Ok(7), Err(io::ErrorKind::Interrupted), Err(io::ErrorKind::Interrupted)];
        assert_eq!(retry_on_interrupt(|| outcomes.pop().unwrap().map_err(Into::into)).unwrap(), 7);
        let mut outcomes = vec![Ok(7), Err(io::ErrorKind::NotFound)];
        let failed = retry_on_interrupt(|| outcomes.pop().unwrap().map_err(Into::into));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
