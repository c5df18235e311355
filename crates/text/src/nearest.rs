//! Explains why a string was not found, and finds the places that it nearly matches.
//!
//! The result is only a hint for the agent's next try; nothing is ever edited by it. The needle is first searched for
//! without what agents copy along with a text (`variants`) and without what they rarely quote right (`fold`), and the
//! differences are named exactly (`compare`); then with lines of dots taken as lines left out (`elision`); then by the
//! runs of characters that it shares with the text (`similar`). All of it takes time and memory linear in the text.

mod aligned;
mod boundaries;
mod compare;
mod comparison;
mod describe;
mod elision;
mod fold;
mod ngrams;
mod render;
mod similar;
mod variants;
mod whitespace;

use std::ops::Range;

use memchr::memmem;

use self::boundaries::{is_line_end, is_line_start, is_whole_words, line_at};
use self::compare::include_whitespace;
use self::comparison::Comparison;
use self::fold::{fold, unfold};
use self::variants::{NeedleVariant, variants, without_outer_word};
use crate::lines::LineEnding;
use crate::order::sort_by_numbers;

/// Largest hint, in bytes.
pub const HINT_BYTES_MAX: usize = 2048;
/// Most places that a hint names.
pub const NEAR_MATCHES_MAX: usize = 3;

/// Most places compared to choose the nearest, and most bytes compared in them; always more places than are named.
const CANDIDATES_MAX: usize = 64;
const COMPARED_BYTES_MAX: usize = 64 << 10;
/// A needle that folds to fewer bytes matches whole words only.
const WHOLE_WORDS_BELOW: usize = 8;

/// A place that a needle nearly matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMatch {
    /// The bytes that a correct needle would have matched.
    pub bytes: Range<usize>,
    /// The lines that these bytes are in.
    pub lines: Range<usize>,
    /// The differences, each kind once. Empty if nothing differs.
    pub differences: Vec<Difference>,
    /// The offset in the text of the first difference.
    pub first_difference: usize,
}

/// The side that has something the other one lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSide {
    File,
    Needle,
}

/// A kind of difference. Lines count from 0, those of the file from its start and those of the needle from its.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// One side indents with tabs, the other with spaces.
    TabsForSpaces {
        side: TextSide,
    },
    /// One side indents by `by` more tabs or spaces.
    IndentDepth {
        side: TextSide,
        by: usize,
        tabs: bool,
    },
    /// Indentation differs in another way, or not by the same amount everywhere.
    Indentation,
    InnerWhitespace,
    TrailingWhitespace {
        side: TextSide,
    },
    BlankLines {
        side: TextSide,
        by: usize,
    },
    /// One side has a line break where the other has none.
    LineBreaks,
    /// The needle ends with a line break and the text does not.
    NoFinalBreak,
    LineEndings {
        file: LineEnding,
        needle: LineEnding,
    },
    /// Whitespace other than space and tab, or a character of no width.
    UnusualWhitespace {
        side: TextSide,
        character: char,
    },
    /// Quotes, dashes, an ellipsis.
    Typography {
        file: String,
        needle: String,
    },
    /// Equal letters as other code points, such as NFC and NFD.
    Composition,
    Case,
    Escapes {
        side: TextSide,
        escape: String,
    },
    Entities {
        side: TextSide,
        entity: String,
    },
    /// A byte order mark at the start of the needle; that of a file is not part of its text.
    ByteOrderMark,
    LineNumbers,
    DiffMarkers,
    Fence,
    /// A word at the start or end of the needle that the text does not have there.
    ExtraWord {
        at_start: bool,
        text: String,
    },
    /// A line of dots in the needle, and the lines of the file it stands for.
    ElidedLines {
        dots: usize,
        lines: Range<usize>,
    },
    /// Lines that differ. The range of a side that has none is empty, and is where they would be.
    DifferentLines {
        file: Range<usize>,
        needle: Range<usize>,
    },
}

impl NearMatch {
    fn new(text: &str, bytes: Range<usize>) -> Self {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        let lines = line_at(text, bytes.start)..line_at(text, text.floor_char_boundary(last)) + 1;
        Self { first_difference: bytes.start, lines, bytes, differences: Vec::new() }
    }

    /// Adds the reasons that were undone to get `variant`.
    fn with_undone(mut self, variant: &NeedleVariant) -> Self {
        self.differences.splice(..0, variant.undone.iter().cloned());
        self
    }
}

/// Returns the hint for an agent whose `needle` does not occur in `text`: the nearest places and why they differ, or
/// that nothing is near.
pub fn explain(text: &str, needle: &str) -> String {
    render::hint(text, needle, &nearest(text, needle))
}

/// Returns the places that `needle` most nearly matches, which are about equally near; none if none is near.
pub fn near_matches(text: &str, needle: &str) -> Vec<NearMatch> {
    let mut places = nearest(text, needle);
    places.truncate(NEAR_MATCHES_MAX);
    places
}

