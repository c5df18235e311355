//! The trait `Tool`, and the context that a tool is given.

use std::time::Duration;

use files::{Call, FilePath, Hash, LineCounts, PathError, Root, Store, StoreError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::schema::SchemaViolation;
use crate::{Dialect, Failure, FailureKind, ToolOutput};

/// A family of tools: how it names its files and words its failures.
pub trait Toolset {
    /// The name by which a toolset is chosen. A tool is known by this name and its own.
    const NAME: &'static str;
    const DIALECT: Dialect;

    /// Returns the file that `target`, as given in the arguments, refers to.
    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError>;

    /// Makes the failure for an error of the store, in the toolset's words; `target` as given in the arguments,
    /// `effect` that of the tool.
    fn refused(target: &str, error: &StoreError, limits: &Limits, effect: Effect) -> Failure;
}

/// The arguments of one tool, ready to run.
///
/// The doc comment of the implementing struct is the description agents see.
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// Another name by which the tool can be called.
    const ALIAS: Option<&'static str> = None;
    /// The title that a person sees in a list of tools.
    const TITLE: &'static str;
    const EFFECT: Effect;
    type Toolset: Toolset;

    /// Returns the schema of `ToolOutput::data`, if the tool answers with data at all.
    fn output_schema() -> Option<Map<String, Value>> {
        None
    }

    /// Words a violation of the schema in the contract's own words, if it has any.
    fn word_violation(_violation: &SchemaViolation) -> Option<ArgumentError> {
        None
    }

    /// Checks the raw arguments, even if they cannot be parsed, for what the JSON schema cannot express.
    fn check_raw(_arguments: &Value) -> Vec<ArgumentError> {
        Vec::new()
    }

    /// Checks what the JSON schema cannot express. Returns every error found, worded as the contract words it.
    fn check(&self) -> Vec<ArgumentError> {
        Vec::new()
    }

    /// Returns the files as asked for: the log names the first, and an edit waits in the queue of each. A tool that
    /// edits several changes them in one [`Store::update`].
    fn targets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Makes the failure for an error of the store, in the toolset's words; `target` as given in the arguments.
    fn refused(target: &str, error: &StoreError, limits: &Limits) -> Failure {
        Self::Toolset::refused(target, error, limits, Self::EFFECT)
    }

    /// True if a language model must generate the code before the call can run.
    fn needs_generation(&self) -> bool {
        false
    }

    /// Has the language model generate the code, and returns the call twice, ready to run. That takes long, so it must
    /// not be done while anything is held.
    fn generate(self, _cx: &Context, _author: &Generator) -> Result<[Self; 2], Failure> {
        Err(Failure::new(FailureKind::Internal, "Internal error"))
    }

    /// Returns the size of the generated code in bytes, counted against the memory budget.
    fn generated_bytes(&self) -> usize {
        0
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure>;
}

/// A language model, and the receiver of its progress.
pub struct Generator<'a> {
    pub model: &'a model::Settings,
    /// Reports what the model is doing, for the client.
    pub progress: &'a dyn Fn(&str),
}

/// An error in the arguments, with a hint on what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    pub kind: FailureKind,
    pub message: String,
    pub hint: Option<&'static str>,
}

impl ArgumentError {
    pub fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { kind: FailureKind::Invalid, message: message.into(), hint: Some(hint) }
    }

    /// Makes the error about an argument of the right type with a value that makes no sense.
    pub fn unusable(message: impl Into<String>, hint: &'static str) -> Self {
        Self { kind: FailureKind::Unusable, ..Self::new(message, hint) }
    }

    pub(crate) fn plain(message: String) -> Self {
        Self { kind: FailureKind::Invalid, message, hint: None }
    }
}

/// The effect of a tool on files. Annotations and the read-only filter both come from here, so they cannot disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Changes parts of a file.
    Edits,
    /// Changes parts of a file, whatever was there.
    Rewrites,
    /// Replaces a file as a whole.
    Overwrites,
}

/// The context of a call, equal for every transport.
pub struct Context<'a> {
    pub root: &'a Root,
    pub store: &'a dyn Store,
    pub line_counts: &'a LineCounts,
    pub limits: &'a Limits,
    pub call: &'a Call,
    /// The hash that a file must have to be edited, if it was given beside the arguments.
    pub expected: Option<Hash>,
}

/// Every limit on what is read, written or added to an answer.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest file read or written, in bytes.
    pub max_size: u64,
    /// Longest time that a call may take before it publishes.
    pub timeout: Duration,
    /// Lines of a diff that `edit_file` adds to its answer.
    pub diff_lines: usize,
}

impl Limits {
    pub fn new(max_size: u64, timeout: Duration) -> Self {
        Self { max_size, timeout, diff_lines: 200 }
    }
}
