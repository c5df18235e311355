//! A cache of the names in a folder, valid as long as the folder's stamp stays the same: every name that is added or
//! removed changes it, where the file system dates its folders. Reading a thousand names takes as long as a `stat` of
//! half of the files.

use std::{
    ffi::{OsStr, OsString},
    io,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use cap_std::fs::Dir;

#[cfg(not(target_os = "linux"))]
use crate::resolve::retry_on_interrupt;
use crate::{Stamp, os, temp_name};

/// Maximum number of names that are cached. About 60 bytes each.
const NAMES_MAX: usize = 4096;

/// Cached names of the folder that was listed last.
#[derive(Debug, Default)]
pub(crate) struct FolderNames(Mutex<Option<(Stamp, Arc<[OsString]>)>>);

impl FolderNames {
    /// Returns the names in the folder that may be files, hidden or not, in order.
    pub fn read(&self, folder: &Dir) -> io::Result<Arc<[OsString]>> {
        let stamp = os::stamp_of_folder(folder);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, names)) = cached.take_if(|(of, _)| Some(*of) == stamp) {
            return Ok(names);
        }
        let now = SystemTime::now();
        let names: Arc<[OsString]> = names(folder)?.into();
        let is_cacheable = names.len() <= NAMES_MAX
            && stamp.is_some_and(|stamp| stamp.is_settled(now))
            && stamp == os::stamp_of_folder(folder)
            && os::is_local_file_system(folder);
        if let Some(stamp) = stamp.filter(|_| is_cacheable) {
            let cached = Some((stamp, Arc::clone(&names)));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cached;
        }
        Ok(names)
    }
}

/// A name and its first bytes as a number that sorts like the name: most names are told apart by comparing it alone.
type PrefixedName = (u128, OsString);

/// Reads the names that may be files, hidden or not, in order. Sorting them here, where an element is small, makes it
/// cheap to sort the entries later.
fn names(folder: &Dir) -> io::Result<Vec<OsString>> {
    let mut names = unsorted_names(folder)?;
    names.sort_unstable();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}

#[cfg(target_os = "linux")]
fn unsorted_names(folder: &Dir) -> io::Result<Vec<PrefixedName>> {
    let mut names = Vec::new();
    os::read_file_names(folder, &mut |name| {
        if !temp_name::is_ours(name) {
            names.push((sort_prefix(name), name.to_owned()));
        }
    })?;
    Ok(names)
}

#[cfg(not(target_os = "linux"))]
fn unsorted_names(folder: &Dir) -> io::Result<Vec<PrefixedName>> {
    retry_on_interrupt(|| {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder && !temp_name::is_ours(&name) {
                names.push((sort_prefix(&name), name));
            }
        }
        Ok(names)
    })
}

fn sort_prefix(name: &OsStr) -> u128 {
    let mut first = [0; 16];
    let name = name.as_encoded_bytes();
    let length = name.len().min(first.len());
    first[..length].copy_from_slice(&name[..length]);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path, thread, time::Duration};

    fn open(dir: &tempfile::TempDir) -> Dir {
        Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap()
    }

    #[test]
    fn names_come_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let long = "the first sixteen bytes are the same";
        let mut names = ["b", "a", "aa", "a-", "é", "B", ".a"].map(String::from).to_vec();
        names.extend((0..300).map(|number| format!("{long} {number}")));
        for name in &names {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("folder")).unwrap();
        let listed = super::names(&open(&dir)).unwrap();
        let listed: Vec<_> = listed.iter().map(|name| name.to_str().unwrap()).collect();
        names.sort();
        assert_eq!(listed, names);
    }

    fn listed(cached: &FolderNames, folder: &Dir) -> String {
        let names = cached.read(folder).unwrap();
        names.iter().map(|name| name.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn stamp(cached: &FolderNames) -> Option<Stamp> {
        cached.0.lock().unwrap().as_ref().map(|(stamp, _)| *stamp)
    }

    #[test]
    fn names_are_remembered_until_one_comes_or_goes() {
        type Act = fn(&Path) -> io::Result<()>;
        let changes: [(&str, Act); 5] = [
            ("a b", |folder| fs::write(folder.join("a"), "changed")),
            ("a b c", |folder| fs::write(folder.join("c"), "")),
            ("b", |folder| fs::remove_file(folder.join("a"))),
            ("a c", |folder| fs::rename(folder.join("b"), folder.join("c"))),
            ("a", |folder| fs::rename(folder.join("b"), folder.join("a"))),
        ];
        let scenes = changes.map(|(after, change)| {
            let dir = tempfile::tempdir().unwrap();
            let (folder, cached) = (open(&dir), FolderNames::default());
            for (name, names) in [("a", "a"), ("b", "a b")] {
                fs::write(dir.path().join(name), "").unwrap();
                assert_eq!(
                    (listed(&cached, &folder).as_str(), stamp(&cached)),
                    (names, None),
                    "young"
                );
            }
            (dir, folder, cached, after, change)
        });
        thread::sleep(Duration::from_millis(2100));
        for (dir, folder, cached, after, change) in scenes {
            assert_eq!(listed(&cached, &folder), "a b");
            assert_eq!(stamp(&cached), os::stamp_of_folder(&folder));
            assert_eq!(stamp(&cached).is_some(), os::is_local_file_system(&folder));
            change(dir.path()).unwrap();
            assert_eq!(listed(&cached, &folder), after);
        }
    }
}
