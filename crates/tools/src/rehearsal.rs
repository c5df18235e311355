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

/// Lines of the diff in a question, besides one that counts those left out, and characters of each before it is cut.
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
    // The path is never cut: what is left out of it could lead elsewhere.
    let mut question = format!("Allow {tool} to {act} {}?\n", plain(target));
    let size = before.as_ref().map_or(0, |version| version.bytes.len());
    let old = before.map_or(Ok(Text::empty()), |version| Text::decode(version.bytes));
    let old = old.unwrap_or_else(|_| {
        let _ = write!(question, "\nIts {size} bytes, which are not text, become:");
        Text::empty()
    });
    let new = String::from_utf8_lossy(after);
    let name = target.rsplit(['/', '\\']).next().unwrap_or(target);
    let mut changed = Composed::new();
    changed.then(0..old.whole().len(), new.len());
    let names = Names { old: name, new: name };
    let diff = diff::unified_within(old.whole(), &new, &changed, names, DIFF_LINES);
    for line in shown_lines(&diff) {
        let _ = write!(question, "\n{line}");
    }
    question
}

/// The lines of a diff. A return at the end of all that is shown of a file makes no difference; at the end of some it is
/// one that must be seen.
fn shown_lines(diff: &str) -> impl Iterator<Item = String> {
    let lines = || diff.split_terminator('\n');
    let mut of_file = lines().skip(2).filter(|line| line.starts_with([' ', '-', '+']));
    let ending = if of_file.all(|line| line.ends_with('\r')) { "\r" } else { "" };
    lines().map(move |line| cut(line.strip_suffix(ending).unwrap_or(line)))
}

/// The beginning of a long line.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((at, _)) => plain(&line[..at]) + " ...",
        None => plain(line),
    }
}

/// A text as it is, but for what would not be seen, or make something else of what is: those are named.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) {
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// What moves the cursor or the text around it, or leaves no mark where one would look for it: controls, and what Unicode
/// lets a display ignore.
fn is_unseen(character: char) -> bool {
    let is_ignorable = matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    is_ignorable || (character.is_control() && character != '\t')
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
            // Reading does not tell a missing file from a missing folder, writing does. What else there is to say of a
            // folder is of no account: some may be written in but not listed.
            let listed = self.store.list(&at.parent(), call, &mut |_| ControlFlow::Break(()));
            if let Err(StoreError::NoFolder) = listed {
                return Err(StoreError::NoFolder);
            }
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

    use std::time::{Duration, Instant};

    use files::{Faulty, LineCounts, MemoryStore, Root, Step};
    use serde_json::json;

    use crate::{Kind, Limits};

    /// `write_text_file` of this text to `a.txt`, as `run` has it run.
    fn write<T>(store: &dyn Store, text: &str, run: impl FnOnce(Prepared, &Context) -> T) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("a folder");
        let tool = crate::TEXT.iter().find(|tool| tool.name == "write_text_file").expect("a tool");
        let path = root.path().join("a.txt");
        let prepared = tool.prepare(json!({ "path": path, "content": text })).expect("sound");
        run(
            prepared,
            &Context {
                root: &root,
                store,
                line_counts: &LineCounts::default(),
                limits: &Limits::new(1 << 20, Duration::from_mins(1)),
                call: &Call::until(Instant::now() + Duration::from_mins(1)),
                expected: None,
            },
        )
    }

    fn file() -> FilePath {
        FilePath::flat("a.txt").expect("a name")
    }

    fn contents(store: &MemoryStore) -> Option<Vec<u8>> {
        let call = Call::until(Instant::now() + Duration::from_mins(1));
        store.read(&file(), &call).expect("it reads").map(|version| version.bytes.to_vec())
    }

    #[test]
    fn what_was_seen_is_written_over_what_was_seen_and_nothing_else() {
        let store = MemoryStore::new(1 << 20);
        let seen = |text| write(&store, text, Prepared::rehearse).map(|rehearsed| rehearsed.seen);
        let put = |text, seen: &Seen| {
            write(&store, text, |prepared, cx| prepared.run_as_seen(cx, seen))
                .map(drop)
                .map_err(|failure| failure.kind)
        };
        let created = seen("one").expect("it would be written");
        assert_eq!(contents(&store), None);
        assert_eq!(put("two", &created), Err(Kind::Stale));
        assert_eq!(contents(&store), None);
        assert_eq!(put("one", &created), Ok(()));
        assert_eq!(contents(&store), Some(b"one".to_vec()));
        // The file is there by now, and then it is another one.
        assert_eq!(put("one", &created), Err(Kind::Stale));
        let changed = seen("two").expect("it would be written");
        store.put(&file(), "three");
        assert_eq!(put("two", &changed), Err(Kind::Stale));
        // What would have changed nothing changes nothing.
        let same = seen("three").expect("it would be kept");
        assert_eq!((put("three", &same), put("four", &same)), (Ok(()), Err(Kind::Stale)));
        assert_eq!(contents(&store), Some(b"three".to_vec()));
    }

    #[test]
    fn a_folder_that_cannot_be_listed_may_be_written_in() {
        let store = Faulty::new(MemoryStore::new(1 << 20));
        store.fail(Step::List, 0, StoreError::Denied { reason: None });
        let rehearsed = write(&store, "one", Prepared::rehearse).expect("it would be written");
        let question = rehearsed.question.expect("that has to be asked about");
        assert!(question.starts_with("Allow write_text_file to create "), "{question}");
        store.fail(Step::List, 0, StoreError::NoFolder);
        let refused = write(&store, "one", Prepared::rehearse).map(drop).expect_err("no folder");
        assert_eq!(refused.kind, Kind::NotFound);
    }

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
        // A soft hyphen, an Arabic mark, a Hangul filler, a letter that is only a tag.
        assert_eq!(plain("\u{ad}\u{61c}\u{3164}\u{e0041}"), "<U+00AD><U+061C><U+3164><U+E0041>");
        assert_eq!(cut(&"x".repeat(LINE_LENGTH)).len(), LINE_LENGTH);
        assert_eq!(cut(&"é".repeat(LINE_LENGTH + 1)), "é".repeat(LINE_LENGTH) + " ...");
    }
}
