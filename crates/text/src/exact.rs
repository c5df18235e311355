//! String edits, staged one after another: each is searched for in what the ones before it left.
//!
//! A string must be found exactly, byte for byte, and at one place. There are two exceptions, and both are reported:
//! line feeds where the text has another line break throughout, and, if asked for, whitespace (`blanks.rs`). There is
//! no other fuzzy matching, ever; a near match only makes a hint (`nearest.rs`).
//!
//! Line feeds of the new text become the text's own line breaks, unless the caller writes a carriage return in either
//! string: then every byte is taken as it is written.

mod pick;
mod rarity;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::iter;
use std::ops::Range;

use memchr::memmem;

pub use pick::Mismatch;
use pick::{NAMED, pick};
use rarity::Rarity;

use crate::blanks::{self, Misfit, Shift};
use crate::decode::Text;
use crate::line_index::{self, LineIndex};
use crate::lines::{self, Ending};
use crate::positions::positions;
use crate::splice::{self, Composed};

/// Most places kept of one edit, and of all edits together besides the first of each.
const PLACES: usize = 100;
const PLACES_OF_ALL: usize = 1000;
/// An edit with more splices than this is recorded as one.
const SPLICES: usize = 100_000;

/// A replacement of `old` by `new`.
#[derive(Debug, Clone, Copy)]
pub struct StringEdit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub pick: Pick,
    /// The number of matches that there must be.
    pub count: Option<usize>,
    pub matching: Matching,
}

/// The choice among several matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The only match: several are refused, even ones that overlap.
    Only,
    /// Every match from left to right that does not overlap one before it.
    All,
    /// The match nearest to where this line (from 0) of the original is now.
    Near(usize),
}

fn has_break(string: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', string.as_bytes()).is_some()
}

/// True if every byte of the new text is taken as it is written.
fn is_literal(edit: &StringEdit) -> bool {
    edit.old.contains('\r') || edit.new.contains('\r')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    Exact,
    /// If nothing matches exactly, whole lines that match with whitespace ignored.
    IgnoreBlanks,
}

/// The way a string was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Exactly,
    /// Exactly, but one half of a CRLF was replaced and the other half is left.
    WithinBreak,
    /// With its line feeds changed to the line ending of the file.
    WithEndings(Ending),
    /// With whitespace ignored; the replacement was moved by the shift.
    WithBlanks(Shift),
}

/// The result of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub found: Found,
    /// The number of places that were replaced.
    pub count: usize,
    /// The first of these places.
    pub places: Vec<Place>,
}

/// The lines of a place that was replaced, from 0; a span includes its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The lines that were replaced, in the text just before the edit.
    pub before: LineSpan,
    /// The lines that replace them, in the text after all edits.
    pub after: LineSpan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSpan {
    pub first: usize,
    pub last: usize,
}

/// The reason why a string edit could not be applied. The text is unchanged in every case; `edit` and `prior` are
/// positions in the list of edits.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum StringError {
    /// An empty string is everywhere; it can only fill an empty text.
    #[error("Edit {edit}: old_string cannot be empty")]
    EmptyString { edit: usize },
    #[error("Edit {edit}: String not found")]
    NoMatch { edit: usize },
    /// `named`: the first matches, or those that tie.
    #[error("Edit {edit}: String appears {count} times")]
    Ambiguous { edit: usize, count: usize, named: Vec<LineSpan>, why: Mismatch },
    /// The string was there once, and an edit before replaced part of it. `now`: the lines that stand there.
    #[error("Edit {edit} conflicts with edit {prior}")]
    Overtaken { edit: usize, prior: usize, now: LineSpan },
    /// The text would be too long with this edit; `size` is its bytes.
    #[error("Edit {edit} makes the text too long: {size} bytes")]
    TooLong { edit: usize, size: usize },
    /// The lines match with whitespace ignored, but not by one and the same shift.
    #[error("Edit {edit}: String not found")]
    Uneven { edit: usize, place: LineSpan },
    /// The lines match with whitespace ignored, and the new ones have less indentation than the shift would remove.
    #[error("Edit {edit}: String not found")]
    TooShallow { edit: usize, place: LineSpan },
}

/// A text and the edits applied to it so far.
#[derive(Debug)]
pub struct Staged<'a> {
    original: &'a Text,
    /// With the byte order mark, which all offsets here include.
    text: String,
    bom: usize,
    /// Most bytes that the text may have, between edits too.
    max_len: usize,
    lines: LineIndex,
    rarity: Rarity,
    composed: Composed,
    ending: OnceCell<Option<Ending>>,
    done: Vec<Done<'a>>,
    /// Places that can still be kept besides the first of each edit.
    places_left: usize,
}

