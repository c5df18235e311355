//! Ranking: finds the files that a query is about, and their lines.
//!
//! There is no index: a [`Scan`] visits every file of a tree once, from any number of threads, and keeps a few numbers
//! of each. After the last file it knows how rare each term is, and [`Scan::finish`] sorts the files. Lines are
//! searched for only in the best files ([`Ranking::term_lines`]), which are read a second time.
//!
//! The score of a file is BM25 over the terms in it: a term counts once wherever it is, more in the name of a
//! definition, and more still in the path. The length of a file is counted in bytes. A file whose name consists of
//! terms gets a higher score, and so does one whose namesake matches: a test and the code it tests are changed
//! together.

pub(crate) mod definition;
mod lines;
mod matcher;
mod name;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

pub use lines::{TermLine, TermLines};
use matcher::TermMatcher;
pub(crate) use name::{is_source, is_test};

use crate::words::{self, TERMS_MAX, Term, TermKind};

/// Number of further occurrences that a term counts as in the name of a definition.
const DEFINITION_WEIGHT: f64 = 2.0;
/// Number of occurrences that a term counts as in the path.
const PATH_WEIGHT: f64 = 4.0;
/// Saturation of BM25: how soon more of the same term adds nothing.
const SATURATION: f64 = 6.0;
/// Share of the length of a file that counts against it.
const LENGTH_SHARE: f64 = 0.15;
/// Bonus of a file whose name consists of terms only, as a share of the rarity of these terms.
const NAME_BONUS: f64 = 1.0;
/// Share of the distance to the score of its namesake by which the score of a file is raised.
const NAMESAKE_SHARE: f64 = 0.4;
/// Most files with the same name that count as namesakes; more have nothing in common.
const NAMESAKES_MAX: usize = 5;
/// Score factor of a test if the query is not about tests.
const TEST_FACTOR: f64 = 0.85;
/// Number of the best files among which namesakes are searched for.
const COMPARED_MAX: usize = 256;
/// Score factor of a file that is no source.
const OTHER_FACTOR: f64 = 0.5;
/// Score factor of a file that the caller named.
const NAMED_FACTOR: f64 = 2.0;
/// Score factor of a file in the same folder as a named one.
const NEIGHBOUR_FACTOR: f64 = 1.25;

/// Score factor of a file that a named one imports.
const IMPORTED_FACTOR: f64 = 1.5;
/// Prefixes of lines that import.
const IMPORT_PREFIXES: &[&str] =
    &["use ", "pub use ", "mod ", "import ", "from ", "export ", "#include", "using ", "require"];
/// Most of these lines that are examined.
const IMPORTS_MAX: usize = 1000;

/// Number of files of which the counts are kept; of more files, those of the most promising ones.
const KEPT_FILES_MAX: usize = 1 << 16;
/// Most memory for the files that are kept.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Most files that a caller may name.
const NAMED_FILES_MAX: usize = 64;

/// A query: its terms, and the files it names.
#[derive(Debug)]
pub struct RankQuery {
    matcher: TermMatcher,
    named: Vec<String>,
    /// Names that the named files import, in lower case.
    imported: HashSet<Vec<u8>>,
    is_about_tests: bool,
}

impl RankQuery {
    /// Makes a query of words, identifiers or both; `named` are files it is about, and files in their folders get a
    /// higher score too.
    pub fn new<'a>(text: &str, named: impl IntoIterator<Item = &'a str>) -> Self {
        let named = named.into_iter().take(NAMED_FILES_MAX).map(str::to_owned).collect();
        let terms = words::terms(text);
        let is_about_tests = terms.iter().any(|term| term.text == b"test");
        Self { matcher: TermMatcher::new(&terms), named, imported: HashSet::new(), is_about_tests }
    }

    /// Terms to search for; a [`TermSet`] counts in this order.
    pub fn terms(&self) -> &[Term] {
        self.matcher.terms()
    }

    /// Raises the scores of files that `text`, which is in a named one, imports. They are found by their names, since
    /// the path of an import is different in each language.
    pub fn add_imports(&mut self, text: &str) {
        let imports = text.lines().map(str::trim_start).filter(|line| {
            IMPORT_PREFIXES.iter().any(|import| line.starts_with(import))
                || line.contains("require(")
        });
        for line in imports.take(IMPORTS_MAX) {
            let names = line.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
            self.imported.extend(names.map(name::joined).filter(|name| !name.is_empty()));
        }
    }

    fn is_named(&self, path: &str) -> bool {
        self.named.iter().any(|named| named == path)
    }

    /// Score factor of a file by its kind and its place.
    fn score_factor(&self, path: &str) -> f64 {
        let test = if !self.is_about_tests && is_test(path) { TEST_FACTOR } else { 1.0 };
        let test = if is_source(path) { test } else { OTHER_FACTOR * test };
        if self.is_named(path) {
            NAMED_FACTOR
        } else if !self.imported.is_empty() && self.imported.contains(&name::joined(path)) {
            IMPORTED_FACTOR * test
        } else if self.named.iter().any(|named| folder(named) == folder(path)) {
            NEIGHBOUR_FACTOR * test
        } else {
            test
        }
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A set of the terms of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TermSet(u32);

const _: () = assert!(TERMS_MAX <= u32::BITS as usize);

impl TermSet {
    fn insert(&mut self, term: usize) {
        self.0 |= 1 << term;
    }

    pub fn contains(self, term: usize) -> bool {
        self.0 >> term & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Positions in [`RankQuery::terms`].
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..TERMS_MAX).filter(move |term| self.contains(*term))
    }
}

