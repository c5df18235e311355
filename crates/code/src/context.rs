//! Context of a tree of source files that a caller needs before it changes them: where symbols are defined and used,
//! what is in a file, which lines a query is about, and the folders.
//!
//! - `survey`: one pass over all files, which finds the candidates
//! - `symbol`: a name to search for; `definitions`, `references`: where it is defined, and used
//! - `snippets`: the lines that a query is about; `outlines`: the parts of a file
//! - `map`: the most important definitions, for a request that names nothing; `structure`: the folders
//! - `source`: reads a file, and makes its outline
//!
//! Files are searched first, and only those that are shown are parsed.

mod definitions;
mod map;
mod outlines;
mod references;
mod snippets;
mod source;
mod structure;
mod survey;
mod symbol;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use files::tree::{Skipped, TreeOptions};
use files::{Call, Hash, Root, Store, StoreError};

use crate::outline::{Part, PartKind};
use crate::rank::{RankQuery, Ranking};
pub use snippets::shown_lines;
use source::SourceReader;
pub use source::{LINE_CHARS_MAX, SourceError, hash_of_lines};
pub use structure::Structure;
use survey::Survey;
pub use symbol::{NameMatching, SYMBOL_BYTES_MAX, Symbol};

/// Most lines that are kept of a result to be shown.
pub const ITEM_LINES_MAX: usize = 400;
/// Most files that are parsed to find where one name is defined or used.
const PARSED_FILES_MAX: usize = 96;

/// A limit on the bytes that all threads of a pass over the files keep.
struct KeptBytes {
    left: AtomicUsize,
}

impl KeptBytes {
    const MAX: usize = 16 << 20;

    fn new() -> Self {
        Self { left: AtomicUsize::new(Self::MAX) }
    }

    /// Counts `bytes` as kept. False if they use up what is left; nothing is left then.
    fn try_add(&self, bytes: usize) -> bool {
        let less = |left: usize| Some(left.saturating_sub(bytes));
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.is_ok_and(|left| left > bytes)
    }

    fn is_used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// A section of the context, in the order in which sections are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Structure,
    Outline,
    Definitions,
    Snippets,
    References,
}

impl Section {
    /// Sections that consist of results.
    pub const WITH_RESULTS: [Self; 4] =
        [Self::Outline, Self::Definitions, Self::Snippets, Self::References];
}

/// A count for each section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SectionCounts([usize; 5]);

impl SectionCounts {
    pub fn of(self, section: Section) -> usize {
        self.0[section as usize]
    }

    pub fn add(&mut self, section: Section, more: usize) {
        let count = &mut self.0[section as usize];
        *count = count.saturating_add(more);
    }

    pub fn set(&mut self, section: Section, count: usize) {
        self.0[section as usize] = count;
    }

    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// A request for context.
#[derive(Debug)]
pub struct ContextRequest<'a> {
    /// Words, identifiers or both; empty if there is no query.
    pub query: &'a str,
    pub symbols: &'a [Symbol],
    /// Paths from the root.
    pub files: &'a [String],
    /// Lines that are shown whatever is in them.
    pub excerpts: &'a [(String, Range<usize>)],
    /// Sections to gather; empty for those that fit the request.
    pub sections: &'a [Section],
    /// Kinds of parts to show; empty for all.
    pub kinds: &'a [PartKind],
    /// Levels of folders, and of names inside names.
    pub depth: usize,
    /// Most results of each section.
    pub max_results: usize,
    /// Start of each section: a [`CodeContext::end`] or a [`ContextItem::position`] of an earlier page.
    pub start: SectionCounts,
    pub tree: TreeOptions,
}

impl ContextRequest<'_> {
    fn includes(&self, section: Section) -> bool {
        let asks = !self.query.is_empty() || !self.symbols.is_empty();
        let asks_nothing = !asks && self.files.is_empty() && self.excerpts.is_empty();
        match section {
            section if !self.sections.is_empty() => self.sections.contains(&section),
            Section::Structure => asks_nothing,
            Section::Outline => !self.files.is_empty(),
            Section::Definitions => asks || asks_nothing,
            Section::Snippets => !self.query.is_empty(),
            Section::References => !self.symbols.is_empty(),
        }
    }

    /// True if the map is needed: parts are to be shown, and the request does not name any.
    fn needs_map(&self) -> bool {
        let asks = !self.query.is_empty() || !self.symbols.is_empty();
        let outlines = self.includes(Section::Outline) && self.files.is_empty();
        !asks && (outlines || self.includes(Section::Definitions))
    }

    fn includes_part(&self, part: &Part) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&part.kind)
    }

    /// Range of a section's `results` on this page. Records where it ends, and the number of results after it.
    fn page(&self, section: Section, results: usize, context: &mut CodeContext) -> Range<usize> {
        let start = self.start.of(section).min(results);
        let end = results.min(start.saturating_add(self.max_results));
        context.left.add(section, results - end);
        context.end.set(section, end);
        start..end
    }
}

