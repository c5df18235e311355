//! Which files a question is about, and which of their lines.
//!
//! There is no index: a [`Scan`] is shown every file of a tree once, by as many threads as like to, and keeps a few numbers
//! of each; when it has seen all, it knows how rare each term is, and [`Scan::finish`] puts the files in order. The lines
//! are looked for in the best files only ([`Ranking::look_into`]), which are shown a second time.
//!
//! A file's score is BM25 over its own terms, where a term counts once wherever it stands, more where it is the name of
//! something that is defined there, and more still in the path. How long a file is, is counted in bytes. A file whose very
//! name is made of terms gets more, and so does one whose namesake fits: a test and what it tests are changed together.

pub(crate) mod definition;
mod lines;
mod matcher;
mod name;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

pub use lines::{Line, Lines};
use matcher::Matcher;
pub(crate) use name::{is_source, is_test};

use crate::words::{self, MAX_TERMS, Term, TermKind};

/// How often a term counts besides, where a name is defined.
const DEFINITION: f64 = 2.0;
/// How often a term counts that is in the path.
const PATH: f64 = 4.0;
/// How soon more of the same term adds nothing.
const SATURATION: f64 = 6.0;
/// How much of a file's length counts against it.
const LENGTH: f64 = 0.15;
/// What a file gets besides if all of its name are terms, as a share of what these say.
const NAME: f64 = 1.0;
/// How much of the way to its namesake's score a file is lifted.
const NAMESAKE: f64 = 0.4;
/// Files with the same name have nothing in common if there are more than this.
const MAX_NAMESAKES: usize = 5;
/// What a test is multiplied with if the question is not about tests.
const TEST: f64 = 0.85;
/// Namesakes are looked for among so many of the best.
const MAX_COMPARED: usize = 256;
/// What a file is multiplied with that is no source.
const OTHER: f64 = 0.5;
/// What a file is multiplied with that the caller named.
const NAMED: f64 = 2.0;
/// What a file is multiplied with that is in the same folder as a named one.
const NEIGHBOUR: f64 = 1.25;

/// What a file is multiplied with that a named one says it uses.
const USED: f64 = 1.5;
/// What a line begins with that says what a file uses.
const IMPORTS: &[&str] =
    &["use ", "pub use ", "mod ", "import ", "from ", "export ", "#include", "using ", "require"];
/// So many of these lines are looked at.
const MAX_IMPORTS: usize = 1000;

/// Of so many files what was found is kept; with more, of the most promising ones.
const MAX_KEPT: usize = 1 << 16;
/// Most memory of what is kept by each thread.
const MAX_KEPT_BYTES: usize = 16 << 20;
/// How many files a caller may name.
const MAX_NAMED: usize = 64;

/// What is asked.
#[derive(Debug)]
pub struct Question {
    matcher: Matcher,
    named: Vec<String>,
    /// What named files say that they use, in lower case.
    used: HashSet<Vec<u8>>,
    is_about_tests: bool,
}

impl Question {
    /// A question in words, identifiers or both; `named` are files it is about, whose folders are lifted too.
    pub fn new<'a>(text: &str, named: impl IntoIterator<Item = &'a str>) -> Self {
        let named = named.into_iter().take(MAX_NAMED).map(str::to_owned).collect();
        let terms = words::terms(text);
        let is_about_tests = terms.iter().any(|term| term.text == b"test");
        Self { matcher: Matcher::new(&terms), named, used: HashSet::new(), is_about_tests }
    }

    /// What is looked for; [`TermSet`] counts in this order.
    pub fn terms(&self) -> &[Term] {
        self.matcher.terms()
    }

    /// Files are lifted too that `text`, which is in a named one, says it uses: by their names, since what an import leads
    /// to is different in each language.
    pub fn uses(&mut self, text: &str) {
        let imports = text.lines().map(str::trim_start).filter(|line| {
            IMPORTS.iter().any(|import| line.starts_with(import)) || line.contains("require(")
        });
        for line in imports.take(MAX_IMPORTS) {
            let names = line.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
            self.used.extend(names.map(name::joined).filter(|name| !name.is_empty()));
        }
    }

    fn is_named(&self, path: &str) -> bool {
        self.named.iter().any(|named| named == path)
    }

    /// What a file's score is multiplied with because of what and where the file is.
    fn lift(&self, path: &str) -> f64 {
        let test = if !self.is_about_tests && is_test(path) { TEST } else { 1.0 };
        let test = if is_source(path) { test } else { OTHER * test };
        if self.is_named(path) {
            NAMED
        } else if !self.used.is_empty() && self.used.contains(&name::joined(path)) {
            USED * test
        } else if self.named.iter().any(|named| folder(named) == folder(path)) {
            NEIGHBOUR * test
        } else {
            test
        }
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Some of the terms of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TermSet(u32);

const _: () = assert!(MAX_TERMS <= u32::BITS as usize);

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

    /// Their places in [`Question::terms`].
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_TERMS).filter(move |term| self.contains(*term))
    }
}

