//! A cache of line positions in large files, valid as long as their stamps stay the same. With it a few lines are read
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
pub(crate) const LARGE: u64 = 256 * 1024;

/// Maximum number of files that are cached. One takes 2 KB at most.
const FILES: usize = 32;

/// Maximum number of marks in a file, and minimum number of bytes between two of them.
const MARKS: u64 = 128;
const STRIDE: u64 = 64 * 1024;

/// Number of bytes that are read and scanned together.
const BLOCK: usize = 32 * 1024;

/// Line positions of large files; the one that was used last comes last.
#[derive(Debug, Default)]
pub(crate) struct Landmarks(Mutex<VecDeque<Arc<Known>>>);

impl Landmarks {
    /// Reads lines of an open file of up to `max` bytes; `None` when the whole file has to be read to tell.
    pub fn excerpt(&self, file: &File, max: u64, lines: LineRange, call: &Call) -> Option<Excerpt> {
        let stat = os::stat_open(file).ok()?;
        if stat.kind != FileKind::File || !(LARGE..=max).contains(&stat.stamp.size) {
            return None;
        }
        let known = match self.find(stat.stamp) {
            Some(known) => known,
            // Reading the file through first would save little for a caller that asks for all the rest of it.
            None if lines.last == usize::MAX => return None,
            None if stat.stamp.is_settled(SystemTime::now()) => {
                self.keep(survey(file, stat.stamp, call)?)
            }
            None => return None,
        };
        known.excerpt(file, lines)
    }

    fn find(&self, stamp: Stamp) -> Option<Arc<Known>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|known| known.stamp == stamp)?;
        let known = all.remove(at)?;
        all.push_back(Arc::clone(&known));
        Some(known)
    }

    fn keep(&self, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another version of the file will not come back, and another call may have cached the same one first.
        let id = |known: &Known| (known.stamp.device, known.stamp.inode);
        all.retain(|other| id(other) != id(&known));
        if all.len() >= FILES {
            all.pop_front();
        }
        all.push_back(Arc::clone(&known));
        known
    }
}

fn is_still(file: &File, stamp: Stamp) -> bool {
    os::stat_open(file).is_ok_and(|stat| stat.stamp == stamp)
}

/// Line positions, line count and hash of a file that is text.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    hash: Hash,
    /// Number of lines of the whole file.
    total: usize,
    /// Marks in order. The first is where the text begins, after a byte order mark.
    marks: Vec<Mark>,
}

/// A line, counted from 0, and the byte of the file it begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    line: usize,
    at: u64,
}

impl Known {
    fn excerpt(&self, file: &File, lines: LineRange) -> Option<Excerpt> {
        let (hash, total) = (self.hash, self.total);
        if lines.first >= total {
            return Some(Excerpt { text: Text::empty(), lines: 0..0, total, hash });
        }
        let (begin, end) = self.around(lines)?;
        // For more than half of the file a whole read is better: it leaves the lines where they were read, and moves
        // nothing.
        if end - begin.at > self.stamp.size / 2 {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(end - begin.at).ok()?];
        if read_at(file, &mut bytes, begin.at).ok()? < bytes.len() {
            return None;
        }
        let (text, lines) = cut(bytes, lines, begin.line)?;
        // The bytes belong to the cached hash and total only if the file was not changed meanwhile.
        is_still(file, self.stamp).then_some(Excerpt { text, lines, total, hash })
    }

    /// Returns the mark before the first of these lines, and the nearest known position after the last of them where a
    /// line begins or the file ends.
    fn around(&self, LineRange { first, last }: LineRange) -> Option<(Mark, u64)> {
        let marks_up_to = |line| self.marks.partition_point(|mark| mark.line <= line);
        let begin = *self.marks[..marks_up_to(first)].last()?;
        let end = self.marks.get(marks_up_to(last)).map_or(self.stamp.size, |mark| mark.at);
        (first <= last).then_some((begin, end))
    }
}

/// Cuts the lines of `range` out of `bytes`, which begin with the line `base`. Returns them and their numbers.
fn cut(bytes: Vec<u8>, range: LineRange, base: usize) -> Option<(Text, Range<usize>)> {
    let piece = String::from_utf8(bytes).ok()?;
    let from_base = LineRange { first: range.first - base, last: range.last - base };
    let found = lines::select(&piece, from_base)?;
    // Copied, so that the bytes around the lines are freed.
    let text = piece[found.bytes].to_owned();
    Some((Text::part(text).ok()?, base + found.first..base + found.last + 1))
}

