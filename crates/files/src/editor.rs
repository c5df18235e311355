//! A store over an editor's buffers, with their unsaved changes.
//!
//! An editor has no lock and no conditional write, and a person may type at any time. So an update reads, changes, and
//! reads again just before it writes; if the text changed meanwhile, the change is made again from the new text. It is
//! written only when two reads in a row returned the same, and the last of them is the last message before the write.
//! After the write the text is read back. Any interference that is noticed is reported by [`Saved::interference`].
//!
//! One gap remains: text typed between the last read and the arrival of the write is overwritten. Nothing in the
//! editor's answers shows that, so it is not noticed either. Several files are all read again before the first is
//! written, and read back after the last; if one cannot be written, those before it are restored as far as possible.
//!
//! Calls of one process take turns, by path. Two paths that lead to one file by links are two files here.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Call, Change, Decide, DirPath, Durable, Entry, FilePath, Hash, Interference, Root, Saved,
    Stamp, Stop, Store, StoreError, Version, lock,
};

/// Number of times a change is made again because the text had changed. A person who types without a pause must not
/// keep an update for ever, nor lose what was typed: then nothing is written.
const RERUNS_MAX: usize = 8;

const RESTLESS: &str = "somebody is changing it right now, without a pause; nothing was written, try again in a moment";

/// The two messages that an editor offers. A person may change the text between them.
pub trait Editor: Send + Sync {
    /// Reads the whole text as the editor has it, saved or not; `None` when there is neither a buffer nor a file.
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces the whole text of a buffer or a file, new or not. Every error means that the text is as it was, except
    /// [`StoreError::TimedOut`]: the message was sent, and its answer did not come.
    fn write(&self, at: &FilePath, bytes: &[u8], call: &Call) -> Result<(), StoreError>;
}

/// A store that asks an editor. It cannot list or remove files: there are no messages for that.
#[derive(Debug)]
pub struct EditorStore<E> {
    editor: E,
    max_size: u64,
    turns: Turns,
    /// Folder of its files, which tells them from files of other stores that share the turns.
    folder: PathBuf,
}

/// Paths of the files that calls are working on, in one store or in several that share this set.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<BTreeSet<PathBuf>>>);

/// One file of an update.
struct Buffer<'a> {
    at: &'a FilePath,
    /// The file as it was last read.
    seen: Option<Version>,
    /// The text to write, if any.
    new: Option<Arc<Vec<u8>>>,
    /// True if another change to the file was noticed.
    contested: bool,
}

/// The right to be the only call that works on some files. Released on drop.
struct Turn<'a> {
    files: Vec<PathBuf>,
    turns: &'a Turns,
}

impl<E: Editor> EditorStore<E> {
    /// Creates a store with turns of its own. `max_size` is in bytes.
    pub fn new(editor: E, max_size: u64) -> EditorStore<E> {
        EditorStore { editor, max_size, turns: Turns::default(), folder: PathBuf::new() }
    }

    /// Shares `turns` with other stores, so that no two calls change one file at the same time. The files are those of
    /// `root`.
    #[must_use]
    pub fn sharing(self, turns: &Turns, root: &Root) -> EditorStore<E> {
        EditorStore { turns: turns.clone(), folder: root.resolved().to_owned(), ..self }
    }

    pub fn editor(&self) -> &E {
        &self.editor
    }

    fn check_size(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let (size, max) = (bytes.len() as u64, self.max_size);
        if size > max { Err(StoreError::TooLarge { size, max }) } else { Ok(()) }
    }

