//! The definition of a line, for every reader and every edit.
//!
//! A line ends with `\r\n`, `\n` or a lone `\r`, and with nothing else (no VT, FF, NEL, U+2028). The terminator belongs
//! to its line; a last piece without one is a line too: `""` has no lines, `"\n"` has one. Diffs split at `\n` only and
//! do not use this module.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

/// The terminator of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    Lf,
    CrLf,
    Cr,
}

impl LineEnding {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }

    /// Returns the terminator of the last line of `text`; `None` if it is unterminated or there is none.
    pub fn closing(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [.., b'\r', b'\n'] => Some(Self::CrLf),
            [.., b'\n'] => Some(Self::Lf),
            [.., b'\r'] => Some(Self::Cr),
            _ => None,
        }
    }
}

/// The offsets of a line: its content is `start..end`, its terminator `end..next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub start: usize,
    pub end: usize,
    pub next: usize,
}

/// Iterates over the lines of `text`, in order.
pub fn lines(text: &str) -> Lines<'_> {
    Lines { bytes: text.as_bytes(), at: 0 }
}

/// The iterator that [`lines`] returns.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let start = self.at;
        let rest = &self.bytes[start..];
        if rest.is_empty() {
            return None;
        }
        let len = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let terminator = match rest[len..] {
            [] => 0,
            [b'\r', b'\n', ..] => 2,
            _ => 1,
        };
        self.at = start + len + terminator;
        Some(Line { start, end: start + len, next: self.at })
    }

    /// Skips lines by counting their terminators, without finding them one by one.
    fn nth(&mut self, number: usize) -> Option<Line> {
        let (passed, length) = skip_lines(&self.bytes[self.at..], number);
        self.at += length;
        if passed == number { self.next() } else { None }
    }
}

/// Counts the lines of `bytes` that end in `part`: `\r\n` ends one with its `\n`.
pub(crate) fn count_breaks(bytes: &[u8], part: Range<usize>) -> usize {
    let ends_a_line = |at: &usize| bytes.get(part.start + at + 1) != Some(&b'\n');
    memchr_iter(b'\n', &bytes[part.clone()]).count()
        + memchr_iter(b'\r', &bytes[part.clone()]).filter(ends_a_line).count()
}

/// Counts the lines of `text`.
pub fn count(text: &str) -> usize {
    count_bytes(text.as_bytes())
}

/// Counts the lines of `bytes`, which need not be UTF-8.
pub fn count_bytes(bytes: &[u8]) -> usize {
    let unterminated = !matches!(bytes.last(), None | Some(b'\n' | b'\r'));
    count_ends(bytes) + usize::from(unterminated)
}

/// Counts the lines of `bytes` that are terminated.
pub fn count_ends(bytes: &[u8]) -> usize {
    let EndingCounts { lf, crlf, cr } = EndingCounts::of(bytes);
    lf + crlf + cr
}

/// The number of lines that end in each way.
struct EndingCounts {
    lf: usize,
    crlf: usize,
    cr: usize,
}

impl EndingCounts {
    /// Counts in two vectorised passes; only the `\r` are visited one at a time.
    fn of(bytes: &[u8]) -> Self {
        let (mut crlf, mut cr) = (0, 0);
        for at in memchr_iter(b'\r', bytes) {
            if bytes.get(at + 1) == Some(&b'\n') { crlf += 1 } else { cr += 1 }
        }
        Self { lf: memchr_iter(b'\n', bytes).count() - crlf, crlf, cr }
    }
}

/// Lines `first..=last`, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    pub first: usize,
    pub last: usize,
}

/// The part of a text a [`LineRange`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedLines {
    /// The lines with all their terminators.
    pub bytes: Range<usize>,
    pub first: usize,
    /// The last line that exists: never past the end of the text.
    pub last: usize,
    /// Lines in the whole text.
    pub total: usize,
}

/// Finds the lines of `range`. `None` when it starts past the last line, or ends before it starts.
///
/// Keeps no index of lines, so the memory needed does not grow with their number.
pub fn select(text: &str, range: LineRange) -> Option<SelectedLines> {
    let LineRange { first, last } = range;
    let more = last.checked_sub(first)?;
    let (_, start) = skip_lines(text.as_bytes(), first);
    if start == text.len() {
        return None;
    }
    let (taken, length) = skip_lines(&text.as_bytes()[start..], more.saturating_add(1));
    let end = start + length;
    // `end` is after a whole terminator, so the rest can be counted separately.
    let total = first + taken + count(&text[end..]);
    Some(SelectedLines { bytes: start..end, first, last: first + taken - 1, total })
}

