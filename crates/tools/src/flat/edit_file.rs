//! `edit_file`: lines replaced, inserted, deleted and appended, all or nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use files::{Change, Hash, StoreError, UpdateError, Updater, Version};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::diff::{self, DiffNames};
use text::{ComposedSplices, EditError, LineEdit, LineOp, Text, by_line, splice};

use crate::answer::{self, ErrorShape, Mode, Outcome};
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::syntax::{Verifier, Verify, Versions};
use crate::{ArgumentError, Context, Effect, Failure, FailureKind, Tool, ToolOutput, schema};

/// Edit a text file of the folder by lines: replace, insert, delete, append, or create it. Lines are 0-based, of the file before the call; `insert` puts content before its line, or appends at the line count. All edits apply or none; all else stays as it is, line endings too.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EditFile {
    /// File name, without any path.
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 255))]
    name: String,
    /// Edits, in any order.
    #[schemars(length(max = 1000))]
    edits: Option<Vec<Edit>>,
    /// Text to add at the end.
    append: Option<String>,
    /// Create the file if it is missing (default true).
    create_if_missing: Option<bool>,
    /// Hash you last got; if the file changed since, nothing is written.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{16}$"))]
    expected_hash: Option<String>,
    /// Only answer; write nothing.
    dry_run: Option<bool>,
    /// Refuse new syntax errors.
    verify: Option<Verify>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Edit {
    /// Line to edit (0-based).
    #[schemars(range(min = 0))]
    line: LineNumber,
    /// What to do with the line.
    operation: Operation,
    /// New text, one line or several; not for `delete`.
    content: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Replace,
    Insert,
    Delete,
}

/// What `edit_file` answers.
#[derive(JsonSchema)]
#[expect(dead_code, clippy::struct_excessive_bools, reason = "only its schema is used")]
struct EditFileAnswer {
    /// True when the edits were applied.
    success: bool,
    /// Number of lines affected.
    lines_modified: usize,
    /// Lines of the file after the edit.
    new_total_lines: usize,
    /// Whether the file is new.
    file_created: bool,
    /// The file's hash after the call; give it as `expected_hash` of the next edit.
    hash: String,
    /// The hash that the edit would give the file, when it was a dry run.
    hash_would_be: String,
    /// What changed, as a unified diff of at most 200 lines.
    diff: String,
    /// False when the edits left the file as it was.
    changed: bool,
    /// True when nothing was written because the call asked so.
    dry_run: bool,
    /// What else there is to know, such as other hard links that keep the old text.
    notes: Vec<String>,
    /// Set instead of everything else when the call failed.
    error: ErrorShape,
}

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit file";
    const EFFECT: Effect = Effect::Edits;
    type Toolset = super::Flat;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<EditFileAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        let edits = self.edits.iter().flatten();
        let edits = edits.map(|edit| (edit.operation, edit.content.as_deref()));
        argument_errors(edits, self.append.as_deref())
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let edits = self.edits.unwrap_or_default();
        let request = EditRequest {
            name: self.name,
            edits: edits
                .into_iter()
                .map(|edit| line_edit(edit.line.index(Base::Zero), edit.operation, edit.content))
                .collect(),
            append: self.append,
            create: match self.create_if_missing {
                None => IfMissing::ByEdits,
                Some(true) => IfMissing::Always,
                Some(false) => IfMissing::Never,
            },
            expected: self.expected_hash.and_then(|hash| hash.parse().ok()),
            mode: Mode::of(self.dry_run),
            base: Base::Zero,
            verify: self.verify,
        };
        let edited = edit(cx, &request)?;
        Ok(reply(&request, edited))
    }
}

