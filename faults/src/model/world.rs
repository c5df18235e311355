//! What is in the folder, as the model has it; and whether the disk has the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::xxh3_64;

/// `--max-size=1`, in bytes.
pub const MOST: usize = 1 << 20;
const MARK: &str = "\u{feff}";

pub struct World {
    pub root: PathBuf,
    /// By their paths from the root.
    pub files: BTreeMap<String, Vec<u8>>,
    pub folders: BTreeSet<String>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    /// Nothing, in a folder that is there.
    Nothing,
    /// Nothing, and no folder that it could be in.
    NoFolder,
}

/// Why bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotText {
    Encoding,
    Nul,
}

/// A byte order mark or none, and the rest.
pub struct Text<'a> {
    pub mark: &'static str,
    pub body: &'a str,
}

pub fn decode(bytes: &[u8]) -> Result<Text<'_>, NotText> {
    let whole = str::from_utf8(bytes).map_err(|_| NotText::Encoding)?;
    if whole.contains('\0') {
        return Err(NotText::Nul);
    }
    Ok(match whole.strip_prefix(MARK) {
        Some(body) => Text { mark: MARK, body },
        None => Text { mark: "", body: whole },
    })
}

pub fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl World {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: BTreeMap::new(), folders: BTreeSet::new() }
    }

    pub fn kind(&self, path: &str) -> Kind {
        if self.files.contains_key(path) {
            Kind::File
        } else if self.is_folder(path) {
            Kind::Folder
        } else if self.is_folder(parent(path)) {
            Kind::Nothing
        } else {
            Kind::NoFolder
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || self.folders.contains(path)
    }

    /// Whether nothing but folders, there or not, is on the way to a path.
    pub fn is_way_free(&self, path: &str) -> bool {
        let mut path = path;
        while !path.is_empty() {
            path = parent(path);
            if self.files.contains_key(path) {
                return false;
            }
        }
        true
    }

    pub fn add_folders(&mut self, path: &str) {
        let mut folder = parent(path);
        while !folder.is_empty() {
            self.folders.insert(folder.to_owned());
            folder = parent(folder);
        }
    }

    pub fn absolute(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    /// When a file was changed, in seconds. The model has no clock: this is what the disk says.
    pub fn modified(&self, path: &str) -> u64 {
        let modified = fs::metadata(self.root.join(path)).and_then(|file| file.modified());
        let since = modified.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_secs())
    }

    /// How one path differs from what is on the disk.
    pub fn difference_at(&self, path: &str) -> Option<String> {
        let there = fs::read(self.root.join(path)).ok();
        let expected = self.files.get(path);
        if there.as_ref() == expected {
            return None;
        }
        Some(format!("{path} is {}, not {}", shown(there.as_ref()), shown(expected)))
    }

    /// How all of it differs: each file, and whatever else is there.
    pub fn difference(&self) -> Option<String> {
        let mut found = (BTreeSet::new(), BTreeSet::new());
        walk(&self.root, "", &mut found);
        let (files, folders) = found;
        if !files.iter().eq(self.files.keys()) {
            return Some(format!("the files are {files:?}, not {:?}", self.files.keys()));
        }
        if folders != self.folders {
            return Some(format!("the folders are {folders:?}, not {:?}", self.folders));
        }
        self.files.keys().find_map(|path| self.difference_at(path))
    }
}

fn walk(root: &Path, below: &str, found: &mut (BTreeSet<String>, BTreeSet<String>)) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type().unwrap().is_dir() {
            walk(root, &path, found);
            found.1.insert(path);
        } else {
            found.0.insert(path);
        }
    }
}

/// Bytes as a report shows them.
pub fn shown(bytes: Option<&Vec<u8>>) -> String {
    match bytes {
        None => "missing".into(),
        Some(bytes) => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
            format!("{start:?} ({} bytes)", bytes.len())
        }
    }
}

/// Seconds since 1970 as `2026-07-28T12:00:00Z`.
pub fn date(seconds: u64) -> String {
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let (mut days, mut year) = (seconds / 86_400, 1970);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}
