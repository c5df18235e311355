//! Where a name is defined.

use files::Hash;

use super::source::Reader;
use super::survey::{Mention, Mentions};
use super::{Found, Gathered, MOST_PARSED, Section, Wanted, parallel};
use crate::outline::Part;
use crate::rank::is_test;

/// If no more files than this have the name in them, all of them are parsed.
const FEW: usize = 32;
/// Files that are parsed at most for a name that was only part of a question.
const MOST_GUESSED: usize = 12;
/// What a definition in a test is multiplied with.
const TEST: f64 = 0.85;

pub(super) fn gather(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    gathered: &mut Gathered,
) {
    let mut paths: Vec<&str> = Vec::new();
    for mentions in mentions {
        let (likely, unlooked) = worth_parsing(mentions);
        paths.extend(likely.iter().map(|mention| mention.path.as_str()));
        if unlooked > 0 && !mentions.is_guessed {
            let name = &mentions.symbol.given;
            gathered.notes.push(format!(
                "`{name}` may also be defined in {unlooked} files that were not parsed; narrow `path` or `globs`"
            ));
        }
    }
    paths.sort_unstable();
    paths.dedup();
    // What is in the files is not kept: it could be a lot.
    let found = parallel(&paths, |path| of_file(reader, wanted, mentions, path));
    let mut definitions: Vec<Definition> = found.into_iter().flatten().collect();
    // They are in the order of their paths and lines.
    definitions.sort_by(|a, b| b.score.total_cmp(&a.score));
    for mentions in mentions.iter().filter(|mentions| !mentions.is_guessed) {
        let fits = |one: &Definition| mentions.symbol.fits(&one.part, &one.path);
        if !definitions.iter().any(fits) {
            gathered.notes.push(undefined(mentions));
        }
    }
    let page = wanted.page(Section::Definitions, definitions.len(), &mut gathered.left);
    gathered.found.extend(definitions[page].iter().filter_map(|one| one.found(reader)));
}

struct Definition {
    path: String,
    /// The file it is in, as it was parsed.
    hash: Hash,
    language: Option<&'static str>,
    part: Part,
    score: f64,
}

impl Definition {
    /// `None` if the file has changed meanwhile.
    fn found(&self, reader: &Reader<'_>) -> Option<Found> {
        let source = reader.read(&self.path).ok().filter(|source| source.hash == self.hash)?;
        let found = source.part(Section::Definitions, self.language, &self.part)?;
        Some(Found { score: Some(self.score), ..found })
    }
}

/// The parts of a file that are meant, in their order.
fn of_file(
    reader: &Reader<'_>,
    wanted: &Wanted<'_>,
    mentions: &[Mentions],
    path: &str,
) -> Vec<Definition> {
    let Ok(source) = reader.read(path) else { return Vec::new() };
    let outline = reader.outline(&source);
    let (hash, language) = (source.hash, outline.language);
    let test = if is_test(path) { TEST } else { 1.0 };
    let mut found = Vec::new();
    for part in outline.parts.iter().filter(|part| wanted.wants(part)) {
        let fitting = mentions.iter().filter(|mentions| mentions.symbol.fits(part, path));
        let near = fitting.map(|mentions| mentions.symbol.nearness(part)).reduce(f64::max);
        if let Some(near) = near {
            let (path, part, score) = (path.to_owned(), part.clone(), near.min(1.0) * test);
            found.push(Definition { path, hash, language, part, score });
        }
    }
    found
}

/// The files in which the name may be defined, and how many more there are.
fn worth_parsing(mentions: &Mentions) -> (Vec<&Mention>, usize) {
    let files: Vec<&Mention> = mentions.files.iter().filter(|file| file.near).collect();
    if mentions.is_guessed {
        let mut likely: Vec<&Mention> = files.into_iter().filter(|file| file.defines).collect();
        likely.truncate(MOST_GUESSED);
        return (likely, 0);
    }
    if files.len() <= FEW {
        return (files, 0);
    }
    let mut likely: Vec<&Mention> = files.iter().copied().filter(|file| file.defines).collect();
    if likely.is_empty() {
        likely = files;
        likely.sort_by_key(|file| std::cmp::Reverse(file.words));
    }
    let unlooked = likely.len().saturating_sub(MOST_PARSED);
    likely.truncate(MOST_PARSED);
    (likely, unlooked)
}

fn undefined(mentions: &Mentions) -> String {
    let name = &mentions.symbol.given;
    match mentions.files.len() {
        0 => format!("`{name}` is in no file; try `match`: \"substring\", or `query`"),
        files => format!(
            "no definition of `{name}` was found, but it is in {files} files: `include` references, or try `match`: \"substring\""
        ),
    }
}
