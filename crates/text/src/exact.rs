//! String edits, staged one after another: each is searched for in what the ones before it left.
//!
//! A string must be found exactly, byte for byte, and at one place. There are two exceptions, and both are reported:
//! line feeds where the text has another line break throughout, and, if asked for, whitespace (`whitespace.rs`). There
//! is no other fuzzy matching, ever; a near match only makes a hint (`nearest.rs`).
//!
//! Line feeds of the new text become the text's own line breaks, unless the caller writes a carriage return in either
//! string: then every byte is taken as it is written.

mod byte_frequencies;
mod pick;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::iter;
use std::ops::Range;

use memchr::memmem;

use byte_frequencies::ByteFrequencies;
pub use pick::Ambiguity;
use pick::{NAMED_MAX, pick};

use crate::decode::Text;
use crate::line_index::{self, LineIndex};
use crate::lines::{self, LineEnding};
use crate::positions::positions;
use crate::splice::{self, ComposedSplices};
use crate::whitespace::{self, IndentShift, WhitespaceMismatch};

/// Most places kept of one edit, and of all edits together besides the first of each.
const PLACES_MAX: usize = 100;
const PLACES_OF_ALL_MAX: usize = 1000;
/// An edit with more splices than this is recorded as one.
const SPLICES_MAX: usize = 100_000;

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
    IgnoreWhitespace,
}

/// The way a string was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchKind {
    Exact,
    /// Exactly, but one half of a CRLF was replaced and the other half is left.
    SplitLineBreak,
    /// With its line feeds changed to the line ending of the file.
    ConvertedEndings(LineEnding),
    /// With whitespace ignored; the replacement was moved by the shift.
    IgnoredWhitespace(IndentShift),
}

/// The result of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    pub match_kind: MatchKind,
    /// The number of places that were replaced.
    pub count: usize,
    /// The first of these places.
    pub replaced: Vec<ReplacedLines>,
}

/// The lines of a place that was replaced, from 0; a span includes its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacedLines {
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
    Ambiguous { edit: usize, count: usize, named: Vec<LineSpan>, reason: Ambiguity },
    /// The string was there once, and an edit before replaced part of it. `now`: the lines that stand there.
    #[error("Edit {edit} conflicts with edit {prior}")]
    Conflict { edit: usize, prior: usize, now: LineSpan },
    /// The text would be too long with this edit; `size` is its bytes.
    #[error("Edit {edit} makes the text too long: {size} bytes")]
    TooLong { edit: usize, size: usize },
    /// The lines match with whitespace ignored, but not by one and the same shift.
    #[error("Edit {edit}: String not found")]
    UnevenIndent { edit: usize, lines: LineSpan },
    /// The lines match with whitespace ignored, and the new ones have less indentation than the shift would remove.
    #[error("Edit {edit}: String not found")]
    IndentTooShallow { edit: usize, lines: LineSpan },
}

/// A text and the edits applied to it so far.
#[derive(Debug)]
pub struct StagedText<'a> {
    original: &'a Text,
    /// With the byte order mark, which all offsets here include.
    text: String,
    bom: usize,
    /// Most bytes that the text may have, between edits too.
    max_len: usize,
    lines: LineIndex,
    frequencies: ByteFrequencies,
    composed: ComposedSplices,
    ending: OnceCell<Option<LineEnding>>,
    done: Vec<StagedEdit<'a>>,
    /// Places that can still be kept besides the first of each edit.
    places_left: usize,
}

#[derive(Debug)]
struct StagedEdit<'a> {
    edit: StringEdit<'a>,
    match_kind: MatchKind,
    count: usize,
    before: Vec<LineSpan>,
    /// The current ranges of the first places.
    now: Vec<Range<usize>>,
}

/// The places where an edit applies, and the replacement.
struct EditMatch<'a> {
    /// Sorted and of one length.
    ranges: Vec<Range<usize>>,
    new: Cow<'a, str>,
    match_kind: MatchKind,
}

impl<'a> EditMatch<'a> {
    fn one(range: Range<usize>, new: Cow<'a, str>, match_kind: MatchKind) -> Self {
        Self { ranges: iter::once(range).collect(), new, match_kind }
    }
}

impl<'a> StagedText<'a> {
    pub fn new(original: &'a Text, max_len: usize) -> Self {
        let text = original.whole().to_owned();
        let bom = text.len() - original.as_str().len();
        Self {
            original,
            text,
            bom,
            max_len,
            lines: LineIndex::default(),
            frequencies: ByteFrequencies::of(original.as_str()),
            composed: ComposedSplices::new(),
            ending: OnceCell::new(),
            done: Vec::new(),
            places_left: PLACES_OF_ALL_MAX,
        }
    }

