//! Line numbers of byte offsets.

use std::ops::Range;

use text::LineRange;
use text::lines::lines;

/// Byte offsets where the lines of a text begin.
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(crate) fn of(text: &str) -> Self {
        Self(lines(text).map(|line| line.start).collect())
    }

    /// Line of the byte `at`; after the end of the text, its last line.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// Byte offset where `line` begins.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.0.get(line).copied().unwrap_or(0)
    }

    /// Lines that `bytes` are in. An empty range is in the line where it is.
    pub(crate) fn range(&self, bytes: &Range<usize>) -> LineRange {
        let first = self.line_of(bytes.start);
        let last = self.line_of(bytes.end.saturating_sub(1)).max(first);
        LineRange { first, last }
    }
}
