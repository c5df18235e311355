//! Definitions: finds where a name is defined.

use std::sync::Arc;

use files::Hash;

use super::source::{SourceFile, SourceReader};
use super::survey::{FileMention, SymbolMentions};
use super::symbol::SymbolMatch;
use super::{CodeContext, ContextItem, ContextRequest, PARSED_FILES_MAX, Section, parallel};
use crate::outline::{Outline, Part, PartKind};
use crate::rank::is_test;

/// If at most this many files contain the name, all of them are parsed.
const FILES_TO_PARSE_ALL_MAX: usize = 32;
/// Most files that are parsed for a name that was only part of a query.
const GUESSED_FILES_MAX: usize = 6;
/// Largest file in bytes that is parsed for such a name; the parts of larger ones are guessed.
const GUESSED_BYTES_MAX: usize = 32 << 10;
/// Most definitions of a file that are sorted, the best ones; more are only counted.
const DEFINITIONS_OF_FILE_MAX: usize = 4096;
/// Score factor of a definition of which only the name matches.
const NAME_ONLY_FACTOR: f64 = 0.5;
/// Score factor of a definition in a test.
const TEST_FACTOR: f64 = 0.85;

pub(super) fn gather(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    mentions: &[SymbolMentions],
    context: &mut CodeContext,
) {
    let mut paths: Vec<&str> = Vec::new();
    for mentions in mentions {
        let (likely, unlooked) = files_to_parse(mentions);
        paths.extend(likely.iter().map(|mention| mention.path.as_str()));
        if unlooked > 0 && !mentions.is_guessed {
            let name = &mentions.symbol.given;
            context.notes.push(format!(
                "`{name}` may also be defined in {unlooked} files that were not parsed; narrow `path` or `globs`"
            ));
        }
    }
    paths.sort_unstable();
    paths.dedup();
    // The contents of the files are not kept: they could be large.
    let is_guessed = mentions.iter().all(|mentions| mentions.is_guessed);
    let largest = if is_guessed { GUESSED_BYTES_MAX } else { usize::MAX };
    let files =
        parallel(&paths, |path| definitions_of_file(reader, request, mentions, path, largest));
    let mut definitions: Vec<(DefinitionMatch, &str)> = Vec::new();
    let mut more = 0;
    for ((found, count), path) in files.into_iter().zip(&paths) {
        more += count - found.len();
        definitions.extend(found.into_iter().map(|definition| (definition, *path)));
    }
    interleave_symbols(&mut definitions, mentions.len());
    note_undefined(&definitions, mentions, context);
    let page = request.page(Section::Definitions, definitions.len(), context);
    context.left.add(Section::Definitions, more);
    // Several definitions may be in one file, which is parsed again only once.
    let mut file: Option<(SourceFile, Arc<Outline>)> = None;
    for (at, (definition, path)) in (page.start..).zip(&definitions[page.clone()]) {
        if file.as_ref().is_none_or(|(source, _)| source.path != *path) {
            file = reader.read(path).ok().map(|source| {
                let outline = reader.quick_outline(&source, largest);
                (source, outline)
            });
        }
        let found = file.as_ref().and_then(|(source, outline)| definition.found(source, outline));
        context.items.extend(found.map(|found| ContextItem { position: at, ..found }));
    }
}

/// A definition: a part of a file.
#[derive(Clone, Copy)]
struct DefinitionMatch {
    /// Hash of the file as it was parsed.
    hash: Hash,
    part: usize,
    symbol: usize,
    score: f64,
    /// True if the names around it match as well.
    is_exact: bool,
}

impl DefinitionMatch {
    /// Returns it as a result. `None` if the file has changed meanwhile.
    fn found(&self, source: &SourceFile, outline: &Outline) -> Option<ContextItem> {
        let part = outline.parts.get(self.part).filter(|_| source.hash == self.hash)?;
        let found = source.item_of_part(Section::Definitions, outline.language, part)?;
        Some(ContextItem { score: Some(self.score), ..found })
    }
}

/// Returns the parts of a file that match, in their order, and their number in all.
fn definitions_of_file(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    mentions: &[SymbolMentions],
    path: &str,
    largest: usize,
) -> (Vec<DefinitionMatch>, usize) {
    if reader.is_over() {
        return (Vec::new(), 0);
    }
    let found = reader.with_file(path, |source| {
        let outline = reader.quick_outline(source, largest);
        found(request, mentions, path, source, &outline)
    });
    let mut found = found.unwrap_or_default();
    let count = found.len();
    if count > DEFINITIONS_OF_FILE_MAX {
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(DEFINITIONS_OF_FILE_MAX);
        found.shrink_to_fit();
        text::sort_by_numbers(&mut found, |definition| (definition.part, 0));
    }
    (found, count)
}