/// Reads a file through and marks its lines; `None` if it is not text, or changes meanwhile.
fn survey(file: &File, stamp: Stamp, call: &Call) -> Option<Known> {
    let mut survey = Survey::new(STRIDE.max(stamp.size / MARKS));
    let mut block = vec![0; BLOCK];
    // Number of bytes carried over: the beginning of a character that the previous block cut off.
    let mut carried = 0;
    loop {
        call.check().ok()?;
        let read = read_at(file, &mut block[carried..], survey.seen + carried as u64).ok()?;
        let filled = carried + read;
        let whole = if filled == BLOCK { whole_characters(&block) } else { filled };
        survey.take(&block[..whole])?;
        if filled < BLOCK {
            let is_all = survey.seen == stamp.size && is_still(file, stamp);
            return is_all.then(|| survey.finish(stamp));
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
fn whole_characters(block: &[u8]) -> usize {
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

/// State of reading a file through.
struct Survey {
    hash: Xxh3,
    /// Number of bytes read so far, and the last of them.
    seen: u64,
    last: Option<u8>,
    /// Number of line ends so far. A `\r` counts at once, and a `\n` after it does not count.
    ends: usize,
    marks: Vec<Mark>,
    stride: u64,
    /// Byte from which on the next mark may be set.
    due: u64,
}

impl Survey {
    fn new(stride: u64) -> Survey {
        let marks = Vec::new();
        Survey { hash: Xxh3::new(), seen: 0, last: None, ends: 0, marks, stride, due: stride }
    }

    /// Adds a block, which has whole characters only. `None` if it is not text.
    fn take(&mut self, block: &[u8]) -> Option<()> {
        simdutf8::basic::from_utf8(block).ok()?;
        if memchr::memchr(0, block).is_some() {
            return None;
        }
        if self.marks.is_empty() && !block.is_empty() {
            let at = if block.starts_with(BOM) { BOM.len() as u64 } else { 0 };
            self.marks.push(Mark { line: 0, at });
        }
        self.hash.update(block);
        let is_second_half = self.last == Some(b'\r') && block.first() == Some(&b'\n');
        self.ends += lines::count_ends(block) - usize::from(is_second_half);
        let seen = self.seen + block.len() as u64;
        if seen >= self.due && self.mark(block) {
            self.due = seen + self.stride;
        }
        self.seen = seen;
        self.last = block.last().copied().or(self.last);
        Some(())
    }

    /// Marks the last beginning of a line in `block`, whose line ends are counted. True if there is one.
    fn mark(&mut self, block: &[u8]) -> bool {
        // A `\r` at the very end may be followed by a `\n`, so the beginning of the next line is not known yet.
        let (told, untold) = match block {
            [told @ .., b'\r'] => (told, 1),
            told => (told, 0),
        };
        let Some(end) = memchr::memrchr2(b'\n', b'\r', told) else { return false };
        let at = self.seen + end as u64 + 1;
        self.marks.push(Mark { line: self.ends - untold, at });
        true
    }

    fn finish(mut self, stamp: Stamp) -> Known {
        let text_begins = self.marks.first().map_or(0, |mark| mark.at);
        let is_ended = self.seen <= text_begins || matches!(self.last, Some(b'\n' | b'\r'));
        self.marks.shrink_to_fit();
        Known {
            stamp,
            hash: Hash::of_all(&self.hash),
            total: self.ends + usize::from(!is_ended),
            marks: self.marks,
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
    fn surveyed(text: &str, cuts: &[usize], stride: u64) -> Known {
        let mut survey = Survey::new(stride);
        let mut rest = text;
        for cut in cuts.iter().copied().cycle().take(text.len()) {
            let (block, more) = rest.split_at(rest.floor_char_boundary(cut));
            survey.take(block.as_bytes()).unwrap();
            rest = more;
        }
        survey.take(rest.as_bytes()).unwrap();
        survey.finish(Stamp { size: text.len() as u64, ..Stamp::MISSING })
    }

    /// Does for a text in memory what [`Known::excerpt`] does for a file.
    fn excerpt(known: &Known, text: &str, lines: LineRange) -> Option<(String, Range<usize>)> {
        let (begin, end) = known.around(lines)?;
        let piece =
            &text.as_bytes()[usize::try_from(begin.at).unwrap()..usize::try_from(end).unwrap()];
        let (text, lines) = cut(piece.to_vec(), lines, begin.line)?;
        Some((text.as_str().to_owned(), lines))
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_whole_text(
            text in "\u{feff}?[aé\u{feff}\r\n]{1,30}",
            cuts in prop::collection::vec(1_usize..6, 1..4),
            stride in 0_u64..8,
        ) {
            let known = surveyed(&text, &cuts, stride);
            let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
            prop_assert_eq!(known.total, lines::count(body));
            prop_assert_eq!(known.hash, Hash::of(text.as_bytes()));
            for first in 0..known.total {
                for last in first..known.total + 2 {
                    let range = LineRange { first, last };
                    let whole = lines::select(body, range)
                        .map(|found| (body[found.bytes].to_owned(), found.first..found.last + 1));
                    prop_assert_eq!(excerpt(&known, &text, range), whole, "{:?}", range);
                }
            }
        }

        #[test]
        fn a_block_ends_with_a_whole_character(text in "[aé漢😀]{4,8}", cut in 4_usize..20) {
            let block = &text.as_bytes()[..cut.min(text.len())];
            prop_assert_eq!(whole_characters(block), text.floor_char_boundary(block.len()));
        }
    }

    #[test]
    fn marks_are_as_dense_as_they_may_be() {
        for (text, least) in [("a\n", 40), ("\r\n", 40), ("\r", 40), ("\n\r", 40), ("a", 1)] {
            let text = text.repeat(1000 / text.len());
            let marks = surveyed(&text, &[5], 20).marks;
            assert!((least..=51).contains(&marks.len()), "{text:.4} has {} marks", marks.len());
        }
    }

    #[test]
    fn what_is_not_text_is_not_known() {
        for bytes in [&b"a\xff"[..], b"a\0", b"\xe2\x82"] {
            assert!(Survey::new(1).take(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn of_too_many_files_the_one_used_longest_ago_is_forgotten() {
        let landmarks = Landmarks::default();
        let stamp = |inode: usize| Stamp { inode: inode as u64, ..Stamp::MISSING };
        let known = |stamp| Known { stamp, hash: Hash::of(b""), total: 0, marks: Vec::new() };
        for inode in 0..FILES * 3 {
            landmarks.keep(known(stamp(inode)));
            assert!(landmarks.find(stamp(0)).is_some(), "{inode}");
        }
        assert!(landmarks.find(stamp(1)).is_none());
        assert_eq!(landmarks.0.lock().unwrap().len(), FILES);
        landmarks.keep(known(Stamp { size: 1, ..stamp(0) }));
        assert!(landmarks.find(stamp(0)).is_none(), "another version of it is known");
        assert_eq!(landmarks.0.lock().unwrap().len(), FILES);
    }

    #[test]
    fn a_file_is_known_once_it_is_settled_and_until_it_changes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all("é line\r\n".repeat(40_000).as_bytes()).unwrap();
        let landmarks = Landmarks::default();
        let call = Call::until(Instant::now() + Duration::from_mins(1));
        let read = |max| {
            let lines = LineRange { first: 39_998, last: 39_999 };
            let opened = File::open(file.path()).unwrap();
            let found = landmarks.excerpt(&opened, max, lines, &call)?;
            assert_eq!(found.text.as_str(), "é line\r\n".repeat(2));
            assert_eq!(found.lines, 39_998..40_000);
            assert_eq!(found.hash, Hash::of(&fs::read(file.path()).unwrap()));
            Some(found.total)
        };
        let is_known = || !landmarks.0.lock().unwrap().is_empty();
        assert_eq!((read(u64::MAX), is_known()), (None, false), "it is young");
        thread::sleep(Duration::from_millis(2100));
        assert_eq!((read(1000), is_known()), (None, false), "it is too large");
        let rest = LineRange { first: 39_998, last: usize::MAX };
        let read_rest = || {
            let opened = File::open(file.path()).unwrap();
            landmarks.excerpt(&opened, u64::MAX, rest, &call).map(|found| found.lines)
        };
        assert_eq!((read_rest(), is_known()), (None, false), "it may be much");
        assert_eq!((read(u64::MAX), is_known()), (Some(40_000), true));
        assert_eq!(read_rest(), Some(39_998..40_000));
        assert_eq!(read(u64::MAX), Some(40_000));

        // Another program writes into the file after it was found in the cache: in place, the same number of bytes.
        let before = Arc::clone(&landmarks.0.lock().unwrap()[0]);
        let again = fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let first = LineRange { first: 0, last: 0 };
        assert!(before.excerpt(&again, first).is_some());
        assert!(before.excerpt(&again, LineRange { first: 0, last: 30_000 }).is_none(), "too much");
        assert!(survey(&again, before.stamp, &call).is_some());
        (&again).write_all("ü".as_bytes()).unwrap();
        assert!(before.excerpt(&again, first).is_none());
        assert!(survey(&again, before.stamp, &call).is_none());
        assert_eq!(read(u64::MAX), None, "it is young again");
        (&again).seek(io::SeekFrom::End(0)).unwrap();
        (&again).write_all(b"more\n").unwrap();
        thread::sleep(Duration::from_millis(2100));
        assert_eq!(read(u64::MAX), Some(40_001));
    }
}
