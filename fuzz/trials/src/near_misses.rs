//! What an agent is told of a string that is not there.

use std::sync::Arc;

use text::exact::{Matching, Pick, StagedText};
use text::nearest::{HINT_BYTES_MAX, NEAR_MATCHES_MAX, NearMatch, explain, near_matches};
use text::{StringEdit, StringError, Text};

use crate::decode::split;
use crate::parts::Parts;
use crate::string_edits::slice;

/// What would make `ignore_whitespace` of it is told only if it works.
const LOOSELY: &str = "or use match: \"ignore_whitespace\"";

/// There is a hint, and it is short; every place it names is one, on the lines that it says; what stands there is found
/// when it is looked for; and it advises nothing that does not work.
pub fn near_misses(bytes: &[u8]) {
    let mut parts = Parts::of(bytes);
    let how = parts.byte();
    let text = parts.text();
    let needle = if how & 1 == 0 { parts.text() } else { misquoted(&text, &mut parts) };
    let hint = explain(&text, &needle);
    assert!(!hint.is_empty() && hint.len() <= HINT_BYTES_MAX);
    let places = near_matches(&text, &needle);
    assert!(places.len() <= NEAR_MATCHES_MAX);
    for near in &places {
        check(&text, &needle, near);
    }
    if hint.ends_with(LOOSELY) && !text.contains(&needle) {
        check_loosely(&text, &needle);
    }
}

/// A part of the text with something else in it.
fn misquoted(text: &str, parts: &mut Parts<'_>) -> String {
    let mut quote = slice(text, parts);
    let start = quote.floor_char_boundary(parts.number(quote.len() + 1));
    let end = quote.floor_char_boundary(start + usize::from(parts.byte() % 16));
    quote.replace_range(start..end, &parts.text());
    quote
}

fn check(text: &str, needle: &str, near: &NearMatch) {
    let there = text.get(near.bytes.clone()).expect("a place is in the text");
    assert_eq!(near.differences.is_empty(), there == needle);
    assert!(near.first_difference <= text.len());
    assert!(near.lines.start < near.lines.end);
    let lines = split(text);
    let before: usize = lines[..near.lines.start].iter().map(|line| line.len()).sum();
    let until: usize = lines[..near.lines.end].iter().map(|line| line.len()).sum();
    assert!(before <= near.bytes.start && near.bytes.end <= until, "the lines of {near:?}");
}

/// What was advised does not miss. It may still be refused, since nobody knows yet what is to be put there.
fn check_loosely(text: &str, needle: &str) {
    let Ok(text) = Text::decode(Arc::new(text.as_bytes().to_vec())) else { return };
    if text.has_bom() {
        return;
    }
    let mut staged = StagedText::new(&text, usize::MAX);
    let edit = StringEdit {
        old: needle,
        new: needle,
        pick: Pick::Only,
        count: None,
        matching: Matching::IgnoreWhitespace,
    };
    let outcome = staged.apply(edit);
    let is_missed =
        matches!(outcome, Err(StringError::NoMatch { .. } | StringError::UnevenIndent { .. }));
    assert!(!is_missed, "{outcome:?}");
}
