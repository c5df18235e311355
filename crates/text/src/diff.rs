//! Unified diffs of the changes that splices made.
//!
//! Lines end at `\n` only, a `\r` is part of its line, so that `git apply` accepts every diff and restores every byte.
//! The module `changes` finds the lines that differ.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use crate::changes;
use crate::splice::{ChangedRange, ComposedSplices};

/// Unchanged lines shown on either side of a change.
const CONTEXT_LINES: usize = 3;

/// Most bytes of a limited diff for each of its lines, on average: a line can be as long as a file.
const BYTES_PER_LINE_MAX: usize = 400;

const NO_NEWLINE: &str = "\\ No newline at end of file";

/// The names in the two header lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffNames<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// Returns the diff from `old` to `new`, whole texts with their byte order marks; `""` if nothing differs.
///
/// `changed` says where to search. If it does not lead from `old` to `new`, the diff is still right, but slower.
pub fn unified(old: &str, new: &str, changed: &ComposedSplices, names: DiffNames<'_>) -> String {
    render(old, new, changed, names, DiffWriter::unlimited())
}

/// Returns the diff as [`unified`] does, but at most `max_lines` lines (headers included) of 400 bytes on average. If
/// there are more, a last line `... (7 more lines: +4 -2)` counts those left out, and how many of them are added and
/// removed.
///
/// A diff that was cut is for reading only: it cannot be applied.
pub fn unified_within(
    old: &str,
    new: &str,
    changed: &ComposedSplices,
    names: DiffNames<'_>,
    max_lines: usize,
) -> String {
    render(old, new, changed, names, DiffWriter::limited(max_lines))
}

fn render(
    old: &str,
    new: &str,
    changed: &ComposedSplices,
    names: DiffNames<'_>,
    mut out: DiffWriter,
) -> String {
    let regions = changes::between(old, new, changed);
    if !regions.is_empty() {
        out.line("--- ", &quoted_name(names.old));
        out.line("+++ ", &quoted_name(names.new));
    }
    let near = |above: &ChangedRange, below: &ChangedRange| {
        let between = &old.as_bytes()[above.old.end..below.old.start];
        memchr_iter(b'\n', between).nth(2 * CONTEXT_LINES).is_none()
    };
    let (mut old, mut new, mut passed) = (NumberedText::of(old), NumberedText::of(new), 0);
    for regions in regions.chunk_by(near) {
        passed = hunk(&mut old, &mut new, passed, regions, &mut out);
    }
    out.finish()
}

/// Writes `changes`, at least one, and the lines around them. Takes and returns how much of the old text was passed.
fn hunk(
    old: &mut NumberedText<'_>,
    new: &mut NumberedText<'_>,
    passed: usize,
    changes: &[ChangedRange],
    out: &mut DiffWriter,
) -> usize {
    let [first, ..] = changes else { return passed };
    let [.., last] = changes else { return passed };
    let above = context_before(old.text, first.old.start);
    let below = context_after(old.text, last.old.end);
    let (start, end) = (first.old.start - above.len(), last.old.end + below.len());
    // Between two hunks both texts are the same.
    let skipped = count_line_feeds(&old.text[passed..start]);
    old.lines += skipped;
    new.lines += skipped;
    let (old_span, new_span) =
        (old.span(start..end), new.span(first.new.start - above.len()..last.new.end + below.len()));
    out.line("", &format!("@@ -{old_span} +{new_span} @@"));
    out.lines(" ", above);
    let mut at = first.old.start;
    for change in changes {
        out.lines(" ", &old.text[at..change.old.start]);
        out.lines("-", &old.text[change.old.clone()]);
        out.lines("+", &new.text[change.new.clone()]);
        at = change.old.end;
    }
    out.lines(" ", below);
    end
}

/// Returns the context lines before `at`, the start of a line.
fn context_before(text: &str, at: usize) -> &str {
    let mut start = at;
    for _ in 0..CONTEXT_LINES {
        let breakless = start.saturating_sub(1);
        start = memrchr(b'\n', &text.as_bytes()[..breakless]).map_or(0, |at| at + 1);
    }
    &text[start..at]
}

/// Returns the context lines from `at` on.
fn context_after(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let end = memchr_iter(b'\n', rest.as_bytes()).nth(CONTEXT_LINES - 1);
    &rest[..end.map_or(rest.len(), |at| at + 1)]
}

fn count_line_feeds(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// One of the two texts, and how many lines of it were passed.
struct NumberedText<'a> {
    text: &'a str,
    lines: usize,
}

impl<'a> NumberedText<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, lines: 0 }
    }

    /// Passes `range`, which comes next, and returns its first line (from 1) and number of lines. An empty range is
    /// given the number of the line before it.
    fn span(&mut self, range: Range<usize>) -> String {
        let text = &self.text[range];
        let (above, breaks) = (self.lines, count_line_feeds(text));
        self.lines += breaks;
        let count = breaks + usize::from(!text.is_empty() && !text.ends_with('\n'));
        format!("{},{count}", above + usize::from(count > 0))
    }
}

/// A diff being written, up to a limit.
struct DiffWriter {
    out: String,
    /// Lines and bytes that still fit.
    lines: usize,
    bytes: usize,
    /// Lines left out; once there is one, all that follow are.
    more: usize,
    added: usize,
    removed: usize,
}

impl DiffWriter {
    fn unlimited() -> Self {
        Self::limited(usize::MAX)
    }

    fn limited(lines: usize) -> Self {
        let bytes = lines.saturating_mul(BYTES_PER_LINE_MAX);
        Self { out: String::new(), lines, bytes, more: 0, added: 0, removed: 0 }
    }

    /// Writes every line of `text`, noting where the last one has no break.
    fn lines(&mut self, sign: &str, text: &str) {
        for line in text.split_inclusive('\n') {
            let terminated = line.strip_suffix('\n');
            self.line(sign, terminated.unwrap_or(line));
            if terminated.is_none() {
                self.line("", NO_NEWLINE);
            }
        }
    }

    fn line(&mut self, sign: &str, line: &str) {
        let len = sign.len() + line.len() + 1;
        if self.more > 0 || self.lines == 0 || self.bytes < len {
            self.more += 1;
            self.added += usize::from(sign == "+");
            self.removed += usize::from(sign == "-");
            return;
        }
        self.lines -= 1;
        self.bytes -= len;
        self.out.extend([sign, line, "\n"]);
    }

    fn finish(mut self) -> String {
        let Self { more, added, removed, .. } = self;
        if more > 0 {
            let lines = if more == 1 { "line" } else { "lines" };
            _ = writeln!(self.out, "... ({more} more {lines}: +{added} -{removed})");
        }
        self.out
    }
}

/// Returns a name as git reads it back: quoted if it has characters that would end or change it, and ended by a tab if
/// it has spaces.
fn quoted_name(name: &str) -> Cow<'_, str> {
    let special = |char: char| char.is_ascii_control() || char == '"' || char == '\\';
    if name.contains(special) {
        let mut quoted = String::from("\"");
        for char in name.chars() {
            match char {
                '"' | '\\' => quoted.extend(['\\', char]),
                _ if special(char) => _ = write!(quoted, "\\{:03o}", u32::from(char)),
                _ => quoted.push(char),
            }
        }
        Cow::Owned(quoted + "\"")
    } else if name.contains(' ') {
        Cow::Owned(format!("{name}\t"))
    } else {
        Cow::Borrowed(name)
    }
}
