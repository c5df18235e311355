//! What a call would write, found out without writing it; and a call that writes just that.
//!
//! Whoever is asked about a change must be shown it, and what is written then must be that very change. So a call is
//! first run on a store that keeps everything as it is, and later on one that refuses what differs from what was seen.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use files::{
    Call, Change, Decide, DirPath, Durable, Entry, FilePath, Hash, Saved, Stamp, Stop, Store,
    StoreError, Version,
};
use sha2::{Digest as _, Sha256};
use text::diff::{self, Names};
use text::{Composed, Text};

use crate::{Context, Failure, Prepared, Reply};

/// Lines of the diff in a question, besides one that counts those left out, and characters of each.
const DIFF_LINES: usize = 39;
const LINE_LENGTH: usize = 200;

/// A change as it was shown, told by what cannot be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Of the file as it was; `None` if there was none.
    before: Option<Digest>,
    /// Of what it would become; `None` if it would stay as it is.
    after: Option<Digest>,
}

type Digest = [u8; 32];

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

impl Seen {
    /// As bytes, to be kept by somebody else.
    pub fn to_bytes(&self) -> Vec<u8> {
        let side = |digest: &Option<Digest>| match digest {
            Some(digest) => [&[1], digest.as_slice()].concat(),
            None => vec![0],
        };
        [side(&self.before), side(&self.after)].concat()
    }

    /// What [`Seen::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let side = |bytes: &mut &[u8]| -> Option<Option<Digest>> {
            let (&flag, rest) = bytes.split_first()?;
            let (digest, rest) = match flag {
                0 => (None, rest),
                1 => rest.split_first_chunk().map(|(digest, rest)| (Some(*digest), rest))?,
                _ => return None,
            };
            *bytes = rest;
            Some(digest)
        };
        let mut bytes = bytes;
        let (before, after) = (side(&mut bytes)?, side(&mut bytes)?);
        bytes.is_empty().then_some(Self { before, after })
    }
}

/// What a call would do.
pub struct Rehearsed {
    pub seen: Seen,
    /// What a person is to be asked; `None` if nothing would be written.
    pub question: Option<String>,
}

impl Prepared {
    /// Finds out what the call would write, and writes nothing.
    pub fn rehearse(self, cx: &Context) -> Result<Rehearsed, Failure> {
        let (tool, target) = (self.entry.name, self.target.clone().unwrap_or_default());
        let store = Rehearsal {
            store: cx.store,
            folders: AtomicBool::default(),
            written: Mutex::default(),
        };
        self.run(&Context { store: &store, ..*cx })?;
        let written = store.written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(Written { before, after }) = written else {
            let seen = Seen { before: None, after: None };
            return Ok(Rehearsed { seen, question: None });
        };
        let seen = Seen {
            before: before.as_ref().map(|version| digest(&version.bytes)),
            after: after.as_deref().map(digest),
        };
        let question = after.map(|after| question(tool, &target, before, &after));
        Ok(Rehearsed { seen, question })
    }

    /// Runs the call, which writes what was seen or nothing.
    pub fn run_as_seen(self, cx: &Context, seen: &Seen) -> Result<Reply, Failure> {
        let target = self.target.clone().unwrap_or_default();
        let store = AsSeen { store: cx.store, seen, found: Mutex::default() };
        let outcome = self.run(&Context { store: &store, ..*cx });
        match store.found.into_inner().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(current) if outcome.is_err() => {
                Err(Failure::stale(&target, current).with_hint(
                    "it changed after its change was shown; nothing was written, call again to ask again",
                ))
            }
            _ => outcome,
        }
    }
}

/// What a person is asked. Names and contents are anybody's, so nothing of them can pass for something else.
fn question(tool: &str, target: &str, before: Option<Version>, after: &[u8]) -> String {
    let act = if before.is_some() { "change" } else { "create" };
    let mut question = format!("Allow {tool} to {act} {}?\n", plain(target));
    let size = before.as_ref().map(|version| version.bytes.len());
    let old = before.map_or(Ok(Text::empty()), |version| Text::decode(version.bytes));
    if let (Ok(old), Ok(new)) = (old, std::str::from_utf8(after)) {
        let name = target.rsplit(['/', '\\']).next().unwrap_or(target);
        let mut changed = Composed::new();
        changed.then(0..old.whole().len(), new.len());
        let names = Names { old: name, new: name };
        let diff = diff::unified_within(old.whole(), new, &changed, names, DIFF_LINES);
        for line in diff.lines() {
            let _ = write!(question, "\n{}", plain(line));
        }
    } else {
        let (old, new) = (size.unwrap_or_default(), after.len());
        let _ = write!(question, "\nIts {old} bytes, which are not text, become {new} bytes.");
    }
    question
}

