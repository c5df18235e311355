//! Store of a session: files are read from the editor where it has them, else from the disk.
//!
//! A call works on one of the two. A text that was read from the editor is written to the editor, or the call fails.
//! The disk is used only when the editor is known to have done nothing: it does not know the message, it has no such
//! file, or it is gone. Every path is first resolved on disk, which refuses folders, pipes and links that lead outside,
//! and finds the path without links by which the editor is asked.
//!
//! Two races are detected. A person may type between any two messages (`update`). And a command may have changed the file
//! on disk while the editor still shows the old text: this is reported once, by a note on a read or by refusing an edit,
//! and then the model decides (`staleness`).

mod buffer;
mod command_periods;
mod messages;
mod normalize;
mod paths_in_use;
mod staleness;
mod update;

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use files::{
    Call, Decide, DirPath, DiskStore, Entry, FilePath, Root, Saved, Stop, Store, StoreError,
    Version,
};

pub use command_periods::{CommandPeriods, RunningCommand};
pub use messages::{EditorFiles, MessageError};
pub use paths_in_use::PathsInUse;

use buffer::{BufferAccess, ReadPurpose};
use staleness::{Snapshots, same_text};
use update::{BufferUpdate, version};

/// Limit of the times, and pause before each, that the editor is asked again so that it can reload a file that changed
/// on disk.
const RELOAD_TRIES_MAX: usize = 10;
const RELOAD_PAUSE: Duration = Duration::from_millis(100);

/// Store of one folder of a session.
#[derive(Debug)]
pub struct EditorStore<E> {
    root: Arc<Root>,
    editor: E,
    disk: DiskStore,
    max_size: u64,
    command_periods: Arc<CommandPeriods>,
    paths_in_use: PathsInUse,
    snapshots: Snapshots,
    /// Set when the editor answers that it does not know one of the messages.
    lacks_messages: AtomicBool,
    reload_pause: Duration,
}

impl<E: EditorFiles> EditorStore<E> {
    /// Makes the store. `disk` is that of `root`; `max_size` in bytes; `command_periods` is shared by all folders of a
    /// session, `paths_in_use` by all sessions of an editor.
    pub fn new(
        root: Arc<Root>,
        editor: E,
        disk: DiskStore,
        max_size: u64,
        command_periods: Arc<CommandPeriods>,
        paths_in_use: PathsInUse,
    ) -> Self {
        Self {
            root,
            editor,
            disk,
            max_size,
            command_periods,
            paths_in_use,
            snapshots: Snapshots::default(),
            lacks_messages: AtomicBool::default(),
            reload_pause: RELOAD_PAUSE,
        }
    }

    /// Prepares the messages of a call. `None` if asking the editor is of no use.
    fn access(
        &self,
        at: &FilePath,
        call: &Call,
        purpose: ReadPurpose,
    ) -> Result<Option<BufferAccess<'_, E>>, StoreError> {
        call.check()?;
        if self.lacks_messages.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.disk.locate(at) {
            Ok(at) => Ok(Some(BufferAccess::new(self, at, purpose))),
            // The disk decides what a missing folder means for the operation.
            Err(StoreError::NoFolder) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_for(
        &self,
        at: &FilePath,
        call: &Call,
        purpose: ReadPurpose,
    ) -> Result<Option<Version>, StoreError> {
        let Some(buffer) = self.access(at, call, purpose)? else {
            return self.disk.read(at, call);
        };
        let text = match buffer.read(call) {
            Err(_) if buffer.needs_disk() => return self.disk.read(at, call),
            text => text?,
        };
        Ok(text.map(|text| Version { note: buffer.note(), ..version(text) }))
    }

    /// Updates the text in the editor.
    fn update_buffer(
        &self,
        buffer: &BufferAccess<'_, E>,
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let path = self.root.resolved().join(buffer.at().as_path());
        let _guard = self.paths_in_use.claim(path, call)?;
        let update = BufferUpdate::begin(buffer, call)?;
        Ok(vec![update.run(call, change)?])
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

impl<E: EditorFiles> Store for EditorStore<E> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read_for(at, call, ReadPurpose::Read)
    }

    fn read_for_update(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.read_for(at, call, ReadPurpose::Change)
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
        let Some(buffer) = self.access(path, call, ReadPurpose::Change)? else {
            return self.disk.update(at, call, change);
        };
        let mut shown = None;
        let saved = self.update_buffer(&buffer, call, &mut |versions| {
            shown = versions.first().cloned();
            change(versions)
        });
        match saved {
            Err(_) if buffer.needs_disk() => self.update_on_disk(at, call, change, shown.as_ref()),
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
