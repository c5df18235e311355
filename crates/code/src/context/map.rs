//! What matters most in a tree, for somebody who knows nothing of it: the names that are defined in few files and used
//! in many.
//!
//! Every file is gone through twice, and only a few are parsed. At first it is counted in how many files each identifier
//! is; what was seen once is forgotten when there are too many. Then the files are found which define the most of what is
//! used elsewhere.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use files::StoreError;
use files::tree::{self, TreeFile};
use xxhash_rust::xxh3::xxh3_64;

use super::source::{Reader, Source};
use super::{Found, Gathered, Section, Wanted, parallel};
use crate::outline::{Kind, Outline, Part};
use crate::rank::{definition, is_source, is_test};
use crate::words::is_identifier;

/// Identifiers that are counted by each thread.
const MOST_COUNTED: usize = 1 << 16;
/// Shorter ones say nothing.
const SHORTEST: usize = 3;
/// What is defined in more files than this means something else in each.
const MOST_DEFINING: u32 = 5;
/// Files that are parsed.
const PARSED: usize = 24;
/// Definitions of one file that are told, so that others are too.
const MOST_OF_A_FILE: usize = 6;

/// In how many files an identifier is, and is defined.
#[derive(Clone, Copy, Default)]
struct Usage {
    files: u32,
    defining: u32,
}

impl Usage {
    /// How much a name matters.
    fn weight(self, name: &[u8]) -> f64 {
        let used = self.files.saturating_sub(self.defining.max(1));
        let is_private = name.starts_with(b"_");
        let share = |is: bool, share: f64| if is { share } else { 1.0 };
        f64::from(used).sqrt()
            * share(is_private, 0.1)
            * share(is_common(name), 0.05)
            * share(self.defining > MOST_DEFINING, 0.1)
    }
}

/// One word in small letters: other things are called that too.
fn is_common(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[derive(Default)]
struct Names {
    counted: HashMap<u64, Usage>,
    /// Those of the file that is being counted.
    in_file: HashSet<u64>,
    defined_in_file: HashSet<u64>,
}

impl Names {
    fn count(&mut self, text: &[u8]) {
        self.in_file.clear();
        self.defined_in_file.clear();
        for name in identifiers(text) {
            let key = xxh3_64(&text[name.clone()]);
            let is_new = self.in_file.insert(key);
            if (is_new || !self.defined_in_file.contains(&key))
                && definition::defines(text, name.start, name.end)
            {
                self.defined_in_file.insert(key);
            }
        }
        for key in &self.in_file {
            let usage = self.counted.entry(*key).or_default();
            usage.files += 1;
            usage.defining += u32::from(self.defined_in_file.contains(key));
        }
        if self.counted.len() > MOST_COUNTED {
            self.counted.retain(|_, usage| usage.files > 1);
        }
        if self.counted.len() > MOST_COUNTED {
            self.counted.retain(|_, usage| usage.files > 4);
        }
    }
}

fn identifiers(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].iter().position(|byte| is_identifier(*byte))?;
            let length = text[start..].iter().position(|byte| !is_identifier(*byte));
            let end = length.map_or(text.len(), |length| start + length);
            at = end;
            if end - start >= SHORTEST && !text[start].is_ascii_digit() {
                return Some(start..end);
            }
        }
    })
}

/// A file, by how much what it defines is used elsewhere.
struct Candidate {
    path: String,
    weight: f64,
}

impl Candidate {
    fn order(&self, other: &Self) -> Ordering {
        other.weight.total_cmp(&self.weight).then_with(|| self.path.cmp(&other.path))
    }
}

/// The files that matter most.
pub(super) struct Map {
    pub sources: Vec<(Source, Outline)>,
    usage: HashMap<u64, Usage>,
}

pub(super) fn draw(reader: &Reader<'_>, wanted: &Wanted<'_>) -> Result<Map, StoreError> {
    let usage = count(reader, wanted)?;
    let mut candidates = weigh(reader, wanted, &usage)?;
    candidates.sort_unstable_by(Candidate::order);
    candidates.truncate(PARSED);
    let sources = parallel(&candidates, |candidate| {
        let source = reader.read(&candidate.path).ok()?;
        let outline = reader.outline(&source);
        Some((source, outline))
    });
    Ok(Map { sources: sources.into_iter().flatten().collect(), usage })
}

