//! Map of a tree for a caller that knows nothing of it: the most important names, which are defined in few files and
//! used in many.
//!
//! Every file is searched twice, and only a few are parsed. The first pass counts the files that contain each
//! identifier; the rarest are dropped when there are too many. The second pass finds the files that define the most of
//! what is used elsewhere.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use files::StoreError;
use files::tree::{self, TreeFile};
use xxhash_rust::xxh3::xxh3_64;

use super::source::{SourceFile, SourceReader};
use super::{CodeContext, ContextItem, ContextRequest, KeptBytes, Section, parallel};
use crate::outline::{Outline, Part, PartKind};
use crate::rank::{definition, is_source, is_test};
use crate::words::is_identifier;

/// Most identifiers that are counted by each thread, and of each file.
const COUNTED_NAMES_MAX: usize = 1 << 16;
/// Shortest identifier that is counted; shorter ones say nothing.
const NAME_BYTES_MIN: usize = 3;
/// Most files that define a name; in more files it means something else in each.
const DEFINING_FILES_MAX: u32 = 5;
/// Most files that are parsed.
const PARSED_FILES_MAX: usize = 24;
/// Most definitions of one file that are shown, so that others are too.
const DEFINITIONS_OF_FILE_MAX: usize = 6;

/// Most parts of a file that are considered.
const PARTS_MAX: usize = 2000;
/// Most names that are kept of each file, because it seems to define them.
const KEPT_NAMES_MAX: usize = 16;

/// Map by the hash of a name, which is not hashed again.
type NameMap<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;
type NameSet = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Number of files that contain an identifier, and of those that define it.
#[derive(Clone, Copy, Default)]
struct NameUsage {
    files: u32,
    defining: u32,
}

impl NameUsage {
    /// Importance of a name.
    fn weight(self, name: &str) -> f64 {
        let share = |is: bool, share: f64| if is { share } else { 1.0 };
        self.plain_weight()
            * share(name.starts_with('_'), 0.1)
            * share(is_common(name.as_bytes()), COMMON_FACTOR)
    }

    fn plain_weight(self) -> f64 {
        let used = self.files.saturating_sub(self.defining.max(1));
        f64::from(used).sqrt() * if self.defining > DEFINING_FILES_MAX { 0.1 } else { 1.0 }
    }
}

/// Weight of a name that is used nowhere else.
const UNUSED_WEIGHT: f64 = 0.01;
/// Weight factor of a name that is a common word.
const COMMON_FACTOR: f64 = 0.05;

/// True for one word in lower case, which is the name of other things too.
fn is_common(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[derive(Default)]
struct NameCounter {
    counted: NameMap<u32>,
    /// Identifiers of the file that is being counted.
    in_file: NameSet,
}

impl NameCounter {
    fn count_file(&mut self, text: &[u8]) {
        self.in_file.clear();
        for name in identifiers(text) {
            let key = xxh3_64(&text[name]);
            if self.in_file.len() < COUNTED_NAMES_MAX && self.in_file.insert(key) {
                *self.counted.entry(key).or_default() += 1;
            }
        }
        let mut least = 1;
        while self.counted.len() > COUNTED_NAMES_MAX {
            self.counted.retain(|_, files| *files > least);
            least *= 4;
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
            if end - start >= NAME_BYTES_MIN && !text[start].is_ascii_digit() {
                return Some(start..end);
            }
        }
    })
}

/// A file, with names that it seems to define and that are used elsewhere.
struct CandidateFile {
    path: String,
    names: Vec<u64>,
}

/// The most important files and definitions.
pub(super) struct CodeMap {
    pub paths: Vec<String>,
    /// Number of files that were searched.
    pub scanned: u64,
    /// Most important definitions in each of these files.
    definitions: Vec<ImportantDefinition>,
}

struct ImportantDefinition {
    weight: f64,
    /// Number of files that contain its name.
    files: u32,
    /// Byte offset in its file.
    start: usize,
    found: ContextItem,
}

pub(super) fn write_folder(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
) -> Result<CodeMap, StoreError> {
    let mut usage = count_names(reader, request)?;
    let CandidateScan { files: scanned, candidates, others } =
        find_candidates(reader, request, &usage)?;
    for key in candidates.iter().flat_map(|candidate| &candidate.names) {
        if let Some(usage) = usage.get_mut(key) {
            usage.defining += 1;
        }
    }
    let weight = |candidate: &CandidateFile| -> f64 {
        let names = candidate.names.iter().filter_map(|key| usage.get(key));
        names.map(|usage| usage.plain_weight()).sum()
    };
    let mut weighed: Vec<(f64, String)> =
        candidates.into_iter().map(|candidate| (weight(&candidate), candidate.path)).collect();
    weighed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // If nothing is used elsewhere, all files are equally important.
    weighed.extend(others.into_iter().map(|path| (0.0, path)));
    weighed.truncate(PARSED_FILES_MAX);
    let definitions = parallel(&weighed, |(_, path)| {
        let important = |source: &SourceFile| {
            definitions_of_file(source, &reader.outline(source), &usage, request)
        };
        reader.with_file(path, important).ok()
    });
    let mut map = CodeMap { paths: Vec::new(), scanned, definitions: Vec::new() };
    for ((_, path), definitions) in weighed.into_iter().zip(definitions) {
        if let Some(definitions) = definitions {
            map.paths.push(path);
            map.definitions.extend(definitions);
        }
    }
    Ok(map)
}

