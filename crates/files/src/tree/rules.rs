//! Rules of ignore files, folder by folder.

use std::{ffi::OsStr, sync::Arc};

use cap_std::fs::Dir;

use super::{
    glob::Glob,
    globs::{GlobSet, Size},
};
use crate::os::{self, FileKind};

/// Maximum number of bytes of ignore files that are read for a folder and all its parents.
const BYTES_MAX: usize = 256 * 1024;

/// Ignore rules of a folder that has some, and those of its parents.
pub(super) struct Rules {
    outer: Option<Arc<Rules>>,
    /// Length of the folder's path in bytes, with the `/` after it.
    depth: usize,
    ignore: GlobSet,
    gitignore: GlobSet,
    exclude: GlobSet,
    /// True if the folder is a repository: git ignores rules from outside it.
    is_repository: bool,
    used: Used,
}

/// Amounts of their bounds that the rules of a folder and all its parents have used up.
#[derive(Clone, Copy, Default)]
struct Used {
    bytes: usize,
    size: Size,
}

impl Rules {
    /// Returns the rules for the contents of the folder at `path`, which is empty or ends with `/`. Rules over a bound
    /// are left out, and counted in `skipped`.
    pub fn within(
        folder: &Dir,
        path: &str,
        outer: Option<Arc<Rules>>,
        skipped: &mut u64,
    ) -> Option<Arc<Rules>> {
        let mut used = outer.as_ref().map_or(Used::default(), |outer| outer.used);
        let mut read = |folder: &Dir, name: &str| read(folder, name.as_ref(), &mut used, skipped);
        let ignore = read(folder, ".ignore");
        let gitignore = read(folder, ".gitignore");
        let is_repository = matches!(os::stat(folder, ".git".as_ref()), Ok(Some(_)));
        let info = is_repository.then(|| folder.open_dir(".git/info").ok()).flatten();
        let exclude = info.map_or(GlobSet::default(), |info| read(&info, "exclude"));
        if !is_repository && ignore.is_empty() && gitignore.is_empty() {
            return outer;
        }
        let depth = path.len();
        Some(Arc::new(Rules { outer, depth, ignore, gitignore, exclude, is_repository, used }))
    }

    /// Returns true if a path is ignored; `None` if no rule matches it. Rules of inner folders come first, and
    /// `.ignore` before those of git.
    pub fn leave_out(&self, path: &str, is_folder: bool) -> Option<bool> {
        let by = |rules: &GlobSet, depth: usize| {
            rules.last(&path[depth..], is_folder).map(|rule| !rule.is_negated)
        };
        self.ignore(|rules| by(&rules.ignore, rules.depth))
            .or_else(|| self.git(|rules| by(&rules.gitignore, rules.depth)))
            .or_else(|| self.git(|rules| by(&rules.exclude, rules.depth)))
    }

    fn ignore(&self, by: impl Fn(&Rules) -> Option<bool>) -> Option<bool> {
        self.levels().find_map(by)
    }

    /// Returns the decision of the first folder that has one, up to the top of the repository.
    fn git(&self, by: impl Fn(&Rules) -> Option<bool>) -> Option<bool> {
        for level in self.levels() {
            let decided = by(level);
            if decided.is_some() || level.is_repository {
                return decided;
            }
        }
        None
    }

    /// Iterates over the rules of the folders, from the innermost outwards.
    fn levels(&self) -> impl Iterator<Item = &Rules> {
        std::iter::successors(Some(self), |rules| rules.outer.as_deref())
    }
}

/// Reads the rules of a regular file, as far as the bounds allow.
fn read(folder: &Dir, name: &OsStr, used: &mut Used, skipped: &mut u64) -> GlobSet {
    let mut rules = GlobSet::default();
    let Some(contents) = contents(folder, name, BYTES_MAX - used.bytes) else { return rules };
    used.bytes += contents.read.len();
    let text = contents.read.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&contents.read);
    // An incomplete line is no rule.
    let end = memchr::memrchr(b'\n', text).filter(|_| contents.is_cut).unwrap_or(text.len());
    *skipped += u64::from(contents.is_cut);
    for line in text[..end].split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let line = line.trim_end_matches('\r');
        let is_kept = match Glob::parse(line) {
            Ok(Some(glob)) => rules.add(glob, line.len(), &mut used.size),
            Ok(None) => true,
            // An invalid rule has no effect, as in git.
            Err(invalid) => !invalid.is_over_a_bound(),
        };
        *skipped += u64::from(!is_kept);
    }
    rules
}

/// Bytes from the beginning of a file.
struct Contents {
    read: Vec<u8>,
    /// True if the file has more bytes.
    is_cut: bool,
}

fn contents(folder: &Dir, name: &OsStr, most: usize) -> Option<Contents> {
    let stat = os::stat(folder, name).ok()??;
    if stat.kind != FileKind::File {
        return None;
    }
    let file = os::open_read(folder, name).ok()??;
    let most = (most as u64).min(stat.stamp.size);
    let mut read = Vec::with_capacity(usize::try_from(most).ok()?);
    os::read_all(&file, &mut read, most).ok()?;
    Some(Contents { is_cut: read.len() as u64 != stat.stamp.size, read })
}
