//! Splices: replacements of byte ranges, and the combined effect of a sequence of them.
//!
//! Other modules decide where a splice comes from (a line number, a string); here there are only offsets.

use std::ops::Range;

/// A replacement of `range`, bytes of the old text, by `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub range: Range<usize>,
    pub text: String,
}

/// Applies `splices` to `text` in one pass.
///
/// They must be sorted, disjoint and on character boundaries, as every planner here makes them. One that is not is a
/// bug: caught in debug builds, left out in release builds.
pub fn apply(text: &str, splices: &[Splice]) -> String {
    let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let removed: usize = splices.iter().map(|splice| splice.range.len()).sum();
    let mut out = String::with_capacity((text.len() + added).saturating_sub(removed));
    let mut at = 0;
    for Splice { range, text: replacement } in splices {
        if let (Some(kept), Some(_)) = (text.get(at..range.start), text.get(range.clone())) {
            out.push_str(kept);
            out.push_str(replacement);
            at = range.end;
        } else {
            debug_assert!(false, "splice {range:?} out of order or out of bounds");
        }
    }
    out.push_str(&text[at..]);
    out
}

/// Returns `text` with each of `ranges`, sorted and disjoint, replaced by `new`.
pub fn replace_each(text: &str, ranges: &[Range<usize>], new: &str) -> String {
    let removed: usize = ranges.iter().map(Range::len).sum();
    let mut out = String::with_capacity(text.len() + ranges.len() * new.len() - removed);
    let mut at = 0;
    for range in ranges {
        out.push_str(&text[at..range.start]);
        out.push_str(new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Moves the splices by `by` bytes, for a text with that many more in front, such as a byte order mark.
pub fn offset_by(mut splices: Vec<Splice>, by: usize) -> Vec<Splice> {
    for Splice { range, .. } in &mut splices {
        *range = range.start + by..range.end + by;
    }
    splices
}

/// Maps `range` to its place after `spliced` (sorted, disjoint and of one length) were replaced by `new_len` bytes
/// each.
///
/// Bytes that a splice removes from the ends of the range leave it; bytes that a splice puts inside it, or over part of
/// it, belong to it.
pub fn map_range(range: Range<usize>, spliced: &[Range<usize>], new_len: usize) -> Range<usize> {
    let before = spliced.partition_point(|splice| splice.end <= range.start);
    let until = spliced.partition_point(|splice| splice.start < range.end).max(before);
    let moved = |at: usize, splices: usize| {
        at + splices * new_len - spliced[..splices].first().map_or(0, Range::len) * splices
    };
    let [start, end] = match &spliced[before..until] {
        [] => [range.start, range.end],
        [first, ..] => [range.start.min(first.start), range.end.max(spliced[until - 1].end)],
    };
    moved(start, before)..moved(end, until)
}

/// A part of the old text and the part of the new text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRange {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The combined effect of a sequence of splices: regions, sorted, touching neighbours merged. Between them old and new
/// text are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComposedSplices {
    regions: Vec<ChangedRange>,
}

impl ComposedSplices {
    pub fn new() -> Self {
        Self::default()
    }

    /// Combines `splices` that are applied in one pass and all address the old text. See [`apply`].
    pub fn from_splices(splices: &[Splice]) -> Self {
        let mut composed = Self::new();
        for Splice { range, text } in splices {
            let staged = composed.to_new(range.start..range.start).start;
            composed.add(staged..staged + range.len(), text.len());
        }
        composed
    }

    /// Adds a splice that addresses the text as staged so far.
    pub fn add(&mut self, staged: Range<usize>, new_len: usize) {
        let Range { start, end } = staged.start..staged.end.max(staged.start);
        if start == end && new_len == 0 {
            return;
        }
        // The regions that the splice overlaps or touches are merged with it.
        let from = self.regions.partition_point(|region| region.new.end < start);
        let to = self.regions.partition_point(|region| region.new.start <= end);
        let merged = &self.regions[from..to];
        let new_start = merged.first().map_or(start, |first| first.new.start.min(start));
        let new_end = merged.last().map_or(end, |last| last.new.end.max(end));
        let moved = |at: usize| at - (end - start) + new_len;
        let region = ChangedRange {
            old: self.old_offset_of(from, new_start)..self.old_offset_of(to, new_end),
            new: new_start..moved(new_end),
        };
        for later in &mut self.regions[to..] {
            later.new = moved(later.new.start)..moved(later.new.end);
        }
        self.regions.splice(from..to, [region]);
    }

    /// Adds splices that all address the text as staged so far, sorted and disjoint, of `new_len` bytes each.
    pub fn add_each(&mut self, staged: &[Range<usize>], new_len: usize) {
        let mut regions = Vec::with_capacity(self.regions.len() + staged.len());
        let mut known = self.regions.iter().peekable();
        let mut added = staged.iter().peekable();
        // An offset of the staged text becomes one of the old text by adding `old - before`, and one of the new text by
        // adding `put - taken`. These differences may be negative, so the lengths are summed separately.
        let (mut old, mut before, mut taken, mut put) = (0, 0, 0, 0);
        loop {
            let next = [known.peek().map(|region| region.new.start), added.peek().map(|r| r.start)];
            let Some(start) = next.into_iter().flatten().min() else { break };
            let (old_start, new_start) = (start + old - before, start + put - taken);
            // Everything that overlaps or touches becomes one region.
            let mut end = start;
            loop {
                if let Some(region) = known.next_if(|region| region.new.start <= end) {
                    old += region.old.len();
                    before += region.new.len();
                    end = end.max(region.new.end);
                } else if let Some(range) = added.next_if(|range| range.start <= end) {
                    taken += range.len();
                    put += new_len;
                    end = end.max(range.end);
                } else {
                    break;
                }
            }
            let region = ChangedRange {
                old: old_start..end + old - before,
                new: new_start..end + put - taken,
            };
            regions.push(region);
        }
        self.regions = regions;
    }

    /// Returns the old offset of `at`, which is at or after the end of the first `regions` and before the others.
    fn old_offset_of(&self, regions: usize, at: usize) -> usize {
        match regions.checked_sub(1).map(|last| &self.regions[last]) {
            Some(last) => at - last.new.end + last.old.end,
            None => at,
        }
    }

    pub fn regions(&self) -> &[ChangedRange] {
        &self.regions
    }

    /// Maps `new`, a range of the text as staged so far, to the old bytes it came from. An end within a region is
    /// widened to all of it.
    pub fn to_old(&self, new: Range<usize>) -> Range<usize> {
        self.map(new, |region| (&region.new, &region.old))
    }

    /// Maps `old`, a range of the old text, to its range in the text as staged so far. An end within a region is
    /// widened to all of it.
    pub fn to_new(&self, old: Range<usize>) -> Range<usize> {
        self.map(old, |region| (&region.old, &region.new))
    }

    fn map(
        &self,
        range: Range<usize>,
        sides: impl Fn(&ChangedRange) -> (&Range<usize>, &Range<usize>),
    ) -> Range<usize> {
        let behind = |regions: usize, at: usize| match self.regions[..regions].last().map(&sides) {
            Some((from, to)) => at.saturating_sub(from.end) + to.end,
            None => at,
        };
        // The last region that starts at or before the start, the last that starts before the end.
        let first = self.regions.partition_point(|region| sides(region).0.start <= range.start);
        let last = self.regions.partition_point(|region| sides(region).0.start < range.end);
        let start = match self.regions[..first].last().map(&sides) {
            Some((from, to)) if range.start < from.end => to.start,
            _ => behind(first, range.start),
        };
        start..behind(last, range.end).max(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn splice(range: Range<usize>, text: &str) -> Splice {
        Splice { range, text: text.into() }
    }

    #[test]
    fn splices_apply_in_one_pass() {
        for (splices, after) in [
            (vec![], "añcd"),
            (vec![splice(0..0, "x"), splice(0..1, "y"), splice(5..5, "z")], "xyñcdz"),
            (vec![splice(1..3, ""), splice(3..4, "C")], "aCd"),
            (vec![splice(0..5, "")], ""),
        ] {
            let out = apply("añcd", &splices);
            assert_eq!(out, after);
            assert_eq!(out.capacity(), out.len());
        }
        assert_eq!(apply("\u{feff}ab", &offset_by(vec![splice(1..2, "B")], 3)), "\u{feff}aB");
    }

    #[test]
    fn regions_that_touch_are_merged() {
        fn check(splices: &[(Range<usize>, usize)], regions: &[(Range<usize>, Range<usize>)]) {
            let mut composed = ComposedSplices::new();
            for (staged, new_len) in splices {
                composed.add(staged.clone(), *new_len);
            }
            let found: Vec<_> =
                composed.regions().iter().map(|r| (r.old.clone(), r.new.clone())).collect();
            assert_eq!(found, regions, "{splices:?}");
        }
        check(&[(5..5, 0)], &[]);
        check(&[(2..4, 5)], &[(2..4, 2..7)]);
        check(&[(2..4, 5), (7..8, 1)], &[(2..5, 2..8)]);
        check(&[(2..4, 5), (8..9, 1)], &[(2..4, 2..7), (5..6, 8..9)]);
        check(&[(8..9, 1), (2..4, 5)], &[(2..4, 2..7), (8..9, 11..12)]);
        check(&[(2..4, 5), (3..4, 0)], &[(2..4, 2..6)]);
        check(&[(2..4, 0), (5..6, 0), (1..5, 3)], &[(1..8, 1..4)]);
    }

    #[test]
    fn ranges_are_mapped_through_regions() {
        let composed = ComposedSplices::from_splices(&[
            splice(2..4, "12345"),
            splice(6..6, "x"),
            splice(8..9, ""),
        ]);
        for (old, new) in
            [(0..2, 0..2), (4..6, 7..9), (6..8, 10..12), (4..8, 7..12), (9..11, 12..14)]
        {
            assert_eq!(composed.to_new(old.clone()), new);
            assert_eq!(composed.to_old(new), old);
        }
        assert_eq!(composed.to_old(3..4), 2..4);
        assert_eq!(composed.to_old(3..8), 2..5);
        assert_eq!(composed.to_new(3..5), 2..8);
        assert_eq!(composed.to_new(8..9), 12..12);
    }

    #[test]
    fn a_range_is_carried_over_a_later_splice() {
        for (splice, new_len, expected) in [
            (0..2, 5, 13..23),
            (20..25, 0, 10..20),
            (10..10, 2, 12..22),
            (20..20, 2, 10..20),
            (12..14, 0, 10..18),
            (5..12, 1, 5..14),
            (18..25, 1, 10..19),
            (5..25, 3, 5..8),
        ] {
            assert_eq!(
                map_range(10..20, std::slice::from_ref(&splice), new_len),
                expected,
                "{splice:?} {new_len}"
            );
        }
    }

    proptest! {
        /// Models a text as a list in which every byte has the old offset it came from.
        #[test]
        fn regions_hold_all_that_changed(
            edits in prop::collection::vec((0usize..30, 0usize..6, 0usize..6), 0..12),
        ) {
            let mut text: Vec<Option<usize>> = (0..20).map(Some).collect();
            let mut composed = ComposedSplices::new();
            for (start, len, new_len) in edits {
                let start = start.min(text.len());
                let end = (start + len).min(text.len());
                let origin = composed.to_old(start..end);
                for old in text[start..end].iter().flatten() {
                    prop_assert!(origin.contains(old));
                }
                text.splice(start..end, vec![None; new_len]);
                composed.add(start..end, new_len);
            }
            let regions = composed.regions();
            prop_assert!(regions.is_sorted_by(|a, b| a.old.end < b.old.start && a.new.end < b.new.start));
            let mut at = (0, 0);
            for region in regions.iter().chain([&ChangedRange { old: 20..20, new: text.len()..text.len() }]) {
                let kept: Vec<_> = (at.0..region.old.start).map(Some).collect();
                prop_assert_eq!(&text[at.1..region.new.start], &kept);
                if !kept.is_empty() {
                    let (old, new) = (at.0..region.old.start, at.1..region.new.start);
                    prop_assert_eq!(&composed.to_new(old.clone()), &new);
                    prop_assert_eq!(composed.to_old(new), old);
                }
                at = (region.old.end, region.new.end);
            }
        }

        #[test]
        fn many_splices_at_once_are_as_one_after_another(
            edits in prop::collection::vec((0usize..30, 0usize..6, 0usize..6), 0..6),
            gaps in prop::collection::vec(0usize..6, 0..6),
            (len, new_len) in (1usize..4, 0usize..4),
            range in (0usize..40, 0usize..10),
        ) {
            let mut composed = ComposedSplices::new();
            for (start, len, new_len) in edits {
                composed.add(start..start + len, new_len);
            }
            let mut at = 0;
            let splices: Vec<_> = gaps
                .into_iter()
                .map(|gap| {
                    at += gap + len;
                    at - len..at
                })
                .collect();
            let range = range.0..range.0 + range.1;
            let mut carried = range.clone();
            let mut expected = composed.clone();
            for splice in splices.iter().rev() {
                expected.add(splice.clone(), new_len);
                carried = map_range(carried, std::slice::from_ref(splice), new_len);
            }
            composed.add_each(&splices, new_len);
            prop_assert_eq!(composed, expected);
            prop_assert_eq!(map_range(range, &splices, new_len), carried);
        }

        #[test]
        fn one_pass_and_one_after_another_are_the_same(
            parts in prop::collection::vec((0usize..3, 0usize..3, "[ab]{0,2}"), 0..6),
        ) {
            let text = "0123456789012345678901234567890123456789";
            let mut at = 0;
            let mut splices = vec![];
            for (gap, len, replacement) in parts {
                splices.push(Splice { range: at + gap..at + gap + len, text: replacement });
                at += gap + len;
            }
            let (mut staged, mut composed) = (text.to_string(), ComposedSplices::new());
            for Splice { range, text } in splices.iter().rev() {
                staged.replace_range(range.clone(), text);
                composed.add(range.clone(), text.len());
            }
            prop_assert_eq!(apply(text, &splices), staged);
            prop_assert_eq!(ComposedSplices::from_splices(&splices), composed);
        }
    }
}