/// The context of a request.
#[derive(Debug, Default)]
pub struct CodeContext {
    /// Results by section, then by score, path and line.
    pub items: Vec<ContextItem>,
    /// Number of results after this page.
    pub left: SectionCounts,
    /// Start of the next page.
    pub end: SectionCounts,
    pub structure: Option<Structure>,
    /// Number of files that were searched.
    pub scanned: u64,
    pub skipped: Skipped,
    pub notes: Vec<String>,
    /// Requested files that cannot be shown.
    pub unreadable: Vec<(String, SourceError)>,
}

/// A result: some lines of a file.
#[derive(Debug, Clone)]
pub struct ContextItem {
    pub section: Section,
    /// Position in the section, from which a page may begin.
    pub position: usize,
    pub path: String,
    pub language: Option<&'static str>,
    /// Line numbers, counted from 0.
    pub lines: Range<usize>,
    /// The part that the lines are, or are in: `Type/method`.
    pub symbol: Option<String>,
    pub kind: Option<PartKind>,
    pub signature: Option<String>,
    /// Score from 0 to 1, if it was compared with others.
    pub score: Option<f64>,
    pub why: Vec<String>,
    /// Text to show: the first [`ITEM_LINES_MAX`] lines, or the rows of an outline.
    pub text: Vec<String>,
    /// Number of lines or rows in all.
    pub rows: usize,
    /// Hash of these lines, terminators included.
    pub hash: Hash,
    pub file_hash: Hash,
}

/// Gathers the context that is asked for.
pub fn gather(
    root: &Root,
    store: &dyn Store,
    request: &ContextRequest<'_>,
    call: &Call,
) -> Result<CodeContext, StoreError> {
    let reader = SourceReader::new(root, store, call);
    let query = rank_query(&reader, request);
    let survey = Survey::run(root, request, query.as_ref(), call)?;
    let mut context =
        CodeContext { scanned: survey.scanned, skipped: survey.skipped, ..CodeContext::default() };
    context.structure = survey.structure;
    let map = if request.needs_map() { Some(map::write_folder(&reader, request)?) } else { None };
    let likely = map.as_ref().map_or(&[][..], |map| &map.paths[..]);

    context.scanned = map.as_ref().map_or(context.scanned, |map| map.scanned);
    context.end = request.start;
    if request.includes(Section::Outline) {
        outlines::gather(&reader, request, survey.ranking.as_ref(), likely, &mut context);
    }
    if request.includes(Section::Definitions) {
        match map {
            Some(map) => map.definitions(request, &mut context),
            None => definitions::gather(&reader, request, &survey.mentions, &mut context),
        }
    }
    if request.includes(Section::Snippets) || !request.excerpts.is_empty() {
        snippets::gather(&reader, request, survey.ranking.as_ref(), &mut context);
    }
    if request.includes(Section::References) {
        references::gather(&reader, request, &survey.mentions, &mut context);
    }
    if call.cancel.is_set() {
        return Err(StoreError::Cancelled);
    }
    if survey.leaves_out_mentions {
        let note = "too many uses; some are left out: narrow `path` or `globs`";
        context.notes.push(note.to_owned());
    }
    if reader.is_over() {
        context.notes.push("the time ran out: some files were not parsed".to_owned());
    }
    let shows_nothing = context.items.is_empty() && context.structure.is_none();
    if shows_nothing && context.notes.is_empty() && context.unreadable.is_empty() {
        context.notes.push(no_results_note(request).to_owned());
    }
    Ok(context)
}

fn no_results_note(request: &ContextRequest<'_>) -> &'static str {
    if !request.start.is_empty() {
        "no more results"
    } else if request.query.is_empty() {
        "no results"
    } else {
        "no file contains any of these words; try others, or `search_files`"
    }
}

/// Returns the query that files are ranked by, if there is one.
fn rank_query(reader: &SourceReader<'_>, request: &ContextRequest<'_>) -> Option<RankQuery> {
    if request.query.is_empty() {
        return None;
    }
    let named = request.files.iter().map(String::as_str);
    let mut query = RankQuery::new(request.query, named);
    for path in request.files {
        if let Ok(source) = reader.read(path) {
            query.add_imports(source.text.as_str());
        }
    }
    Some(query)
}

/// Number of files in each language.
pub type Languages = BTreeMap<&'static str, u64>;

/// Reasons why a file matches a query: `path`, `definition`, and the terms in its body.
fn match_reasons(ranking: &Ranking<'_>, why: crate::rank::MatchedTerms) -> Vec<String> {
    let mut reasons = Vec::new();
    if !why.path.is_empty() {
        reasons.push("path".to_owned());
    }
    if !why.definitions.is_empty() {
        reasons.push("definition".to_owned());
    }
    let shown: Vec<&str> = why.body.iter().filter_map(|term| ranking.display_term(term)).collect();
    if !shown.is_empty() {
        reasons.push(format!("body:{}", shown.join(",")));
    }
    reasons
}

/// Calls `each` with every item on several threads. Returns the results in the order of the items.
fn parallel<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, each(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        // If no more threads can be started, the others do all of the work.
        let others: Vec<_> = (1..threads.min(items.len()))
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
