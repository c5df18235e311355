//! `write_text_file`: a whole file, created or replaced.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use files::{Change, DirPath, Hash, MissingFolders, StoreError, UpdateError, Updater, Version};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::diff::{self, DiffNames};
use text::{ComposedSplices, Text};

use crate::answer::{self, ErrorShape, Mode, Outcome};
use crate::line_number::Base;
use crate::schema::SchemaViolation;
use crate::store_error::FileAction;
use crate::syntax::{Verifier, Verify, Versions};
use crate::{ArgumentError, Context, Effect, Failure, Limits, Tool, ToolOutput, schema};

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Create or overwrite a text file. To change parts of one use `multi_edit_text_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WriteTextFile {
    /// Absolute path to the file
    path: String,
    /// Complete file content to write
    content: String,
    /// Create missing parent folders
    create_dirs: Option<bool>,
    /// Hash you last got; if the file changed since, nothing is written
    #[schemars(regex(pattern = "^[0-9a-fA-F]{16}$"))]
    expected_hash: Option<String>,
    /// Only answer, with a diff; write nothing
    dry_run: Option<bool>,
    /// Refuse new syntax errors
    verify: Option<Verify>,
}

/// What `write_text_file` answers.
#[derive(JsonSchema)]
#[expect(dead_code, clippy::struct_excessive_bools, reason = "only its schema is used")]
struct WriteTextFileAnswer {
    success: bool,
    bytes_written: usize,
    created: bool,
    hash: String,
    hash_would_be: String,
    changed: bool,
    bom_kept: bool,
    dry_run: bool,
    diff: String,
    notes: Vec<String>,
    error: ErrorShape,
}

impl Tool for WriteTextFile {
    const NAME: &'static str = "write_text_file";
    const TITLE: &'static str = "Write text file";
    const EFFECT: Effect = Effect::Overwrites;
    type Toolset = super::TextFiles;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<WriteTextFileAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check_raw(arguments: &Value) -> Vec<ArgumentError> {
        super::path_errors(arguments)
    }

    fn check(&self) -> Vec<ArgumentError> {
        answer::has_nul(&self.content).then(|| super::nul_in("content")).into_iter().collect()
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.path]
    }

    fn run(mut self, cx: &Context) -> Result<ToolOutput, Failure> {
        let path = super::path(cx.root, &self.path, FileAction::Write)?;
        let folders = match self.create_dirs {
            Some(true) => MissingFolders::Create,
            Some(false) | None => MissingFolders::Refuse,
        };
        let size = Cell::new(self.content.len());
        let content = Arc::new(std::mem::take(&mut self.content).into_bytes());
        let updater = Updater::new(cx.store).with_missing_folders(folders);
        let mut verifier = Verifier::new(self.verify, &self.path, Base::One, cx);
        let outcome = verifier.run(|verifier| {
            updater.update_one(&path, cx.call, |version| {
                let (bytes, written) = self.change(&content, version, cx)?;
                size.set(bytes.len());
                verifier.admit(&Versions::new(version, &bytes))?;
                let change = match Mode::of(self.dry_run) {
                    Mode::DryRun => Change::Keep,
                    Mode::Write => Change::Write(bytes),
                };
                Ok((change, written))
            })
        });
        match outcome {
            Ok((saved, written)) => {
                let after = saved.restyled.unwrap_or(written.after);
                let notes = answer::notes(&saved).into_iter().chain(verifier.note()).collect();
                Ok(self.reply(WriteOutcome { after, ..written }, notes))
            }
            Err(UpdateError::Change(failure)) => Err(failure),
            Err(UpdateError::Store(error)) => {
                let failure =
                    super::unwritten(&self.path, &error, cx.limits, FileAction::Write, size.get());
                Err(match error {
                    StoreError::NoFolder if is_folder(&path.parent(), cx) => Failure {
                        message: format!(
                            "Parent directory not found: the folder that {} links to",
                            super::short(&self.path)
                        ),
                        ..failure
                    }
                    .with_hint("make that folder, or write to another path"),
                    StoreError::NoFolder if folders == MissingFolders::Create => failure.with_hint(
                        "something on the way is a file, or a link to nothing, not a folder",
                    ),
                    StoreError::TooLarge { .. } => failure.with_hint(
                        "the file there now is that large; the limit is set by --max-size",
                    ),
                    _ => failure,
                })
            }
        }
    }
}

/// True if there is such a folder.
fn is_folder(folder: &DirPath, cx: &Context) -> bool {
    cx.store.list(folder, cx.call, &mut |_| ControlFlow::Break(())).is_ok()
}

/// The effect of the call on the file.
struct WriteOutcome {
    size: usize,
    created: bool,
    changed: bool,
    bom_kept: bool,
    /// See [`answer::hash_before`].
    before: Option<Hash>,
    /// The hash after the call, or the one it would be in a dry run.
    after: Hash,
    /// The diff of a dry run.
    diff: Option<String>,
}

impl WriteTextFile {
    fn change(
        &self,
        content: &Arc<Vec<u8>>,
        old: Option<&Version>,
        cx: &Context,
    ) -> Result<(Arc<Vec<u8>>, WriteOutcome), Failure> {
        let expected = self.expected_hash.as_ref().and_then(|hash| hash.parse().ok());
        let before = answer::hash_before(old, expected, Mode::of(self.dry_run));
        answer::check_hash(&super::short(&self.path), expected, before)?;
        // The byte order mark is kept: a caller does not see that the old text had one.
        let had_bom = old.is_some_and(|old| old.bytes.starts_with(BOM));
        let bom_kept = had_bom && !content.starts_with(BOM);
        let with_mark = || Arc::new([BOM, content].concat());
        let bytes = if bom_kept { with_mark() } else { Arc::clone(content) };
        let (size, max) = (bytes.len() as u64, cx.limits.max_size);
        if size > max {
            let error = StoreError::TooLarge { size, max };
            return Err(Self::refused(&self.path, &error, cx.limits)
                .with_hint("the content is that large; the limit is set by --max-size"));
        }
        let written = WriteOutcome {
            size: bytes.len(),
            created: old.is_none(),
            changed: old.is_none_or(|old| old.bytes != bytes),
            bom_kept,
            before,
            after: Hash::of(&bytes),
            diff: match Mode::of(self.dry_run) {
                Mode::DryRun => Some(self.diff(old, &bytes, cx.limits)),
                Mode::Write => None,
            },
        };
        Ok((bytes, written))
    }

    fn reply(&self, written: WriteOutcome, notes: Vec<String>) -> ToolOutput {
        let WriteOutcome { size, created, changed, bom_kept, before, after, diff } = written;
        let (path, bytes) = (super::short(&self.path), if size == 1 { "byte" } else { "bytes" });
        let text = match (Mode::of(self.dry_run), changed, created) {
            (_, false, _) => format!("{path} already holds these {size} {bytes}"),
            (Mode::DryRun, ..) => format!("Would write {size} {bytes} to {path}"),
            (Mode::Write, true, true) => format!("Wrote {size} {bytes} to {path}, a new file"),
            (Mode::Write, true, false) => format!("Wrote {size} {bytes} to {path}"),
        };
        let mode = Mode::of(self.dry_run);
        let outcome = Outcome { before, after, changed, mode, notes };
        let mut words = outcome.lines(None);
        if bom_kept {
            words.push("the file's byte order mark was kept".into());
        }
        if let Some(diff) = diff.as_ref().filter(|diff| !diff.is_empty()) {
            words.push(format!("\n{diff}"));
        }

        let mut data = Map::new();
        data.insert("success".into(), true.into());
        data.insert("bytes_written".into(), size.into());
        data.insert("created".into(), created.into());
        if bom_kept {
            data.insert("bom_kept".into(), true.into());
        }
        outcome.add_to(&mut data);
        data.extend(diff.map(|diff| ("diff".into(), diff.into())));
        let (blocks, hash) = (vec![text.into(), words.join("\n").into()], outcome.hash());
        let meta = super::hash_meta(hash);
        ToolOutput { blocks, data: Some(data), hash, meta, ..ToolOutput::default() }
    }

    fn diff(&self, old: Option<&Version>, new: &[u8], limits: &Limits) -> String {
        let old = old.map_or(Ok(Text::empty()), |old| Text::decode(old.bytes.clone()));
        // Bytes that are not text have no lines that could differ.
        let (Ok(old), Ok(new)) = (old, str::from_utf8(new)) else { return String::new() };
        let name = super::file_name(&self.path);
        let mut changed = ComposedSplices::new();
        changed.add(0..old.whole().len(), new.len());
        let names = DiffNames { old: name, new: name };
        diff::unified_within(old.whole(), new, &changed, names, limits.diff_lines)
    }
}
