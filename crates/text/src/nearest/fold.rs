//! Folding: a text reduced to what an agent rarely gets wrong when it quotes a file.
//!
//! Whitespace, line breaks, zero-width characters and backslash escapes are dropped; quotes become `'`, dashes and
//! entities plain characters, letters lower case and decomposed. Two strings that fold alike differ only in ways that
//! [`super::compare`] can name.

use std::ops::Range;

use unicode_normalization::char::decompose_canonical;

/// Appends what the character, escape or entity at `at` folds to, nothing if it is dropped, and returns where the next
/// one starts. `at` must be a character boundary before the end.
pub(super) fn fold_character_at(text: &str, at: usize, folded: &mut Vec<u8>) -> usize {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r' | b' ' => at + 1,
        b'\\' => at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'n' | b't' | b'r'))),
        b'&' => {
            let (plain, len) = decode_entity(&bytes[at..]);
            folded.push(if plain == b'"' { b'\'' } else { plain });
            at + len
        }
        b'"' => {
            folded.push(b'\'');
            at + 1
        }
        byte if byte.is_ascii() => {
            folded.push(byte.to_ascii_lowercase());
            at + 1
        }
        _ => match text[at..].chars().next() {
            Some(character) => {
                fold_character(character, folded);
                at + character.len_utf8()
            }
            None => at + 1,
        },
    }
}

pub(super) fn fold(text: &str) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        at = fold_character_at(text, at, &mut folded);
    }
    folded
}

/// Returns the parts of `text` that fold to `ranges`, which are not empty, sorted and disjoint.
///
/// Folds the text again, which costs less than keeping an offset for every byte.
pub(super) fn unfold(text: &str, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::with_capacity(ranges.len());
    let (mut at, mut start, mut done) = (0, 0, 0);
    let mut folded = Vec::new();
    while at < text.len() && found.len() < ranges.len() {
        folded.clear();
        let next = fold_character_at(text, at, &mut folded);
        let made = done..done + folded.len();
        while let Some(range) = ranges.get(found.len()) {
            if made.contains(&range.start) {
                start = at;
            }
            if !made.contains(&(range.end - 1)) {
                break;
            }
            found.push(start..next);
        }
        done = made.end;
        at = next;
    }
    found
}

/// Returns the range of `text` from the first character that is not dropped to the last one.
pub(super) fn significant_range(text: &str) -> Option<Range<usize>> {
    let mut kept: Option<Range<usize>> = None;
    let mut folded = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let next = fold_character_at(text, at, &mut folded);
        if !folded.is_empty() {
            kept = Some(kept.map_or(at, |kept| kept.start)..next);
            folded.clear();
        }
        at = next;
    }
    kept
}

/// Returns the character that the entity at the start of `bytes` stands for, however often its `&` was escaped again,
/// and the length of the entity.
pub(super) fn decode_entity(bytes: &[u8]) -> (u8, usize) {
    let mut at = 1;
    while bytes[at..].starts_with(b"amp;") {
        at += 4;
    }
    let names: [(&[u8], u8); 5] =
        [(b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\''), (b"#39;", b'\'')];
    let found = names.into_iter().find(|(name, _)| bytes[at..].starts_with(name));
    found.map_or((b'&', at), |(name, plain)| (plain, at + name.len()))
}

fn fold_character(character: char, folded: &mut Vec<u8>) {
    if is_dropped(character) {
        return;
    }
    if let Some(plain) = ascii_equivalent(character) {
        return folded.extend_from_slice(if plain == "\"" { b"'" } else { plain.as_bytes() });
    }
    decompose_canonical(character, |part| {
        for lower in part.to_lowercase() {
            folded.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
        }
    });
}

/// True for whitespace and characters of no width.
pub(super) fn is_dropped(character: char) -> bool {
    character.is_whitespace() || is_zero_width(character)
}

pub(super) fn is_zero_width(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// Returns the plain characters that are typed for a typographic one.
pub(super) fn ascii_equivalent(character: char) -> Option<&'static str> {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some("'"),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some("\""),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some("-"),
        '\u{2026}' => Some("..."),
        _ => None,
    }
}
