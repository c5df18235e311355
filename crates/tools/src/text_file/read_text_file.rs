//! `read_text_file`: a file, whole or a page of its lines, byte for byte.

use std::fmt::Write as _;
use std::ops::Range;

use files::{FilePath, Hash, PathError, Root, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use text::{LineRange, lines};

use super::{Act, Loaded};
use crate::line_number::{Base, LineNumber};
use crate::schema::Fault;
use crate::{Block, Complaint, Context, Dialect, Effect, Failure, Limits, Reply, Tool};

/// Read a text file, whole or by lines. The first text of the answer is exactly what the file holds; the second says which lines it is, where to go on, and the file's hash. Lines count from 1.
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
    const DIALECT: Dialect = Dialect::Text;

    fn word(fault: &Fault) -> Option<Complaint> {
        super::word(fault)
    }

    fn look(arguments: &Value) -> Vec<Complaint> {
        super::path_faults(arguments)
    }

    fn target(&self) -> Option<&str> {
        Some(&self.path)
    }

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        super::locate(root, target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits) -> Failure {
        super::refused(target, error, limits, Act::Read)
    }

    fn run(self, cx: &Context) -> Result<Reply, Failure> {
        let Loaded { text, note } = super::load(&self.path, cx, Act::Read)?;
        let hash = Hash::of(text.whole().as_bytes());

        let first = self.line.map_or(0, |line| line.index(Base::One));
        let more = self.limit.map_or(usize::MAX, |limit| limit.index(Base::One));
        let range = LineRange { first, last: first.saturating_add(more) };
        let mut page = Page::of(text.as_str(), range);
        let block = if self.line_numbers == Some(true) {
            let max_size = usize::try_from(cx.limits.max_size).unwrap_or(usize::MAX);
            page.number(text.as_str(), max_size).into()
        } else {
            Block::of_text(text, page.bytes.clone())
        };
        let (mut meta, mut summary) = (page.meta(hash), page.summary(hash));
        if let Some(note) = note {
            let _ = write!(summary, "\n{note}");
            meta.insert("notes".into(), json!([note]));
        }
        Ok(Reply {
            blocks: vec![block, summary.into()],
            data: None,
            hash: Some(hash),
            meta: Some(meta),
        })
    }
}

/// The lines that were asked for, as far as there are any.
struct Page {
    bytes: Range<usize>,
    /// Counted from 0.
    lines: Range<usize>,
    /// Lines of the whole file.
    total: usize,
    /// Where to go on, counted from 1.
    next: Option<usize>,
}

impl Page {
    fn of(text: &str, range: LineRange) -> Self {
        let Some(found) = lines::select(text, range) else {
            let lines = range.first..range.first;
            return Self { bytes: 0..0, lines, total: lines::count(text), next: None };
        };
        let next = found.last + 1;
        Self {
            bytes: found.bytes,
            lines: found.first..next,
            total: found.total,
            next: (next < found.total).then(|| Base::One.show(next)),
        }
    }

    /// Each line with its number and a tab before it, as it is otherwise. Numbers can make a file of short lines many
    /// times as large, so the page ends where `max_size` is reached.
    fn number(&mut self, text: &str, max_size: usize) -> String {
        let part = &text[self.bytes.clone()];
        let mut out = String::with_capacity(part.len() + part.len() / 8);
        for (line, index) in lines::lines(part).zip(self.lines.clone()) {
            if out.len() + (line.next - line.start) > max_size && index > self.lines.start {
                self.bytes.end = self.bytes.start + line.start;
                self.lines.end = index;
                self.next = Some(Base::One.show(index));
                break;
            }
            let _ = write!(out, "{}\t{}", Base::One.show(index), &part[line.start..line.next]);
        }
        out
    }

    fn meta(&self, hash: Hash) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("total_lines".into(), self.total.into());
        meta.insert("returned_lines".into(), self.lines.len().into());
        meta.insert("has_more".into(), self.next.is_some().into());
        meta.extend(self.next.map(|next| ("next_line".into(), json!(next))));
        meta.insert("hash".into(), hash.to_string().into());
        meta
    }

    fn summary(&self, hash: Hash) -> String {
        let Self { lines, total, .. } = self;
        let (first, last) = (lines.start + 1, lines.end);
        let next = self.next.map(|next| format!(", next_line {next}")).unwrap_or_default();
        match (lines.is_empty(), total) {
            (true, 0) => format!("0 lines, hash {hash}"),
            (true, _) => format!("no lines from {first} on: the file has {total}, hash {hash}"),
            (false, _) => format!("lines {first}-{last} of {total}{next}, hash {hash}"),
        }
    }
}
