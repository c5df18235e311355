//! Text files anywhere below the root, by absolute path: `read_text_file`, `write_text_file`, `multi_edit_text_file`.
//! Lines count from 1.

mod multi_edit_text_file;
mod names;
mod read_text_file;
mod refusal;
mod write_text_file;

pub use multi_edit_text_file::MultiEditTextFile;
pub use read_text_file::ReadTextFile;
pub use write_text_file::WriteTextFile;

use std::path::Path;

use files::{FilePath, Hash, PathError, Root, StoreError};
use serde_json::{Map, Value, json};
use text::{NotText, Text};

use crate::answer::{cut, short};
use crate::schema::{Problem, SchemaViolation};
use crate::store_error::{self, FileAction, Wording};
use crate::{ArgumentError, Context, Dialect, Effect, Failure, FailureKind, Limits, Toolset};

const ABSOLUTE: &str =
    "give the whole path, beginning with `/`; paths begin with that of the served folder";

/// The text tools, as a toolset.
pub struct TextFiles;

impl Toolset for TextFiles {
    const NAME: &'static str = "text";
    const DIALECT: Dialect = Dialect::Text;

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        root.absolute(target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits, effect: Effect) -> Failure {
        refused(target, error, limits, FileAction::of(effect))
    }
}

/// Words a violation of the schema in the contracts' words, if they have any.
fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
    let error = match (&violation.problem, violation.name()) {
        (Problem::TooSmall { found, .. }, "line") => ArgumentError::unusable(
            format!("Line number must be >= 1: {found}"),
            "lines count from 1",
        ),
        (Problem::TooSmall { found, .. }, "limit") => ArgumentError::unusable(
            format!("Limit must be >= 1: {found}"),
            "leave `limit` out to read to the end",
        ),
        (Problem::Malformed { .. }, "expected_hash") => ArgumentError::new(
            "`expected_hash` must be 16 hex digits",
            "pass the `hash` that the last read or edit of the file returned",
        ),
        _ => return None,
    };
    Some(error)
}

/// Checks the path in the arguments without access to the disk.
fn path_errors(arguments: &Value) -> Vec<ArgumentError> {
    let Some(path) = arguments["path"].as_str().filter(|path| !Path::new(path).is_absolute())
    else {
        return Vec::new();
    };
    vec![ArgumentError::unusable(format!("Path must be absolute: {}", short(path)), ABSOLUTE)]
}

fn path(root: &Root, path: &str, action: FileAction) -> Result<FilePath, Failure> {
    root.absolute(path).map_err(|error| {
        let at = short(path);
        let invalid = |message: String| {
            Failure::new(FailureKind::Invalid, message.clone()).with_argument_errors(vec![message])
        };
        match error {
            PathError::Relative => {
                Failure::new(FailureKind::Unusable, format!("Path must be absolute: {at}"))
                    .with_hint(ABSOLUTE)
            }
            PathError::Outside => {
                Failure::new(FailureKind::Denied, format!("Permission denied: {at}"))
                    .with_hint(format!("only files below {} can be reached", root.path().display()))
            }
            PathError::Temporary => {
                Failure::new(FailureKind::Denied, format!("Permission denied: {at}"))
                    .with_hint("names like this are the server's own temporary files")
            }
            PathError::Folder => {
                not_a_file(path, action).with_hint("it ends like the path of a folder; name a file")
            }
            PathError::Length => invalid(format!("Path too long: {at}"))
                .with_hint("a name has at most 255 bytes, a path at most 4095"),
            PathError::Characters => {
                invalid(format!("Path contains a NUL character: {at}")).with_hint("leave it out")
            }
            PathError::Dots | PathError::Reserved => invalid(format!("Invalid path: {at}"))
                .with_hint("it contains a name that no file on this system can have"),
        }
    })
}

/// Makes the failure for a folder where a file was expected.
fn not_a_file(path: &str, action: FileAction) -> Failure {
    Failure::new(FailureKind::NotAFile, store_error::not_a_file(&short(path), action))
}

/// A file that was read.
pub(crate) struct Loaded {
    pub text: Text,
    /// A note on what else the caller should know of it.
    pub note: Option<&'static str>,
}

/// Reads the text of the file at an absolute path.
pub(crate) fn load(path: &str, cx: &Context, action: FileAction) -> Result<Loaded, Failure> {
    let at = self::path(cx.root, path, action)?;
    let version = cx
        .store
        .read(&at, cx.call)
        .map_err(|error| refused(path, &error, cx.limits, action))?
        .ok_or_else(|| missing(path, &at, cx, action))?;
    let text = Text::decode(version.bytes).map_err(|reason| not_text(path, &reason, action))?;
    Ok(Loaded { text, note: version.note })
}

/// Makes the failure for a missing file; `at` is where it was searched for.
fn missing(path: &str, at: &FilePath, cx: &Context, action: FileAction) -> Failure {
    let failure = not_found(path, action);
    match names::alike(at, cx) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn not_found(path: &str, action: FileAction) -> Failure {
    Failure::new(FailureKind::NotFound, format!("File not found: {}", short(path))).with_hint(
        match action {
            FileAction::ReadResource => {
                "check the spelling; `resources/list` shows the files there are"
            }
            FileAction::Read | FileAction::Write | FileAction::Edit => {
                "check the spelling; `write_text_file` creates a file"
            }
        },
    )
}

/// Makes the failure for an error of the store.
pub(crate) fn refused(
    path: &str,
    error: &StoreError,
    limits: &Limits,
    action: FileAction,
) -> Failure {
    store_error::failure(error, path, limits, Wording::Text(action))
}

/// Makes the failure as [`refused`] does, for a write of so many bytes.
fn unwritten(
    path: &str,
    error: &StoreError,
    limits: &Limits,
    action: FileAction,
    bytes: usize,
) -> Failure {
    let failure = refused(path, error, limits, action);
    match error {
        StoreError::DiskFull => {
            let message = format!("Disk full: cannot write {bytes} bytes to {}", short(path));
            Failure { message, ..failure }
        }
        _ => failure,
    }
}

fn not_text(path: &str, reason: &NotText, action: FileAction) -> Failure {
    let doing = match action {
        FileAction::Read | FileAction::ReadResource => "read",
        FileAction::Write | FileAction::Edit => "edit",
    };
    let hint = match reason {
        NotText::InvalidUtf8 { at } => {
            format!("it is not UTF-8 text: the first invalid byte is {at}")
        }
        NotText::Nul { at } => format!("it has a NUL at byte {at}"),
    };
    let message = format!("Cannot {doing} binary file: {}", short(path));
    Failure::new(FailureKind::from(reason), message).with_hint(hint)
}

fn nul_in(field: &str) -> ArgumentError {
    ArgumentError::new(format!("`{field}` contains a NUL character"), "a text file cannot hold one")
}

/// Returns the hash as the `meta` of an answer of a tool that writes.
fn hash_meta(hash: Option<Hash>) -> Option<Map<String, Value>> {
    hash.map(|hash| Map::from_iter([("hash".into(), json!(hash.to_string()))]))
}

/// Returns the name that a diff gives the file.
fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(std::ffi::OsStr::to_str).unwrap_or(path)
}
