//! Snippets: the lines of files that a query is about.

use std::ops::Range;

use text::LineRange;

use super::source::{SourceFile, SourceReader};
use super::{CodeContext, ContextItem, ContextRequest, Section, match_reasons, parallel};
use crate::language;
use crate::outline::{Outline, Part, PartKind, quick_outline};
use crate::rank::{RankedFile, Ranking, TermLines};

/// Most lines of a snippet.
const SNIPPET_LINES_MAX: usize = 60;
/// Largest file in bytes that is parsed to find the part around a line: that could take longer than everything else.
const PARSED_BYTES_MAX: usize = 32 << 10;
/// Number of further files that are searched if those ranked first have no part of a requested kind.
pub(super) const MORE_FILES_MAX: usize = 60;
/// Least share of the score of the best lines with which a part is shown in their place.
const SHARE_MIN: f64 = 0.85;

/// The lines of a file that a query is about.
struct Snippet<'o> {
    lines: Range<usize>,
    /// The part that the lines are, or are in.
    part: Option<&'o Part>,
}

/// Returns the best lines of a file, at most [`SNIPPET_LINES_MAX`]: a part, if its score is high enough, else the lines
/// with the highest score. With `kinds` it is a part of one of these kinds, or the best lines in one.
fn best_snippet<'o>(
    outline: &'o Outline,
    lines: &TermLines,
    kinds: &[PartKind],
) -> Option<Snippet<'o>> {
    let window = lines.best(SNIPPET_LINES_MAX)?;
    let range = |part: &Part| {
        let LineRange { first, last } = part.all_lines();
        first..last + 1
    };
    let parts = || {
        let is_wanted = |part: &&Part| {
            if kinds.is_empty() { !part.is_detail() } else { kinds.contains(&part.kind) }
        };
        outline.parts.iter().filter(is_wanted)
    };
    let short = parts().filter(|part| range(part).len() <= SNIPPET_LINES_MAX);
    let scored = short.map(|part| (lines.score(range(part)), part));
    // The first of those with the highest score.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let enough = if kinds.is_empty() { SHARE_MIN * lines.score(window.clone()) } else { 0.0 };
    if let Some((_, part)) = best.filter(|(score, _)| *score > 0.0 && *score >= enough) {
        return Some(Snippet { lines: range(part), part: Some(part) });
    }
    let holds = |part: &&Part| {
        let part = range(part);
        part.start <= window.start && window.end <= part.end
    };
    let around = parts().filter(holds).min_by_key(|part| range(part).len());
    if around.is_none() && !kinds.is_empty() {
        return None;
    }
    Some(Snippet { lines: window, part: around })
}

/// Returns the lines of a file that are shown for a query; `lines` are those with its terms.
pub fn shown_lines(path: &str, text: &str, lines: &TermLines) -> Option<Range<usize>> {
    let outline = quick_outline(path, text, PARSED_BYTES_MAX, &|| false);
    Some(best_snippet(&outline, lines, &[])?.lines)
}

/// Gathers first the lines that were requested by number, then those that a query is about.
pub(super) fn gather(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    ranking: Option<&Ranking<'_>>,
    context: &mut CodeContext,
) {
    let asked = request.excerpts.len();
    let ranking = ranking.filter(|_| request.includes(Section::Snippets));
    if ranking.is_none() && request.includes(Section::Snippets) && asked == 0 {
        context.notes.push("snippets need `query`".to_owned());
        return;
    }
    let results = asked + ranking.map_or(0, |ranking| ranking.matched);
    let page = request.page(Section::Snippets, results, context);
    for at in page.start..page.end.min(asked) {
        let (path, lines) = &request.excerpts[at];
        add_excerpt(reader, path, lines, at, context);
    }
    let Some(ranking) = ranking else { return };
    let top = ranking.best_files.first().map_or(1.0, |hit| hit.score);
    let mut next = page.start.max(asked) - asked;
    let end = page.end.max(asked) - asked;
    let mut wants = end - next;
    // A file without a part of a requested kind is replaced by another one, up to a limit.
    let last = if request.kinds.is_empty() {
        end
    } else {
        ranking.best_files.len().min(end + MORE_FILES_MAX)
    };
    while next < last && wants > 0 && (next < end || !reader.is_over()) {
        let hits = &ranking.best_files[next..last.min(next + wants).min(ranking.best_files.len())];
        if hits.is_empty() {
            break;
        }
        let found = parallel(hits, |hit| snippet_of_file(reader, request, ranking, hit));
        for (hit, found) in hits.iter().zip(found) {
            let at = asked + next;
            next += 1;
            let Some(mut found) = found else { continue };
            found.position = at;
            let is_shown = |shown: &ContextItem| {
                shown.section == Section::Definitions
                    && shown.path == found.path
                    && shown.lines.start <= found.lines.start
                    && found.lines.end <= shown.lines.end
            };
            wants -= 1;
            if !context.items.iter().any(is_shown) {
                found.score = Some(hit.score / top);
                context.items.push(found);
            }
        }
    }
    context.end.set(Section::Snippets, asked + next);
    context.left.set(Section::Snippets, results - asked - next.min(results - asked));
}

fn add_excerpt(
    reader: &SourceReader<'_>,
    path: &str,
    range: &Range<usize>,
    at: usize,
    context: &mut CodeContext,
) {
    let source = match reader.read(path) {
        Ok(source) => source,
        Err(error) => {
            context.unreadable.push((path.to_owned(), error));
            return;
        }
    };
    let count = text::lines::count(source.text.as_str());
    let lines = range.start.min(count)..range.end.min(count);
    let language = language::of_path(path).map(language::Language::name);
    match source.item(Section::Snippets, language, lines) {
        Some(found) => context.items.push(ContextItem { position: at, ..found }),
        None => context.notes.push(format!("`{path}` has {count} lines")),
    }
}

fn snippet_of_file(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    ranking: &Ranking<'_>,
    hit: &RankedFile,
) -> Option<ContextItem> {
    reader
        .with_file(&hit.path, |source| snippet_of_source(reader, request, ranking, hit, source))
        .ok()?
}

fn snippet_of_source(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    ranking: &Ranking<'_>,
    hit: &RankedFile,
    source: &SourceFile,
) -> Option<ContextItem> {
    let text = source.text.as_str();
    let outline = reader.quick_outline(source, PARSED_BYTES_MAX);
    let lines = ranking.term_lines(text.as_bytes());
    let first = || {
        // Only the path of the file matches.
        let lines = 0..lines.count.min(SNIPPET_LINES_MAX / 4);
        request.kinds.is_empty().then_some(Snippet { lines, part: None })
    };
    let block = best_snippet(&outline, &lines, request.kinds).or_else(first)?;
    let found = source.item(Section::Snippets, outline.language, block.lines)?;
    Some(ContextItem {
        symbol: block.part.map(Part::path),
        kind: block.part.map(|part| part.kind),
        signature: block.part.map(|part| part.signature.clone()),
        why: match_reasons(ranking, hit.matched_terms),
        ..found
    })
}