#[derive(Debug)]
struct Done<'a> {
    edit: StringEdit<'a>,
    found: Found,
    count: usize,
    before: Vec<LineSpan>,
    /// The current ranges of the first places.
    now: Vec<Range<usize>>,
}

/// The places where an edit applies, and the replacement.
struct Fit<'a> {
    /// Sorted and of one length.
    ranges: Vec<Range<usize>>,
    new: Cow<'a, str>,
    found: Found,
}

impl<'a> Fit<'a> {
    fn one(range: Range<usize>, new: Cow<'a, str>, found: Found) -> Self {
        Self { ranges: iter::once(range).collect(), new, found }
    }
}

impl<'a> Staged<'a> {
    pub fn new(original: &'a Text, max_len: usize) -> Self {
        let text = original.whole().to_owned();
        let bom = text.len() - original.as_str().len();
        Self {
            original,
            text,
            bom,
            max_len,
            lines: LineIndex::default(),
            rarity: Rarity::of(original.as_str()),
            composed: Composed::new(),
            ending: OnceCell::new(),
            done: Vec::new(),
            places_left: PLACES_OF_ALL,
        }
    }

    /// Applies the next edit, or leaves everything as it is and returns the reason.
    pub fn apply(&mut self, edit: StringEdit<'a>) -> Result<(), StringError> {
        let Fit { ranges, new, found } = self.fit(edit)?;
        if has_break(edit.old) || has_break(edit.new) {
            self.ending = OnceCell::new();
        }
        self.check_size(ranges.len(), ranges.first().map_or(0, Range::len), new.len())?;
        let remembered = &ranges[..ranges.len().min(PLACES).min(1 + self.places_left)];
        self.places_left -= remembered.len().saturating_sub(1);
        if let Some(last) = remembered.last() {
            self.lines.reach(&self.text, last.start);
        }
        let before = remembered.iter().map(|range| self.span(range)).collect();
        for done in &mut self.done {
            for place in &mut done.now {
                *place = splice::carry(place.clone(), &ranges, new.len());
            }
        }
        let now = remembered.iter().enumerate().map(|(index, range)| {
            let start = range.start + index * new.len() - index * range.len();
            start..start + new.len()
        });
        let now = now.collect();
        if let [range] = &ranges[..] {
            self.text.replace_range(range.clone(), &new);
            self.lines.splice(&self.text, range, new.len());
            self.composed.then(range.clone(), new.len());
        } else {
            self.text = splice::replace_each(&self.text, &ranges, &new);
            self.lines = LineIndex::default();
            match &ranges[..] {
                [first, .., last] if ranges.len() > SPLICES => {
                    let gaps = (last.end - first.start) - ranges.len() * first.len();
                    self.composed.then(first.start..last.end, gaps + ranges.len() * new.len());
                }
                ranges => self.composed.then_each(ranges, new.len()),
            }
        }
        self.done.push(Done { edit, found, count: ranges.len(), before, now });
        Ok(())
    }

    /// Refuses to replace `count` places of `old_len` bytes by `new_len` each if the text would become too long.
    fn check_size(&self, count: usize, old_len: usize, new_len: usize) -> Result<(), StringError> {
        let kept = self.text.len() - count * old_len;
        let size = kept.saturating_add(count.saturating_mul(new_len));
        if size <= self.max_len {
            return Ok(());
        }
        Err(StringError::TooLong { edit: self.done.len(), size })
    }

    /// The text as staged so far, without its byte order mark.
    pub fn text(&self) -> &str {
        &self.text[self.bom..]
    }

    /// Returns the earlier edit that replaced the very same string.
    pub fn replaced_by(&self, old: &str) -> Option<usize> {
        self.done.iter().position(|done| done.edit.old == old)
    }

    /// True if `old` would have been found in the text before all edits.
    pub fn was_there(&self, old: &str) -> bool {
        Self::new(self.original, self.max_len).is_there(old)
    }

    fn is_there(&self, old: &str) -> bool {
        let has = |old: &str| memmem::find(self.text().as_bytes(), old.as_bytes()).is_some();
        has(old) || self.with_own_endings(old).is_some_and(|old| has(&old))
    }

    /// Returns the new text with the byte order mark, the composed splices, and the result of each edit.
    pub fn finish(mut self) -> (String, Composed, Vec<Applied>) {
        let last = self.done.iter().flat_map(|done| &done.now).map(|range| range.start).max();
        self.lines.reach(&self.text, last.unwrap_or_default());
        let after = |range: &Range<usize>| self.span(range);
        let applied = self.done.iter().map(|done| {
            let places = done.before.iter().zip(&done.now);
            let places = places.map(|(before, now)| Place { before: *before, after: after(now) });
            Applied { found: done.found.clone(), count: done.count, places: places.collect() }
        });
        let applied = applied.collect();
        (self.text, self.composed, applied)
    }

