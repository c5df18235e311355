//! A cache of line offsets in large files, valid as long as their stamps stay the same. With it a few lines are read
//! without the rest, and still returned with the total number of lines and the hash of the whole file.
//!
//! A file that is not cached is read through once, in blocks that fit the processor's cache, and never held whole. An
//! unusual file (young, not text, changing meanwhile) is left to a caller that reads it whole.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use text::{LineRange, Text, lines};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    Call, Excerpt, Hash, Stamp,
    os::{self, FileKind},
};

/// Size in bytes from which on a file is large. A smaller file is read whole: that is as quick.
pub(crate) const LARGE_FILE_MIN: u64 = 256 * 1024;

/// Maximum number of files that are cached. One takes 2 KB at most.
const FILES_MAX: usize = 32;

/// Maximum number of offsets kept of a file, and minimum number of bytes between two of them.
const OFFSETS_MAX: u64 = 128;
const STRIDE_MIN: u64 = 64 * 1024;

/// Number of bytes that are read and scanned together.
const BLOCK_SIZE: usize = 32 * 1024;

/// Indexes of large files; the one that was used last comes last.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<VecDeque<Arc<LineIndex>>>);

impl LineIndexCache {
    /// Reads lines of an open file of up to `max` bytes; `None` when the whole file has to be read to tell.
    pub fn excerpt(&self, file: &File, max: u64, lines: LineRange, call: &Call) -> Option<Excerpt> {
        let stat = os::stat_open(file).ok()?;
        if stat.kind != FileKind::File || !(LARGE_FILE_MIN..=max).contains(&stat.stamp.size) {
            return None;
        }
        let index = match self.find(stat.stamp) {
            Some(index) => index,
            // Reading the file through first would save little for a caller that asks for all the rest of it.
            None if lines.last == usize::MAX => return None,
            None if stat.stamp.is_settled(SystemTime::now()) => {
                self.insert(build_index(file, stat.stamp, call)?)
            }
            None => return None,
        };
        index.excerpt(file, lines)
    }

    fn find(&self, stamp: Stamp) -> Option<Arc<LineIndex>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|index| index.stamp == stamp)?;
        let index = all.remove(at)?;
        all.push_back(Arc::clone(&index));
        Some(index)
    }

    fn insert(&self, index: LineIndex) -> Arc<LineIndex> {
        let index = Arc::new(index);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another version of the file will not come back, and another call may have cached the same one first.
        let id = |index: &LineIndex| (index.stamp.device, index.stamp.inode);
        all.retain(|other| id(other) != id(&index));
        if all.len() >= FILES_MAX {
            all.pop_front();
        }
        all.push_back(Arc::clone(&index));
        index
    }
}

fn is_unchanged(file: &File, stamp: Stamp) -> bool {
    os::stat_open(file).is_ok_and(|stat| stat.stamp == stamp)
}

/// Line offsets, line count and hash of a file that is text.
#[derive(Debug)]
struct LineIndex {
    stamp: Stamp,
    hash: Hash,
    /// Number of lines of the whole file.
    total: usize,
    /// Offsets in order. The first is where the text begins, after a byte order mark.
    offsets: Vec<LineOffset>,
}

/// A line, counted from 0, and the byte of the file it begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineOffset {
    line: usize,
    offset: u64,
}

impl LineIndex {
    fn excerpt(&self, file: &File, lines: LineRange) -> Option<Excerpt> {
        let (hash, total) = (self.hash, self.total);
        if lines.first >= total {
            return Some(Excerpt { text: Text::empty(), lines: 0..0, total, hash });
        }
        let (begin, end) = self.enclosing(lines)?;
        // For more than half of the file a whole read is better: it leaves the lines where they were read, and moves
        // nothing.
        if end - begin.offset > self.stamp.size / 2 {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(end - begin.offset).ok()?];
        if read_at(file, &mut bytes, begin.offset).ok()? < bytes.len() {
            return None;
        }
        let (text, lines) = cut_lines(bytes, lines, begin.line)?;
        // The bytes belong to the cached hash and total only if the file was not changed meanwhile.
        is_unchanged(file, self.stamp).then_some(Excerpt { text, lines, total, hash })
    }

