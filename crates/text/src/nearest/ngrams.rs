//! Similarity of two folded strings, by the short runs of bytes (grams) that they share.

use std::ops::Range;

/// Length of a gram in bytes, in short strings and in long ones: a long string has most short grams, whatever it says.
const NGRAM_BYTES: usize = 3;
const LONG_NGRAM_BYTES: usize = 8;
const LONG_STRING_BYTES: usize = 256;
/// Share of the needle's grams that a window must have to be compared closely, in percent.
const SHARED_PERCENT_MIN: usize = 30;
/// Most windows compared closely, and more of them for a needle of few bytes, where that costs less.
const WINDOWS_MAX: usize = 3;
const SHORT_NEEDLE_WINDOWS_MAX: usize = 8;
const SHORT_NEEDLE_BYTES: usize = 2 << 10;

/// Returns the parts of `text` as long as `wanted` that share most grams with it: the best few, disjoint and sorted.
pub(super) fn windows(text: &[u8], wanted: &[u8]) -> Vec<Range<usize>> {
    let gram = ngram_length(wanted);
    let mut missing = MissingNgrams::new(wanted, gram);
    let most =
        if wanted.len() < SHORT_NEEDLE_BYTES { SHORT_NEEDLE_WINDOWS_MAX } else { WINDOWS_MAX };
    let width = wanted.len().min(text.len());
    let least = (wanted.len() + 1).saturating_sub(gram) * SHARED_PERCENT_MIN / 100;
    // The best window that overlaps the last one seen; and the best ones before it, keyed by what they do not share.
    let mut current: Option<(usize, usize)> = None;
    let mut best: Vec<(usize, usize)> = Vec::new();
    let close = |best: &mut Vec<(usize, usize)>, window: Option<(usize, usize)>| {
        best.extend(window.map(|(common, start)| (usize::MAX - common, start)));
        best.sort_unstable();
        best.truncate(most);
    };
    for (at, entering) in text.windows(gram).enumerate() {
        missing.enter(entering);
        let Some(start) = (at + gram).checked_sub(width) else { continue };
        if current.is_some_and(|(_, other)| start >= other + width) {
            close(&mut best, current.take());
        }
        if missing.common > least && current.is_none_or(|(common, _)| common < missing.common) {
            current = Some((missing.common, start));
        }
        missing.leave(&text[start..start + gram]);
    }
    close(&mut best, current);
    let mut starts: Vec<usize> = best.into_iter().map(|(_, start)| start).collect();
    starts.sort_unstable();
    starts.into_iter().map(|start| start..start + width).collect()
}

fn ngram_length(string: &[u8]) -> usize {
    if string.len() < LONG_STRING_BYTES { NGRAM_BYTES } else { LONG_NGRAM_BYTES }
}

/// Counts how often a window lacks each gram of a needle; negative where it has more.
struct MissingNgrams {
    /// One count for each hash: a collision makes a window look slightly better than it is.
    count: Vec<i32>,
    common: usize,
}

impl MissingNgrams {
    fn new(wanted: &[u8], gram: usize) -> Self {
        let mut count = vec![0; 1 << 16];
        for gram in wanted.windows(gram) {
            count[hash(gram)] += 1;
        }
        Self { count, common: 0 }
    }

    fn enter(&mut self, gram: &[u8]) {
        let count = &mut self.count[hash(gram)];
        self.common += usize::from(*count > 0);
        *count -= 1;
    }

    fn leave(&mut self, gram: &[u8]) {
        let count = &mut self.count[hash(gram)];
        *count += 1;
        self.common -= usize::from(*count > 0);
    }
}

fn hash(gram: &[u8]) -> usize {
    // Both lengths are spelled out because this runs for every byte of a text.
    let number = match gram {
        [a, b, c] => u64::from_le_bytes([*a, *b, *c, 0, 0, 0, 0, 0]),
        _ => gram.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
    };
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

/// The set of grams of a line, its ends included, which is cheap to compare with many others.
pub(super) struct NgramSet {
    /// One bit for each hash.
    bits: [u64; 8],
    count: usize,
}

impl NgramSet {
    pub(super) fn of(folded: &[u8]) -> Self {
        let mut bits = [0; 8];
        let mut gram = [0; NGRAM_BYTES];
        for byte in folded.iter().chain(&[0; NGRAM_BYTES - 1]) {
            gram = [gram[1], gram[2], *byte];
            let slot = hash(&gram) >> 7;
            bits[slot / 64] |= 1 << (slot % 64);
        }
        Self { bits, count: bits.iter().map(|bits: &u64| bits.count_ones() as usize).sum() }
    }

    /// Returns the similarity in percent; 0 if one has far more grams than the other.
    pub(super) fn similarity(&self, other: &Self) -> usize {
        let (less, more) = (self.count.min(other.count), self.count.max(other.count));
        if 4 * less < more {
            return 0;
        }
        let both = self.bits.iter().zip(&other.bits).map(|(a, b)| (a & b).count_ones() as usize);
        both.sum::<usize>() * 200 / (less + more)
    }
}

/// Returns the similarity of two folded strings, in percent.
pub(super) fn similarity(left: &[u8], right: &[u8]) -> usize {
    let gram = ngram_length(left).min(ngram_length(right));
    let grams = (left.len() + 1).saturating_sub(gram) + (right.len() + 1).saturating_sub(gram);
    let mut missing = MissingNgrams::new(left, gram);
    right.windows(gram).for_each(|gram| missing.enter(gram));
    missing.common * 200 / grams.max(1)
}
