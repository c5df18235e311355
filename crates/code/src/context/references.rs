//! References: finds where a name is used.

use std::collections::BTreeMap;
use std::ops::Range;

use text::lines::count;

use super::source::{Reader, Source, Unreadable};
use super::survey::Mentions;
use super::symbol::Match;
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::{Outline, Part, block_at};
use crate::rank::is_test;
use crate::references::references;

/// Number of files that are parsed at once.
const TOGETHER: usize = 8;
/// A reference has the position of its file times this, plus that of its line among the lines of the file: so a page
/// can begin where the one before ended, without parsing the files before it again. No more lines of a file are shown.
const LINES: usize = 1 << 14;

/// A file that contains names.
struct File<'a> {
    path: &'a str,
    names: Vec<&'a str>,
    words: usize,
    near: bool,
}

pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    gathered: &mut Gathered,
) {
    let asked = mentions.iter().filter(|mentions| !mentions.is_guessed);
    let (exact, other): (Vec<_>, Vec<_>) =
        asked.partition(|mentions| mentions.symbol.matching == Match::Exact);
    if !other.is_empty() || mentions.is_empty() {
        let note = "references are told of names in `symbols`, with `match`: \"exact\"";
        gathered.notes.push(note.to_owned());
    }
    if exact.is_empty() {
        return;
    }
    gathered.notes.push("references are syntactic, not resolved".to_owned());
    let files = files(&exact);
    let start = wanted.start.of(Section::References);
    let (first, mut seen) = (start / LINES, start % LINES);
    let last = files.len().min(first.saturating_add(MOST_PARSED));
    let mut next = first.min(last);
    let mut parsed = next;
    let (mut room, mut left) = (wanted.max_results, 0_usize);
    while next < last && room > 0 && !reader.is_over() {
        parsed = last.min(next + TOGETHER);
        let chunk = &files[next..parsed];
        let skipped = |file: &File<'_>| if file.path == files[next].path { seen } else { 0 };
        let used = parallel(chunk, |file| Used::of(reader, file, skipped(file), room).ok());
        for used in used {
            let Some(used) = used else {
                next += 1;
                continue;
            };
            if room == 0 {
                left += used.lines;
                continue;
            }
            let shown = used.shown.into_iter().take(room);
            let mut behind = seen;
            for found in shown {
                gathered
                    .found
                    .extend(found.map(|found| Found { at: next * LINES + behind, ..found }));
                behind += 1;
            }
            room -= behind - seen;
            if behind < used.lines {
                left += used.lines - behind;
                seen = behind;
            } else {
                (next, seen) = (next + 1, 0);
            }
        }
    }
    gathered.end.set(Section::References, next * LINES + seen);
    let unparsed: usize = files.iter().skip(parsed).map(|file| file.words).sum();
    gathered.left.add(Section::References, left.saturating_add(unparsed));
    if unparsed > 0 {
        gathered.notes.push(format!(
            "of the references that are left out, {unparsed} were counted as words: definitions, comments and strings may be among them"
        ));
    }
}

/// Returns every file once, by path; tests come last, and before them files that may mean another symbol of the same
/// name.
fn files<'a>(mentions: &[&'a Mentions]) -> Vec<File<'a>> {
    let mut by_path: BTreeMap<&str, File<'a>> = BTreeMap::new();
    for mentions in mentions {
        for file in &mentions.files {
            let path = file.path.as_str();
            let known = by_path.entry(path).or_insert_with(|| File {
                path,
                names: Vec::new(),
                words: 0,
                near: false,
            });
            known.near |= file.near;
            if !known.names.contains(&mentions.symbol.name()) {
                known.names.push(mentions.symbol.name());
                known.words += file.words as usize;
            }
        }
    }
    let mut files: Vec<File<'a>> = by_path.into_values().collect();
    text::sort_by_numbers(&mut files, |file| (is_test(file.path).into(), (!file.near).into()));
    files
}

/// The lines of a file that use a name.
struct Used {
    /// Number of these lines.
    lines: usize,
    /// Lines that may be shown, in order. `None` for a line that cannot be.
    shown: Vec<Option<Found>>,
}

impl Used {
    /// Prepares at most `room` lines, without the first `skipped`.
    fn of(
        reader: &Reader<'_>,
        file: &File<'_>,
        skipped: usize,
        room: usize,
    ) -> Result<Self, Unreadable> {
        reader.look_into(file.path, |source| {
            let outline = reader.outline(source);
            let text = source.text.as_str();
            let mut lines = Vec::new();
            for name in &file.names {
                let uses = references(&source.path, text, name, &outline, &|| reader.is_over());
                lines.extend(lines_of(source, &uses));
            }
            lines.sort_unstable();
            lines.dedup();
            lines.truncate(LINES - 1);
            let shown = lines.iter().skip(skipped).take(room);
            let shown = shown.map(|line| found(source, &outline, *line)).collect();
            Self { lines: lines.len(), shown }
        })
    }
}

fn found(source: &Source, outline: &Outline, line: usize) -> Option<Found> {
    let found = source.found(Section::References, outline.language, line..line + 1)?;
    let around = block_at(outline, line);
    Some(Found { symbol: around.map(Part::path), kind: around.map(|part| part.kind), ..found })
}

/// Returns the lines of these places, each once. The places must be in order.
fn lines_of(source: &Source, places: &[Range<usize>]) -> Vec<usize> {
    let text = source.text.as_str();
    let (mut line, mut at) = (0, 0);
    let mut lines = Vec::new();
    for place in places {
        // A place is never between the two characters of a line break.
        line += count(&text[at..place.start]).saturating_sub(1);
        let ends = text[at..place.start].ends_with(['\n', '\r']);
        line += usize::from(ends);
        at = place.start;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}
