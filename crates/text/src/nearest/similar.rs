//! Finds the places that have most of a needle, by the short runs of characters that they share; the lines there are
//! then compared one by one.

use std::ops::Range;

use memchr::memmem;

use super::aligned::{SPREAD, aligned};
use super::bounds::{differ_in_a_word, line_at, line_end, line_start, word_end, word_start};
use super::fold::{fold, kept, unfold};
use super::grams::{Grams, alike, windows};
use super::{Near, PLACES, Reason};
use crate::lines::lines;
use crate::order::sort_by_numbers;

/// Largest part of a needle that is searched for, which bounds the cost of aligning lines. It begins where the needle
/// leaves the text if at least its first `BEGINNING` folded bytes are there, or else at its start.
const NEEDLE_BYTES: usize = 16 << 10;
const NEEDLE_LINES: usize = 300;
const BEGINNING: usize = 1 << 10;
/// Shortest needle, folded, that is searched for: a shorter one resembles too much.
const SHORTEST: usize = 6;
/// A line that folds to fewer bytes is also compared by how it starts and ends.
const SHORT_LINE: usize = 24;

/// Share that a line must have in common with the needle, in permille, and the share for a very short needle.
const ALIKE: usize = 600;
const ALIKE_SHORT: usize = 700;
/// Most lines of a window that are compared one by one.
const LINES: usize = 4;
/// Places that are worse than the best by more than this, in permille, are left out.
const EQUALLY_NEAR: usize = 10;

/// Returns the places that resemble `needle` most, each with the share of it that was found, in permille.
pub(super) fn similar(text: &str, folded: &[u8], needle: &str) -> Vec<(usize, Near)> {
    let skipped = if cut(needle).len() < needle.len() { beginning(folded, needle) } else { 0 };
    let lines_skipped = line_at(needle, skipped);
    let needle = cut(&needle[skipped..]);
    let Some(inner) = kept(needle) else { return Vec::new() };
    let wanted = fold(needle);
    let several = needle[inner.clone()].contains(['\n', '\r']);
    let mut found: Vec<(usize, Near)> = Vec::new();
    if wanted.len() >= SHORTEST {
        let windows = unfold(text, &windows(folded, &wanted));
        if several {
            found = windows.iter().filter_map(|window| aligned(text, window, needle)).collect();
        }
        if found.is_empty() {
            found = windows.iter().filter_map(|it| within_lines(text, it, needle)).collect();
        }
    }
    if found.is_empty() && !several {
        found = but_for_a_word(text, needle, inner);
    }
    // A place without a reason may differ only in the part of the needle that was cut off.
    found.retain(|(_, near)| !near.reasons.is_empty());
    for reason in found.iter_mut().flat_map(|(_, near)| &mut near.reasons) {
        if let Reason::Lines { needle, .. } = reason {
            *needle = needle.start + lines_skipped..needle.end + lines_skipped;
        }
    }
    sort_by_numbers(&mut found, |(share, near)| (usize::MAX - share, near.bytes.start));
    let mut apart: Vec<(usize, Near)> = Vec::new();
    for (share, near) in found {
        let overlaps =
            |other: &Near| near.bytes.start < other.bytes.end && other.bytes.start < near.bytes.end;
        let best = apart.first().map_or(0, |(best, _)| *best);
        if share + EQUALLY_NEAR >= best && !apart.iter().any(|(_, other)| overlaps(other)) {
            apart.push((share, near));
        }
    }
    apart
}

/// Returns the first lines of a long needle.
fn cut(needle: &str) -> &str {
    let start = &needle[..needle.floor_char_boundary(NEEDLE_BYTES)];
    let whole = match start.rfind(['\n', '\r']) {
        Some(last) if start.len() < needle.len() => &start[..=last],
        _ => start,
    };
    lines(whole).nth(NEEDLE_LINES - 1).map_or(whole, |last| &whole[..last.next])
}

