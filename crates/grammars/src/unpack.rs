//! Unpacks the tables that `build/pack.rs` packed.
//!
//! The packed bytes are two lengths for each stream, then the streams as raw LZMA: the number of literals that come next;
//! the length of the repetition that follows, counted from [`REPETITION_MIN`] on; its distance back, as a code and two
//! bytes; the low and the high bytes of the literals; and texts.

use std::ops::Range;

use lzma_rust2::{LzmaReader, Read as _};

pub(crate) const STREAMS: usize = 8;
/// Parameters of LZMA: the streams are bytes without an alignment, and the previous byte says little about the next.
pub(crate) const LC: u32 = 0;
pub(crate) const LP: u32 = 0;
pub(crate) const PB: u32 = 0;
/// Least length of a repetition, in numbers.
pub(crate) const REPETITION_MIN: usize = 2;
/// Codes below this stand for one of the distances used last.
pub(crate) const RECENT_DISTANCES: usize = 4;
/// Code of a distance whose two bytes count rows.
pub(crate) const ROW_DISTANCE: u8 = 4;
/// This code and all above: the two bytes are the low bits of a distance in numbers, and the code minus this is the
/// high bits.
pub(crate) const FAR_DISTANCE: u8 = 5;

/// Layout of a language's tables one after another, in words of 16 bits.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub words: usize,
    /// Number of words in a row of the largest table.
    pub width: usize,
    /// Words that are packed as the difference from their index in this range.
    pub counted: Range<usize>,
    /// Table of states that differ in length; `starts` is where each of them begins, which is computed and not packed.
    pub states: Range<usize>,
    pub starts: Range<usize>,
    pub tokens: Tokens,
}

/// Ranges of the tables that find tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// Distance of each character that a class begins with from the one before; the first is 0.
    pub gaps: Range<usize>,
    /// Classes: of the end of a text, of bytes that are no character, then of the characters.
    pub classes: Range<usize>,
    pub all: Automaton,
    /// Finds keywords only.
    pub keywords: Automaton,
}

#[derive(Debug, Default)]
pub(crate) struct Automaton {
    /// Token that ends at each state.
    pub ends: Range<usize>,
    /// Row of each state: the next state for each class.
    pub steps: Range<usize>,
}

/// No token, or no next state.
pub(crate) const NONE: u16 = u16::MAX;
/// Flag beside the next state: the characters read so far belong to no token.
pub(crate) const SKIP: u16 = 1 << 15;

impl Layout {
    /// Unpacks the tables into `words` and returns the texts. `None` if the build script did not pack them.
    pub(crate) fn unpack(&self, packed: &[u8], words: &mut [u16]) -> Option<Vec<u8>> {
        let texts = unpack(packed, self.width, words)?;
        for (number, word) in (0..).zip(words.get_mut(self.counted.clone())?) {
            *word = word.wrapping_add(number);
        }
        let starts = starts(words.get(self.states.clone())?, self.starts.len());
        words.get_mut(self.starts.clone())?.copy_from_slice(&starts);
        Some(texts)
    }
}

/// Computes where states begin, as 32-bit numbers in `words` words: a state is the number of its groups, then for each
/// group a value, the number of its symbols, and the symbols.
pub(crate) fn starts(states: &[u16], words: usize) -> Vec<u16> {
    let mut starts = Vec::with_capacity(words);
    let mut at = 0_usize;
    let word = |at: usize| states.get(at).copied().map_or(0, usize::from);
    while starts.len() < words {
        let [a, b, c, d] = u32::try_from(at).unwrap_or(u32::MAX).to_ne_bytes();
        starts.extend([u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]);
        let groups = word(at);
        at += 1;
        for _ in 0..groups {
            at = at.saturating_add(2 + word(at + 1));
        }
    }
    starts.truncate(words);
    starts
}

