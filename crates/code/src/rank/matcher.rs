//! Matcher: finds the terms of a query in a text.

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind, Span};

use crate::words::{self, Term, TermKind};

/// Bytes of a term that are searched for; the rest is compared where these are found. A few letters have few spellings
/// in upper and lower case.
const PREFIX_BYTES: usize = 3;
/// Bytes of a term that are searched for if there are at most [`FEW_TERMS_MAX`]: their spellings are no more than
/// [`PATTERNS_MAX`].
const LONG_PREFIX_BYTES: usize = 4;
const FEW_TERMS_MAX: usize = 7;
/// Most patterns of the search that compares many bytes at once.
const PATTERNS_MAX: usize = 127;

/// Finds the terms of a query in any text.
#[derive(Debug)]
pub(super) struct TermMatcher {
    terms: Vec<Term>,
    prefixes: PrefixSearch,
    /// Terms that start with each pattern, by its number.
    groups: Vec<Vec<usize>>,
}

#[derive(Debug)]
enum PrefixSearch {
    /// Searches many bytes at once; every spelling of a prefix is a pattern of its own.
    Spelled(Searcher),
    /// Searches byte by byte, in either case.
    Folded(AhoCorasick),
    None,
}

/// An occurrence of a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct TermMatch {
    pub(super) term: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl TermMatcher {
    pub(super) fn new(terms: &[Term]) -> Self {
        let folded: Vec<Vec<u8>> = prefixes(terms).into_iter().map(<[u8]>::to_vec).collect();
        let spelled: Vec<Vec<u8>> = folded.iter().flat_map(|prefix| spellings(prefix)).collect();
        let (prefixes, patterns) = match PrefixSearch::spelled(&spelled) {
            Some(prefixes) => (prefixes, spelled),
            None => (PrefixSearch::folded(&folded), folded),
        };
        let starts = |term: &Term, pattern: &[u8]| {
            term.text.get(..pattern.len()).is_some_and(|start| start.eq_ignore_ascii_case(pattern))
        };
        let group = |pattern: &Vec<u8>| {
            (0..terms.len()).filter(|term| starts(&terms[*term], pattern)).collect()
        };
        Self { terms: terms.to_vec(), prefixes, groups: patterns.iter().map(group).collect() }
    }

    pub(super) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Calls `each` for every term in `text`, in the order of their positions.
    pub(super) fn find(&self, text: &[u8], mut each: impl FnMut(TermMatch)) {
        let mut at = 0;
        while let Some((pattern, found)) = self.prefixes.find(text, at) {
            for term in &self.groups[pattern] {
                if let Some(end) = end_of(&self.terms[*term], text, found.start) {
                    each(TermMatch { term: *term, start: found.start, end });
                }
            }
            // In `webSocket` a word starts inside the prefix that was found for another.
            let mut inside = found.start + 1..found.end;
            at = inside.find(|at| words::starts(text, *at)).unwrap_or(found.end);
        }
    }
}

impl PrefixSearch {
    /// Makes a search for many bytes at once. `None` if there are too many patterns, or the processor does not support
    /// it.
    fn spelled(patterns: &[Vec<u8>]) -> Option<Self> {
        if patterns.len() > PATTERNS_MAX {
            return None;
        }
        let mut search = packed::Config::new().heuristic_pattern_limits(false).builder();
        search.extend(patterns).build().map(Self::Spelled)
    }

    fn folded(patterns: &[Vec<u8>]) -> Self {
        let mut search = AhoCorasick::builder();
        search.match_kind(MatchKind::LeftmostFirst).ascii_case_insensitive(true);
        match search.build(patterns) {
            Ok(automaton) if !patterns.is_empty() => Self::Folded(automaton),
            _ => Self::None,
        }
    }

    /// Finds the next pattern at or after `at`. Returns its number and its position.
    fn find(&self, text: &[u8], at: usize) -> Option<(usize, Span)> {
        match self {
            Self::Spelled(searcher) => {
                let found = searcher.find_in(text, Span::from(at..text.len()))?;
                Some((found.pattern().as_usize(), found.span()))
            }
            Self::Folded(automaton) => {
                let found = automaton.find(Input::new(text).span(at..text.len()))?;
                Some((found.pattern().as_usize(), found.span()))
            }
            Self::None => None,
        }
    }
}

/// Returns the prefixes of the terms, none of which starts with another.
fn prefixes(terms: &[Term]) -> Vec<&[u8]> {
    let most = if terms.len() <= FEW_TERMS_MAX { LONG_PREFIX_BYTES } else { PREFIX_BYTES };
    let mut prefixes: Vec<&[u8]> =
        terms.iter().map(|term| &term.text[..term.text.len().min(most)]).collect();
    prefixes.sort_unstable();
    prefixes.dedup_by(|later, earlier| later.starts_with(earlier));
    prefixes
}

/// Returns every spelling of a prefix in upper and lower case.
fn spellings(prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut spellings = vec![Vec::new()];
    for byte in prefix {
        let upper = byte.to_ascii_uppercase();
        let letters = if upper == *byte { vec![upper] } else { vec![upper, *byte] };
        spellings = spellings
            .iter()
            .flat_map(|start| letters.iter().map(move |letter| [&start[..], &[*letter]].concat()))
            .collect();
    }
    spellings
}

/// Returns where `term` ends if it is at `start`.
fn end_of(term: &Term, text: &[u8], start: usize) -> Option<usize> {
    let stop = start + term.text.len();
    if !text.get(start..stop)?.eq_ignore_ascii_case(&term.text) {
        return None;
    }
    match term.kind {
        TermKind::Identifier => {
            let apart = |at: Option<usize>| {
                at.and_then(|at| text.get(at)).is_none_or(|byte| !words::is_identifier(*byte))
            };
            (apart(start.checked_sub(1)) && apart(Some(stop))).then_some(stop)
        }
        // Not every script has spaces between its words.
        TermKind::Word if !term.text[0].is_ascii() => Some(stop),
        TermKind::Word => {
            if !words::starts(text, start) {
                return None;
            }
            let end = words::end(text, stop);
            (words::stem(&text[start..end]) == term.text.len()).then_some(end)
        }
    }
}
