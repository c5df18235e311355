//! `ai_edit_code`: lines inserted, replaced or deleted.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use files::{Change, Hash, StoreError, UpdateError, Updater, Version};
use model::{EditScope, LineLoss};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::diff::{self, DiffNames};
use text::lines::count;
use text::{ComposedSplices, LineEdit, LineOp, LineRange, Text, by_line, splice};

use super::conflict;
use crate::answer::{self, Mode, Outcome, short};
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::syntax::{self, NewErrors, SyntaxCheck, Verifier, Verify, Versions};
use crate::{
    ArgumentError, Context, Effect, Failure, FailureKind, Generator, Tool, ToolOutput, schema,
};

/// The byte order mark.
const MARK: char = '\u{feff}';
/// Placeholder for several lines, until it is replaced.
const PLACEHOLDER: &str = "x";
/// Most syntax errors that a model is shown at once: most follow from the first.
const ERRORS_SHOWN_MAX: usize = 3;

/// Edit a source file by lines: insert, replace or delete them. Lines are 1-based, `start_line` and `end_line` both included. `code_block` is written as given, with the file's own line breaks; all else stays as it is. Pass a hash you were given as `expected_hash`, and lines that have changed since are not touched.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AiEditCode {
    /// Path of the file, relative to the folder
    target_file: String,
    /// What the edit is to do, in words
    edit_instruction: String,
    /// First line to replace or delete; `insert` puts the code before it (one past the last line, or left out: at the end)
    #[schemars(range(min = 1))]
    start_line: Option<LineNumber>,
    /// Last line to replace or delete (default: `start_line`)
    #[schemars(range(min = 1))]
    end_line: Option<LineNumber>,
    /// The code to put there, whole lines; not for `delete`
    code_block: Option<String>,
    /// Default: `replace` with `start_line`, else `insert`
    edit_type: Option<EditType>,
    /// Hash of the file or of the lines as you last saw them; if neither fits, nothing is written
    #[schemars(regex(pattern = "^[0-9a-fA-F]{16}$"))]
    expected_hash: Option<String>,
    /// Answer the same, but write nothing
    dry_run: Option<bool>,
    /// Refuse new syntax errors, rather than warn of them
    verify: Option<Verify>,
    #[serde(skip)]
    #[schemars(skip)]
    generated: Option<GeneratedText>,
}

