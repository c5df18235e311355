//! The named parts of what may be source code, or not at all.

use std::ops::Range;

use code::outline::{
    DOC_CHARS_MAX, NAME_CHARS_MAX, PARTS_MAX, SCOPE_DEPTH_MAX, SIGNATURE_CHARS_MAX,
};
use code::outline::{Outline, Part, outline, part_at};
use code::references::references;
use code::syntax;
use text::LineRange;

use crate::decode::split;
use crate::parts::Parts;

/// A file of each language, and of none.
const NAMES: [&str; 22] = [
    "a.sh", "a.c", "a.cpp", "a.cs", "a.css", "a.go", "a.html", "a.java", "a.js", "a.json", "a.kt",
    "a.php", "a.py", "a.rb", "a.rs", "a.swift", "a.toml", "a.tsx", "a.ts", "a.yaml", "a.h", "a",
];

/// All that an outline says of a text is there, in order and on the lines that it says, and so is all that does not parse.
pub fn outlines(bytes: &[u8]) {
    let mut parts = Parts::of(bytes);
    let name = NAMES[usize::from(parts.byte()) % NAMES.len()];
    let text = parts.text();
    let found = outline(name, &text, &|| false);
    let starts = line_starts(&text);
    let within = |bytes: &Range<usize>, lines: &LineRange| {
        assert!(text.get(bytes.clone()).is_some(), "{bytes:?}");
        assert_eq!(line_of(&starts, bytes.start), lines.first, "{bytes:?}");
        let last = bytes.end.max(bytes.start + 1) - 1;
        assert_eq!(line_of(&starts, last), lines.last, "{bytes:?} {lines:?}");
    };
    assert!(found.parts.len() <= PARTS_MAX);
    assert!(found.parts.is_sorted_by_key(|part| part.bytes.start));
    for part in &found.parts {
        within(&part.bytes, &part.lines);
        if let Some(doc) = &part.doc {
            within(&doc.bytes, &doc.lines);
            assert!(doc.text.chars().count() <= DOC_CHARS_MAX);
        }
        check_name(&text, &starts, part);
    }
    check_rest(name, &text, &found, starts.len());
}

fn check_name(text: &str, starts: &[usize], part: &Part) {
    // Blanks may be others, and what is too long is cut.
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let written = text.get(part.name_bytes.clone()).expect("a name stands in the text");
    assert!(bare(written).contains(&bare(part.name.trim_end_matches('…'))), "{written:?} {part:?}");
    let all = &text[part.bytes.clone()];
    let words = part.signature.trim_end_matches('…').split_whitespace();
    words.for_each(|word| assert!(all.contains(word), "{word:?} {part:?}"));
    assert_eq!(line_of(starts, part.name_bytes.start), part.name_line);
    assert!(!part.name.is_empty() && part.name.chars().count() <= NAME_CHARS_MAX, "{part:?}");
    assert!(part.signature.chars().count() <= SIGNATURE_CHARS_MAX);
    assert!(part.scope.len() <= SCOPE_DEPTH_MAX);
}

/// Errors of syntax, uses of a name, and the part around each line.
fn check_rest(name: &str, text: &str, found: &Outline, lines: usize) {
    for error in syntax::errors(name, text, &|| false).into_iter().flatten() {
        assert!(text.get(error.bytes.clone()).is_some(), "{error:?}");
        assert!(error.line < lines.max(1) && !error.message.is_empty(), "{error:?}");
    }
    if let Some(part) = found.parts.last() {
        for used in references(name, text, &part.name, found, &|| false) {
            assert_eq!(text.get(used), Some(part.name.as_str()));
        }
    }
    for line in 0..lines.min(16) {
        let around = part_at(found, line).map(Part::all_lines);
        assert!(around.is_none_or(|around| (around.first..=around.last).contains(&line)));
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let mut start = 0;
    let starts = split(text).into_iter().map(|line| {
        start += line.len();
        start - line.len()
    });
    starts.collect()
}

/// The line that a byte is in, or the last one.
fn line_of(starts: &[usize], at: usize) -> usize {
    starts.partition_point(|start| *start <= at).saturating_sub(1)
}