    /// Returns the kept offset before the first of these lines, and the nearest known position after the last of them
    /// where a line begins or the file ends.
    fn enclosing(&self, LineRange { first, last }: LineRange) -> Option<(LineOffset, u64)> {
        let offsets_up_to = |line| self.offsets.partition_point(|offset| offset.line <= line);
        let begin = *self.offsets[..offsets_up_to(first)].last()?;
        let end =
            self.offsets.get(offsets_up_to(last)).map_or(self.stamp.size, |offset| offset.offset);
        (first <= last).then_some((begin, end))
    }
}

/// Cuts the lines of `range` out of `bytes`, which begin with the line `base`. Returns them and their numbers.
fn cut_lines(bytes: Vec<u8>, range: LineRange, base: usize) -> Option<(Text, Range<usize>)> {
    let piece = String::from_utf8(bytes).ok()?;
    let from_base = LineRange { first: range.first - base, last: range.last - base };
    let selected = lines::select(&piece, from_base)?;
    // Copied, so that the bytes around the lines are freed.
    let text = piece[selected.bytes].to_owned();
    Some((Text::part(text).ok()?, base + selected.first..base + selected.last + 1))
}

/// Reads a file through and builds its index; `None` if it is not text, or changes meanwhile.
fn build_index(file: &File, stamp: Stamp, call: &Call) -> Option<LineIndex> {
    let mut builder = LineIndexBuilder::new(STRIDE_MIN.max(stamp.size / OFFSETS_MAX));
    let mut block = vec![0; BLOCK_SIZE];
    // Number of bytes carried over: the beginning of a character that the previous block cut off.
    let mut carried = 0;
    loop {
        call.check().ok()?;
        let read =
            read_at(file, &mut block[carried..], builder.bytes_read + carried as u64).ok()?;
        let filled = carried + read;
        let whole = if filled == BLOCK_SIZE { whole_characters_len(&block) } else { filled };
        builder.add_block(&block[..whole])?;
        if filled < BLOCK_SIZE {
            let is_all = builder.bytes_read == stamp.size && is_unchanged(file, stamp);
            return is_all.then(|| builder.finish(stamp));
        }
        block.copy_within(whole..filled, 0);
        carried = filled - whole;
    }
}

/// Reads bytes from a position of a file, as many as there are or as fit.
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match crate::resolve::retry_on_interrupt(|| {
            os::read_at(file, &mut into[read..], at + read as u64)
        })? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// Returns how many bytes of `block` are left without an incomplete character at its end.
