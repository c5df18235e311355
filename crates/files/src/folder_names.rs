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
            && os::dates_folders(folder);
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
    use std::{fs, thread, time::Duration};

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

    #[test]
    fn names_are_remembered_until_one_comes_or_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a"), "").unwrap();
        let (folder, known) = (open(&dir), FolderNames::default());
        let names = || {
            let names = known.of(&folder).unwrap();
            names.iter().map(|name| name.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        let stamp = || known.0.lock().unwrap().as_ref().map(|(stamp, _)| *stamp);
        let settle = || thread::sleep(Duration::from_millis(2100));
        assert_eq!((names().as_str(), stamp()), ("a", None), "it is young");
        fs::write(path("b"), "").unwrap();
        assert_eq!((names().as_str(), stamp()), ("a b", None), "it is young");
        settle();
        assert_eq!(names(), "a b");
        assert_eq!(stamp(), os::stamp_of_folder(&folder));
        fs::write(path("a"), "changed").unwrap();
        assert_eq!(names(), "a b");

        let changes: [(&str, &dyn Fn() -> io::Result<()>); 4] = [
            ("a b c", &|| fs::write(path("c"), "")),
            ("b c", &|| fs::remove_file(path("a"))),
            ("c d", &|| fs::rename(path("b"), path("d"))),
            ("d", &|| fs::rename(path("c"), path("d"))),
        ];
        for (after, change) in changes {
            settle();
            assert_eq!(stamp().is_some(), os::dates_folders(&folder));
            names();
            change().unwrap();
            assert_eq!(names(), after);
        }
    }
}
