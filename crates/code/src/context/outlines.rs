//! Outlines of files, as results.

use super::source::{Reader, Source};
use super::{Found, Gathered, Section, Wanted, parallel};
use crate::outline::Outline;
use crate::rank::Ranking;

/// Most rows of an outline that are kept to be shown.
const MOST_ROWS: usize = 1000;

/// Gathers outlines of the requested files; without any, of those that a question is about, or of the most important
/// ones.
pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    ranking: Option<&Ranking<'_>>,
    likely: &[String],
    gathered: &mut Gathered,
) {
    let mut paths: Vec<&str> = wanted.files.iter().map(String::as_str).collect();
    if paths.is_empty() {
        paths.extend(ranking.iter().flat_map(|ranking| &ranking.hits).map(|hit| hit.path.as_str()));
    }
    if paths.is_empty() {
        paths.extend(likely.iter().map(String::as_str));
    }
    let results = match ranking {
        Some(ranking) if wanted.files.is_empty() => ranking.matched,
        _ => paths.len(),
    };
    let page = wanted.page(Section::Outline, results, gathered);
    let paths = paths.get(page.clone()).unwrap_or_default();
    let found = parallel(paths, |path| {
        reader.look_into(path, |source| rows(source, &reader.outline(source), wanted))
    });
    for (at, (path, found)) in (page.start..).zip(paths.iter().zip(found)) {
        match found {
            Ok(Some(found)) => gathered.found.push(Found { at, ..found }),
            Ok(None) => gathered.notes.push(format!("`{path}` is empty")),
            Err(error) => gathered.unreadable.push(((*path).to_owned(), error)),
        }
    }
}

/// Makes a row for each part: its lines and its signature, indented by its depth.
fn rows(source: &Source, outline: &Outline, wanted: &Wanted<'_>) -> Option<Found> {
    let count = text::lines::count(source.text.as_str());
    if count == 0 {
        return None;
    }
    let mut found = source.found(Section::Outline, outline.language, 0..count)?;
    let is_shown =
        |part: &&crate::outline::Part| part.scope.len() < wanted.depth.max(1) && wanted.wants(part);
    let shown: Vec<_> = outline.parts.iter().filter(is_shown).collect();
    let names = shown.iter().filter(|part| part.scope.is_empty());
    let names: Vec<&str> = names.map(|part| part.name.as_str()).take(MOST_ROWS).collect();
    found.signature = Some(format!("{} parts: {}", shown.len(), names.join(", ")));
    let rows = shown.iter().take(MOST_ROWS).map(|part| {
        let range = part.all_lines();
        let (first, last) = (range.first + 1, range.last + 1);
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        format!(
            "{}{lines} {} {}",
            "  ".repeat(part.scope.len()),
            part.kind.as_str(),
            part.signature
        )
    });
    found.text = rows.collect();
    found.rows = shown.len();
    Some(found)
}
