//! A needle of several lines beside the lines of a text it resembles.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use super::compare::{Comparison, around};
use super::fold::{fold, unfold};
use super::grams::alike;
use super::similar::{SPREAD, line_end, line_start};
use super::{Near, Reason, Side, line_at};
use crate::lines::{Ending, Line, lines};

/// Lines looked at before and behind where the needle seems to be, besides half as many as it has.
const SLACK: usize = 4;
/// A lone line that folds to no more than this, such as a brace, does not stretch a place.
const STRAY: usize = 3;
/// Differing runs of lines that are named.
const DIFFERENCES: usize = 16;
/// What whole equal lines must make up of a needle, in percent.
const EQUAL_LINES: usize = 40;
/// What two runs of lines have in common, in percent, if one is the other changed.
const CHANGED: usize = 40;

/// The lines around a window beside the lines of the needle.
pub(super) struct Aligned<'a> {
    text: &'a str,
    needle: &'a str,
    /// Of the text, by their place in it.
    ours: Vec<Line>,
    theirs: Vec<Line>,
    /// Runs of lines that fold alike, in order.
    runs: Vec<Run>,
}

impl<'a> Aligned<'a> {
    /// `None` if the lines are far more or far longer than the needle's: it would cost much and say little.
    pub(super) fn new(text: &'a str, window: &Range<usize>, needle: &'a str) -> Option<Self> {
        let (mut start, mut end) = (line_start(text, window.start), line_end(text, window.end));
        let theirs: Vec<Line> = lines(needle).collect();
        for _ in 0..SLACK + theirs.len() / 2 {
            start = line_start(
                text,
                start - Ending::closing(&text[..start]).map_or(0, |it| it.as_str().len()),
            );
            end = lines(&text[end..]).nth(1).map_or(text.len(), |line| end + line.end);
        }
        if end - start > SPREAD * needle.len() {
            return None;
        }
        let most = 4 * theirs.len() + 4 * SLACK;
        let ours: Vec<Line> = lines(&text[start..end])
            .map(|line| Line {
                start: line.start + start,
                end: line.end + start,
                next: line.next + start,
            })
            .take(most + 1)
            .collect();
        let mut aligned = Self { text, needle, ours, theirs, runs: Vec::new() };
        (aligned.ours.len() <= most).then(|| {
            aligned.runs = aligned.find_runs();
            aligned
        })
    }

    fn find_runs(&self) -> Vec<Run> {
        let folded = |text: &str, lines: &[Line]| -> Vec<Vec<u8>> {
            lines.iter().map(|line| fold(&text[line.start..line.end])).collect()
        };
        let ours = folded(self.text, &self.ours);
        let mut theirs = folded(self.needle, &self.theirs);
        // The needle may start and end within a line, which is then as good as equal.
        if let [first, .., last] = theirs.as_mut_slice() {
            let part = |line: &[u8]| line.len() > STRAY && !ours.iter().any(|ours| ours == line);
            if part(first)
                && let Some(whole) = ours.iter().find(|line| line.ends_with(first))
            {
                first.clone_from(whole);
            }
            if part(last)
                && let Some(whole) = ours.iter().rfind(|line| line.starts_with(last))
            {
                last.clone_from(whole);
            }
        }
        let ends = [ours.len(), ours.len(), theirs.len(), theirs.len()];
        let mut input = InternedInput::default();
        input.update_before(ours.into_iter());
        input.update_after(theirs.into_iter());
        // Myers gives up on the shortest answer before it costs too much.
        let diff = Diff::compute(Algorithm::Myers, &input);
        let hunks = diff.hunks().map(|Hunk { before, after }| {
            [before.start, before.end, after.start, after.end].map(|line| line as usize)
        });
        let mut runs = Vec::new();
        let mut at = (0, 0);
        for [ours, ours_end, theirs, theirs_end] in hunks.chain([ends]) {
            let run = Run { ours: at.0..ours, theirs: at.1..theirs };
            if self.weight(&run.theirs) > 0 {
                runs.push(run);
            }
            at = (ours_end, theirs_end);
        }
        // A brace far from the rest is another's.
        let stray = |run: &Run, before: &Run, after: &Run| {
            self.weight(&run.theirs) <= STRAY
                && after.ours.start - before.ours.end > after.theirs.start - before.theirs.end + 1
        };
        let last =
            runs.windows(2).rev().take_while(|pair| stray(&pair[1], &pair[0], &pair[1])).count();
        runs.truncate(runs.len() - last);
        let first = runs.windows(2).take_while(|pair| stray(&pair[0], &pair[0], &pair[1])).count();
        runs.drain(..first);
        runs
    }

    /// To how much lines of the needle fold.
    fn weight(&self, lines: &Range<usize>) -> usize {
        fold(slice(self.needle, &self.theirs, lines)).len()
    }

