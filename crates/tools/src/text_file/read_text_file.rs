//! `read_text_file`: a file, whole or a page of its lines, byte for byte.

use std::fmt::Write as _;
use std::ops::Range;

use files::{Excerpt, Hash};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use text::{LineRange, Text, lines};

use super::Loaded;
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::store_error::FileAction;
use crate::{ArgumentError, Block, Context, Effect, Failure, Limits, Tool, ToolOutput};

/// Read a text file, whole or by lines. The first text of the answer is exactly the file's; the second says which lines, where to go on, and the file's hash. Lines count from 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadTextFile {
    /// Absolute path to the file
    path: String,
    /// Starting line number (1-indexed). If omitted, read from line 1
    #[schemars(range(min = 1))]
    line: Option<LineNumber>,
    /// Maximum number of lines to return. If omitted, return all remaining lines
    #[schemars(range(min = 1))]
    limit: Option<LineNumber>,
    /// Put each line's number and a tab before it
    line_numbers: Option<bool>,
}

impl Tool for ReadTextFile {
    const NAME: &'static str = "read_text_file";
    const TITLE: &'static str = "Read text file";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::TextFiles;

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check_raw(arguments: &Value) -> Vec<ArgumentError> {
        super::path_errors(arguments)
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.path]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let mut page = self.page(cx)?;
        let numbered = (self.line_numbers == Some(true)).then(|| page.number(cx.limits));
        let (mut meta, mut summary) = (page.meta(), page.summary());
        if let Some(note) = page.note {
            let _ = write!(summary, "\n{note}");
            meta.insert("notes".into(), json!([note]));
        }
        let hash = Some(page.hash);
        let block = match numbered {
            Some(numbered) => numbered.into(),
            None => Block::of_text(page.text, page.bytes),
        };
        let blocks = vec![block, summary.into()];
        Ok(ToolOutput { blocks, hash, meta: Some(meta), ..ToolOutput::default() })
    }
}

impl ReadTextFile {
    fn page(&self, cx: &Context) -> Result<Page, Failure> {
        let first = self.line.map_or(0, |line| line.index(Base::One));
        let more = self.limit.map_or(usize::MAX, |limit| limit.index(Base::One));
        let range = LineRange { first, last: first.saturating_add(more) };
        if self.line.is_some() || self.limit.is_some() {
            let at = super::path(cx.root, &self.path, FileAction::Read)?;
            if let Some(excerpt) = cx.store.excerpt(&at, range, cx.call) {
                return Ok(Page::of_excerpt(excerpt, range));
            }
        }
        super::load(&self.path, cx, FileAction::Read).map(|loaded| Page::of(loaded, range))
    }
}

/// The lines that were asked for, as far as they exist: `bytes` of `text`.
struct Page {
    text: Text,
    bytes: Range<usize>,
    /// The range of lines, counted from 0.
    lines: Range<usize>,
    /// Lines of the whole file.
    total: usize,
    /// Hash of the whole file.
    hash: Hash,
    note: Option<&'static str>,
}

impl Page {
    fn of(Loaded { text, note }: Loaded, range: LineRange) -> Self {
        let hash = Hash::of(text.whole().as_bytes());
        let (bytes, lines, total) = match lines::select(text.as_str(), range) {
            Some(found) => (found.bytes, found.first..found.last + 1, found.total),
            None => (0..0, range.first..range.first, lines::count(text.as_str())),
        };
        Self { text, bytes, lines, total, hash, note }
    }

    fn of_excerpt(Excerpt { text, lines, total, hash }: Excerpt, range: LineRange) -> Self {
        let bytes = 0..text.as_str().len();
        let lines = if lines.is_empty() { range.first..range.first } else { lines };
        Self { text, bytes, lines, total, hash, note: None }
    }

    /// Returns each line with its number and a tab before it, otherwise unchanged. Numbers can make a file of short
    /// lines many times as large, so the page ends where the largest size of a file is reached.
    fn number(&mut self, limits: &Limits) -> String {
        let max_size = usize::try_from(limits.max_size).unwrap_or(usize::MAX);
        let part = &self.text.as_str()[self.bytes.clone()];
        let mut out = String::with_capacity(part.len() + part.len() / 8);
        for (line, index) in lines::lines(part).zip(self.lines.clone()) {
            if out.len() + (line.next - line.start) > max_size && index > self.lines.start {
                self.lines.end = index;
                break;
            }
            let _ = write!(out, "{}\t{}", Base::One.show(index), &part[line.start..line.next]);
        }
        out
    }

    /// Returns the line to go on with, counted from 1.
    fn next(&self) -> Option<usize> {
        let has_more = !self.lines.is_empty() && self.lines.end < self.total;
        has_more.then(|| Base::One.show(self.lines.end))
    }

    fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("total_lines".into(), self.total.into());
        meta.insert("returned_lines".into(), self.lines.len().into());
        meta.insert("has_more".into(), self.next().is_some().into());
        meta.extend(self.next().map(|next| ("next_line".into(), json!(next))));
        meta.insert("hash".into(), self.hash.to_string().into());
        meta
    }

    fn summary(&self) -> String {
        let Self { lines, total, hash, .. } = self;
        let (first, last) = (lines.start + 1, lines.end);
        let next = self.next().map(|next| format!(", next_line {next}")).unwrap_or_default();
        match (lines.is_empty(), total) {
            (true, 0) => format!("0 lines, hash {hash}"),
            (true, _) => format!("no lines from {first} on: the file has {total}, hash {hash}"),
            (false, _) => format!("lines {first}-{last} of {total}{next}, hash {hash}"),
        }
    }
}
