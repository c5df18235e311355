//! Names the differences between two runs of whitespace: spaces and tabs, line breaks, unusual whitespace and escapes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::comparison::Comparison;
use super::fold::{is_dropped, is_zero_width};
use super::{Difference, TextSide};
use crate::lines::{LineEnding, lines};

/// The position of a run of whitespace relative to the place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GapPosition {
    /// Before the place, at the start of a line.
    LineStart,
    /// After the place.
    End,
    /// After the place, at the end of the text.
    TextEnd,
    None,
}

impl Comparison {
    /// Notes how two runs of dropped characters differ. Each kind of difference is undone once it is noted, and the
    /// next kind is searched for in what is left.
    pub(super) fn compare_gap(
        &mut self,
        (file, needle): (&str, &str),
        after: (Option<char>, Option<char>),
        edge: GapPosition,
        indents: &mut Vec<(String, String)>,
    ) {
        let (mut file, mut needle) = (Cow::Borrowed(file), Cow::Borrowed(needle));
        let slashes = |gap: &str| gap.matches('\\').count();
        if slashes(&file) != slashes(&needle) {
            let side = side_with_more(slashes(&file), slashes(&needle));
            let (gap, after) =
                if side == TextSide::File { (&file, after.0) } else { (&needle, after.1) };
            let escape = gap.chars().chain(after).skip_while(|one| *one != '\\').take(2).collect();
            self.note(Difference::Escapes { side, escape });
            (file, needle) = (unescape(&file).into(), unescape(&needle).into());
        }
        let mut surplus = BTreeMap::<char, isize>::new();
        for (gap, by) in [(&file, 1), (&needle, -1)] {
            for character in gap.chars().filter(|one| is_unusual(*one)) {
                *surplus.entry(character).or_default() += by;
            }
        }
        for (character, more) in surplus.into_iter().filter(|(_, more)| *more != 0) {
            let side = if more > 0 { TextSide::File } else { TextSide::Needle };
            self.note(Difference::UnusualWhitespace { side, character });
        }
        let ends = endings(&file).zip(endings(&needle)).find(|(file, needle)| file != needle);
        if let Some((file, needle)) = ends {
            self.note(Difference::LineEndings { file, needle });
        }
        let (file, needle) = (normalized(&file), normalized(&needle));
        if file != needle {
            self.compare_whitespace(&file, &needle, edge, indents);
        } else if self.differences.is_empty() {
            // Equal whitespace in another order.
            self.note(Difference::InnerWhitespace);
        }
    }

    /// Notes how two runs of spaces, tabs and `\n` differ.
    fn compare_whitespace(
        &mut self,
        file: &str,
        needle: &str,
        edge: GapPosition,
        indents: &mut Vec<(String, String)>,
    ) {
        let ours: Vec<&str> = file.split('\n').collect();
        let theirs: Vec<&str> = needle.split('\n').collect();
        let (last, last_of_needle) = (ours.len() - 1, theirs.len() - 1);
        if last == 0 || last_of_needle == 0 {
            let reason = match edge {
                _ if last != last_of_needle && last == 0 && edge == GapPosition::TextEnd => {
                    Difference::NoFinalBreak
                }
                _ if last != last_of_needle => Difference::LineBreaks,
                GapPosition::LineStart => return indents.push((file.into(), needle.into())),
                GapPosition::End | GapPosition::TextEnd => trailing_whitespace(file, needle),
                GapPosition::None => Difference::InnerWhitespace,
            };
            return self.note(reason);
        }
        if last != last_of_needle {
            let side = side_with_more(last, last_of_needle);
            self.note(Difference::BlankLines { side, by: last.abs_diff(last_of_needle) });
        }
        if ours[0] != theirs[0] {
            self.note(trailing_whitespace(ours[0], theirs[0]));
        }
        if last == last_of_needle {
            for (ours, theirs) in ours[1..last].iter().zip(&theirs[1..last]) {
                if ours != theirs {
                    self.note(trailing_whitespace(ours, theirs));
                }
            }
        }
        if ours[last] != theirs[last_of_needle] {
            indents.push((ours[last].into(), theirs[last_of_needle].into()));
        }
    }

    pub(super) fn note_indentation(&mut self, indents: &[(String, String)]) {
        let mut depths = Vec::new();
        for (file, needle) in indents {
            let tabs = (file.contains('\t'), needle.contains('\t'));
            match indent_depth(file, needle) {
                Some(depth) => depths.push(depth),
                None if tabs == (true, false) => {
                    self.note(Difference::TabsForSpaces { side: TextSide::File });
                }
                None if tabs == (false, true) => {
                    self.note(Difference::TabsForSpaces { side: TextSide::Needle });
                }
                None => self.note(Difference::Indentation),
            }
        }
        match depths.as_slice() {
            [] => {}
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                self.note(first.clone());
            }
            _ => self.note(Difference::Indentation),
        }
    }
}

pub(super) fn endings(gap: &str) -> impl Iterator<Item = LineEnding> {
    lines(gap).filter_map(|line| LineEnding::closing(&gap[line.start..line.next]))
}

fn unescape(gap: &str) -> String {
    gap.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace('\\', "")
}

fn is_unusual(character: char) -> bool {
    is_dropped(character) && !matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Returns `gap` with only spaces, tabs and `\n`: other whitespace is replaced, zero-width characters are dropped.
fn normalized(gap: &str) -> String {
    gap.replace("\r\n", "\n")
        .chars()
        .filter(|character| !is_zero_width(*character))
        .map(|character| if is_unusual(character) { ' ' } else { character })
        .map(|character| if character == '\r' { '\n' } else { character })
        .collect()
}

fn side_with_more(file: usize, needle: usize) -> TextSide {
    if file > needle { TextSide::File } else { TextSide::Needle }
}

fn trailing_whitespace(file: &str, needle: &str) -> Difference {
    Difference::TrailingWhitespace { side: side_with_more(file.len(), needle.len()) }
}

/// Returns how many more tabs or spaces one side indents by; `None` if the two differ in another way.
fn indent_depth(file: &str, needle: &str) -> Option<Difference> {
    let (side, rest) = match (file.strip_prefix(needle), needle.strip_prefix(file)) {
        (Some(rest), _) => (TextSide::File, rest),
        (None, rest) => (TextSide::Needle, rest?),
    };
    let tabs = rest.starts_with('\t');
    let alike = rest.chars().all(|character| (character == '\t') == tabs);
    alike.then_some(Difference::IndentDepth { side, by: rest.len(), tabs })
}
