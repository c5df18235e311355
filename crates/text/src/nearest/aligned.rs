//! Aligns the lines of a needle with the lines of a text that they resemble.
//!
//! Lines are paired in order, so that most of the needle has a partner that is equal or at least similar, and few lines
//! in between have none. Only lines without an equal partner are reported as different.

use std::ops::Range;

use super::boundaries::{differ_in_a_word, line_at, line_end, line_start};
use super::compare::include_whitespace;
use super::comparison::Comparison;
use super::fold::{fold, unfold};
use super::ngrams::NgramSet;
use super::{Difference, NearMatch, TextSide};
use crate::lines::{Line, LineEnding, lines};

/// Lines aligned before and after the window: this many, plus half as many as the needle has, but at most
/// `EXTRA_LINES_MAX` of those.
const EXTRA_LINES: usize = 4;
const EXTRA_LINES_MAX: usize = 32;
/// Longest part of the text that is aligned, in lengths of the needle.
pub(super) const ALIGNED_LENGTHS_MAX: usize = 16;
/// A first or last line that folds to at most this, such as a brace, may be anywhere and does not match part of a line.
const STRAY_LINE_BYTES_MAX: usize = 3;
/// A needle of fewer bytes counts as one of this length.
const NEEDLE_BYTES_MIN: usize = 256;
/// Most runs of differing lines that are reported.
const DIFFERENCES_MAX: usize = 16;
/// Similarity, in percent, from which a line is another one changed, and the similarity that any two lines have by
/// chance.
const CHANGED_PERCENT_MIN: usize = 40;
const CHANCE_PERCENT: usize = 30;
/// Share of a needle that must be found, in permille.
const FOUND_PERMILLE_MIN: usize = 400;
/// Lines up to this length that are indented and end alike count as similar: they have too little else to compare.
const SHORT_LINE_BYTES_MAX: usize = 12;
/// Highest score of a pair of lines, in folded bytes, and the cost of a line without a partner.
const PAIR_SCORE_BYTES_MAX: usize = 30;
const UNPAIRED_COST: i32 = 4;
const UNPAIRED_BLANK_COST: i32 = 1;

/// The lines around a window, aligned with the lines of the needle.
struct LineAlignment<'a> {
    text: &'a str,
    needle: &'a str,
    /// Lines of the text, with their offsets in it.
    ours: Vec<FoldedLine>,
    theirs: Vec<FoldedLine>,
    /// The line of `ours` paired with each of `theirs`.
    pairs: Vec<Option<LinePair>>,
}

struct FoldedLine {
    line: Line,
    folded: Vec<u8>,
    grams: NgramSet,
    blank: bool,
}

#[derive(Clone, Copy)]
struct LinePair {
    ours: usize,
    /// Share of the line that was found, in permille.
    there: usize,
    /// True if they fold alike, or if the needle starts or ends within the line.
    equal: bool,
}

