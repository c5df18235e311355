//! Finds needles in which lines of dots stand for lines of the file.

use std::ops::Range;

use memchr::memmem;

use super::boundaries::line_at;
use super::fold::{fold, unfold};
use super::{Difference, NearMatch};
use crate::lines::lines;

/// Shortest first piece of a needle, folded: a shorter one could be anywhere.
const FIRST_PIECE_BYTES_MIN: usize = 4;

/// Finds the place where the pieces of `needle` between lines of dots occur in order, as close together as they do.
pub(super) fn find_elided(text: &str, folded: &[u8], needle: &str) -> Option<NearMatch> {
    let (pieces, dots) = pieces(needle);
    if dots.is_empty() || pieces.iter().any(|piece| piece.trim().is_empty()) {
        return None;
    }
    // Searches for the pieces as they are, as whole lines except at the outer ends, and then folded.
    let last = pieces.len() - 1;
    let exact: Vec<String> = pieces
        .iter()
        .enumerate()
        .map(|(at, piece)| {
            let before = if at == 0 { "" } else { "\n" };
            let piece = piece.trim_end_matches(['\n', '\r']);
            format!("{before}{piece}{}", if at == last { "" } else { "\n" })
        })
        .collect();
    let exact =
        find_in_order(text.as_bytes(), exact.iter().map(String::as_bytes)).map(|mut found| {
            // The line breaks added around the pieces are not part of them.
            for range in &mut found[1..] {
                range.start += 1;
            }
            for range in &mut found[..last] {
                range.end -= 1;
            }
            found
        });
    let found = exact.or_else(|| {
        let pieces: Vec<_> = pieces.iter().map(|piece| fold(piece)).collect();
        if pieces[0].len() < FIRST_PIECE_BYTES_MIN || pieces.iter().any(Vec::is_empty) {
            return None;
        }
        let found = find_in_order(folded, pieces.iter().map(Vec::as_slice))?;
        Some(unfold(text, &found)).filter(|unfolded| unfolded.len() == found.len())
    })?;
    let mut near = NearMatch::new(text, found[0].start..found[last].end);
    near.first_difference = found[0].end;
    for (dots, between) in dots.into_iter().zip(found.windows(2)) {
        let first = line_at(text, between[0].end) + 1;
        near.differences
            .push(Difference::ElidedLines { dots, lines: first..line_at(text, between[1].start) });
    }
    Some(near)
}

/// Splits a needle into the pieces between lines of dots, and returns them with the numbers of those lines.
fn pieces(needle: &str) -> (Vec<&str>, Vec<usize>) {
    let (mut pieces, mut dots) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (number, line) in lines(needle).enumerate() {
        if is_dots(&needle[line.start..line.end]) {
            pieces.push(&needle[start..line.start]);
            dots.push(number);
            start = line.next;
        }
    }
    pieces.push(&needle[start..]);
    (pieces, dots)
}

/// True for `...` alone, or in a comment, where words may be beside it.
fn is_dots(line: &str) -> bool {
    let line = line.trim();
    let comment = line.trim_matches(|c: char| "/#*-<>!;%{}".contains(c) || c.is_whitespace());
    let dots = comment.trim_matches(['.', '…']);
    let are_dots =
        ["...", "…"].iter().any(|dots| comment.starts_with(dots) || comment.ends_with(dots));
    are_dots && (dots.is_empty() || comment.len() < line.len())
}

/// Finds `pieces` in `text` one after another: the first that match, then each as close to the next as it occurs.
fn find_in_order<'a>(
    text: &[u8],
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Option<Vec<Range<usize>>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let pieces: Vec<&[u8]> = pieces.collect();
    for piece in &pieces {
        // One line break may end a piece and begin the next.
        let from = found.last().map_or(0, |last| last.end - usize::from(piece.starts_with(b"\n")));
        let start = from + memmem::find(&text[from..], piece)?;
        found.push(start..start + piece.len());
    }
    for at in (0..pieces.len() - 1).rev() {
        let (from, until) = (found[at].start, found[at + 1].start);
        let start =
            memmem::rfind(&text[from..until], pieces[at]).map_or(from, |closer| from + closer);
        found[at] = start..start + pieces[at].len();
    }
    Some(found)
}
