//! The store of a session: files are read from the editor where it has them, else from the disk.
//!
//! A call works on one of the two. A text that was read from the editor is written to the editor, or the call fails.
//! The disk is used only when the editor is known to have done nothing: it does not know the message, it has no such
//! file, or it is gone. Every path is first resolved on disk, which refuses folders, pipes and links that lead outside,
//! and finds the path without links by which the editor is asked.
//!
//! Two races are detected. A person may type between any two messages, which [`EditorStore`] handles. And a command may
//! have changed the file on disk while the editor still shows the old text: this is reported once, by a note on a read
//! or by refusing an edit, and then the agent decides (`staleness`).

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

/// Number of times, and pause before each, that the editor is asked again so that it can reload a file that changed on
/// disk.
const RELOAD_TRIES: usize = 10;
const RELOAD_PAUSE: Duration = Duration::from_millis(100);

/// Limit of the characters of an editor's error message that are passed on.
const WORDS_MAX: usize = 300;

/// The two file messages of ACP, as a connection sends them. Called on a blocking thread.
pub trait Messages: Send + Sync {
    /// Reads the whole text of a file, by its absolute path.
    fn read(&self, path: &Path, call: &Call) -> Result<String, MessageError>;

    /// Replaces the whole text of a file, new or not. Once the message was sent, the only error is
    /// [`MessageError::TimedOut`], unless the editor itself answered with another.
    fn write(&self, path: &Path, text: &str, call: &Call) -> Result<(), MessageError>;
}

/// Errors of a message to the editor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the editor does not know the message")]
    Unknown,
    #[error("the editor has no such file")]
    Missing,
    /// The editor's error message.
    #[error("the editor refused: {}", .0.chars().take(WORDS_MAX).collect::<String>())]
    Refused(String),
    /// The connection is closed, and nothing was sent.
    #[error("the editor is gone")]
    Gone,
    /// The message was sent, and no answer came until the deadline.
    #[error("the editor did not answer")]
    TimedOut,
    /// The call was cancelled. Nothing was sent, or only a read.
    #[error("the call was taken back")]
    Cancelled,
}

impl MessageError {
    /// Classifies a JSON-RPC error. Editors word a missing file in several ways.
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

/// Store of one folder of a session.
#[derive(Debug)]
pub struct SessionStore<M> {
    root: Arc<Root>,
    messages: M,
    disk: DiskStore,
    max_size: u64,
    others: Arc<Others>,
    turns: Turns,
    looks: Looks,
    /// Set when the editor answers that it does not know one of the messages.
    unknown: AtomicBool,
    reload_pause: Duration,
}

impl<M: Messages> SessionStore<M> {
    /// Makes the store. `disk` is that of `root`; `max_size` in bytes; `others` is shared by all folders of a session,
    /// `turns` by all sessions of an editor.
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

    /// Begins a call at the editor. `None` if asking the editor is of no use.
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
            // The disk decides what a missing folder means for the operation.
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

    /// Updates the file on disk, after the editor turned out to be unusable. If the editor showed a text before, the
    /// disk must have the same one, since the editor's may have unsaved changes.
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

    /// Makes the folders on disk, since ACP has no message for folders.
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