/// Returns the places as [`near_matches`] does, and one more if there are more.
fn nearest(text: &str, needle: &str) -> Vec<NearMatch> {
    let rest = needle.trim_start_matches('\u{feff}');
    if rest.len() < needle.len() {
        let mut places = nearest(text, rest);
        for near in &mut places {
            near.differences.insert(0, Difference::ByteOrderMark);
        }
        return places;
    }
    let folded = fold(text);
    let variants = variants(needle);
    let mut found: Vec<_> =
        variants.iter().flat_map(|variant| find_variant(text, &folded, variant)).collect();
    if found.is_empty() {
        let elided = |variant: &NeedleVariant| {
            Some(vec![elision::find_elided(text, &folded, &variant.needle)?.with_undone(variant)])
        };
        if let Some(places) = variants.iter().find_map(elided) {
            return places;
        }
        found = without_outer_word(needle)
            .iter()
            .flat_map(|variant| find_variant(text, &folded, variant))
            .collect();
        found.retain(|(_, near)| is_at_line_edge(text, near));
    }
    if found.is_empty() {
        let mut best = 0;
        for variant in &variants {
            let similar = similar::find_similar(text, &folded, &variant.needle);
            if let Some((share, _)) = similar.first()
                && *share > best
            {
                best = *share;
                found =
                    similar.into_iter().map(|(_, near)| (0, near.with_undone(variant))).collect();
            }
        }
    }
    sort_by_numbers(&mut found, |(spots, near)| (*spots, near.bytes.start));
    found.dedup_by(|(_, later), (_, kept)| later.bytes == kept.bytes);
    let least = found.first().map_or(0, |(spots, _)| *spots);
    let nearest = found.into_iter().take_while(|(spots, _)| *spots == least);
    nearest.map(|(_, near)| near).take(NEAR_MATCHES_MAX + 1).collect()
}

/// Finds the variant in the text: exactly, or else folded. Returns each place with the number of spots that differ.
fn find_variant(text: &str, folded: &[u8], variant: &NeedleVariant) -> Vec<(usize, NearMatch)> {
    let needle = &*variant.needle;
    let wanted = fold(needle);
    if wanted.is_empty() {
        return Vec::new();
    }
    let candidates =
        (COMPARED_BYTES_MAX / needle.len()).clamp(NEAR_MATCHES_MAX + 1, CANDIDATES_MAX);
    let ranges = |haystack: &[u8], needle: &[u8]| -> Vec<Range<usize>> {
        let starts = memmem::find_iter(haystack, needle).take(candidates);
        starts.map(|start| start..start + needle.len()).collect()
    };
    let whole_words =
        |place: &Range<usize>| wanted.len() >= WHOLE_WORDS_BELOW || is_whole_words(text, place);
    let undone = variant.undone.len();
    let mut exact = ranges(text.as_bytes(), needle.as_bytes());
    exact.retain(whole_words);
    if !exact.is_empty() {
        let near = |place| (undone, NearMatch::new(text, place).with_undone(variant));
        return exact.into_iter().take(NEAR_MATCHES_MAX + 1).map(near).collect();
    }
    let mut found = unfold(text, &ranges(folded, &wanted));
    // An indented needle of several lines must begin at the start of a line.
    let indented = needle.starts_with([' ', '\t']) && needle.trim().contains('\n');
    found.retain(|place| whole_words(place) && (!indented || is_line_start(text, place.start)));
    let mut compared: Vec<_> = found
        .into_iter()
        .filter_map(|place| {
            let place = include_whitespace(text, place, needle);
            let mut comparison = Comparison::default();
            comparison.compare(text, place.clone(), needle)?;
            Some((place, comparison))
        })
        .collect();
    // `NearMatch` counts lines, so it is made only for places that may be named.
    sort_by_numbers(&mut compared, |(place, comparison)| (comparison.spots, place.start));
    compared.truncate(NEAR_MATCHES_MAX + 1);
    let near = |(place, comparison): (Range<usize>, Comparison)| {
        let mut near = NearMatch::new(text, place);
        near.first_difference = comparison.first.unwrap_or(near.bytes.start);
        near.differences = comparison.differences;
        (undone + comparison.spots, near.with_undone(variant))
    };
    compared.into_iter().map(near).collect()
}

/// True if `near`, found without the needle's first or last word, starts or ends at the edge of a line. Elsewhere that
/// word is not an extra one but differs from the one in the text.
fn is_at_line_edge(text: &str, near: &NearMatch) -> bool {
    let end = near.bytes.start + text[near.bytes.clone()].trim_end().len();
    near.differences.iter().all(|difference| match difference {
        Difference::ExtraWord { at_start: true, .. } => is_line_start(text, near.bytes.start),
        Difference::ExtraWord { at_start: false, .. } => is_line_end(text, end),
        _ => true,
    })
}
