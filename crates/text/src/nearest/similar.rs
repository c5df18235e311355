//! Finds the places that have most of a needle, by the short runs of characters that they share; the lines there are
//! then compared one by one.

use std::ops::Range;

use memchr::memmem;

use super::aligned::{ALIGNED_LENGTHS_MAX, align};
use super::boundaries::{differ_in_a_word, line_at, line_end, line_start, word_end, word_start};
use super::fold::{fold, significant_range, unfold};
use super::ngrams::{NgramSet, similarity, windows};
use super::{Difference, NEAR_MATCHES_MAX, NearMatch};
use crate::lines::lines;
use crate::order::sort_by_numbers;

/// Largest part of a needle that is searched for, which bounds the cost of aligning lines. It begins where the needle
/// leaves the text if at least its first `SHARED_START_BYTES` folded bytes are there, or else at its start.
const NEEDLE_BYTES_MAX: usize = 16 << 10;
const NEEDLE_LINES_MAX: usize = 300;
const SHARED_START_BYTES: usize = 1 << 10;
/// Shortest needle, folded, that is searched for: a shorter one resembles too much.
const NEEDLE_BYTES_MIN: usize = 6;
/// A line that folds to fewer bytes is also compared by how it starts and ends.
const SHORT_LINE_BYTES: usize = 24;

/// Share that a line must have in common with the needle, in permille, and the share for a very short needle.
const SIMILAR_PERMILLE_MIN: usize = 600;
const SIMILAR_PERMILLE_MIN_SHORT: usize = 700;
/// Most lines of a window that are compared one by one.
const WINDOW_LINES_MAX: usize = 4;
/// Places that are worse than the best by more than this, in permille, are left out.
const EQUALLY_NEAR_PERMILLE: usize = 10;

/// Returns the places that resemble `needle` most, each with the share of it that was found, in permille.
pub(super) fn find_similar(text: &str, folded: &[u8], needle: &str) -> Vec<(usize, NearMatch)> {
    let skipped =
        if first_lines(needle).len() < needle.len() { shared_start(folded, needle) } else { 0 };
    let lines_skipped = line_at(needle, skipped);
    let needle = first_lines(&needle[skipped..]);
    let Some(inner) = significant_range(needle) else { return Vec::new() };
    let wanted = fold(needle);
    let several = needle[inner.clone()].contains(['\n', '\r']);
    let mut found: Vec<(usize, NearMatch)> = Vec::new();
    if wanted.len() >= NEEDLE_BYTES_MIN {
        let windows = unfold(text, &windows(folded, &wanted));
        if several {
            found = windows.iter().filter_map(|window| align(text, window, needle)).collect();
        }
        if found.is_empty() {
            found = windows.iter().filter_map(|it| compare_one_line(text, it, needle)).collect();
        }
    }
    if found.is_empty() && !several {
        found = differing_in_a_word(text, needle, inner);
    }
    // A place without a reason may differ only in the part of the needle that was cut off.
    found.retain(|(_, near)| !near.differences.is_empty());
    for difference in found.iter_mut().flat_map(|(_, near)| &mut near.differences) {
        if let Difference::DifferentLines { needle, .. } = difference {
            *needle = needle.start + lines_skipped..needle.end + lines_skipped;
        }
    }
    sort_by_numbers(&mut found, |(share, near)| (usize::MAX - share, near.bytes.start));
    let mut apart: Vec<(usize, NearMatch)> = Vec::new();
    for (share, near) in found {
        let overlaps = |other: &NearMatch| {
            near.bytes.start < other.bytes.end && other.bytes.start < near.bytes.end
        };
        let best = apart.first().map_or(0, |(best, _)| *best);
        if share + EQUALLY_NEAR_PERMILLE >= best && !apart.iter().any(|(_, other)| overlaps(other))
        {
            apart.push((share, near));
        }
    }
    apart
}

/// Returns the first lines of a long needle.
fn first_lines(needle: &str) -> &str {
    let start = &needle[..needle.floor_char_boundary(NEEDLE_BYTES_MAX)];
    let whole = match start.rfind(['\n', '\r']) {
        Some(last) if start.len() < needle.len() => &start[..=last],
        _ => start,
    };
    lines(whole).nth(NEEDLE_LINES_MAX - 1).map_or(whole, |last| &whole[..last.next])
}

