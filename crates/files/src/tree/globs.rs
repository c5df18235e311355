//! Globs that say which files are wanted.

use ignore::{
    Match,
    overrides::{Override, OverrideBuilder},
};

/// Which files are wanted, as with ripgrep's `-g`: those that fit a glob, if there is one without `!`, and none that fits
/// one with it; the last that fits decides. A glob is written as in `.gitignore`, from the root on. It has its way with
/// files that are ignored or hidden too, though not with what is in a folder that is.
#[derive(Clone, Debug)]
pub struct Globs(Override);

/// Why a glob is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GlobError(ignore::Error);

impl Globs {
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Globs, GlobError> {
        let mut builder = OverrideBuilder::new("");
        for glob in globs {
            builder.add(glob).map_err(GlobError)?;
        }
        builder.build().map(Globs).map_err(GlobError)
    }

    /// Whether the path is not wanted; `None` if it does not matter to any glob.
    pub(super) fn leave_out(&self, path: &str, is_folder: bool) -> Option<bool> {
        decided(&self.0.matched(path, is_folder))
    }
}

/// All files.
impl Default for Globs {
    fn default() -> Globs {
        Globs(Override::empty())
    }
}

pub(super) fn decided<T>(found: &Match<T>) -> Option<bool> {
    match found {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}
