//! Ruby's heredocs: texts that end with a word of their own.
//!
//! The scanner of the Ruby grammar keeps the length of that word in a byte, and ends the process for a longer one. So
//! all words are checked before a file is parsed.

use memchr::{memchr, memchr_iter};

const WORD_BYTES_MAX: usize = 255;

/// True if the words after each `<<` are short enough. A quoted one ends at the next quote, over lines too.
pub(crate) fn words_are_short(source: &[u8]) -> bool {
    let mut marks = memchr_iter(b'<', source).filter(|at| source.get(at + 1) == Some(&b'<'));
    marks.all(|at| {
        let word = &source[at + 2..];
        let word = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"~")).unwrap_or(word);
        let length = match word.split_first() {
            Some((quote @ (b'\'' | b'"' | b'`'), rest)) => {
                let near = &rest[..rest.len().min(WORD_BYTES_MAX + 1)];
                memchr(*quote, near).unwrap_or(near.len())
            }
            _ => word.iter().take(WORD_BYTES_MAX + 1).take_while(|byte| is_of_word(**byte)).count(),
        };
        length <= WORD_BYTES_MAX
    })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}
