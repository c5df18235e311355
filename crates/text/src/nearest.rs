//! Why a string was not found, and where it nearly is.
//!
//! Nothing is ever edited by what is found here: it only tells an agent how its next try can fit. First the needle is
//! looked for less what agents copy along (`variants`) and less what they rarely get right (`fold`), and what differs
//! is named exactly (`compare`); then with dots taken as lines left out (`elided`); then by what it shares with the text
//! (`similar`). All of it takes time and memory linear in the text.

mod aligned;
mod blanks;
mod bounds;
mod compare;
mod comparison;
mod elided;
mod fold;
mod grams;
mod render;
mod similar;
mod variants;
mod words;

use std::ops::Range;

use memchr::memmem;

use self::bounds::{is_line_end, is_line_start, is_whole_words, line_at};
use self::compare::around;
use self::comparison::Comparison;
use self::fold::{fold, unfold};
use self::variants::{Variant, shorter, variants};
use crate::lines::Ending;
use crate::order::sort_by_numbers;

/// Bytes of a hint at most.
pub const HINT_BYTES: usize = 2048;
/// Places named at most.
pub const PLACES: usize = 3;

/// Places looked at to choose the nearest, and the bytes compared in them; always as many as are named.
const CANDIDATES: usize = 64;
const COMPARED_BYTES: usize = 64 << 10;
/// A needle that folds to less must stand between the same words' ends as in the text.
const WHOLE_WORDS: usize = 8;

/// What a needle nearly fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// What a needle that fits would have matched.
    pub bytes: Range<usize>,
    /// The lines this is in.
    pub lines: Range<usize>,
    /// What differs, each kind once. Empty: nothing does.
    pub reasons: Vec<Reason>,
    /// Where in the text that begins.
    pub first_difference: usize,
}

/// Who has what the other has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    File,
    Needle,
}

/// A difference. Lines count from 0, those of the file from its start and those of the needle from its.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// One side indents with tabs, the other with spaces.
    Tabs {
        side: Side,
    },
    /// One side indents by so many tabs or spaces more.
    Depth {
        side: Side,
        by: usize,
        tabs: bool,
    },
    /// Indentation differs in another way, or not by the same everywhere.
    Indentation,
    InnerBlanks,
    TrailingBlanks {
        side: Side,
    },
    BlankLines {
        side: Side,
        by: usize,
    },
    /// One side has a line break where the other has none.
    LineBreaks,
    /// The needle ends with a line break, the text without.
    NoFinalBreak,
    LineEnds {
        file: Ending,
        needle: Ending,
    },
    /// A blank other than space and tab, or a character of no width.
    UnusualBlank {
        side: Side,
        character: char,
    },
    /// Quotes, dashes, an ellipsis.
    Typography {
        file: String,
        needle: String,
    },
    /// The same letters as other code points, such as NFC and NFD.
    Composition,
    Case,
    Escapes {
        side: Side,
        escape: String,
    },
    Entities {
        side: Side,
        entity: String,
    },
    /// At the start of the needle: that of a file is no part of its text.
    ByteOrderMark,
    LineNumbers,
    DiffMarkers,
    Fence,
    /// A word at the start or end of the needle that the text has not there.
    Extra {
        at_start: bool,
        text: String,
    },
    /// A line of dots in the needle, and the lines of the file it stands for.
    Elided {
        dots: usize,
        lines: Range<usize>,
    },
    /// Lines that differ; empty where one side has none, and then the place where they would be.
    Lines {
        file: Range<usize>,
        needle: Range<usize>,
    },
}

impl Near {
    fn new(text: &str, bytes: Range<usize>) -> Self {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        let lines = line_at(text, bytes.start)..line_at(text, text.floor_char_boundary(last)) + 1;
        Self { first_difference: bytes.start, lines, bytes, reasons: Vec::new() }
    }

    /// With what was undone to get `variant`.
    fn after(mut self, variant: &Variant) -> Self {
        self.reasons.splice(..0, variant.undone.iter().cloned());
        self
    }
}

/// What to tell an agent whose `needle` does not occur in `text`: the nearest places and why they differ, or that
/// nothing is near.
pub fn explain(text: &str, needle: &str) -> String {
    render::hint(text, needle, &nearest(text, needle))
}

/// The places `needle` most nearly fits, which are about equally near; none if none is near.
pub fn places(text: &str, needle: &str) -> Vec<Near> {
    let mut places = nearest(text, needle);
    places.truncate(PLACES);
    places
}

