//! Words of a text, and terms of a query that are compared with them.
//!
//! `HTTPServer`, `http_server` and `httpServer` are the same two words. Words of a text are never copied: they are
//! ranges of it, and of each of them a stem is compared, which is its beginning. All functions work on bytes, since a
//! text may be in any encoding: bytes that are not ASCII are letters without case.

use std::ops::Range;

/// Most terms of a query, more than one ever needs; each is a bit of [`TermSet`](crate::rank::TermSet).
pub const TERMS_MAX: usize = 32;

/// Longest word in bytes: longer ones are data, not words of a language or of a program.
const WORD_BYTES_MAX: usize = 64;

/// Most bytes of a query that are read.
const QUERY_BYTES_MAX: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Lower case, and most bytes that are not ASCII: letters without case.
    Lower,
    Upper,
    Digit,
    /// Letter of a script that has no spaces between its words.
    Wide,
    /// Part of an identifier, but of no word.
    Joint,
    Other,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' | 0x80.. => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'_' | b'$' => Class::Joint,
        _ => Class::Other,
    }
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        classes[byte as usize] = class(byte);
        byte += 1;
    }
    classes[u8::MAX as usize] = class(u8::MAX);
    classes
};

fn class_at(text: &[u8], at: usize) -> Class {
    match text.get(at) {
        None => Class::Other,
        Some(0x80..) => class_beyond_ascii(text, at),
        Some(byte) => CLASSES[usize::from(*byte)],
    }
}

/// Class of a byte that is not ASCII, if this is UTF-8. Only the marks that are beside words in common texts are told
/// from letters: quotes, dashes, special spaces, the byte order mark.
fn class_beyond_ascii(text: &[u8], at: usize) -> Class {
    let is_first = |at: &usize| text[*at] & 0b1100_0000 != 0b1000_0000;
    let first = (at.saturating_sub(3)..=at).rev().find(is_first).unwrap_or(at);
    match text[first..] {
        [0xC2, ..] | [0xE2, 0x80 | 0x81, ..] | [0xE3, 0x80, ..] | [0xEF, 0xBB, 0xBF, ..] => {
            Class::Other
        }
        [0xE3..=0xFF, ..] => Class::Wide,
        _ => Class::Lower,
    }
}

fn is_word(class: Class) -> bool {
    matches!(class, Class::Lower | Class::Upper | Class::Digit | Class::Wide)
}

/// True if a byte may be part of an identifier.
pub fn is_identifier(byte: u8) -> bool {
    CLASSES[usize::from(byte)] != Class::Other
}

/// True if a word starts at this place.
pub fn starts(text: &[u8], at: usize) -> bool {
    let here = class_at(text, at);
    if !is_word(here) {
        return false;
    }
    let Some(before) = at.checked_sub(1).map(|before| class_at(text, before)) else {
        return true;
    };
    match (before, here) {
        // `HTTPServer`: the last capital belongs to what follows. Not so in `URLs`.
        (Class::Upper, Class::Upper) => {
            class_at(text, at + 1) == Class::Lower
                && !(text[at + 1] == b's' && class_at(text, at + 2) != Class::Lower)
        }
        (Class::Upper | Class::Lower, Class::Lower)
        | (Class::Digit, Class::Digit)
        | (Class::Wide, Class::Wide) => false,
        _ => true,
    }
}

/// Returns where the word ends that `from` is in or just after; never more than the longest word away.
pub fn end(text: &[u8], from: usize) -> usize {
    let limit = text.len().min(from.saturating_add(WORD_BYTES_MAX));
    (from..limit).find(|at| !is_word(class_at(text, *at)) || starts(text, *at)).unwrap_or(limit)
}

/// Returns the ranges of the words of a text, in order.
pub fn words(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = (at..text.len()).find(|at| is_word(class_at(text, *at)))?;
        at = end(text, start + 1);
        Some(start..at)
    })
}

