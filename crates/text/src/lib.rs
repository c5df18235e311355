//! Text and its edits: bytes and strings in, a value or an error out.
//!
//! No I/O, clock or threads here. Every function is total: whatever the input, it returns, in time close
//! to linear in its size.
//!
//! - [`decode`](Text::decode): bytes to [`Text`], or the reason they are not text
//! - [`lines`]: the definition of a line; counting and selecting lines
//! - [`by_line`]: edits addressed by line number, turned into splices
//! - [`exact`]: edits addressed by the string they replace, staged one after another
//! - [`nearest`]: the reasons why a string was not found, and the places that it nearly matches
//! - [`splice`]: applying splices; [`ComposedSplices`] is the combined effect of a sequence of them
//! - [`diff`]: the changes as a unified diff
//! - [`escape`], [`unescape`]: JSON string escaping and unescaping
//! - [`printable`]: text made safe to print on a terminal
//!
//! Offsets are in bytes and lines count from 0; callers that use another base convert.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod block;
pub mod by_line;
mod changes;
mod decode;
pub mod diff;
mod escape;
pub mod exact;
mod line_index;
pub mod lines;
pub mod nearest;
mod order;
mod positions;
mod printable;
pub mod splice;
mod unescape;
mod whitespace;

use std::ops::Range;

pub use by_line::{LineEdit, LineOp, LinePlan};
pub use decode::{NotText, Text};
pub use diff::DiffNames;
pub use escape::escape;
pub use exact::{LineSpan, StringEdit, StringError};
pub use lines::{Line, LineEnding, LineRange, SelectedLines};
pub use order::sort_by_numbers;
pub use printable::{is_hidden, printable, printable_json, printable_line};
pub use splice::{ChangedRange, ComposedSplices, Splice};
pub use unescape::{end_of_text, unescape};
pub use whitespace::IndentShift;

/// The reason why a line edit could not be applied. The text is unchanged in every case.
///
/// `edit` and `prior` are positions in the list of edits as given. Lines count from 0, in the messages too; a caller
/// with another base writes its own message from the fields.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum EditError {
    /// `valid`: the lines that the operation could have named; empty if there are none.
    #[error("Line {line} out of range for {op} operation")]
    LineOutOfRange { edit: usize, line: usize, op: &'static str, valid: Range<usize> },
    #[error("Edit {edit} conflicts with edit {prior}: both target line {line}")]
    LineConflict { edit: usize, prior: usize, line: usize },
}
