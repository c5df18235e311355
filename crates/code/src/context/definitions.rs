//! Definitions: finds where a name is defined.

use std::sync::Arc;

use files::Hash;

use super::source::{Reader, Source};
use super::survey::{Mention, Mentions};
use super::symbol::Fit;
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::{Outline, Part, PartKind};
use crate::rank::is_test;

/// If at most this many files contain the name, all of them are parsed.
const FEW: usize = 32;
/// Most files that are parsed for a name that was only part of a question.
const MOST_GUESSED: usize = 6;
/// Largest file in bytes that is parsed for such a name; the parts of larger ones are guessed.
const LARGEST_GUESSED: usize = 32 << 10;
/// Most definitions of a file that are sorted, the best ones; more are only counted.
const MOST_OF_A_FILE: usize = 4096;
/// Score factor of a definition of which only the name matches.
const OTHER_OF_THAT_NAME: f64 = 0.5;
/// Score factor of a definition in a test.
const TEST: f64 = 0.85;

pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    gathered: &mut Gathered,
) {
    let mut paths: Vec<&str> = Vec::new();
    for mentions in mentions {
        let (likely, unlooked) = worth_parsing(mentions);
        paths.extend(likely.iter().map(|mention| mention.path.as_str()));
        if unlooked > 0 && !mentions.is_guessed {
            let name = &mentions.symbol.given;
            gathered.notes.push(format!(
                "`{name}` may also be defined in {unlooked} files that were not parsed; narrow `path` or `globs`"
            ));
        }
    }
    paths.sort_unstable();
    paths.dedup();
    // The contents of the files are not kept: they could be large.
    let is_guessed = mentions.iter().all(|mentions| mentions.is_guessed);
    let largest = if is_guessed { LARGEST_GUESSED } else { usize::MAX };
    let files = parallel(&paths, |path| of_file(reader, wanted, mentions, path, largest));
    let mut definitions: Vec<(Place, &str)> = Vec::new();
    let mut more = 0;
    for ((places, count), path) in files.into_iter().zip(&paths) {
        more += count - places.len();
        definitions.extend(places.into_iter().map(|place| (place, *path)));
    }
    in_turn(&mut definitions, mentions.len());
    note_undefined(&definitions, mentions, gathered);
    let page = wanted.page(Section::Definitions, definitions.len(), gathered);
    gathered.left.add(Section::Definitions, more);
    // Several definitions may be in one file, which is parsed again only once.
    let mut file: Option<(Source, Arc<Outline>)> = None;
    for (at, (place, path)) in (page.start..).zip(&definitions[page.clone()]) {
        if file.as_ref().is_none_or(|(source, _)| source.path != *path) {
            file = reader.read(path).ok().map(|source| {
                let outline = reader.quick_outline(&source, largest);
                (source, outline)
            });
        }
        let found = file.as_ref().and_then(|(source, outline)| place.found(source, outline));
        gathered.found.extend(found.map(|found| Found { at, ..found }));
    }
}

/// A definition: a part of a file.
#[derive(Clone, Copy)]
struct Place {
    /// Hash of the file as it was parsed.
    hash: Hash,
    part: usize,
    symbol: usize,
    score: f64,
    /// True if the names around it match as well.
    is_exact: bool,
}

impl Place {
    /// Returns it as a result. `None` if the file has changed meanwhile.
    fn found(&self, source: &Source, outline: &Outline) -> Option<Found> {
        let part = outline.parts.get(self.part).filter(|_| source.hash == self.hash)?;
        let found = source.part(Section::Definitions, outline.language, part)?;
        Some(Found { score: Some(self.score), ..found })
    }
}

/// Returns the parts of a file that match, in their order, and their number in all.
fn of_file(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    path: &str,
    largest: usize,
) -> (Vec<Place>, usize) {
    if reader.is_over() {
        return (Vec::new(), 0);
    }
    let places = reader.look_into(path, |source| {
        let outline = reader.quick_outline(source, largest);
        places(wanted, mentions, path, source, &outline)
    });
    let mut places = places.unwrap_or_default();
    let count = places.len();
    if count > MOST_OF_A_FILE {
        places.sort_by(|a, b| b.score.total_cmp(&a.score));
        places.truncate(MOST_OF_A_FILE);
        places.shrink_to_fit();
        text::sort_by_numbers(&mut places, |place| (place.part, 0));
    }
    (places, count)
}

