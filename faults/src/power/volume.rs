//! File systems on a disk: how each is made, mounted, repaired and read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, XattrFlags, chmod, getxattr, setxattr};
use rustix::mount::{UnmountFlags, unmount};

pub const MODE: u32 = 0o640;
pub const OWNER: u32 = 1000;
const NOTE: &str = "user.note";

#[derive(Clone, Copy)]
pub struct FileSystem {
    pub name: &'static str,
    kind: &'static str,
    make: &'static [&'static str],
    options: &'static str,
    pub megabytes: u64,
    /// True if it puts itself in order when it is mounted. Else it is repaired first.
    pub has_journal: bool,
}

const EXT4: FileSystem = FileSystem {
    name: "ext4",
    kind: "ext4",
    make: &["mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0"],
    options: "commit=1",
    megabytes: 16,
    has_journal: true,
};

pub const ALL: [FileSystem; 5] = [
    EXT4,
    FileSystem { name: "ext4, data=writeback", options: "commit=1,data=writeback", ..EXT4 },
    FileSystem {
        name: "ext4 without a journal",
        make: &["mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", "-O", "^has_journal"],
        options: "defaults",
        has_journal: false,
        ..EXT4
    },
    FileSystem {
        name: "XFS",
        kind: "xfs",
        make: &["mkfs.xfs", "-q", "-f"],
        options: "defaults",
        megabytes: 300,
        has_journal: true,
    },
    FileSystem {
        name: "btrfs",
        kind: "btrfs",
        make: &["mkfs.btrfs", "-q", "-f"],
        options: "commit=1",
        megabytes: 128,
        has_journal: true,
    },
];

/// Unmounted on drop.
pub struct Mounted(tempfile::TempDir);

impl Mounted {
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The loop device goes with it. A server that ends just now may still use it.
        for _ in 0..100 {
            if unmount(self.path(), UnmountFlags::empty()).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// A file as it was found.
pub struct File {
    pub bytes: Vec<u8>,
    pub mode: u32,
    pub owner: u32,
    pub has_note: bool,
}

impl FileSystem {
    pub fn make(&self, disk: &Path) -> Result<(), String> {
        run(Command::new(self.make[0]).args(&self.make[1..]).arg(disk)).map(drop)
    }

    pub fn mount(&self, disk: &Path) -> Result<Mounted, String> {
        let mounted = Mounted(tempfile::tempdir().unwrap());
        let options = format!("loop,{}", self.options);
        let mut mount = Command::new("mount");
        mount.args(["-t", self.kind, "-o", &options]).arg(disk).arg(mounted.path());
        run(&mut mount).map(|()| mounted)
    }

    /// Everything that is found in the served folder after a restart, by path.
    pub fn files(&self, disk: &Path) -> Result<BTreeMap<String, File>, String> {
        if !self.has_journal {
            // Its exit code says that it had something to repair.
            Command::new("e2fsck").arg("-fy").arg(disk).output().map_err(|why| why.to_string())?;
        }
        let mounted = self.mount(disk)?;
        let served = mounted.path().join("served");
        let mut files = BTreeMap::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(served.join(&folder));
            let entries =
                entries.map_err(|why| format!("cannot list {}: {why}", folder.display()))?;
            for entry in entries {
                let entry =
                    entry.map_err(|why| format!("cannot list {}: {why}", folder.display()))?;
                let path = folder.join(entry.file_name());
                let file = read(&served.join(&path));
                match file.map_err(|why| format!("cannot read {}: {why}", path.display()))? {
                    Some(file) => drop(files.insert(path.to_string_lossy().into_owned(), file)),
                    None => folders.push(path),
                }
            }
        }
        Ok(files)
    }
}

/// Writes a file that has an owner, a mode and an attribute to keep.
pub fn write_owned(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    chown(path, Some(OWNER), Some(OWNER)).unwrap();
    chmod(path, Mode::from_raw_mode(MODE)).unwrap();
    setxattr(path, NOTE, b"kept", XattrFlags::empty()).unwrap();
}

/// `None` for a folder.
fn read(path: &Path) -> std::io::Result<Option<File>> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        return Ok(None);
    }
    let mut value = [0; 16];
    Ok(Some(File {
        bytes: fs::read(path)?,
        mode: metadata.mode() & 0o7777,
        owner: metadata.uid(),
        has_note: getxattr(path, NOTE, &mut value).is_ok(),
    }))
}

fn run(command: &mut Command) -> Result<(), String> {
    let outcome = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&outcome.stderr);
    if outcome.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}")) }
}
