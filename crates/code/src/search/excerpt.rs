//! Excerpts of a file: its lines that match and those around them.

use std::ops::Range;

use text::{Line, lines};

use super::{
    CONTEXT_MAX, LINE_MAX, ResultLine, SearchOptions,
    pattern::{LineMatch, Pattern, line_start},
};

/// Most characters shown of a long line before the first match.
const BEFORE_MATCH_MAX: usize = 100;

/// Receives the matching lines of a file one by one, and keeps those that may be shown.
pub(super) struct Excerpts<'t> {
    text: &'t str,
    /// First line that may be kept; `None` if no line may be.
    first: Option<usize>,
    room: usize,
    /// True if that line is reached: from then on only lines that are kept need a number.
    is_past: bool,
    is_wanted: bool,
    /// A byte offset, and the number of lines before it.
    counted: (usize, usize),
    behind: u64,
    kept: Vec<(usize, LineMatch)>,
}

impl<'t> Excerpts<'t> {
    /// Makes excerpts of at most `room` lines, from the line `first` on.
    pub fn new(text: &'t str, first: Option<usize>, room: usize) -> Self {
        Excerpts {
            text,
            first,
            room,
            is_past: first == Some(0),
            is_wanted: false,
            counted: (0, 0),
            behind: 0,
            kept: Vec::new(),
        }
    }

    /// Makes excerpts without lines, of a file that is not part of the result.
    pub fn none(text: &'t str) -> Self {
        Self::new(text, Some(0), 0)
    }

    /// Makes the file part of the result, even without lines.
    pub fn with_file(self) -> Self {
        Self { is_wanted: true, ..self }
    }

    /// Adds the next line that matches.
    pub fn add(&mut self, found: LineMatch) {
        let Some(first) = self.first else {
            self.behind += 1;
            return;
        };
        let has_room = self.kept.len() < self.room;
        if self.is_past && !has_room {
            return;
        }
        let number = self.number(found.line.start);
        self.is_past = number >= first;
        if !self.is_past {
            self.behind += 1;
        } else if has_room {
            self.kept.push((number, found));
        }
    }

    /// Number of the line at `start`, counted on from the line before.
    fn number(&mut self, start: usize) -> usize {
        let (offset, number) = self.counted;
        let number = number + lines::count_ends(&self.text.as_bytes()[offset..start]);
        self.counted = (start, number);
        number
    }

    /// Number of matching lines before the first that may be kept.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    pub fn is_wanted(&self) -> bool {
        self.is_wanted || !self.kept.is_empty()
    }

    /// Returns the lines as they are shown.
    pub fn lines(&self, pattern: &Pattern, options: &SearchOptions<'_>) -> Vec<ResultLine> {
        let before = options.before.min(CONTEXT_MAX);
        let after = options.after.min(CONTEXT_MAX);
        let mut shown = Vec::new();
        // End of the last line that is shown.
        let mut end = 0;
        for (at, (number, found)) in self.kept.iter().enumerate() {
            let above = self.above(found.line.start, end, before);
            for (more, line) in above.iter().rev().enumerate() {
                shown.push(self.plain(number + more - above.len(), *line));
            }
            shown.push(self.found(*number, found, pattern));
            end = found.line.next;
            let next = self.kept.get(at + 1).map_or(usize::MAX, |(number, _)| *number);
            for more in number + 1..next.min(number.saturating_add(after + 1)) {
                let Some(line) = lines::lines(&self.text[end..]).next() else { break };
                let line = Line { start: end, end: end + line.end, next: end + line.next };
                shown.push(self.plain(more, line));
                end = line.next;
            }
        }
        shown
    }

    /// Returns up to `most` lines above the one that begins at `start`, the nearest first, but none that begins before
    /// `end`.
    fn above(&self, mut start: usize, end: usize, most: usize) -> Vec<Line> {
        let mut above = Vec::new();
        while above.len() < most && start > end {
            let next = start;
            // The last byte of the terminator belongs to the line it ends.
            start = line_start(self.text, next - 1);
            let content = self.text[start..next].trim_end_matches(['\r', '\n']);
            above.push(Line { start, end: start + content.len(), next });
        }
        above
    }

    fn plain(&self, number: usize, line: Line) -> ResultLine {
        let content = &self.text[line.start..line.end];
        shown(number, content, window(content, 0), None)
    }

    fn found(&self, number: usize, found: &LineMatch, pattern: &Pattern) -> ResultLine {
        let content = &self.text[found.line.start..found.line.end];
        let first = pattern.matches(self.text, found, 0).first().map_or(0, |first| first.start);
        let window = window(content, first);
        let matches = pattern.matches(self.text, found, window.end.max(1));
        shown(number, content, window, Some(matches))
    }
}

fn shown(
    number: usize,
    content: &str,
    window: Range<usize>,
    matches: Option<Vec<Range<usize>>>,
) -> ResultLine {
    ResultLine {
        number,
        offset: window.start,
        text: content[window].to_owned(),
        length: content.len(),
        is_match: matches.is_some(),
        matches: matches.unwrap_or_default(),
    }
}

/// The part of a line that is shown: all of it, or [`LINE_MAX`] characters around the byte `first`.
fn window(content: &str, first: usize) -> Range<usize> {
    let end_of = |start: usize| {
        let mut chars = content[start..].char_indices();
        chars.nth(LINE_MAX).map_or(content.len(), |(end, _)| start + end)
    };
    let start_of = |end: usize, count: usize| {
        let mut chars = content[..end].char_indices();
        chars.nth_back(count - 1).map_or(0, |(start, _)| start)
    };
    let start = start_of(content.floor_char_boundary(first), BEFORE_MATCH_MAX);
    match end_of(start) {
        end if end == content.len() => start_of(end, LINE_MAX)..end,
        end => start..end,
    }
}
