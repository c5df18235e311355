//! The words for errors of the store: kind, message and hint of each, with the wordings that a contract fixes beside the
//! common one.

use std::borrow::Cow;
use std::path::Path;

use files::StoreError;

use crate::answer::{megabytes, short};
use crate::{Effect, Failure, FailureKind, Limits};

/// The contract that an error is worded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// The flat folder: MCP tools and plain methods.
    Flat,
    /// The text tools and the resources.
    Text(FileAction),
    /// A file of the code tools.
    Code,
    /// A folder that the code tools search.
    CodeFolder,
}

/// The action of a tool on its file, for the words that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    /// Reads too, but by a URI, and has no tool that writes.
    ReadResource,
    Write,
    Edit,
}

impl FileAction {
    pub fn of(effect: Effect) -> Self {
        match effect {
            Effect::Reads => Self::Read,
            Effect::Edits | Effect::Rewrites => Self::Edit,
            Effect::Overwrites => Self::Write,
        }
    }
}

/// The hint of the code tools on how a path is given.
pub(crate) const PATHS_ARE_RELATIVE: &str =
    "paths are relative to the folder, for instance `src/main.rs`";

/// Makes the failure for an error of the store; `target` as given in the arguments.
#[expect(clippy::too_many_lines, reason = "a table, one row for each error")]
pub(crate) fn failure(
    error: &StoreError,
    target: &str,
    limits: &Limits,
    wording: Wording,
) -> Failure {
    use Wording::{Code, CodeFolder, Flat, Text};
    let at = short(target);
    let hint = |hint: &'static str| Some(Cow::Borrowed(hint));
    let system_error = |error: &dyn std::fmt::Display| match wording {
        Flat | Text(_) => format!("Filesystem error: {error}"),
        Code | CodeFolder => format!("File system error: {error}"),
    };
    let (kind, message, hint) = match error {
        StoreError::Denied { reason } => (
            FailureKind::Denied,
            match wording {
                Flat => format!("Permission denied accessing '{at}'"),
                Text(_) | Code | CodeFolder => format!("Permission denied: {at}"),
            },
            reason.clone().or(hint("the server's user has no permission for that")),
        ),
        StoreError::ReadOnly => (
            FailureKind::Denied,
            match wording {
                Flat => format!("Permission denied accessing '{at}'"),
                Text(_) => format!("Read-only filesystem: {at}"),
                Code | CodeFolder => format!("Read-only file system: {at}"),
            },
            hint("the file system is read-only"),
        ),
        StoreError::NoFolder => return missing_folder(target, wording),
        StoreError::NotRegular => (
            FailureKind::NotAFile,
            match wording {
                Flat => format!("'{at}' is not a regular file"),
                Text(_) | Code | CodeFolder => format!("{at} is not a file"),
            },
            hint("only regular files can be read and edited"),
        ),
        StoreError::IsFolder => (
            FailureKind::NotAFile,
            match wording {
                Flat => format!("'{at}' is not a regular file"),
                Text(action) => not_a_file(&at, action),
                Code | CodeFolder => format!("{at} is not a file"),
            },
            match wording {
                Text(_) => hint("it is a folder; name a file in it"),
                Flat | Code | CodeFolder => hint("only regular files can be read and edited"),
            },
        ),
        StoreError::TooLarge { size, max } => {
            let (size, max) = (megabytes(*size), megabytes(*max));
            let message = format!("File size {size}MB exceeds maximum limit {max}MB");
            let message = match wording {
                Flat => message,
                Text(_) | Code | CodeFolder => format!("{message}: {at}"),
            };
            (FailureKind::TooLarge, message, hint("the limit is set by --max-size"))
        }
        StoreError::Stale { why, current } => {
            return Failure::stale(&at, *current).with_hint(*why);
        }
        StoreError::LockTimeout { holder } => (
            FailureKind::TimedOut,
            "Failed to acquire file lock within timeout".into(),
            match holder {
                None => hint(
                    "another process holds the lock of this file; nothing was written, try again",
                ),
                Some(process) => Some(
                    format!(
                        "process {process} holds the lock of this file; nothing was written, try again, or end \
                         that process if it should not hold it"
                    )
                    .into(),
                ),
            },
        ),
        StoreError::TimedOut => (
            FailureKind::TimedOut,
            format!("Operation timed out after {} seconds", limits.timeout.as_secs()),
            hint("nothing was written; ask for less in one call, or raise --timeout"),
        ),
        StoreError::DiskFull => (
            FailureKind::DiskFull,
            match wording {
                Flat => "Failed to write file: no space left on the device".into(),
                Text(_) | Code | CodeFolder => format!("Disk full: cannot write to {at}"),
            },
            None,
        ),
        StoreError::Write { source, .. } => (
            FailureKind::System,
            match wording {
                Flat => format!("Failed to write file: {source}"),
                Text(_) => system_error(source),
                Code | CodeFolder => system_error(error),
            },
            None,
        ),
        StoreError::Unconfirmed => {
            (FailureKind::TimedOut, "The outcome is unknown, read the file again".into(), None)
        }
        StoreError::Cancelled => {
            (FailureKind::Cancelled, "The call was cancelled; nothing was written".into(), None)
        }
        StoreError::Stopping => {
            (FailureKind::Stopping, "The server is stopping; nothing was written".into(), None)
        }
        StoreError::SameFile => (FailureKind::Conflict, system_error(error), None),
        StoreError::NoLocks { .. } | StoreError::Io { .. } => {
            (FailureKind::System, system_error(error), None)
        }
        StoreError::Stopped => (FailureKind::Internal, system_error(error), None),
    };
    Failure { hint: hint.map(Cow::into_owned), ..Failure::new(kind, message) }
}