/// A run of lines of the text and of the needle, each counted from the first one aligned.
struct LineRun {
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// Aligns `needle` with the lines around `window`, and returns how much of it was found, in permille. `None` if that is
/// too little, or if the lines are far more or far longer than the needle's: it would cost too much.
pub(super) fn align(text: &str, window: &Range<usize>, needle: &str) -> Option<(usize, NearMatch)> {
    let theirs = folded_lines(needle, 0..needle.len());
    let (mut start, mut end) = (line_start(text, window.start), line_end(text, window.end));
    let longest = ALIGNED_LENGTHS_MAX * needle.len().max(NEEDLE_BYTES_MIN);
    if end - start > longest {
        return None;
    }
    for _ in 0..EXTRA_LINES + (theirs.len() / 2).min(EXTRA_LINES_MAX) {
        let ending = LineEnding::closing(&text[..start]).map_or(0, |ending| ending.as_str().len());
        let before = line_start(text, start - ending);
        let behind = lines(&text[end..]).nth(1).map_or(text.len(), |line| end + line.end);
        if behind - before > longest {
            break;
        }
        (start, end) = (before, behind);
    }
    if lines(&text[start..end]).nth(4 * (theirs.len() + EXTRA_LINES)).is_some() {
        return None;
    }
    let mut aligned = LineAlignment {
        text,
        needle,
        ours: folded_lines(text, start..end),
        theirs,
        pairs: Vec::new(),
    };
    aligned.pairs = aligned.pair_lines(window);
    aligned.to_near_match()
}

fn folded_lines(text: &str, part: Range<usize>) -> Vec<FoldedLine> {
    let row = |line: Line| {
        let [start, end, next] = [line.start, line.end, line.next].map(|at| part.start + at);
        let folded = fold(&text[start..end]);
        let blank = text[start..end].trim().is_empty();
        FoldedLine { line: Line { start, end, next }, grams: NgramSet::of(&folded), folded, blank }
    };
    lines(&text[part.clone()]).map(row).collect()
}

impl FoldedLine {
    fn content<'a>(&self, text: &'a str) -> &'a str {
        &text[self.line.start..self.line.end]
    }

    fn unpaired_cost(&self) -> i32 {
        if self.blank { UNPAIRED_BLANK_COST } else { UNPAIRED_COST }
    }
}

