//! Edits by the string that they replace, one after another, against the simplest way: look everywhere, copy everything.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use text::exact::{Matching, Pick, StagedText};
use text::{ComposedSplices, DiffNames, StringEdit, StringError, Text, diff, lines};

use crate::decode::split;
use crate::parts::Parts;
use crate::patch::patch;

/// A case has no more of them.
const MOST_EDITS: usize = 12;
/// Bytes that a text may have on the way: more than a case has, less than it can become.
const LONGEST: usize = 8 * 1024;

/// An edit, before it is known where its strings are kept.
struct Planned {
    old: String,
    new: String,
    pick: Pick,
    count: Option<usize>,
    matching: Matching,
}

/// Each edit does what the model does, or is refused where it is and changes nothing; what all of them did is told as it
/// was, and a diff of it leads from one text to the other.
pub fn string_edits(bytes: &[u8]) {
    let mut parts = Parts::of(bytes);
    let Ok(original) = Text::decode(Arc::new(parts.text().into_bytes())) else { return };
    let edits = planned(&mut parts, original.as_str());
    let mut staged = StagedText::new(&original, LONGEST);
    let mut model = Model::of(&original);
    for edit in &edits {
        let Planned { old, new, pick, count, matching } = edit;
        let (pick, count, matching) = (*pick, *count, *matching);
        let outcome = staged.apply(StringEdit { old, new, pick, count, matching });
        model.compare(edit, outcome, staged.text());
    }
    let (new, changed, applied) = staged.finish();
    assert_eq!(new.strip_prefix(model.bom()), Some(model.text.as_str()));
    check_regions(original.whole(), &new, &changed);
    let diff = diff::unified(original.whole(), &new, &changed, DiffNames { old: "f", new: "f" });
    assert_eq!(patch(original.whole(), &diff), new);
    assert_eq!(applied.len(), model.done.len());
    let total = lines::count(&new).max(1);
    for (applied, done) in applied.iter().zip(&model.done) {
        assert!(!applied.replaced.is_empty() && applied.replaced.len() <= applied.count);
        assert!(applied.replaced.iter().all(|place| place.after.first <= place.after.last));
        assert!(applied.replaced.iter().all(|place| place.after.last < total));
        let Some(Replaced { count, lines }) = done else { continue };
        assert_eq!(applied.count, *count);
        let before = &applied.replaced[0].before;
        assert_eq!((before.first, before.last), *lines, "the lines before the edit");
    }
}

fn planned(parts: &mut Parts<'_>, text: &str) -> Vec<Planned> {
    let mut edits = Vec::new();
    while !parts.are_over() && edits.len() < MOST_EDITS {
        let how = parts.byte();
        let old = if how & 1 == 0 { parts.text() } else { slice(text, parts) };
        let new = parts.text();
        let pick = match how >> 1 & 3 {
            0 | 1 => Pick::Only,
            2 => Pick::All,
            _ => Pick::Near(usize::from(how >> 6)),
        };
        let count = (how >> 3 & 3 == 3).then(|| usize::from(how >> 6));
        let matching =
            if how & 0b10_0000 == 0 { Matching::Exact } else { Matching::IgnoreWhitespace };
        edits.push(Planned { old, new, pick, count, matching });
    }
    edits
}

/// A part of the text: chance alone seldom writes what is there.
pub fn slice(text: &str, parts: &mut Parts<'_>) -> String {
    let start = text.floor_char_boundary(parts.number(text.len() + 1));
    let end = text.floor_char_boundary(start + usize::from(parts.byte()));
    text[start..end].to_owned()
}

/// What a model knows of an edit that was made.
struct Replaced {
    count: usize,
    /// The first and the last line of the first place, in the text before.
    lines: (usize, usize),
}

struct Model<'a> {
    original: &'a Text,
    /// Without the byte order mark.
    text: String,
    /// `None`: the edit was made by a rule that the model does not know.
    done: Vec<Option<Replaced>>,
}

