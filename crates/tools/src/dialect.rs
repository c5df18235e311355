//! Families of tools: how each names its files, and words its failures.

use files::{FilePath, PathError, Root, StoreError};

use crate::text_file::Act;
use crate::{Effect, Failure, Limits, code, flat, resource, text_file};

/// How a family of tools words its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The MCP tools of the flat folder: texts begin with `Error: `.
    Flat,
    /// The text tools: texts are the message alone.
    Text,
    /// The code tools: codes are words.
    Code,
    /// The plain methods of the flat folder: JSON-RPC errors.
    Plain,
    /// Files by their URIs: JSON-RPC errors too, in the words of the text tools.
    Resource,
}

impl Dialect {
    /// The file that `target`, as asked for, stands for.
    pub(crate) fn locate(self, root: &Root, target: &str) -> Result<FilePath, PathError> {
        match self {
            Self::Flat | Self::Plain => root.flat_name(target),
            Self::Text => root.absolute(target),
            Self::Code => root.relative(target),
            Self::Resource => root.absolute(&resource::path(target)),
        }
    }

    /// A store's refusal of what would have had such an effect.
    pub(crate) fn refused(
        self,
        target: &str,
        error: &StoreError,
        limits: &Limits,
        effect: Effect,
    ) -> Failure {
        match self {
            Self::Flat | Self::Plain => flat::refused(target, error, limits),
            Self::Text => text_file::refused(target, error, limits, Act::of(effect)),
            Self::Code => code::refused(target, error, limits),
            Self::Resource => {
                text_file::refused(&resource::path(target), error, limits, Act::Fetch)
            }
        }
    }
}
