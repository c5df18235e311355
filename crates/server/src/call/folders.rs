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

    /// The number of the innermost folder that all files asked for are in. The first folder refuses files of which it has
    /// not all either.
    pub fn of(&self, prepared: &Prepared) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
        let depth_of = |target: &str, root: &Root| {
            let target = Path::new(target);
            let holds =
                [root.path(), root.resolved()].into_iter().filter(|at| target.starts_with(at));
            holds.map(|at| at.components().count()).max()
        };
        let depth = |root: &Root| {
            let depths = prepared.targets.iter().map(|target| depth_of(target, root));
            depths.collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let holds = |(number, Folder { root, .. }): (usize, &Folder)| {
            // A path may leave a folder again by its dots, and stay in one around it.
            let has_all = prepared.paths(root).len() == prepared.targets.len();
            depth(root).map(|depth| ((has_all, depth), number))
        };
        self.0.iter().enumerate().filter_map(holds).max().map_or(0, |(_, number)| number)
    }

    /// The refusal of files that are not in one of several folders. A single folder refuses by itself.
    pub fn refusal(&self, prepared: &Prepared) -> Option<StoreError> {
        let is_outside = |target: &String, folder: &Folder| {
            folder.root.absolute(target) == Err(PathError::Outside)
        };
        let lacks_one =
            |folder: &Folder| prepared.targets.iter().any(|target| is_outside(target, folder));
        let refused = self.0.len() > 1 && self.0.iter().all(lacks_one);
        refused.then(|| {
            let paths: Vec<String> = self.paths().collect();
            let reason = format!("only files below one of {} can be reached", paths.join(", "));
            StoreError::Denied { reason: Some(reason.into()) }
        })
    }

    /// The keys of the queues of a call's files, without those that cannot be files.
    pub fn keys(&self, number: usize, prepared: &Prepared) -> Vec<(usize, FilePath)> {
        let paths = prepared.paths(&self.at(number).root);
        paths.into_iter().map(|path| (number, path)).collect()
    }
}