/// How often a term is in a file, and where.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    term: u8,
    path: u8,
    /// Whether it is a word of what the file is called.
    name: bool,
    definitions: u16,
    body: u32,
}

impl Count {
    fn weighted(self) -> f64 {
        f64::from(self.body)
            + DEFINITION * f64::from(self.definitions)
            + PATH * f64::from(self.path)
    }
}

/// What is kept of a file.
#[derive(Debug)]
struct Kept {
    path: Box<str>,
    length: u64,
    /// How many words there are in what it is called.
    name_words: u8,
    counts: Box<[Count]>,
    /// What is known of its score before it is known how rare the terms are.
    promise: f64,
}

impl Kept {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.path.len() + size_of_val(&*self.counts)
    }

    fn order(&self, other: &Self) -> Ordering {
        other.promise.total_cmp(&self.promise).then_with(|| self.path.cmp(&other.path))
    }
}

#[derive(Debug, Default)]
struct Seen {
    files: u64,
    bytes: u64,
    /// In how many files each term is.
    containing: [u64; MAX_TERMS],
    kept: Vec<Kept>,
    kept_bytes: usize,
}

impl Seen {
    /// Drops the least promising half if there are too many.
    fn keep(&mut self, file: Kept) {
        self.kept_bytes += file.bytes();
        self.kept.push(file);
        if self.kept.len() >= 2 * MAX_KEPT || self.kept_bytes >= MAX_KEPT_BYTES {
            let most = self.kept.len() / 2;
            self.kept.select_nth_unstable_by(most, Kept::order);
            self.kept.truncate(most);
            self.kept_bytes = self.kept.iter().map(Kept::bytes).sum();
        }
    }
}

/// One pass over the files of a tree.
#[derive(Debug)]
pub struct Scan<'q> {
    question: &'q Question,
    seen: Mutex<Seen>,
}

impl<'q> Scan<'q> {
    pub fn new(question: &'q Question) -> Self {
        Self { question, seen: Mutex::default() }
    }

