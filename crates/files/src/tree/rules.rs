//! Rules of ignore files, folder by folder.

use std::{ffi::OsStr, sync::Arc};

use cap_std::fs::Dir;

use super::{
    EntryKind,
    glob::Glob,
    globs::{GlobSet, GlobSetSize},
};
use crate::os::{self, FileKind};

/// Maximum number of bytes of ignore files that are read for a folder and all its parents.
const RULES_BYTES_MAX: usize = 256 * 1024;

/// Ignore rules of a folder that has some, and those of its parents.
pub(super) struct Rules {
    outer: Option<Arc<Self>>,
    /// Length of the folder's path in bytes, with the `/` after it.
    path_len: usize,
    ignore: GlobSet,
    gitignore: GlobSet,
    exclude: GlobSet,
    /// True if the folder is a repository: git ignores rules from outside it.
    is_repository: bool,
    size: RulesSize,
}

/// Amounts of their bounds that the rules of a folder and all its parents have used up.
#[derive(Clone, Copy, Default)]
struct RulesSize {
    bytes: usize,
    globs: GlobSetSize,
}

impl Rules {
    /// Returns the rules for the contents of the folder at `path`, which is empty or ends with `/`. Rules over a bound
    /// are left out, and counted in `skipped`.
    pub fn for_folder(
        folder: &Dir,
        path: &str,
        outer: Option<Arc<Self>>,
        skipped: &mut u64,
    ) -> Option<Arc<Self>> {
        let mut size = outer.as_ref().map_or(RulesSize::default(), |outer| outer.size);
        let mut read = |folder: &Dir, name: &str| read(folder, name.as_ref(), &mut size, skipped);
        let ignore = read(folder, ".ignore");
        let gitignore = read(folder, ".gitignore");
        let is_repository = matches!(os::stat(folder, ".git".as_ref()), Ok(Some(_)));
        let info = is_repository.then(|| folder.open_dir(".git/info").ok()).flatten();
        let exclude = info.map_or(GlobSet::default(), |info| read(&info, "exclude"));
        if !is_repository && ignore.is_empty() && gitignore.is_empty() {
            return outer;
        }
        let path_len = path.len();
        Some(Arc::new(Self { outer, path_len, ignore, gitignore, exclude, is_repository, size }))
    }

    /// Returns true if a path is ignored; `None` if no rule matches it. Rules of inner folders come first, and
    /// `.ignore` before those of git.
    pub fn is_excluded(&self, path: &str, kind: EntryKind) -> Option<bool> {
        let by = |rules: &GlobSet, path_len: usize| {
            rules.last_match(&path[path_len..], kind).map(|rule| !rule.is_negated)
        };
        self.first_decision(|rules| by(&rules.ignore, rules.path_len))
            .or_else(|| self.first_git_decision(|rules| by(&rules.gitignore, rules.path_len)))
            .or_else(|| self.first_git_decision(|rules| by(&rules.exclude, rules.path_len)))
    }

    fn first_decision(&self, by: impl Fn(&Self) -> Option<bool>) -> Option<bool> {
        self.inner_to_outer().find_map(by)
    }

    /// Returns the decision of the first folder that has one, up to the top of the repository.
    fn first_git_decision(&self, by: impl Fn(&Self) -> Option<bool>) -> Option<bool> {
        for rules in self.inner_to_outer() {
            let decided = by(rules);
            if decided.is_some() || rules.is_repository {
                return decided;
            }
        }
        None
    }

    /// Iterates over the rules of the folders, from the innermost outwards.
    fn inner_to_outer(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.outer.as_deref())
    }
}

/// Reads the rules of a regular file, as far as the bounds allow.
fn read(folder: &Dir, name: &OsStr, size: &mut RulesSize, skipped: &mut u64) -> GlobSet {
    let mut rules = GlobSet::default();
    let Some(beginning) = read_beginning(folder, name, RULES_BYTES_MAX - size.bytes) else {
        return rules;
    };
    size.bytes += beginning.bytes.len();
    let text = beginning.bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&beginning.bytes);
    // An incomplete line is no rule.
    let end = memchr::memrchr(b'\n', text).filter(|_| beginning.is_cut).unwrap_or(text.len());
    *skipped += u64::from(beginning.is_cut);
    for line in text[..end].split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let line = line.trim_end_matches('\r');
        let is_kept = match Glob::parse(line) {
            Ok(Some(glob)) => rules.add(glob, line.len(), &mut size.globs),
            Ok(None) => true,
            // An invalid rule has no effect, as in git.
            Err(invalid) => !invalid.exceeds_bound(),
        };
        *skipped += u64::from(!is_kept);
    }
    rules
}

/// Bytes from the beginning of a file.
struct FileBeginning {
    bytes: Vec<u8>,
    /// True if the file has more bytes.
    is_cut: bool,
}

fn read_beginning(folder: &Dir, name: &OsStr, max: usize) -> Option<FileBeginning> {
    let stat = os::stat(folder, name).ok()??;
    if stat.kind != FileKind::File {
        return None;
    }
    let file = os::open_read(folder, name).ok()??;
    let max = (max as u64).min(stat.stamp.size);
    let mut read = Vec::with_capacity(usize::try_from(max).ok()?);
    os::read_all(&file, &mut read, max).ok()?;
    Some(FileBeginning { is_cut: read.len() as u64 != stat.stamp.size, bytes: read })
}
