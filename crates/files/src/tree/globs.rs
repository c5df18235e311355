//! Sets of globs, in which the last one that matches a path decides.

use std::{collections::HashMap, sync::Arc};

use super::{
    EntryKind,
    glob::{self, Glob, GlobSyntaxError, LookupKey},
};

/// Globs that select files, as with ripgrep's `-g`. The last one that matches a file decides: one with `!` leaves the
/// file out, one without selects it. If there is one without `!`, files that none matches are left out. Globs are
/// written as in `.gitignore`, from the root on, and may have braces. They also select ignored and hidden files, though
/// not the contents of a folder that is left out.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    set: Arc<GlobSet>,
    /// True if there is a glob without `!`.
    has_positive: bool,
}

/// An error of globs that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("in `{}`: {reason}", shortened(.glob))]
pub struct GlobError {
    glob: String,
    reason: GlobErrorReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum GlobErrorReason {
    #[error(transparent)]
    Syntax(#[from] GlobSyntaxError),
    #[error(
        "together with the globs before it, it expands to more than {GLOBS_MAX} globs or {UNINDEXED_BYTES_MAX} bytes"
    )]
    TooMany,
}

/// Maximum number of globs of one set.
pub(super) const GLOBS_MAX: usize = 10_000;
/// Maximum number of bytes of globs that are tried one by one, since no table finds those that match: each byte is
/// a step for each byte of a path, at worst.
pub(super) const UNINDEXED_BYTES_MAX: usize = 32 * 1024;
/// Number of characters of a glob that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 80;

impl Globs {
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Self, GlobError> {
        let (mut set, mut has_positive) = (GlobSet::default(), false);
        let mut size = GlobSetSize::default();
        for glob in globs {
            let failed = |reason| GlobError { glob: glob.to_owned(), reason };
            for one in glob::expand_braces(glob).map_err(|error| failed(error.into()))? {
                let parsed = Glob::parse(&one).map_err(|error| failed(error.into()))?;
                let Some(parsed) = parsed else { continue };
                has_positive |= !parsed.is_negated;
                if !set.add(parsed, one.len(), &mut size) {
                    return Err(failed(GlobErrorReason::TooMany));
                }
            }
        }
        Ok(Self { set: Arc::new(set), has_positive })
    }

    /// Returns true if the path is left out, false if it is selected, and `None` if no glob decides.
    pub(super) fn is_excluded(&self, path: &str, kind: EntryKind) -> Option<bool> {
        match self.set.last_match(path, kind) {
            Some(numbered) => Some(numbered.is_negated),
            None => (self.has_positive && kind == EntryKind::File).then_some(true),
        }
    }
}

/// Amounts of its bounds that a set has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GlobSetSize {
    globs: usize,
    unindexed: usize,
}

/// A set of globs, in their order.
#[derive(Debug, Default)]
pub(super) struct GlobSet {
    count: usize,
    by_name: HashMap<Box<str>, Vec<NumberedGlob>>,
    by_extension: HashMap<Box<str>, Vec<NumberedGlob>>,
    unindexed: Vec<(Glob, NumberedGlob)>,
}

/// A glob that matches a name, unless it is for folders only and the name is a file's.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedGlob {
    index: usize,
    pub is_negated: bool,
    folders_only: bool,
}

impl GlobSet {
    /// Adds a glob. False if that would exceed a bound.
    pub fn add(&mut self, glob: Glob, length: usize, size: &mut GlobSetSize) -> bool {
        let Glob { is_negated, folders_only, .. } = glob;
        let numbered = NumberedGlob { index: self.count, is_negated, folders_only };
        let key = glob.lookup_key();
        let unindexed = size.unindexed + if key.is_none() { length } else { 0 };
        if size.globs == GLOBS_MAX || unindexed > UNINDEXED_BYTES_MAX {
            return false;
        }
        *size = GlobSetSize { globs: size.globs + 1, unindexed };
        self.count += 1;
        match key {
            Some(LookupKey::Name(name)) => {
                self.by_name.entry(name.into()).or_default().push(numbered);
            }
            Some(LookupKey::Extension(extension)) => {
                self.by_extension.entry(extension.into()).or_default().push(numbered);
            }
            None => self.unindexed.push((glob, numbered)),
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the last glob that matches.
    pub fn last_match(&self, path: &str, kind: EntryKind) -> Option<NumberedGlob> {
        let name = glob::name_of(path);
        let extension = name.rfind('.').and_then(|point| self.by_extension.get(&name[point..]));
        let found = [self.by_name.get(name), extension].into_iter().flatten();
        let counts = |glob: &&NumberedGlob| kind == EntryKind::Folder || !glob.folders_only;
        let last = found.filter_map(|found| found.iter().rev().find(counts));
        let last = last.max_by_key(|numbered| numbered.index);
        let later = self
            .unindexed
            .iter()
            .rev()
            .take_while(|(_, numbered)| last.is_none_or(|last| numbered.index > last.index));
        let mut later = later.filter(|(_, numbered)| counts(&numbered));
        later.find(|(glob, _)| glob.matches(path)).map(|(_, numbered)| numbered).or(last).copied()
    }
}

fn shortened(glob: &str) -> String {
    let mut characters = glob.chars();
    let start: String = characters.by_ref().take(SHOWN_CHARACTERS_MAX).collect();
    if characters.next().is_some() { start + "…" } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_decides_however_it_is_found() {
        let left_out = |globs: &[&str], path| {
            Globs::new(globs.iter().copied()).unwrap().is_excluded(path, EntryKind::File)
        };
        for (globs, path, expected) in [
            (&["a.c"][..], "a.c", Some(false)),
            (&["!a.c"], "a.c", Some(true)),
            (&["!a.c"], "b.c", None),
            (&["a.c"], "b.c", Some(true)),
            (&["*.c", "!a.*", "a.c"], "a.c", Some(false)),
            (&["a.c", "*.c", "!a.*"], "a.c", Some(true)),
            (&["a.c", "!a.*", "*.c"], "a.c", Some(false)),
            (&["!/a.*", "a.c/"], "a.c", Some(true)),
            (&["*.tar.gz"], "a.tar.gz", Some(false)),
            (&["*.{c,h}"], "d/a.h", Some(false)),
            (&["#a", ""], "a", None),
        ] {
            assert_eq!(left_out(globs, path), expected, "{globs:?} {path}");
        }
    }

    #[test]
    fn globs_have_bounds() {
        let said = |globs: &[&str]| Globs::new(globs.iter().copied()).unwrap_err().to_string();
        assert_eq!(said(&["a["]), "in `a[`: a `[` has no `]`");
        let long = "*a".repeat(513);
        assert_eq!(said(&[&long]), format!("in `{}…`: it has more than 1024 bytes", &long[..80]));
        let long = "a*a".repeat(300);
        assert!(said(&[long.as_str(); 100]).ends_with("more than 10000 globs or 32768 bytes"));
        assert!(Globs::new(["*.rs"; 100]).is_ok());
    }
}
