//! Messages of one call about one file: what is asked, what the answers mean, and when the disk is used instead.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use files::{Call, FilePath, Hash, Store as _, StoreError, Version};
use text::Text;

use super::{
    EditorFiles, EditorStore, MessageError, RELOAD_TRIES_MAX, denied,
    staleness::{DiskText, Snapshot, text_digest},
};

const STALE_NOTE: &str = "the file on disk was changed outside the editor, by a command for instance, and the editor still shows an older text: this is the editor's text, and an edit changes that one; ask the user to reload the file in the editor if the text on disk should count";
const STALE_REFUSAL: &str = "the file on disk was changed outside the editor, by a command for instance, and the editor still shows an older text, which is the one that is edited; nothing was written; read the file again and then edit again, or ask the user to reload it in the editor";

/// Purpose for which the text of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadPurpose {
    Read,
    Change,
}

/// Access of one call to the text of one file in the editor.
pub(super) struct BufferAccess<'a, E> {
    store: &'a EditorStore<E>,
    at: FilePath,
    /// Absolute path as the editor is given it.
    path: PathBuf,
    purpose: ReadPurpose,
    /// Set once the file was read from disk for comparison.
    has_compared: AtomicBool,
    has_written: AtomicBool,
    /// Set if the editor did nothing and never will.
    needs_disk: AtomicBool,
    note: OnceLock<&'static str>,
}

impl<'a, E: EditorFiles> BufferAccess<'a, E> {
    /// Makes the access. `at` must have no links in it.
    pub fn new(store: &'a EditorStore<E>, at: FilePath, purpose: ReadPurpose) -> Self {
        Self {
            store,
            path: store.root.path_of(&at),
            at,
            purpose,
            has_compared: AtomicBool::default(),
            has_written: AtomicBool::default(),
            needs_disk: AtomicBool::default(),
            note: OnceLock::new(),
        }
    }

    pub fn at(&self) -> &FilePath {
        &self.at
    }

    /// True if the editor did nothing and never will, so that the disk must be used.
    pub fn needs_disk(&self) -> bool {
        self.needs_disk.load(Ordering::Relaxed)
    }