/// Returns the most important definitions of a file.
fn definitions_of_file(
    source: &SourceFile,
    outline: &Outline,
    usage: &NameMap<NameUsage>,
    request: &ContextRequest<'_>,
) -> Vec<ImportantDefinition> {
    let used = |part: &Part| usage.get(&xxh3_64(part.name.as_bytes()));
    let weight =
        |part: &Part| used(part).map_or(0.0, |used| used.weight(&part.name)).max(UNUSED_WEIGHT);
    // Fields and modules are used wherever the thing they are part of is used.
    let is_detail = |part: &Part| matches!(part.kind, PartKind::Field | PartKind::Module);
    let is_wanted = |part: &&Part| {
        if request.kinds.is_empty() { !is_detail(part) } else { request.includes_part(part) }
    };
    let parts = outline.parts.iter().take(PARTS_MAX).filter(is_wanted);
    let parts = parts.filter(|part| part.scope.len() < request.depth.max(1));
    let mut parts: Vec<_> = parts.map(|part| (weight(part), part)).collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut names = HashSet::new();
    parts.retain(|(_, part)| names.insert(part.name.as_str()));
    parts.truncate(DEFINITIONS_OF_FILE_MAX);
    let definition = |(weight, part): (f64, &Part)| {
        let found = source.item_of_part(Section::Definitions, outline.language, part)?;
        let files = used(part).map_or(0, |used| used.files);
        Some(ImportantDefinition { weight, files, start: part.bytes.start, found })
    };
    parts.into_iter().filter_map(definition).collect()
}

fn count_names(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
) -> Result<NameMap<NameUsage>, StoreError> {
    let each = |names: &mut NameCounter, file: &mut TreeFile<'_>| {
        if let Some(text) = source_text(file) {
            names.count_file(text.as_bytes());
        }
        ControlFlow::Continue(())
    };
    let visited = tree::visit(reader.root, &request.tree, reader.call, NameCounter::default, each)?;
    let mut all: NameMap<NameUsage> = NameMap::default();
    for names in visited.states {
        for (key, files) in names.counted {
            all.entry(key).or_default().files += files;
        }
    }
    all.retain(|_, usage| usage.files > 1);
    Ok(all)
}

/// Result of the second pass.
#[derive(Default)]
struct CandidateScan {
    files: u64,
    candidates: Vec<CandidateFile>,
    /// Sources that define nothing used elsewhere: the first few by path.
    others: Vec<String>,
}

fn find_candidates(
    reader: &SourceReader<'_>,
    request: &ContextRequest<'_>,
    usage: &NameMap<NameUsage>,
) -> Result<CandidateScan, StoreError> {
    let kept = KeptBytes::new();
    let each = |seen: &mut CandidateScan, file: &mut TreeFile<'_>| {
        seen.files += 1;
        let path = file.path();
        if let Some(text) = source_text(file) {
            let names = defined_names(text.as_bytes(), usage);
            if names.is_empty() {
                seen.others.push(path.to_owned());
            } else if kept.try_add(size_of::<CandidateFile>() + path.len() + size_of_val(&*names)) {
                seen.candidates.push(CandidateFile { path: path.to_owned(), names });
            }
            if seen.others.len() >= 8 * PARSED_FILES_MAX {
                first_few(&mut seen.others);
            }
        }
        ControlFlow::Continue(())
    };
    let visited =
        tree::visit(reader.root, &request.tree, reader.call, CandidateScan::default, each)?;
    let mut all = CandidateScan::default();
    for seen in visited.states {
        all.files += seen.files;
        all.candidates.extend(seen.candidates);
        all.others.extend(seen.others);
    }
    first_few(&mut all.others);
    Ok(all)
}

fn first_few(paths: &mut Vec<String>) {
    paths.sort_unstable();
    paths.truncate(PARSED_FILES_MAX);
}

/// Returns the text of a file whose names count: source code that is not a test.
fn source_text<'f>(file: &'f mut TreeFile<'_>) -> Option<&'f str> {
    let path = file.path();
    if !is_source(path) || is_test(path) {
        return None;
    }
    file.text()
}

/// Returns the names that a file seems to define and that are used in other files: those in the most files.
fn defined_names(text: &[u8], usage: &NameMap<NameUsage>) -> Vec<u64> {
    let mut seen = NameSet::default();
    let mut names: Vec<(u32, u64)> = Vec::new();
    for name in identifiers(text).filter(|name| !is_common(&text[name.clone()])) {
        let key = xxh3_64(&text[name.clone()]);
        let Some(usage) = usage.get(&key) else { continue };
        if !seen.contains(&key) && definition::defines(text, name.start, name.end) {
            seen.insert(key);
            names.push((usage.files, key));
        }
    }
    names.sort_unstable_by_key(|name| std::cmp::Reverse(*name));
    names.truncate(KEPT_NAMES_MAX);
    names.into_iter().map(|(_, key)| key).collect()
}

impl CodeMap {
    /// Adds the most important definitions to the context.
    pub fn definitions(self, request: &ContextRequest<'_>, context: &mut CodeContext) {
        let mut all = self.definitions;
        all.sort_by(|a, b| {
            let by_place = || (&a.found.path, a.start).cmp(&(&b.found.path, b.start));
            b.weight.total_cmp(&a.weight).then_with(by_place)
        });
        let top = all.first().map_or(1.0, |first| first.weight);
        let page = request.page(Section::Definitions, all.len(), context);
        let shown = all.into_iter().enumerate().skip(page.start).take(page.len());
        for (at, ImportantDefinition { weight, files, found, .. }) in shown {
            let why = if files > 0 { vec![format!("in {files} files")] } else { Vec::new() };
            context.items.push(ContextItem {
                position: at,
                score: Some(weight / top),
                why,
                ..found
            });
        }
    }
}
