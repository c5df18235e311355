//! A call at the editor: what is asked, what the answers mean, and when the disk is used instead.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use files::{Call, Editor, FilePath, Hash, Store as _, StoreError, Version};
use text::Text;

use super::{
    MessageError, Messages, RELOAD_TRIES, SessionStore, denied,
    staleness::{Disk, Look, print},
};

const NOTE: &str = "the file on disk was changed outside the editor, by a command for instance, and the editor still shows an older text: this is the editor's text, and an edit changes that one; ask the user to reload the file in the editor if the text on disk should count";
const REFUSAL: &str = "the file on disk was changed outside the editor, by a command for instance, and the editor still shows an older text, which is the one that is edited; nothing was written; read the file again and then edit again, or ask the user to reload it in the editor";

/// Purpose for which the text of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    Change,
}

/// A call at the editor, about one file.
pub(super) struct Visit<'a, M> {
    session: &'a SessionStore<M>,
    at: FilePath,
    /// Absolute path as the editor is given it.
    path: PathBuf,
    purpose: Purpose,
    /// Set once the file was read from disk for comparison.
    begun: AtomicBool,
    wrote: AtomicBool,
    /// Set if the editor did nothing and never will: use the disk.
    left: AtomicBool,
    note: OnceLock<&'static str>,
}

impl<'a, M: Messages> Visit<'a, M> {
    /// Makes a visit. `at` must have no links in it.
    pub fn new(session: &'a SessionStore<M>, at: FilePath, purpose: Purpose) -> Self {
        Self {
            session,
            path: session.root.path_of(&at),
            at,
            purpose,
            begun: AtomicBool::default(),
            wrote: AtomicBool::default(),
            left: AtomicBool::default(),
            note: OnceLock::new(),
        }
    }

    pub fn at(&self) -> &FilePath {
        &self.at
    }

    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Returns the note for the reader of the text, if it is stale.
    pub fn note(&self) -> Option<&'static str> {
        self.note.get().copied()
    }

    fn leave(&self, why: &MessageError) -> StoreError {
        self.left.store(true, Ordering::Relaxed);
        StoreError::Denied { reason: Some(why.to_string().into()) }
    }

    fn failed(&self, error: &MessageError) -> StoreError {
        match error {
            MessageError::Unknown => {
                self.session.unknown.store(true, Ordering::Relaxed);
                self.leave(error)
            }
            MessageError::Gone => self.leave(error),
            MessageError::Missing | MessageError::Refused(_) => {
                StoreError::Denied { reason: Some(error.to_string().into()) }
            }
            MessageError::TimedOut => StoreError::TimedOut,
            MessageError::Cancelled => StoreError::Cancelled,
        }
    }

    fn is_on_disk(&self) -> bool {
        self.session.disk.size(&self.at).is_some()
    }

    fn ask(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let wrote = self.wrote.load(Ordering::Relaxed);
        match self.session.messages.read(&self.path, call) {
            // Some editors return an empty text for a missing file.
            Ok(text) if text.is_empty() && !wrote && !self.is_on_disk() => Ok(None),
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(error @ MessageError::Missing) if self.is_on_disk() => Err(self.leave(&error)),
            Err(MessageError::Missing) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Reads the text for the first time in a call, and compares it with the disk.
    fn begin(&self, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(on_disk) = self.session.disk.read(&self.at, call)? else {
            return self.ask(call);
        };
        if Text::decode(on_disk.bytes.clone()).is_err() {
            // An editor would show another text than the file has.
            return Err(self.leave(&MessageError::Missing));
        }
        let Some(text) = self.ask(call)? else { return Ok(None) };
        self.compare(text, &on_disk, call).map(Some)
    }

    /// Detects a text that is older than the file on disk, after giving the editor time to reload.
    fn compare(
        &self,
        text: Vec<u8>,
        on_disk: &Version,
        call: &Call,
    ) -> Result<Vec<u8>, StoreError> {
        let SessionStore { looks, others, .. } = self.session;
        let (disk, mut text) = (Disk::of(on_disk), text);
        let at_work = others.were_at_work(disk.modified);
        let mut look = Look::after(looks.last(&self.at), disk, print(&text), at_work);
        let is_news = look.stale && !look.told;
        if is_news {
            (look, text) = self.await_reload(look, text, call)?;
        }
        looks.keep(&self.at, Look { told: look.stale, ..look });
        match self.purpose {
            Purpose::Change if look.stale && is_news => {
                Err(StoreError::Stale { why: REFUSAL, current: Some(Hash::of(&text)) })
            }
            Purpose::Read if look.stale => {
                self.note.get_or_init(|| NOTE);
                Ok(text)
            }
            Purpose::Read | Purpose::Change => Ok(text),
        }
    }

    /// Reads again until both texts are equal, at most [`RELOAD_TRIES`] times.
    fn await_reload(
        &self,
        mut look: Look,
        mut text: Vec<u8>,
        call: &Call,
    ) -> Result<(Look, Vec<u8>), StoreError> {
        for _ in 0..RELOAD_TRIES {
            thread::sleep(self.session.reload_pause);
            // The editor may just as well be saving the file.
            let on_disk = self.session.disk.read(&self.at, call)?;
            let now = self.ask(call).inspect_err(|_| {
                // The editor has shown a text that the disk does not have, so the disk must not be used.
                self.left.store(false, Ordering::Relaxed);
            })?;
            let (Some(now), Some(on_disk)) = (now, on_disk) else { break };
            text = now;
            look = Look { buffer: print(&text), disk: Some(Disk::of(&on_disk)), ..look };
            look.stale = !look.is_same();
            if !look.stale {
                break;
            }
        }
        Ok((look, text))
    }
}

impl<M: Messages> Editor for Visit<'_, M> {
    fn read(&self, _: &FilePath, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        if self.begun.swap(true, Ordering::Relaxed) { self.ask(call) } else { self.begin(call) }
    }

    fn write(&self, _: &FilePath, bytes: &[u8], call: &Call) -> Result<(), StoreError> {
        let text = str::from_utf8(bytes).map_err(|_| denied("an editor takes nothing but text"))?;
        let outcome = self.session.messages.write(&self.path, text, call);
        outcome.map_err(|error| self.failed(&error))?;
        self.wrote.store(true, Ordering::Relaxed);
        self.session.looks.wrote(&self.at, print(bytes));
        Ok(())
    }
}
