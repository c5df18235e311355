//! The files of a tree, in the order in which somebody would look into them.

use std::ops::Range;

use code::context::shown_lines;
use code::rank::{RankQuery, Scan};
use code::words::{self, TermKind};

use crate::history::File;

/// Number of files that are shown.
const SHOWN: usize = 10;
/// Number of lines that are shown of each.
const WINDOW: usize = 60;

/// A file that is shown, with the lines that are.
pub struct Found {
    pub path: String,
    pub lines: Range<usize>,
}

/// One that is about the query, as this project tells it.
pub fn ours(query: &str, tree: &[File]) -> Vec<Found> {
    let query = RankQuery::new(query, []);
    let scan = Scan::new(&query);
    for file in tree {
        scan.visit(&file.path, &file.text);
    }
    let ranking = scan.finish(SHOWN);
    let found = ranking.best_files.iter().map(|hit| {
        let file = tree.iter().find(|file| file.path == hit.path);
        let lines = file.and_then(|file| {
            let text = std::str::from_utf8(&file.text).ok()?;
            shown_lines(&file.path, text, &ranking.term_lines(&file.text))
        });
        Found { path: hit.path.clone(), lines: lines.unwrap_or(0..WINDOW / 4) }
    });
    found.collect()
}

/// Ranking by `grep` for the same words, as written, in any case: files with the most of them first, then
/// those with the most matches. The lines are those with the most of them.
pub fn plain(query: &str, tree: &[File]) -> Vec<Found> {
    let needles: Vec<Vec<u8>> = words::terms(query)
        .into_iter()
        .filter(|term| term.kind == TermKind::Word)
        .map(|term| term.shown.into_bytes())
        .collect();
    let mut files: Vec<(usize, usize, &File, Vec<u8>)> = Vec::new();
    for file in tree {
        let text = file.text.to_ascii_lowercase();
        let counts: Vec<usize> =
            needles.iter().map(|needle| memchr::memmem::find_iter(&text, needle).count()).collect();
        let distinct = counts.iter().filter(|count| **count > 0).count();
        if distinct > 0 {
            files.push((distinct, counts.iter().sum(), file, text));
        }
    }
    files.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.path.cmp(&b.2.path)));
    let found = files
        .iter()
        .take(SHOWN)
        .map(|(.., file, text)| Found { path: file.path.clone(), lines: window(text, &needles) });
    found.collect()
}

fn window(text: &[u8], needles: &[Vec<u8>]) -> Range<usize> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let hits = |line: &&[u8], needle: &Vec<u8>| memchr::memmem::find(line, needle).is_some();
    let matched: Vec<Vec<bool>> = lines
        .iter()
        .map(|line| needles.iter().map(|needle| hits(line, needle)).collect())
        .collect();
    let score = |start: usize| {
        let window = &matched[start..matched.len().min(start + WINDOW)];
        let counts =
            (0..needles.len()).map(|needle| window.iter().filter(|line| line[needle]).count());
        let counts: Vec<usize> = counts.collect();
        (counts.iter().filter(|count| **count > 0).count(), counts.iter().sum::<usize>())
    };
    // The first of the best.
    let start = (0..lines.len()).rev().max_by_key(|start| score(*start)).unwrap_or(0);
    start..start + WINDOW
}