/// Returns the length of the start of a long needle that the text has and that is skipped: whole lines, unless one is
/// very long, and not quite up to where the two part.
fn shared_start(folded: &[u8], needle: &str) -> usize {
    let wanted = fold(needle);
    let Some(start) = wanted.get(..SHARED_START_BYTES) else { return 0 };
    let together = |at: usize| folded[at..].iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let longest =
        memmem::find_iter(folded, start).take(NEAR_MATCHES_MAX).map(together).max().unwrap_or(0);
    let before = longest.saturating_sub(SHARED_START_BYTES / 4).max(1);
    let spot = unfold(needle, std::slice::from_ref(&(before - 1..before))).pop();
    spot.map_or(0, |spot| {
        line_start(needle, spot.start)
            .max(needle.floor_char_boundary(spot.start.saturating_sub(SHARED_START_BYTES)))
    })
}

/// Compares a needle of one line, or one whose line breaks are not in the text. A window is as long as the needle but
/// need not start where it should, so one line of it may match best, or the part of a long line within it.
fn compare_one_line(text: &str, window: &Range<usize>, needle: &str) -> Option<(usize, NearMatch)> {
    let inner = significant_range(needle)?;
    let whole = line_start(text, window.start)..line_end(text, window.end);
    let part = word_start(text, window.start)..word_end(text, window.end);
    let lines_of_needle = line_at(needle, inner.start)..line_at(needle, inner.end) + 1;
    if lines_of_needle.len() > 1 && text[whole.clone()].contains(['\n', '\r']) {
        return None;
    }
    let each = |range: &Range<usize>| -> Vec<Range<usize>> {
        let lines = lines(&text[range.clone()]).take(WINDOW_LINES_MAX);
        lines.map(|line| range.start + line.start..range.start + line.end).collect()
    };
    let mut all = each(&part);
    let parts = all.len();
    if whole.len() <= ALIGNED_LENGTHS_MAX * needle.len() {
        all.extend(each(&whole));
    }
    let wanted = fold(needle);
    let grams = NgramSet::of(&wanted);
    let fitting = all.into_iter().enumerate().filter_map(|(at, place)| {
        let kept = significant_range(&text[place.clone()])?;
        let place = place.start + kept.start..place.start + kept.end;
        let folded = fold(&text[place.clone()]);
        let mut share = similarity(&folded, &wanted);
        if at >= parts && wanted.len() < SHORT_LINE_BYTES {
            share = share.max(grams.similarity(&NgramSet::of(&folded)));
        }
        (place.len() <= inner.len() * 2).then_some((share * 10, place))
    });
    let (share, place) = fitting.max_by_key(|(share, place)| (*share, place.len()))?;
    if share
        < if wanted.len() < 2 * NEEDLE_BYTES_MIN {
            SIMILAR_PERMILLE_MIN_SHORT
        } else {
            SIMILAR_PERMILLE_MIN
        }
    {
        return None;
    }
    let mut near = NearMatch::new(text, place.clone());
    let folded = fold(&text[place.clone()]);
    let same = folded.iter().zip(&wanted).take_while(|(ours, theirs)| ours == theirs).count();
    let parting = unfold(&text[place], std::slice::from_ref(&(same..same + 1))).pop();
    near.first_difference += parting.map_or(0, |parting| parting.start);
    Some((share, with_different_lines(near, lines_of_needle)))
}

/// Returns `near` with the only reason that it differs from those lines of the needle.
fn with_different_lines(mut near: NearMatch, needle: Range<usize>) -> NearMatch {
    near.differences.push(Difference::DifferentLines { file: near.lines.clone(), needle });
    near
}

/// Finds the lines that are the needle with one word changed; none if there are too many of them.
fn differing_in_a_word(text: &str, needle: &str, inner: Range<usize>) -> Vec<(usize, NearMatch)> {
    let line = line_at(needle, inner.start);
    let wanted = &needle[inner];
    let places = lines(text).filter_map(|line| {
        let kept = text[line.start..line.end].trim();
        let start = line.end - text[line.start..line.end].trim_start().len();
        differ_in_a_word(kept, wanted).then_some(start..start + kept.len())
    });
    let places: Vec<_> = places.take(NEAR_MATCHES_MAX + 1).collect();
    if places.len() > NEAR_MATCHES_MAX {
        return Vec::new();
    }
    places
        .into_iter()
        .map(|place| {
            (
                SIMILAR_PERMILLE_MIN,
                with_different_lines(NearMatch::new(text, place), line..line + 1),
            )
        })
        .collect()
}
