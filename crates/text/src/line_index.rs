//! Line numbers in a text that changes, without counting it again from its start.

use std::ops::Range;

use crate::lines;

/// Bytes in a new block.
const BLOCK_BYTES: usize = 2 * 1024;

/// The number of lines that end in each block of a text. The blocks cover the start of the text without gaps, as far as
/// it was asked about.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    len: usize,
    breaks: usize,
}

impl LineIndex {
    /// Extends the index to `offset`, so that `line_at` counts within one block only, up to there.
    pub fn extend_to(&mut self, text: &str, offset: usize) {
        let covered = self.blocks.iter().map(|block| block.len).sum();
        if offset >= covered {
            let end = offset.saturating_add(BLOCK_BYTES).min(text.len());
            self.blocks.extend(blocks(text, covered..end));
        }
    }

    /// Returns the line (from 0) that the byte at `offset` of `text` belongs to. `text` is what the index was made of.
    pub fn line_at(&self, text: &str, offset: usize) -> usize {
        let (mut start, mut lines) = (0, 0);
        for block in &self.blocks {
            if start + block.len > offset {
                break;
            }
            start += block.len;
            lines += block.breaks;
        }
        lines + count_breaks(text, start..offset)
    }

    /// Updates the index to the text `after`, in which `range` of the text before was replaced by `new_len` bytes.
    pub fn splice(&mut self, after: &str, range: &Range<usize>, new_len: usize) {
        // The byte before the range is counted again too: a `\r` ends a line or not depending on what follows it.
        let from = range.start.saturating_sub(1);
        let (mut first, mut start) = (0, 0);
        while first < self.blocks.len() && start + self.blocks[first].len <= from {
            start += self.blocks[first].len;
            first += 1;
        }
        let (mut last, mut end) = (first, start);
        while last < self.blocks.len() && end < range.end {
            end += self.blocks[last].len;
            last += 1;
        }
        let end = end.max(range.end) - range.len() + new_len;
        self.blocks.splice(first..last, blocks(after, start..end));
    }
}

/// Returns the blocks of a part of `text`. The last one takes the remainder, so none that follows another is shorter
/// than `BLOCK_BYTES`.
fn blocks(text: &str, part: Range<usize>) -> impl Iterator<Item = Block> + '_ {
    let count = (part.len() / BLOCK_BYTES).max(usize::from(!part.is_empty()));
    (0..count).map(move |index| {
        let start = part.start + index * BLOCK_BYTES;
        let end = if index + 1 == count { part.end } else { start + BLOCK_BYTES };
        Block { len: end - start, breaks: count_breaks(text, start..end) }
    })
}

/// Counts the lines of `text` that end in `part`.
pub(crate) fn count_breaks(text: &str, part: Range<usize>) -> usize {
    lines::count_breaks(text.as_bytes(), part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_asked_about_is_not_counted_again() {
        let text = "a\n".repeat(10 * BLOCK_BYTES);
        let mut index = LineIndex::default();
        let covered = |index: &LineIndex| index.blocks.iter().map(|block| block.len).sum::<usize>();
        for (offset, expected) in [
            (0, BLOCK_BYTES),
            (BLOCK_BYTES - 1, BLOCK_BYTES),
            (BLOCK_BYTES, 2 * BLOCK_BYTES),
            (7, 2 * BLOCK_BYTES),
        ] {
            index.extend_to(&text, offset);
            assert_eq!(covered(&index), expected, "{offset}");
        }
        index.extend_to(&text, usize::MAX);
        assert_eq!(covered(&index), text.len());
        // Only the block that an edit touches is counted again.
        let before = index.blocks.clone();
        let mut after = text.clone();
        after.replace_range(3 * BLOCK_BYTES + 9..3 * BLOCK_BYTES + 10, "\n\n");
        index.splice(&after, &(3 * BLOCK_BYTES + 9..3 * BLOCK_BYTES + 10), 2);
        let changed: Vec<_> =
            (0..before.len()).filter(|at| before[*at] != index.blocks[*at]).collect();
        assert_eq!((changed, index.blocks.len()), (vec![3], before.len()));
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(
            pieces in prop::collection::vec(("[a\r\n]{0,4}", 1usize..9000), 1..5),
            splices in prop::collection::vec((0usize..40_000, 0usize..20_000, "[a\r\n]{0,5}"), 0..8),
            reached in prop::collection::vec(0usize..60_000, 8),
            offsets in prop::collection::vec(0usize..60_000, 5),
        ) {
            let mut text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
            let mut index = LineIndex::default();
            for ((start, len, new), reached) in splices.into_iter().zip(reached) {
                index.extend_to(&text, reached);
                let start = start.min(text.len());
                let range = start..(start + len).min(text.len());
                text.replace_range(range.clone(), &new);
                index.splice(&text, &range, new.len());
            }
            prop_assert!(index.blocks.iter().map(|block| block.len).sum::<usize>() <= text.len());
            for offset in offsets.into_iter().filter(|offset| *offset < text.len()) {
                let line = lines::lines(&text).position(|line| offset < line.next);
                prop_assert_eq!(Some(index.line_at(&text, offset)), line);
            }
        }
    }
}
