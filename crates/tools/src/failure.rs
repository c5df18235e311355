//! Failures of calls: many reasons, few kinds. The server decides what a kind is called on the wire.

use files::Hash;
use serde_json::{Map, Value};
use text::{EditError, NotText, StringError};

/// A failed call, in a sentence an agent can act on. Nothing was written, unless the kind says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The contract's message.
    pub message: String,
    /// A hint on what would work instead.
    pub hint: Option<String>,
    /// Each error in the arguments by itself, if there were any.
    pub argument_errors: Vec<String>,
    /// The file's hash as it is now, when the caller's was out of date.
    pub current: Option<Hash>,
    /// Further facts that the next try needs, as data.
    pub details: Option<Box<Map<String, Value>>>,
}

/// The kind of a failure. `server` gives each kind its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The arguments are invalid.
    Invalid,
    /// Arguments of the right type with a value that makes no sense; the text tools tell these apart.
    Unusable,
    NotFound,
    TooLarge,
    Denied,
    /// The call needed a person's confirmation and did not get it.
    Declined,
    /// A folder, device or pipe where a file was expected.
    NotAFile,
    /// Not text: a NUL byte or broken UTF-8.
    NotText,
    DiskFull,
    /// The text to be replaced was not found.
    NoMatch,
    /// The text to be replaced was found more than once.
    Ambiguous,
    /// Two edits of one call exclude each other.
    Conflict,
    /// The file changed since the caller read it.
    Stale,
    /// The language model generated nothing, or nothing that could be used.
    Generation,
    /// The call waited for the lock, or worked, for too long.
    TimedOut,
    /// The caller cancelled the call.
    Cancelled,
    /// The server is being stopped.
    Stopping,
    /// The file system failed in a way that has no kind of its own.
    System,
    /// A defect of the server.
    Internal,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            argument_errors: Vec::new(),
            current: None,
            details: None,
        }
    }

    /// Makes the failure for a file that is not what the caller last saw.
    pub fn stale(name: &str, current: Option<Hash>) -> Self {
        let hint = match current {
            Some(hash) => format!("its hash is {hash} now; read it again before editing"),
            None => "the file does not exist; leave `expected_hash` out to create it".into(),
        };
        Self::new(FailureKind::Stale, format!("File changed since it was read: {name}"))
            .with_hint(hint)
            .with_current(current)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with_argument_errors(mut self, errors: Vec<String>) -> Self {
        self.argument_errors = errors;
        self
    }

    #[must_use]
    pub fn with_details(mut self, details: Map<String, Value>) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    #[must_use]
    pub fn with_current(mut self, hash: Option<Hash>) -> Self {
        self.current = hash;
        self
    }
}

impl From<&NotText> for FailureKind {
    fn from(reason: &NotText) -> Self {
        match reason {
            NotText::InvalidUtf8 { .. } | NotText::Nul { .. } => Self::NotText,
        }
    }
}

impl From<&EditError> for FailureKind {
    fn from(error: &EditError) -> Self {
        match error {
            EditError::LineOutOfRange { .. } => Self::Invalid,
            EditError::LineConflict { .. } => Self::Conflict,
        }
    }
}

impl From<&StringError> for FailureKind {
    fn from(error: &StringError) -> Self {
        match error {
            StringError::Conflict { .. } => Self::Conflict,
            StringError::EmptyString { .. } => Self::Unusable,
            StringError::NoMatch { .. }
            | StringError::UnevenIndent { .. }
            | StringError::IndentTooShallow { .. } => Self::NoMatch,
            StringError::Ambiguous { .. } => Self::Ambiguous,
            StringError::TooLong { .. } => Self::TooLarge,
        }
    }
}
