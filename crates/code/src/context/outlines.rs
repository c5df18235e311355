//! Outlines of files, as results.

use super::source::{SourceFile, SourceReader};
use super::{CodeContext, ContextItem, ContextRequest, Section, parallel};
use crate::outline::Outline;
use crate::rank::Ranking;

/// Most rows of an outline that are kept to be shown.
const ROWS_MAX: usize = 1000;

/// Gathers outlines of the requested files; without any, of those that a query is about, or of the most important
/// ones.
pub(super) fn gather(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    ranking: Option<&Ranking<'_>>,
    likely: &[String],
    context: &mut CodeContext,
) {
    let mut paths: Vec<&str> = request.files.iter().map(String::as_str).collect();
    if paths.is_empty() {
        paths.extend(
            ranking.iter().flat_map(|ranking| &ranking.best_files).map(|hit| hit.path.as_str()),
        );
    }
    if paths.is_empty() {
        paths.extend(likely.iter().map(String::as_str));
    }
    let results = match ranking {
        Some(ranking) if request.files.is_empty() => ranking.matched,
        _ => paths.len(),
    };
    let page = request.page(Section::Outline, results, context);
    let paths = paths.get(page.clone()).unwrap_or_default();
    let found = parallel(paths, |path| {
        reader.with_file(path, |source| outline_item(source, &reader.outline(source), request))
    });
    for (at, (path, found)) in (page.start..).zip(paths.iter().zip(found)) {
        match found {
            Ok(Some(found)) => context.items.push(ContextItem { position: at, ..found }),
            Ok(None) => context.notes.push(format!("`{path}` is empty")),
            Err(error) => context.unreadable.push(((*path).to_owned(), error)),
        }
    }
}

/// Makes a row for each part: its lines and its signature, indented by its depth.
fn outline_item(
    source: &SourceFile,
    outline: &Outline,
    request: &ContextRequest<'_>,
) -> Option<ContextItem> {
    let count = text::lines::count(source.text.as_str());
    if count == 0 {
        return None;
    }
    let mut found = source.item(Section::Outline, outline.language, 0..count)?;
    let is_shown = |part: &&crate::outline::Part| {
        part.scope.len() < request.depth.max(1) && request.includes_part(part)
    };
    let shown: Vec<_> = outline.parts.iter().filter(is_shown).collect();
    let names = shown.iter().filter(|part| part.scope.is_empty());
    let names: Vec<&str> = names.map(|part| part.name.as_str()).take(ROWS_MAX).collect();
    found.signature = Some(format!("{} parts: {}", shown.len(), names.join(", ")));
    let rows = shown.iter().take(ROWS_MAX).map(|part| {
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