fn found(
    request: &ContextRequest<'_>,
    mentions: &[SymbolMentions],
    path: &str,
    source: &SourceFile,
    outline: &Outline,
) -> Vec<DefinitionMatch> {
    let test = if is_test(path) { TEST_FACTOR } else { 1.0 };
    let mut found = Vec::new();
    for (at, part) in
        outline.parts.iter().enumerate().filter(|(_, part)| request.includes_part(part))
    {
        let of = |(symbol, mentions): (usize, &SymbolMentions)| {
            let fits = mentions.symbol.match_part(part, path)?;
            let share = match fits {
                SymbolMatch::Qualified => 1.0,
                SymbolMatch::NameOnly => NAME_ONLY_FACTOR,
            };
            let score =
                mentions.symbol.name_similarity(part).min(1.0) * share * weight(part) * test;
            let is_exact = fits == SymbolMatch::Qualified;
            Some(DefinitionMatch { hash: source.hash, part: at, symbol, score, is_exact })
        };
        let fitting = mentions.iter().enumerate().filter_map(of);
        found
            .extend(fitting.reduce(|best, next| if next.score > best.score { next } else { best }));
    }
    found
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
fn interleave_symbols(definitions: &mut Vec<(DefinitionMatch, &str)>, symbols: usize) {
    let mut is_there = vec![false; symbols];
    for (definition, _) in definitions.iter() {
        is_there[definition.symbol] |= definition.is_exact;
    }
    definitions.retain(|(definition, _)| definition.is_exact || !is_there[definition.symbol]);
    definitions.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
    let mut turns = vec![0_usize; symbols];
    let mut in_turn: Vec<(usize, (DefinitionMatch, &str))> = Vec::with_capacity(definitions.len());
    for definition in definitions.drain(..) {
        let turn = &mut turns[definition.0.symbol];
        in_turn.push((*turn, definition));
        *turn += 1;
    }
    text::sort_by_numbers(&mut in_turn, |(turn, _)| (*turn, 0));
    definitions.extend(in_turn.into_iter().map(|(_, definition)| definition));
}

fn note_undefined(
    definitions: &[(DefinitionMatch, &str)],
    mentions: &[SymbolMentions],
    context: &mut CodeContext,
) {
    for (at, mentions) in mentions.iter().enumerate().filter(|(_, one)| !one.is_guessed) {
        let mut of_it =
            definitions.iter().filter(|(definition, _)| definition.symbol == at).peekable();
        let name = &mentions.symbol.given;
        if of_it.peek().is_none() {
            context.notes.push(undefined_note(mentions));
        } else if of_it.all(|(definition, _)| !definition.is_exact) {
            context.notes.push(format!(
                "no exact match for `{name}`; definitions with the same last name are shown"
            ));
        }
    }
}

/// Returns the files in which the name may be defined, and the number of files left out.
fn files_to_parse(mentions: &SymbolMentions) -> (Vec<&FileMention>, usize) {
    // Files that also contain the names around it come first.
    let mut files: Vec<&FileMention> = mentions.files.iter().collect();
    text::sort_by_numbers(&mut files, |file| ((!file.has_scope).into(), 0));
    if mentions.is_guessed {
        let likely = files.into_iter().filter(|file| file.defines && file.has_scope);
        let mut likely: Vec<&FileMention> = likely.collect();
        likely.truncate(GUESSED_FILES_MAX);
        return (likely, 0);
    }
    if files.len() <= FILES_TO_PARSE_ALL_MAX {
        return (files, 0);
    }
    let mut likely: Vec<&FileMention> = files.iter().copied().filter(|file| file.defines).collect();
    if likely.is_empty() {
        likely = files;
        text::sort_by_numbers(&mut likely, |file| (usize::MAX - file.words as usize, 0));
    }
    let unlooked = likely.len().saturating_sub(PARSED_FILES_MAX);
    likely.truncate(PARSED_FILES_MAX);
    (likely, unlooked)
}

fn undefined_note(mentions: &SymbolMentions) -> String {
    let name = &mentions.symbol.given;
    match mentions.files.len() {
        0 => format!("`{name}` occurs in no file; try `match`: \"substring\", or `query`"),
        files => format!("no definition of `{name}` was found; files that mention it: {files}"),
    }
}
