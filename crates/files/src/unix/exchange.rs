//! Exchanges the names of two files of a folder, and undoes that.
//!
//! A rename destroys the file that has the name at that moment, and nobody can tell afterwards what it was. An exchange
//! keeps it under the other name, where it can be checked.

use std::ffi::OsStr;

use cap_std::fs::Dir;
use rustix::io::{Errno, retry_on_intr};

use super::{Stat, stat};

/// Maximum number of exchanges to undo one. Each needs a rename by another program within microseconds of the last.
const EXCHANGES_MAX: usize = 16;

/// Exchanges the names of the files `name` and `temp`.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub(super) fn exchange(dir: &Dir, name: &OsStr, temp: &OsStr) -> Result<(), Errno> {
    // Watchers of the folder see two moves. In this order the last one says that `name` is there.
    retry_on_intr(|| {
        rustix::fs::renameat_with(dir, name, dir, temp, rustix::fs::RenameFlags::EXCHANGE)
    })
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn exchange(_: &Dir, _: &OsStr, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Undoes an exchange that gave `name` to the file `published`. Afterwards `temp` is a file that no program needs.
///
/// No other server may exchange files of this folder meanwhile, or both could undo what the other did. Programs without
/// the lock may: the file that one of them puts there is newer than the one that is put back, and stays.
pub(super) fn undo(dir: &Dir, name: &OsStr, temp: &OsStr, published: &Stat) -> std::io::Result<()> {
    let mut put_there = published.clone();
    for _ in 0..EXCHANGES_MAX {
        let Some(going_back) = stat(dir, temp)? else { break };
        match exchange(dir, name, temp) {
            // Another program removed one of the two files.
            Err(Errno::NOENT) => return Ok(()),
            outcome => outcome?,
        }
        if stat(dir, temp)?.is_some_and(|came_out| came_out.is_same_file(&put_there)) {
            return Ok(());
        }
        put_there = going_back;
    }
    Err(Errno::BUSY.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_newest_file_of_another_program_stays() {
        // Action of another program on the published file before the exchange is undone.
        for (then, expected) in
            [(None, Some("theirs")), (Some("rename"), Some("newer")), (Some("remove"), None)]
        {
            let temp_dir = tempfile::tempdir().unwrap();
            let at = |name: &str| temp_dir.path().join(name);
            let dir = Dir::open_ambient_dir(temp_dir.path(), cap_std::ambient_authority()).unwrap();
            fs::write(at("a"), "theirs").unwrap();
            fs::write(at("temp"), "ours").unwrap();
            let ours = stat(&dir, "temp".as_ref()).unwrap().unwrap();
            exchange(&dir, "a".as_ref(), "temp".as_ref()).unwrap();
            assert_eq!(fs::read_to_string(at("a")).unwrap(), "ours");
            match then {
                Some("rename") => {
                    fs::write(at("b"), "newer").unwrap();
                    fs::rename(at("b"), at("a")).unwrap();
                }
                Some(_) => fs::remove_file(at("a")).unwrap(),
                None => {}
            }
            undo(&dir, "a".as_ref(), "temp".as_ref(), &ours).unwrap();
            assert_eq!(fs::read_to_string(at("a")).ok().as_deref(), expected, "{then:?}");
        }
    }
}