/// The file with the code that a language model generated.
#[derive(Clone, Debug)]
struct GeneratedText {
    /// The whole new text, and the hash of the file it was made from.
    text: Arc<String>,
    before: Hash,
    by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EditType {
    Insert,
    Replace,
    Delete,
}

/// What `ai_edit_code` answers.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AiEditCodeAnswer {
    status: Status,
    file_path: String,
    message: String,
    diff: String,
    hash: String,
    changed: bool,
    generated_by: String,
    dry_run: bool,
    hash_would_be: String,
    notes: Vec<String>,
    syntax_warnings: Vec<SyntaxWarning>,
    /// Those left out
    more_syntax_warnings: usize,
    /// After a failure
    code: String,
    error: String,
    hint: String,
    /// Of the lines as they are now, when they are not those expected
    start_line: usize,
    end_line: usize,
    lines: Vec<String>,
    lines_hash: String,
    moved_to: Lines,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Status {
    Success,
    Failure,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct SyntaxWarning {
    line: usize,
    column: usize,
    message: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Lines {
    start_line: usize,
    end_line: usize,
}

impl Tool for AiEditCode {
    const NAME: &'static str = "ai_edit_code";
    const ALIAS: Option<&'static str> = Some("ai_code_editing.edit_file");
    const TITLE: &'static str = "Edit code";
    const EFFECT: Effect = Effect::Rewrites;
    type Toolset = super::Code;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<AiEditCodeAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        let (lines, ends) = (self.start_line.is_some(), self.end_line.is_some());
        let mut errors = Vec::new();
        if ends && !lines {
            errors.push(ArgumentError::new(
                "`end_line` was given without `start_line`",
                "give both, or `start_line` alone for one line",
            ));
        }
        if let (Some(start), Some(end)) = (self.start_line, self.end_line)
            && start > end
        {
            errors.push(ArgumentError::new(
                format!("`start_line` {} is after `end_line` {}", start.given(), end.given()),
                "both lines are included, so they may be the same",
            ));
        }
        match self.edit_type() {
            EditType::Insert if ends => errors.push(ArgumentError::new(
                "`insert` has no `end_line`",
                "leave it out, or use `replace`",
            )),
            EditType::Replace | EditType::Delete if !lines => errors.push(ArgumentError::new(
                format!("`{}` needs `start_line`", self.edit_type().name()),
                "say which lines; `end_line` may be left out for one line",
            )),
            EditType::Delete if self.code_block.is_some() => errors.push(ArgumentError::new(
                "`delete` cannot have a `code_block`",
                "leave it out, or use `replace`",
            )),
            _ => {}
        }
        if self.code_block.as_deref().is_some_and(answer::has_nul) {
            errors.push(ArgumentError::new(
                "`code_block` contains a NUL character",
                "a text file cannot hold one",
            ));
        }
        errors
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.target_file]
    }

    fn needs_generation(&self) -> bool {
        self.code_block.is_none() && self.edit_type() != EditType::Delete
    }

    fn generate(self, cx: &Context, generator: &Generator) -> Result<[Self; 2], Failure> {
        let path = super::path(cx.root, &self.target_file)?;
        let refused = |error| super::refused(&self.target_file, &error, cx.limits);
        let version = cx.store.read_for_update(&path, cx.call).map_err(refused)?;
        let (old, before) = self.read(version.as_ref())?;
        let generated = self.generate_text(&old, before, cx, generator)?;
        let ready = Self { generated: Some(generated), ..self };
        Ok([ready.clone(), ready])
    }

    fn generated_bytes(&self) -> usize {
        self.generated.as_ref().map_or(0, |generated| generated.text.len())
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let path = super::path(cx.root, &self.target_file)?;
        let mut verifier = Verifier::new(self.verify, &self.target_file, Base::One, cx);
        let outcome = verifier.run(|verifier| {
            Updater::new(cx.store).update_one(&path, cx.call, |version| {
                let (bytes, edited) = self.change(version, cx)?;
                let bytes = Arc::new(bytes);
                let versions = Versions::new(version, &bytes);
                verifier.admit(&versions)?;
                let change = match Mode::of(self.dry_run) {
                    Mode::Write if edited.outcome.changed => Change::Write(bytes),
                    Mode::Write | Mode::DryRun => Change::Keep,
                };
                Ok((change, (edited, versions)))
            })
        });
        match outcome {
            Ok((saved, (mut edited, versions))) => {
                edited.outcome.after = saved.restyled.unwrap_or(edited.outcome.after);
                edited.outcome.notes = answer::notes(&saved);
                edited.outcome.notes.extend(verifier.note());
                edited.errors = self.warn_of(&versions, cx);
                Ok(self.reply(edited))
            }
            Err(UpdateError::Change(failure)) => Err(failure),
            Err(UpdateError::Store(error)) => {
                Err(super::refused(&self.target_file, &error, cx.limits))
            }
        }
    }
}

/// The effect of the edit, made or in a dry run.
struct CodeEdit {
    outcome: Outcome,
    diff: String,
    errors: Option<NewErrors>,
}

impl EditType {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Replace => "replace",
            Self::Delete => "delete",
        }
    }
}

impl AiEditCode {
    fn edit_type(&self) -> EditType {
        let by_lines = if self.start_line.is_some() { EditType::Replace } else { EditType::Insert };
        self.edit_type.unwrap_or(by_lines)
    }

    /// Returns the lines that the edit is about, counted from 0; `None` for the end of the file.
    fn lines(&self) -> Option<Range<usize>> {
        let start = self.start_line?.index(Base::One);
        let last = self.end_line.map_or(start, |end| end.index(Base::One));
        Some(start..last.saturating_add(1))
    }

    /// Returns the file as it is and its hash, if it is what the caller last saw.
    fn read(&self, version: Option<&Version>) -> Result<(Text, Hash), Failure> {
        let version = version.ok_or_else(|| super::not_found(&self.target_file))?;
        let text = Text::decode(version.bytes.clone())
            .map_err(|reason| super::not_text(&self.target_file, &reason))?;
        let before = Hash::of(&version.bytes);
        if let Some(expected) = self.expected_hash.as_ref().and_then(|hash| hash.parse().ok()) {
            self.check_hash(text.as_str(), before, self.lines().as_ref(), expected)?;
        }
        Ok((text, before))
    }

