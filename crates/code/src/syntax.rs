//! Syntax errors: places of a file that do not parse.
//!
//! Good files have syntax errors too: a grammar knows nothing of macros, of dialects, of the newest syntax. So a change
//! is judged by the errors it adds, not by those that are there.

use std::collections::HashSet;
use std::ops::Range;

use grammars::Tree;
use tree_sitter::Node;

use crate::language::{self, Language};
use crate::line_starts::LineStarts;
use crate::tree;

/// Most errors that are searched for.
pub const ERRORS_MAX: usize = 10_000;
/// Most characters that are quoted of text that does not parse.
const QUOTE_CHARS_MAX: usize = 40;

/// A place that does not parse. Lines and columns count from 0, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub line: usize,
    pub column: usize,
    pub bytes: Range<usize>,
    /// Description of the error, in a few words.
    pub message: String,
}

/// Returns the syntax errors of `text`. `None` if there is no grammar, or it was not parsed: too large, or stopped.
pub fn errors(path: &str, text: &str, stop: &dyn Fn() -> bool) -> Option<Vec<SyntaxError>> {
    errors_in(language::of(path, text)?, text, stop)
}

fn errors_in(
    language: &dyn Language,
    text: &str,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<SyntaxError>> {
    let parsed = tree::parse(language, text, stop)?;
    let lines = LineStarts::of(text);
    let mut errors = Vec::new();
    // Line, offset and column of the last error, from which columns are counted on, since lines may be long.
    let mut last = (0, 0, 0);
    visit_errors(&parsed.tree, |node| {
        let bytes = node.byte_range();
        let line = lines.line_of(bytes.start);
        let (from, before) = match last {
            (same, from, column) if same == line && from <= bytes.start => (from, column),
            _ => (lines.start(line), 0),
        };
        let column = before + text[from..bytes.start].chars().count();
        last = (line, bytes.start, column);
        errors.push(SyntaxError { line, column, message: message(node, text), bytes });
        errors.len() < ERRORS_MAX
    });
    Some(errors)
}

/// Calls `found` for each place that does not parse, until it returns false. Walks only subtrees that have errors.
pub(crate) fn visit_errors(tree: &Tree, mut found: impl FnMut(Node<'_>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if (node.is_error() || node.is_missing()) && !found(node) {
            return;
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

fn message(node: Node<'_>, text: &str) -> String {
    if node.is_missing() {
        return if node.is_named() {
            format!("missing {}", node.kind().replace('_', " "))
        } else {
            format!("missing `{}`", node.kind())
        };
    }
    let text = &text[node.byte_range()];
    let text = text[..text.floor_char_boundary(8 * QUOTE_CHARS_MAX)].trim_start();
    let line = text.lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(QUOTE_CHARS_MAX) {
        _ if line.is_empty() => "unexpected end".into(),
        Some((cut, _)) => format!("unexpected `{}…`", &line[..cut]),
        None => format!("unexpected `{line}`"),
    }
}

/// Returns the syntax errors in `after` that are new, compared with `before`. `None` as for [`errors`].
///
/// A change may move an old error, or make another one of it. So errors are new only if there are more of them than
/// before, in the whole text or in the lines that were changed.
pub fn new_errors(
    path: &str,
    before: &str,
    after: &str,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<SyntaxError>> {
    let mut language = language::of(path, after)?;
    let mut is = errors_in(language, after, stop)?;
    if is.is_empty() {
        return Some(is);
    }
    // A header may have changed its language, or an error may only make it look so: both texts are parsed in the
    // language that fits the new one best.
    let other = language::of(path, before).filter(|other| other.name() != language.name());
    if let Some(other) = other
        && let Some(in_other) = errors_in(other, after, stop)
        && in_other.len() < is.len()
    {
        (language, is) = (other, in_other);
    }
    let was = errors_in(language, before, stop)?;
    let change = EditedLines::between(before, after);
    let was_there: HashSet<_> =
        was.iter().map(|error| (change.offset_after(&error.bytes), &error.message)).collect();
    let is_old =
        |error: &SyntaxError| was_there.contains(&(Some(error.bytes.start), &error.message));
    let fresh: Vec<_> = is.iter().filter(|error| !is_old(error)).cloned().collect();
    if is.len() > was.len() {
        return Some(fresh);
    }
    let touched: Vec<_> =
        fresh.into_iter().filter(|error| overlap(&error.bytes, &change.after)).collect();
    let touched_before = was.iter().filter(|error| overlap(&error.bytes, &change.before)).count();
    Some(if touched.len() > touched_before { touched } else { Vec::new() })
}

/// The one range in which two texts differ, in whole lines.
struct EditedLines {
    before: Range<usize>,
    after: Range<usize>,
}

impl EditedLines {
    fn between(before: &str, after: &str) -> Self {
        let (old, new) = (before.as_bytes(), after.as_bytes());
        let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let start = line_start(old, same);
        let rest = (old.len() - start).min(new.len() - start);
        let alike = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new);
        let tail = alike.count().min(rest);
        let kept = tail - line_rest(&old[old.len() - tail..]);
        Self { before: start..old.len() - kept, after: start..new.len() - kept }
    }

    /// New start of the text at `bytes`, if it was not changed.
    fn offset_after(&self, bytes: &Range<usize>) -> Option<usize> {
        if bytes.end <= self.before.start {
            Some(bytes.start)
        } else if bytes.start >= self.before.end {
            Some(bytes.start - self.before.end + self.after.end)
        } else {
            None
        }
    }
}

fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1)
}

/// Length of the rest of a changed line that `tail` begins with.
fn line_rest(tail: &[u8]) -> usize {
    tail.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(tail.len(), |end| end + 1)
}

fn overlap(error: &Range<usize>, change: &Range<usize>) -> bool {
    error.start <= change.end && change.start <= error.end
}
