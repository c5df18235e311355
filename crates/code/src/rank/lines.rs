//! Ranking of the lines of a file that a query is about.

use std::ops::Range;

use memchr::memchr2;

use super::matcher::TermMatcher;
use super::{DEFINITION_WEIGHT, TermSet, definition, saturated};
use crate::words::TERMS_MAX;

/// Most lines with terms that are kept of one file.
const LINES_MAX: usize = 16 << 10;
/// Number of lines of a part whose length counts neither for nor against it.
const USUAL_LINES: f64 = 60.0;
/// Share of the length of a part that counts against it.
const LENGTH_SHARE: f64 = 0.25;

/// A line with terms in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermLine {
    /// Number of the line, counted from 0, as in `text::lines`.
    pub number: usize,
    pub terms: TermSet,
    /// Terms that are, or are part of, the name of something that is defined here.
    pub definitions: TermSet,
}

/// The lines of a file with terms in them.
#[derive(Debug, Clone)]
pub struct TermLines {
    /// Lines in order.
    pub found: Vec<TermLine>,
    /// Number of lines in the file.
    pub count: usize,
    /// True if there were more lines with terms than are kept.
    pub cut: bool,
    rarity: [f64; TERMS_MAX],
}

impl TermLines {
    pub(super) fn new(matcher: &TermMatcher, rarity: &[f64; TERMS_MAX], text: &[u8]) -> Self {
        let mut ends = LineCounter::new(text);
        let mut lines = Self { found: Vec::new(), count: 0, cut: false, rarity: *rarity };
        matcher.find(text, |found| {
            let number = ends.line_of(found.start);
            if lines.found.last().is_none_or(|last| last.number != number) {
                if lines.found.len() >= LINES_MAX {
                    lines.cut = true;
                    return;
                }
                let (terms, definitions) = Default::default();
                lines.found.push(TermLine { number, terms, definitions });
            }
            if let Some(line) = lines.found.last_mut() {
                line.terms.insert(found.term);
                if definition::defines(text, found.start, found.end) {
                    line.definitions.insert(found.term);
                }
            }
        });
        lines.count = ends.count();
        lines
    }

    /// Score of these lines for the query. Comparable only with other lines of the same ranking.
    pub fn score(&self, range: Range<usize>) -> f64 {
        let first = self.found.partition_point(|line| line.number < range.start);
        let behind = self.found.partition_point(|line| line.number < range.end);
        let mut tally = LineCounts::default();
        for line in self.found.get(first..behind).unwrap_or_default() {
            tally.add(line);
        }
        tally.score(&self.rarity, range.len())
    }

    /// Returns the run of at most `length` lines with the highest score; the first of equals. `None` if no line has a
    /// term.
    pub fn best(&self, length: usize) -> Option<Range<usize>> {
        let length = length.max(1);
        let mut tally = LineCounts::default();
        let mut best: Option<(f64, Range<usize>)> = None;
        let mut first = 0;
        for (at, line) in self.found.iter().enumerate() {
            tally.add(line);
            while self.found[first].number + length <= line.number {
                tally.remove(&self.found[first]);
                first += 1;
            }
            let score = tally.score(&self.rarity, length);
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, first..at + 1));
            }
        }
        let found = self.found.get(best?.1)?;
        let (first, last) = (found.first()?.number, found.last()?.number);
        // Lines around a match are about the same; more of them are after it, since a definition continues after its
        // name.
        let spare = length - (last - first + 1).min(length);
        let start = first.saturating_sub(spare / 4);
        Some(start..(start + length).min(self.count))
    }
}

/// Number of lines that contain each term.
#[derive(Default)]
struct LineCounts {
    lines: [u32; TERMS_MAX],
    definitions: [u32; TERMS_MAX],
    terms: u32,
}

impl LineCounts {
    fn add(&mut self, line: &TermLine) {
        line.terms.iter().for_each(|term| self.lines[term] += 1);
        line.definitions.iter().for_each(|term| self.definitions[term] += 1);
        self.terms |= line.terms.0;
    }

    fn remove(&mut self, line: &TermLine) {
        line.terms.iter().for_each(|term| self.lines[term] -= 1);
        line.definitions.iter().for_each(|term| self.definitions[term] -= 1);
    }

    fn score(&self, rarity: &[f64; TERMS_MAX], length: usize) -> f64 {
        let length = u32::try_from(length).map_or(f64::INFINITY, f64::from);
        let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * length / USUAL_LINES;
        let of = |term: usize| {
            let weighted =
                f64::from(self.lines[term]) + DEFINITION_WEIGHT * f64::from(self.definitions[term]);
            rarity[term] * saturated(weighted, length)
        };
        TermSet(self.terms).iter().map(of).sum()
    }
}

/// Line counter, which reads the text only as far as needed.
struct LineCounter<'t> {
    text: &'t [u8],
    number: usize,
    /// Start of the next line, if this one ends: found once, since a line may be long.
    next: Option<usize>,
}

impl<'t> LineCounter<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, number: 0, next: line_behind(text, 0) }
    }

    /// Line of a byte offset, which must not be before the previous one.
    fn line_of(&mut self, place: usize) -> usize {
        while let Some(next) = self.next.filter(|next| *next <= place) {
            self.next = line_behind(self.text, next);
            self.number += 1;
        }
        self.number
    }

    fn count(mut self) -> usize {
        self.line_of(self.text.len());
        let is_ended = self.text.last().is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
        self.number + usize::from(!is_ended)
    }
}

/// Start of the line after the one that contains `at`.
fn line_behind(text: &[u8], at: usize) -> Option<usize> {
    let end = at + memchr2(b'\n', b'\r', &text[at..])?;
    let both = text[end..].starts_with(b"\r\n");
    Some(end + 1 + usize::from(both))
}