    /// Returns the note for the reader of the text, if it is stale.
    pub fn note(&self) -> Option<&'static str> {
        self.note.get().copied()
    }

    /// Reads the whole text as the editor has it, saved or not; `None` when there is neither a buffer nor a file.
    pub fn read(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        call.check()?;
        let text = self.read_any_size(call)?;
        self.check_size(text.as_deref().unwrap_or_default())?;
        Ok(text)
    }

    /// Reads like [`BufferAccess::read`], whatever the size of the text, and even if the call was cancelled.
    pub fn read_any_size(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let is_first = !self.has_compared.swap(true, Ordering::Relaxed);
        if is_first { self.read_and_compare(call) } else { self.request_text(call) }
    }

    /// Replaces the whole text of a buffer or a file, new or not. Every error means that the text is as it was, except
    /// [`StoreError::TimedOut`]: the message was sent, and its answer did not come.
    pub fn write(&self, bytes: &[u8], call: &Call) -> Result<(), StoreError> {
        let text = str::from_utf8(bytes).map_err(|_| denied("an editor takes nothing but text"))?;
        let outcome = self.store.editor.write(&self.path, text, call);
        outcome.map_err(|error| self.store_error(&error))?;
        self.has_written.store(true, Ordering::Relaxed);
        self.store.snapshots.record_write(&self.at, text_digest(bytes));
        Ok(())
    }

    pub fn check_size(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let (size, max) = (bytes.len() as u64, self.store.max_size);
        if size > max { Err(StoreError::TooLarge { size, max }) } else { Ok(()) }
    }

    fn use_disk(&self, reason: &MessageError) -> StoreError {
        self.needs_disk.store(true, Ordering::Relaxed);
        StoreError::Denied { reason: Some(reason.to_string().into()) }
    }

    fn store_error(&self, error: &MessageError) -> StoreError {
        match error {
            MessageError::UnknownMethod => {
                self.store.lacks_messages.store(true, Ordering::Relaxed);
                self.use_disk(error)
            }
            MessageError::Disconnected => self.use_disk(error),
            MessageError::NoSuchFile | MessageError::Refused(_) => {
                StoreError::Denied { reason: Some(error.to_string().into()) }
            }
            MessageError::TimedOut => StoreError::TimedOut,
            MessageError::Cancelled => StoreError::Cancelled,
        }
    }

    fn is_on_disk(&self) -> bool {
        self.store.disk.size(&self.at).is_some()
    }

    fn request_text(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let has_written = self.has_written.load(Ordering::Relaxed);
        match self.store.editor.read(&self.path, call) {
            // Some editors return an empty text for a missing file.
            Ok(text) if text.is_empty() && !has_written && !self.is_on_disk() => Ok(None),
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(error @ MessageError::NoSuchFile) if self.is_on_disk() => {
                Err(self.use_disk(&error))
            }
            Err(MessageError::NoSuchFile) => Ok(None),
            Err(error) => Err(self.store_error(&error)),
        }
    }

    /// Reads the text for the first time in a call, and compares it with the disk.
    fn read_and_compare(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(on_disk) = self.store.disk.read(&self.at, call)? else {
            return self.request_text(call);
        };
        if Text::decode(on_disk.bytes.clone()).is_err() {
            // An editor would show another text than the file has.
            return Err(self.use_disk(&MessageError::NoSuchFile));
        }
        let Some(text) = self.request_text(call)? else { return Ok(None) };
        self.compare(text, &on_disk, call).map(Some)
    }

    /// Detects a text that is older than the file on disk, after giving the editor time to reload.
    fn compare(
        &self,
        text: Vec<u8>,
        on_disk: &Version,
        call: &Call,
    ) -> Result<Vec<u8>, StoreError> {
        let EditorStore { snapshots, command_periods, .. } = self.store;
        let (disk, mut text) = (DiskText::of(on_disk), text);
        let writer = command_periods.writer_at(disk.modified);
        let last = snapshots.last(&self.at);
        let mut snapshot = Snapshot::after(last, disk, text_digest(&text), writer);
        let is_news = snapshot.is_stale && !snapshot.is_reported;
        if is_news {
            (snapshot, text) = self.await_reload(snapshot, text, call)?;
        }
        snapshots.record(&self.at, Snapshot { is_reported: snapshot.is_stale, ..snapshot });
        match self.purpose {
            ReadPurpose::Change if snapshot.is_stale && is_news => {
                Err(StoreError::Stale { why: STALE_REFUSAL, current: Some(Hash::of(&text)) })
            }
            ReadPurpose::Read if snapshot.is_stale => {
                self.note.get_or_init(|| STALE_NOTE);
                Ok(text)
            }
            ReadPurpose::Read | ReadPurpose::Change => Ok(text),
        }
    }

    /// Reads again until both texts are equal, at most [`RELOAD_TRIES_MAX`] times.
    fn await_reload(
        &self,
        mut snapshot: Snapshot,
        mut text: Vec<u8>,
        call: &Call,
    ) -> Result<(Snapshot, Vec<u8>), StoreError> {
        for _ in 0..RELOAD_TRIES_MAX {
            thread::sleep(self.store.reload_pause);
            // The editor may just as well be saving the file.
            let on_disk = self.store.disk.read(&self.at, call)?;
            let now = self.request_text(call).inspect_err(|_| {
                // The editor has shown a text that the disk does not have, so the disk must not be used.
                self.needs_disk.store(false, Ordering::Relaxed);
            })?;
            let (Some(now), Some(on_disk)) = (now, on_disk) else { break };
            text = now;
            let disk = Some(DiskText::of(&on_disk));
            snapshot = Snapshot { buffer: text_digest(&text), disk, ..snapshot };
            snapshot.is_stale = !snapshot.is_same();
            if !snapshot.is_stale {
                break;
            }
        }
        Ok((snapshot, text))
    }
}
