//! Refuses an edit whose lines are not what the caller last saw, and shows the lines as they are.

use std::fmt::Write as _;
use std::ops::Range;

use files::Hash;
use serde_json::{Map, json};
use text::lines::{count, lines};

use crate::Failure;
use crate::answer::{cut, short};

/// Most lines that are shown, and most characters of each.
const SHOWN: usize = 60;
const WIDTH: usize = 300;

/// Most bytes that are hashed to find where the old lines are now.
const SOUGHT: usize = 64 << 20;

pub(super) use ::code::context::hash_of_lines;

/// Makes the failure for an edit whose file, or lines, do not have the expected hash.
pub(super) fn refuse(
    path: &str,
    text: &str,
    file_hash: Hash,
    range: Option<&Range<usize>>,
    expected: Hash,
) -> Failure {
    let failure = Failure::stale(&short(path), Some(file_hash));
    let Some(range) = range else { return failure };
    let total = count(text);
    let now = range.start.min(total)..range.end.min(total);
    let shown: Vec<_> = lines(text)
        .skip(now.start)
        .take(now.len().min(SHOWN))
        .map(|line| cut(&text[line.start..line.end], WIDTH))
        .collect();
    let mut hint = format!("its hash is {file_hash} now; ");
    let mut details = Map::new();
    if let Some(hash) = hash_of_lines(text, &now) {
        let (start, end) = (now.start + 1, now.end);
        details.insert("start_line".into(), start.into());
        details.insert("end_line".into(), end.into());
        details.insert("lines_hash".into(), hash.to_string().into());
        details.insert("lines".into(), json!(shown));
        let _ = write!(hint, "lines {start}-{end} have changed; their hash is {hash}");
    } else {
        let _ = write!(hint, "it has {total} lines");
    }
    if let Some(moved) = find(text, range.len(), expected) {
        let (start, end) = (moved.start + 1, moved.end);
        details.insert("moved_to".into(), json!({ "start_line": start, "end_line": end }));
        let _ = write!(hint, "; the lines that `expected_hash` means are now {start}-{end}");
    }
    for (number, line) in (now.start + 1..).zip(&shown) {
        let _ = write!(hint, "\n{number}: {line}");
    }
    failure.with_hint(hint).with_details(details)
}

/// Finds the lines with that hash, if they are in one place only.
fn find(text: &str, number: usize, hash: Hash) -> Option<Range<usize>> {
    let mut left = SOUGHT;
    let mut found = None;
    let lasts = lines(text).skip(number.checked_sub(1)?);
    for (start, (first, last)) in lines(text).zip(lasts).enumerate() {
        let bytes = &text.as_bytes()[first.start..last.next];
        left = left.checked_sub(bytes.len())?;
        if Hash::of(bytes) == hash && found.replace(start..start + number).is_some() {
            return None;
        }
    }
    found
}