fn reply(request: &EditRequest, edited: LineEditOutcome) -> ToolOutput {
    let mut data = plain_data(&edited);
    let LineEditOutcome {
        lines_modified,
        total_lines,
        created,
        changed,
        before,
        after,
        diff,
        notes,
    } = edited;
    let text = format!(
        "File edited successfully: {}\nLines modified: {lines_modified}\nTotal lines: {total_lines}\nFile created: {created}",
        request.name
    );
    let outcome = Outcome { before, after, changed, mode: request.mode, notes };
    let mut more = outcome.lines(None).join("\n");
    if !diff.is_empty() {
        let _ = write!(more, "\n\n{diff}");
    }
    data.insert("diff".into(), diff.into());
    outcome.add_to(&mut data);
    let hash = outcome.hash();
    ToolOutput {
        blocks: vec![text.into(), more.into()],
        data: Some(data),
        hash,
        ..ToolOutput::default()
    }
}

/// Returns the four facts of the contract.
pub(super) fn plain_data(edited: &LineEditOutcome) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("success".into(), true.into());
    data.insert("lines_modified".into(), edited.lines_modified.into());
    data.insert("file_created".into(), edited.created.into());
    data.insert("new_total_lines".into(), edited.total_lines.into());
    data
}

/// Checks edits for what the JSON schema cannot express.
pub(super) fn argument_errors<'a>(
    edits: impl Iterator<Item = (Operation, Option<&'a str>)>,
    append: Option<&'a str>,
) -> Vec<ArgumentError> {
    let blank = "`content` may be an empty string, for a blank line";
    let nul = ArgumentError::new("Content contains a NUL character", "a text file cannot hold one");
    let mut errors = Vec::new();
    for (operation, content) in edits {
        match (operation, content) {
            (Operation::Delete, Some(_)) => errors.push(ArgumentError::new(
                "Delete operation cannot specify content",
                "leave `content` out, or use `replace`",
            )),
            (Operation::Replace, None) => {
                errors.push(ArgumentError::new("Content is required for replace operation", blank));
            }
            (Operation::Insert, None) => {
                errors.push(ArgumentError::new("Content is required for insert operation", blank));
            }
            (_, Some(content)) if answer::has_nul(content) => errors.push(nul.clone()),
            _ => {}
        }
    }
    if append.is_some_and(answer::has_nul) {
        errors.push(nul);
    }
    errors
}

pub(super) fn line_edit(line: usize, operation: Operation, content: Option<String>) -> LineEdit {
    let content = content.unwrap_or_default(); // `argument_errors` refuses edits that lack it
    let op = match operation {
        Operation::Replace => LineOp::Replace(content),
        Operation::Insert => LineOp::Insert(content),
        Operation::Delete => LineOp::Delete,
    };
    LineEdit { line, op }
}

/// An edit as both dialects request it.
pub(super) struct EditRequest {
    pub name: String,
    /// Lines counted from 0.
    pub edits: Vec<LineEdit>,
    pub append: Option<String>,
    pub create: IfMissing,
    pub expected: Option<Hash>,
    pub mode: Mode,
    pub base: Base,
    pub verify: Option<Verify>,
}

/// The handling of a missing file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfMissing {
    /// The file stays missing.
    Never,
    /// The file is created if there is something to put in.
    ByEdits,
    /// The file is created, empty if need be.
    Always,
}

/// The effect of the edits, made or in a dry run.
pub(super) struct LineEditOutcome {
    pub lines_modified: usize,
    pub total_lines: usize,
    pub created: bool,
    pub changed: bool,
    /// See [`answer::hash_before`].
    pub before: Option<Hash>,
    /// The hash after the call, or the one it would be in a dry run.
    pub after: Hash,
    pub diff: String,
    pub notes: Vec<String>,
}

