//! Page of results: the first ones after the cursor, in whatever order they are found.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{FileMatches, ResultKind, SearchError, SearchOptions};

/// Position where a page begins. Written as the number of a line, `:` and a path: from that line of that file on;
/// without the number, after that file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageCursor {
    path: String,
    /// `None` if all of the file is before the cursor.
    line: Option<usize>,
}

impl PageCursor {
    pub fn parse(cursor: &str) -> Result<Self, SearchError> {
        let (line, path) = cursor.split_once(':').ok_or(SearchError::Cursor)?;
        let line = match line {
            "" => None,
            // `parse` would also accept a leading plus sign.
            line if line.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(line.parse().map_err(|_| SearchError::Cursor)?)
            }
            _ => return Err(SearchError::Cursor),
        };
        Ok(Self { path: path.to_owned(), line })
    }

    /// First line of a file that is not before the cursor; `None` if all lines are.
    pub fn first_line(&self, path: &str) -> Option<usize> {
        match path.cmp(&self.path) {
            Ordering::Less => None,
            Ordering::Equal => self.line,
            Ordering::Greater => Some(0),
        }
    }

    /// True if all of a file is after the cursor.
    pub fn is_ahead(&self, path: &str) -> bool {
        path > self.path.as_str()
    }
}

/// The first files of those found so far, with as many results as fit on the page, and no more files.
#[derive(Debug)]
pub(super) struct ResultPage {
    files: BTreeMap<String, FileMatches>,
    /// Number of results in all files.
    held: usize,
    max_results: usize,
}

impl ResultPage {
    pub fn new(max_results: usize) -> Self {
        Self { files: BTreeMap::new(), held: 0, max_results }
    }

    pub fn max_results(&self) -> usize {
        self.max_results
    }

    /// True if results of this file may be on the page.
    pub fn may_include(&self, path: &str) -> bool {
        self.held < self.max_results
            || self.files.last_key_value().is_some_and(|(last, _)| path < last.as_str())
    }

    /// Adds the matches of a file, and drops files that are no longer on the page.
    pub fn insert(&mut self, matches: FileMatches) {
        self.held += results(&matches);
        self.files.insert(matches.path.clone(), matches);
        while let Some(last) = self.files.last_entry() {
            let without = self.held - results(last.get());
            if without < self.max_results {
                break;
            }
            last.remove();
            self.held = without;
        }
    }

    /// Returns the files of the page, and the cursor of the next one if `results_ahead` is more than the page shows.
    pub fn finish(
        self,
        options: &SearchOptions<'_>,
        results_ahead: u64,
    ) -> (Vec<FileMatches>, Option<String>) {
        let too_many = self.held.saturating_sub(self.max_results);
        let shown = self.held - too_many;
        let mut files: Vec<_> = self.files.into_values().collect();
        if let Some(last) = files.last_mut() {
            let keep = results(last) - too_many;
            cut_after(last, keep, options.after);
        }
        let has_more = results_ahead > shown as u64;
        let next = files.last().filter(|_| has_more).map(|last| match options.show {
            ResultKind::Counts => format!(":{}", last.path),
            ResultKind::Lines => {
                let result = last.lines.iter().rfind(|line| line.is_match);
                format!("{}:{}", result.map_or(0, |line| line.number + 1), last.path)
            }
        });
        (files, next)
    }
}

/// Number of results in a file. A file without lines is one result.
fn results(matches: &FileMatches) -> usize {
    if matches.lines.is_empty() {
        1
    } else {
        matches.lines.iter().filter(|line| line.is_match).count()
    }
}

/// Drops all lines after the first `results`, except those after the last of them that are its context.
fn cut_after(matches: &mut FileMatches, results: usize, after: usize) {
    let mut results_at = matches.lines.iter().enumerate().filter(|(_, line)| line.is_match);
    let Some((_, last)) = results_at.nth(results.saturating_sub(1)) else { return };
    let end = results_at.next().map_or(matches.lines.len(), |(at, _)| at);
    let last = last.number.saturating_add(after);
    matches.lines.truncate(end);
    matches.lines.retain(|line| line.number <= last);
}
