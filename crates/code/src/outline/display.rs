//! Signatures, names and comments, as they are shown: in one line, and short.

use std::ops::Range;

/// Longest name in characters; the limits below are in characters too.
pub const NAME_CHARS_MAX: usize = 200;
pub const SIGNATURE_CHARS_MAX: usize = 300;
pub const DOC_CHARS_MAX: usize = 600;

/// Phrases that are only in a comment about the whole file.
const LICENCE_PHRASES: [&str; 6] = [
    "copyright",
    "spdx-license-identifier",
    "licensed under",
    "all rights reserved",
    "apache license",
    "mit license",
];

/// Returns a name without its quotes.
pub(super) fn name(text: &str) -> String {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let bare = ['"', '\'', '`'].into_iter().find_map(quoted).unwrap_or(text);
    in_one_line(bare.split_whitespace(), NAME_CHARS_MAX)
}

/// Returns the name of the type that `impl<T> … for some::Type<T>` is about: `Type`.
pub(super) fn type_name(text: &str) -> String {
    let bare = text.split('<').next().unwrap_or_default();
    let bare = bare.rsplit("::").next().unwrap_or_default();
    let bare = bare.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let bare = bare.trim_start_matches("mut ").trim_start_matches("dyn ");
    if bare.is_empty() { name(text) } else { name(bare) }
}

/// Returns the text before the body in one line, without the mark that opens the body.
pub(super) fn signature<'a>(head: impl Iterator<Item = &'a str>) -> String {
    let mut line = in_one_line(head.flat_map(str::split_whitespace), SIGNATURE_CHARS_MAX);
    loop {
        let shorter = line.trim_end_matches("=>").trim_end_matches([' ', '{', ':', '=', ';', ',']);
        if shorter.len() == line.len() {
            return line;
        }
        line.truncate(shorter.len());
    }
}

/// True for a keyword that cannot be a name in C or C++: where it seems to be one, something else does not parse.
pub(super) fn is_c_keyword(name: &str) -> bool {
    matches!(
        name,
        "case"
            | "char"
            | "const"
            | "do"
            | "double"
            | "else"
            | "enum"
            | "extern"
            | "float"
            | "for"
            | "goto"
            | "if"
            | "int"
            | "long"
            | "namespace"
            | "return"
            | "short"
            | "signed"
            | "sizeof"
            | "static"
            | "struct"
            | "switch"
            | "typedef"
            | "union"
            | "unsigned"
            | "void"
            | "volatile"
            | "while"
    )
}

/// Returns the text of a comment, without its marks.
pub(super) fn doc(comment: &str) -> String {
    let inside =
        comment.trim().trim_start_matches("<!--").trim_end_matches("-->").trim_end_matches("*/");
    let words = inside.split(['\n', '\r']).flat_map(|line| strip_marks(line).split_whitespace());
    in_one_line(words, DOC_CHARS_MAX)
}

/// True for a comment about the licence of the whole file: it must be the first, after no more than a `#!` line.
pub(super) fn is_licence(text: &str, comment: &Range<usize>) -> bool {
    const EXAMINED_BYTES_MAX: usize = 2_000;
    let before = text[..comment.start].trim();
    let is_first =
        before.is_empty() || (before.starts_with("#!") && !before.contains(['\n', '\r']));
    is_first && {
        let said = &text[comment.clone()];
        let said = said[..said.floor_char_boundary(EXAMINED_BYTES_MAX)].to_lowercase();
        LICENCE_PHRASES.iter().any(|words| said.contains(words))
    }
}

/// Returns the text of a documentation string.
pub(super) fn doc_string(literal: &str) -> String {
    let inside = literal.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    in_one_line(inside.trim_matches(['"', '\'']).split_whitespace(), DOC_CHARS_MAX)
}

fn strip_marks(line: &str) -> &str {
    let line = line.trim_start();
    let bare = line.trim_start_matches(['/', '*', '#', '!']);
    // `# Examples` in a documentation comment is a heading: only marks directly at the start are removed.
    if bare.len() == line.len() { line } else { bare.trim() }
}

/// Joins the words with spaces, cut with `…` at `most` characters.
fn in_one_line<'a>(words: impl Iterator<Item = &'a str>, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for word in words {
        let blank = usize::from(!line.is_empty());
        let fits = word.char_indices().nth(left.saturating_sub(blank)).is_none();
        if left <= blank || !fits {
            append_truncated(&mut line, word, left, blank);
            break;
        }
        if blank > 0 {
            line.push(' ');
        }
        line.push_str(word);
        left -= blank + word.chars().count();
    }
    line
}

/// Appends as much of `word` as fits together with `…`.
fn append_truncated(line: &mut String, word: &str, left: usize, blank: usize) {
    if left > blank + 1 {
        if blank > 0 {
            line.push(' ');
        }
        line.extend(word.chars().take(left - blank - 1));
    } else if left == 0 {
        line.pop();
    }
    line.push('…');
}
