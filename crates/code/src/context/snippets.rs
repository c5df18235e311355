//! Snippets: the lines of files that a question is about.

use std::ops::Range;

use text::LineRange;

use super::source::{Reader, Source};
use super::{Found, Gathered, Section, Wanted, parallel, reasons};
use crate::language;
use crate::outline::{Outline, Part, PartKind, quick_outline};
use crate::rank::{Hit, Lines, Ranking};

/// Most lines of a snippet.
const LONGEST_BLOCK: usize = 60;
/// Largest file in bytes that is parsed to find the part around a line: that could take longer than everything else.
const LARGEST_PARSED: usize = 32 << 10;
/// Number of further files that are searched if those ranked first have no part of a requested kind.
pub(super) const MOST_MORE: usize = 60;
/// Least share of the score of the best lines with which a part is shown in their place.
const ENOUGH: f64 = 0.85;

/// The lines of a file that a question is about.
struct Block<'o> {
    lines: Range<usize>,
    /// The part that the lines are, or are in.
    part: Option<&'o Part>,
}

/// Returns the best lines of a file, at most [`LONGEST_BLOCK`]: a part, if its score is high enough, else the lines
/// with the highest score. With `kinds` it is a part of one of these kinds, or the best lines in one.
fn best_block<'o>(outline: &'o Outline, lines: &Lines, kinds: &[PartKind]) -> Option<Block<'o>> {
    let window = lines.best(LONGEST_BLOCK)?;
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
    let short = parts().filter(|part| range(part).len() <= LONGEST_BLOCK);
    let scored = short.map(|part| (lines.score(range(part)), part));
    // The first of those with the highest score.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let enough = if kinds.is_empty() { ENOUGH * lines.score(window.clone()) } else { 0.0 };
    if let Some((_, part)) = best.filter(|(score, _)| *score > 0.0 && *score >= enough) {
        return Some(Block { lines: range(part), part: Some(part) });
    }
    let holds = |part: &&Part| {
        let part = range(part);
        part.start <= window.start && window.end <= part.end
    };
    let around = parts().filter(holds).min_by_key(|part| range(part).len());
    if around.is_none() && !kinds.is_empty() {
        return None;
    }
    Some(Block { lines: window, part: around })
}

/// Returns the lines of a file that are shown for a question; `lines` are those with its terms.
pub fn shown_lines(path: &str, text: &str, lines: &Lines) -> Option<Range<usize>> {
    let outline = quick_outline(path, text, LARGEST_PARSED, &|| false);
    Some(best_block(&outline, lines, &[])?.lines)
}

/// Gathers first the lines that were requested by number, then those that a question is about.
pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    ranking: Option<&Ranking<'_>>,
    gathered: &mut Gathered,
) {
    let asked = wanted.excerpts.len();
    let ranking = ranking.filter(|_| wanted.includes(Section::Snippets));
    if ranking.is_none() && wanted.includes(Section::Snippets) && asked == 0 {
        gathered.notes.push("snippets are found by `query`".to_owned());
        return;
    }
    let results = asked + ranking.map_or(0, |ranking| ranking.matched);
    let page = wanted.page(Section::Snippets, results, gathered);
    for at in page.start..page.end.min(asked) {
        let (path, lines) = &wanted.excerpts[at];
        excerpt(reader, path, lines, at, gathered);
    }
    let Some(ranking) = ranking else { return };
    let top = ranking.hits.first().map_or(1.0, |hit| hit.score);
    let mut next = page.start.max(asked) - asked;
    let end = page.end.max(asked) - asked;
    let mut wants = end - next;
    // A file without a part of a requested kind is replaced by another one, up to a limit.
    let last = if wanted.kinds.is_empty() { end } else { ranking.hits.len().min(end + MOST_MORE) };
    while next < last && wants > 0 && (next < end || !reader.is_over()) {
        let hits = &ranking.hits[next..last.min(next + wants).min(ranking.hits.len())];
        if hits.is_empty() {
            break;
        }
        let found = parallel(hits, |hit| of_file(reader, wanted, ranking, hit));
        for (hit, found) in hits.iter().zip(found) {
            let at = asked + next;
            next += 1;
            let Some(mut found) = found else { continue };
            found.at = at;
            let is_shown = |shown: &Found| {
                shown.section == Section::Definitions
                    && shown.path == found.path
                    && shown.lines.start <= found.lines.start
                    && found.lines.end <= shown.lines.end
            };
            wants -= 1;
            if !gathered.found.iter().any(is_shown) {
                found.score = Some(hit.score / top);
                gathered.found.push(found);
            }
        }
    }
    gathered.end.set(Section::Snippets, asked + next);
    gathered.left.set(Section::Snippets, results - asked - next.min(results - asked));
}

fn excerpt(
    reader: &Reader<'_>,
    path: &str,
    range: &Range<usize>,
    at: usize,
    gathered: &mut Gathered,
) {
    let source = match reader.read(path) {
        Ok(source) => source,
        Err(error) => {
            gathered.unreadable.push((path.to_owned(), error));
            return;
        }
    };
    let count = text::lines::count(source.text.as_str());
    let lines = range.start.min(count)..range.end.min(count);
    let language = language::of_path(path).map(language::Language::name);
    match source.found(Section::Snippets, language, lines) {
        Some(found) => gathered.found.push(Found { at, ..found }),
        None => gathered.notes.push(format!("`{path}` has {count} lines")),
    }
}

fn of_file(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    ranking: &Ranking<'_>,
    hit: &Hit,
) -> Option<Found> {
    reader.look_into(&hit.path, |source| best_of(reader, wanted, ranking, hit, source)).ok()?
}

fn best_of(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    ranking: &Ranking<'_>,
    hit: &Hit,
    source: &Source,
) -> Option<Found> {
    let text = source.text.as_str();
    let outline = reader.quick_outline(source, LARGEST_PARSED);
    let lines = ranking.look_into(text.as_bytes());
    let first = || {
        // Only the path of the file matches.
        let lines = 0..lines.count.min(LONGEST_BLOCK / 4);
        wanted.kinds.is_empty().then_some(Block { lines, part: None })
    };
    let block = best_block(&outline, &lines, wanted.kinds).or_else(first)?;
    let found = source.found(Section::Snippets, outline.language, block.lines)?;
    Some(Found {
        symbol: block.part.map(Part::path),
        kind: block.part.map(|part| part.kind),
        signature: block.part.map(|part| part.signature.clone()),
        why: reasons(ranking, hit.why),
        ..found
    })
}