/// Makes the failure for the missing folder of a file, or for a missing folder to be searched.
pub(crate) fn missing_folder(target: &str, wording: Wording) -> Failure {
    let at = short(target);
    let (message, hint) = match wording {
        Wording::Flat => (
            "Cannot access working directory".into(),
            "the folder was removed; create it again and restart the server".into(),
        ),
        Wording::Text(FileAction::Write) => {
            let parent = Path::new(target).parent().unwrap_or(Path::new(target)).display();
            (
                format!("Parent directory not found: {}", short(&parent.to_string())),
                "set `create_dirs` to true to create missing folders".into(),
            )
        }
        Wording::Text(FileAction::Read | FileAction::ReadResource | FileAction::Edit) => {
            (format!("File not found: {at}"), "the folder it would be in does not exist".into())
        }
        Wording::Code => {
            (format!("File not found: {at}"), format!("check the spelling; {PATHS_ARE_RELATIVE}"))
        }
        Wording::CodeFolder => (
            format!("Folder not found: {at}"),
            "check the spelling; leave `path` out to search everywhere".into(),
        ),
    };
    Failure::new(FailureKind::NotFound, message).with_hint(hint)
}

/// Words the error of the text tools that there is a folder where a file was expected.
pub(crate) fn not_a_file(at: &str, action: FileAction) -> String {
    match action {
        FileAction::Read | FileAction::ReadResource | FileAction::Edit => {
            format!("{at} is not a file")
        }
        FileAction::Write => format!("{at} is a directory"),
    }
}

/// Makes the failure for an error while `list_files` reads the folder.
pub(crate) fn flat_listing_failure(error: &StoreError, limits: &Limits) -> Failure {
    let failure = failure(error, "", limits, Wording::Flat);
    match error {
        StoreError::Denied { .. } | StoreError::NoFolder => {
            Failure { message: "Cannot access working directory".into(), ..failure }
        }
        StoreError::TimedOut | StoreError::Cancelled | StoreError::Stopping => failure,
        StoreError::ReadOnly
        | StoreError::NotRegular
        | StoreError::IsFolder
        | StoreError::TooLarge { .. }
        | StoreError::Stale { .. }
        | StoreError::LockTimeout { .. }
        | StoreError::DiskFull
        | StoreError::Write { .. }
        | StoreError::Unconfirmed
        | StoreError::SameFile
        | StoreError::NoLocks { .. }
        | StoreError::Io { .. }
        | StoreError::Stopped => Failure::new(
            failure.kind,
            format!("Filesystem error during directory listing: {error}"),
        ),
    }
}

/// Makes the failure for an error while `resources/list` reads the folder, which no argument names.
pub(crate) fn resource_listing_failure(error: &StoreError, limits: &Limits) -> Failure {
    match error {
        StoreError::TimedOut | StoreError::Cancelled | StoreError::Stopping => {
            failure(error, "", limits, Wording::Text(FileAction::ReadResource))
        }
        StoreError::Denied { .. }
        | StoreError::NoFolder
        | StoreError::ReadOnly
        | StoreError::NotRegular
        | StoreError::IsFolder
        | StoreError::TooLarge { .. }
        | StoreError::Stale { .. }
        | StoreError::LockTimeout { .. }
        | StoreError::DiskFull
        | StoreError::Write { .. }
        | StoreError::Unconfirmed
        | StoreError::SameFile
        | StoreError::NoLocks { .. }
        | StoreError::Io { .. }
        | StoreError::Stopped => {
            Failure::new(FailureKind::System, format!("Cannot read the folder: {error}"))
        }
    }
}
