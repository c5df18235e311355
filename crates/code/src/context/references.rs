//! References: finds where a name is used.

use std::collections::BTreeMap;
use std::ops::Range;

use text::lines::count;

use super::source::{SourceError, SourceFile, SourceReader};
use super::survey::SymbolMentions;
use super::symbol::NameMatching;
use super::{CodeContext, ContextItem, ContextRequest, PARSED_FILES_MAX, Section, parallel};
use crate::outline::{Outline, Part, part_at};
use crate::rank::is_test;
use crate::references::references;

/// Number of files that are parsed at once.
const PARSED_AT_ONCE: usize = 8;
/// A reference has the position of its file times this, plus that of its line among the lines of the file: so a page
/// can begin where the one before ended, without parsing the files before it again. No more lines of a file are shown.
const FILE_LINES_MAX: usize = 1 << 14;

/// A file that contains names.
struct ReferencingFile<'a> {
    path: &'a str,
    names: Vec<&'a str>,
    words: usize,
    has_scope: bool,
}

pub(super) fn gather(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    mentions: &[SymbolMentions],
    context: &mut CodeContext,
) {
    let asked = mentions.iter().filter(|mentions| !mentions.is_guessed);
    let (exact, other): (Vec<_>, Vec<_>) =
        asked.partition(|mentions| mentions.symbol.matching == NameMatching::Exact);
    if !other.is_empty() || mentions.is_empty() {
        let note = "references are listed only for names in `symbols`, with `match`: \"exact\"";
        context.notes.push(note.to_owned());
    }
    if exact.is_empty() {
        return;
    }
    context.notes.push("references are found by syntax, not resolved".to_owned());
    let files = files_to_search(&exact);
    let start = request.start.of(Section::References);
    let (first, mut seen) = (start / FILE_LINES_MAX, start % FILE_LINES_MAX);
    let last = files.len().min(first.saturating_add(PARSED_FILES_MAX));
    let mut next = first.min(last);
    let mut parsed = next;
    let (mut room, mut left) = (request.max_results, 0_usize);
    while next < last && room > 0 && !reader.is_over() {
        parsed = last.min(next + PARSED_AT_ONCE);
        let chunk = &files[next..parsed];
        let skipped =
            |file: &ReferencingFile<'_>| if file.path == files[next].path { seen } else { 0 };
        let used =
            parallel(chunk, |file| FileReferences::of(reader, file, skipped(file), room).ok());
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
                context.items.extend(found.map(|found| ContextItem {
                    position: next * FILE_LINES_MAX + behind,
                    ..found
                }));
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
    context.end.set(Section::References, next * FILE_LINES_MAX + seen);
    let unparsed: usize = files.iter().skip(parsed).map(|file| file.words).sum();
    context.left.add(Section::References, left.saturating_add(unparsed));
    if unparsed > 0 {
        context.notes.push(format!(
            "{unparsed} of the references left out were counted as words, so they may include definitions, comments and strings"
        ));
    }
}

/// Returns every file once, by path; tests come last, and before them files that may mean another symbol of the same
/// name.
fn files_to_search<'a>(mentions: &[&'a SymbolMentions]) -> Vec<ReferencingFile<'a>> {
    let mut by_path: BTreeMap<&str, ReferencingFile<'a>> = BTreeMap::new();
    for mentions in mentions {
        for file in &mentions.files {
            let path = file.path.as_str();
            let known = by_path.entry(path).or_insert_with(|| ReferencingFile {
                path,
                names: Vec::new(),
                words: 0,
                has_scope: false,
            });
            known.has_scope |= file.has_scope;
            if !known.names.contains(&mentions.symbol.name()) {
                known.names.push(mentions.symbol.name());
                known.words += file.words as usize;
            }
        }
    }
    let mut files: Vec<ReferencingFile<'a>> = by_path.into_values().collect();
    text::sort_by_numbers(&mut files, |file| (is_test(file.path).into(), (!file.has_scope).into()));
    files
}

/// The lines of a file that use a name.
struct FileReferences {
    /// Number of these lines.
    lines: usize,
    /// Lines that may be shown, in order. `None` for a line that cannot be.
    shown: Vec<Option<ContextItem>>,
}

impl FileReferences {
    /// Prepares at most `room` lines, without the first `skipped`.
    fn of(
        reader: &SourceReader<'_>,
        file: &ReferencingFile<'_>,
        skipped: usize,
        room: usize,
    ) -> Result<Self, SourceError> {
        reader.with_file(file.path, |source| {
            let outline = reader.outline(source);
            let text = source.text.as_str();
            let mut lines = Vec::new();
            for name in &file.names {
                let uses = references(&source.path, text, name, &outline, &|| reader.is_over());
                lines.extend(lines_with(source, &uses));
            }
            lines.sort_unstable();
            lines.dedup();
            lines.truncate(FILE_LINES_MAX - 1);
            let shown = lines.iter().skip(skipped).take(room);
            let shown = shown.map(|line| reference_item(source, &outline, *line)).collect();
            Self { lines: lines.len(), shown }
        })
    }
}

fn reference_item(source: &SourceFile, outline: &Outline, line: usize) -> Option<ContextItem> {
    let found = source.item(Section::References, outline.language, line..line + 1)?;
    let around = part_at(outline, line);
    Some(ContextItem {
        symbol: around.map(Part::path),
        kind: around.map(|part| part.kind),
        ..found
    })
}

/// Returns the lines of these places, each once. The places must be in order.
fn lines_with(source: &SourceFile, places: &[Range<usize>]) -> Vec<usize> {
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
