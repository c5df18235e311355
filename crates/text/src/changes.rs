//! Finds the lines that differ between two texts.
//!
//! Lines end at `\n` here, as in every diff. Parts that the splices did not touch are compared but never searched.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};
use memchr::{memchr, memrchr};

use crate::splice::{ChangedRange, ComposedSplices};

/// Highest search cost of one diff, see [`cost`]. Beyond it only lines that occur once on both sides are matched, and
/// the lines between two of those are shown as replaced, so that the time stays close to linear.
const COST_MAX: usize = 1 << 23;

/// Lines with an equal on the other side that cost nothing: a search of so few is linear.
const FREE_LINES_MAX: usize = 64;

/// Longest text that is searched, in bytes: the search numbers lines in 31 bits, and a text has at least as many bytes.
const SEARCHED_BYTES_MAX: usize = (1 << 31) - 2;

/// Most lines for which the most readable of several equally good places of a change is searched for.
const READABLE_LINES_MAX: usize = 1 << 16;

/// Returns the runs of whole lines that differ, sorted, with at least one line between neighbours.
///
/// If `changed` does not describe how `old` became `new`, everything is searched.
pub(crate) fn between(old: &str, new: &str, changed: &ComposedSplices) -> Vec<ChangedRange> {
    let mut search = ChangeSearch { old, new, budget: COST_MAX, found: Vec::new() };
    if are_equal_outside(old.as_bytes(), new.as_bytes(), changed.regions()) {
        for region in whole_lines(old.as_bytes(), new.as_bytes(), changed.regions()) {
            search.compare(region);
        }
    } else {
        search.compare(ChangedRange { old: 0..old.len(), new: 0..new.len() });
    }
    search.found
}

/// True if the texts are the same outside of `regions`.
fn are_equal_outside(old: &[u8], new: &[u8], regions: &[ChangedRange]) -> bool {
    let end = ChangedRange { old: old.len()..old.len(), new: new.len()..new.len() };
    let mut at = (0, 0);
    regions.iter().chain([&end]).all(|region| {
        let kept = (old.get(at.0..region.old.start), new.get(at.1..region.new.start));
        at = (region.old.end, region.new.end);
        matches!(kept, (Some(old), Some(new)) if old == new)
    })
}

/// Widens regions to whole lines, by the same bytes on both sides, and merges those that then meet.
fn whole_lines(old: &[u8], new: &[u8], regions: &[ChangedRange]) -> Vec<ChangedRange> {
    // Returns the number of bytes from the end of `region` to the end of its last line, which is in `rest`.
    let tail = |region: &ChangedRange, rest: &[u8]| {
        let starts_line = |text: &[u8]| matches!(text.last(), None | Some(b'\n'));
        if starts_line(&old[..region.old.end]) && starts_line(&new[..region.new.end]) {
            0
        } else {
            memchr(b'\n', rest).map_or(rest.len(), |at| at + 1)
        }
    };
    let mut widened: Vec<ChangedRange> = Vec::with_capacity(regions.len());
    for region in regions {
        // Only the gap between two regions is searched: a line may be long and have many regions.
        let from = widened.last().map_or(0, |last| last.old.end);
        let gap = &old[from..region.old.start];
        let lines = memrchr(b'\n', gap).map_or(0, |at| at + 1);
        if let Some(last) = widened.last_mut() {
            let tail = tail(last, gap);
            if lines <= tail {
                (last.old.end, last.new.end) = (region.old.end, region.new.end);
                continue;
            }
            last.old.end += tail;
            last.new.end += tail;
        }
        let head = gap.len() - lines;
        widened.push(ChangedRange {
            old: region.old.start - head..region.old.end,
            new: region.new.start - head..region.new.end,
        });
    }
    if let Some(last) = widened.last_mut() {
        let tail = tail(last, &old[last.old.end..]);
        last.old.end += tail;
        last.new.end += tail;
    }
    widened
}

struct ChangeSearch<'a> {
    old: &'a str,
    new: &'a str,
    /// The rest of [`COST_MAX`].
    budget: usize,
    found: Vec<ChangedRange>,
}

