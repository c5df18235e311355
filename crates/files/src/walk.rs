//! Lists one folder, and walks through all of them. The tools decide which names of one folder to show, and in what
//! order; a walk has an order and rules of its own, since it continues where another one ended.

use std::{
    collections::BinaryHeap,
    ffi::{OsStr, OsString},
    io,
    ops::ControlFlow,
    path::Path,
};

use cap_std::fs::{Dir, DirEntry};

use crate::{
    Call, DirPath, Entry, StoreError,
    folder_names::FolderNames,
    os::{self, FileKind, Stat},
    resolve::{open_folder, resolve, retry_on_interrupt},
    root::PATH_MAX,
    store::system_time,
};

/// Maximum number of names that a walk holds at once, of all the folders it is in. It reads a folder again for more.
const NAMES_HELD_MAX: usize = 1024;

/// Number of files that are checked between two looks at the clock.
const CHECK_INTERVAL: usize = 32;

pub(crate) fn list(
    root: &Dir,
    at: &DirPath,
    folder_names: &FolderNames,
    call: &Call,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let folder = open_folder(root, at.as_path())?;
    // A removed folder still opens by its handle, and looks empty.
    if os::is_removed(&folder) {
        return Err(StoreError::NoFolder);
    }
    let names = folder_names.read(&folder).map_err(StoreError::when("read the folder"))?;
    for (index, name) in names.iter().enumerate() {
        if index % CHECK_INTERVAL == 0 {
            call.check()?;
        }
        // A file that vanished meanwhile, leads outside or has no readable state could not be read either.
        let stat = match os::stat(&folder, name) {
            Ok(Some(stat)) if stat.kind == FileKind::Link => {
                resolve(root, &at.as_path().join(name)).ok().and_then(|resolved| resolved.stat)
            }
            stat => stat.ok().flatten(),
        };
        if let Some(entry) = stat.and_then(|stat| entry(name.clone(), &stat))
            && each(entry).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// Returns the entry of a regular file.
fn entry(name: OsString, stat: &Stat) -> Option<Entry> {
    let Stat { kind: FileKind::File, stamp, .. } = *stat else { return None };
    Some(Entry { name, size: stamp.size, modified: system_time(stamp.modified), stamp })
}

/// True if a walk shows files of this name and enters folders of it: neither hidden nor with a control character, which
/// would break its line.
pub(crate) fn is_shown(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(char::is_control)
}

/// Position of a walk in a folder.
#[derive(Default)]
struct FolderCursor {
    /// Length of the path of its parent, in bytes.
    parent_len: usize,
    /// Path in the folder after which the walk begins, then the last name that it passed.
    after: String,
    has_begun: bool,
    /// Next names, in reverse. Those of folders end with `/`, as they do in the paths below, so that names in order
    /// lead to paths in order.
    names: Vec<String>,
    /// True if there are, or may be, more names after these.
    has_more: bool,
}

impl FolderCursor {
    fn new(parent_len: usize, after: String) -> Self {
        Self { parent_len, after, has_more: true, ..Self::default() }
    }

    /// True if this name may have something to show. A walk that begins in the middle of a folder enters it again.
    fn is_ahead(&self, name: &str) -> bool {
        let begins_in = || !self.has_begun && name.ends_with('/') && self.after.starts_with(name);
        name > self.after.as_str() || begins_in()
    }

    /// Returns the next name, and the path in it to begin after, if it is a folder's.
    fn next(&mut self) -> Option<(String, String)> {
        let name = self.names.pop()?;
        let begin = self.after.strip_prefix(&name).unwrap_or_default().to_owned();
        self.after.clone_from(&name);
        self.has_begun = true;
        Some((name, begin))
    }

    /// Reads the next names of the folder at `path`.
    fn read(&mut self, root: &Dir, path: &str, call: &Call) -> Result<(), StoreError> {
        self.has_more = false;
        let folder = open_folder(root, Path::new(path))?;
        if os::is_removed(&folder) {
            return Err(StoreError::NoFolder);
        }
        let first = retry_on_interrupt(|| first_names(&folder, |name| self.is_ahead(name), call));
        call.check()?;
        let (names, has_more) = first.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NoFolder,
            _ => StoreError::from_os("read the folder", error),
        })?;
        (self.names, self.has_more) = (names, has_more);
        Ok(())
    }
}

