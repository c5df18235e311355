//! The folders of a tree, and the number of files in them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use super::Languages;
use crate::language;

/// Most folders that are kept by name; deeper ones are counted.
const FOLDERS_MAX: usize = 4096;
/// Most bytes of their paths, and of the names of files in them.
const BYTES_MAX: usize = 2 << 20;
/// Most files of a folder that are shown by name.
const NAMES_MAX: usize = 24;
/// Most levels that can be requested.
const DEPTH_MAX: usize = 16;

/// Files below a folder.
#[derive(Debug, Default)]
struct FolderFiles {
    /// Number of files at any depth.
    files: u64,
    /// Names of files directly in it, as far as they are shown.
    names: Vec<String>,
    /// Number of files directly in it.
    own: u64,
}

/// Counts the files of folders.
#[derive(Debug)]
pub(super) struct FolderCounter {
    /// Path of the top folder from the root.
    within: String,
    depth: usize,
    by_path: BTreeMap<String, FolderFiles>,
    bytes: usize,
    /// Hashes of the paths of all folders.
    seen: HashSet<u64>,
    files: u64,
    languages: Languages,
}

impl FolderCounter {
    pub fn new(within: &str, depth: usize) -> Self {
        Self {
            within: within.to_owned(),
            depth: depth.clamp(1, DEPTH_MAX),
            by_path: BTreeMap::new(),
            bytes: 0,
            seen: HashSet::new(),
            files: 0,
            languages: Languages::new(),
        }
    }

    pub fn add(&mut self, path: &str) {
        self.files += 1;
        if let Some(language) = language::of_path(path) {
            *self.languages.entry(language.name()).or_default() += 1;
        }
        let below = path.strip_prefix(&self.within).unwrap_or(path).trim_start_matches('/');
        let (folder, name) = below.rsplit_once('/').unwrap_or(("", below));
        let ends = folder.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!folder.is_empty()).then_some(folder.len()));
        self.count("", folder.is_empty().then_some(name));
        for (level, end) in (1..).zip(ends) {
            let around = &folder[..end];
            self.seen.insert(xxh3_64(around.as_bytes()));
            if level <= self.depth {
                self.count(around, (end == folder.len()).then_some(name));
            }
        }
    }

    /// Counts another file below a folder; `name` is set if it is directly in it.
    fn count(&mut self, folder: &str, name: Option<&str>) {
        if !self.by_path.contains_key(folder) {
            self.make_room();
            if self.is_full() || level(folder) > self.depth {
                return;
            }
            self.bytes += folder.len();
            self.by_path.insert(folder.to_owned(), FolderFiles::default());
        }
        let Some(counted) = self.by_path.get_mut(folder) else { return };
        counted.files += 1;
        if let Some(name) = name {
            counted.own += 1;
            // If there are too many names none is shown, so it does not matter which are kept.
            if counted.names.len() <= NAMES_MAX && self.bytes < BYTES_MAX {
                self.bytes += name.len();
                counted.names.push(name.to_owned());
            }
        }
    }

    /// Drops the deepest folders if there are too many.
    fn make_room(&mut self) {
        while self.is_full() && self.depth > 1 {
            self.depth -= 1;
            self.by_path.retain(|path, _| level(path) <= self.depth);
            let names = |folder: &FolderFiles| folder.names.iter().map(String::len).sum::<usize>();
            self.bytes = self.by_path.iter().map(|(path, folder)| path.len() + names(folder)).sum();
        }
    }

    fn is_full(&self) -> bool {
        self.by_path.len() >= FOLDERS_MAX || self.bytes >= BYTES_MAX
    }

    pub fn join(&mut self, other: Self) {
        self.depth = self.depth.min(other.depth);
        self.by_path.retain(|path, _| level(path) <= self.depth);
        self.files += other.files;
        self.seen.extend(other.seen);
        for (name, more) in other.languages {
            *self.languages.entry(name).or_default() += more;
        }
        let more = other.by_path.into_iter().filter(|(path, _)| level(path) <= self.depth);
        for (path, more) in more {
            let folder = self.by_path.entry(path).or_default();
            folder.files += more.files;
            folder.own += more.own;
            folder.names.extend(more.names);
        }
    }

    pub fn structure(mut self) -> Structure {
        for folder in self.by_path.values_mut() {
            folder.names.sort_unstable();
        }
        Structure {
            within: self.within,
            files: self.files,
            dirs: self.seen.len() as u64,
            languages: self.languages,
            depth: self.depth,
            folders: self.by_path,
        }
    }
}

/// Depth of a folder below the top folder.
fn level(path: &str) -> usize {
    if path.is_empty() { 0 } else { 1 + path.matches('/').count() }
}

/// Choice to list the files directly in a folder by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileNames {
    Listed,
    Omitted,
}

/// Folders, files and languages of a tree.
#[derive(Debug)]
pub struct Structure {
    within: String,
    pub files: u64,
    pub dirs: u64,
    pub languages: Languages,
    depth: usize,
    folders: BTreeMap<String, FolderFiles>,
}

impl Structure {
    /// Returns the folders as a tree, in as much detail as fits in `room` bytes of JSON, and true if that is all that
    /// was requested. Empty if nothing fits.
    pub fn text(&self, room: usize) -> (String, bool) {
        let size = |text: &str| text.len() + text.matches(['\n', '"', '\\']).count();
        let forms =
            [FileNames::Listed, FileNames::Omitted].map(|names| (self.depth, names)).into_iter();
        let fewer = (0..self.depth).rev().map(|depth| (depth, FileNames::Omitted));
        for (at, (depth, names)) in forms.chain(fewer).enumerate() {
            let text = self.to_text(depth, names);
            if size(&text) <= room {
                return (text, at == 0);
            }
        }
        (String::new(), false)
    }

    fn to_text(&self, depth: usize, names: FileNames) -> String {
        let mut text = String::new();
        self.write_folder("", 0, depth, names, &mut text);
        text.truncate(text.trim_end().len());
        text
    }

    fn write_folder(
        &self,
        path: &str,
        level: usize,
        depth: usize,
        names: FileNames,
        text: &mut String,
    ) {
        let Some(folder) = self.folders.get(path) else { return };
        let name = match path.rsplit('/').next().unwrap_or_default() {
            "" if self.within.is_empty() => ".",
            "" => &self.within,
            name => name,
        };
        let indent = "  ".repeat(level);
        let _ = writeln!(text, "{indent}{name}/ {}", folder.files);
        if level >= depth {
            return;
        }
        let inside = if path.is_empty() { String::new() } else { [path, "/"].concat() };
        let below = self.folders.range(inside.clone()..).map(|(below, _)| below);
        let below = below.take_while(|below| below.starts_with(&inside));
        for below in below.filter(|below| {
            let rest = &below[inside.len()..];
            !rest.is_empty() && !rest.contains('/')
        }) {
            self.write_folder(below, level + 1, depth, names, text);
        }
        if names == FileNames::Listed && folder.own <= NAMES_MAX as u64 {
            for name in &folder.names {
                let _ = writeln!(text, "{indent}  {name}");
            }
        } else if names == FileNames::Listed && folder.own > 0 {
            let _ = writeln!(text, "{indent}  ({} files)", folder.own);
        }
    }
}
