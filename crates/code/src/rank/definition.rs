//! Guesses if a name is being defined where it stands.
//!
//! The guess takes only the line around it, for every language at once: parsing all files of a tree would take thirty
//! times as long as scanning them.

use memchr::memrchr;

use crate::words::is_identifier;

/// Most bytes that are examined on either side of a name.
const REACH_BYTES_MAX: usize = 160;

/// Keywords before a name that they define.
const DEFINING_KEYWORDS: &[&[u8]] = &[
    b"class",
    b"component",
    b"const",
    b"def",
    b"define",
    b"enum",
    b"extension",
    b"fn",
    b"fun",
    b"func",
    b"function",
    b"interface",
    b"macro",
    b"macro_rules!",
    b"mod",
    b"module",
    b"namespace",
    b"object",
    b"package",
    b"proc",
    b"protocol",
    b"record",
    b"static",
    b"struct",
    b"sub",
    b"trait",
    b"type",
    b"typedef",
    b"union",
];

/// Keywords before a name that they define, if it is not inside of anything.
const OUTERMOST_KEYWORDS: &[&[u8]] = &[b"let", b"val", b"var"];

/// Words that begin a line that defines a method or a field, in languages that have no keyword for it.
const MODIFIERS: &[&[u8]] = &[
    b"abstract",
    b"async",
    b"export",
    b"extern",
    b"final",
    b"get",
    b"inline",
    b"internal",
    b"override",
    b"private",
    b"protected",
    b"public",
    b"readonly",
    b"set",
    b"static",
    b"virtual",
];

/// Words that begin a line that looks like a definition and is none.
const CONTROL_KEYWORDS: &[&[u8]] = &[
    b"assert", b"await", b"case", b"catch", b"delete", b"do", b"else", b"elif", b"except", b"for",
    b"foreach", b"go", b"if", b"import", b"in", b"match", b"new", b"print", b"raise", b"return",
    b"select", b"switch", b"throw", b"try", b"typeof", b"use", b"using", b"while", b"with",
    b"yield",
];

/// Nesting of a line, by its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Outermost,
    Inner,
}

/// True if the identifier around `start..end` is being defined there.
pub(crate) fn defines(text: &[u8], start: usize, end: usize) -> bool {
    let from = start.saturating_sub(REACH_BYTES_MAX);
    let to = text.len().min(end.saturating_add(REACH_BYTES_MAX));
    let name_start =
        (from..start).rev().find(|at| !is_identifier(text[*at])).map_or(from, |at| at + 1);
    let name_end = (end..to).find(|at| !is_identifier(text[*at])).unwrap_or(to);
    let line_start = memrchr(b'\n', &text[from..name_start]).map_or(from, |at| from + at + 1);
    let before = &text[line_start..name_start];
    if is_comment(before.trim_ascii_start()) {
        return false;
    }
    let is_indented = before.first().is_some_and(u8::is_ascii_whitespace);
    let nesting = if is_indented { Nesting::Inner } else { Nesting::Outermost };
    let before = before.trim_ascii();
    let last = last_word(before);
    if DEFINING_KEYWORDS.contains(&last) {
        return true;
    }
    if OUTERMOST_KEYWORDS.contains(&last) {
        return nesting == Nesting::Outermost || before.starts_with(b"export");
    }
    // `func (r *Router) Name(`
    if before.ends_with(b")") {
        return before.starts_with(b"func (");
    }
    defines_without_keyword(before, &text[name_end..to], nesting)
}

fn is_comment(line: &[u8]) -> bool {
    match line {
        [b'/', b'/' | b'*', ..] | [b'*' | b'"' | b'\'', ..] => true,
        [b'#', rest @ ..] => !rest.starts_with(b"define"),
        _ => false,
    }
}

/// True for methods, functions and fields of languages in which types, or nothing at all, are before them.
fn defines_without_keyword(before: &[u8], after: &[u8], nesting: Nesting) -> bool {
    let first = first_word(before);
    if CONTROL_KEYWORDS.contains(&first) || !before.iter().all(|byte| may_be_in_type(*byte)) {
        return false;
    }
    let after = after.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let modified = MODIFIERS.contains(&first);
    match after.trim_ascii_start().first() {
        Some(b'(' | b'<') => {
            after.ends_with(b"{") && !after.contains(&b'=')
                || modified
                || nesting == Nesting::Outermost
                    && !before.is_empty()
                    && !after.ends_with(b";")
                    && !before.contains(&b'.')
        }
        Some(b';' | b'=' | b':') => modified,
        _ => false,
    }
}

fn may_be_in_type(byte: u8) -> bool {
    is_identifier(byte)
        || matches!(
            byte,
            b' ' | b'\t' | b'<' | b'>' | b'[' | b']' | b'?' | b'*' | b'&' | b'@' | b'.' | b','
        )
}

fn first_word(line: &[u8]) -> &[u8] {
    let length = line.iter().position(|byte| !is_identifier(*byte)).unwrap_or(line.len());
    &line[..length]
}

fn last_word(line: &[u8]) -> &[u8] {
    let is_part = |byte: &u8| is_identifier(*byte) || *byte == b'!';
    let start = line.iter().rposition(|byte| !is_part(byte)).map_or(0, |at| at + 1);
    &line[start..]
}