    /// The place, and what whole equal lines make up of the needle; `None` if that is too little to speak of.
    pub(super) fn near(&self) -> Option<(usize, Near)> {
        let (first, last) = (self.runs.first()?, self.runs.last()?);
        let count = self.theirs.len();
        let equal: usize = self.runs.iter().map(|run| self.weight(&run.theirs)).sum();
        let share = equal * 100 / self.weight(&(0..count)).max(1);
        let framed = first.theirs.start == 0
            && last.theirs.end == count
            && self.weight(&(0..1)).min(self.weight(&(count - 1..count))) > STRAY;
        if share < EQUAL_LINES && !framed {
            return None;
        }
        let places: Vec<Range<usize>> =
            self.runs.iter().map(|run| self.place(run)).collect::<Option<_>>()?;
        let mut comparison = Comparison::default();
        for (run, place) in self.runs.iter().zip(&places) {
            let needle = slice(self.needle, &self.theirs, &run.theirs);
            comparison.add(self.text, around(self.text, place.clone(), needle), needle)?;
        }
        let differing = self.differing(first, last);
        let (mut start, mut end) = (places.first()?.start, places.last()?.end);
        for Run { ours, .. } in &differing {
            comparison.spot(self.ours.get(ours.start).map_or(self.text.len(), |line| line.start));
            if let Some([first, ..]) = self.ours.get(ours.clone()) {
                start = start.min(first.start);
                end = end.max(self.ours[ours.end - 1].end);
            }
        }
        let mut near = Near::new(self.text, start..end);
        near.reasons = differing.iter().map(|run| self.reason(run)).collect();
        near.reasons.extend(comparison.reasons);
        near.first_difference = comparison.first.unwrap_or(start);
        Some((share, near))
    }

    /// Where the needle's part of a run is: all of its lines, or less if the needle starts or ends within one.
    fn place(&self, run: &Run) -> Option<Range<usize>> {
        let lines = slice(self.text, &self.ours, &run.ours);
        let more = fold(lines).len().checked_sub(self.weight(&run.theirs))?;
        let from = if run.theirs.start == 0 { more } else { 0 };
        let folded = from..from + self.weight(&run.theirs);
        let place = unfold(lines, std::slice::from_ref(&folded)).pop()?;
        let start = self.ours[run.ours.start].start;
        Some(start + place.start..start + place.end)
    }

    /// What is between the runs and, of the needle, around them.
    fn differing(&self, first: &Run, last: &Run) -> Vec<Run> {
        let before = 0..first.theirs.start;
        let after = last.theirs.end..self.theirs.len();
        let ours_before = first.ours.start.saturating_sub(before.len())..first.ours.start;
        let ours_after = last.ours.end..(last.ours.end + after.len()).min(self.ours.len());
        let mut differing = Vec::new();
        if self.weight(&before) > 0 {
            let edge = first.ours.start;
            let ours =
                if self.is_changed(&ours_before, &before) { ours_before } else { edge..edge };
            differing.push(Run { ours, theirs: before });
        }
        differing.extend(self.runs.windows(2).map(|pair| Run {
            ours: pair[0].ours.end..pair[1].ours.start,
            theirs: pair[0].theirs.end..pair[1].theirs.start,
        }));
        if self.weight(&after) > 0 {
            let edge = last.ours.end;
            let ours = if self.is_changed(&ours_after, &after) { ours_after } else { edge..edge };
            differing.push(Run { ours, theirs: after });
        }
        differing.truncate(DIFFERENCES);
        differing
    }

    /// Whether lines of the needle are those of the text, changed: else the text has nothing for them.
    fn is_changed(&self, ours: &Range<usize>, theirs: &Range<usize>) -> bool {
        let ours = fold(slice(self.text, &self.ours, ours));
        alike(&ours, &fold(slice(self.needle, &self.theirs, theirs))) >= CHANGED
    }

    /// For lines that differ.
    fn reason(&self, Run { ours, theirs }: &Run) -> Reason {
        if self.weight(theirs) == 0 && fold(slice(self.text, &self.ours, ours)).is_empty() {
            let side = if ours.len() > theirs.len() { Side::File } else { Side::Needle };
            return Reason::BlankLines { side, by: ours.len().abs_diff(theirs.len()) };
        }
        let base = line_at(self.text, self.ours[0].start);
        Reason::Lines { file: base + ours.start..base + ours.end, needle: theirs.clone() }
    }
}

/// Lines of the text and of the needle, from the first of each that was aligned.
struct Run {
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// Lines `range` with all their terminators.
fn slice<'a>(text: &'a str, lines: &[Line], range: &Range<usize>) -> &'a str {
    match lines.get(range.clone()) {
        Some([first, .., last]) => &text[first.start..last.next],
        Some([line]) => &text[line.start..line.next],
        _ => "",
    }
}