impl<'a> ChangeSearch<'a> {
    fn compare(&mut self, region: ChangedRange) {
        let Some(rest) = self.compare_within_budget(region) else { return };
        for gap in self.split_at_unique_lines(&rest) {
            if let Some(rest) = self.compare_within_budget(gap) {
                self.push(rest);
            }
        }
    }

    /// Finds the lines that differ in `region`. If that would cost too much, finds none and returns the region without
    /// the lines that both sides start and end with.
    fn compare_within_budget(&mut self, region: ChangedRange) -> Option<ChangedRange> {
        if region.old.is_empty() || region.new.is_empty() {
            self.push(region);
            return None;
        }
        if region.old.len().max(region.new.len()) > SEARCHED_BYTES_MAX {
            return Some(region);
        }
        let input = self.intern(&region);
        let (before, after) = (&input.before, &input.after);
        let head = common_start(before.iter(), after.iter());
        let tail = common_start(before[head..].iter().rev(), after[head..].iter().rev());
        let (first, last) = (before.len() - tail, after.len() - tail);
        let mut offsets = OffsetCursor::new(&input, &region);
        match self.budget.checked_sub(cost(&input, &before[head..first], &after[head..last])) {
            None => return Some(offsets.range(head..first, head..last)),
            Some(left) => self.budget = left,
        }
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        if before.len() + after.len() <= READABLE_LINES_MAX {
            diff.postprocess_lines(&input);
        }
        for hunk in diff.hunks() {
            let (old, new) = (hunk.before, hunk.after);
            self.push(
                offsets.range(
                    old.start as usize..old.end as usize,
                    new.start as usize..new.end as usize,
                ),
            );
        }
        None
    }

    /// Splits `region` at the lines that both sides have exactly once and in the same order, and returns the parts
    /// between them.
    fn split_at_unique_lines(&self, region: &ChangedRange) -> Vec<ChangedRange> {
        let input = self.intern(region);
        let (before, after) = (&input.before, &input.after);
        let ends = (before.len(), after.len());
        let mut offsets = OffsetCursor::new(&input, region);
        let mut at = (0, 0);
        let mut gaps = Vec::new();
        for (old, new) in common_unique_lines(&input).into_iter().chain([ends]) {
            gaps.push(offsets.range(at.0..old, at.1..new));
            at = (old + 1, new + 1);
        }
        gaps
    }

    fn intern(&self, region: &ChangedRange) -> InternedInput<&'a str> {
        InternedInput::new(&self.old[region.old.clone()], &self.new[region.new.clone()])
    }

    fn push(&mut self, region: ChangedRange) {
        match self.found.last_mut() {
            _ if region.old.is_empty() && region.new.is_empty() => {}
            Some(last) if last.old.end == region.old.start => {
                (last.old.end, last.new.end) = (region.old.end, region.new.end);
            }
            _ => self.found.push(region),
        }
    }
}

/// Returns the highest cost of a search: each line that has an equal on the other side is compared with every line.
fn cost(input: &InternedInput<&str>, before: &[Token], after: &[Token]) -> usize {
    let mut sides = vec![(false, false); input.interner.num_tokens() as usize];
    for token in before {
        sides[token.0 as usize].0 = true;
    }
    for token in after {
        sides[token.0 as usize].1 = true;
    }
    let lines = || before.iter().chain(after);
    let shared = lines().filter(|token| sides[token.0 as usize] == (true, true)).count();
    shared.saturating_sub(FREE_LINES_MAX).saturating_mul(lines().count())
}

/// Counts the tokens that two sequences have in common at their start.
fn common_start<'t>(
    left: impl Iterator<Item = &'t Token>,
    right: impl Iterator<Item = &'t Token>,
) -> usize {
    left.zip(right).take_while(|(left, right)| left == right).count()
}

/// Converts line numbers, in ascending order, to byte offsets.
struct OffsetCursor<'i, 'a> {
    input: &'i InternedInput<&'a str>,
    /// Line and offset reached so far.
    old: (usize, usize),
    new: (usize, usize),
}