    fn fit(&self, mut edit: StringEdit<'a>) -> Result<Fit<'a>, StringError> {
        let index = self.done.len();
        if let Pick::Near(line) = &mut edit.pick {
            *line = self.line_now(*line);
        }
        if edit.old.is_empty() {
            if !self.text().is_empty() {
                return Err(StringError::EmptyString { edit: index });
            }
            if edit.count.is_some_and(|count| count != 1) {
                let (named, why) = (vec![LineSpan { first: 0, last: 0 }], Mismatch::Count);
                return Err(StringError::Ambiguous { edit: index, count: 1, named, why });
            }
            return Ok(Fit::one(self.bom..self.bom, self.native(edit.new), Found::Exactly));
        }
        let (new, found) = self.exact_replacement(edit);
        if let Some(ranges) = self.find(edit, edit.old, new.len())? {
            return Ok(Fit { ranges, new, found });
        }
        let old = self.with_own_endings(edit.old);
        let new = self.replacement(&edit);
        if let (Some(Cow::Owned(old)), Some(ending)) = (&old, self.ending())
            && let Some(ranges) = self.find(edit, old, new.len())?
        {
            return Ok(Fit { ranges, new, found: Found::WithEndings(ending) });
        }
        if edit.matching == Matching::IgnoreBlanks
            && let Some(fit) = self.fit_but_for_blanks(edit)?
        {
            return Ok(fit);
        }
        Err(self.missed(edit, old.as_deref().unwrap_or(edit.old)))
    }

    fn missed(&self, edit: StringEdit<'_>, old: &str) -> StringError {
        let index = self.done.len();
        if let Some(range) = self.only_origin(old)
            && let Some(prior) = self.first_to_take(&range)
            && self.done[prior].edit.old != edit.old
        {
            let now = self.span(&self.composed.to_new(range));
            return StringError::Overtaken { edit: index, prior, now };
        }
        StringError::NoMatch { edit: index }
    }

    /// Returns the range of `old` before all edits, if it was at one place only.
    fn only_origin(&self, old: &str) -> Option<Range<usize>> {
        let text = &self.original.as_str().as_bytes();
        let finder = memmem::Finder::new(old);
        let at = finder.find(text).filter(|_| !self.done.is_empty())?;
        let range = self.bom + at..self.bom + at + old.len();
        finder.find(&text[at + 1..]).is_none().then_some(range)
    }

    /// Returns the first edit that replaced something in `origin`, a part of the original. The edits are made once
    /// more: all their places are not kept, since they are rarely needed and can be many.
    fn first_to_take(&self, origin: &Range<usize>) -> Option<usize> {
        let mut again = Self::new(self.original, self.max_len);
        self.done.iter().position(|done| {
            let fit = again.fit(done.edit);
            let took = |range: &Range<usize>| {
                let taken = again.composed.to_old(range.clone());
                taken.start < origin.end && origin.start < taken.end
            };
            let taken = fit.is_ok_and(|fit| fit.ranges.iter().any(took));
            taken || again.apply(done.edit).is_err()
        })
    }

    /// Finds `needle` and returns the places that the edit picks; `None` if it is nowhere.
    fn find(
        &self,
        edit: StringEdit<'_>,
        needle: &str,
        new_len: usize,
    ) -> Result<Option<Vec<Range<usize>>>, StringError> {
        let index = self.done.len();
        let text = &self.text.as_bytes()[self.bom..];
        let finder = memmem::FinderBuilder::new().build_forward_with_ranker(&self.rarity, needle);
        let range = |at: usize| self.bom + at..self.bom + at + needle.len();
        let Some(first) = finder.find(text) else { return Ok(None) };
        if edit.pick == Pick::All {
            let matches = || finder.find_iter(text).map(range);
            let count = matches().count();
            if edit.count.is_some_and(|wanted| wanted != count) {
                let named = matches().take(NAMED).map(|range| self.span(&range)).collect();
                let why = Mismatch::Count;
                return Err(StringError::Ambiguous { edit: index, count, named, why });
            }
            self.check_size(count, needle.len(), new_len)?;
            return Ok(Some(matches().collect()));
        }
        if finder.find(&text[first + 1..]).is_none() && edit.count.is_none_or(|count| count == 1) {
            return Ok(Some(vec![range(first)]));
        }
        let rest = text[first..].iter().copied();
        let matches = positions(rest, needle.as_bytes()).map(|at| range(first + at));
        // Matches come in order, so lines are counted once.
        let (mut counted, mut line) = (0, 0);
        let height = line_index::breaks(needle, 0..needle.len() - 1);
        let span = |range: &Range<usize>| {
            line += line_index::breaks(&self.text, counted..range.start);
            counted = range.start;
            LineSpan { first: line, last: line + height }
        };
        Ok(Some(vec![pick(edit, index, Mismatch::Several, matches, span)?]))
    }

    fn fit_but_for_blanks(&self, edit: StringEdit<'a>) -> Result<Option<Fit<'a>>, StringError> {
        let index = self.done.len();
        let text = self.text();
        let old = self.native(edit.old);
        let mut fits = blanks::fits(text, &old).peekable();
        if fits.peek().is_none() {
            return Ok(None);
        }
        let span = |lines: &Range<usize>| LineSpan { first: lines.start, last: lines.end - 1 };
        let lines = pick(edit, index, Mismatch::SeveralButForBlanks, fits, span)?;
        let place = span(&lines);
        let (range, shift) = match blanks::measure(text, &old, lines.start) {
            Ok(measured) => measured,
            Err(Misfit::Breaks) => return Ok(None),
            Err(Misfit::Uneven) => return Err(StringError::Uneven { edit: index, place }),
        };
        let size = shift.size_of(edit.new).ok_or(StringError::TooShallow { edit: index, place })?;
        self.check_size(1, range.len(), size)?;
        let new = shift.apply(edit.new);
        let new = match self.native(&new) {
            Cow::Owned(native) if !is_literal(&edit) => native,
            _ => new,
        };
        let range = self.bom + range.start..self.bom + range.end;
        Ok(Some(Fit::one(range, new.into(), Found::WithBlanks(shift))))
    }

    /// Returns where a line of the original is now.
    fn line_now(&self, line: usize) -> usize {
        if self.composed.regions().is_empty() {
            return line;
        }
        let original = self.original.whole();
        let at = lines::lines(original).nth(line).map_or(original.len(), |line| line.start);
        let now = self.composed.to_new(at..at).start;
        self.span(&(now..now)).first
    }

    /// Returns the ending that all lines share, if there is one.
    fn ending(&self) -> Option<Ending> {
        *self.ending.get_or_init(|| lines::uniform_ending(self.text()))
    }

    /// Returns `string` with its line breaks in the file's style; borrowed if they already are.
    fn native<'s>(&self, string: &'s str) -> Cow<'s, str> {
        if !has_break(string) {
            return string.into();
        }
        self.ending().map_or(string.into(), |ending| lines::with_ending(string, ending))
    }