fn count(reader: &Reader<'_>, wanted: &Wanted<'_>) -> Result<HashMap<u64, Usage>, StoreError> {
    let each = |names: &mut Names, file: &mut TreeFile<'_>| {
        if let Some(text) = source_text(file) {
            names.count(text.as_bytes());
        }
        ControlFlow::Continue(())
    };
    let visited = tree::visit(reader.root, &wanted.tree, reader.call, Names::default, each)?;
    let mut all: HashMap<u64, Usage> = HashMap::new();
    for names in visited.states {
        for (key, more) in names.counted {
            let usage = all.entry(key).or_default();
            usage.files += more.files;
            usage.defining += more.defining;
        }
    }
    Ok(all)
}

fn weigh(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    usage: &HashMap<u64, Usage>,
) -> Result<Vec<Candidate>, StoreError> {
    let each = |best: &mut Vec<Candidate>, file: &mut TreeFile<'_>| {
        let path = file.path();
        if let Some(text) = source_text(file) {
            let weight = defined_weight(text.as_bytes(), usage);
            if weight > 0.0 {
                best.push(Candidate { path: path.to_owned(), weight });
            }
            if best.len() >= 8 * PARSED {
                best.sort_unstable_by(Candidate::order);
                best.truncate(PARSED);
            }
        }
        ControlFlow::Continue(())
    };
    let visited = tree::visit(reader.root, &wanted.tree, reader.call, Vec::new, each)?;
    Ok(visited.states.into_iter().flatten().collect())
}

/// The text of a file whose names count: of code, but of no test.
fn source_text<'f>(file: &'f mut TreeFile<'_>) -> Option<&'f str> {
    let path = file.path();
    if !is_source(path) || is_test(path) {
        return None;
    }
    file.text()
}

fn defined_weight(text: &[u8], usage: &HashMap<u64, Usage>) -> f64 {
    let mut seen = HashSet::new();
    let mut weight = 0.0;
    for name in identifiers(text) {
        let key = xxh3_64(&text[name.clone()]);
        let of = usage.get(&key).map_or(0.0, |usage| usage.weight(&text[name.clone()]));
        if of > 0.0 && definition::defines(text, name.start, name.end) && seen.insert(key) {
            weight += of;
        }
    }
    weight
}

impl Map {
    fn weight(&self, part: &Part) -> f64 {
        let name = part.name.as_bytes();
        self.usage.get(&xxh3_64(name)).map_or(0.0, |usage| usage.weight(name))
    }

    /// The definitions that matter most.
    pub fn definitions(&self, wanted: &Wanted<'_>, gathered: &mut Gathered) {
        let mut all: Vec<(f64, &Source, Option<&'static str>, &Part)> = Vec::new();
        for (source, outline) in &self.sources {
            // Fields and modules are used wherever what they are part of is.
            let is_detail = |part: &Part| matches!(part.kind, Kind::Field | Kind::Module);
            let is_wanted = |part: &&Part| {
                if wanted.kinds.is_empty() { !is_detail(part) } else { wanted.wants(part) }
            };
            let parts = outline.parts.iter().filter(is_wanted);
            let parts = parts.filter(|part| part.scope.len() < wanted.depth.max(1));
            let mut own: Vec<_> = parts
                .map(|part| (self.weight(part), source, outline.language, part))
                .filter(|(weight, ..)| *weight > 0.0)
                .collect();
            own.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut names = HashSet::new();
            own.retain(|(.., part)| names.insert(part.name.as_str()));
            own.truncate(MOST_OF_A_FILE);
            all.extend(own);
        }
        all.sort_by(|a, b| {
            let by_place = || (&a.1.path, a.3.bytes.start).cmp(&(&b.1.path, b.3.bytes.start));
            b.0.total_cmp(&a.0).then_with(by_place)
        });
        let top = all.first().map_or(1.0, |first| first.0);
        let page = wanted.page(Section::Definitions, all.len(), &mut gathered.left);
        for (weight, source, language, part) in &all[page] {
            if let Some(found) = source.part(Section::Definitions, *language, part) {
                let used = self.usage.get(&xxh3_64(part.name.as_bytes()));
                let files = used.map_or(0, |used| used.files);
                let why = vec![format!("in {files} files")];
                gathered.found.push(Found { score: Some(weight / top), why, ..found });
            }
        }
    }
}
