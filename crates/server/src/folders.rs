//! The folders that are served, each with its store, and which of them a call is about.

use std::path::Path;
use std::sync::Arc;

use files::{FilePath, LineCounts, Root, Store};
use tools::Prepared;

/// A folder, and what keeps its files.
pub struct Folder {
    pub root: Arc<Root>,
    pub store: Box<dyn Store>,
    pub line_counts: LineCounts,
}

/// There is one at least.
pub struct Folders(Vec<Folder>);

impl Folders {
    pub fn new(all: impl IntoIterator<Item = (Arc<Root>, Box<dyn Store>)>) -> Self {
        let folder = |(root, store)| Folder { root, store, line_counts: LineCounts::default() };
        Self(all.into_iter().map(folder).collect())
    }

    pub fn at(&self, number: usize) -> &Folder {
        &self.0[number]
    }

    /// As they were given.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|folder| folder.root.path().display().to_string())
    }

    /// The number of the innermost folder that the file asked for is in. What is in none is for the first to refuse.
    pub fn of(&self, prepared: &Prepared) -> usize {
        let target = Path::new(prepared.target.as_deref().unwrap_or_default());
        let depth = |root: &Root| {
            let holds =
                [root.path(), root.resolved()].into_iter().filter(|at| target.starts_with(at));
            holds.map(|at| at.components().count()).max()
        };
        let holds = |(number, Folder { root, .. }): (usize, &Folder)| {
            // A path may leave a folder again by its dots, and stay in one around it.
            depth(root).map(|depth| ((prepared.path(root).is_some(), depth), number))
        };
        self.0.iter().enumerate().filter_map(holds).max().map_or(0, |(_, number)| number)
    }

    /// What edits of one file queue by; none if it cannot be a file.
    pub fn key(&self, number: usize, prepared: &Prepared) -> Option<(usize, FilePath)> {
        prepared.path(&self.at(number).root).map(|path| (number, path))
    }
}
