//! Texts that have more than the scanner of their language can keep.
//!
//! A scanner that knows indentation writes what it is inside of to 1,024 bytes, and two of them write past the end when
//! that is not enough, which ends the process at best. So does one that keeps the length of a word in a byte. How much a
//! text has of these is bounded here by what it looks like, before any of it is parsed: real ones do not come near.

use memchr::{memchr, memchr_iter};

/// Python keeps two bytes for each indentation, one for each open string, of which there may be 255.
const WIDEST_INDENT: usize = 380;
/// YAML keeps four bytes for each collection. One that goes on in another line began further in than the one around it,
/// of which there may be two at a column.
const WIDEST_BLOCK: usize = 60;
/// The others are in one line, each with up to two collections of its own.
const MOST_MARKS: usize = 50;

/// Ruby keeps the length of the word that ends a text in a byte.
const LONGEST_WORD: usize = 255;

pub(crate) fn python_is_shallow(source: &[u8]) -> bool {
    lines(source).all(|line| width(line) <= WIDEST_INDENT)
}

/// Those that begin a collection with `-`, `?` or `:`, or a text with `|` or `>`.
pub(crate) fn yaml_is_shallow(source: &[u8]) -> bool {
    lines(source).all(|line| {
        let marks = line
            .iter()
            .enumerate()
            .filter(|(_, byte)| matches!(byte, b'-' | b'?' | b':' | b'|' | b'>'))
            .filter(|(at, _)| line.get(at + 1).is_none_or(u8::is_ascii_whitespace))
            .count();
        marks == 0 || (marks <= MOST_MARKS && width(line) <= WIDEST_BLOCK)
    })
}

/// Those behind `<<`. One that is quoted goes on to the next quote, over lines too.
pub(crate) fn ruby_words_are_short(source: &[u8]) -> bool {
    let mut marks = memchr_iter(b'<', source).filter(|at| source.get(at + 1) == Some(&b'<'));
    marks.all(|at| {
        let word = &source[at + 2..];
        let word = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"~")).unwrap_or(word);
        let length = match word.split_first() {
            Some((quote @ (b'\'' | b'"' | b'`'), rest)) => {
                let near = &rest[..rest.len().min(LONGEST_WORD + 1)];
                memchr(*quote, near).unwrap_or(near.len())
            }
            _ => word.iter().take(LONGEST_WORD + 1).take_while(|byte| is_of_word(**byte)).count(),
        };
        length <= LONGEST_WORD
    })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn lines(source: &[u8]) -> impl Iterator<Item = &[u8]> {
    source.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Of the blanks that a line begins with.
fn width(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c'));
    blanks.map(|byte| if *byte == b'\t' { 8 } else { 1 }).sum()
}
