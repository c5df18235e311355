//! Context of a tree of source files that a caller needs before it changes them: where symbols are defined and used,
//! what is in a file, which lines a question is about, and the folders.
//!
//! - `survey`: one pass over all files, which finds the candidates
//! - `symbol`: a name to search for; `definitions`, `references`: where it is defined, and used
//! - `snippets`: the lines that a question is about; `outlines`: the parts of a file
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
use crate::rank::{Question, Ranking};
pub use snippets::shown_lines;
use source::Reader;
pub use source::{LONGEST_LINE, Unreadable, hash_of_lines};
pub use structure::Structure;
use survey::Survey;
pub use symbol::{LONGEST_NAME, Match, Symbol};

/// Most lines that are kept of a result to be shown.
pub const MOST_LINES: usize = 400;
/// Most files that are parsed to find where one name is defined or used.
const MOST_PARSED: usize = 96;

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
pub struct Counts([usize; 5]);

impl Counts {
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
pub struct Wanted<'a> {
    /// Words, identifiers or both; empty if there is no question.
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
    /// Start of each section: a [`Gathered::end`] or a [`Found::at`] of an earlier page.
    pub start: Counts,
    pub tree: TreeOptions,
}

impl Wanted<'_> {
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

    fn wants(&self, part: &Part) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&part.kind)
    }

    /// Range of a section's `results` on this page. Records where it ends, and the number of results after it.
    fn page(&self, section: Section, results: usize, gathered: &mut Gathered) -> Range<usize> {
        let start = self.start.of(section).min(results);
        let end = results.min(start.saturating_add(self.max_results));
        gathered.left.add(section, results - end);
        gathered.end.set(section, end);
        start..end
    }
}

/// The context that was gathered.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Results by section, then by score, path and line.
    pub found: Vec<Found>,
    /// Number of results after this page.
    pub left: Counts,
    /// Start of the next page.
    pub end: Counts,
    pub structure: Option<Structure>,
    /// Number of files that were searched.
    pub scanned: u64,
    pub skipped: Skipped,
    pub notes: Vec<String>,
    /// Requested files that cannot be shown.
    pub unreadable: Vec<(String, Unreadable)>,
}

/// A result: some lines of a file.
#[derive(Debug, Clone)]
pub struct Found {
    pub section: Section,
    /// Position in the section, from which a page may begin.
    pub at: usize,
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
    /// Text to show: the first [`MOST_LINES`] lines, or the rows of an outline.
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
    wanted: &Wanted<'_>,
    call: &Call,
) -> Result<Gathered, StoreError> {
    let reader = Reader::new(root, store, call);
    let question = question(&reader, wanted);
    let survey = Survey::take(root, wanted, question.as_ref(), call)?;
    let mut gathered =
        Gathered { scanned: survey.scanned, skipped: survey.skipped, ..Gathered::default() };
    gathered.structure = survey.structure;
    let map = if wanted.needs_map() { Some(map::draw(&reader, wanted)?) } else { None };
    let likely = map.as_ref().map_or(&[][..], |map| &map.paths[..]);

    gathered.scanned = map.as_ref().map_or(gathered.scanned, |map| map.scanned);
    gathered.end = wanted.start;
    if wanted.includes(Section::Outline) {
        outlines::gather(&reader, wanted, survey.ranking.as_ref(), likely, &mut gathered);
    }
    if wanted.includes(Section::Definitions) {
        match map {
            Some(map) => map.definitions(wanted, &mut gathered),
            None => definitions::gather(&reader, wanted, &survey.mentions, &mut gathered),
        }
    }
    if wanted.includes(Section::Snippets) || !wanted.excerpts.is_empty() {
        snippets::gather(&reader, wanted, survey.ranking.as_ref(), &mut gathered);
    }
    if wanted.includes(Section::References) {
        references::gather(&reader, wanted, &survey.mentions, &mut gathered);
    }
    if call.cancel.is_set() {
        return Err(StoreError::Cancelled);
    }
    if survey.leaves_out_mentions {
        let note = "too many uses were found, and some are left out: narrow `path` or `globs`";
        gathered.notes.push(note.to_owned());
    }
    if reader.is_over() {
        gathered.notes.push("time was short: not every file was parsed".to_owned());
    }
    let shows_nothing = gathered.found.is_empty() && gathered.structure.is_none();
    if shows_nothing && gathered.notes.is_empty() && gathered.unreadable.is_empty() {
        gathered.notes.push(nothing(wanted).to_owned());
    }
    Ok(gathered)
}

fn nothing(wanted: &Wanted<'_>) -> &'static str {
    if !wanted.start.is_empty() {
        "there is no more"
    } else if wanted.query.is_empty() {
        "nothing fits what was asked for"
    } else {
        "no file has one of these words; try others, or `search_files`"
    }
}

/// Returns the question that files are ranked by, if there is one.
fn question(reader: &Reader<'_>, wanted: &Wanted<'_>) -> Option<Question> {
    if wanted.query.is_empty() {
        return None;
    }
    let named = wanted.files.iter().map(String::as_str);
    let mut question = Question::new(wanted.query, named);
    for path in wanted.files {
        if let Ok(source) = reader.read(path) {
            question.uses(source.text.as_str());
        }
    }
    Some(question)
}

/// Number of files in each language.
pub type Languages = BTreeMap<&'static str, u64>;

/// Reasons why a file matches a question: `path`, `definition`, and the terms in its body.
fn reasons(ranking: &Ranking<'_>, why: crate::rank::Why) -> Vec<String> {
    let mut reasons = Vec::new();
    if !why.path.is_empty() {
        reasons.push("path".to_owned());
    }
    if !why.definitions.is_empty() {
        reasons.push("definition".to_owned());
    }
    let shown: Vec<&str> = why.body.iter().filter_map(|term| ranking.shown(term)).collect();
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