/// Number of occurrences of a term in a file, by place.
#[derive(Debug, Clone, Copy, Default)]
struct TermCounts {
    term: u8,
    path: u8,
    /// True if it is a word of the name of the file.
    name: bool,
    definitions: u16,
    body: u32,
}

impl TermCounts {
    fn weighted(self) -> f64 {
        f64::from(self.body)
            + DEFINITION_WEIGHT * f64::from(self.definitions)
            + PATH_WEIGHT * f64::from(self.path)
    }
}

/// Numbers that are kept of a file.
#[derive(Debug)]
struct ScannedFile {
    path: Box<str>,
    length: u64,
    /// Number of words in the name of the file.
    name_words: u8,
    counts: Box<[TermCounts]>,
    /// Estimate of the score before the rarity of the terms is known.
    estimate: f64,
}

impl ScannedFile {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.path.len() + size_of_val(&*self.counts)
    }

    fn order(&self, other: &Self) -> Ordering {
        other.estimate.total_cmp(&self.estimate).then_with(|| self.path.cmp(&other.path))
    }
}

#[derive(Debug, Default)]
struct ScanTotals {
    files: u64,
    bytes: u64,
    /// Number of files that contain each term.
    containing: [u64; TERMS_MAX],
    kept: Vec<ScannedFile>,
    kept_bytes: usize,
}

impl ScanTotals {
    /// Adds a file, and drops the least promising half if there are too many.
    fn keep(&mut self, file: ScannedFile) {
        self.kept_bytes += file.bytes();
        self.kept.push(file);
        if self.kept.len() >= 2 * KEPT_FILES_MAX || self.kept_bytes >= KEPT_BYTES_MAX {
            let most = self.kept.len() / 2;
            self.kept.select_nth_unstable_by(most, ScannedFile::order);
            self.kept.truncate(most);
            self.kept_bytes = self.kept.iter().map(ScannedFile::bytes).sum();
        }
    }
}

/// One pass over the files of a tree.
#[derive(Debug)]
pub struct Scan<'q> {
    query: &'q RankQuery,
    seen: Mutex<ScanTotals>,
}

impl<'q> Scan<'q> {
    pub fn new(query: &'q RankQuery) -> Self {
        Self { query, seen: Mutex::default() }
    }

    /// Counts the terms in a file. Any number of threads may call this at once; the order of files matters only if some
    /// are dropped.
    pub fn visit(&self, path: &str, text: &[u8]) {
        let counts = self.count(path, text);
        let named = self.query.is_named(path);
        let kept = (named || !counts.is_empty()).then(|| {
            let estimate = self.estimate(&counts) + if named { f64::from(u32::MAX) } else { 0.0 };
            let name_words = u8::try_from(name::words(path).count()).unwrap_or(u8::MAX);
            let (path, length, counts) = (path.into(), text.len() as u64, counts.into());
            ScannedFile { path, length, name_words, counts, estimate }
        });

        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.files += 1;
        seen.bytes += text.len() as u64;
        let Some(kept) = kept else { return };
        for count in &kept.counts {
            seen.containing[usize::from(count.term)] += 1;
        }
        seen.keep(kept);
    }

    fn count(&self, path: &str, text: &[u8]) -> Vec<TermCounts> {
        let mut counts = [TermCounts::default(); TERMS_MAX];
        let matcher = &self.query.matcher;
        matcher.find(path.as_bytes(), |found| {
            let count = &mut counts[found.term];
            count.path = count.path.saturating_add(1);
            let is_word = matcher.terms()[found.term].kind == TermKind::Word;
            count.name |= is_word && name::words(path).any(|word| word.start == found.start);
        });
        matcher.find(text, |found| {
            let count = &mut counts[found.term];
            count.body = count.body.saturating_add(1);
            if definition::defines(text, found.start, found.end) {
                count.definitions = count.definitions.saturating_add(1);
            }
        });
        let counts = (0_u8..).zip(counts).map(|(term, count)| TermCounts { term, ..count });
        counts.filter(|count| count.body > 0 || count.path > 0).collect()
    }