/// Returns the length of the start of a long needle that the text has and that is skipped: whole lines, unless one is
/// very long, and not quite up to where the two part.
fn beginning(folded: &[u8], needle: &str) -> usize {
    let wanted = fold(needle);
    let Some(start) = wanted.get(..BEGINNING) else { return 0 };
    let together = |at: usize| folded[at..].iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let longest = memmem::find_iter(folded, start).take(PLACES).map(together).max().unwrap_or(0);
    let before = longest.saturating_sub(BEGINNING / 4).max(1);
    let spot = unfold(needle, std::slice::from_ref(&(before - 1..before))).pop();
    spot.map_or(0, |spot| {
        line_start(needle, spot.start)
            .max(needle.floor_char_boundary(spot.start.saturating_sub(BEGINNING)))
    })
}

/// Compares a needle of one line, or one whose line breaks are not in the text. A window is as long as the needle but
/// need not start where it should, so one line of it may match best, or the part of a long line within it.
fn within_lines(text: &str, window: &Range<usize>, needle: &str) -> Option<(usize, Near)> {
    let inner = kept(needle)?;
    let whole = line_start(text, window.start)..line_end(text, window.end);
    let part = word_start(text, window.start)..word_end(text, window.end);
    let lines_of_needle = line_at(needle, inner.start)..line_at(needle, inner.end) + 1;
    if lines_of_needle.len() > 1 && text[whole.clone()].contains(['\n', '\r']) {
        return None;
    }
    let each = |range: &Range<usize>| -> Vec<Range<usize>> {
        let lines = lines(&text[range.clone()]).take(LINES);
        lines.map(|line| range.start + line.start..range.start + line.end).collect()
    };
    let mut all = each(&part);
    let parts = all.len();
    if whole.len() <= SPREAD * needle.len() {
        all.extend(each(&whole));
    }
    let wanted = fold(needle);
    let grams = Grams::of(&wanted);
    let fitting = all.into_iter().enumerate().filter_map(|(at, place)| {
        let kept = kept(&text[place.clone()])?;
        let place = place.start + kept.start..place.start + kept.end;
        let folded = fold(&text[place.clone()]);
        let mut share = alike(&folded, &wanted);
        if at >= parts && wanted.len() < SHORT_LINE {
            share = share.max(grams.alike(&Grams::of(&folded)));
        }
        (place.len() <= inner.len() * 2).then_some((share * 10, place))
    });
    let (share, place) = fitting.max_by_key(|(share, place)| (*share, place.len()))?;
    if share < if wanted.len() < 2 * SHORTEST { ALIKE_SHORT } else { ALIKE } {
        return None;
    }
    let mut near = Near::new(text, place.clone());
    let folded = fold(&text[place.clone()]);
    let same = folded.iter().zip(&wanted).take_while(|(ours, theirs)| ours == theirs).count();
    let parting = unfold(&text[place], std::slice::from_ref(&(same..same + 1))).pop();
    near.first_difference += parting.map_or(0, |parting| parting.start);
    Some((share, differing(near, lines_of_needle)))
}

/// Returns `near` with the only reason that it differs from those lines of the needle.
fn differing(mut near: Near, needle: Range<usize>) -> Near {
    near.reasons.push(Reason::Lines { file: near.lines.clone(), needle });
    near
}

/// Finds the lines that are the needle with one word changed; none if there are too many of them.
fn but_for_a_word(text: &str, needle: &str, inner: Range<usize>) -> Vec<(usize, Near)> {
    let line = line_at(needle, inner.start);
    let wanted = &needle[inner];
    let places = lines(text).filter_map(|line| {
        let kept = text[line.start..line.end].trim();
        let start = line.end - text[line.start..line.end].trim_start().len();
        differ_in_a_word(kept, wanted).then_some(start..start + kept.len())
    });
    let places: Vec<_> = places.take(PLACES + 1).collect();
    if places.len() > PLACES {
        return Vec::new();
    }
    places
        .into_iter()
        .map(|place| (ALIKE, differing(Near::new(text, place), line..line + 1)))
        .collect()
}
