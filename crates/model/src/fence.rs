//! Fenced blocks, which separate a text from the words around it in prompts and in answers.

use std::fmt::Write as _;

use text::lines;

/// Length of the shortest fence.
const FENCE_LENGTH_MIN: usize = 3;

/// Length of the run of `mark` that a line begins with, after whitespace.
pub(crate) fn run_at_start(line: &str, mark: char) -> usize {
    let rest = line.trim_start();
    rest.len() - rest.trim_start_matches(mark).len()
}

/// Length of the longest run of `mark` that any line of these texts begins with.
pub(crate) fn longest_run(texts: &[&str], mark: char) -> usize {
    let in_text = |text: &&str| {
        let run = |line: text::Line| run_at_start(&text[line.start..line.end], mark);
        lines::lines(text).map(run).max().unwrap_or(0)
    };
    texts.iter().map(in_text).max().unwrap_or(0)
}

/// Returns a fence that no line of these texts can be mistaken for.
pub(crate) fn around(texts: &[&str]) -> String {
    "`".repeat(FENCE_LENGTH_MIN.max(longest_run(texts, '`') + 1))
}

/// Writes `text` between two fences, with a line break before the second if it has none of its own.
pub(crate) fn write(to: &mut String, fence: &str, text: &str) {
    let between = if text.is_empty() || text.ends_with(['\n', '\r']) { "" } else { "\n" };
    let _ = writeln!(to, "{fence}\n{text}{between}{fence}");
}

/// The fenced blocks of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FencedBlocks {
    /// The first block without its fences: lines that end with `\n`.
    pub first: Option<String>,
    pub count: usize,
    /// True if the last block has no closing fence.
    pub is_open: bool,
}

/// An opening fence.
struct OpeningFence {
    indent: usize,
    length: usize,
}

impl OpeningFence {
    /// Parses an opening fence: up to three spaces, backticks, and a word that may name the language.
    fn of(line: &str) -> Option<Self> {
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let length = run_at_start(rest, '`');
        let info = &rest[length.min(rest.len())..];
        let opens = indent < 4
            && rest.starts_with('`')
            && length >= FENCE_LENGTH_MIN
            && !info.contains('`');
        opens.then_some(Self { indent, length })
    }

    /// True if `line` closes the block: a fence at least as long as the opening one, and nothing after it.
    fn is_closed_by(&self, line: &str) -> bool {
        Self::of(line).is_some_and(|end| {
            end.length >= self.length && line.trim().trim_matches('`').is_empty()
        })
    }

    /// Removes the indent of the fence, since blocks in a list are indented as a whole.
    fn without_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        &line[spaces.min(self.indent)..]
    }
}

/// Parses all fenced blocks of an answer.
pub(crate) fn read(answer: &str) -> FencedBlocks {
    let mut blocks = FencedBlocks { first: None, count: 0, is_open: false };
    let mut opening: Option<OpeningFence> = None;
    let mut first = String::new();
    for line in lines::lines(answer) {
        let line = &answer[line.start..line.end];
        match &opening {
            None => {
                opening = OpeningFence::of(line);
                blocks.count += usize::from(opening.is_some());
            }
            Some(open) if open.is_closed_by(line) => opening = None,
            Some(open) if blocks.count == 1 => {
                first.push_str(open.without_indent(line));
                first.push('\n');
            }
            Some(_) => {}
        }
    }
    blocks.is_open = opening.is_some();
    blocks.first = (blocks.count > 0).then_some(first);
    blocks
}
