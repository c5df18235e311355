//! Where a name is used.

use std::ops::Range;

use text::lines::count;

use super::source::{Reader, Source};
use super::survey::{Mention, Mentions};
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::block_at;
use crate::rank::is_test;
use crate::references::references;

use super::symbol::Match;

/// Files that are parsed at once.
const TOGETHER: usize = 8;

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
        gathered
            .notes
            .push("references are told of names in `symbols`, with `match`: \"exact\"".to_owned());
    }
    if exact.is_empty() {
        return;
    }
    gathered.notes.push("references are syntactic, not resolved".to_owned());
    let end = wanted.skip.of(Section::References).saturating_add(wanted.max_results);
    let mut uses: Vec<Found> = Vec::new();
    let mut unparsed = 0_usize;
    for mentions in exact {
        let mut files: Vec<&Mention> = mentions.files.iter().collect();
        // By path, tests last.
        files.sort_by_key(|file| is_test(&file.path));
        let (near, far) = files.split_at(files.len().min(MOST_PARSED));
        let mut near = near.chunks(TOGETHER);
        for chunk in near.by_ref() {
            let found = parallel(chunk, |file| of_file(reader, file, mentions.symbol.name()));
            uses.extend(found.into_iter().flatten());
            if uses.len() >= end {
                break;
            }
        }
        let rest = near.flatten().chain(far).map(|file| file.words as usize);
        unparsed = unparsed.saturating_add(rest.sum());
    }
    let page = wanted.page(Section::References, uses.len(), &mut gathered.left);
    gathered.left.add(Section::References, unparsed);
    if unparsed > 0 {
        gathered.notes.push(format!(
            "of the references that are left out, {unparsed} were counted as words: definitions, comments and strings may be among them"
        ));
    }
    gathered.found.extend(uses.drain(page));
}

/// The lines of a file that use a name.
fn of_file(reader: &Reader<'_>, file: &Mention, name: &str) -> Vec<Found> {
    let Ok(source) = reader.read(&file.path) else { return Vec::new() };
    let outline = reader.outline(&source);
    let text = source.text.as_str();
    let uses = references(&source.path, text, name, &outline, &|| reader.is_over());
    let found = lines_of(&source, &uses).into_iter().filter_map(|line| {
        let found = source.found(Section::References, outline.language, line..line + 1)?;
        let around = block_at(&outline, line);
        Some(Found {
            symbol: around.map(crate::outline::Part::path),
            kind: around.map(|part| part.kind),
            ..found
        })
    });
    found.collect()
}

/// The lines of these places, which are in order, each once.
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
