//! Where a name is defined.

use super::source::{Reader, Source};
use super::survey::{Mention, Mentions};
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::Outline;
use crate::rank::is_test;

/// If no more files than this have the name in them, all of them are parsed.
const FEW: usize = 32;
/// What a definition in a test is multiplied with.
const TEST: f64 = 0.85;

pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    gathered: &mut Gathered,
) {
    let mut paths: Vec<&str> = Vec::new();
    for mentions in mentions {
        let (likely, unlooked) = worth_parsing(&mentions.files);
        paths.extend(likely.iter().map(|mention| mention.path.as_str()));
        if unlooked > 0 {
            let name = &mentions.symbol.given;
            gathered.notes.push(format!(
                "`{name}` may also be defined in {unlooked} files that were not parsed; narrow `path` or `globs`"
            ));
        }
    }
    paths.sort_unstable();
    paths.dedup();
    let parsed = parallel(&paths, |path| {
        let source = reader.read(path).ok()?;
        let outline = reader.outline(&source);
        Some((source, outline))
    });
    let parsed: Vec<(Source, Outline)> = parsed.into_iter().flatten().collect();
    let mut definitions = Vec::new();
    for (source, outline) in &parsed {
        for part in outline.parts.iter().filter(|part| wanted.wants(part)) {
            let near = mentions
                .iter()
                .filter(|mentions| mentions.symbol.fits(part, &source.path))
                .map(|mentions| mentions.symbol.nearness(part));
            if let Some(near) = near.reduce(f64::max) {
                let test = if is_test(&source.path) { TEST } else { 1.0 };
                definitions.push((source, outline.language, part, near.min(1.0) * test));
            }
        }
    }
    // They are in the order of their paths and lines.
    definitions.sort_by(|a, b| b.3.total_cmp(&a.3));
    for mentions in mentions.iter().filter(|mentions| !mentions.is_guessed) {
        let is_defined =
            definitions.iter().any(|(source, _, part, _)| mentions.symbol.fits(part, &source.path));
        if !is_defined {
            gathered.notes.push(undefined(mentions));
        }
    }
    let page = wanted.page(Section::Definitions, definitions.len(), &mut gathered.left);
    for (source, language, part, score) in &definitions[page] {
        if let Some(found) = source.part(Section::Definitions, *language, part) {
            gathered.found.push(Found { score: Some(*score), ..found });
        }
    }
}

/// The files in which the name may be defined, and how many more there are.
fn worth_parsing(files: &[Mention]) -> (Vec<&Mention>, usize) {
    if files.len() <= FEW {
        return (files.iter().collect(), 0);
    }
    let mut likely: Vec<&Mention> = files.iter().filter(|file| file.defines).collect();
    if likely.is_empty() {
        likely = files.iter().collect();
        likely.sort_by_key(|file| std::cmp::Reverse(file.words));
    }
    let unlooked = likely.len().saturating_sub(MOST_PARSED);
    likely.truncate(MOST_PARSED);
    (likely, unlooked)
}

fn undefined(mentions: &Mentions) -> String {
    let name = &mentions.symbol.given;
    match mentions.files.len() {
        0 => format!("`{name}` is in no file; try `match`: \"substring\", or `query`"),
        files => format!(
            "no definition of `{name}` was found, but it is in {files} files: `include` references, or try `match`: \"substring\""
        ),
    }
}
