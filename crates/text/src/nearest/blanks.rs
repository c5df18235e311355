//! Names the differences between two runs of whitespace: spaces and tabs, line breaks, unusual whitespace and escapes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::comparison::Comparison;
use super::fold::{is_blank, is_zero_width};
use super::{Reason, Side};
use crate::lines::{Ending, lines};

/// The position of a run of whitespace relative to the place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
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
    pub(super) fn gap(
        &mut self,
        (file, needle): (&str, &str),
        after: (Option<char>, Option<char>),
        edge: Edge,
        indents: &mut Vec<(String, String)>,
    ) {
        let (mut file, mut needle) = (Cow::Borrowed(file), Cow::Borrowed(needle));
        let slashes = |gap: &str| gap.matches('\\').count();
        if slashes(&file) != slashes(&needle) {
            let side = more(slashes(&file), slashes(&needle));
            let (gap, after) =
                if side == Side::File { (&file, after.0) } else { (&needle, after.1) };
            let escape = gap.chars().chain(after).skip_while(|one| *one != '\\').take(2).collect();
            self.note(Reason::Escapes { side, escape });
            (file, needle) = (unescape(&file).into(), unescape(&needle).into());
        }
        let mut surplus = BTreeMap::<char, isize>::new();
        for (gap, by) in [(&file, 1), (&needle, -1)] {
            for character in gap.chars().filter(|one| is_unusual(*one)) {
                *surplus.entry(character).or_default() += by;
            }
        }
        for (character, more) in surplus.into_iter().filter(|(_, more)| *more != 0) {
            let side = if more > 0 { Side::File } else { Side::Needle };
            self.note(Reason::UnusualBlank { side, character });
        }
        let ends = endings(&file).zip(endings(&needle)).find(|(file, needle)| file != needle);
        if let Some((file, needle)) = ends {
            self.note(Reason::LineEnds { file, needle });
        }
        let (file, needle) = (usual(&file), usual(&needle));
        if file != needle {
            self.blanks(&file, &needle, edge, indents);
        } else if self.reasons.is_empty() {
            // Equal whitespace in another order.
            self.note(Reason::InnerBlanks);
        }
    }

    /// Notes how two runs of spaces, tabs and `\n` differ.
    fn blanks(
        &mut self,
        file: &str,
        needle: &str,
        edge: Edge,
        indents: &mut Vec<(String, String)>,
    ) {
        let ours: Vec<&str> = file.split('\n').collect();
        let theirs: Vec<&str> = needle.split('\n').collect();
        let (last, last_of_needle) = (ours.len() - 1, theirs.len() - 1);
        if last == 0 || last_of_needle == 0 {
            let reason = match edge {
                _ if last != last_of_needle && last == 0 && edge == Edge::TextEnd => {
                    Reason::NoFinalBreak
                }
                _ if last != last_of_needle => Reason::LineBreaks,
                Edge::LineStart => return indents.push((file.into(), needle.into())),
                Edge::End | Edge::TextEnd => trailing(file, needle),
                Edge::None => Reason::InnerBlanks,
            };
            return self.note(reason);
        }
        if last != last_of_needle {
            let side = more(last, last_of_needle);
            self.note(Reason::BlankLines { side, by: last.abs_diff(last_of_needle) });
        }
        if ours[0] != theirs[0] {
            self.note(trailing(ours[0], theirs[0]));
        }
        if last == last_of_needle {
            for (ours, theirs) in ours[1..last].iter().zip(&theirs[1..last]) {
                if ours != theirs {
                    self.note(trailing(ours, theirs));
                }
            }
        }
        if ours[last] != theirs[last_of_needle] {
            indents.push((ours[last].into(), theirs[last_of_needle].into()));
        }
    }

    pub(super) fn indentation(&mut self, indents: &[(String, String)]) {
        let mut depths = Vec::new();
        for (file, needle) in indents {
            let tabs = (file.contains('\t'), needle.contains('\t'));
            match depth(file, needle) {
                Some(depth) => depths.push(depth),
                None if tabs == (true, false) => self.note(Reason::Tabs { side: Side::File }),
                None if tabs == (false, true) => self.note(Reason::Tabs { side: Side::Needle }),
                None => self.note(Reason::Indentation),
            }
        }
        match depths.as_slice() {
            [] => {}
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                self.note(first.clone());
            }
            _ => self.note(Reason::Indentation),
        }
    }
}

pub(super) fn endings(gap: &str) -> impl Iterator<Item = Ending> {
    lines(gap).filter_map(|line| Ending::closing(&gap[line.start..line.next]))
}

fn unescape(gap: &str) -> String {
    gap.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace('\\', "")
}

fn is_unusual(character: char) -> bool {
    is_blank(character) && !matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Returns `gap` with only spaces, tabs and `\n`: other whitespace is replaced, zero-width characters are dropped.
fn usual(gap: &str) -> String {
    gap.replace("\r\n", "\n")
        .chars()
        .filter(|character| !is_zero_width(*character))
        .map(|character| if is_unusual(character) { ' ' } else { character })
        .map(|character| if character == '\r' { '\n' } else { character })
        .collect()
}

fn more(file: usize, needle: usize) -> Side {
    if file > needle { Side::File } else { Side::Needle }
}

fn trailing(file: &str, needle: &str) -> Reason {
    Reason::TrailingBlanks { side: more(file.len(), needle.len()) }
}

/// Returns how many more tabs or spaces one side indents by; `None` if the two differ in another way.
fn depth(file: &str, needle: &str) -> Option<Reason> {
    let (side, rest) = match (file.strip_prefix(needle), needle.strip_prefix(file)) {
        (Some(rest), _) => (Side::File, rest),
        (None, rest) => (Side::Needle, rest?),
    };
    let tabs = rest.starts_with('\t');
    let alike = rest.chars().all(|character| (character == '\t') == tabs);
    alike.then_some(Reason::Depth { side, by: rest.len(), tabs })
}
