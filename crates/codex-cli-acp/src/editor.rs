//! The files of a session: the editor's where it has them, else those on disk.
//!
//! One call works on one of the two. What was read from the editor is written to the editor, or the call fails; the
//! disk is taken only when the editor is known to have done nothing: it does not know the message, it has no such file,
//! or it is gone. Every path is first looked at on disk, which refuses folders, pipes and links that lead outside, and
//! tells by which path without links the editor is to be asked.
//!
//! Two things are noticed besides. Somebody may type between any two messages, which [`EditorStore`] deals with. And a
//! command may have changed the file on disk while the editor still shows what was there before: that is told once, by a
//! note on what is read or by refusing an edit, and then it is for the agent to decide (`staleness`).

mod others;
mod staleness;
mod visit;

use std::{
    ops::ControlFlow,
    path::Path,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use files::{
    Call, Decide, DirPath, DiskStore, EditorStore, Entry, FilePath, Root, Saved, Stop, Store,
    StoreError, Turns, Version,
};

pub use others::{AtWork, Others};
use staleness::{Looks, same_text};
use visit::{Purpose, Visit};

/// How long an editor is given to show what changed on disk: it is asked so often, with such a pause before each time.
const RELOAD_TRIES: usize = 10;
const RELOAD_PAUSE: Duration = Duration::from_millis(100);

/// What an editor says is passed on up to so many characters.
const WORDS_MAX: usize = 300;

/// The two file messages of ACP, as a connection sends them. Called on a blocking thread.
pub trait Messages: Send + Sync {
    /// The whole text of a file, by its absolute path.
    fn read(&self, path: &Path, call: &Call) -> Result<String, MessageError>;

    /// Replaces the whole text of a file, new or not. No error but [`MessageError::TimedOut`] may come once it was sent,
    /// unless the editor answered with it.
    fn write(&self, path: &Path, text: &str, call: &Call) -> Result<(), MessageError>;
}

/// Why a message did not do what it was for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the editor does not know the message")]
    Unknown,
    #[error("the editor has no such file")]
    Missing,
    /// In the editor's words.
    #[error("the editor refused: {}", .0.chars().take(WORDS_MAX).collect::<String>())]
    Refused(String),
    /// Nothing was sent.
    #[error("the editor is gone")]
    Gone,
    /// It was sent, and no answer came until the deadline.
    #[error("the editor did not answer")]
    TimedOut,
    /// The call was taken back. Nothing was sent, or only a question.
    #[error("the call was taken back")]
    Cancelled,
}

impl MessageError {
    /// What a JSON-RPC error stands for. Editors say in several ways that there is no such file.
    pub fn answered(code: i64, words: impl Into<String>) -> Self {
        const MISSING: [&str; 4] = ["no such file", "file not found", "does not exist", "enoent"];
        let words = words.into();
        match code {
            -32601 => Self::Unknown,
            -32002 => Self::Missing,
            _ => {
                let lower = words.to_lowercase();
                let is_missing = MISSING.iter().any(|missing| lower.contains(missing));
                if is_missing { Self::Missing } else { Self::Refused(words) }
            }
        }
    }
}

/// The files of one folder as a session sees them.
#[derive(Debug)]
pub struct SessionStore<M> {
    root: Arc<Root>,
    messages: M,
    disk: DiskStore,
    max_size: u64,
    others: Arc<Others>,
    turns: Turns,
    looks: Looks,
    /// The editor does not know one of the messages.
    unknown: AtomicBool,
    reload_pause: Duration,
}

impl<M: Messages> SessionStore<M> {
    /// `disk` is that of `root`; `max_size` in bytes; `others` is shared by all folders of a session, `turns` by all
    /// sessions of an editor.
    pub fn new(
        root: Arc<Root>,
        messages: M,
        disk: DiskStore,
        max_size: u64,
        others: Arc<Others>,
        turns: Turns,
    ) -> Self {
        Self {
            root,
            messages,
            disk,
            max_size,
            others,
            turns,
            looks: Looks::default(),
            unknown: AtomicBool::default(),
            reload_pause: RELOAD_PAUSE,
        }
    }

    /// One call at the editor; `None` when it is of no use to ask it.
    fn visit(
        &self,
        at: &FilePath,
        call: &Call,
        purpose: Purpose,
    ) -> Result<Option<Visit<'_, M>>, StoreError> {
        call.check()?;
        if self.unknown.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.disk.locate(at) {
            Ok(at) => Ok(Some(Visit::new(self, at, purpose))),
            // What that means depends on what is to be done; the disk knows.
            Err(StoreError::NoFolder) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_for(
        &self,
        at: &FilePath,
        call: &Call,
        purpose: Purpose,
    ) -> Result<Option<Version>, StoreError> {
        let Some(visit) = self.visit(at, call, purpose)? else {
            return self.disk.read(at, call);
        };
        let place = visit.at().clone();
        let store = EditorStore::new(visit, self.max_size);
        let version = match store.read(&place, call) {
            Err(_) if store.editor().is_left() => return self.disk.read(at, call),
            version => version?,
        };
        Ok(version.map(|version| Version { note: store.editor().note(), ..version }))
    }

    /// After the editor turned out to be of no use. What it showed last, if anything, must be what is on disk: somebody
    /// may have typed what is not saved.
    fn update_on_disk(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
        shown: Option<&Option<Version>>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut differs = false;
        let saved = self.disk.update(at, call, &mut |versions| {
            differs = shown.is_some_and(|shown| !same_text(shown.as_ref(), versions[0].as_ref()));
            if differs { Err(Stop) } else { change(versions) }
        });
        match saved {
            Err(StoreError::Stopped) if differs => Err(denied(
                "the editor has text that is not saved and takes no new one; nothing was written",
            )),
            saved => saved,
        }
    }
}

impl<M: Messages> Store for SessionStore<M> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read_for(at, call, Purpose::Read)
    }

    fn look(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read_for(at, call, Purpose::Change)
    }

    fn size(&self, at: &FilePath) -> Option<u64> {
        self.disk.size(at)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.disk.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.disk.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let [path] = at else { return Err(denied("an editor changes one file at a time")) };
        let Some(visit) = self.visit(path, call, Purpose::Change)? else {
            return self.disk.update(at, call, change);
        };
        let place = visit.at().clone();
        let store = EditorStore::new(visit, self.max_size).sharing(&self.turns, &self.root);
        let mut shown = None;
        let saved = store.update(slice::from_ref(&place), call, &mut |versions| {
            shown = versions.first().cloned();
            change(versions)
        });
        match saved {
            Err(_) if store.editor().is_left() => {
                self.update_on_disk(at, call, change, shown.as_ref())
            }
            saved => saved,
        }
    }

    /// The editor is asked for files only, so folders are made on disk.
    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.disk.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.disk.remove_folders(made);
    }
}

fn denied(reason: &'static str) -> StoreError {
    StoreError::Denied { reason: Some(reason.into()) }
}

#[cfg(test)]
mod tests;
