//! What an edit is told whose lines are not what the caller last saw.

use std::fmt::Write as _;
use std::ops::Range;

use files::Hash;
use serde_json::{Map, Value, json};
use text::lines::{Line, lines};

use crate::Failure;
use crate::answer::{cut, short};

/// Lines and characters of a line that are shown.
const SHOWN: usize = 60;
const WIDTH: usize = 300;

/// Bytes that are hashed at most to find out where the old lines are now.
const SOUGHT: usize = 64 << 20;

/// The hash of some lines: of their bytes, line breaks included.
pub(super) fn hash_of_lines(text: &str, range: &Range<usize>) -> Option<Hash> {
    let all: Vec<_> = lines(text).skip(range.start).take(range.len()).collect();
    let (first, last) = (all.first()?, all.last()?);
    (all.len() == range.len()).then(|| Hash::of(&text.as_bytes()[first.start..last.next]))
}

/// The file, or the lines that the edit is about, are others than those with that hash.
pub(super) fn refuse(
    path: &str,
    text: &str,
    file_hash: Hash,
    range: Option<&Range<usize>>,
    expected: Hash,
) -> Failure {
    let failure = Failure::stale(&short(path), Some(file_hash));
    let Some(range) = range else { return failure };
    let all: Vec<_> = lines(text).collect();
    let now = range.start.min(all.len())..range.end.min(all.len());
    let mut hint = format!("its hash is {file_hash} now; ");
    let mut details = Map::new();
    if now.is_empty() {
        let _ = write!(hint, "it has {} lines", all.len());
    } else {
        let hash = Hash::of(&text.as_bytes()[all[now.start].start..all[now.end - 1].next]);
        details.insert("start_line".into(), (now.start + 1).into());
        details.insert("end_line".into(), now.end.into());
        details.insert("lines_hash".into(), hash.to_string().into());
        details.insert("lines".into(), shown(text, &all[now.clone()]));
        let _ = write!(hint, "lines {}-{} are others, with hash {hash}", now.start + 1, now.end);
    }
    if let Some(moved) = find(text, &all, range.len(), expected) {
        let (start, end) = (moved.start + 1, moved.end);
        details.insert("moved_to".into(), json!({ "start_line": start, "end_line": end }));
        let _ = write!(hint, "; those that you mean are lines {start}-{end} now");
    }
    for (number, line) in all[now.clone()].iter().take(SHOWN).enumerate() {
        let number = now.start + number + 1;
        let _ = write!(hint, "\n{number}: {}", cut(&text[line.start..line.end], WIDTH));
    }
    failure.with_hint(hint).with_details(details)
}

fn shown(text: &str, lines: &[Line]) -> Value {
    let lines = lines.iter().take(SHOWN).map(|line| cut(&text[line.start..line.end], WIDTH));
    lines.collect::<Vec<_>>().into()
}

/// Where the lines with that hash are, if they are in one place only.
fn find(text: &str, all: &[Line], number: usize, hash: Hash) -> Option<Range<usize>> {
    let mut left = SOUGHT;
    let mut found = None;
    for (start, block) in all.windows(number.max(1)).enumerate() {
        let bytes = &text.as_bytes()[block[0].start..block[block.len() - 1].next];
        left = left.checked_sub(bytes.len())?;
        if Hash::of(bytes) == hash && found.replace(start..start + number).is_some() {
            return None;
        }
    }
    found
}
