//! What ignore files say, folder by folder.

use std::{ffi::OsStr, sync::Arc};

use cap_std::fs::Dir;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::globs::decided;
use crate::os::{self, Kind};

/// Bytes of ignore files that are heeded, of a folder and all it is in: patterns take many times their size.
const BYTES_MAX: usize = 256 * 1024;

/// The rules of a folder that has some, and of those it is in.
pub(super) struct Rules {
    outer: Option<Arc<Rules>>,
    /// Bytes of the folder's path, with the `/` after it.
    depth: usize,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// What is around a repository does not matter to git in it.
    is_repository: bool,
    /// Of all ignore files so far.
    bytes: usize,
}

impl Rules {
    /// Those for what is in the folder at `path`, which is empty or ends with `/`.
    pub fn within(folder: &Dir, path: &str, outer: Option<Arc<Rules>>) -> Option<Arc<Rules>> {
        let mut bytes = outer.as_ref().map_or(0, |outer| outer.bytes);
        let mut read = |folder: &Dir, name: &str| read(folder, name.as_ref(), &mut bytes);
        let ignore = read(folder, ".ignore");
        let gitignore = read(folder, ".gitignore");
        let is_repository = matches!(os::stat(folder, ".git".as_ref()), Ok(Some(_)));
        let info = is_repository.then(|| folder.open_dir(".git/info").ok()).flatten();
        let exclude = info.and_then(|info| read(&info, "exclude"));
        if !is_repository && ignore.is_none() && gitignore.is_none() {
            return outer;
        }
        let depth = path.len();
        Some(Arc::new(Rules { outer, depth, ignore, gitignore, exclude, is_repository, bytes }))
    }

    /// Whether a path is ignored; `None` if no rule is about it. Those of the inner folders come first, and `.ignore`
    /// before what is git's.
    pub fn leave_out(&self, path: &str, is_folder: bool) -> Option<bool> {
        let by = |rules: &Option<Gitignore>, depth: usize| {
            decided(&rules.as_ref()?.matched(&path[depth..], is_folder))
        };
        self.ignore(|rules| by(&rules.ignore, rules.depth))
            .or_else(|| self.git(|rules| by(&rules.gitignore, rules.depth)))
            .or_else(|| self.git(|rules| by(&rules.exclude, rules.depth)))
    }

    fn ignore(&self, by: impl Fn(&Rules) -> Option<bool>) -> Option<bool> {
        self.levels().find_map(by)
    }

    /// The same up to the top of the repository.
    fn git(&self, by: impl Fn(&Rules) -> Option<bool>) -> Option<bool> {
        for level in self.levels() {
            let decided = by(level);
            if decided.is_some() || level.is_repository {
                return decided;
            }
        }
        None
    }

    /// From the innermost outwards.
    fn levels(&self) -> impl Iterator<Item = &Rules> {
        std::iter::successors(Some(self), |rules| rules.outer.as_deref())
    }
}

/// The rules in a file, if it is one and there is still room for it; `bytes` grows by its size.
fn read(folder: &Dir, name: &OsStr, bytes: &mut usize) -> Option<Gitignore> {
    let stat = os::stat(folder, name).ok()??;
    let size = usize::try_from(stat.stamp.size).ok()?;
    let total = bytes.checked_add(size).filter(|total| *total <= BYTES_MAX)?;
    if stat.kind != Kind::File {
        return None;
    }
    let file = os::open_read(folder, name).ok()??;
    let mut contents = Vec::with_capacity(size);
    os::read_all(&file, &mut contents, stat.stamp.size).ok()?;
    *bytes = total;
    let mut builder = GitignoreBuilder::new("");
    let contents = contents.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&contents);
    for line in contents.split(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(line).unwrap_or_default();
        // A rule that is none is not heeded, as git does.
        let _ = builder.add_line(None, line.trim_end_matches('\r'));
    }
    builder.build().ok()
}