/// Returns the first [`NAMES_HELD_MAX`] names that are ahead, in reverse, and true if there are more. Stops early if
/// the call does.
fn first_names(
    folder: &Dir,
    is_ahead: impl Fn(&str) -> bool,
    call: &Call,
) -> io::Result<(Vec<String>, bool)> {
    let mut first = BinaryHeap::new();
    let mut has_more = false;
    for entry in folder.entries()? {
        if call.check().is_err() {
            break;
        }
        let entry = entry?;
        let Ok(mut name) = entry.file_name().into_string() else { continue };
        if !is_shown(&name) {
            continue;
        }
        if entry_kind(folder, &entry, name.as_ref()) == Some(FileKind::Folder) {
            name.push('/');
        }
        if !is_ahead(&name) {
            continue;
        }
        first.push(name);
        if first.len() > NAMES_HELD_MAX {
            first.pop();
            has_more = true;
        }
    }
    let mut names = first.into_sorted_vec();
    // A name that is renamed during the read may be there twice.
    names.dedup();
    names.reverse();
    Ok((names, has_more))
}

/// Returns the kind of a folder's entry. Some file systems tell it only when asked for the name. `None` if it is gone.
pub(crate) fn entry_kind(folder: &Dir, entry: &DirEntry, name: &OsStr) -> Option<FileKind> {
    match entry.file_type() {
        Ok(kind) if kind.is_file() => Some(FileKind::File),
        Ok(kind) if kind.is_dir() => Some(FileKind::Folder),
        Ok(kind) if kind.is_symlink() => Some(FileKind::Link),
        _ => os::stat(folder, name).ok()?.map(|stat| stat.kind),
    }
}

/// Walks through all folders. No handle stays open and no more than [`NAMES_HELD_MAX`] names are kept, however deep and
/// large they are.
pub(crate) fn walk(
    root: &Dir,
    after: &str,
    call: &Call,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    // Path of the current folder: empty, or ending with `/`.
    let mut path = String::new();
    let mut cursors = vec![FolderCursor::new(0, after.to_owned())];
    while let Some(cursor) = cursors.last_mut() {
        call.check()?;
        let Some((name, begin)) = cursor.next() else {
            if cursor.has_more {
                match cursor.read(root, &path, call) {
                    // A folder that is gone by now, or that we may not read, has no file that could be read.
                    Err(StoreError::NoFolder | StoreError::Denied { .. }) if !path.is_empty() => {}
                    read => read?,
                }
                drop_excess_names(&mut cursors);
            } else {
                path.truncate(cursor.parent_len);
                cursors.pop();
            }
            continue;
        };
        let parent_len = path.len();
        path.push_str(&name);
        // The path is too long for callers to use.
        if path.len() > PATH_MAX {
            path.truncate(parent_len);
            continue;
        }
        if name.ends_with('/') {
            cursors.push(FolderCursor::new(parent_len, begin));
            continue;
        }
        let stat = match resolve(root, Path::new(&path)) {
            Ok(resolved) => resolved.stat,
            // An error is returned: a list without the file would say that it does not exist.
            Err(error @ StoreError::Io { .. }) => return Err(error),
            Err(_) => None,
        };
        if let Some(entry) = stat.and_then(|stat| entry(path.as_str().into(), &stat))
            && each(entry).is_break()
        {
            break;
        }
        path.truncate(parent_len);
    }
    Ok(())
}

/// Drops the names of the outermost folders, if too many are held: they will be read again.
fn drop_excess_names(cursors: &mut [FolderCursor]) {
    let mut held: usize = cursors.iter().map(|cursor| cursor.names.len()).sum();
    for cursor in cursors {
        if held <= NAMES_HELD_MAX {
            break;
        }
        held -= cursor.names.len();
        cursor.names = Vec::new();
        cursor.has_more = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_wholly_behind_are_not_read() {
        let mut cursor = FolderCursor::new(0, "m/n/o".into());
        for (name, is_ahead) in
            [("a/", false), ("m", false), ("m-/", false), ("m/", true), ("m0", true), ("n/", true)]
        {
            assert_eq!(cursor.is_ahead(name), is_ahead, "{name}");
        }
        cursor.names = vec!["m0".into(), "m/".into()];
        assert_eq!(cursor.next(), Some(("m/".into(), "n/o".into())));
        assert!(!cursor.is_ahead("m/"), "it went past it");
        assert_eq!(cursor.next(), Some(("m0".into(), String::new())));
    }

    #[test]
    fn of_too_many_names_the_outermost_are_dropped() {
        let cursor =
            |count| FolderCursor { names: vec![String::new(); count], ..FolderCursor::default() };
        let mut cursors = [600, 0, 400, 600].map(cursor);
        drop_excess_names(&mut cursors);
        assert_eq!(cursors.each_ref().map(|cursor| cursor.names.len()), [0, 0, 400, 600]);
        assert_eq!(cursors.each_ref().map(|cursor| cursor.has_more), [true, false, false, false]);
        let mut cursors = [600, 400, NAMES_HELD_MAX].map(cursor);
        drop_excess_names(&mut cursors);
        assert_eq!(cursors.each_ref().map(|cursor| cursor.names.len()), [0, 0, NAMES_HELD_MAX]);
    }
}