    /// Has the language model generate the new text.
    fn generate_text(
        &self,
        old: &Text,
        before: Hash,
        cx: &Context,
        generator: &Generator,
    ) -> Result<GeneratedText, Failure> {
        let total = count(old.as_str());
        let lines = self.lines();
        let scope = match (self.edit_type(), &lines, self.edit_type) {
            (EditType::Insert, Some(lines), _) => EditScope::Before(lines.start),
            (EditType::Insert, None, Some(_)) => EditScope::Before(total),
            (_, Some(lines), _) => {
                EditScope::Lines(LineRange { first: lines.start, last: lines.end - 1 })
            }
            _ => EditScope::File,
        };
        if scope != EditScope::File {
            self.check_lines(lines.unwrap_or(total..total + 1), total)?;
        }
        let request = model::GenerationRequest {
            path: &self.target_file,
            text: old.as_str(),
            instruction: &self.edit_instruction,
            scope,
            loss: LineLoss::Refused,
        };
        let why = || syntax::interrupted(cx);
        let cancelled = || why().is_some();
        let check = |new: &str| match new {
            new if answer::has_nul(new) => Err("it contains a NUL character".into()),
            new if new.starts_with(MARK) => Err("it begins with a byte order mark".into()),
            new => match syntax::check_syntax(&self.target_file, old.as_str(), new, &cancelled) {
                SyntaxCheck::Failed(errors) => Err(unparsable(&errors)),
                SyntaxCheck::Passed | SyntaxCheck::Skipped(_) => Ok(()),
            },
        };
        let generated =
            model::generate(generator.model, &request, &check, &cancelled, generator.progress);
        let generated = generated.map_err(|error| match (error, why()) {
            (model::Error::Cancelled, Some(why)) => {
                super::refused(&self.target_file, &why, cx.limits)
            }
            (error, _) => super::unwritten(&error),
        })?;
        let mark = &old.whole()[..old.whole().len() - old.as_str().len()];
        let text = Arc::new([mark, &generated.text].concat());
        Ok(GeneratedText { text, before, by: generator.model.model().to_owned() })
    }

    /// Returns the errors that the agent's own code introduced. Generated code was refused for them, and so was a
    /// verified edit.
    fn warn_of(&self, versions: &Versions, cx: &Context) -> Option<NewErrors> {
        if self.generated.is_some() || self.verify.is_some() {
            return None;
        }
        match versions.check_syntax(&self.target_file, &|| syntax::interrupted(cx).is_some()) {
            SyntaxCheck::Failed(errors) => Some(errors),
            SyntaxCheck::Passed | SyntaxCheck::Skipped(_) => None,
        }
    }

    /// Returns the new contents of the file, and the facts for the answer.
    fn change(&self, old: Option<&Version>, cx: &Context) -> Result<(Vec<u8>, CodeEdit), Failure> {
        let (old, before) = self.read(old)?;
        let (new, changed) = match &self.generated {
            Some(generated) if generated.before != before => {
                return Err(Failure::stale(&short(&self.target_file), Some(before)).with_hint(
                    "it changed while the model was writing; nothing was written, call again",
                ));
            }
            Some(generated) => {
                let mut changed = ComposedSplices::new();
                changed.add(0..old.whole().len(), generated.text.len());
                (generated.text.to_string(), changed)
            }
            None => self.edit(&old)?,
        };
        let mode = Mode::of(self.dry_run);
        let (size, max) = (new.len() as u64, cx.limits.max_size);
        if size > max {
            let error = StoreError::TooLarge { size, max };
            return Err(super::refused(&self.target_file, &error, cx.limits));
        }
        let [a, b] = ["a", "b"].map(|side| format!("{side}/{}", self.target_file));
        let names = DiffNames { old: &a, new: &b };
        let diff = diff::unified_within(old.whole(), &new, &changed, names, cx.limits.diff_lines);
        let outcome = Outcome {
            before: Some(before),
            after: Hash::of(new.as_bytes()),
            changed: !diff.is_empty(),
            mode,
            notes: Vec::new(),
        };
        Ok((new.into_bytes(), CodeEdit { outcome, diff, errors: None }))
    }

    /// Checks the expected hash, which may be that of the file or of the lines: a caller that was shown a few lines has
    /// no other.
    fn check_hash(
        &self,
        text: &str,
        file: Hash,
        lines: Option<&Range<usize>>,
        expected: Hash,
    ) -> Result<(), Failure> {
        let of_lines = || lines.and_then(|lines| conflict::hash_of_lines(text, lines));
        if expected == file || of_lines() == Some(expected) {
            return Ok(());
        }
        Err(conflict::refuse(&self.target_file, text, file, lines, expected))
    }

