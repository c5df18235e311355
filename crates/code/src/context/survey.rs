//! Survey: one pass over all files, which finds those that are worth a closer look.

use std::ops::ControlFlow;

use files::tree::{self, Skipped};
use files::{Call, Root, StoreError};

use super::snippets::MOST_MORE;
use super::structure::{Folders, Structure};
use super::symbol::{self, Symbol};
use super::{KeptBytes, Section, Wanted};
use crate::language;
use crate::rank::{Question, Ranking, Scan, is_source};

/// A file that contains a name.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    pub path: String,
    pub words: u32,
    /// True if the name seems to be defined there.
    pub defines: bool,
    /// True if the names that should be around the name are in the file too.
    pub near: bool,
}

/// Files that contain a name, sorted by path.
#[derive(Debug)]
pub(super) struct Mentions {
    pub symbol: Symbol,
    pub files: Vec<Mention>,
    /// True if the name was only part of a question.
    pub is_guessed: bool,
}

pub(super) struct Survey<'q> {
    pub ranking: Option<Ranking<'q>>,
    pub mentions: Vec<Mentions>,
    /// True if there were too many to keep all of them.
    pub leaves_out_mentions: bool,
    pub structure: Option<Structure>,
    pub scanned: u64,
    pub skipped: Skipped,
}

/// Findings of one thread.
struct Seen {
    files: u64,
    folders: Option<Folders>,
    mentions: Vec<Vec<Mention>>,
}

/// True if identifiers in a file may be names: in prose they are words.
fn may_use_names(path: &str) -> bool {
    is_source(path) || language::of_path(path).is_some()
}

impl<'q> Survey<'q> {
    pub fn take(
        root: &Root,
        wanted: &Wanted<'_>,
        question: Option<&'q Question>,
        call: &Call,
    ) -> Result<Self, StoreError> {
        let scan = question.map(Scan::new);
        let mut symbols: Vec<(Symbol, bool)> =
            wanted.symbols.iter().cloned().map(|symbol| (symbol, false)).collect();
        if wanted.includes(Section::Definitions) {
            let guessed = symbol::identifiers(wanted.query).into_iter();
            symbols.extend(guessed.map(|symbol| (symbol, true)));
        }
        let within = wanted.tree.within.shown();
        let wants_folders = wanted.includes(Section::Structure);
        let reads = scan.is_some() || !symbols.is_empty();
        let kept = KeptBytes::new();
        let start = || Seen {
            files: 0,
            folders: wants_folders.then(|| Folders::new(&within, wanted.depth)),
            mentions: vec![Vec::new(); symbols.len()],
        };
        let each = |seen: &mut Seen, file: &mut tree::TreeFile<'_>| {
            let path = file.path();
            if let Some(folders) = &mut seen.folders {
                folders.add(path);
            }
            if !reads {
                seen.files += 1;
                return ControlFlow::Continue(());
            }
            let Some(text) = file.text() else { return ControlFlow::Continue(()) };
            seen.files += 1;
            if let Some(scan) = &scan {
                scan.visit(path, text.as_bytes());
            }
            if !may_use_names(path) {
                return ControlFlow::Continue(());
            }
            for ((symbol, _), mentions) in symbols.iter().zip(&mut seen.mentions) {
                let (words, defines) = symbol.mentions(text.as_bytes());
                if words > 0 && kept.try_add(size_of::<Mention>() + path.len()) {
                    let near = symbol.is_near(text.as_bytes(), path);
                    mentions.push(Mention { path: path.to_owned(), words, defines, near });
                }
            }
            ControlFlow::Continue(())
        };
        // A request that only shows given files needs no pass over the others.
        let (states, skipped) = if reads || wants_folders {
            let visited = tree::visit(root, &wanted.tree, call, start, each)?;
            (visited.states, visited.skipped)
        } else {
            (Vec::new(), Skipped::default())
        };
        let joined = Self::joined(wanted, scan, symbols, states, skipped);
        Ok(Self { leaves_out_mentions: kept.is_used_up(), ..joined })
    }

    fn joined(
        wanted: &Wanted<'_>,
        scan: Option<Scan<'q>>,
        symbols: Vec<(Symbol, bool)>,
        states: Vec<Seen>,
        skipped: Skipped,
    ) -> Self {
        let mut scanned = 0;
        let mut folders: Option<Folders> = None;
        let mut mentions: Vec<Mentions> = symbols
            .into_iter()
            .map(|(symbol, is_guessed)| Mentions { symbol, files: Vec::new(), is_guessed })
            .collect();
        for seen in states {
            scanned += seen.files;
            folders = match (folders, seen.folders) {
                (Some(mut folders), Some(more)) => {
                    folders.join(more);
                    Some(folders)
                }
                (some, none) => some.or(none),
            };
            for (all, more) in mentions.iter_mut().zip(seen.mentions) {
                all.files.extend(more);
            }
        }
        for mentions in &mut mentions {
            mentions.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        }
        let last = |section| wanted.start.of(section).saturating_add(wanted.max_results);
        let most = last(Section::Snippets).max(last(Section::Outline)).saturating_add(MOST_MORE);
        Self {
            ranking: scan.map(|scan| scan.finish(most)),
            mentions,
            leaves_out_mentions: false,
            structure: folders.map(Folders::structure),
            scanned,
            skipped,
        }
    }
}