impl LineAlignment<'_> {
    /// Pairs the lines: of all alignments in order, chooses the one with the highest score. Lines of the text before
    /// and after the needle cost nothing.
    fn pair_lines(&self, window: &Range<usize>) -> Vec<Option<LinePair>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Step {
            Both,
            Ours,
            Theirs,
        }
        let width = self.ours.len() + 1;
        let more = self.ours.len().saturating_sub(self.theirs.len());
        let mut worth = vec![0_i32; width];
        let mut steps = Vec::with_capacity(width * self.theirs.len());
        for (at, theirs) in self.theirs.iter().enumerate() {
            let mut diagonal = worth[0];
            worth[0] -= theirs.unpaired_cost();
            steps.push(Step::Theirs);
            for (beside, ours) in self.ours.iter().enumerate() {
                let alone = (worth[beside + 1] - theirs.unpaired_cost(), Step::Theirs);
                let skipped = (worth[beside] - ours.unpaired_cost(), Step::Ours);
                let mut best = if alone.0 >= skipped.0 { alone } else { skipped };
                // A pair this far off would mean that more lines are missing than are aligned.
                let is_off = beside + EXTRA_LINES_MAX < at || beside > at + more + EXTRA_LINES_MAX;
                if let Some(pair) = (!is_off).then(|| self.compare_lines(at, beside)).flatten() {
                    let full = 4 * theirs.folded.len().min(PAIR_SCORE_BYTES_MAX) + 4;
                    // A tie goes to the line within the window.
                    let inside = usize::from(window.contains(&ours.line.start));
                    let both = i32::try_from(full * pair.there / 1000 + inside).unwrap_or(0);
                    if diagonal + both > best.0 {
                        best = (diagonal + both, Step::Both);
                    }
                }
                diagonal = std::mem::replace(&mut worth[beside + 1], best.0);
                steps.push(best.1);
            }
        }
        let best = (0..width).max_by_key(|end| (worth[*end], width - end));
        let (mut beside, mut at) = (best.unwrap_or(0), self.theirs.len());
        let mut pairs = vec![None; at];
        while at > 0 {
            match steps[(at - 1) * width + beside] {
                Step::Both => {
                    (at, beside) = (at - 1, beside - 1);
                    pairs[at] = self.compare_lines(at, beside);
                }
                Step::Ours => beside -= 1,
                Step::Theirs => at -= 1,
            }
        }
        pairs
    }

    /// Compares line `at` of the needle with line `ours` of the text; `None` if they are not alike.
    fn compare_lines(&self, at: usize, ours: usize) -> Option<LinePair> {
        let (row, theirs) = (&self.ours[ours], &self.theirs[at]);
        let pair = |there, equal| Some(LinePair { ours, there, equal });
        if row.folded == theirs.folded {
            let exact = row.content(self.text) == theirs.content(self.needle);
            return pair(if exact { 1000 } else { 970 }, true);
        }
        let (is_first, is_last) = (at == 0, at + 1 == self.theirs.len());
        if theirs.folded.len() > STRAY_LINE_BYTES_MAX
            && (is_first && row.folded.ends_with(&theirs.folded)
                || is_last && row.folded.starts_with(&theirs.folded))
        {
            return pair(990, true);
        }
        let mut alike = row.grams.similarity(&theirs.grams);
        // A line between others is placed by its neighbours.
        if alike < CHANGED_PERCENT_MIN && (is_first || is_last) && self.is_changed(row, theirs) {
            alike = CHANGED_PERCENT_MIN;
        }
        let there = alike.checked_sub(CHANGED_PERCENT_MIN)? + CHANGED_PERCENT_MIN - CHANCE_PERCENT;
        pair(there * 1000 / (100 - CHANCE_PERCENT), false)
    }

    /// True if two lines differ in one word, or are short, indented alike and end with the same character.
    fn is_changed(&self, ours: &FoldedLine, theirs: &FoldedLine) -> bool {
        let (left, right) = (ours.content(self.text), theirs.content(self.needle));
        let indent = |line: &str| line.len() - line.trim_start().len();
        differ_in_a_word(left.trim(), right.trim())
            || [ours, theirs]
                .iter()
                .all(|row| (2..=SHORT_LINE_BYTES_MAX).contains(&row.folded.len()))
                && ours.folded.last() == theirs.folded.last()
                && indent(left) == indent(right)
    }

    fn to_near_match(&self) -> Option<(usize, NearMatch)> {
        let weight = |rows: &[FoldedLine]| rows.iter().map(|row| row.folded.len()).sum::<usize>();
        let paired = self.theirs.iter().zip(&self.pairs);
        let there: usize =
            paired.map(|(row, pair)| row.folded.len() * pair.map_or(0, |it| it.there)).sum();
        let first = self.pairs.iter().flatten().next()?.ours;
        let end = self.pairs.iter().flatten().next_back()?.ours + 1;
        // Extra lines of the text in between lower the share, but less than missing lines of the needle do.
        let (all, beside) = (weight(&self.theirs), weight(&self.ours[first..end]));
        let share = there / (all + beside.saturating_sub(all) / 8).max(1);
        if share < FOUND_PERMILLE_MIN {
            return None;
        }
        let last = self.ours[end - 1].line;
        let closed = LineEnding::closing(self.needle).is_some();
        let mut bytes = self.ours[first].line.start..if closed { last.next } else { last.end };
        let base = line_at(self.text, self.ours[0].line.start);
        let mut comparison = Comparison::default();
        let mut differences = Vec::new();
        let mut at = (first, 0);
        let close = LineRun { ours: end..end, theirs: self.theirs.len()..self.theirs.len() };
        for run in self.equal_runs().into_iter().chain([close]) {
            let between = LineRun { ours: at.0..run.ours.start, theirs: at.1..run.theirs.start };
            if let Some(LineRun { ours, theirs }) = self.note_differences(&mut comparison, between)
            {
                let file = base + ours.start..base + ours.end;
                differences.push(Difference::DifferentLines { file, needle: theirs });
            }
            if self.theirs[run.theirs.clone()].iter().any(|row| !row.folded.is_empty()) {
                let place = self.compare_run(&mut comparison, &run)?;
                bytes.start = if run.ours.start == first { place.start } else { bytes.start };
                bytes.end = if run.ours.end == end { place.end } else { bytes.end };
            }
            at = (run.ours.end, run.theirs.end);
        }
        differences.truncate(DIFFERENCES_MAX);
        let mut near = NearMatch::new(self.text, bytes);
        near.differences = differences;
        near.differences.extend(comparison.differences);
        near.first_difference = comparison.first.unwrap_or(near.bytes.start);
        Some((share, near))
    }

    /// Groups equal lines in a row into runs.
    fn equal_runs(&self) -> Vec<LineRun> {
        let mut runs: Vec<LineRun> = Vec::new();
        for (at, pair) in self.pairs.iter().enumerate() {
            let Some(LinePair { ours, equal: true, .. }) = *pair else { continue };
            match runs.last_mut() {
                Some(run) if run.ours.end == ours && run.theirs.end == at => {
                    (run.ours.end, run.theirs.end) = (ours + 1, at + 1);
                }
                _ => runs.push(LineRun { ours: ours..ours + 1, theirs: at..at + 1 }),
            }
        }
        runs
    }

    /// Compares a run and returns the place of the needle's part of it: all of its lines, or less if the needle starts
    /// or ends within one.
    fn compare_run(&self, comparison: &mut Comparison, run: &LineRun) -> Option<Range<usize>> {
        let ours = lines_of(self.text, &self.ours, &run.ours);
        let theirs = lines_of(self.needle, &self.theirs, &run.theirs);
        let wanted = fold(theirs).len();
        let from = if run.theirs.start == 0 { fold(ours).len().checked_sub(wanted)? } else { 0 };
        let place = unfold(ours, std::slice::from_ref(&(from..from + wanted))).pop()?;
        let start = self.ours[run.ours.start].line.start;
        let place = include_whitespace(self.text, start + place.start..start + place.end, theirs);
        comparison.compare(self.text, place.clone(), theirs)?;
        Some(place)
    }

    /// Notes the differences in the lines between two runs of equal lines, and returns those lines without the blank
    /// ones at their ends.
    fn note_differences(&self, comparison: &mut Comparison, mut run: LineRun) -> Option<LineRun> {
        for at in run.theirs.clone() {
            let Some(LinePair { ours, .. }) = self.pairs[at] else { continue };
            let file = LineEnding::closing(&self.text[..self.ours[ours].line.next]);
            let needle = LineEnding::closing(&self.needle[..self.theirs[at].line.next]);
            if let (Some(file), Some(needle)) = (file, needle)
                && file != needle
            {
                comparison.note(Difference::LineEndings { file, needle });
            }
        }
        let blank = (
            trim_blank_lines(&self.ours, &mut run.ours),
            trim_blank_lines(&self.theirs, &mut run.theirs),
        );
        let differs = !run.ours.is_empty() || !run.theirs.is_empty();
        if blank.0 != blank.1 {
            let side = if blank.0 > blank.1 { TextSide::File } else { TextSide::Needle };
            comparison.note(Difference::BlankLines { side, by: blank.0.abs_diff(blank.1) });
        }
        if differs || blank.0 != blank.1 {
            let row = self.ours.get(run.ours.start);
            comparison.spot(row.map_or(self.text.len(), |row| row.line.start));
        }
        differs.then_some(run)
    }
}

/// Removes blank lines from both ends of `range`, and returns how many.
fn trim_blank_lines(rows: &[FoldedLine], range: &mut Range<usize>) -> usize {
    let before = range.len();
    let blank = |row: &&FoldedLine| row.blank;
    range.end -= rows[range.clone()].iter().rev().take_while(blank).count();
    range.start += rows[range.clone()].iter().take_while(blank).count();
    before - range.len()
}

/// Returns the lines `range` with all their terminators.
fn lines_of<'a>(text: &'a str, rows: &[FoldedLine], range: &Range<usize>) -> &'a str {
    match rows.get(range.clone()) {
        Some([first, .., last]) => &text[first.line.start..last.line.next],
        Some([row]) => &text[row.line.start..row.line.next],
        _ => "",
    }
}