    /// Waits for a turn at all files at once, so that two calls never wait for each other.
    fn take_turn(&self, files: &[&FilePath], call: &Call) -> Result<Turn<'_>, StoreError> {
        let files: Vec<PathBuf> = files.iter().map(|at| self.folder.join(at.as_path())).collect();
        lock::wait(call, || {
            let mut busy = self.turns.hold();
            let is_free = files.iter().all(|at| !busy.contains(at));
            if is_free {
                busy.extend(files.iter().cloned());
            }
            Ok(is_free)
        })?;
        Ok(Turn { files, turns: &self.turns })
    }

    fn ask(&self, at: &FilePath, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        call.check()?;
        let bytes = self.editor.read(at, call)?;
        self.check_size(bytes.as_deref().unwrap_or_default())?;
        Ok(bytes)
    }

    /// Reads everything again, also files that are kept, since the change was made from them too. True if anything
    /// differs.
    fn look_again(&self, buffers: &mut [Buffer<'_>], call: &Call) -> Result<bool, StoreError> {
        let mut differs = false;
        for buffer in buffers {
            let now = self.ask(buffer.at, call)?;
            // A write may be next, so nothing is done here that can be avoided.
            if now.as_ref() != bytes(buffer.seen.as_ref()) {
                buffer.seen = now.map(version);
                buffer.contested = true;
                differs = true;
            }
        }
        Ok(differs)
    }

    /// Runs `change` on the texts that were last read. True if anything is to be written. `slots` has the index of the
    /// buffer for each path.
    fn decide(
        &self,
        buffers: &mut [Buffer<'_>],
        slots: &[usize],
        change: &mut Decide<'_>,
    ) -> Result<bool, StoreError> {
        let versions: Vec<_> = slots.iter().map(|&slot| buffers[slot].seen.clone()).collect();
        let changes = change(&versions).map_err(|Stop| StoreError::Stopped)?;
        assert_eq!(changes.len(), slots.len(), "one change for each path");
        for buffer in buffers.iter_mut() {
            buffer.new = None;
        }
        for (&slot, change) in slots.iter().zip(changes) {
            let Buffer { seen, new, .. } = &mut buffers[slot];
            let wanted = match change {
                Change::Remove if seen.is_some() => {
                    return Err(StoreError::denied("an editor cannot remove files"));
                }
                Change::Write(wanted) if bytes(seen.as_ref()) != Some(&wanted) => wanted,
                Change::Keep | Change::Write(_) | Change::Remove => continue,
            };
            self.check_size(&wanted)?;
            if new.as_ref().is_some_and(|other| *other != wanted) {
                return Err(StoreError::SameFile);
            }
            *new = Some(wanted);
        }
        Ok(buffers.iter().any(|buffer| buffer.new.is_some()))
    }

    /// Writes one file after another. No write is sent twice: when its answer is missing, it may have arrived.
    fn write_all(&self, buffers: &[Buffer<'_>], call: &Call) -> Result<(), StoreError> {
        let mut written = Vec::new();
        let (old, missing): (Vec<_>, Vec<_>) =
            buffers.iter().partition(|buffer| buffer.seen.is_some());
        // New files come last, since they could not be removed again.
        for buffer in old.into_iter().chain(missing) {
            let Some(new) = &buffer.new else { continue };
            if let Err(error) = self.editor.write(buffer.at, new, call) {
                self.put_back(&written, call);
                return Err(match error {
                    StoreError::TimedOut => StoreError::Unconfirmed,
                    error => error,
                });
            }
            written.push(buffer);
        }
        Ok(())
    }

    /// Undoes writes of which a later one failed, as far as possible: a text that was changed meanwhile stays, and so
    /// does a new file.
    fn put_back(&self, written: &[&Buffer<'_>], call: &Call) {
        for Buffer { at, seen, new, .. } in written.iter().rev() {
            let is_ours =
                self.editor.read(at, call).is_ok_and(|now| now.as_ref() == new.as_deref());
            if let (true, Some(old)) = (is_ours, seen) {
                let _ = self.editor.write(at, &old.bytes, call);
            }
        }
    }

    /// Reads back a file that was written, and returns the outcome.
    fn confirm(&self, buffer: &Buffer<'_>, call: &Call) -> Saved {
        let Buffer { at, seen, new: Some(new), contested } = buffer else {
            let stamp = buffer.seen.as_ref().map_or(Stamp::MISSING, |version| version.stamp);
            return Saved { interference: interference(buffer.contested), ..Saved::kept(stamp) };
        };
        // The file is written, so a read that fails now is no failure; it shows no interference.
        let now = self.editor.read(at, call).unwrap_or_else(|_| Some(new.to_vec()));
        let is_same = now.as_ref() == Some(&**new);
        let restyled = now.as_ref().filter(|now| !is_same && unstyled(now) == unstyled(new));
        Saved {
            created: seen.is_none(),
            durable: Durable::No,
            interference: interference(*contested || (!is_same && restyled.is_none())),
            restyled: restyled.map(|now| Hash::of(now)),
            ..Saved::kept(now.as_deref().map_or(Stamp::MISSING, stamp))
        }
    }
}

fn interference(is_contested: bool) -> Interference {
    if is_contested { Interference::Contested } else { Interference::None }
}

impl<E: Editor> Store for EditorStore<E> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        Ok(self.ask(at, call)?.map(version))
    }

    fn list(
        &self,
        _: &DirPath,
        call: &Call,
        _: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        call.check()?;
        Err(StoreError::denied("an editor cannot list files"))
    }

    fn walk(
        &self,
        _: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.list(&DirPath::root(), call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut files: Vec<_> = at.iter().collect();
        files.sort_unstable();
        files.dedup();
        let slot = |at| files.binary_search(&at).expect("it is one of them");
        let slots: Vec<_> = at.iter().map(slot).collect();

        let _turn = self.take_turn(&files, call)?;
        let mut buffers = Vec::with_capacity(files.len());
        for &at in &files {
            let seen = self.read(at, call)?;
            buffers.push(Buffer { at, seen, new: None, contested: false });
        }
        let mut reruns = 0;
        while self.decide(&mut buffers, &slots, change)? && self.look_again(&mut buffers, call)? {
            if reruns == RERUNS_MAX {
                let current = buffers[slots[0]].seen.as_ref().map(|seen| Hash::of(&seen.bytes));
                return Err(StoreError::Stale { why: RESTLESS, current });
            }
            reruns += 1;
        }
        if buffers.iter().any(|buffer| buffer.new.is_some()) {
            call.check()?;
        }
        // A message that was sent cannot be cancelled, so from here on only the deadline counts.
        let publishing = Call::until(call.deadline);
        self.write_all(&buffers, &publishing)?;
        let saved: Vec<_> =
            buffers.iter().map(|buffer| self.confirm(buffer, &publishing)).collect();
        Ok(slots.into_iter().map(|slot| saved[slot].clone()).collect())
    }

    /// Fails: an editor makes a missing folder when it writes, or never.
    fn make_folders(&self, _: &DirPath, _: &Call) -> Result<Vec<DirPath>, StoreError> {
        Err(StoreError::NoFolder)
    }

    fn remove_folders(&self, _: &[DirPath]) {}
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut busy = self.turns.hold();
        for at in &self.files {
            busy.remove(at);
        }
    }
}

impl Turns {
    fn hold(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // No foreign code runs under this lock, so the set is whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(version: Option<&Version>) -> Option<&Vec<u8>> {
    version.map(|version| &*version.bytes)
}

fn version(bytes: Vec<u8>) -> Version {
    let stamp = stamp(&bytes);
    Version::new(bytes, stamp)
}

/// Stamp of a text: a hash of it, since an editor tells nothing else. Equal texts have equal stamps.
fn stamp(bytes: &[u8]) -> Stamp {
    Stamp { inode: xxh3_64(bytes), size: bytes.len() as u64, ..Stamp::MISSING }
}

/// Normalizes what editors change on their own: removes the byte order mark, and makes every line break `\n`.
pub fn unstyled(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut rest = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let Some(mut at) = memchr(b'\r', rest) else { return Cow::Borrowed(rest) };
    let mut plain = Vec::with_capacity(rest.len());
    loop {
        plain.extend_from_slice(&rest[..at]);
        plain.push(b'\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        match memchr(b'\r', rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}
