//! Finds where lines and words start and end.

use std::ops::Range;

use memchr::{memchr2, memrchr2};

use crate::lines::{LineEnding, count};

/// Longest word, in bytes; a longer one is cut.
const WORD_BYTES_MAX: usize = 64;
/// Fewest characters that two lines must have in common besides a word that differs.
const COMMON_CHARACTERS_MIN: usize = 3;

/// Returns the number of the line that has the byte `at`.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    let before = &text[..at];
    // Between `\r` and `\n` the line has not ended yet.
    let within = before.strip_suffix('\r').filter(|_| text[at..].starts_with('\n'));
    let before = within.unwrap_or(before);
    count(before) - usize::from(!before.is_empty() && LineEnding::closing(before).is_none())
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    memrchr2(b'\n', b'\r', &text.as_bytes()[..at]).map_or(0, |before| before + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    memchr2(b'\n', b'\r', &text.as_bytes()[at..]).map_or(text.len(), |more| at + more)
}

/// True if only spaces and tabs stand before `at` in its line.
pub(super) fn is_line_start(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', '\r'])
}

pub(super) fn is_line_end(text: &str, at: usize) -> bool {
    let after = text[at..].trim_start_matches([' ', '\t']);
    after.is_empty() || after.starts_with(['\n', '\r'])
}

/// Returns the range of the lines that `bytes` is in, without the last line break.
pub(super) fn lines_around(text: &str, bytes: &Range<usize>) -> Range<usize> {
    let inside = text[bytes.clone()].trim_end_matches(['\n', '\r']).len();
    line_start(text, bytes.start)..line_end(text, bytes.start + inside)
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

pub(super) fn word_start(text: &str, at: usize) -> usize {
    let from = text.ceil_char_boundary(at.saturating_sub(WORD_BYTES_MAX));
    from + text[from..at].trim_end_matches(is_word_character).len()
}

pub(super) fn word_end(text: &str, at: usize) -> usize {
    let until = text.floor_char_boundary(at + WORD_BYTES_MAX);
    until - text[at..until].trim_start_matches(is_word_character).len()
}

/// True if `place` neither starts nor ends within a word.
pub(super) fn is_whole_words(text: &str, place: &Range<usize>) -> bool {
    let joined = |at: usize| {
        text[..at].chars().next_back().is_some_and(is_word_character)
            && text[at..].chars().next().is_some_and(is_word_character)
    };
    !joined(place.start) && !joined(place.end)
}

/// Counts the bytes that two strings have in common at their start.
pub(super) fn common_start(left: &str, right: &str) -> usize {
    let same = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    left.floor_char_boundary(same)
}

/// True if two lines are the same except for one word, and have enough else in common to mean something.
pub(super) fn differ_in_a_word(left: &str, right: &str) -> bool {
    let start = word_start(left, common_start(left, right));
    let ends = (word_end(left, start), word_end(right, start));
    let beside = |text: &str| text.chars().filter(|one| !one.is_whitespace()).count();
    start < ends.0.min(ends.1)
        && left[ends.0..] == right[ends.1..]
        && beside(&left[..start]) + beside(&left[ends.0..]) >= COMMON_CHARACTERS_MIN
}
