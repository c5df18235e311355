//! Outlines, references and syntax errors, through what the crate offers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::needless_raw_string_hashes, reason = "as expect-test writes them")]

mod blocks;
mod bounds;
mod headers;
mod languages;
mod more_languages;
mod more_parts;
mod plain;
mod references;
mod syntax;

use code::outline::{Outline, Part};

/// Nobody stops it.
fn outline(path: &str, text: &str) -> Outline {
    code::outline::outline(path, text, &|| false)
}

/// One line a part: its lines, its kind, its name with those around it, its head, and what documents it.
fn shown(outline: &Outline) -> String {
    outline.parts.iter().map(|part| line(part) + "\n").collect()
}

/// The parts of a text: the kind and the path of each.
fn named(path: &str, text: &str) -> Vec<String> {
    let outline = outline(path, text);
    outline.parts.iter().map(|part| format!("{} {}", part.kind.as_str(), part.path())).collect()
}

fn line(part: &Part) -> String {
    let lines = part.all_lines();
    let doc = part.doc.as_ref().map_or_else(String::new, |doc| format!(" // {}", doc.text));
    let (first, last) = (lines.first, lines.last);
    format!("{first}-{last} {} {}: {}{doc}", part.kind.as_str(), part.path(), part.signature)
}
