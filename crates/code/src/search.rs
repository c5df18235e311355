//! Search for lines that match a pattern.
//!
//! The result is a page of lines, in the order of their paths and then of their lines, and the number of lines in all.
//! A page holds only what it shows: everything else is only counted, however many lines match. Every page searches all
//! files again, as they are now.
//!
//! Lines are those of [`text::lines`]: a lone `\r` ends one, and `^` and `$` match there. A byte order mark is no part
//! of the first line.

mod excerpt;
mod long_text;
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
use page::{PageCursor, ResultPage};
pub use pattern::{CaseSensitivity, PATTERN_MAX, Pattern, PatternError, PatternOptions};

/// Most results of a page.
pub const RESULTS_MAX: usize = 1000;

/// Most lines that are shown before and after one that matches.
pub const CONTEXT_MAX: usize = 20;

/// Most characters that are shown of a line.
pub const LINE_MAX: usize = 300;

/// Kind of results that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// The lines; a result is a line that matches.
    #[default]
    Lines,
    /// Only how many lines match in which files; a result is a file.
    Counts,
}

/// Options of a search.
#[derive(Clone, Debug)]
pub struct SearchOptions<'a> {
    pub tree: TreeOptions,
    pub show: ResultKind,
    /// Lines shown before and after each that matches, up to [`CONTEXT_MAX`].
    pub before: usize,
    pub after: usize,
    /// Most results of this page, 1 to [`RESULTS_MAX`].
    pub max_results: usize,
    /// End of the page before: its [`SearchPage::next`].
    pub cursor: Option<&'a str>,
}

/// A page of results, and the counts of all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPage {
    pub files: Vec<FileMatches>,
    /// Counts of all pages: lines that match, the files they are in, and files that were searched.
    pub matching_lines: u64,
    pub matching_files: u64,
    pub searched_files: u64,
    /// Number of files of which only a part was searched: they have very long lines, or are long and a match may span
    /// several lines, so that all of it could take too long.
    pub cut_files: u64,
    pub skipped: Skipped,
    /// Cursor of the next page; `None` if this is the last.
    pub next: Option<String>,
}

/// Matches in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMatches {
    /// Path from the root, with `/` between names.
    pub path: String,
    /// Hash of the whole file.
    pub hash: Hash,
    /// Number of lines that match, on this page or not.
    pub matching_lines: u64,
    /// Lines in order; empty if only counts are shown.
    pub lines: Vec<ResultLine>,
}

/// A line that matches, or is near one that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultLine {
    /// Number of the line, counted from 0.
    pub number: usize,
    /// Byte offset in the line at which `text` begins: not 0 if characters were left out before it.
    pub offset: usize,
    /// Text of the line: at most [`LINE_MAX`] characters, around the first match.
    pub text: String,
    /// Length of the whole line in bytes, without its terminator.
    pub length: usize,
    /// Matches that begin in `text`, as byte offsets in the line. If matches may span several lines it is only the
    /// first, as far as it is in this one.
    pub matches: Vec<Range<usize>>,
    /// True if it is a result, false if it is only near one.
    pub is_match: bool,
}

impl ResultLine {
    /// True if characters were left out.
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
) -> Result<SearchPage, SearchError> {
    let cursor = options.cursor.map(PageCursor::parse).transpose()?.unwrap_or_default();
    let max_results = options.max_results.clamp(1, RESULTS_MAX);
    let search = Search {
        options,
        call,
        cursor,
        page: Mutex::new(ResultPage::new(max_results)),
        failure: Mutex::default(),
    };
    let start = || (pattern.clone(), SearchCounts::default());
    let visited = tree::visit(root, &options.tree, call, start, |(pattern, tally), file| {
        search.search_file(pattern, tally, file)
    })?;
    if let Some(error) = search.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error.into());
    }
    let mut total = SearchCounts::default();
    for (_, tally) in &visited.states {
        total.add(tally);
    }
    let page = search.page.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (files, next) = page.finish(options, total.results_ahead);
    Ok(SearchPage {
        files,
        matching_lines: total.matching_lines,
        matching_files: total.matching_files,
        searched_files: total.searched_files,
        cut_files: total.cut_files,
        skipped: visited.skipped,
        next,
    })
}

/// Counts of one thread.
#[derive(Default)]
struct SearchCounts {
    matching_lines: u64,
    matching_files: u64,
    searched_files: u64,
    cut_files: u64,
    /// Results at or after the cursor.
    results_ahead: u64,
}

impl SearchCounts {
    fn add(&mut self, other: &Self) {
        self.matching_lines += other.matching_lines;
        self.matching_files += other.matching_files;
        self.searched_files += other.searched_files;
        self.cut_files += other.cut_files;
        self.results_ahead += other.results_ahead;
    }
}

/// State that all threads share.
struct Search<'s> {
    options: &'s SearchOptions<'s>,
    call: &'s Call,
    cursor: PageCursor,
    page: Mutex<ResultPage>,
    failure: Mutex<Option<StoreError>>,
}

impl Search<'_> {
    fn search_file(
        &self,
        pattern: &Pattern,
        tally: &mut SearchCounts,
        file: &mut TreeFile<'_>,
    ) -> ControlFlow<()> {
        let path = file.path();
        let Some(whole) = file.text() else { return ControlFlow::Continue(()) };
        tally.searched_files += 1;
        match self.line_matches(pattern, tally, path, whole) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Counts the lines that match, and adds those to the page that belong there.
    fn line_matches(
        &self,
        pattern: &Pattern,
        tally: &mut SearchCounts,
        path: &str,
        whole: &str,
    ) -> Result<(), StoreError> {
        let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
        // Most files have no match, and need no excerpts.
        let mut excerpts = None;
        let (mut count, mut is_cut) = (0, false);
        for piece in pattern.pieces(text) {
            self.call.check()?;
            let mut matches = pattern.line_matches(text, &piece, self.call);
            for found in matches.by_ref() {
                count += 1;
                let excerpts = excerpts.get_or_insert_with(|| self.excerpts(path, text));
                excerpts.add(found);
            }
            is_cut |= matches.is_cut;
        }
        self.call.check()?;
        tally.cut_files += u64::from(is_cut);
        let Some(excerpts) = excerpts else { return Ok(()) };
        tally.matching_lines += count;
        tally.matching_files += 1;
        tally.results_ahead += match self.options.show {
            ResultKind::Lines => count - excerpts.behind(),
            ResultKind::Counts => u64::from(self.cursor.is_ahead(path)),
        };
        if excerpts.is_wanted() {
            self.page().insert(FileMatches {
                path: path.to_owned(),
                hash: Hash::of(whole.as_bytes()),
                matching_lines: count,
                lines: excerpts.lines(pattern, self.options),
            });
        }
        Ok(())
    }

    /// Returns empty excerpts of a file, which accept as many lines as the page may show.
    fn excerpts<'t>(&self, path: &str, text: &'t str) -> Excerpts<'t> {
        let page = self.page();
        match self.options.show {
            ResultKind::Counts => {
                let is_wanted = self.cursor.is_ahead(path) && page.may_include(path);
                let excerpts = Excerpts::none(text);
                if is_wanted { excerpts.with_file() } else { excerpts }
            }
            ResultKind::Lines => {
                let room = if page.may_include(path) { page.max_results() } else { 0 };
                Excerpts::new(text, self.cursor.first_line(path), room)
            }
        }
    }

    fn page(&self) -> MutexGuard<'_, ResultPage> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