/// Skips `count` lines, or all there are, and returns how many lines and bytes that is. Whole blocks of them are
/// counted at once.
fn skip_lines(bytes: &[u8], count: usize) -> (usize, usize) {
    const BLOCK: usize = if cfg!(test) { 4 } else { 4096 };
    let (mut ends, mut at) = (0, 0);
    while ends < count && at < bytes.len() {
        let end = bytes.len().min(at + BLOCK);
        let more = count_breaks(bytes, at..end);
        if ends + more >= count {
            // Lines after the last that ends here may continue in the next block.
            let last = Lines { bytes, at }.take(count - ends).last();
            return (count, last.map_or(at, |line| line.next));
        }
        (ends, at) = (ends + more, end);
    }
    let unterminated = at > 0 && !matches!(bytes[at - 1], b'\n' | b'\r');
    (ends + usize::from(unterminated), at)
}

/// Returns the most common ending of the lines of `text`; in a tie `\n` before `\r\n` before `\r`. `None` if no line is
/// terminated.
pub fn common_ending(text: &str) -> Option<LineEnding> {
    let EndingCounts { lf, crlf, cr } = EndingCounts::of(text.as_bytes());
    match lf.max(crlf).max(cr) {
        0 => None,
        most if most == lf => Some(LineEnding::Lf),
        most if most == crlf => Some(LineEnding::CrLf),
        _ => Some(LineEnding::Cr),
    }
}

/// Returns the ending that all terminated lines of `text` share. `None` if they differ or there are none.
pub fn uniform_ending(text: &str) -> Option<LineEnding> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return memchr(b'\n', text.as_bytes()).map(|_| LineEnding::Lf);
    }
    match EndingCounts::of(text.as_bytes()) {
        EndingCounts { lf: 0, crlf: 1.., cr: 0 } => Some(LineEnding::CrLf),
        EndingCounts { lf: 0, crlf: 0, cr: 1.. } => Some(LineEnding::Cr),
        _ => None,
    }
}

/// Returns `text` with every line break written as `ending`; borrowed if they all are.
pub fn with_ending(text: &str, ending: LineEnding) -> Cow<'_, str> {
    let is_other =
        |line: Line| line.end < line.next && &text[line.end..line.next] != ending.as_str();
    if !lines(text).any(is_other) {
        return text.into();
    }
    let mut written = String::with_capacity(text.len() + text.len() / 16);
    for line in lines(text) {
        written.push_str(&text[line.start..line.end]);
        if line.end < line.next {
            written.push_str(ending.as_str());
        }
    }
    written.into()
}

