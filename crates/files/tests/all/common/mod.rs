//! Helpers that the tests of the stores share.

mod not_checked;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use files::{
    Call, Change, DiskOptions, DiskStore, Durability, FilePath, Root, Saved, Store, StoreError,
};
pub use not_checked::not_checked;
use tempfile::TempDir;

pub const MAX: u64 = 1000;

pub fn call() -> Call {
    call_for(Duration::from_secs(20))
}

pub fn call_for(time: Duration) -> Call {
    Call::until(Instant::now() + time)
}

pub fn at(name: &str) -> FilePath {
    FilePath::flat(name).unwrap()
}

/// A folder and a store in it.
pub struct Disk {
    pub dir: TempDir,
    pub store: DiskStore,
}

impl Disk {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }

    pub fn with_named_temp_files() -> Self {
        let Self { dir, store } = Self::new();
        Self { dir, store: store.with_named_temp_files() }
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    /// Every name in a folder, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn read(&self, name: &str) -> Result<Option<String>, StoreError> {
        let version = self.store.read(&at(name), &call())?;
        Ok(version.map(|version| String::from_utf8(version.bytes.to_vec()).unwrap()))
    }

    pub fn append(&self, name: &str, text: &str) -> Result<Saved, StoreError> {
        append(&self.store, &at(name), text, &call())
    }
}

pub fn open(dir: &Path) -> DiskStore {
    open_with(dir, Durability::None)
}

pub fn open_with(dir: &Path, durability: Durability) -> DiskStore {
    DiskStore::open(Arc::new(Root::open(dir).unwrap()), DiskOptions { max_size: MAX, durability })
}

/// The smallest edit: `text` at the end, creating the file.
pub fn append(
    store: &dyn Store,
    at: &FilePath,
    text: &str,
    call: &Call,
) -> Result<Saved, StoreError> {
    let saved = store.update(std::slice::from_ref(at), call, &mut |versions| {
        let mut bytes =
            versions[0].as_ref().map(|version| version.bytes.to_vec()).unwrap_or_default();
        bytes.extend_from_slice(text.as_bytes());
        Ok(vec![Change::write(bytes)])
    })?;
    let [saved] = saved.try_into().unwrap();
    Ok(saved)
}

/// True if the tests run as root; otherwise says what is not checked.
#[cfg(unix)]
pub fn is_root_to_check(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_checked(what, "root");
    }
    is_root
}

/// Makes folders in each other, deeper than paths go, with a file in each, and two whose paths are as long as can be
/// and a byte longer. Returns the files that have a path.
#[cfg(unix)]
pub fn make_deeper_than_paths(dir: &Path) -> Vec<String> {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    const LONGEST: usize = 4095;
    let name = "x".repeat(200);
    let (mut named, mut path) = (Vec::new(), String::new());
    let mut inner = open(dir, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..25 {
        let left = LONGEST.saturating_sub(path.len());
        let lengths = if left < name.len() { vec![1, left, left + 1] } else { vec![1] };
        for file in lengths.into_iter().filter(|length| *length > 0).map(|n| "a".repeat(n)) {
            let flags = OFlags::CREATE | OFlags::WRONLY;
            openat(&inner, &file, flags, Mode::from(0o600)).unwrap();
            named.extend((file.len() <= left).then(|| format!("{path}{file}")));
        }
        mkdirat(&inner, &name, Mode::from(0o700)).unwrap();
        inner = openat(&inner, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
        path = format!("{path}{name}/");
    }
    assert!(path.len() > 5000 && named.iter().any(|path| path.len() == LONGEST));
    named.sort();
    named
}
