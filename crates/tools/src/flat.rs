//! The flat folder: `list_files`, `read_file`, `edit_file`, addressed by file name alone.
//!
//! Each operation is implemented once, in its file. The MCP tools (lines from 0) and the plain methods (lines from 1,
//! `plain`) differ in the base of the line numbers and the shape of the answer.

mod edit_file;
mod list_files;
pub mod plain;
mod read_file;

pub use edit_file::EditFile;
pub use list_files::ListFiles;
pub use read_file::ReadFile;

use files::{FilePath, PathError, Root, StoreError};
use text::NotText;

use crate::line_number::{Base, LineNumber};
use crate::schema::{Problem, SchemaViolation};
use crate::store_error::{self, Wording};
use crate::{ArgumentError, Dialect, Effect, Failure, FailureKind, Limits, Toolset};

const NAMES: &str = "a name has 1 to 255 letters, digits, `.`, `_` and `-`, and no folder";

/// The MCP tools of the flat folder, as a toolset.
pub struct Flat;

impl Toolset for Flat {
    const NAME: &'static str = "flat";
    const DIALECT: Dialect = Dialect::Flat;

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        root.flat_name(target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits, _: Effect) -> Failure {
        refused(target, error, limits)
    }
}

/// Words a violation of the schema in the contract's words, if it has any.
fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
    let error = match (&violation.problem, violation.name()) {
        (Problem::Malformed { .. }, "name") => ArgumentError::new("Invalid filename format", NAMES),
        (Problem::Malformed { .. }, "expected_hash") => ArgumentError::new(
            "`expected_hash` must be 16 hex digits",
            "pass the `hash` that the last read or edit of the file returned",
        ),
        (Problem::TooSmall { found, minimum }, _) if found.as_f64() < Some(0.0) => {
            ArgumentError::new(
                "Line numbers must be non-negative integers",
                if *minimum == 0 { "lines count from 0" } else { "lines count from 1" },
            )
        }
        (Problem::TooSmall { .. }, _) => ArgumentError::new(
            format!("Line numbers must be positive integers: `{}`", violation.field),
            "lines count from 1",
        ),
        (Problem::NotOneOf { found, .. }, "operation") => ArgumentError::new(
            format!("Invalid edit operation: {}", found.chars().take(80).collect::<String>()),
            "operations are `replace`, `insert` and `delete`",
        ),
        _ => return None,
    };
    Some(error)
}

fn path(root: &Root, name: &str) -> Result<FilePath, Failure> {
    root.flat_name(name).map_err(|_| {
        let message = "Invalid filename format";
        Failure::new(FailureKind::Invalid, message)
            .with_argument_errors(vec![message.into()])
            .with_hint(NAMES)
    })
}

fn not_found(name: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("File '{name}' not found"))
        .with_hint("`list_files` shows the files there are")
}

/// Makes the failure for an error of the store.
fn refused(name: &str, error: &StoreError, limits: &Limits) -> Failure {
    store_error::failure(error, name, limits, Wording::Flat)
}

fn not_text(reason: &NotText) -> Failure {
    let (message, at) = match reason {
        NotText::InvalidUtf8 { at } => ("File contains invalid UTF-8 encoding", at),
        NotText::Nul { at } => ("Cannot read binary file", at),
    };
    Failure::new(FailureKind::from(reason), message).with_hint(format!("first at byte {at}"))
}
