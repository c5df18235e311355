//! The folders that are served, each with its store.

use std::path::Path;
use std::sync::Arc;

use files::{FilePath, LineCounts, PathError, Root, Store, StoreError};
use tools::Prepared;

pub struct Folder {
    pub root: Arc<Root>,
    pub store: Box<dyn Store>,
    pub line_counts: LineCounts,
}

/// At least one.
pub struct Folders(Vec<Folder>);

impl Folders {
    pub fn new(all: impl IntoIterator<Item = (Arc<Root>, Box<dyn Store>)>) -> Self {
        let folder = |(root, store)| Folder { root, store, line_counts: LineCounts::default() };
        Self(all.into_iter().map(folder).collect())
    }

    pub fn at(&self, number: usize) -> &Folder {
        &self.0[number]
    }

    /// The paths as they were given.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|folder| folder.root.path().display().to_string())
    }

    /// The number of the innermost folder that the file asked for is in. The first folder refuses a file that is in none.
    pub fn of(&self, prepared: &Prepared) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
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

    /// The refusal of a file that is in none of several folders. A single folder refuses by itself.
    pub fn refusal(&self, prepared: &Prepared) -> Option<StoreError> {
        let target = prepared.target.as_deref().unwrap_or_default();
        let is_outside = |folder: &Folder| folder.root.absolute(target) == Err(PathError::Outside);
        let refused = self.0.len() > 1 && self.0.iter().all(is_outside);
        refused.then(|| {
            let paths: Vec<String> = self.paths().collect();
            let reason = format!("only files below one of {} can be reached", paths.join(", "));
            StoreError::Denied { reason: Some(reason.into()) }
        })
    }

    /// The key of the queue of a file. None if it cannot be a file.
    pub fn key(&self, number: usize, prepared: &Prepared) -> Option<(usize, FilePath)> {
        prepared.path(&self.at(number).root).map(|path| (number, path))
    }
}
