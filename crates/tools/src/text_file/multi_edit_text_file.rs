//! `multi_edit_text_file`: strings replaced one after another, all or nothing, with one diff of it all.

use std::cell::Cell;
use std::sync::Arc;

use files::{Change, Hash, UpdateError, Updater, Version};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use text::diff::{self, DiffNames};
use text::exact::{AppliedEdit, MatchKind, Matching, Pick, StagedText};
use text::{IndentShift, StringEdit, Text};

use super::refusal;
use crate::answer::{self, ErrorShape, Mode, Outcome};
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::store_error::FileAction;
use crate::syntax::{Verifier, Verify, Versions};
use crate::{ArgumentError, Context, Effect, Failure, FailureKind, Tool, ToolOutput, schema};

/// Most notes on edits, and most runs of edits that one note names.
const MAX_NOTES: usize = 20;
const MAX_RUNS: usize = 10;

/// Replace exact strings in a text file. Edits apply in order, each to what those before it left; all or none. Each `old_string` must occur exactly once, unless `replace_all`, `expected_count` or `near_line` is given. All else stays as it is, line endings too. Lines count from 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MultiEditTextFile {
    /// Absolute path to the file
    path: String,
    /// Array of edit operations to apply sequentially
    edits: Vec<Edit>,
    /// For all edits
    #[serde(rename = "match")]
    matching: Option<Match>,
    /// Hash you last got; if the file changed since, nothing is written
    #[schemars(regex(pattern = "^[0-9a-fA-F]{16}$"))]
    expected_hash: Option<String>,
    /// Only answer; write nothing
    dry_run: Option<bool>,
    /// Refuse new syntax errors
    verify: Option<Verify>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Edit {
    /// Exact string to find and replace
    old_string: String,
    /// Replacement string
    new_string: String,
    /// Replace every match
    replace_all: Option<bool>,
    /// Matches there must be; all are replaced, or the one by `near_line`
    #[schemars(range(min = 1))]
    expected_count: Option<LineNumber>,
    /// Replace only the match nearest to this line (1-indexed, before all edits)
    #[schemars(range(min = 1))]
    near_line: Option<LineNumber>,
    /// `ignore_whitespace`: whole lines may differ in blanks; `new_string` is indented as the file is
    #[serde(rename = "match")]
    matching: Option<Match>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Match {
    Exact,
    IgnoreWhitespace,
}

/// What `multi_edit_text_file` answers.
#[derive(JsonSchema)]
#[expect(dead_code, clippy::struct_excessive_bools, reason = "only its schema is used")]
struct MultiEditTextFileAnswer {
    success: bool,
    diff: String,
    applied_count: usize,
    line_ranges: Vec<LineRangeShape>,
    hash: String,
    hash_would_be: String,
    changed: bool,
    eol_adjusted: bool,
    dry_run: bool,
    notes: Vec<String>,
    error: ErrorShape,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct LineRangeShape {
    edit_index: usize,
    /// Lines of `old_string` just before this edit
    start: usize,
    end: usize,
    /// Lines of `new_string` after all edits
    final_start: usize,
    final_end: usize,
}

impl Tool for MultiEditTextFile {
    const NAME: &'static str = "multi_edit_text_file";
    const TITLE: &'static str = "Edit text file";
    const EFFECT: Effect = Effect::Edits;
    type Toolset = super::TextFiles;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<MultiEditTextFileAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check_raw(arguments: &Value) -> Vec<ArgumentError> {
        let mut errors = super::path_errors(arguments);
        if arguments["edits"].as_array().is_some_and(Vec::is_empty) {
            let hint = "give at least one edit with `old_string` and `new_string`";
            errors.push(ArgumentError::unusable("Edits array cannot be empty", hint));
        }
        errors
    }

    fn check(&self) -> Vec<ArgumentError> {
        let mut errors = Vec::new();
        for (index, edit) in self.edits.iter().enumerate() {
            if answer::has_nul(&edit.new_string) {
                errors.push(super::nul_in(&format!("edits[{index}].new_string")));
            }
            if edit.replace_all == Some(true) && edit.near_line.is_some() {
                let message = format!("`edits[{index}]` has both `replace_all` and `near_line`");
                errors.push(ArgumentError::new(
                    message,
                    "use one of them: `replace_all` replaces every match, `near_line` the nearest",
                ));
            }
        }
        errors
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.path]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let path = super::path(cx.root, &self.path, FileAction::Edit)?;
        let size = Cell::new(0);
        // True if the edits fitted the file in an earlier attempt.
        let fitted = Cell::new(false);
        let mut verifier = Verifier::new(self.verify, &self.path, Base::One, cx);
        let outcome = verifier.run(|verifier| {
            Updater::new(cx.store).update_one(&path, cx.call, |version| {
                let (new, edited) =
                    self.change(version, cx).map_err(|failure| match failure.kind {
                        FailureKind::NoMatch | FailureKind::Ambiguous | FailureKind::Conflict
                            if fitted.get() =>
                        {
                            let current = version.map(|version| Hash::of(&version.bytes));
                            refusal::no_longer_fits(&failure, &self.path, current)
                        }
                        _ => failure,
                    })?;
                fitted.set(true);
                size.set(new.len());
                let new = Arc::new(new.into_bytes());
                verifier.admit(&Versions::new(version, &new))?;
                let change = match Mode::of(self.dry_run) {
                    Mode::DryRun => Change::Keep,
                    Mode::Write => Change::Write(new),
                };
                Ok((change, edited))
            })
        });
        match outcome {
            Ok((saved, edited)) => {
                let after = saved.restyled.unwrap_or(edited.after);
                let notes = answer::notes(&saved).into_iter().chain(verifier.note()).collect();
                Ok(self.reply(StringEditOutcome { after, ..edited }, notes))
            }
            Err(UpdateError::Change(Failure { kind: FailureKind::NotFound, .. })) => {
                Err(super::missing(&self.path, &path, cx, FileAction::Edit))
            }
            Err(UpdateError::Change(failure)) => Err(failure),
            Err(UpdateError::Store(error)) => {
                Err(super::unwritten(&self.path, &error, cx.limits, FileAction::Edit, size.get()))
            }
        }
    }
}

/// The effect of the edits, made or in a dry run.
struct StringEditOutcome {
    applied: Vec<AppliedEdit>,
    diff: String,
    changed: bool,
    /// See [`answer::hash_before`].
    before: Option<Hash>,
    /// The hash that is or would be.
    after: Hash,
}

impl MultiEditTextFile {
    fn change(
        &self,
        version: Option<&Version>,
        cx: &Context,
    ) -> Result<(String, StringEditOutcome), Failure> {
        let version = version.ok_or_else(|| super::not_found(&self.path, FileAction::Edit))?;
        let expected = self.expected_hash.as_ref().and_then(|hash| hash.parse().ok());
        let before = answer::hash_before(Some(version), expected, Mode::of(self.dry_run));
        answer::check_hash(&super::short(&self.path), expected, before)?;
        let old = Text::decode(version.bytes.clone())
            .map_err(|reason| super::not_text(&self.path, &reason, FileAction::Edit))?;
        let max_size = usize::try_from(cx.limits.max_size).unwrap_or(usize::MAX);
        let mut staged = StagedText::new(&old, max_size);
        for edit in &self.edits {
            // A list can be long, and every edit searches the whole text.
            cx.call.check().map_err(|error| Self::refused(&self.path, &error, cx.limits))?;
            let edit = self.string_edit(edit);
            staged
                .apply(edit)
                .map_err(|error| refusal::of(&error, edit, &staged, &self.path, cx))?;
        }
        let (new, composed, applied) = staged.finish();
        let name = super::file_name(&self.path);
        let diff = diff::unified(old.whole(), &new, &composed, DiffNames { old: name, new: name });
        let (changed, after) = (!diff.is_empty(), Hash::of(new.as_bytes()));
        Ok((new, StringEditOutcome { applied, diff, changed, before, after }))
    }

    fn string_edit<'a>(&'a self, edit: &'a Edit) -> StringEdit<'a> {
        let count = edit.expected_count.map(|count| count.index(Base::Zero));
        let pick = match edit.near_line {
            Some(line) => Pick::Near(line.index(Base::One)),
            None if edit.replace_all == Some(true) || count > Some(1) => Pick::All,
            None => Pick::Only,
        };
        let matching = match edit.matching.or(self.matching) {
            Some(Match::IgnoreWhitespace) => Matching::IgnoreWhitespace,
            Some(Match::Exact) | None => Matching::Exact,
        };
        StringEdit { old: &edit.old_string, new: &edit.new_string, pick, count, matching }
    }

    fn reply(&self, edited: StringEditOutcome, saved: Vec<String>) -> ToolOutput {
        let StringEditOutcome { applied, diff, changed, before, after } = edited;
        let notes = notes(&applied).into_iter().chain(saved).collect();
        let mode = Mode::of(self.dry_run);
        let outcome = Outcome { before, after, changed, mode, notes };
        let (count, hash) = (applied.len(), outcome.hash());
        let plural = if count == 1 { "" } else { "s" };
        let words = outcome.lines(Some(format!("{count} edit{plural} applied")));

        let mut data = Map::new();
        data.insert("success".into(), true.into());
        data.insert("diff".into(), diff.clone().into());
        data.insert("applied_count".into(), count.into());
        data.insert("line_ranges".into(), line_ranges(&applied));
        if applied.iter().any(|edit| matches!(edit.match_kind, MatchKind::ConvertedEndings(_))) {
            data.insert("eol_adjusted".into(), true.into());
        }
        outcome.add_to(&mut data);
        let blocks = vec![diff.into(), words.join("\n").into()];
        let meta = super::hash_meta(hash);
        ToolOutput { blocks, data: Some(data), hash, meta, ..ToolOutput::default() }
    }
}

fn line_ranges(applied: &[AppliedEdit]) -> Value {
    let places = applied.iter().enumerate().flat_map(|(index, edit)| {
        edit.replaced.iter().map(move |place| {
            json!({
                "edit_index": index,
                "start": place.before.first + 1,
                "end": place.before.last + 1,
                "final_start": place.after.first + 1,
                "final_end": place.after.last + 1,
            })
        })
    });
    places.collect()
}

/// Returns notes on what an agent would not expect of edits; a note on several of them is given once.
fn notes(applied: &[AppliedEdit]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, note) in applied.iter().enumerate().flat_map(|(index, edit)| {
        let found = match_note(&edit.match_kind).into_iter();
        found.chain(count_note(edit)).map(move |note| (index, note))
    }) {
        let is_full = notes.len() >= MAX_NOTES;
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, edits)) => edits.push(index),
            None if !is_full => notes.push((note, vec![index])),
            None => {}
        }
    }
    notes.into_iter().map(|(note, edits)| format!("{}: {note}", numbers(&edits))).collect()
}

