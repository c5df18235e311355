//! Where most of a needle is: found by the short runs of characters it shares with the text, then compared line by line.

use std::ops::Range;

use memchr::{memchr2, memmem, memrchr2};

use super::aligned::Aligned;
use super::fold::{fold, kept, unfold};
use super::grams::{alike, framed, windows};
use super::{Near, PLACES, Reason, line_at};
use crate::lines::lines;

/// What is looked for of a long needle: so much from where it leaves the text, if as much as `BEGINNING` of it is there,
/// else from its start. Bounds what aligning lines may cost.
const NEEDLE_BYTES: usize = 16 << 10;
const NEEDLE_LINES: usize = 500;
const BEGINNING: usize = 1 << 10;
/// A needle that folds to less resembles too much.
const SHORTEST: usize = 6;

/// What a place without a single equal line must have in common with the needle, in percent: one line; several, or very
/// short ones.
const ALIKE: usize = 60;
const ALIKE_LONG: usize = 70;
/// Lines that are so many times as long as the needle are not looked at as a whole.
pub(super) const SPREAD: usize = 16;
/// Lines of a window that are compared one by one.
const LINES: usize = 4;
/// Places worse than the best by more are not named.
const EQUALLY_NEAR: usize = 3;

/// The places that resemble `needle` most, each with the percentage of it that is there.
pub(super) fn similar(text: &str, folded: &[u8], needle: &str) -> Vec<(usize, Near)> {
    let skipped = if cut(needle).len() < needle.len() { beginning(folded, needle) } else { 0 };
    let lines_skipped = line_at(needle, skipped);
    let needle = cut(&needle[skipped..]);
    let wanted = fold(needle);
    if wanted.len() < SHORTEST {
        return Vec::new();
    }
    let windows = unfold(text, &windows(folded, &wanted));
    let aligned = |window: &_| Aligned::new(text, window, needle)?.near();
    let mut found: Vec<(usize, Near)> = match kept(needle) {
        Some(inner) if needle[inner.clone()].contains(['\n', '\r']) => {
            windows.iter().filter_map(aligned).collect()
        }
        _ => Vec::new(),
    };
    if found.is_empty() {
        found = windows.iter().filter_map(|window| within_lines(text, window, needle)).collect();
    }
    // What was cut off a needle may be all that differs.
    found.retain(|(_, near)| !near.reasons.is_empty());
    for reason in found.iter_mut().flat_map(|(_, near)| &mut near.reasons) {
        if let Reason::Lines { needle, .. } = reason {
            *needle = needle.start + lines_skipped..needle.end + lines_skipped;
        }
    }
    found.sort_by_key(|(share, near)| (usize::MAX - share, near.bytes.start));
    found.dedup_by(|later, kept| {
        later.1.bytes.start < kept.1.bytes.end && kept.1.bytes.start < later.1.bytes.end
    });
    let best = found.first().map_or(0, |(share, _)| *share);
    found.retain(|(share, _)| share + EQUALLY_NEAR >= best);
    found
}

/// The first lines of a long needle.
fn cut(needle: &str) -> &str {
    let start = &needle[..needle.floor_char_boundary(NEEDLE_BYTES)];
    let whole = match start.rfind(['\n', '\r']) {
        Some(last) if start.len() < needle.len() => &start[..=last],
        _ => start,
    };
    lines(whole).nth(NEEDLE_LINES - 1).map_or(whole, |last| &whole[..last.next])
}

/// How much of the start of a long needle is in the text, in whole lines and not quite up to where they part.
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

/// A place with no line in common with the needle: a window is as long as the needle, but need not start where it
/// should, so one line of it may fit best, or all of its lines, or what is in it of a long line.
fn within_lines(text: &str, window: &Range<usize>, needle: &str) -> Option<(usize, Near)> {
    let inner = kept(needle)?;
    let start = line_start(text, window.start);
    let touched = &text[start..line_end(text, window.end)];
    let touched = if touched.len() <= SPREAD * needle.len() { touched } else { "" };
    let content = |line: Range<usize>| {
        let kept = kept(&touched[line.clone()])?;
        Some(start + line.start + kept.start..start + line.start + kept.end)
    };
    let lines_of_needle = line_at(needle, inner.start)..line_at(needle, inner.end) + 1;
    let one = lines_of_needle.len() == 1;
    let each = lines(touched).filter_map(|line| content(line.start..line.end));
    let each = each.take(if one { LINES } else { 0 });
    let part = word_start(text, window.start)..word_end(text, window.end);
    let all = content(0..touched.len()).into_iter().chain(each);
    let wanted = fold(needle);
    let fitting = all.filter(|place| place.len() <= inner.len() * 2).chain([part]).map(|place| {
        let folded = fold(&text[place.clone()]);
        let framed = if one { framed(&folded, &wanted) } else { 0 };
        (alike(&folded, &wanted).max(framed), place)
    });
    let (share, place) = fitting.max_by_key(|(share, place)| (*share, place.len()))?;
    let several = memchr2(b'\n', b'\r', text[place.clone()].as_bytes()).is_some();
    if share < if several || wanted.len() < 2 * SHORTEST { ALIKE_LONG } else { ALIKE } {
        return None;
    }
    let mut near = Near::new(text, place.clone());
    let folded = fold(&text[place.clone()]);
    let same = folded.iter().zip(&wanted).take_while(|(ours, theirs)| ours == theirs).count();
    let parting = unfold(&text[place], std::slice::from_ref(&(same..same + 1))).pop();
    near.first_difference += parting.map_or(0, |parting| parting.start);
    near.reasons.push(Reason::Lines { file: near.lines.clone(), needle: lines_of_needle });
    Some((share, near))
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    memrchr2(b'\n', b'\r', &text.as_bytes()[..at]).map_or(0, |before| before + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    memchr2(b'\n', b'\r', &text.as_bytes()[at..]).map_or(text.len(), |more| at + more)
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// No word is longer; what is, is cut.
const WORD_BYTES: usize = 64;

fn word_start(text: &str, at: usize) -> usize {
    let from = text.ceil_char_boundary(at.saturating_sub(WORD_BYTES));
    from + text[from..at].trim_end_matches(is_word).len()
}

fn word_end(text: &str, at: usize) -> usize {
    let until = text.floor_char_boundary(at + WORD_BYTES);
    until - text[at..until].trim_start_matches(is_word).len()
}