/// Length of the stem of a word in bytes: `routes`, `routing`, `router` and `route` have the same stem.
///
/// A stem is always the beginning of its word, so that one search for it finds every form. It need not be a word, and
/// two words that have nothing in common may share it: that costs less than a form that is not found.
pub fn stem(word: &[u8]) -> usize {
    const STEM_BYTES_MIN: usize = 3;
    let mut left = word;
    let ends = |left: &[u8], suffix: &[u8]| {
        left.len() >= STEM_BYTES_MIN + suffix.len()
            && left[left.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    };
    let has_vowel = |left: &[u8]| left.iter().any(|byte| is_vowel(*byte));

    if ends(left, b"ies") {
        return left.len() - 3;
    }
    if ends(left, b"s") && !matches!(left, [.., b's' | b'S' | b'u' | b'U' | b'i' | b'I', _]) {
        left = &left[..left.len() - 1];
    }
    for suffix in [&b"ing"[..], b"ed", b"er"] {
        let shorter = &left[..left.len().saturating_sub(suffix.len())];
        if ends(left, suffix) && has_vowel(shorter) {
            left = undouble(shorter);
            break;
        }
    }
    if ends(left, b"e") || ends(left, b"y") {
        left = &left[..left.len() - 1];
    }
    left.len()
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Removes a doubled last letter: `logg` of `logger` becomes `log`.
fn undouble(stem: &[u8]) -> &[u8] {
    match stem {
        [rest @ .., before, last]
            if rest.len() >= 2
                && before.eq_ignore_ascii_case(last)
                && !is_vowel(*last)
                && !matches!(last.to_ascii_lowercase(), b'l' | b's' | b'z') =>
        {
            &stem[..stem.len() - 1]
        }
        _ => stem,
    }
}

/// A term of a query: a word or an identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Text that is searched for, ASCII letters in lower case: a stem, or a whole identifier.
    pub text: Vec<u8>,
    /// Text that is shown to people: the whole word in lower case, or the identifier as in the query.
    pub shown: String,
    pub kind: TermKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// Any word with this stem.
    Word,
    /// An identifier of several words, all of it.
    Identifier,
}

/// Returns the terms of a query: its words except the usual ones, and its identifiers of several words as a whole
/// too. If all words are usual, they are the terms.
pub fn terms(query: &str) -> Vec<Term> {
    let query = match query.char_indices().find(|(at, _)| *at > QUERY_BYTES_MAX) {
        Some((end, _)) => query[..end].rsplit_once(' ').map_or("", |(whole, _)| whole),
        None => query,
    };
    let terms = terms_but(query, is_stop_word);
    if terms.is_empty() { terms_but(query, |_| false) } else { terms }
}

fn terms_but(query: &str, skip: impl Fn(&[u8]) -> bool) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut add = |text: Vec<u8>, shown: &str, kind| {
        if terms.len() < TERMS_MAX
            && !terms.iter().any(|term| term.text == text && term.kind == kind)
        {
            terms.push(Term { text, shown: shown.to_owned(), kind });
        }
    };
    let mut before = None;
    for token in query.split(|c: char| c.is_ascii() && !is_identifier(c as u8)) {
        let start = token.as_ptr() as usize - query.as_ptr() as usize;
        if let Some(at) = start.checked_sub(1) {
            before = query.as_bytes().get(at);
        }
        // Skips the number of an issue, such as `#12`.
        if token.is_empty() || before == Some(&b'#') && token.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let bytes = token.as_bytes();
        let parts: Vec<Range<usize>> = words(bytes).collect();
        for part in &parts {
            let word = bytes[part.clone()].to_ascii_lowercase();
            if word.iter().all(u8::is_ascii_digit) || word.len() < 2 || skip(&word) {
                continue;
            }
            let shown = String::from_utf8_lossy(&word).into_owned();
            add(word[..stem(&word)].to_vec(), &shown, TermKind::Word);
        }
        let several = parts.len() > 1 || bytes.contains(&b'_');
        if several && !parts.is_empty() && token.len() <= WORD_BYTES_MAX {
            add(bytes.to_ascii_lowercase(), token, TermKind::Identifier);
        }
    }
    terms
}

/// True if a word, in lower case, says nothing about which file is meant: a word of English, of every program, or of
/// every request to change one.
fn is_stop_word(word: &[u8]) -> bool {
    STOP_WORDS.binary_search_by(|usual| usual.as_bytes().cmp(word)).is_ok()
}

/// Usual words in order of their bytes.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "add",
    "added",
    "adding",
    "adds",
    "after",
    "all",
    "allow",
    "allowed",
    "allowing",
    "allows",
    "also",
    "always",
    "an",
    "and",
    "another",
    "any",
    "are",
    "aren",
    "as",
    "at",
    "avoid",
    "avoids",
    "be",
    "because",
    "been",
    "before",
    "being",
    "better",
    "between",
    "both",
    "bug",
    "bugs",
    "build",
    "bump",
    "but",
    "by",
    "can",
    "cannot",
    "change",
    "changed",
    "changes",
    "chore",
    "clean",
    "cleanup",
    "code",
    "could",
    "couldn",
    "did",
    "didn",
    "do",
    "docs",
    "does",
    "doesn",
    "doing",
    "don",
    "done",
    "each",
    "ensure",
    "ensures",
    "feat",
    "feature",
    "few",
    "find",
    "fix",
    "fixed",
    "fixes",
    "fixing",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "here",
    "how",
    "i",
    "if",
    "implement",
    "implemented",
    "implements",
    "improve",
    "improved",
    "improvement",
    "improvements",
    "improves",
    "in",
    "instead",
    "into",
    "is",
    "isn",
    "issue",
    "issues",
    "it",
    "its",
    "just",
    "let",
    "make",
    "makes",
    "making",
    "may",
    "me",
    "minor",
    "missing",
    "more",
    "most",
    "must",
    "my",
    "need",
    "needed",
    "needs",
    "new",
    "no",
    "not",
    "now",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "out",
    "over",
    "please",
    "re",
    "refactor",
    "refactored",
    "refactoring",
    "remove",
    "removed",
    "removes",
    "removing",
    "rename",
    "renamed",
    "replace",
    "replaced",
    "revert",
    "s",
    "same",
    "should",
    "shouldn",
    "show",
    "simplify",
    "so",
    "some",
    "such",
    "support",
    "supported",
    "supports",
    "t",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "too",
    "tweak",
    "under",
    "unnecessary",
    "until",
    "up",
    "update",
    "updated",
    "updates",
    "us",
    "use",
    "used",
    "uses",
    "using",
    "ve",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "without",
    "won",
    "work",
    "working",
    "works",
    "would",
    "you",
    "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_are_in_order() {
        assert!(STOP_WORDS.is_sorted());
    }
}
