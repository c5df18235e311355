//! Survey: one pass over all files, which finds those that are worth a closer look.

use std::ops::ControlFlow;

use files::tree::{self, Skipped};
use files::{Call, Root, StoreError};

use super::snippets::MORE_FILES_MAX;
use super::structure::{FolderCounter, Structure};
use super::symbol::{self, Symbol};
use super::{ContextRequest, KeptBytes, Section};
use crate::language;
use crate::rank::{RankQuery, Ranking, Scan, is_source};

/// A file that contains a name.
#[derive(Debug, Clone)]
pub(super) struct FileMention {
    pub path: String,
    pub words: u32,
    /// True if the name seems to be defined there.
    pub defines: bool,
    /// True if the names that should be around the name are in the file too.
    pub has_scope: bool,
}

/// Files that contain a name, sorted by path.
#[derive(Debug)]
pub(super) struct SymbolMentions {
    pub symbol: Symbol,
    pub files: Vec<FileMention>,
    /// True if the name was only part of a query.
    pub is_guessed: bool,
}

pub(super) struct Survey<'q> {
    pub ranking: Option<Ranking<'q>>,
    pub mentions: Vec<SymbolMentions>,
    /// True if there were too many to keep all of them.
    pub leaves_out_mentions: bool,
    pub structure: Option<Structure>,
    pub scanned: u64,
    pub skipped: Skipped,
}

/// Findings of one thread.
struct ThreadFindings {
    files: u64,
    folders: Option<FolderCounter>,
    mentions: Vec<Vec<FileMention>>,
}

/// True if identifiers in a file may be names: in prose they are words.
fn may_contain_identifiers(path: &str) -> bool {
    is_source(path) || language::of_path(path).is_some()
}

impl<'q> Survey<'q> {
    pub fn run(
        root: &Root,
        request: &ContextRequest<'_>,
        query: Option<&'q RankQuery>,
        call: &Call,
    ) -> Result<Self, StoreError> {
        let scan = query.map(Scan::new);
        let mut symbols: Vec<(Symbol, bool)> =
            request.symbols.iter().cloned().map(|symbol| (symbol, false)).collect();
        if request.includes(Section::Definitions) {
            let guessed = symbol::identifiers(request.query).into_iter();
            symbols.extend(guessed.map(|symbol| (symbol, true)));
        }
        let within = request.tree.within.shown();
        let wants_folders = request.includes(Section::Structure);
        let reads = scan.is_some() || !symbols.is_empty();
        let kept = KeptBytes::new();
        let start = || ThreadFindings {
            files: 0,
            folders: wants_folders.then(|| FolderCounter::new(&within, request.depth)),
            mentions: vec![Vec::new(); symbols.len()],
        };
        let each = |seen: &mut ThreadFindings, file: &mut tree::TreeFile<'_>| {
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
            if !may_contain_identifiers(path) {
                return ControlFlow::Continue(());
            }
            for ((symbol, _), mentions) in symbols.iter().zip(&mut seen.mentions) {
                let (words, defines) = symbol.count_in(text.as_bytes());
                if words > 0 && kept.try_add(size_of::<FileMention>() + path.len()) {
                    let has_scope = symbol.has_scope(text.as_bytes(), path);
                    mentions.push(FileMention { path: path.to_owned(), words, defines, has_scope });
                }
            }
            ControlFlow::Continue(())
        };
        // A request that only shows given files needs no pass over the others.
        let (states, skipped) = if reads || wants_folders {
            let visited = tree::visit(root, &request.tree, call, start, each)?;
            (visited.states, visited.skipped)
        } else {
            (Vec::new(), Skipped::default())
        };
        let joined = Self::joined(request, scan, symbols, states, skipped);
        Ok(Self { leaves_out_mentions: kept.is_used_up(), ..joined })
    }

    fn joined(
        request: &ContextRequest<'_>,
        scan: Option<Scan<'q>>,
        symbols: Vec<(Symbol, bool)>,
        states: Vec<ThreadFindings>,
        skipped: Skipped,
    ) -> Self {
        let mut scanned = 0;
        let mut folders: Option<FolderCounter> = None;
        let mut mentions: Vec<SymbolMentions> = symbols
            .into_iter()
            .map(|(symbol, is_guessed)| SymbolMentions { symbol, files: Vec::new(), is_guessed })
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
        let last = |section| request.start.of(section).saturating_add(request.max_results);
        let most =
            last(Section::Snippets).max(last(Section::Outline)).saturating_add(MORE_FILES_MAX);
        Self {
            ranking: scan.map(|scan| scan.finish(most)),
            mentions,
            leaves_out_mentions: false,
            structure: folders.map(FolderCounter::structure),
            scanned,
            skipped,
        }
    }
}
