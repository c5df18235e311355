//! What the file system of a folder is and can do, for whoever wants to know before something fails. What is made to
//! find out is gone afterwards.

use std::io;

use crate::{Root, os, temp_name};

/// A file system, as far as the system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name, or a number if it has none that is known.
    pub name: String,
    pub reach: Reach,
}

impl FileSystem {
    fn named(name: String) -> Self {
        let reach = match name.as_str() {
            "unknown" => Reach::Unknown,
            name if NETWORK.contains(&name) => Reach::Network,
            name if name.starts_with("type ") => Reach::Unknown,
            _ => Reach::Local,
        };
        Self { name, reach }
    }

    /// Whether all of it is gone when the machine is started anew.
    pub fn is_memory(&self) -> bool {
        matches!(self.name.as_str(), "tmpfs" | "ramfs")
    }

    /// Whether what looks like files there is made up by the kernel.
    pub fn is_made_up(&self) -> bool {
        matches!(self.name.as_str(), "proc" | "sysfs")
    }
}

/// Who else may write there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only this machine.
    Local,
    /// Other machines too, who may not see our locks.
    Network,
    Unknown,
}

/// Names under which a file system comes over a network, or is made by a program that may get it from there.
const NETWORK: [&str; 9] = ["nfs", "cifs", "smb", "smb2", "fuse", "9p", "lustre", "ceph", "afs"];

pub fn file_system(root: &Root) -> FileSystem {
    FileSystem::named(os::file_system(root.dir()))
}

/// How many bytes we may still write; `None` where the system does not tell.
pub fn free_bytes(root: &Root) -> Option<u64> {
    os::free_bytes(root.dir())
}

/// Whether nobody may write there, whatever their rights are.
pub fn is_mounted_read_only(root: &Root) -> bool {
    os::is_mounted_read_only(root.dir())
}

/// Whether a file can be written before it has a name, so that a killed process leaves nothing.
pub fn has_unnamed_files(root: &Root) -> bool {
    os::has_unnamed_files(root.dir())
}

/// True if a file can have two names.
pub fn has_hard_links(root: &Root) -> io::Result<bool> {
    with_two_names(root, |one, two| {
        make_file(root, one)?;
        Ok(root.dir().hard_link(one, root.dir(), two).is_ok())
    })
}

/// What keeps the changes that programs without our lock make while a file is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplaceSupport {
    /// Programs that have the file open for writing are seen, as far as the file is our own.
    pub leases: bool,
    /// A file that came by a rename in the last moment is put back.
    pub exchange: bool,
}

pub fn replace_support(root: &Root) -> io::Result<ReplaceSupport> {
    let dir = root.dir();
    with_two_names(root, |one, two| {
        make_file(root, one)?;
        make_file(root, two)?;
        let file = os::open_read(dir, one.as_ref())?;
        let leases = file.is_some_and(|file| os::has_leases(&file));
        Ok(ReplaceSupport { leases, exchange: os::can_exchange(dir, one.as_ref(), two.as_ref()) })
    })
}

/// Gives two names for temporary files, which are removed afterwards.
fn with_two_names<T>(root: &Root, act: impl Fn(&str, &str) -> io::Result<T>) -> io::Result<T> {
    let (one, two) = (temp_name::fresh(), temp_name::fresh());
    let outcome = act(&one, &two);
    let _ = root.dir().remove_file(&two);
    let removed = root.dir().remove_file(&one);
    outcome.and_then(|outcome| removed.map(|()| outcome))
}

fn make_file(root: &Root, name: &str) -> io::Result<()> {
    let mut options = cap_std::fs::OpenOptions::new();
    root.dir().open_with(name, options.write(true).create_new(true)).map(drop)
}

/// How many temporary files of servers are in the folder itself: of killed ones, and of those that write just now.
pub fn count_leftovers(root: &Root) -> io::Result<usize> {
    let names = root.dir().entries()?.map(|entry| entry.map(|entry| entry.file_name()));
    let ours = names.filter(|name| name.as_ref().map_or(true, |name| temp_name::is_ours(name)));
    ours.collect::<io::Result<Vec<_>>>().map(|ours| ours.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_name() {
        let of = |name: &str| FileSystem::named(name.into());
        for (name, reach) in [
            ("ext4", Reach::Local),
            ("tmpfs", Reach::Local),
            ("nfs", Reach::Network),
            ("fuse", Reach::Network),
            ("unknown", Reach::Unknown),
            ("type 0x1234", Reach::Unknown),
        ] {
            assert_eq!(of(name).reach, reach, "{name}");
        }
        assert!(of("tmpfs").is_memory() && !of("ext4").is_memory() && !of("proc").is_memory());
        assert!(of("proc").is_made_up() && !of("ext4").is_made_up() && !of("tmpfs").is_made_up());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_system_tells_is_told() {
        let at = |path: &str| Root::open(std::path::Path::new(path)).unwrap();
        assert_eq!(file_system(&at("/proc")).name, "proc");
        assert_eq!(file_system(&at("/sys")).name, "sysfs");
        assert!(!has_unnamed_files(&at("/proc")));
        assert_eq!(free_bytes(&at("/proc")), Some(0));
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let named = file_system(&root).name;
        if ["ext4", "xfs", "btrfs", "tmpfs"].contains(&named.as_str()) {
            assert!(has_unnamed_files(&root), "{named}");
            let all = ReplaceSupport { leases: true, exchange: true };
            assert_eq!(replace_support(&root).unwrap(), all, "{named}");
            assert!(os::is_known_local(root.dir()), "{named}");
        }
        assert!(!os::is_known_local(at("/proc").dir()));
        assert!(!is_mounted_read_only(&root));
        assert!(free_bytes(&root).is_some_and(|free| free > 4096));
    }

    #[test]
    fn a_folder_is_probed_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(!file_system(&root).name.is_empty());
        assert!(has_hard_links(&root).unwrap());
        assert_eq!(count_leftovers(&root).unwrap(), 0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        for name in [".fe-1-0123456789abcdef.tmp", "other"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(count_leftovers(&root).unwrap(), 1);
    }
}