    /// Estimates the score. Whole identifiers are rarer than words, so they count more.
    fn estimate(&self, counts: &[TermCounts]) -> f64 {
        let of = |count: &TermCounts| {
            let weight = match self.query.terms()[usize::from(count.term)].kind {
                TermKind::Word => 1.0,
                TermKind::Identifier => 4.0,
            };
            weight * saturated(count.weighted(), 1.0)
        };
        counts.iter().map(of).sum()
    }

    /// Returns the `limit` best files: by their scores, and by their paths if the scores are the same.
    pub fn finish(self, limit: usize) -> Ranking<'q> {
        let seen = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rarity = seen.containing.map(|containing| rarity(containing, seen.files));
        let average = (as_float(seen.bytes) / as_float(seen.files.max(1))).max(1.0);
        let matched = seen.kept.len();
        let hit = |kept: ScannedFile| {
            let score = score(&kept, &rarity, average) * self.query.score_factor(&kept.path);
            RankedFile {
                score,
                matched_terms: MatchedTerms::new(&kept.counts),
                path: kept.path.into(),
            }
        };
        let mut hits: Vec<RankedFile> = seen.kept.into_iter().map(hit).collect();
        hits.sort_unstable_by(RankedFile::order);
        hits.truncate(limit.max(COMPARED_MAX));
        boost_namesakes(&mut hits);
        hits.sort_unstable_by(RankedFile::order);
        hits.truncate(limit);
        Ranking { query: self.query, best_files: hits, files: seen.files, matched, rarity }
    }
}

fn score(kept: &ScannedFile, rarity: &[f64; TERMS_MAX], average: f64) -> f64 {
    let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * as_float(kept.length) / average;
    let of =
        |count: &TermCounts| rarity[usize::from(count.term)] * saturated(count.weighted(), length);
    let all: f64 = kept.counts.iter().map(of).sum();
    let named = || kept.counts.iter().filter(|count| count.name);
    let covered = as_float(named().count() as u64) / f64::from(kept.name_words.max(1));
    let said: f64 = named().map(|count| rarity[usize::from(count.term)]).sum();
    all + NAME_BONUS * covered.min(1.0) * said
}

fn boost_namesakes(hits: &mut [RankedFile]) {
    let mut namesakes: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, hit) in hits.iter().enumerate().take(COMPARED_MAX) {
        let name = name::joined(&hit.path);
        if !name.is_empty() {
            namesakes.entry(name).or_default().push(at);
        }
    }
    for group in namesakes.values().filter(|group| group.len() <= NAMESAKES_MAX) {
        // The hits are sorted by score.
        let most = hits[group[0]].score;
        for at in group {
            hits[*at].score += NAMESAKE_SHARE * (most - hits[*at].score);
        }
    }
}

/// BM25 weight of a term that is `weighted` times in a text of this relative length.
fn saturated(weighted: f64, length: f64) -> f64 {
    weighted * (SATURATION + 1.0) / (weighted + SATURATION * length)
}

/// Weight of a term that `containing` of `files` files contain. Half as steep as in BM25: the rarest word of a query
/// often has nothing to do with the program.
fn rarity(containing: u64, files: u64) -> f64 {
    let (containing, files) = (as_float(containing), as_float(files));
    (1.0 + (files - containing + 0.5) / (containing + 0.5)).max(1.0).ln().sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a score need not be exact")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// Result of a scan.
#[derive(Debug)]
pub struct Ranking<'q> {
    query: &'q RankQuery,
    /// The best files, best first.
    pub best_files: Vec<RankedFile>,
    /// Number of files visited.
    pub files: u64,
    /// Number of files with matches; files that were dropped because there were too many do not count.
    pub matched: usize,
    rarity: [f64; TERMS_MAX],
}

impl Ranking<'_> {
    /// Form of a term of the query that is shown to people.
    pub fn display_term(&self, term: usize) -> Option<&str> {
        self.query.terms().get(term).map(|term| term.shown.as_str())
    }

    /// Finds the lines of a file that the query is about; `text` is its present content.
    pub fn term_lines(&self, text: &[u8]) -> TermLines {
        TermLines::new(&self.query.matcher, &self.rarity, text)
    }
}

/// A file that the query may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedFile {
    pub path: String,
    /// Comparable only with others of the same ranking.
    pub score: f64,
    pub matched_terms: MatchedTerms,
}

impl RankedFile {
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.path.cmp(&other.path))
    }
}

/// Terms that are in a file, by place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchedTerms {
    pub path: TermSet,
    pub definitions: TermSet,
    pub body: TermSet,
}

impl MatchedTerms {
    fn new(counts: &[TermCounts]) -> Self {
        let mut why = Self::default();
        for count in counts {
            let term = usize::from(count.term);
            if count.path > 0 {
                why.path.insert(term);
            }
            if count.definitions > 0 {
                why.definitions.insert(term);
            }
            if count.body > 0 {
                why.body.insert(term);
            }
        }
        why
    }
}