/// A line as it is, but for what would not be seen, or make something else of what is: those are named.
fn plain(line: &str) -> String {
    let mut shown = String::with_capacity(line.len().min(LINE_LENGTH) + 4);
    for (count, character) in line.chars().enumerate() {
        if count == LINE_LENGTH {
            shown.push_str(" ...");
            break;
        }
        match character {
            '\t' => shown.push(character),
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
            _ if character.is_control() => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// A file, and what would become of it.
struct Written {
    before: Option<Version>,
    /// `None`: it would stay as it is.
    after: Option<Vec<u8>>,
}

/// A store in which nothing changes. It keeps what would have been written.
struct Rehearsal<'a> {
    store: &'a dyn Store,
    /// The missing folders were asked for.
    folders: AtomicBool,
    written: Mutex<Option<Written>>,
}

impl Rehearsal<'_> {
    fn version(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        let version = self.store.read(at, call)?;
        if version.is_none() && !self.folders.load(Ordering::Relaxed) {
            // Reading does not tell a missing file from a missing folder, writing does.
            self.store.list(&at.parent(), call, &mut |_| ControlFlow::Break(()))?;
        }
        Ok(version)
    }
}

impl Store for Rehearsal<'_> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.store.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let versions = at.iter().map(|at| self.version(at, call)).collect::<Result<Vec<_>, _>>()?;
        let changes = change(&versions).map_err(|Stop| StoreError::Stopped)?;
        let saved = versions.iter().map(|version| Saved {
            created: version.is_none(),
            stamp: version.as_ref().map_or(Stamp::MISSING, |version| version.stamp),
            durable: Durable::Yes,
            links: 0,
            lost: Vec::new(),
            contested: false,
        });
        let saved = saved.collect();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = versions.into_iter().zip(changes).next().map(|(before, change)| {
            let is_new = |bytes: &Vec<u8>| before.as_ref().is_none_or(|old| *old.bytes != *bytes);
            let after = match change {
                Change::Write(bytes) => Some(bytes).filter(is_new),
                Change::Keep | Change::Remove => None,
            };
            Written { before, after }
        });
        Ok(saved)
    }

    fn make_folders(&self, folder: &DirPath, _: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.folders.store(true, Ordering::Relaxed);
        Ok(vec![folder.clone()])
    }

    fn remove_folders(&self, _: &[DirPath]) {}
}

/// A store that writes what was seen, over what was seen, and nothing else.
struct AsSeen<'a> {
    store: &'a dyn Store,
    seen: &'a Seen,
    /// What was there instead, if there was: a file of this hash, or none.
    found: Mutex<Vec<Option<Hash>>>,
}

impl Store for AsSeen<'_> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.store.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.store.update(at, call, &mut |versions| {
            let version = versions.first().and_then(Option::as_ref);
            let found = version.map(|version| Hash::of(&version.bytes));
            let refuse = || {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                Err(Stop)
            };
            if version.map(|version| digest(&version.bytes)) != self.seen.before {
                return refuse();
            }
            let changes = change(versions)?;
            let as_seen = match changes.as_slice() {
                [Change::Keep] => true,
                [Change::Write(bytes)] => {
                    let after = Some(digest(bytes));
                    after == self.seen.after || after == self.seen.before
                }
                _ => false,
            };
            if as_seen { Ok(changes) } else { refuse() }
        })
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.store.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.store.remove_folders(made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_comes_back_from_bytes() {
        for before in [None, Some([1; 32])] {
            for after in [None, Some([2; 32])] {
                let seen = Seen { before, after };
                let bytes = seen.to_bytes();
                assert_eq!(Seen::from_bytes(&bytes), Some(seen));
                assert_eq!(Seen::from_bytes(&bytes[1..]), None);
                assert_eq!(Seen::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
        assert_eq!(Seen::from_bytes(&[2, 0]), None);
    }

    #[test]
    fn what_cannot_be_seen_is_named() {
        assert_eq!(plain("a\tb é 漢"), "a\tb é 漢");
        assert_eq!(plain("\u{1b}[1m\u{202e}\u{feff}\r"), "<U+001B>[1m<U+202E><U+FEFF><U+000D>");
        assert_eq!(plain(&"x".repeat(LINE_LENGTH)).len(), LINE_LENGTH);
        assert_eq!(plain(&"é".repeat(LINE_LENGTH + 1)), "é".repeat(LINE_LENGTH) + " ...");
    }
}