fn places(
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    path: &str,
    source: &Source,
    outline: &Outline,
) -> Vec<Place> {
    let test = if is_test(path) { TEST } else { 1.0 };
    let mut places = Vec::new();
    for (at, part) in outline.parts.iter().enumerate().filter(|(_, part)| wanted.wants(part)) {
        let of = |(symbol, mentions): (usize, &Mentions)| {
            let fits = mentions.symbol.fit(part, path)?;
            let share = match fits {
                Fit::All => 1.0,
                Fit::Name => OTHER_OF_THAT_NAME,
            };
            let score = mentions.symbol.nearness(part).min(1.0) * share * weight(part) * test;
            let is_exact = fits == Fit::All;
            Some(Place { hash: source.hash, part: at, symbol, score, is_exact })
        };
        let fitting = mentions.iter().enumerate().filter_map(of);
        places
            .extend(fitting.reduce(|best, next| if next.score > best.score { next } else { best }));
    }
    places
}

/// Score factor of a part by its kind: a name more often means a type or a function than a part inside of one.
fn weight(part: &Part) -> f64 {
    match part.kind {
        PartKind::Field | PartKind::Module => 0.8,
        _ if part.scope.is_empty() => 1.0,
        _ => 0.9,
    }
}

/// Removes definitions that match by name only if another one matches exactly; then sorts by score, and if there are
/// several symbols, the best of each before the second best. They must be in the order of paths and lines before.
fn in_turn(definitions: &mut Vec<(Place, &str)>, symbols: usize) {
    let mut is_there = vec![false; symbols];
    for (place, _) in definitions.iter() {
        is_there[place.symbol] |= place.is_exact;
    }
    definitions.retain(|(place, _)| place.is_exact || !is_there[place.symbol]);
    definitions.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
    let mut turns = vec![0_usize; symbols];
    let mut in_turn: Vec<(usize, (Place, &str))> = Vec::with_capacity(definitions.len());
    for definition in definitions.drain(..) {
        let turn = &mut turns[definition.0.symbol];
        in_turn.push((*turn, definition));
        *turn += 1;
    }
    text::sort_by_numbers(&mut in_turn, |(turn, _)| (*turn, 0));
    definitions.extend(in_turn.into_iter().map(|(_, definition)| definition));
}

fn note_undefined(definitions: &[(Place, &str)], mentions: &[Mentions], gathered: &mut Gathered) {
    for (at, mentions) in mentions.iter().enumerate().filter(|(_, one)| !one.is_guessed) {
        let mut of_it = definitions.iter().filter(|(place, _)| place.symbol == at).peekable();
        let name = &mentions.symbol.given;
        if of_it.peek().is_none() {
            gathered.notes.push(undefined(mentions));
        } else if of_it.all(|(place, _)| !place.is_exact) {
            gathered.notes.push(format!("there is no `{name}`, but others of that name"));
        }
    }
}

/// Returns the files in which the name may be defined, and the number of files left out.
fn worth_parsing(mentions: &Mentions) -> (Vec<&Mention>, usize) {
    // Files that also contain the names around it come first.
    let mut files: Vec<&Mention> = mentions.files.iter().collect();
    text::sort_by_numbers(&mut files, |file| ((!file.near).into(), 0));
    if mentions.is_guessed {
        let likely = files.into_iter().filter(|file| file.defines && file.near);
        let mut likely: Vec<&Mention> = likely.collect();
        likely.truncate(MOST_GUESSED);
        return (likely, 0);
    }
    if files.len() <= FEW {
        return (files, 0);
    }
    let mut likely: Vec<&Mention> = files.iter().copied().filter(|file| file.defines).collect();
    if likely.is_empty() {
        likely = files;
        text::sort_by_numbers(&mut likely, |file| (usize::MAX - file.words as usize, 0));
    }
    let unlooked = likely.len().saturating_sub(MOST_PARSED);
    likely.truncate(MOST_PARSED);
    (likely, unlooked)
}

fn undefined(mentions: &Mentions) -> String {
    let name = &mentions.symbol.given;
    match mentions.files.len() {
        0 => format!("`{name}` is in no file; try `match`: \"substring\", or `query`"),
        files => format!("no definition of `{name}` was found; files that mention it: {files}"),
    }
}
