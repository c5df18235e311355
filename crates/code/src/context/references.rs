//! Where a name is used.

use std::ops::Range;
use std::sync::Arc;

use text::lines::count;

use super::source::{Reader, Source};
use super::survey::{Mention, Mentions};
use super::symbol::Match;
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::{Outline, Part, block_at};
use crate::rank::is_test;
use crate::references::references;

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
    let start = wanted.skip.of(Section::References);
    let page = start..start.saturating_add(wanted.max_results);
    let (mut lines, mut unparsed) = (0_usize, 0_usize);
    for mentions in exact {
        let mut files: Vec<&Mention> = mentions.files.iter().collect();
        // By path; tests come last, and before them those that may mean another one of this name.
        files.sort_by_key(|file| (is_test(&file.path), !file.near));
        let (near, far) = files.split_at(files.len().min(MOST_PARSED));
        let mut near = near.chunks(TOGETHER);
        for chunk in near.by_ref() {
            let used = parallel(chunk, |file| Used::of(reader, file, mentions.symbol.name()));
            for used in used.into_iter().flatten() {
                let shown = page.start.saturating_sub(lines)..page.end.saturating_sub(lines);
                let shown = used.lines.iter().take(shown.end).skip(shown.start);
                gathered.found.extend(shown.filter_map(|line| used.found(*line)));
                lines += used.lines.len();
            }
            if lines >= page.end {
                break;
            }
        }
        let rest = near.flatten().chain(far).map(|file| file.words as usize);
        unparsed = unparsed.saturating_add(rest.sum());
    }
    gathered.left.add(Section::References, lines.saturating_sub(page.end).saturating_add(unparsed));
    if unparsed > 0 {
        gathered.notes.push(format!(
            "of the references that are left out, {unparsed} were counted as words: definitions, comments and strings may be among them"
        ));
    }
}

/// A file that uses a name, with the lines that do.
struct Used {
    source: Source,
    outline: Arc<Outline>,
    lines: Vec<usize>,
}

impl Used {
    fn of(reader: &Reader<'_>, file: &Mention, name: &str) -> Option<Self> {
        let source = reader.read(&file.path).ok()?;
        let outline = reader.outline(&source);
        let text = source.text.as_str();
        let uses = references(&source.path, text, name, &outline, &|| reader.is_over());
        let lines = lines_of(&source, &uses);
        Some(Self { source, outline, lines })
    }

    fn found(&self, line: usize) -> Option<Found> {
        let found =
            self.source.found(Section::References, self.outline.language, line..line + 1)?;
        let around = block_at(&self.outline, line);
        Some(Found { symbol: around.map(Part::path), kind: around.map(|part| part.kind), ..found })
    }
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