impl<'i, 'a> OffsetCursor<'i, 'a> {
    fn new(input: &'i InternedInput<&'a str>, region: &ChangedRange) -> Self {
        Self { input, old: (0, region.old.start), new: (0, region.new.start) }
    }

    fn range(&mut self, old: Range<usize>, new: Range<usize>) -> ChangedRange {
        let reach = |at: &mut (usize, usize), tokens: &[Token], line: usize| {
            let passed = tokens[at.0..line].iter().map(|token| self.input.interner[*token].len());
            *at = (line, at.1 + passed.sum::<usize>());
            at.1
        };
        let (before, after) = (&self.input.before, &self.input.after);
        ChangedRange {
            old: reach(&mut self.old, before, old.start)..reach(&mut self.old, before, old.end),
            new: reach(&mut self.new, after, new.start)..reach(&mut self.new, after, new.end),
        }
    }
}

/// Returns the longest ascending sequence of lines, as (old, new), that occur exactly once on each side.
fn common_unique_lines(input: &InternedInput<&str>) -> Vec<(usize, usize)> {
    let (before, after) = (unique_lines(input, &input.before), unique_lines(input, &input.after));
    let mut pairs: Vec<(usize, usize)> =
        before.iter().zip(&after).filter_map(|(old, new)| Some(((*old)?, (*new)?))).collect();
    pairs.sort_unstable_by_key(|(_, new)| *new);

    // `ends[n]` is the pair with the lowest old line that ends an ascending sequence of n + 1 pairs.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (pair, (old, _)) in pairs.iter().enumerate() {
        let len = ends.partition_point(|&end| pairs[end].0 < *old);
        previous.push(len.checked_sub(1).map(|shorter| ends[shorter]));
        if len == ends.len() { ends.push(pair) } else { ends[len] = pair }
    }
    let chain = std::iter::successors(ends.last().copied(), |&pair| previous[pair]);
    let mut anchors: Vec<_> = chain.map(|pair| pairs[pair]).collect();
    anchors.reverse();
    anchors
}

