//! The names in a folder, remembered as long as its stamp stays the same: every name that comes or goes changes it, where
//! the file system dates its folders. To read a thousand names takes as long as to look at half of the files.

use std::{
    ffi::{OsStr, OsString},
    io,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use cap_std::fs::Dir;

#[cfg(not(target_os = "linux"))]
use crate::resolve::uninterrupted;
use crate::{Stamp, os, temp_name};

/// Names that are remembered, at most. About 60 bytes each.
const MOST: usize = 4096;

/// What was in the folder that was listed last.
#[derive(Debug, Default)]
pub(crate) struct FolderNames(Mutex<Option<(Stamp, Arc<[OsString]>)>>);

impl FolderNames {
    /// What may be a file in the folder, hidden or not, in order.
    pub fn of(&self, folder: &Dir) -> io::Result<Arc<[OsString]>> {
        let stamp = os::stamp_of_folder(folder);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, names)) = known.take_if(|(of, _)| Some(*of) == stamp) {
            return Ok(names);
        }
        let now = SystemTime::now();
        let names: Arc<[OsString]> = names(folder)?.into();
        let is_worth_it = names.len() <= MOST
            && stamp.is_some_and(|stamp| stamp.is_settled(now))
            && stamp == os::stamp_of_folder(folder)
            && os::is_known_local(folder);
        if let Some(stamp) = stamp.filter(|_| is_worth_it) {
            let known = Some((stamp, Arc::clone(&names)));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
        Ok(names)
    }
}

/// A name and its first bytes, as a number that is less if they are: most names can be told apart by it at once.
type Name = (u128, OsString);

/// What may be a file, hidden or not, in order. They are sorted here, where a name is small, so that it costs little to
/// sort what becomes of them.
fn names(folder: &Dir) -> io::Result<Vec<OsString>> {
    let mut names = unsorted_names(folder)?;
    names.sort_unstable();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}

#[cfg(target_os = "linux")]
fn unsorted_names(folder: &Dir) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    os::read_names(folder, &mut |name, is_folder| {
        if !is_folder && !temp_name::is_ours(name) {
            names.push((beginning(name), name.to_owned()));
        }
    })?;
    Ok(names)
}

#[cfg(not(target_os = "linux"))]
fn unsorted_names(folder: &Dir) -> io::Result<Vec<Name>> {
    uninterrupted(|| {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder && !temp_name::is_ours(&name) {
                names.push((beginning(&name), name));
            }
        }
        Ok(names)
    })
}

fn beginning(name: &OsStr) -> u128 {
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

    fn told(known: &FolderNames, folder: &Dir) -> String {
        let names = known.of(folder).unwrap();
        names.iter().map(|name| name.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn stamp(known: &FolderNames) -> Option<Stamp> {
        known.0.lock().unwrap().as_ref().map(|(stamp, _)| *stamp)
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
            let (folder, known) = (open(&dir), FolderNames::default());
            for (name, names) in [("a", "a"), ("b", "a b")] {
                fs::write(dir.path().join(name), "").unwrap();
                assert_eq!((told(&known, &folder).as_str(), stamp(&known)), (names, None), "young");
            }
            (dir, folder, known, after, change)
        });
        thread::sleep(Duration::from_millis(2100));
        for (dir, folder, known, after, change) in scenes {
            assert_eq!(told(&known, &folder), "a b");
            assert_eq!(stamp(&known), os::stamp_of_folder(&folder));
            assert_eq!(stamp(&known).is_some(), os::is_known_local(&folder));
            change(dir.path()).unwrap();
            assert_eq!(told(&known, &folder), after);
        }
    }
}