/// What the simplest way makes of an edit.
enum Expected {
    /// This text, of so many places of which the first is there.
    Text(String, usize, Range<usize>),
    /// One of these places is the one, or they tie.
    OneOf(Vec<Range<usize>>, String),
    Empty,
    /// There are so many.
    Ambiguous(usize),
    Missing,
}

impl<'a> Model<'a> {
    fn of(original: &'a Text) -> Self {
        Self { original, text: original.as_str().to_owned(), done: Vec::new() }
    }

    /// The line ending of the text, if all lines have the same.
    fn ending(&self) -> Option<&'static str> {
        let ends: BTreeSet<&str> = split(&self.text)
            .into_iter()
            .filter_map(|line| ["\r\n", "\n", "\r"].into_iter().find(|end| line.ends_with(end)))
            .collect();
        ["\r\n", "\n", "\r"].into_iter().find(|end| ends == BTreeSet::from([*end]))
    }

    fn bom(&self) -> &'static str {
        if self.original.has_bom() { "\u{feff}" } else { "" }
    }

    /// The old string with the line endings of the text, unless it has carriage returns.
    fn styled_old(&self, edit: &Planned) -> String {
        if edit.old.contains('\r') { edit.old.clone() } else { self.native(&edit.old) }
    }

    /// The new string with the line endings of the text, unless either string has carriage returns. A match that begins
    /// with the `\n` of a CRLF leaves its `\r`, so the new string begins with `\n` alone.
    fn styled_new(&self, edit: &Planned, is_exact: bool) -> String {
        if edit.old.contains('\r') || edit.new.contains('\r') {
            return edit.new.clone();
        }
        let splits_a_break =
            is_exact && edit.old.starts_with('\n') && self.ending() == Some("\r\n");
        match edit.new.strip_prefix('\n').filter(|_| splits_a_break) {
            Some(rest) => format!("\n{}", self.native(rest)),
            None => self.native(&edit.new),
        }
    }

    fn native(&self, string: &str) -> String {
        let Some(ending) = self.ending() else { return string.to_owned() };
        split(string)
            .into_iter()
            .flat_map(|line| {
                let bare = line.trim_end_matches(['\r', '\n']);
                [bare, if bare.len() < line.len() { ending } else { "" }]
            })
            .collect()
    }

    fn expect(&self, edit: &Planned) -> Expected {
        if edit.old.is_empty() {
            let new = self.styled_new(edit, true);
            return match edit.count {
                _ if !self.text.is_empty() => Expected::Empty,
                Some(count) if count != 1 => Expected::Ambiguous(1),
                _ => Expected::Text(new, 1, 0..0),
            };
        }
        for old in [&edit.old, &self.styled_old(edit)] {
            let places = places(&self.text, old);
            if !places.is_empty() {
                let new = self.styled_new(edit, *old == edit.old);
                return self.pick(edit, &places, old, &new);
            }
        }
        Expected::Missing
    }

    fn pick(&self, edit: &Planned, places: &[Range<usize>], old: &str, new: &str) -> Expected {
        let first = places[0].clone();
        let is_counted = |count: usize| edit.count.is_none_or(|wanted| wanted == count);
        match edit.pick {
            Pick::All => {
                let count = self.text.matches(old).count();
                if !is_counted(count) {
                    return Expected::Ambiguous(count);
                }
                Expected::Text(self.text.replace(old, new), count, first)
            }
            _ if !is_counted(places.len()) => Expected::Ambiguous(places.len()),
            _ if places.len() == 1 => Expected::Text(self.with(&first, new), 1, first),
            Pick::Only => Expected::Ambiguous(places.len()),
            Pick::Near(_) => Expected::OneOf(places.to_vec(), new.to_owned()),
        }
    }

    fn with(&self, place: &Range<usize>, new: &str) -> String {
        format!("{}{new}{}", &self.text[..place.start], &self.text[place.end..])
    }

    /// The first and the last line of a place; a line break is of the line that it ends.
    fn lines(&self, place: &Range<usize>) -> (usize, usize) {
        let whole = format!("{}{}", self.bom(), self.text);
        let line = |at: usize| {
            let at = (at + self.bom().len()).min(whole.len().saturating_sub(1));
            let mut end = 0;
            let is_before = |line: &&str| {
                end += line.len();
                end <= at
            };
            split(&whole).into_iter().take_while(is_before).count()
        };
        (line(place.start), line(place.end.max(place.start + 1) - 1))
    }

    /// Compares what became of an edit, and goes on with the text that it made.
    fn compare(&mut self, edit: &Planned, outcome: Result<(), StringError>, text: &str) {
        let index = self.done.len();
        let is_loose = edit.matching == Matching::IgnoreWhitespace;
        let outcome = match outcome {
            Err(error) => {
                assert_eq!(text, self.text, "an edit that is refused changes nothing");
                Err(error)
            }
            Ok(()) => Ok(text),
        };
        let done = match (outcome, self.expect(edit)) {
            (Ok(text), Expected::Text(expected, count, first)) => {
                assert_eq!(text, expected);
                Some(Replaced { count, lines: self.lines(&first) })
            }
            (Ok(text), Expected::OneOf(places, new)) => {
                let is_it = |place: &&Range<usize>| self.with(place, &new) == text;
                assert!(places.iter().any(|place| is_it(&place)), "one of the places: {text:?}");
                None
            }
            // By the rule of blanks, which has tests of its own.
            (Ok(_), Expected::Missing) if is_loose => None,
            (Err(StringError::EmptyString { edit }), Expected::Empty)
            | (Err(StringError::NoMatch { edit }), Expected::Missing) => {
                return assert_eq!(edit, index);
            }
            (Err(StringError::Ambiguous { edit, count, named, .. }), expected) => {
                assert_eq!(edit, index);
                assert!(!named.is_empty() && named.len() <= count.min(10));
                let expected = match expected {
                    Expected::Ambiguous(expected) => expected,
                    Expected::OneOf(places, _) => places.len(),
                    Expected::Missing if is_loose => return,
                    _ => panic!("there is one place, and it was refused"),
                };
                return assert_eq!(count, expected);
            }
            (Err(StringError::TooLong { edit, size }), expected) => {
                assert!(edit == index && size > LONGEST);
                let longest = match expected {
                    Expected::Text(text, ..) => text.len(),
                    Expected::OneOf(_, new) => self.text.len() + new.len(),
                    Expected::Missing if is_loose => return,
                    _ => panic!("it was too long, and should have been refused before"),
                };
                return assert!(longest + self.bom().len() > LONGEST);
            }
            (Err(StringError::Conflict { edit: at, prior, now }), Expected::Missing) => {
                assert!(at == index && prior < index && now.first <= now.last);
                let old = self.styled_old(edit);
                return assert_eq!(places(self.original.as_str(), &old).len(), 1);
            }
            (
                Err(StringError::UnevenIndent { .. } | StringError::IndentTooShallow { .. }),
                expected,
            ) => {
                return assert!(is_loose && matches!(expected, Expected::Missing));
            }
            (outcome, _) => panic!("not as expected: {outcome:?}"),
        };
        text.clone_into(&mut self.text);
        self.done.push(done);
    }
}

/// All places, overlapping ones too.
fn places(text: &str, old: &str) -> Vec<Range<usize>> {
    let starts = (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(old.as_bytes()));
    starts.map(|at| at..at + old.len()).collect()
}

/// Between the regions both texts are the same.
fn check_regions(old: &str, new: &str, changed: &ComposedSplices) {
    let (mut old_at, mut new_at) = (0, 0);
    for region in changed.regions() {
        assert_eq!(old.get(old_at..region.old.start), new.get(new_at..region.new.start));
        (old_at, new_at) = (region.old.end, region.new.end);
    }
    assert_eq!(old.get(old_at..), new.get(new_at..));
}