fn whole_characters_len(block: &[u8]) -> usize {
    let lead = block.iter().rev().take(4).position(|&byte| !is_continuation(byte));
    let Some(behind) = lead else { return block.len() };
    let at = block.len() - behind - 1;
    let length = match block[at] {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    if length > behind + 1 { at } else { block.len() }
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Builds an index while a file is read through.
struct LineIndexBuilder {
    hash: Xxh3,
    /// Number of bytes read so far, and the last of them.
    bytes_read: u64,
    last: Option<u8>,
    /// Number of line ends so far. A `\r` counts at once, and a `\n` after it does not count.
    line_ends: usize,
    offsets: Vec<LineOffset>,
    stride: u64,
    /// Byte from which on the next offset is kept.
    next_offset_min: u64,
}

impl LineIndexBuilder {
    fn new(stride: u64) -> Self {
        let offsets = Vec::new();
        Self {
            hash: Xxh3::new(),
            bytes_read: 0,
            last: None,
            line_ends: 0,
            offsets,
            stride,
            next_offset_min: stride,
        }
    }

    /// Adds a block, which has whole characters only. `None` if it is not text.
    fn add_block(&mut self, block: &[u8]) -> Option<()> {
        simdutf8::basic::from_utf8(block).ok()?;
        if memchr::memchr(0, block).is_some() {
            return None;
        }
        if self.offsets.is_empty() && !block.is_empty() {
            let offset = if block.starts_with(BOM) { BOM.len() as u64 } else { 0 };
            self.offsets.push(LineOffset { line: 0, offset });
        }
        self.hash.update(block);
        let is_second_half = self.last == Some(b'\r') && block.first() == Some(&b'\n');
        self.line_ends += lines::count_ends(block) - usize::from(is_second_half);
        let bytes_read = self.bytes_read + block.len() as u64;
        if bytes_read >= self.next_offset_min && self.add_offset(block) {
            self.next_offset_min = bytes_read + self.stride;
        }
        self.bytes_read = bytes_read;
        self.last = block.last().copied().or(self.last);
        Some(())
    }

    /// Keeps the offset of the last line that begins in `block`, whose line ends are counted. True if one does.
    fn add_offset(&mut self, block: &[u8]) -> bool {
        // A `\r` at the very end may be followed by a `\n`, so the beginning of the next line is not known yet.
        let (text, uncounted) = match block {
            [text @ .., b'\r'] => (text, 1),
            text => (text, 0),
        };
        let Some(end) = memchr::memrchr2(b'\n', b'\r', text) else { return false };
        let offset = self.bytes_read + end as u64 + 1;
        self.offsets.push(LineOffset { line: self.line_ends - uncounted, offset });
        true
    }

    fn finish(mut self, stamp: Stamp) -> LineIndex {
        let text_begins = self.offsets.first().map_or(0, |offset| offset.offset);
        let is_ended = self.bytes_read <= text_begins || matches!(self.last, Some(b'\n' | b'\r'));
        self.offsets.shrink_to_fit();
        LineIndex {
            stamp,
            hash: Hash::of_digest(&self.hash),
            total: self.line_ends + usize::from(!is_ended),
            offsets: self.offsets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{
        fs,
        io::{Seek, Write},
        thread,
        time::{Duration, Instant},
    };

    /// Reads `text` through in blocks that end where `cuts` say, as far as characters allow.
    fn indexed(text: &str, cuts: &[usize], stride: u64) -> LineIndex {
        let mut builder = LineIndexBuilder::new(stride);
        let mut rest = text;
        for cut in cuts.iter().copied().cycle().take(text.len()) {
            let (block, more) = rest.split_at(rest.floor_char_boundary(cut));
            builder.add_block(block.as_bytes()).unwrap();
            rest = more;
        }
        builder.add_block(rest.as_bytes()).unwrap();
        builder.finish(Stamp { size: text.len() as u64, ..Stamp::MISSING })
    }

    /// Does for a text in memory what [`LineIndex::excerpt`] does for a file.
    fn excerpt(index: &LineIndex, text: &str, lines: LineRange) -> Option<(String, Range<usize>)> {
        let (begin, end) = index.enclosing(lines)?;
        let piece =
            &text.as_bytes()[usize::try_from(begin.offset).unwrap()..usize::try_from(end).unwrap()];
        let (text, lines) = cut_lines(piece.to_vec(), lines, begin.line)?;
        Some((text.as_str().to_owned(), lines))
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_whole_text(
            text in "\u{feff}?[aé\u{feff}\r\n]{1,30}",
            cuts in prop::collection::vec(1_usize..6, 1..4),
            stride in 0_u64..8,
        ) {
            let index = indexed(&text, &cuts, stride);
            let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
            prop_assert_eq!(index.total, lines::count(body));
            prop_assert_eq!(index.hash, Hash::of(text.as_bytes()));
            for first in 0..index.total {
                for last in first..index.total + 2 {
                    let range = LineRange { first, last };
                    let whole = lines::select(body, range)
                        .map(|selected| (body[selected.bytes].to_owned(), selected.first..selected.last + 1));
                    prop_assert_eq!(excerpt(&index, &text, range), whole, "{:?}", range);
                }
            }
        }

        #[test]
        fn a_block_ends_with_a_whole_character(text in "[aé漢😀]{4,8}", cut in 4_usize..20) {
            let block = &text.as_bytes()[..cut.min(text.len())];
            prop_assert_eq!(whole_characters_len(block), text.floor_char_boundary(block.len()));
        }
    }

    #[test]
    fn offsets_are_as_dense_as_they_may_be() {
        for (text, least) in [("a\n", 40), ("\r\n", 40), ("\r", 40), ("\n\r", 40), ("a", 1)] {
            let text = text.repeat(1000 / text.len());
            let offsets = indexed(&text, &[5], 20).offsets;
            assert!(
                (least..=51).contains(&offsets.len()),
                "{text:.4} has {} offsets",
                offsets.len()
            );
        }
    }

    #[test]
    fn what_is_not_text_is_not_indexed() {
        for bytes in [&b"a\xff"[..], b"a\0", b"\xe2\x82"] {
            assert!(LineIndexBuilder::new(1).add_block(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn of_too_many_files_the_one_used_longest_ago_is_forgotten() {
        let cache = LineIndexCache::default();
        let stamp = |inode: usize| Stamp { inode: inode as u64, ..Stamp::MISSING };
        let index = |stamp| LineIndex { stamp, hash: Hash::of(b""), total: 0, offsets: Vec::new() };
        for inode in 0..FILES_MAX * 3 {
            cache.insert(index(stamp(inode)));
            assert!(cache.find(stamp(0)).is_some(), "{inode}");
        }
        assert!(cache.find(stamp(1)).is_none());
        assert_eq!(cache.0.lock().unwrap().len(), FILES_MAX);
        cache.insert(index(Stamp { size: 1, ..stamp(0) }));
        assert!(cache.find(stamp(0)).is_none(), "another version of it is index");
        assert_eq!(cache.0.lock().unwrap().len(), FILES_MAX);
    }

    #[test]
    fn a_file_is_indexed_once_it_is_settled_and_until_it_changes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all("é line\r\n".repeat(40_000).as_bytes()).unwrap();
        let cache = LineIndexCache::default();
        let call = Call::until(Instant::now() + Duration::from_mins(1));
        let read = |max| {
            let lines = LineRange { first: 39_998, last: 39_999 };
            let opened = File::open(file.path()).unwrap();
            let selected = cache.excerpt(&opened, max, lines, &call)?;
            assert_eq!(selected.text.as_str(), "é line\r\n".repeat(2));
            assert_eq!(selected.lines, 39_998..40_000);
            assert_eq!(selected.hash, Hash::of(&fs::read(file.path()).unwrap()));
            Some(selected.total)
        };
        let is_cached = || !cache.0.lock().unwrap().is_empty();
        assert_eq!((read(u64::MAX), is_cached()), (None, false), "it is young");
        thread::sleep(Duration::from_millis(2100));
        assert_eq!((read(1000), is_cached()), (None, false), "it is too large");
        let rest = LineRange { first: 39_998, last: usize::MAX };
        let read_rest = || {
            let opened = File::open(file.path()).unwrap();
            cache.excerpt(&opened, u64::MAX, rest, &call).map(|selected| selected.lines)
        };
        assert_eq!((read_rest(), is_cached()), (None, false), "it may be much");
        assert_eq!((read(u64::MAX), is_cached()), (Some(40_000), true));
        assert_eq!(read_rest(), Some(39_998..40_000));
        assert_eq!(read(u64::MAX), Some(40_000));

        // Another program writes into the file after it was found in the cache: in place, the same number of bytes.
        let before = Arc::clone(&cache.0.lock().unwrap()[0]);
        let again = fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let first = LineRange { first: 0, last: 0 };
        assert!(before.excerpt(&again, first).is_some());
        assert!(before.excerpt(&again, LineRange { first: 0, last: 30_000 }).is_none(), "too much");
        assert!(build_index(&again, before.stamp, &call).is_some());
        (&again).write_all("ü".as_bytes()).unwrap();
        assert!(before.excerpt(&again, first).is_none());
        assert!(build_index(&again, before.stamp, &call).is_none());
        assert_eq!(read(u64::MAX), None, "it is young again");
        (&again).seek(io::SeekFrom::End(0)).unwrap();
        (&again).write_all(b"more\n").unwrap();
        thread::sleep(Duration::from_millis(2100));
        assert_eq!(read(u64::MAX), Some(40_001));
    }
}
