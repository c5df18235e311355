//! Where the experiments work, and what is there.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// On a disk, if the system keeps its temporary files on one.
pub fn on_disk() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// In memory, if the system has a place for that: no sync waits there, so that more happens at the same time.
pub fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| on_disk())
}

/// What is in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
