//! `read_file`: a file, whole or by lines.

use std::fmt::Write as _;
use std::ops::Range;

use files::{Excerpt, Hash};
use schemars::JsonSchema;
use serde::Deserialize;
use text::{LineRange, Text, lines};

use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::{
    ArgumentError, Block, Context, Effect, Failure, FailureKind, Limits, Tool, ToolOutput,
};

/// Read a text file of the folder, whole or by lines. Lines are 0-based and inclusive: `start_line: 0, end_line: 9` are the first ten. The answer ends with the file's hash, for `expected_hash` of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadFile {
    /// File name, without any path.
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 255))]
    name: String,
    /// First line to read (0-based; default: the first).
    #[schemars(range(min = 0))]
    start_line: Option<LineNumber>,
    /// Last line to read (0-based; default: the last).
    #[schemars(range(min = 0))]
    end_line: Option<LineNumber>,
    /// Put each line's number and a tab before it.
    line_numbers: Option<bool>,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Flat;

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        crossed(self.start_line, self.end_line)
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let mut read = read(cx, &self.name, self.start_line, self.end_line, Base::Zero)?;
        let numbered = (self.line_numbers == Some(true)).then(|| read.number(cx.limits));
        let (name, total, hash) = (&self.name, read.total, read.hash);
        let (head, summary) = match &read.part {
            Some(part) => {
                let (first, last) = (part.start, part.end - 1);
                let more = match last + 1 {
                    next if next < total => format!(", next_line {next}"),
                    _ => String::new(),
                };
                (
                    format!("File: {name} (lines {first}-{last} of {total} total)\n\n"),
                    format!("lines {first}-{last} of {total}{more}, hash {hash}"),
                )
            }
            None if total == 0 => {
                (format!("File: {name} (0 lines)\n\n"), format!("0 lines, hash {hash}"))
            }
            None => (
                format!("File: {name} ({total} lines)\n\n"),
                format!("lines 0-{} of {total}, hash {hash}", total - 1),
            ),
        };
        let block = match numbered {
            Some(numbered) => Block::from(head + &numbered),
            None => read.into_block(head),
        };
        let blocks = vec![block, summary.into()];
        Ok(ToolOutput { blocks, hash: Some(hash), ..ToolOutput::default() })
    }
}

/// The text that was read: `bytes` of `text`.
pub(super) struct Read {
    text: Text,
    bytes: Range<usize>,
    /// Lines of the whole file.
    pub total: usize,
    /// The lines read (counted from 0), when a part was asked for.
    pub part: Option<Range<usize>>,
    pub hash: Hash,
}

impl Read {
    /// Returns each line with its number (from 0) and a tab before it. Numbers can make a file of short lines many
    /// times as large, so the part that is read ends where the largest size of a file is reached.
    fn number(&mut self, limits: &Limits) -> String {
        let max_size = usize::try_from(limits.max_size).unwrap_or(usize::MAX);
        let text = &self.text.as_str()[self.bytes.clone()];
        let first = self.part.as_ref().map_or(0, |part| part.start);
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        for (index, line) in (first..).zip(lines::lines(text)) {
            if out.len() + (line.next - line.start) > max_size && index > first {
                self.part = Some(first..index);
                break;
            }
            let separator = if index == first { "" } else { "\n" };
            let _ = write!(out, "{separator}{index}\t{}", &text[line.start..line.end]);
        }
        out
    }

    /// Returns the lines joined by line breaks, with none after the last.
    pub fn into_block(self, head: String) -> Block {
        let slice = &self.text.as_str()[self.bytes.clone()];
        let ending = ["\r\n", "\n", "\r"].into_iter().find(|ending| slice.ends_with(ending));
        let end = self.bytes.end - ending.map_or(0, str::len);
        Block::of_lines(head, self.text, self.bytes.start..end)
    }
}

pub(super) fn crossed(start: Option<LineNumber>, end: Option<LineNumber>) -> Vec<ArgumentError> {
    match (start, end) {
        (Some(start), Some(end)) if start > end && end.0 >= 0 => {
            let message = format!("Invalid line range: start {} > end {}", start.0, end.0);
            vec![ArgumentError::new(message, "`start_line` must not be after `end_line`")]
        }
        _ => Vec::new(),
    }
}

pub(super) fn read(
    cx: &Context,
    name: &str,
    start: Option<LineNumber>,
    end: Option<LineNumber>,
    base: Base,
) -> Result<Read, Failure> {
    let path = super::path(cx.root, name)?;
    let range = LineRange {
        first: start.map_or(0, |line| line.index(base)),
        last: end.map_or(usize::MAX, |line| line.index(base)),
    };
    let is_part = start.is_some() || end.is_some();
    if let Some(excerpt) = is_part.then(|| cx.store.excerpt(&path, range, cx.call)).flatten() {
        let Excerpt { text, lines, total, hash } = excerpt;
        if lines.is_empty() {
            return Err(past_the_end(base, range, total));
        }
        return Ok(Read { bytes: 0..text.as_str().len(), total, part: Some(lines), hash, text });
    }
    let version = cx
        .store
        .read(&path, cx.call)
        .map_err(|error| super::refused(name, &error, cx.limits))?
        .ok_or_else(|| super::not_found(name))?;
    let hash = Hash::of(&version.bytes);
    let text = Text::decode(version.bytes).map_err(|reason| super::not_text(&reason))?;
    let body = text.as_str();

    if start.is_none() && (end.is_none() || body.is_empty()) {
        let (bytes, total) = (0..body.len(), lines::count(body));
        return Ok(Read { bytes, total, part: None, hash, text });
    }
    let Some(selected) = lines::select(body, range) else {
        return Err(past_the_end(base, range, lines::count(body)));
    };
    let part = Some(selected.first..selected.last + 1);
    Ok(Read { bytes: selected.bytes, total: selected.total, part, hash, text })
}

fn past_the_end(base: Base, range: LineRange, total: usize) -> Failure {
    let message = format!("Start line {} exceeds file length {total}", base.show(range.first));
    Failure::new(FailureKind::Invalid, message.clone())
        .with_argument_errors(vec![message])
        .with_hint(base.interval(0..total))
}