    /// Applies the next edit, or leaves everything as it is and returns the reason.
    pub fn apply(&mut self, edit: StringEdit<'a>) -> Result<(), StringError> {
        let EditMatch { ranges, new, match_kind } = self.find_match(edit)?;
        if has_break(edit.old) || has_break(edit.new) {
            self.ending = OnceCell::new();
        }
        self.check_size(ranges.len(), ranges.first().map_or(0, Range::len), new.len())?;
        let remembered = &ranges[..ranges.len().min(PLACES_MAX).min(1 + self.places_left)];
        self.places_left -= remembered.len().saturating_sub(1);
        if let Some(last) = remembered.last() {
            self.lines.extend_to(&self.text, last.start);
        }
        let before = remembered.iter().map(|range| self.span(range)).collect();
        for done in &mut self.done {
            for place in &mut done.now {
                *place = splice::map_range(place.clone(), &ranges, new.len());
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
            self.composed.add(range.clone(), new.len());
        } else {
            self.text = splice::replace_each(&self.text, &ranges, &new);
            self.lines = LineIndex::default();
            match &ranges[..] {
                [first, .., last] if ranges.len() > SPLICES_MAX => {
                    let gaps = (last.end - first.start) - ranges.len() * first.len();
                    self.composed.add(first.start..last.end, gaps + ranges.len() * new.len());
                }
                ranges => self.composed.add_each(ranges, new.len()),
            }
        }
        self.done.push(StagedEdit { edit, match_kind, count: ranges.len(), before, now });
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
    pub fn was_in_original(&self, old: &str) -> bool {
        Self::new(self.original, self.max_len).contains(old)
    }

    fn contains(&self, old: &str) -> bool {
        let has = |old: &str| memmem::find(self.text().as_bytes(), old.as_bytes()).is_some();
        has(old) || self.with_line_feeds_converted(old).is_some_and(|old| has(&old))
    }

    /// Returns the new text with the byte order mark, the composed splices, and the result of each edit.
    pub fn finish(mut self) -> (String, ComposedSplices, Vec<AppliedEdit>) {
        let last = self.done.iter().flat_map(|done| &done.now).map(|range| range.start).max();
        self.lines.extend_to(&self.text, last.unwrap_or_default());
        let after = |range: &Range<usize>| self.span(range);
        let applied = self.done.iter().map(|done| {
            let replaced = done.before.iter().zip(&done.now);
            let replaced =
                replaced.map(|(before, now)| ReplacedLines { before: *before, after: after(now) });
            AppliedEdit {
                match_kind: done.match_kind.clone(),
                count: done.count,
                replaced: replaced.collect(),
            }
        });
        let applied = applied.collect();
        (self.text, self.composed, applied)
    }

    fn find_match(&self, mut edit: StringEdit<'a>) -> Result<EditMatch<'a>, StringError> {
        let index = self.done.len();
        if let Pick::Near(line) = &mut edit.pick {
            *line = self.line_now(*line);
        }
        if edit.old.is_empty() {
            if !self.text().is_empty() {
                return Err(StringError::EmptyString { edit: index });
            }
            if edit.count.is_some_and(|count| count != 1) {
                let (named, reason) = (vec![LineSpan { first: 0, last: 0 }], Ambiguity::Count);
                return Err(StringError::Ambiguous { edit: index, count: 1, named, reason });
            }
            return Ok(EditMatch::one(
                self.bom..self.bom,
                self.with_text_endings(edit.new),
                MatchKind::Exact,
            ));
        }
        let (new, match_kind) = self.exact_replacement(edit);
        if let Some(ranges) = self.find(edit, edit.old, new.len())? {
            return Ok(EditMatch { ranges, new, match_kind });
        }
        let old = self.with_line_feeds_converted(edit.old);
        let new = self.converted_replacement(&edit);
        if let (Some(Cow::Owned(old)), Some(ending)) = (&old, self.ending())
            && let Some(ranges) = self.find(edit, old, new.len())?
        {
            return Ok(EditMatch { ranges, new, match_kind: MatchKind::ConvertedEndings(ending) });
        }
        if edit.matching == Matching::IgnoreWhitespace
            && let Some(fit) = self.find_ignoring_whitespace(edit)?
        {
            return Ok(fit);
        }
        Err(self.not_found_error(edit, old.as_deref().unwrap_or(edit.old)))
    }

    fn not_found_error(&self, edit: StringEdit<'_>, old: &str) -> StringError {
        let index = self.done.len();
        if let Some(range) = self.single_original_range(old)
            && let Some(prior) = self.first_edit_of(&range)
            && self.done[prior].edit.old != edit.old
        {
            let now = self.span(&self.composed.to_new(range));
            return StringError::Conflict { edit: index, prior, now };
        }
        StringError::NoMatch { edit: index }
    }

    /// Returns the range of `old` before all edits, if it was at one place only.
    fn single_original_range(&self, old: &str) -> Option<Range<usize>> {
        let text = &self.original.as_str().as_bytes();
        let finder = memmem::Finder::new(old);
        let at = finder.find(text).filter(|_| !self.done.is_empty())?;
        let range = self.bom + at..self.bom + at + old.len();
        finder.find(&text[at + 1..]).is_none().then_some(range)
    }

    /// Returns the first edit that replaced something in `origin`, a part of the original. The edits are made once
    /// more: all their places are not kept, since they are rarely needed and can be many.
    fn first_edit_of(&self, origin: &Range<usize>) -> Option<usize> {
        let mut again = Self::new(self.original, self.max_len);
        self.done.iter().position(|done| {
            let fit = again.find_match(done.edit);
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
        let finder =
            memmem::FinderBuilder::new().build_forward_with_ranker(&self.frequencies, needle);
        let range = |at: usize| self.bom + at..self.bom + at + needle.len();
        let Some(first) = finder.find(text) else { return Ok(None) };
        if edit.pick == Pick::All {
            let matches = || finder.find_iter(text).map(range);
            let count = matches().count();
            if edit.count.is_some_and(|wanted| wanted != count) {
                let named = matches().take(NAMED_MAX).map(|range| self.span(&range)).collect();
                let reason = Ambiguity::Count;
                return Err(StringError::Ambiguous { edit: index, count, named, reason });
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
        let height = line_index::count_breaks(needle, 0..needle.len() - 1);
        let span = |range: &Range<usize>| {
            line += line_index::count_breaks(&self.text, counted..range.start);
            counted = range.start;
            LineSpan { first: line, last: line + height }
        };
        Ok(Some(vec![pick(edit, index, Ambiguity::Several, matches, span)?]))
    }

    fn find_ignoring_whitespace(
        &self,
        edit: StringEdit<'a>,
    ) -> Result<Option<EditMatch<'a>>, StringError> {
        let index = self.done.len();
        let text = self.text();
        let old = self.with_text_endings(edit.old);
        let mut fits = whitespace::find_lines(text, &old).peekable();
        if fits.peek().is_none() {
            return Ok(None);
        }
        let span = |lines: &Range<usize>| LineSpan { first: lines.start, last: lines.end - 1 };
        let lines = pick(edit, index, Ambiguity::SeveralIgnoringWhitespace, fits, span)?;
        let span = span(&lines);
        let (range, shift) = match whitespace::match_at(text, &old, lines.start) {
            Ok(measured) => measured,
            Err(WhitespaceMismatch::LineBreaks) => return Ok(None),
            Err(WhitespaceMismatch::UnevenIndent) => {
                return Err(StringError::UnevenIndent { edit: index, lines: span });
            }
        };
        let size = shift
            .size_of(edit.new)
            .ok_or(StringError::IndentTooShallow { edit: index, lines: span })?;
        self.check_size(1, range.len(), size)?;
        let new = shift.apply(edit.new);
        let new = match self.with_text_endings(&new) {
            Cow::Owned(native) if !is_literal(&edit) => native,
            _ => new,
        };
        let range = self.bom + range.start..self.bom + range.end;
        Ok(Some(EditMatch::one(range, new.into(), MatchKind::IgnoredWhitespace(shift))))
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
    fn ending(&self) -> Option<LineEnding> {
        *self.ending.get_or_init(|| lines::uniform_ending(self.text()))
    }

    /// Returns `string` with its line breaks in the file's style; borrowed if they already are.
    fn with_text_endings<'s>(&self, string: &'s str) -> Cow<'s, str> {
        if !has_break(string) {
            return string.into();
        }
        self.ending().map_or(string.into(), |ending| lines::with_ending(string, ending))
    }

    /// Returns `old` with its line feeds in the style of the text; `None` if it has a carriage return.
    fn with_line_feeds_converted<'s>(&self, old: &'s str) -> Option<Cow<'s, str>> {
        (!old.contains('\r')).then(|| self.with_text_endings(old))
    }

    /// Returns the new text with its line feeds in the style of the text, unless the edit is literal.
    fn converted_replacement<'s>(&self, edit: &StringEdit<'s>) -> Cow<'s, str> {
        if is_literal(edit) { edit.new.into() } else { self.with_text_endings(edit.new) }
    }

    /// Returns the replacement for an `old` that is found exactly, and so perhaps in the middle of a CRLF.
    fn exact_replacement<'s>(&self, edit: StringEdit<'s>) -> (Cow<'s, str>, MatchKind) {
        let is_crlf = || self.ending() == Some(LineEnding::CrLf);
        let begins_within = edit.old.starts_with('\n') && is_crlf();
        let ends_within = edit.old.ends_with('\r') && is_crlf();
        let new = match edit.new.strip_prefix('\n') {
            // The new line feed completes the `\r` before it.
            Some(rest) if begins_within && !is_literal(&edit) => {
                format!("\n{}", self.with_text_endings(rest)).into()
            }
            _ => self.converted_replacement(&edit),
        };
        let leaves_half = begins_within && !edit.new.starts_with('\n')
            || ends_within && !edit.new.ends_with('\r');
        (new, if leaves_half { MatchKind::SplitLineBreak } else { MatchKind::Exact })
    }

    /// Returns the lines of `range`. A line break belongs to the line it ends, and an empty range to the line it stands
    /// in.
    fn span(&self, range: &Range<usize>) -> LineSpan {
        let start = range.start.min(self.text.len().saturating_sub(1));
        let first = self.lines.line_at(&self.text, start);
        let last =
            first + line_index::count_breaks(&self.text, start..range.end.max(start + 1) - 1);
        LineSpan { first, last }
    }
}
