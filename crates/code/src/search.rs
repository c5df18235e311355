//! Lines that match.
//!
//! A page of them, in the order of their paths and then of their lines, and how many there are in all. A page holds only
//! what it shows: of everything else no more than a count is kept, however many lines match. Files are searched as they
//! are now, all of them for every page.
//!
//! Lines are those of [`text::lines`]: a lone `\r` ends one, and `^` and `$` know it. A byte order mark is no part of the
//! first.

mod excerpt;
mod long;
mod page;
mod pattern;

use std::{
    ops::{ControlFlow, Range},
    sync::{Mutex, MutexGuard, PoisonError},
};

use files::{
    Call, Hash, Root, StoreError,
    tree::{self, Skipped, TreeFile, TreeOptions},
};

use excerpt::Excerpts;
use page::{Cursor, Page};
pub use pattern::{Case, PATTERN_MAX, Pattern, PatternError, PatternOptions};

/// Most results of a page.
pub const RESULTS_MAX: usize = 1000;

/// Most lines that are shown before and after one that matches.
pub const CONTEXT_MAX: usize = 20;

/// Most characters that are shown of a line.
pub const LINE_MAX: usize = 300;

/// What of the matches is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// The lines; a result is a line that matches.
    #[default]
    Lines,
    /// Only how many lines match in which files; a result is a file.
    Counts,
}

/// Where to search, and what to show of it.
#[derive(Clone, Debug)]
pub struct SearchOptions<'a> {
    pub tree: TreeOptions,
    pub show: Show,
    /// Lines before and after each that matches, up to [`CONTEXT_MAX`].
    pub before: usize,
    pub after: usize,
    /// Results of this page, 1 to [`RESULTS_MAX`].
    pub max_results: usize,
    /// Where the page before ended: its [`Found::next`].
    pub cursor: Option<&'a str>,
}

/// A page, and what there is besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub files: Vec<FileHits>,
    /// Of all files, on every page: how many lines match, in how many files, of how many that were searched.
    pub matching_lines: u64,
    pub matching_files: u64,
    pub searched_files: u64,
    /// Of these only a part was searched, since they have very long lines, or are long and a match may go over several
    /// lines: that could take too long.
    pub cut_files: u64,
    pub skipped: Skipped,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<String>,
}

/// What was found in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHits {
    /// From the root, with `/` between names.
    pub path: String,
    /// Of the whole file.
    pub hash: Hash,
    /// Lines that match, whether they are on this page or not.
    pub matching_lines: u64,
    /// In order; empty if only counts are shown.
    pub lines: Vec<HitLine>,
}

/// A line that matches, or is near one that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitLine {
    /// Counted from 0.
    pub number: usize,
    /// Where in the line `text` begins, in bytes: not 0 if characters were left out before it.
    pub offset: usize,
    /// At most [`LINE_MAX`] characters, around the first match.
    pub text: String,
    /// Of the whole line, in bytes, without its terminator.
    pub length: usize,
    /// The matches that begin in `text`, in bytes from the beginning of the line. If matches may go over several lines
    /// it is only the first, as far as it is in this one.
    pub matches: Vec<Range<usize>>,
    /// Whether it is a result, and not only near one.
    pub is_match: bool,
}

impl HitLine {
    /// Whether characters were left out.
    pub fn is_cut(&self) -> bool {
        self.text.len() < self.length
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("the cursor is not one of a search")]
    Cursor,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Searches all files of the tree.
pub fn search(
    root: &Root,
    pattern: &Pattern,
    options: &SearchOptions<'_>,
    call: &Call,
) -> Result<Found, SearchError> {
    let cursor = options.cursor.map(Cursor::parse).transpose()?.unwrap_or_default();
    let max_results = options.max_results.clamp(1, RESULTS_MAX);
    let search = Search {
        options,
        call,
        cursor,
        page: Mutex::new(Page::new(max_results)),
        failure: Mutex::default(),
    };
    let start = || (pattern.clone(), Tally::default());
    let visited = tree::visit(root, &options.tree, call, start, |(pattern, tally), file| {
        search.look_at(pattern, tally, file)
    })?;
    if let Some(error) = search.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error.into());
    }
    let mut total = Tally::default();
    for (_, tally) in &visited.states {
        total.add(tally);
    }
    let page = search.page.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (files, next) = page.finish(options, total.results_ahead);
    Ok(Found {
        files,
        matching_lines: total.matching_lines,
        matching_files: total.matching_files,
        searched_files: total.searched_files,
        cut_files: total.cut_files,
        skipped: visited.skipped,
        next,
    })
}

/// What one thread has counted.
#[derive(Default)]
struct Tally {
    matching_lines: u64,
    matching_files: u64,
    searched_files: u64,
    cut_files: u64,
    /// Results that are not behind the cursor.
    results_ahead: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.matching_lines += other.matching_lines;
        self.matching_files += other.matching_files;
        self.searched_files += other.searched_files;
        self.cut_files += other.cut_files;
        self.results_ahead += other.results_ahead;
    }
}

/// What all threads share.
struct Search<'s> {
    options: &'s SearchOptions<'s>,
    call: &'s Call,
    cursor: Cursor,
    page: Mutex<Page>,
    failure: Mutex<Option<StoreError>>,
}

impl Search<'_> {
    fn look_at(
        &self,
        pattern: &Pattern,
        tally: &mut Tally,
        file: &mut TreeFile<'_>,
    ) -> ControlFlow<()> {
        let path = file.path();
        let Some(whole) = file.text() else { return ControlFlow::Continue(()) };
        tally.searched_files += 1;
        match self.hits(pattern, tally, path, whole) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Counts the lines that match, and puts those on the page that belong there.
    fn hits(
        &self,
        pattern: &Pattern,
        tally: &mut Tally,
        path: &str,
        whole: &str,
    ) -> Result<(), StoreError> {
        let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
        // Most files have no match, and need not know.
        let mut excerpts = None;
        let (mut count, mut is_cut) = (0, false);
        for piece in pattern.pieces(text) {
            self.call.check()?;
            let mut hits = pattern.hits(text, &piece, self.call);
            for hit in hits.by_ref() {
                count += 1;
                let excerpts = excerpts.get_or_insert_with(|| self.excerpts(path, text));
                excerpts.add(hit);
            }
            is_cut |= hits.is_cut;
        }
        self.call.check()?;
        tally.cut_files += u64::from(is_cut);
        let Some(excerpts) = excerpts else { return Ok(()) };
        tally.matching_lines += count;
        tally.matching_files += 1;
        tally.results_ahead += match self.options.show {
            Show::Lines => count - excerpts.behind(),
            Show::Counts => u64::from(self.cursor.is_ahead(path)),
        };
        if excerpts.is_wanted() {
            self.page().put(FileHits {
                path: path.to_owned(),
                hash: Hash::of(whole.as_bytes()),
                matching_lines: count,
                lines: excerpts.lines(pattern, self.options),
            });
        }
        Ok(())
    }

    /// What is wanted of a file, as the page is now.
    fn excerpts<'t>(&self, path: &str, text: &'t str) -> Excerpts<'t> {
        let page = self.page();
        match self.options.show {
            Show::Counts => {
                let is_wanted = self.cursor.is_ahead(path) && page.wants(path);
                Excerpts::none(text, is_wanted)
            }
            Show::Lines => {
                let room = if page.wants(path) { page.max_results() } else { 0 };
                Excerpts::new(text, self.cursor.first_line(path), room)
            }
        }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
