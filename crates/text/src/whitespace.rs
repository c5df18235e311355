//! Matches lines with whitespace ignored, and computes how the replacement must be indented then.
//!
//! Whitespace is spaces and tabs only. A run of them inside a line matches any other run; at the ends of a line it also
//! matches none. No line is left out and no other character is ignored.

use std::ops::Range;

use crate::lines::{self, Line};
use crate::positions::positions;

/// The difference between the indentation in the text and in the edit, the same for every line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndentShift {
    Same,
    /// The text has this much more in front.
    Deeper(String),
    /// The text has this much less.
    Shallower(String),
    /// The text has one tab for each so many spaces of the edit.
    Tabs(usize),
    /// The text has so many spaces for each tab of the edit.
    Spaces(usize),
}

/// Finds the lines (from 0) that match `old` with whitespace ignored.
pub(crate) fn find_lines(text: &str, old: &str) -> impl Iterator<Item = Range<usize>> {
    // FNV-1a; two different lines with the same key are told apart by `match_at`.
    let key = |text: &str, line: Line| {
        normalized(&text[line.start..line.end]).fold(0xcbf2_9ce4_8422_2325_u64, |key, byte| {
            (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let mut needle: Vec<u64> = lines::lines(old).map(|line| key(old, line)).collect();
    if normalized(old).all(|byte| matches!(byte, b'\r' | b'\n' | b' ')) {
        needle.clear(); // Blank lines alone would match anywhere.
    }
    let count = needle.len();
    // A line break at the end of `old` must be in the text too.
    let closed = |text: &str| text.ends_with(['\n', '\r']);
    let is_missing = closed(old) && !closed(text);
    let end = if is_missing { lines::count(text).saturating_sub(1) } else { usize::MAX };
    let keys = lines::lines(text).map(move |line| key(text, line));
    positions(keys, needle).map(move |first| first..first + count).filter(move |fit| fit.end <= end)
}

/// The reason why lines that `find_lines` found do not match after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhitespaceMismatch {
    /// Their line breaks differ, and line breaks are not ignored.
    LineBreaks,
    /// Their indentation does not differ by the same amount in every line.
    UnevenIndent,
}

/// Returns the bytes of `text` that `old` matches from line `first` on, and the shift of their indentation.
pub(crate) fn match_at(
    text: &str,
    old: &str,
    first: usize,
) -> Result<(Range<usize>, IndentShift), WhitespaceMismatch> {
    let count = lines::count(old);
    let place: Vec<Line> = lines::lines(text).skip(first).take(count).collect();
    let [Line { start, .. }, ..] = place[..] else { return Err(WhitespaceMismatch::LineBreaks) };
    let mut end = start;
    let mut indents = Vec::with_capacity(count);
    for (there, here) in place.iter().zip(lines::lines(old)) {
        let broken = here.next > here.end;
        if broken && text[there.end..there.next] != old[here.end..here.next] {
            return Err(WhitespaceMismatch::LineBreaks);
        }
        end = if broken { there.next } else { there.end };
        let (there, here) = (&text[there.start..there.end], &old[here.start..here.end]);
        if !normalized(there).eq(normalized(here)) {
            return Err(WhitespaceMismatch::LineBreaks); // Two different lines with the same key.
        }
        if !is_blank(there) {
            indents.push((indentation(here), indentation(there)));
        }
    }
    let shift = IndentShift::between(&indents).ok_or(WhitespaceMismatch::UnevenIndent)?;
    Ok((start..end, shift))
}

/// True if `old` matches at exactly one place with whitespace ignored, and by one shift.
pub(crate) fn matches_once(text: &str, old: &str) -> bool {
    let old =
        lines::uniform_ending(text).map_or(old.into(), |ending| lines::with_ending(old, ending));
    let mut fits = find_lines(text, &old);
    match (fits.next(), fits.next()) {
        (Some(lines), None) => match_at(text, &old, lines.start).is_ok(),
        _ => false,
    }
}

impl IndentShift {
    /// Returns the shift that leads from the first indentation of every pair to the second, if one shift does.
    fn between(indents: &[(&str, &str)]) -> Option<Self> {
        let (here, there) = indents.first()?;
        let all = |fits: &dyn Fn(&str, &str) -> bool| indents.iter().all(|(h, t)| fits(h, t));
        if all(&|here, there| here == there) {
            return Some(Self::Same);
        }
        if let Some(more) = there.strip_suffix(here)
            && all(&|here, there| there.strip_suffix(here) == Some(more))
        {
            return Some(Self::Deeper(more.into()));
        }
        if let Some(less) = here.strip_suffix(there)
            && all(&|here, there| here.strip_suffix(there) == Some(less))
        {
            return Some(Self::Shallower(less.into()));
        }
        let only = |blank: char, indent: &str| indent.chars().all(|char| char == blank);
        let width = |many: usize, few: usize| many.checked_div(few).filter(|width| *width > 0);
        let deepest = indents.iter().max_by_key(|(here, there)| here.len() + there.len())?;
        if all(&|here, there| only(' ', here) && only('\t', there)) {
            let width = width(deepest.0.len(), deepest.1.len())?;
            return all(&|here, there| here.len() == there.len() * width)
                .then_some(Self::Tabs(width));
        }
        if all(&|here, there| only('\t', here) && only(' ', there)) {
            let width = width(deepest.1.len(), deepest.0.len())?;
            let fits = all(&|here, there| there.len() == here.len() * width);
            return fits.then_some(Self::Spaces(width));
        }
        None
    }

    /// Returns the length of `new` with its lines shifted; `None` if a line has less indentation than has to be
    /// removed.
    pub(crate) fn size_of(&self, new: &str) -> Option<usize> {
        lines::lines(new).try_fold(0_usize, |size, line| {
            let indent = indentation(&new[line.start..line.end]);
            let (more, less) = match self {
                _ if is_blank(&new[line.start..line.end]) => (0, 0),
                Self::Same => (0, 0),
                Self::Deeper(more) => (more.len(), 0),
                Self::Shallower(less) => {
                    indent.strip_prefix(less.as_str())?;
                    (0, less.len())
                }
                Self::Tabs(width) => {
                    let tabs = count_at_start(indent, ' ') / width;
                    (tabs, tabs * width)
                }
                Self::Spaces(width) => (
                    count_at_start(indent, '\t').saturating_mul(*width),
                    count_at_start(indent, '\t'),
                ),
            };
            Some(size.saturating_add(line.next - line.start - less).saturating_add(more))
        })
    }

    /// Returns `new` with its lines shifted, as far as they can be.
    pub(crate) fn apply(&self, new: &str) -> String {
        let mut moved = String::with_capacity(new.len());
        for line in lines::lines(new) {
            let whole = &new[line.start..line.next];
            if is_blank(&new[line.start..line.end]) {
                moved.push_str(whole);
                continue;
            }
            let indent = indentation(whole);
            match self {
                Self::Same => moved.push_str(indent),
                Self::Deeper(more) => moved.extend([more, indent]),
                Self::Shallower(less) => {
                    moved.push_str(indent.strip_prefix(less.as_str()).unwrap_or(indent));
                }
                Self::Tabs(width) => {
                    let spaces = count_at_start(indent, ' ');
                    moved.push_str(&"\t".repeat(spaces / width));
                    moved.push_str(&" ".repeat(spaces % width));
                    moved.push_str(&indent[spaces..]);
                }
                Self::Spaces(width) => {
                    let tabs = count_at_start(indent, '\t');
                    moved.push_str(&" ".repeat(tabs * width));
                    moved.push_str(&indent[tabs..]);
                }
            }
            moved.push_str(&whole[indent.len()..]);
        }
        moved
    }
}

/// Counts how many times the indentation begins with the character `blank`.
fn count_at_start(indent: &str, blank: char) -> usize {
    indent.len() - indent.trim_start_matches(blank).len()
}

const WHITESPACE: [char; 2] = [' ', '\t'];

/// Iterates over the bytes of a line, without whitespace at its ends and with one space for each run inside.
fn normalized(line: &str) -> impl Iterator<Item = u8> {
    let mut bytes = line.trim_matches(WHITESPACE).bytes().peekable();
    std::iter::from_fn(move || {
        let byte = bytes.next()?;
        if byte != b' ' && byte != b'\t' {
            return Some(byte);
        }
        while bytes.next_if(|byte| matches!(byte, b' ' | b'\t')).is_some() {}
        Some(b' ')
    })
}

fn is_blank(line: &str) -> bool {
    line.trim_matches(WHITESPACE).is_empty()
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(WHITESPACE).len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_with_whitespace_ignored() {
        let check = |text: &str, old: &str, expected: &[usize]| {
            let found: Vec<_> = find_lines(text, old).map(|lines| lines.start).collect();
            assert_eq!(found, expected, "{old:?} in {text:?}");
        };
        check("  a  b \nc\n", "a b\nc", &[0]);
        check("a b\n\ta\tb", "a  b", &[0, 1]);
        check("ab\n", "a b", &[]);
        check("a\n\nb\n", "a\nb", &[]);
        check("a\n \nb\n", " a\n\n  b", &[0]);
        check("\n\n", "\n", &[]);
        check("\n\n", "  \t", &[]);
        check("a\u{a0}b", "a b", &[]);
        check("xa b\n", "a b", &[]);
        check("a  b\na  b", "a b\n", &[0]);
    }

    #[test]
    fn the_replacement_moves_as_the_lines_do() {
        fn check(text: &str, old: &str, new: &str, expected: Option<(Range<usize>, &str)>) {
            let found = match_at(text, old, 0).ok().and_then(|(range, shift)| {
                let moved = shift.apply(new);
                assert!(shift.size_of(new).is_none_or(|size| size == moved.len()), "{new:?}");
                shift.size_of(new).map(|_| (range, moved))
            });
            let expected = expected.map(|(range, text)| (range, text.to_owned()));
            assert_eq!(found, expected, "{old:?} in {text:?}");
        }
        check("a  b\n", "a b", "c", Some((0..4, "c")));
        check("a  b\n", "a b\n", "c\n", Some((0..5, "c\n")));
        check("    a\n      b\n", "a\n  b\n", "c\n\n   d\n", Some((0..14, "    c\n\n       d\n")));
        check("a\n  b\n", "  a\n    b", "  c\n   d", Some((0..5, "c\n d")));
        check("a\n  b\n", "  a\n    b", " c", None);
        check("\ta\n\t\tb\n", "    a\n        b", "     c", Some((0..6, "\t c")));
        check("  a\n    b\n", "\ta\n\t\tb", "\t\t c", Some((0..9, "     c")));
        check("  a\n   b\n", "a\nb", "c", None);
        check("a\n  b\n", "a\nb", "c", None);
        check("a\r\n b\n", " a\n  b", "c", None);
        // Every line must have the same number of spaces for a tab, and a tab for no spaces is not a shift.
        check("\ta\n\t\tb\n", "    a\n        b", "         c", Some((0..6, "\t\t c")));
        check("    a\n        b\n", "\ta\n\t\tb", "\t\t\tc", Some((0..15, "            c")));
        check("\ta\n\t\tb\n", "a\nb", "c", None);
        check("a\nb\n", "\ta\n\t\tb", "\tc", None);
        check("\t a\n", "    a", "    c", None);
        check("\t a\n", "\ta", "\tc", None);
    }
}