/// Writes `edit 3`, or `edits 0-5, 8`; of many, the first ones and how many there are in all.
fn numbers(edits: &[usize]) -> String {
    let runs = edits.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    let (runs, plural) = (runs.collect::<Vec<_>>(), if edits.len() == 1 { "" } else { "s" });
    let more = match runs.len().saturating_sub(MAX_RUNS) {
        0 => String::new(),
        _ => format!(" and more, {} in all", edits.len()),
    };
    format!("edit{plural} {}{more}", runs[..runs.len().min(MAX_RUNS)].join(", "))
}

fn match_note(found: &MatchKind) -> Option<String> {
    let moved = match found {
        MatchKind::Exact => return None,
        MatchKind::SplitLineBreak => {
            return Some("half of a CRLF line break was replaced; the other half is left".into());
        }
        MatchKind::ConvertedEndings(ending) => {
            let ending = ending.as_str();
            return Some(format!(
                "the line breaks of old_string were read as {ending:?}, as in the file"
            ));
        }
        MatchKind::IgnoredWhitespace(IndentShift::Same) => "as it is".into(),
        MatchKind::IgnoredWhitespace(IndentShift::Deeper(more)) => {
            format!("with {} added before each line", spaces_and_tabs(more))
        }
        MatchKind::IgnoredWhitespace(IndentShift::Shallower(less)) => {
            format!("with {} removed before each line", spaces_and_tabs(less))
        }
        MatchKind::IgnoredWhitespace(IndentShift::Tabs(width)) => {
            format!("with a tab for every {width} spaces")
        }
        MatchKind::IgnoredWhitespace(IndentShift::Spaces(width)) => {
            format!("with {width} spaces for every tab")
        }
    };
    Some(format!("matched with whitespace ignored; new_string was inserted {moved}"))
}

/// Writes `4 spaces`, `1 tab`, `1 tab and 2 spaces`.
fn spaces_and_tabs(indentation: &str) -> String {
    let count = |blank: char, name: &str| match indentation.matches(blank).count() {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let counts = [count('\t', "tab"), count(' ', "space")];
    counts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn count_note(edit: &AppliedEdit) -> Option<String> {
    let (count, shown) = (edit.count, edit.replaced.len());
    match shown < count {
        _ if count == 1 => None,
        true => Some(format!("{count} matches; line_ranges has the first {shown}")),
        false => Some(format!("{count} matches")),
    }
}