    /// Checks that the file has such lines.
    fn check_lines(&self, lines: Range<usize>, total: usize) -> Result<Range<usize>, Failure> {
        let kind = self.edit_type();
        let (last, valid) = match kind {
            EditType::Insert => (lines.start, 0..total + 1),
            EditType::Replace | EditType::Delete => (lines.end - 1, 0..total),
        };
        let missing = [lines.start, last].into_iter().find(|line| !valid.contains(line));
        let Some(line) = missing else { return Ok(lines) };
        let (line, name) = (Base::One.show(line), kind.name());
        let message = format!("Line {line} out of range for {name} operation");
        Err(Failure::new(FailureKind::Invalid, message.clone())
            .with_argument_errors(vec![message])
            .with_hint(Base::One.interval(valid)))
    }

    /// Returns the new text, and the changes made to the old one.
    fn edit(&self, old: &Text) -> Result<(String, ComposedSplices), Failure> {
        let total = count(old.as_str());
        let lines = self.check_lines(self.lines().unwrap_or(total..total + 1), total)?;
        let mark = old.whole().len() - old.as_str().len();
        let mut changed = ComposedSplices::new();
        // Several lines are joined to one, with the last one's break, and that is edited. It holds a placeholder, since
        // a blank line may not be a line without those around it.
        let joined = match self.edit_type() {
            EditType::Replace | EditType::Delete if lines.len() > 1 => {
                let line = |line| text::lines::lines(old.as_str()).nth(line);
                let (Some(first), Some(last)) = (line(lines.start), line(lines.end - 1)) else {
                    return Err(Failure::new(FailureKind::Internal, "Internal error"));
                };
                changed.add(mark + first.start..mark + last.end, PLACEHOLDER.len());
                let (above, below) = (&old.as_str()[..first.start], &old.as_str()[last.end..]);
                Cow::Owned([above, PLACEHOLDER, below].concat())
            }
            _ => Cow::Borrowed(old.as_str()),
        };
        let code = || self.code_block.clone().unwrap_or_default();
        let op = match self.edit_type() {
            EditType::Insert => LineOp::Insert(code()),
            EditType::Replace => LineOp::Replace(code()),
            EditType::Delete => LineOp::Delete,
        };
        let plan = by_line::plan(&joined, &[LineEdit { line: lines.start, op }], None)
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        let new = splice::apply(&joined, &plan.splices);
        for splice in splice::offset_by(plan.splices, mark).iter().rev() {
            changed.add(splice.range.clone(), splice.text.len());
        }
        Ok(([&old.whole()[..mark], &new].concat(), changed))
    }

    fn reply(&self, CodeEdit { outcome, diff, errors }: CodeEdit) -> ToolOutput {
        let message = match (outcome.mode, outcome.changed) {
            (Mode::Write, true) => "File updated successfully.",
            (Mode::Write, false) => "Nothing changed: the file already has this text.",
            (Mode::DryRun, true) => "Dry run: nothing was written.",
            (Mode::DryRun, false) => "Dry run: nothing would change.",
        };
        let path = short(&self.target_file);
        let mut text = format!("{message}\n{path}");
        if let Some(GeneratedText { by, .. }) = &self.generated {
            let _ = write!(text, "\ngenerated by {}", short(by));
        }
        let warnings = errors.iter().flat_map(NewErrors::warnings);
        for line in outcome.hash_lines().into_iter().chain(warnings) {
            let _ = write!(text, "\n{line}");
        }
        let mut blocks = vec![text.into()];
        if !diff.is_empty() {
            blocks.push(diff.clone().into());
        }
        let mut data = Map::new();
        data.insert("status".into(), "success".into());
        data.insert("file_path".into(), self.target_file.clone().into());
        data.insert("message".into(), message.into());
        data.insert("diff".into(), diff.into());
        outcome.add_to(&mut data);
        if let Some(errors) = &errors {
            errors.add_to(&mut data);
        }
        let by = self.generated.as_ref().map_or("agent", |generated| &generated.by);
        data.insert("generated_by".into(), by.into());
        let hash = outcome.hash();
        ToolOutput { blocks, data: Some(data), hash, ..ToolOutput::default() }
    }
}

/// Tells a language model why its code does not parse.
fn unparsable(errors: &NewErrors) -> String {
    let places = errors.describe(ERRORS_SHOWN_MAX, Base::One).join("; ");
    format!("the file would have new syntax errors: {places}")
}