/// Unpacks into `words`, which have rows of `width` words, and returns the texts.
fn unpack(packed: &[u8], width: usize, words: &mut [u16]) -> Option<Vec<u8>> {
    let (lengths, mut compressed) = packed.split_at_checked(STREAMS * 8)?;
    let mut streams = Vec::with_capacity(STREAMS);
    for lengths in lengths.as_chunks::<8>().0 {
        let number = |at: usize| {
            let bytes = lengths[at..].first_chunk::<4>()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let (own, rest) = compressed.split_at_checked(number(4)?)?;
        streams.push(decompress(own, number(0)?)?);
        compressed = rest;
    }
    let texts = streams.pop()?;
    let streams: Vec<&[u8]> = streams.iter().map(Vec::as_slice).collect();
    Unpacker { streams: streams.try_into().ok()?, recent: [1, 2, 3, 4], width }.fill(words)?;
    Some(texts)
}

/// Size of the window of a stream of `length` bytes: all of it.
pub(crate) fn window_size(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).max(4096)
}

/// Decompresses a stream that has `length` bytes.
fn decompress(compressed: &[u8], length: usize) -> Option<Vec<u8>> {
    let stream_size = u64::try_from(length).ok()?;
    let mut reader =
        LzmaReader::new(compressed, stream_size, LC, LP, PB, window_size(length), None).ok()?;
    let mut stream = vec![0; length];
    reader.read_exact(&mut stream).ok()?;
    Some(stream)
}

struct Unpacker<'a> {
    /// Unread rest of each stream.
    streams: [&'a [u8]; STREAMS - 1],
    /// Distances used last, the most recent first.
    recent: [usize; RECENT_DISTANCES],
    width: usize,
}

impl<'a> Unpacker<'a> {
    fn fill(mut self, words: &mut [u16]) -> Option<()> {
        let mut at = 0;
        loop {
            let count = self.number(0)?;
            let literals = self.take(5, count)?.iter().zip(self.take(6, count)?);
            for (word, (low, high)) in
                words.get_mut(at..)?.get_mut(..count)?.iter_mut().zip(literals)
            {
                *word = u16::from_le_bytes([*low, *high]);
            }
            at += count;
            if at == words.len() {
                return Some(());
            }
            let length = self.number(1)?.checked_add(REPETITION_MIN)?;
            let distance = self.distance()?;
            repeat(words, at, distance, length)?;
            at += length;
        }
    }

    fn distance(&mut self) -> Option<usize> {
        let code = self.byte(2)?;
        if usize::from(code) < RECENT_DISTANCES {
            self.recent[..=usize::from(code)].rotate_right(1);
            return Some(self.recent[0]);
        }
        let number = usize::from(u16::from_le_bytes([self.byte(3)?, self.byte(4)?]));
        let distance = if code == ROW_DISTANCE {
            number * self.width
        } else {
            usize::from(code - FAR_DISTANCE) << 16 | number
        };
        self.recent.rotate_right(1);
        self.recent[0] = distance;
        Some(distance)
    }

    fn byte(&mut self, stream: usize) -> Option<u8> {
        let (first, rest) = self.streams[stream].split_first()?;
        self.streams[stream] = rest;
        Some(*first)
    }

    fn take(&mut self, stream: usize, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.streams[stream].split_at_checked(count)?;
        self.streams[stream] = rest;
        Some(taken)
    }

    fn number(&mut self, stream: usize) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte(stream)?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

/// Copies to `at` the `length` words that begin `distance` before it. If they overlap, those `distance` words are
/// repeated.
fn repeat(words: &mut [u16], at: usize, distance: usize, length: usize) -> Option<()> {
    let start = at.checked_sub(distance).filter(|start| *start < at)?;
    let end = at.checked_add(length).filter(|end| *end <= words.len())?;
    let mut at = at;
    while at < end {
        let piece = (end - at).min(at - start);
        words.copy_within(start..start + piece, at);
        at += piece;
    }
    Some(())
}