    /// Takes note of a file; any number of threads may call this at once. The outcome does not depend on the order.
    pub fn visit(&self, path: &str, text: &[u8]) {
        let counts = self.count(path, text);
        let named = self.question.is_named(path);
        let kept = (named || !counts.is_empty()).then(|| {
            let promise = self.promise(&counts) + if named { f64::from(u32::MAX) } else { 0.0 };
            let name_words = u8::try_from(name::words(path).count()).unwrap_or(u8::MAX);
            let (path, length, counts) = (path.into(), text.len() as u64, counts.into());
            Kept { path, length, name_words, counts, promise }
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

    fn count(&self, path: &str, text: &[u8]) -> Vec<Count> {
        let mut counts = [Count::default(); MAX_TERMS];
        let matcher = &self.question.matcher;
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
        let counts = (0_u8..).zip(counts).map(|(term, count)| Count { term, ..count });
        counts.filter(|count| count.body > 0 || count.path > 0).collect()
    }

    /// Whole identifiers are rarer than words.
    fn promise(&self, counts: &[Count]) -> f64 {
        let of = |count: &Count| {
            let weight = match self.question.terms()[usize::from(count.term)].kind {
                TermKind::Word => 1.0,
                TermKind::Identifier => 4.0,
            };
            weight * saturated(count.weighted(), 1.0)
        };
        counts.iter().map(of).sum()
    }

    /// The `limit` best files: by their scores, and by their paths where these are the same.
    pub fn finish(self, limit: usize) -> Ranking<'q> {
        let seen = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rarity = seen.containing.map(|containing| rarity(containing, seen.files));
        let average = (as_float(seen.bytes) / as_float(seen.files.max(1))).max(1.0);
        let matched = seen.kept.len();
        let hit = |kept: Kept| {
            let score = score(&kept, &rarity, average) * self.question.lift(&kept.path);
            Hit { score, why: Why::new(&kept.counts), path: kept.path.into() }
        };
        let mut hits: Vec<Hit> = seen.kept.into_iter().map(hit).collect();
        hits.sort_unstable_by(Hit::order);
        hits.truncate(limit.max(MAX_COMPARED));
        lift_namesakes(&mut hits);
        hits.sort_unstable_by(Hit::order);
        hits.truncate(limit);
        Ranking { question: self.question, hits, files: seen.files, matched, rarity }
    }
}

fn score(kept: &Kept, rarity: &[f64; MAX_TERMS], average: f64) -> f64 {
    let length = 1.0 - LENGTH + LENGTH * as_float(kept.length) / average;
    let of = |count: &Count| rarity[usize::from(count.term)] * saturated(count.weighted(), length);
    let all: f64 = kept.counts.iter().map(of).sum();
    let named = || kept.counts.iter().filter(|count| count.name);
    let covered = as_float(named().count() as u64) / f64::from(kept.name_words.max(1));
    let said: f64 = named().map(|count| rarity[usize::from(count.term)]).sum();
    all + NAME * covered.min(1.0) * said
}

fn lift_namesakes(hits: &mut [Hit]) {
    let mut namesakes: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, hit) in hits.iter().enumerate().take(MAX_COMPARED) {
        let name = name::joined(&hit.path);
        if !name.is_empty() {
            namesakes.entry(name).or_default().push(at);
        }
    }
    for group in namesakes.values().filter(|group| group.len() <= MAX_NAMESAKES) {
        // The hits are in order.
        let most = hits[group[0]].score;
        for at in group {
            hits[*at].score += NAMESAKE * (most - hits[*at].score);
        }
    }
}

/// How much a term weighs that is `weighted` times in a text of this relative length.
fn saturated(weighted: f64, length: f64) -> f64 {
    weighted * (SATURATION + 1.0) / (weighted + SATURATION * length)
}

/// How much a term says, that so many of the files contain. Half as steep as BM25 has it: the rarest word of a question is
/// often one that has nothing to do with the program.
fn rarity(containing: u64, files: u64) -> f64 {
    let (containing, files) = (as_float(containing), as_float(files));
    (1.0 + (files - containing + 0.5) / (containing + 0.5)).max(1.0).ln().sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a score need not be exact")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// What a scan found.
#[derive(Debug)]
pub struct Ranking<'q> {
    question: &'q Question,
    /// The best files, best first.
    pub hits: Vec<Hit>,
    /// How many files were seen.
    pub files: u64,
    /// In how many of them something was found; what was dropped, because there were too many, does not count.
    pub matched: usize,
    rarity: [f64; MAX_TERMS],
}

impl Ranking<'_> {
    /// A term of the question as it was asked.
    pub fn shown(&self, term: usize) -> Option<&str> {
        self.question.terms().get(term).map(|term| term.shown.as_str())
    }

    /// The lines of a file that the question is about, `text` being what is in it now.
    pub fn look_into(&self, text: &[u8]) -> Lines {
        Lines::new(&self.question.matcher, &self.rarity, text)
    }
}

/// A file the question may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub path: String,
    /// Only to be compared with others of the same ranking.
    pub score: f64,
    pub why: Why,
}

impl Hit {
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.path.cmp(&other.path))
    }
}

/// Which terms are in a file, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Why {
    pub path: TermSet,
    pub definitions: TermSet,
    pub body: TermSet,
}

impl Why {
    fn new(counts: &[Count]) -> Self {
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