pub(super) fn edit(cx: &Context, request: &EditRequest) -> Result<LineEditOutcome, Failure> {
    let path = super::path(cx.root, &request.name)?;
    let mut verifier = Verifier::new(request.verify, &request.name, request.base, cx);
    let outcome = verifier.run(|verifier| {
        Updater::new(cx.store).update_one(&path, cx.call, |version| {
            let (bytes, edited) = change(cx, request, version)?;
            let bytes = Arc::new(bytes);
            verifier.admit(&Versions::new(version, &bytes))?;
            let change = match request.mode {
                Mode::Write if edited.changed => Change::Write(bytes),
                Mode::Write | Mode::DryRun => Change::Keep,
            };
            Ok((change, edited))
        })
    });
    match outcome {
        Ok((saved, mut edited)) => {
            edited.notes = answer::notes(&saved).into_iter().chain(verifier.note()).collect();
            Ok(edited)
        }
        Err(UpdateError::Change(failure)) => Err(failure),
        Err(UpdateError::Store(error)) => Err(super::refused(&request.name, &error, cx.limits)),
    }
}

/// Returns the new contents of the file and the facts for the answer.
fn change(
    cx: &Context,
    request: &EditRequest,
    version: Option<&Version>,
) -> Result<(Vec<u8>, LineEditOutcome), Failure> {
    let is_missing = version.is_none();
    let appends = match &request.append {
        // An empty `append` is valid, but does not by itself create a file.
        Some(text) => !text.is_empty() || !is_missing || request.create != IfMissing::ByEdits,
        None => false,
    };
    let is_empty_handed = request.edits.is_empty() && !appends;
    if is_empty_handed && !(is_missing && request.create == IfMissing::Always) {
        let message = "No edits or append content provided";
        return Err(Failure::new(FailureKind::Invalid, message)
            .with_argument_errors(vec![message.into()])
            .with_hint(
                "give `edits` or `append`, or `create_if_missing: true` for a new empty file",
            ));
    }
    let before = answer::hash_before(version, request.expected, request.mode);
    answer::check_hash(&request.name, request.expected, before)?;
    if is_missing && request.create == IfMissing::Never {
        return Err(super::not_found(&request.name)
            .with_hint("set `create_if_missing` to true to create it"));
    }
    let old = match version {
        Some(version) => Text::decode(version.bytes.clone()).map_err(|r| super::not_text(&r))?,
        None => Text::empty(),
    };
    let plan = by_line::plan(old.as_str(), &request.edits, request.append.as_deref())
        .map_err(|error| edit_failure(&error, request.base))?;
    let splices = splice::offset_by(plan.splices, old.whole().len() - old.as_str().len());
    let new = splice::apply(old.whole(), &splices);
    if new.len() as u64 > cx.limits.max_size {
        let error = StoreError::TooLarge { size: new.len() as u64, max: cx.limits.max_size };
        return Err(super::refused(&request.name, &error, cx.limits));
    }
    let names = DiffNames { old: &request.name, new: &request.name };
    let diff = diff::unified_within(
        old.whole(),
        &new,
        &ComposedSplices::from_splices(&splices),
        names,
        cx.limits.diff_lines,
    );
    let changed = is_missing || !diff.is_empty();
    let edited = LineEditOutcome {
        lines_modified: plan.lines_modified,
        total_lines: plan.total_lines,
        created: is_missing,
        changed,
        before,
        after: Hash::of(new.as_bytes()),
        diff,
        notes: Vec::new(),
    };
    Ok((new.into_bytes(), edited))
}

/// Makes the failure for an edit that does not fit, in the caller's line numbers.
fn edit_failure(error: &EditError, base: Base) -> Failure {
    let kind = FailureKind::from(error);
    match error {
        EditError::LineOutOfRange { line, op, valid, .. } => {
            let line = base.show(*line);
            let message = format!("Line {line} out of range for {op} operation");
            let hint = base.interval(valid.clone());
            Failure::new(kind, message.clone()).with_argument_errors(vec![message]).with_hint(hint)
        }
        EditError::LineConflict { edit, prior, line } => {
            let line = base.show(*line);
            let message =
                format!("Edit {edit} conflicts with edit {prior}: both target line {line}");
            Failure::new(kind, message).with_hint(
                "combine the changes of this line in one edit; edits are numbered from 0",
            )
        }
    }
}
