//! Source code anywhere below the root, by its path from there: `ai_edit_code`, `ai_get_code_context`,
//! `search_files`. Lines count from 1.

mod ai_edit_code;
mod ai_get_code_context;
mod budget;
mod conflict;
mod search_files;

pub use ai_edit_code::AiEditCode;
pub use ai_get_code_context::AiGetCodeContext;
pub use search_files::SearchFiles;

use files::tree::{Globs, TreeOptions};
use files::{DirPath, FilePath, PathError, Root, StoreError};
use text::NotText;

use crate::answer::short;
use crate::schema::{Problem, SchemaViolation};
use crate::store_error::{self, PATHS_ARE_RELATIVE, Wording};
use crate::{ArgumentError, Context, Dialect, Effect, Failure, FailureKind, Limits, Toolset};

/// The code tools, as a toolset.
pub struct Code;

impl Toolset for Code {
    const NAME: &'static str = "code";
    const DIALECT: Dialect = Dialect::Code;

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        root.relative(target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits, _: Effect) -> Failure {
        refused(target, error, limits)
    }
}

/// Frees the parsers that are loaded and not used now; they are loaded again in a few milliseconds.
pub fn free_unused() {
    ::code::free_unused();
}

/// Words a violation of the schema in words of its own, if it has any.
fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
    match (&violation.problem, violation.name()) {
        (Problem::Malformed { .. }, "expected_hash") => Some(ArgumentError::new(
            "`expected_hash` must be 16 hex digits",
            "pass a `hash` or `file_hash` that a tool of this server returned",
        )),
        (Problem::TooLarge { .. }, "max_results" | "max_tokens") => {
            Some(ArgumentError::new(violation.to_string(), "for more results use `cursor`"))
        }
        _ => None,
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureKind::Invalid, message.clone()).with_argument_errors(vec![message])
}

/// Files that are searched besides those that are neither hidden nor ignored.
#[derive(Clone, Copy, Default)]
struct AlsoSearched {
    hidden: bool,
    ignored: bool,
}

/// Returns the options for the files below a folder, as asked for.
fn tree(
    cx: &Context,
    path: Option<&str>,
    globs: Option<&[String]>,
    also: AlsoSearched,
) -> Result<TreeOptions, Failure> {
    let globs = globs.into_iter().flatten().map(String::as_str);
    let globs = Globs::new(globs).map_err(|error| {
        invalid(format!("`globs` cannot be used: {error}"))
            .with_hint("for instance `*.rs`, `src/**`, `!tests/**`")
    })?;
    let AlsoSearched { hidden, ignored } = also;
    let within = folder(cx.root, path.unwrap_or("."))?;
    Ok(TreeOptions { within, globs, hidden, ignored, max_size: cx.limits.max_size })
}

/// Returns the file at a path, as asked for.
fn path(root: &Root, path: &str) -> Result<FilePath, Failure> {
    let at = short(path);
    root.relative(path).map_err(|error| match error {
        PathError::Outside | PathError::Relative => {
            Failure::new(FailureKind::Denied, format!("Permission denied: {at}")).with_hint(
                format!(
                    "only files below {} can be reached; {PATHS_ARE_RELATIVE}",
                    root.path().display()
                ),
            )
        }
        PathError::Temporary => {
            Failure::new(FailureKind::Denied, format!("Permission denied: {at}"))
                .with_hint("names like this are the server's own temporary files")
        }
        PathError::Folder | PathError::Dots => {
            invalid(format!("{at} is not a file")).with_hint("it names a folder; name a file in it")
        }
        PathError::Length => invalid(format!("Path too long: {at}"))
            .with_hint("a name has at most 255 bytes, a path at most 4095"),
        PathError::Characters => {
            invalid(format!("Path contains a NUL character: {at}")).with_hint("leave it out")
        }
        PathError::Reserved => invalid(format!("Invalid path: {at}"))
            .with_hint("it contains a name that no file on this system can have"),
    })
}

/// Returns the folder at a path, as asked for.
fn folder(root: &Root, path: &str) -> Result<DirPath, Failure> {
    root.folder(path).map_err(|error| match error {
        PathError::Outside | PathError::Relative | PathError::Dots => {
            let message = format!("Permission denied: {}", short(path));
            Failure::new(FailureKind::Denied, message).with_hint(
                "only folders below the root can be searched; give a path from there, without `..`",
            )
        }
        _ => no_folder(path),
    })
}

fn no_folder(path: &str) -> Failure {
    store_error::missing_folder(path, Wording::CodeFolder)
}

fn not_found(path: &str) -> Failure {
    store_error::missing_folder(path, Wording::Code)
}

fn not_text(path: &str, reason: &NotText) -> Failure {
    let hint = match reason {
        NotText::InvalidUtf8 { at } => {
            format!("it is not UTF-8 text: the first invalid byte is {at}")
        }
        NotText::Nul { at } => format!("it has a NUL at byte {at}"),
    };
    Failure::new(FailureKind::from(reason), format!("Cannot edit binary file: {}", short(path)))
        .with_hint(hint)
}

/// Makes the failure for a language model that generated nothing that could be used.
fn unwritten(error: &model::Error) -> Failure {
    let kind = match error {
        model::Error::Task(_) => FailureKind::Invalid,
        model::Error::Cancelled => FailureKind::Cancelled,
        model::Error::TimedOut { .. } => FailureKind::TimedOut,
        _ => FailureKind::Generation,
    };
    let message = format!("No code was generated; nothing was written: {error}");
    let errors = if kind == FailureKind::Invalid { vec![message.clone()] } else { Vec::new() };
    Failure::new(kind, message)
        .with_argument_errors(errors)
        .with_hint("write the code yourself and pass it as `code_block`, or try again")
}

/// Makes the failure for an error of the store about a file.
fn refused(path: &str, error: &StoreError, limits: &Limits) -> Failure {
    store_error::failure(error, path, limits, Wording::Code)
}

/// Makes the failure for an error of the store about a folder to be searched.
fn refused_folder(path: &str, error: &StoreError, limits: &Limits) -> Failure {
    store_error::failure(error, path, limits, Wording::CodeFolder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_model_wrote_nothing() {
        let check = |error: model::Error, kind, errors| {
            let failure = unwritten(&error);
            assert_eq!((failure.kind, failure.argument_errors.len()), (kind, errors), "{error}");
        };
        check(model::TaskError::NoSuchLines { total: 3 }.into(), FailureKind::Invalid, 1);
        check(model::Error::Cancelled, FailureKind::Cancelled, 0);
        check(model::Error::TimedOut { seconds: 9 }, FailureKind::TimedOut, 0);
        check(model::Error::NotFound, FailureKind::Generation, 0);
    }
}