/// Returns for every distinct line its place in `tokens`, if it occurs there exactly once.
fn unique_lines(input: &InternedInput<&str>, tokens: &[Token]) -> Vec<Option<usize>> {
    let mut count = vec![0_usize; input.interner.num_tokens() as usize];
    let mut place = vec![None; count.len()];
    for (at, token) in tokens.iter().enumerate() {
        let token = token.0 as usize;
        count[token] += 1;
        place[token] = (count[token] == 1).then_some(at);
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::splice::{Splice, apply};

    /// Checks the changes, each given as the lines removed and the lines added.
    fn check(old: &str, splices: &[(Range<usize>, &str)], expected: &[(&str, &str)]) {
        let splices: Vec<_> = splices
            .iter()
            .map(|(range, text)| Splice { range: range.clone(), text: (*text).into() })
            .collect();
        let new = apply(old, &splices);
        let found = between(old, &new, &ComposedSplices::from_splices(&splices));
        let found: Vec<_> =
            found.into_iter().map(|region| (&old[region.old], &new[region.new])).collect();
        assert_eq!(found, expected, "{old:?} {splices:?}");
    }

    #[test]
    fn changes_are_whole_lines() {
        check("a\nb\nc\n", &[], &[]);
        check("a\nb\nc\n", &[(2..3, "b")], &[]);
        check("one\ntwo\n", &[(1..2, "N")], &[("one\n", "oNe\n")]);
        check("one\ntwo\n", &[(3..4, "")], &[("one\ntwo\n", "onetwo\n")]);
        check("one\ntwo\n", &[(4..4, "x\n")], &[("", "x\n")]);
        check("one\ntwo\n", &[(3..3, "\nx")], &[("", "x\n")]);
        check("one\ntwo\n", &[(4..4, "x")], &[("two\n", "xtwo\n")]);
        check("one\ntwo\n", &[(0..4, "")], &[("one\n", "")]);
        check("one", &[(3..3, "\n")], &[("one", "one\n")]);
        check("one\n", &[(3..4, "")], &[("one\n", "one")]);
        check("one\rtwo\n", &[(0..1, "O")], &[("one\rtwo\n", "One\rtwo\n")]);
    }

    #[test]
    fn regions_in_one_line_are_one_change() {
        check("abcdef\nx\n", &[(0..1, "A"), (2..3, "C"), (5..6, "F")], &[("abcdef\n", "AbCdeF\n")]);
        check("ab\ncd\n", &[(1..2, "B"), (3..4, "C")], &[("ab\ncd\n", "aB\nCd\n")]);
        check("ab\ncd\ne\n", &[(1..3, ""), (4..5, "D")], &[("ab\ncd\n", "acD\n")]);
    }

    #[test]
    fn equal_lines_within_a_region_are_not_changes() {
        check("a\nb\nc\nd\ne\n", &[(0..10, "a\nB\nc\nd\nE\n")], &[("b\n", "B\n"), ("e\n", "E\n")]);
    }

    #[test]
    fn a_wrong_hint_costs_time_only() {
        let mut wrong = ComposedSplices::new();
        wrong.add(2..900, 7);
        for hint in [ComposedSplices::new(), wrong] {
            let found = between("a\nb\nc\n", "a\nx\nc\n", &hint);
            assert_eq!(found, [ChangedRange { old: 2..4, new: 2..4 }]);
        }
    }

    /// Changes every other of many lines, which is too costly to search as one.
    #[test]
    fn many_changes_are_told_apart_by_unique_lines() {
        let numbered = |word: &str| {
            use std::fmt::Write as _;
            let mut text = String::new();
            for line in 0..20_000 {
                let word = if line % 2 == 1 { word } else { "same" };
                writeln!(text, "{word} {line}").unwrap();
            }
            text
        };
        let (old, new) = (numbered("old"), numbered("new"));
        let mut all = ComposedSplices::new();
        all.add(0..old.len(), new.len());
        let found = between(&old, &new, &all);
        assert_eq!(found.len(), 10_000);
        assert!(found.iter().all(|region| old[region.old.clone()].starts_with("old")));
    }

    /// No unique lines, and too costly to search: shown as replaced, without what both ends share.
    #[test]
    fn a_vast_repetitive_change_is_replaced_as_a_whole() {
        let (old, new) = ("x\ny\n".repeat(9_000), "y\ny\nx\n".repeat(9_000));
        let (old, new) = (format!("{old}end\n"), format!("{new}end\n"));
        let found = between(&old, &new, &ComposedSplices::new());
        assert_eq!(found, [ChangedRange { old: 0..old.len() - 4, new: 0..new.len() - 4 }]);
    }

    proptest! {
        #[test]
        fn what_is_no_change_is_the_same(
            old in "([abé]{0,2}\n){0,12}(a|)",
            edits in prop::collection::vec((0usize..40, 0usize..9, "[abé\n]{0,5}"), 0..4),
        ) {
            let (mut new, mut changed) = (old.clone(), ComposedSplices::new());
            for (start, len, text) in edits {
                let (start, end) = (new.floor_char_boundary(start), new.floor_char_boundary(start + len));
                new.replace_range(start..end, &text);
                changed.add(start..end, text.len());
            }
            prop_assert!(are_equal_outside(old.as_bytes(), new.as_bytes(), changed.regions()));
            let found = between(&old, &new, &changed);
            prop_assert!(are_equal_outside(old.as_bytes(), new.as_bytes(), &found));
            prop_assert!(found.is_sorted_by(|a, b| a.old.end < b.old.start && a.new.end < b.new.start));
            for ChangedRange { old: o, new: n } in found {
                for (text, range) in [(&old, &o), (&new, &n)] {
                    prop_assert!(range.start == 0 || text[..range.start].ends_with('\n'));
                    prop_assert!(range.end == text.len() || range.is_empty() || text[..range.end].ends_with('\n'));
                }
                let (old, new) = (&old[o], &new[n]);
                let first = |text: &str| text.split_inclusive('\n').next().map(str::to_owned);
                let last = |text: &str| text.split_inclusive('\n').next_back().map(str::to_owned);
                prop_assert_ne!(first(old), first(new));
                prop_assert_ne!(last(old), last(new));
            }
        }
    }
}