    /// Returns `old` with its line feeds in the style of the text; `None` if it has a carriage return.
    fn with_own_endings<'s>(&self, old: &'s str) -> Option<Cow<'s, str>> {
        (!old.contains('\r')).then(|| self.native(old))
    }

    /// Returns the new text with its line feeds in the style of the text, unless the edit is literal.
    fn replacement<'s>(&self, edit: &StringEdit<'s>) -> Cow<'s, str> {
        if is_literal(edit) { edit.new.into() } else { self.native(edit.new) }
    }

    /// Returns the replacement for an `old` that is found exactly, and so perhaps in the middle of a CRLF.
    fn exact_replacement<'s>(&self, edit: StringEdit<'s>) -> (Cow<'s, str>, Found) {
        let is_crlf = || self.ending() == Some(Ending::CrLf);
        let begins_within = edit.old.starts_with('\n') && is_crlf();
        let ends_within = edit.old.ends_with('\r') && is_crlf();
        let new = match edit.new.strip_prefix('\n') {
            // The new line feed completes the `\r` before it.
            Some(rest) if begins_within && !is_literal(&edit) => {
                format!("\n{}", self.native(rest)).into()
            }
            _ => self.replacement(&edit),
        };
        let leaves_half = begins_within && !edit.new.starts_with('\n')
            || ends_within && !edit.new.ends_with('\r');
        (new, if leaves_half { Found::WithinBreak } else { Found::Exactly })
    }

    /// Returns the lines of `range`. A line break belongs to the line it ends, and an empty range to the line it stands
    /// in.
    fn span(&self, range: &Range<usize>) -> LineSpan {
        let start = range.start.min(self.text.len().saturating_sub(1));
        let first = self.lines.line_at(&self.text, start);
        let last = first + line_index::breaks(&self.text, start..range.end.max(start + 1) - 1);
        LineSpan { first, last }
    }
}
