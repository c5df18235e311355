//! Which line a byte is in.

use std::ops::Range;

use text::LineRange;
use text::lines::lines;

/// Where the lines of a text begin.
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(crate) fn of(text: &str) -> Self {
        Self(lines(text).map(|line| line.start).collect())
    }

    /// The line of the byte `at`; behind the end of the text, its last line.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// Where `line` begins.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.0.get(line).copied().unwrap_or(0)
    }

    /// The lines that `bytes` are in. An empty range is in the line where it is.
    pub(crate) fn range(&self, bytes: &Range<usize>) -> LineRange {
        let first = self.line_of(bytes.start);
        let last = self.line_of(bytes.end.saturating_sub(1)).max(first);
        LineRange { first, last }
    }
}
