//! Names exactly what differs between a place and a needle that fold alike.
//!
//! Both are walked in step, so that every difference is met and named: the reasons found are complete.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use super::boundaries::common_start;
use super::comparison::Comparison;
use super::fold::{
    ascii_equivalent, decode_entity, fold_character_at, is_dropped, significant_range,
};
use super::whitespace::{GapPosition, endings};
use super::{Difference, TextSide};

impl Comparison {
    /// Compares `place` of `text` with `needle`. `None` if they do not fold alike.
    pub(super) fn compare(&mut self, text: &str, place: Range<usize>, needle: &str) -> Option<()> {
        let mut ours = FoldCursor { text: &text[..place.end], at: place.start, folded: Vec::new() };
        let mut theirs = FoldCursor { text: needle, at: 0, folded: Vec::new() };
        let starts_line =
            matches!(text.as_bytes()[..place.start].last(), None | Some(b'\n' | b'\r'));
        let mut indents = Vec::new();
        let mut opens = true;
        loop {
            let at = ours.at;
            let gaps = (ours.skip_dropped(), theirs.skip_dropped());
            let closes = theirs.at == needle.len();
            if gaps.0 != gaps.1 && self.spot(at + common_start(gaps.0, gaps.1)) {
                let edge = match (opens, closes) {
                    (true, _) if starts_line => GapPosition::LineStart,
                    (_, true) if ours.at == text.len() => GapPosition::TextEnd,
                    (_, true) => GapPosition::End,
                    _ => GapPosition::None,
                };
                let after = (text[ours.at..].chars().next(), needle[theirs.at..].chars().next());
                self.compare_gap(gaps, after, edge, &mut indents);
            }
            if closes || ours.at == place.end {
                self.note_indentation(&indents);
                return (closes && ours.at == place.end).then_some(());
            }
            let start = (ours.at, theirs.at);
            ours.fold_next();
            theirs.fold_next();
            while ours.folded.len() != theirs.folded.len() {
                let shorter =
                    if ours.folded.len() < theirs.folded.len() { &mut ours } else { &mut theirs };
                if !shorter.fold_next() {
                    return None;
                }
            }
            if ours.folded != theirs.folded {
                return None;
            }
            self.compare_characters(start.0, &text[start.0..ours.at], &needle[start.1..theirs.at]);
            ours.folded.clear();
            theirs.folded.clear();
            opens = false;
        }
    }

    /// Notes how two runs of characters that fold alike differ.
    fn compare_characters(&mut self, at: usize, file: &str, needle: &str) {
        if file == needle || !self.spot(at) {
            return;
        }
        let (mut ours, mut theirs) = (Cow::Borrowed(file), Cow::Borrowed(needle));
        for (side, text) in [(TextSide::File, &mut ours), (TextSide::Needle, &mut theirs)] {
            if text.starts_with('&') && text.len() > 1 {
                let plain = char::from(decode_entity(text.as_bytes()).0);
                let entity = std::mem::replace(text, Cow::Owned(plain.into())).into_owned();
                self.note(Difference::Entities { side, entity });
            }
        }
        let typographic =
            |text: &str| text.chars().any(|one| one == '"' || ascii_equivalent(one).is_some());
        if ours != theirs && (typographic(&ours) || typographic(&theirs)) {
            self.note(Difference::Typography { file: ours.into(), needle: theirs.into() });
        } else if ours != theirs {
            let without_whitespace =
                |text: &str| text.chars().filter(|c| !is_dropped(*c)).collect::<String>();
            let (ours, theirs) = (without_whitespace(&ours), without_whitespace(&theirs));
            if ours.nfd().ne(theirs.nfd()) {
                self.note(Difference::Case);
            }
            if ours.to_lowercase() != theirs.to_lowercase() {
                self.note(Difference::Composition);
            }
            if ours == theirs {
                self.note(Difference::InnerWhitespace);
            }
        }
    }
}

/// A string and the position reached in it.
struct FoldCursor<'a> {
    text: &'a str,
    at: usize,
    folded: Vec<u8>,
}

impl<'a> FoldCursor<'a> {
    /// Skips the characters that folding drops, and returns them.
    fn skip_dropped(&mut self) -> &'a str {
        let start = self.at;
        while self.at < self.text.len() {
            let next = fold_character_at(self.text, self.at, &mut self.folded);
            if !self.folded.is_empty() {
                self.folded.clear();
                break;
            }
            self.at = next;
        }
        &self.text[start..self.at]
    }

    /// Folds one more character; false at the end.
    fn fold_next(&mut self) -> bool {
        let before = self.folded.len();
        while self.at < self.text.len() && self.folded.len() == before {
            self.at = fold_character_at(self.text, self.at, &mut self.folded);
        }
        self.folded.len() > before
    }
}

/// Widens `place` of `text` by the whitespace around it that belongs to `needle`, which folds alike: none where the
/// needle has none, or else up to as many line breaks as the needle has there.
pub(super) fn include_whitespace(text: &str, place: Range<usize>, needle: &str) -> Range<usize> {
    let Some(inner) = significant_range(needle) else { return place };
    let (mut before, mut after) = (&needle[..inner.start], &needle[inner.end..]);
    let (mut start, mut end) = (place.start, place.end);
    // Escapes are not whitespace of the text, unless the text has the same ones.
    if before.contains('\\') && text[..start].ends_with(before) {
        start -= before.len();
        before = "";
    }
    if after.contains('\\') && text[end..].starts_with(after) {
        end += after.len();
        after = "";
    }
    let mut left = count_breaks(before);
    let wide = !(before.starts_with(['\n', '\r']) || before.starts_with("\\n"));
    for (at, character) in text[..start].char_indices().rev() {
        let ends_line = character == '\n' || character == '\r' && !text[at + 1..].starts_with('\n');
        let closed = left == 0 && !(wide || character == '\r' && !ends_line);
        if before.is_empty() || !is_dropped(character) || closed || ends_line && left == 0 {
            break;
        }
        left -= usize::from(ends_line);
        start = at;
    }
    let mut left = count_breaks(after);
    let wide = !(after.ends_with(['\n', '\r']) || after.ends_with("\\n"));
    let behind = end;
    for (at, character) in text[behind..].char_indices() {
        let at = behind + at;
        let ends_line = character == '\n' || character == '\r' && !text[at + 1..].starts_with('\n');
        let closed = left == 0 && (!wide || matches!(character, '\n' | '\r'));
        if after.is_empty() || !is_dropped(character) || closed {
            break;
        }
        left -= usize::from(ends_line);
        end = at + character.len_utf8();
    }
    start..end
}

/// Counts line breaks, both real ones and those written `\n`.
fn count_breaks(gap: &str) -> usize {
    endings(gap).count() + gap.matches("\\n").count()
}
