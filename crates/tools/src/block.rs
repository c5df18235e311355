//! One text of an answer, which may be a part of a file.

use std::ops::Range;

use text::Text;

/// One text of an answer. A read shares the file's own buffer, so that a large file is held once.
#[derive(Clone, Debug, Default)]
pub struct Block {
    head: String,
    body: Option<FileSlice>,
    is_json: bool,
}

#[derive(Clone, Debug)]
struct FileSlice {
    text: Text,
    range: Range<usize>,
    breaks: LineBreaks,
}

/// The form in which the line breaks of a file are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineBreaks {
    Exact,
    Lf,
}

impl From<String> for Block {
    fn from(head: String) -> Self {
        Self { head, ..Self::default() }
    }
}

impl Block {
    /// Makes a block of `head` and the lines in `range` of `text`, with every line break as `\n`.
    pub fn of_lines(head: String, text: Text, range: Range<usize>) -> Self {
        let body = Some(FileSlice { text, range, breaks: LineBreaks::Lf });
        Self { head, body, is_json: false }
    }

    /// Makes a block of exactly what is in `range` of `text`.
    pub fn of_text(text: Text, range: Range<usize>) -> Self {
        let body = Some(FileSlice { text, range, breaks: LineBreaks::Exact });
        Self { body, ..Self::default() }
    }

    /// Makes a block that is not a text of the answer but a value in it, written as JSON.
    pub fn of_json(json: String) -> Self {
        Self { head: json, body: None, is_json: true }
    }

    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// True if the file has a byte order mark just before the part that is shown.
    pub fn is_after_mark(&self) -> bool {
        self.body.as_ref().is_some_and(|slice| slice.range.start == 0 && slice.text.has_bom())
    }

    /// Returns the next chunk of the text after the first `seen` bytes, and the number of bytes seen then. Chunks are
    /// short enough for a cache, and nothing is copied.
    pub fn chunk(&self, seen: usize) -> Option<(&str, usize)> {
        let Some(seen_of_body) = seen.checked_sub(self.head.len()) else {
            let end = self.head.floor_char_boundary(seen + CHUNK_BYTES);
            return Some((&self.head[seen..end], end));
        };
        let slice = self.body.as_ref()?;
        let rest = &slice.text.as_str()[slice.range.clone()][seen_of_body..];
        let near = &rest[..rest.floor_char_boundary(CHUNK_BYTES)];
        let next_return = match slice.breaks {
            LineBreaks::Exact => None,
            LineBreaks::Lf => memchr::memchr(b'\r', near.as_bytes()),
        };
        match next_return {
            Some(0) if rest.as_bytes().get(1) == Some(&b'\n') => Some(("\n", seen + 2)),
            Some(0) => Some(("\n", seen + 1)),
            Some(at) => Some((&near[..at], seen + at)),
            None if near.is_empty() => None,
            None => Some((near, seen + near.len())),
        }
    }

    /// Returns the approximate length of the text, in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, |slice| slice.range.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of the text, if it is small beside the file that it would keep in memory.
    pub(crate) fn compact(self) -> Self {
        if self.len() < self.memory_bytes() / 4 { self.to_string().into() } else { self }
    }

    /// Returns the size of the block in memory, in bytes: a part of a file keeps the whole of it.
    pub fn memory_bytes(&self) -> usize {
        self.head.capacity() + self.body.as_ref().map_or(0, |slice| slice.text.whole().len())
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mut seen = 0;
        while let Some((chunk, next)) = self.chunk(seen) {
            f.write_str(chunk)?;
            seen = next;
        }
        Ok(())
    }
}

/// Most bytes in a chunk of a text.
const CHUNK_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    fn block(range: Range<usize>) -> Block {
        let text = Text::decode(Arc::new("a\r\n".repeat(1000).into_bytes())).expect("text");
        Block::of_lines("head\n".into(), text, range)
    }

    #[test]
    fn a_small_part_of_a_file_lets_go_of_it() {
        for (range, kept) in [(0..3000, true), (0..1500, true), (300..306, false), (0..0, false)] {
            let before = block(range.clone());
            assert!(before.memory_bytes() >= 3000);
            let after = before.clone().compact();
            assert_eq!(after.memory_bytes() >= 3000, kept, "{range:?}");
            assert_eq!(after.to_string(), before.to_string(), "{range:?}");
        }
    }

    #[test]
    fn blocks_know_what_they_are() {
        let json = Block::of_json("[1]".into());
        assert!(json.is_json() && json.to_string() == "[1]" && !json.is_after_mark());
        assert!(!Block::from("[1]".to_owned()).is_json());
        let text = |bytes: &[u8]| Text::decode(Arc::new(bytes.to_vec())).expect("text");
        let marked = |range| Block::of_text(text(b"\xef\xbb\xbfab"), range).is_after_mark();
        assert!(marked(0..2) && !marked(1..2));
        assert!(!Block::of_text(text(b"ab"), 0..2).is_after_mark());
    }

    #[test]
    fn the_length_of_a_block_is_that_of_its_parts() {
        assert_eq!((block(0..3).len(), block(0..3).is_empty()), (8, false));
        assert_eq!((Block::default().len(), Block::default().is_empty()), (0, true));
    }
}