/// Returns the lines joined by `\n`, without a break after the last one.
pub fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text.strip_suffix('\n').unwrap_or(text));
    }
    let mut plain = String::with_capacity(text.len());
    for line in lines(text) {
        if line.start > 0 {
            plain.push('\n');
        }
        plain.push_str(&text[line.start..line.end]);
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_three_terminators_end_a_line() {
        for (text, contents) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\n\rb", &["a", "", "b"]),
            ("a\n\rb", &["a", "", "b"]),
            ("\r\r\n\n", &["", "", ""]),
            ("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f", &["a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f"]),
        ] {
            let found: Vec<_> = lines(text).map(|line| &text[line.start..line.end]).collect();
            assert_eq!(found, contents, "{text:?}");
            assert_eq!(count(text), contents.len(), "{text:?}");
        }
    }

    #[test]
    fn every_line_is_found_by_its_number() {
        for line in ["abcd\n", "a\r\n", "ab\r"] {
            let text = line.repeat(9_000 / line.len());
            let walked: Vec<_> = lines(&text).map(Some).chain([None]).collect();
            for (number, line) in walked.into_iter().enumerate() {
                assert_eq!(lines(&text).nth(number), line, "{number} of {}", text.len());
            }
        }
    }

    #[test]
    fn lines_are_selected_with_their_terminators() {
        fn check(text: &str, first: usize, last: usize, expected: Option<(&str, usize, usize)>) {
            let found = select(text, LineRange { first, last })
                .inspect(|selected| assert_eq!(selected.first, first))
                .map(|selected| (&text[selected.bytes], selected.last, selected.total));
            assert_eq!(found, expected, "{text:?} {first}..={last}");
        }
        check("a\r\nb\rc", 0, 0, Some(("a\r\n", 0, 3)));
        check("a\r\nb\rc", 0, 1, Some(("a\r\nb\r", 1, 3)));
        check("a\r\nb\rc", 1, 9, Some(("b\rc", 2, 3)));
        check("a\r\nb\rc", 2, usize::MAX, Some(("c", 2, 3)));
        check("a\r\nb\rc", 3, 3, None);
        check("a\r\nb\rc", 1, 0, None);
        check("\n", 0, 0, Some(("\n", 0, 1)));
        check("\n", 1, 1, None);
        check("", 0, 0, None);
        check("a", usize::MAX, usize::MAX, None);
    }

    #[test]
    fn endings_are_told_apart() {
        for (text, common, uniform) in [
            ("", None, None),
            ("a", None, None),
            ("a\nb", Some(LineEnding::Lf), Some(LineEnding::Lf)),
            ("a\r\nb\r\n", Some(LineEnding::CrLf), Some(LineEnding::CrLf)),
            ("a\rb\r", Some(LineEnding::Cr), Some(LineEnding::Cr)),
            ("\r\n\r\n\n", Some(LineEnding::CrLf), None),
            ("\r\n\n", Some(LineEnding::Lf), None),
            ("\r\n\r", Some(LineEnding::CrLf), None),
            ("\n\r", Some(LineEnding::Lf), None),
        ] {
            assert_eq!(common_ending(text), common, "{text:?}");
            assert_eq!(uniform_ending(text), uniform, "{text:?}");
        }
    }

    #[test]
    fn plain_text_has_lf_between_lines_only() {
        for (text, expected) in [
            ("", ""),
            ("\n", ""),
            ("\r\n", ""),
            ("\n\n", "\n"),
            ("a\n\n", "a\n"),
            ("a\r\n\r\n", "a\n"),
            ("a\rb\r\nc", "a\nb\nc"),
            ("\ra", "\na"),
            ("a", "a"),
        ] {
            assert_eq!(with_line_feeds(text), expected, "{text:?}");
        }
        assert!(matches!(with_line_feeds("a\nb\n"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn counting_and_walking_agree(text in "[aé\r\n]{0,20}") {
            let walked: Vec<_> = lines(&text).collect();
            prop_assert_eq!(walked.len(), count(&text));
            let mut at = 0;
            for line in &walked {
                prop_assert_eq!(line.start, at);
                prop_assert!(!text[line.start..line.end].contains(['\r', '\n']));
                prop_assert!(line.next == text.len() || line.next > line.end);
                at = line.next;
            }
            prop_assert_eq!(at, text.len());
            let contents: Vec<_> = walked.iter().map(|line| &text[line.start..line.end]).collect();
            prop_assert_eq!(with_line_feeds(&text), contents.join("\n"));
        }

        #[test]
        fn lines_far_away_are_the_same(
            pieces in prop::collection::vec(("[aé\r\n]{1,5}", 1usize..4000), 1..5),
            first in 0usize..9000,
            second in 0usize..9000,
        ) {
            let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
            let walked: Vec<_> = lines(&text).collect();
            let mut lines = lines(&text);
            prop_assert_eq!(lines.nth(first), walked.get(first).copied());
            let second = second.min(first);
            prop_assert_eq!(lines.nth(second), walked.get(first + 1 + second).copied());
        }

        #[test]
        fn pages_concatenate_to_the_text(text in "[aé\r\n]{0,20}", page in 1usize..4) {
            let mut read = String::new();
            let mut first = 0;
            while let Some(selected) = select(&text, LineRange { first, last: first + page - 1 }) {
                prop_assert_eq!(selected.total, count(&text));
                prop_assert_eq!(count(&text[selected.bytes.clone()]), selected.last - first + 1);
                read.push_str(&text[selected.bytes]);
                first = selected.last + 1;
            }
            prop_assert_eq!(first, count(&text));
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn line_breaks_are_written_anew_only_where_they_differ() {
        for text in ["", "a", "a\nb", "a\nb\n"] {
            assert!(
                matches!(with_ending(text, LineEnding::Lf), Cow::Borrowed(same) if same == text)
            );
        }
        assert_eq!(with_ending("a\r\nb\rc\nd", LineEnding::CrLf), "a\r\nb\r\nc\r\nd");
        assert_eq!(with_ending("a\r\n", LineEnding::Cr), "a\r");
    }
}
