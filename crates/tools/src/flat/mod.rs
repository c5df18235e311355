//! The flat folder: `list_files`, `read_file`, `edit_file`, addressed by file name alone.
//!
//! Each operation stands in its file once; what differs between the MCP tools (lines from 0) and the plain
//! methods (lines from 1, `plain`) is the base of the line numbers and the shape of the answer.

mod edit_file;
mod list_files;
pub mod plain;
mod read_file;

pub use edit_file::EditFile;
pub use list_files::ListFiles;
pub use read_file::ReadFile;

use std::borrow::Cow;
use std::ops::Range;

use files::{FilePath, Root, StoreError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use text::NotText;

use crate::schema::{Fault, Problem};
use crate::{Complaint, Failure, Kind, Limits};

/// The number of a file's first line, as the caller counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Zero = 0,
    One = 1,
}

impl Base {
    /// The caller's number for line `index` (counted from 0).
    fn show(self, index: usize) -> usize {
        index.saturating_add(self as usize)
    }

    /// The lines a caller may name, `valid` counted from 0.
    fn interval(self, valid: Range<usize>) -> String {
        if valid.is_empty() {
            return "valid: none, the file has no lines".into();
        }
        let (first, last) = (self.show(valid.start), self.show(valid.end - 1));
        format!("valid: {first}..{last} ({}-based)", self as usize)
    }
}

/// A line number as a caller gives it: any integer, `1.0` included. Beyond all files it stays beyond all files, and one
/// below all lines is the schema's to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LineNumber(i128);

impl LineNumber {
    /// Counted from 0.
    fn index(self, base: Base) -> usize {
        usize::try_from(self.0 - base as i128).unwrap_or(0)
    }

    /// As the caller gave it.
    fn given(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for LineNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let from_float = |float: f64| float as i128;
        let whole = number.as_i128().or_else(|| number.as_f64().map(from_float));
        Ok(Self(whole.unwrap_or(i128::MAX).min(u64::MAX.into())))
    }
}

impl JsonSchema for LineNumber {
    fn schema_name() -> Cow<'static, str> {
        "LineNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}

const NAMES: &str = "a name holds letters, digits, `.`, `_` and `-`, 1 to 255 of them, and no path";

/// The faults that the contract has words for.
fn word(fault: &Fault) -> Option<Complaint> {
    let complaint = match (&fault.problem, fault.name()) {
        (Problem::Malformed { .. }, "name") => Complaint::new("Invalid filename format", NAMES),
        (Problem::Malformed { .. }, "expected_hash") => Complaint::new(
            "`expected_hash` must be 16 hex digits",
            "give the `hash` that the last read or edit of the file answered",
        ),
        (Problem::TooSmall { found, minimum }, _) if found.as_f64() < Some(0.0) => Complaint::new(
            "Line numbers must be non-negative integers",
            if *minimum == 0 { "lines count from 0" } else { "lines count from 1" },
        ),
        (Problem::TooSmall { .. }, _) => Complaint::new(
            format!("Line numbers must be positive integers: `{}`", fault.field),
            "lines count from 1",
        ),
        (Problem::NotOneOf { found, .. }, "operation") => Complaint::new(
            format!("Invalid edit operation: {}", found.chars().take(80).collect::<String>()),
            "operations are `replace`, `insert` and `delete`",
        ),
        _ => return None,
    };
    Some(complaint)
}

fn path(root: &Root, name: &str) -> Result<FilePath, Failure> {
    root.flat_name(name).map_err(|_| {
        let message = "Invalid filename format";
        Failure::new(Kind::Invalid, message).with_faults(vec![message.into()]).with_hint(NAMES)
    })
}

const FOLDER_GONE: &str = "the folder was removed; make it again and restart the server";

fn not_found(name: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("File '{name}' not found"))
        .with_hint("`list_files` shows the files there are")
}

/// A store's refusal in the contract's words.
fn refused(name: &str, error: &StoreError, limits: &Limits) -> Failure {
    let message = match error {
        StoreError::Denied { .. } | StoreError::ReadOnly => {
            format!("Permission denied accessing '{name}'")
        }
        StoreError::NoFolder => "Cannot access working directory".into(),
        StoreError::NotRegular | StoreError::IsFolder => {
            format!("'{name}' is not a regular file")
        }
        StoreError::TooLarge { size, max } => {
            format!("File size {}MB exceeds maximum limit {}MB", megabytes(*size), megabytes(*max))
        }
        StoreError::LockTimeout => "Failed to acquire file lock within timeout".into(),
        StoreError::TimedOut => {
            format!("Operation timed out after {} seconds", limits.timeout.as_secs())
        }
        StoreError::Write { source, .. } => format!("Failed to write file: {source}"),
        StoreError::DiskFull => "Failed to write file: no space left on the device".into(),
        StoreError::Unconfirmed => "The outcome is unknown, read the file again".into(),
        StoreError::Cancelled => "The call was cancelled; nothing was written".into(),
        StoreError::Stopping => "The server is stopping; nothing was written".into(),
        StoreError::NoLocks { .. }
        | StoreError::Io { .. }
        | StoreError::SameFile
        | StoreError::Stopped => format!("Filesystem error: {error}"),
    };
    let hint = match error {
        StoreError::Denied { reason } => {
            Some(reason.unwrap_or("the server's user may not do that").into())
        }
        StoreError::NotRegular | StoreError::IsFolder => {
            Some("only regular files can be read and edited".into())
        }
        StoreError::NoFolder => Some(FOLDER_GONE.into()),
        StoreError::ReadOnly => Some("the file system is read-only".into()),
        StoreError::TooLarge { .. } => Some("the limit is set by --max-size".into()),
        StoreError::LockTimeout => Some(
            "another process holds the lock of this file; nothing was written, try again".into(),
        ),
        _ => None,
    };
    Failure { hint, ..Failure::new(Kind::from(error), message) }
}

fn not_text(reason: &NotText) -> Failure {
    let (message, at) = match reason {
        NotText::InvalidUtf8 { at } => ("File contains invalid UTF-8 encoding", at),
        NotText::Nul { at } => ("Cannot read binary file", at),
    };
    Failure::new(Kind::from(reason), message).with_hint(format!("first at byte {at}"))
}

/// Megabytes with up to two decimals, rounded up, so that what exceeds a limit never looks equal to it.
fn megabytes(bytes: u64) -> String {
    let hundredths = (u128::from(bytes) * 100).div_ceil(1 << 20);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    format!("{whole}.{rest:02}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_are_rounded_up() {
        let check = |bytes, shown: &str| assert_eq!(megabytes(bytes), shown);
        check(0, "0");
        check(1, "0.01");
        check(1 << 20, "1");
        check((1 << 20) + 1, "1.01");
        check(10 << 20, "10");
        check((15 << 20) / 10, "1.5");
        check(u64::MAX, "17592186044416");
    }
}