/// As [`places`], and one more if there are more.
fn nearest(text: &str, needle: &str) -> Vec<Near> {
    let rest = needle.trim_start_matches('\u{feff}');
    if rest.len() < needle.len() {
        let mut places = nearest(text, rest);
        for near in &mut places {
            near.reasons.insert(0, Reason::ByteOrderMark);
        }
        return places;
    }
    let folded = fold(text);
    let variants = variants(needle);
    let mut found: Vec<_> =
        variants.iter().flat_map(|variant| fitting(text, &folded, variant)).collect();
    if found.is_empty() {
        let elided = |variant: &Variant| {
            Some(vec![elided::elided(text, &folded, &variant.needle)?.after(variant)])
        };
        if let Some(places) = variants.iter().find_map(elided) {
            return places;
        }
        found =
            shorter(needle).iter().flat_map(|variant| fitting(text, &folded, variant)).collect();
        found.retain(|(_, near)| is_at_line_edge(text, near));
    }
    if found.is_empty() {
        let mut best = 0;
        for variant in &variants {
            let similar = similar::similar(text, &folded, &variant.needle);
            if let Some((share, _)) = similar.first()
                && *share > best
            {
                best = *share;
                found = similar.into_iter().map(|(_, near)| (0, near.after(variant))).collect();
            }
        }
    }
    sort_by_numbers(&mut found, |(spots, near)| (*spots, near.bytes.start));
    found.dedup_by(|(_, later), (_, kept)| later.bytes == kept.bytes);
    let least = found.first().map_or(0, |(spots, _)| *spots);
    let nearest = found.into_iter().take_while(|(spots, _)| *spots == least);
    nearest.map(|(_, near)| near).take(PLACES + 1).collect()
}

/// Where the variant is: exactly, else folded. Each with the number of spots that differ.
fn fitting(text: &str, folded: &[u8], variant: &Variant) -> Vec<(usize, Near)> {
    let needle = &*variant.needle;
    let wanted = fold(needle);
    if wanted.is_empty() {
        return Vec::new();
    }
    let candidates = (COMPARED_BYTES / needle.len()).clamp(PLACES + 1, CANDIDATES);
    let ranges = |haystack: &[u8], needle: &[u8]| -> Vec<Range<usize>> {
        let starts = memmem::find_iter(haystack, needle).take(candidates);
        starts.map(|start| start..start + needle.len()).collect()
    };
    let whole_words =
        |place: &Range<usize>| wanted.len() >= WHOLE_WORDS || is_whole_words(text, place);
    let undone = variant.undone.len();
    let mut exact = ranges(text.as_bytes(), needle.as_bytes());
    exact.retain(whole_words);
    if !exact.is_empty() {
        let near = |place| (undone, Near::new(text, place).after(variant));
        return exact.into_iter().take(PLACES + 1).map(near).collect();
    }
    let mut found = unfold(text, &ranges(folded, &wanted));
    // Lines do not start within one, unless the first does.
    let indented = needle.starts_with([' ', '\t']) && needle.trim().contains('\n');
    found.retain(|place| whole_words(place) && (!indented || is_line_start(text, place.start)));
    let mut compared: Vec<_> = found
        .into_iter()
        .filter_map(|place| {
            let place = around(text, place, needle);
            let mut comparison = Comparison::default();
            comparison.add(text, place.clone(), needle)?;
            Some((place, comparison))
        })
        .collect();
    // Lines are counted only for what may be named.
    sort_by_numbers(&mut compared, |(place, comparison)| (comparison.spots, place.start));
    compared.truncate(PLACES + 1);
    let near = |(place, comparison): (Range<usize>, Comparison)| {
        let mut near = Near::new(text, place);
        near.first_difference = comparison.first.unwrap_or(near.bytes.start);
        near.reasons = comparison.reasons;
        (undone + comparison.spots, near.after(variant))
    };
    compared.into_iter().map(near).collect()
}

/// Whether `near`, found without the needle's first or last word, is where a line starts or ends: else that word is
/// not too much but another one in the text.
fn is_at_line_edge(text: &str, near: &Near) -> bool {
    let end = near.bytes.start + text[near.bytes.clone()].trim_end().len();
    near.reasons.iter().all(|reason| match reason {
        Reason::Extra { at_start: true, .. } => is_line_start(text, near.bytes.start),
        Reason::Extra { at_start: false, .. } => is_line_end(text, end),
        _ => true,
    })
}
