//! Rehearsals: finds out what a call would write without writing it, and runs a call that writes just that.
//!
//! A person who is asked about a change must be shown it, and exactly that change must be written then. So a call is
//! first run on a store that keeps everything as it is, and later on one that refuses any change other than the one
//! shown.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use files::{
    Call, Change, Decide, DirPath, Entry, FilePath, Hash, Saved, Stamp, Stop, Store, StoreError,
    Version,
};
use sha2::{Digest as _, Sha256};
use text::diff::{self, DiffNames};
use text::{ComposedSplices, Text};

use crate::{Context, Dialect, Effect, Failure, FailureKind, Prepared, ToolOutput};

/// Most lines of the diff in a question, besides one that counts those left out, and characters of each before it is
/// cut.
const DIFF_LINES: usize = 39;
const LINE_LENGTH: usize = 200;

/// A change as it was shown, identified by digests, which cannot be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDigest {
    /// Digest of the file as it was; `None` if there was none.
    before: Option<Digest>,
    /// Digest of what it would become; `None` if it would stay as it is.
    after: Option<Digest>,
}

type Digest = [u8; 32];

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

impl ChangeDigest {
    /// Encodes the digests as bytes, which the client keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        let side = |digest: &Option<Digest>| match digest {
            Some(digest) => [&[1], digest.as_slice()].concat(),
            None => vec![0],
        };
        [side(&self.before), side(&self.after)].concat()
    }

    /// Decodes what [`ChangeDigest::to_bytes`] made.
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

/// The change that a call made, or would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file as it was; `None` if there was none.
    pub before: Option<Arc<Vec<u8>>>,
    pub after: Arc<Vec<u8>>,
}

impl FileChange {
    /// Returns `None` if the file stays as it is.
    fn of(before: Option<&Version>, change: Option<Change>) -> Option<Self> {
        let before = before.map(|version| Arc::clone(&version.bytes));
        match change {
            Some(Change::Write(after)) if before.as_ref() != Some(&after) => {
                Some(Self { before, after })
            }
            _ => None,
        }
    }
}

impl ChangeDigest {
    /// Returns the failure of an edit; it is `Stale` if the edit no longer fits because the file changed after it was
    /// shown.
    fn unfit(&self, failure: Failure, target: &str, found: Option<Arc<Vec<u8>>>) -> Failure {
        let is_miss = matches!(
            failure.kind,
            FailureKind::NoMatch | FailureKind::Ambiguous | FailureKind::Conflict
        );
        if !is_miss || found.as_deref().map(|bytes| digest(bytes)) == self.before {
            return failure;
        }
        Failure::stale(target, found.map(|bytes| Hash::of(&bytes))).with_hint(
            "it changed after its change was shown, and the edits do not fit any more; nothing was written, read it \
             again before editing",
        )
    }
}

/// The result of a rehearsal.
pub struct Rehearsal {
    pub seen: ChangeDigest,
    /// `None` if nothing would be written.
    pub changed: Option<FileChange>,
}

impl Prepared {
    /// Finds out what the call would write, and writes nothing.
    pub fn rehearse(self, cx: &Context) -> Result<Rehearsal, Failure> {
        let nothing = Rehearsal { seen: ChangeDigest { before: None, after: None }, changed: None };
        let (folders, rehearsed) = (AtomicBool::default(), Mutex::new(nothing));
        let update: &Update = &|at, call, change| {
            let found = |at| found(cx.store, at, call, &folders);
            let versions = at.iter().map(found).collect::<Result<Vec<_>, _>>()?;
            let decided = change(&versions).map_err(|Stop| StoreError::Stopped)?;
            let before = versions.first().and_then(Option::as_ref);
            let changed = FileChange::of(before, decided.into_iter().next());
            let seen = ChangeDigest {
                before: before.map(|version| digest(&version.bytes)),
                after: changed.as_ref().map(|changed| digest(&changed.after)),
            };
            *lock(&rehearsed) = Rehearsal { seen, changed };
            Ok(versions.iter().map(Option::as_ref).map(kept).collect())
        };
        let store = InFront { store: cx.store, update, pretended: Some(&folders) };
        self.run(&Context { store: &store, ..*cx })?;
        Ok(rehearsed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs the call, which writes exactly what was shown, or nothing.
    pub fn run_approved(self, cx: &Context, seen: &ChangeDigest) -> Result<ToolOutput, Failure> {
        let target = self.target.clone().unwrap_or_default();
        // Set if the call was refused: the hash of the file that was there instead, or none if there was no file.
        let found = Mutex::new(None);
        let update: &Update = &|at, call, change| {
            cx.store.update(at, call, &mut |versions| {
                let version = versions.first().and_then(Option::as_ref);
                let refuse = || {
                    *lock(&found) = Some(version.map(|version| Hash::of(&version.bytes)));
                    Err(Stop)
                };
                if version.map(|version| digest(&version.bytes)) != seen.before {
                    return refuse();
                }
                let changes = change(versions)?;
                let as_seen = match changes.as_slice() {
                    [Change::Keep] => true,
                    [Change::Write(bytes)] => {
                        let after = Some(digest(bytes));
                        after == seen.after || after == seen.before
                    }
                    _ => false,
                };
                if as_seen { Ok(changes) } else { refuse() }
            })
        };
        let store = InFront { store: cx.store, update, pretended: None };
        let outcome = self.run(&Context { store: &store, ..*cx });
        match lock(&found).take() {
            Some(current) if outcome.is_err() => {
                Err(Failure::stale(&target, current).with_hint(
                    "it changed after its change was shown; nothing was written, call again to ask again",
                ))
            }
            _ => outcome,
        }
    }

    /// Runs the call, with `seen` as [`Prepared::run_approved`] does, and also returns what it wrote. String edits are
    /// made on the file as it is now, if they still fit, so that what a person typed elsewhere in it stays.
    pub fn run_recorded(
        self,
        cx: &Context,
        seen: Option<&ChangeDigest>,
    ) -> (Result<ToolOutput, Failure>, Option<FileChange>) {
        let (changed, found) = (Mutex::new(None), Mutex::new(None));
        let (target, tool) = (self.target.clone().unwrap_or_default(), self.tool);
        let update: &Update = &|at, call, change| {
            let mut last = None;
            let saved = cx.store.update(at, call, &mut |versions| {
                let before = versions.first().and_then(Option::as_ref);
                *lock(&found) = before.map(|version| Arc::clone(&version.bytes));
                let decided = change(versions)?;
                last = FileChange::of(before, decided.first().cloned());
                Ok(decided)
            })?;
            *lock(&changed) = last;
            Ok(saved)
        };
        let store = InFront { store: cx.store, update, pretended: None };
        let recorded = Context { store: &store, ..*cx };
        let outcome = match seen {
            Some(seen) if tool.dialect == Dialect::Text && tool.effect == Effect::Edits => {
                let found = || lock(&found).take();
                self.run(&recorded).map_err(|failure| seen.unfit(failure, &target, found()))
            }
            Some(seen) => self.run_approved(&recorded, seen),
            None => self.run(&recorded),
        };
        (outcome, lock(&changed).take())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the question that a person is asked. Names and contents are untrusted, so nothing in them can pass for
/// something else.
pub fn question(tool: &str, target: &str, FileChange { before, after }: FileChange) -> String {
    let act = if before.is_some() { "change" } else { "create" };
    // The path is never cut: the part left out could lead elsewhere.
    let mut question = format!("Allow {tool} to {act} {}?\n", plain(target));
    let size = before.as_ref().map_or(0, |bytes| bytes.len());
    let old = before.map_or(Ok(Text::empty()), Text::decode);
    let old = old.unwrap_or_else(|_| {
        let _ = write!(question, "\nIts {size} bytes, which are not text, become:");
        Text::empty()
    });
    let new = String::from_utf8_lossy(&after);
    let name = target.rsplit(['/', '\\']).next().unwrap_or(target);
    let mut changed = ComposedSplices::new();
    changed.add(0..old.whole().len(), new.len());
    let names = DiffNames { old: name, new: name };
    let diff = diff::unified_within(old.whole(), &new, &changed, names, DIFF_LINES);
    for line in shown_lines(&diff) {
        let _ = write!(question, "\n{line}");
    }
    question
}

/// Returns the lines of a diff. A carriage return at the end of all lines shown of a file makes no difference and is
/// left out; at the end of only some it is shown.
fn shown_lines(diff: &str) -> impl Iterator<Item = String> {
    let lines = || diff.split_terminator('\n');
    let mut of_file = lines().skip(2).filter(|line| line.starts_with([' ', '-', '+']));
    let ending = if of_file.all(|line| line.ends_with('\r')) { "\r" } else { "" };
    lines().map(move |line| cut(line.strip_suffix(ending).unwrap_or(line)))
}

/// Returns the beginning of a long line.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((at, _)) => plain(&line[..at]) + " ...",
        None => plain(line),
    }
}

/// Returns a text in which characters that cannot be seen, or that change how others are seen, are named.
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

/// True for a character that moves the cursor or the text around it, or leaves no visible mark: controls, and what
/// Unicode lets a display ignore.
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

/// Returns the file as it is, or an error if its folder is missing, unless the call makes folders.
fn found(
    store: &dyn Store,
    at: &FilePath,
    call: &Call,
    folders: &AtomicBool,
) -> Result<Option<Version>, StoreError> {
    let version = store.look(at, call)?;
    if version.is_none() && !folders.load(Ordering::Relaxed) {
        // Reading does not tell a missing file from a missing folder, but writing does. Other errors of the folder do
        // not matter: some folders may be written in but not listed.
        let listed = store.list(&at.parent(), call, &mut |_| ControlFlow::Break(()));
        if let Err(StoreError::NoFolder) = listed {
            return Err(StoreError::NoFolder);
        }
    }
    Ok(version)
}

/// Returns the `Saved` of a file that would have been written.
fn kept(version: Option<&Version>) -> Saved {
    Saved {
        created: version.is_none(),
        ..Saved::kept(version.map_or(Stamp::MISSING, |version| version.stamp))
    }
}

type Update<'a> = dyn Fn(&[FilePath], &Call, &mut Decide<'_>) -> Result<Vec<Saved>, StoreError>
    + Send
    + Sync
    + 'a;

/// A store with an `update` of its own, which passes all else to the store behind it.
struct InFront<'a> {
    store: &'a dyn Store,
    update: &'a Update<'a>,
    /// Given if folders are not really made; set once the call asks for them.
    pretended: Option<&'a AtomicBool>,
}

impl Store for InFront<'_> {
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
        (self.update)(at, call, change)
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        let Some(pretended) = self.pretended else { return self.store.make_folders(folder, call) };
        pretended.store(true, Ordering::Relaxed);
        Ok(vec![folder.clone()])
    }

    fn remove_folders(&self, made: &[DirPath]) {
        if self.pretended.is_none() {
            self.store.remove_folders(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::{Duration, Instant};

    use files::{Faulty, LineCounts, MemoryStore, Root, Step};
    use serde_json::{Value, json};

    use crate::{FailureKind, Limits};

    /// Prepares a call of a tool and passes it to `run`. In its arguments, `$DIR` is the folder.
    fn call<T>(
        store: &dyn Store,
        tool: &str,
        arguments: &Value,
        run: impl FnOnce(Prepared, &Context) -> T,
    ) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("a folder");
        let toolsets = [&crate::FLAT[..], &crate::TEXT, &crate::CODE, &crate::RESOURCES];
        let mut tools = toolsets.into_iter().flatten();
        let tool = tools.find(|spec| spec.name == tool).expect("a tool");
        let path = json!(root.path()).to_string();
        let arguments = arguments.to_string().replace("$DIR", path.trim_matches('"'));
        let arguments = serde_json::from_str(&arguments).expect("arguments");
        run(
            tool.prepare(arguments).expect("sound"),
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

    /// Calls `write_text_file` with this text for `a.txt`.
    fn write<T>(store: &dyn Store, text: &str, run: impl FnOnce(Prepared, &Context) -> T) -> T {
        call(store, "write_text_file", &json!({ "path": "$DIR/a.txt", "content": text }), run)
    }

    /// Calls `multi_edit_text_file` for `a.txt`.
    fn edit<T>(
        store: &dyn Store,
        [old, new]: [&str; 2],
        run: impl FnOnce(Prepared, &Context) -> T,
    ) -> T {
        let edits = json!([{ "old_string": old, "new_string": new }]);
        call(store, "multi_edit_text_file", &json!({ "path": "$DIR/a.txt", "edits": edits }), run)
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
        let put = |text, seen: &ChangeDigest| {
            write(&store, text, |prepared, cx| prepared.run_approved(cx, seen))
                .map(drop)
                .map_err(|failure| failure.kind)
        };
        let created = seen("one").expect("it would be written");
        assert_eq!(contents(&store), None);
        assert_eq!(put("two", &created), Err(FailureKind::Stale));
        assert_eq!(contents(&store), None);
        assert_eq!(put("one", &created), Ok(()));
        assert_eq!(contents(&store), Some(b"one".to_vec()));
        // The file exists by now, and then has other contents.
        assert_eq!(put("one", &created), Err(FailureKind::Stale));
        let changed = seen("two").expect("it would be written");
        store.put(&file(), "three");
        assert_eq!(put("two", &changed), Err(FailureKind::Stale));
        // A rehearsal that found no change allows none.
        let same = seen("three").expect("it would be kept");
        assert_eq!((put("three", &same), put("four", &same)), (Ok(()), Err(FailureKind::Stale)));
        assert_eq!(contents(&store), Some(b"three".to_vec()));
    }

    #[test]
    fn what_is_recorded_is_what_was_written() {
        let store = MemoryStore::new(1 << 20);
        let put = |text, seen: Option<&ChangeDigest>| {
            let record = |prepared: Prepared, cx: &Context| prepared.run_recorded(cx, seen);
            let (outcome, changed) = write(&store, text, record);
            (outcome.is_ok(), changed)
        };
        let changed = |before: Option<&str>, after: &str| {
            let bytes = |text: &str| Arc::new(text.as_bytes().to_vec());
            (true, Some(FileChange { before: before.map(bytes), after: bytes(after) }))
        };
        assert_eq!(put("one", None), changed(None, "one"));
        assert_eq!(put("one", None), (true, None), "it was kept");
        let seen = write(&store, "two", Prepared::rehearse).expect("it would be written").seen;
        assert_eq!(put("three", Some(&seen)), (false, None), "it was refused");
        assert_eq!(put("two", Some(&seen)), changed(Some("one"), "two"));
        let store = Faulty::new(MemoryStore::new(1 << 20));
        store.fail(Step::Publish, 0, StoreError::DiskFull);
        let (outcome, changed) =
            write(&store, "one", |prepared, cx| prepared.run_recorded(cx, None));
        assert!(outcome.is_err());
        assert_eq!(changed, None, "it failed at the last step");
    }

    #[test]
    fn edits_that_still_fit_are_made_on_what_is_there_now() {
        let store = MemoryStore::new(1 << 20);
        let two = ["two", "2"];
        let record = |seen: &ChangeDigest, strings| {
            let (outcome, _) = edit(&store, strings, |call, cx| call.run_recorded(cx, Some(seen)));
            outcome.map(drop).map_err(|failure| failure.kind)
        };
        store.put(&file(), "one\ntwo\n");
        let seen = edit(&store, two, Prepared::rehearse).expect("it would be written").seen;
        // Another edit misses here: the file is what was shown.
        assert_eq!(record(&seen, ["three", "3"]), Err(FailureKind::NoMatch));
        store.put(&file(), "zero\none\ntwo\n");
        assert_eq!(record(&seen, two), Ok(()));
        assert_eq!(contents(&store), Some(b"zero\none\n2\n".to_vec()));
        assert_eq!(record(&seen, two), Err(FailureKind::Stale));
        store.put(&file(), "\0");
        assert_eq!(record(&seen, two), Err(FailureKind::NotText));
        // A whole file is written only over the version that was shown.
        let (outcome, _) = write(&store, "2", |call, cx| call.run_recorded(cx, Some(&seen)));
        assert_eq!(outcome.map(drop).map_err(|failure| failure.kind), Err(FailureKind::Stale));
    }

    #[test]
    fn what_stays_as_it_is_was_seen_so() {
        let store = MemoryStore::new(1 << 20);
        store.put(&file(), "one\n");
        let same = json!({ "target_file": "a.txt", "edit_instruction": "x", "start_line": 1, "code_block": "one" });
        let rehearsed = call(&store, "ai_edit_code", &same, Prepared::rehearse).expect("it fits");
        assert_eq!(rehearsed.changed, None);
        let run = |call: Prepared, cx: &Context| call.run_approved(cx, &rehearsed.seen);
        assert!(call(&store, "ai_edit_code", &same, run).is_ok());
    }

    #[test]
    fn what_is_recorded_sees_all_that_is_there() {
        let store = MemoryStore::new(1 << 20);
        store.put(&file(), "one\n");
        let recorded = |tool, arguments: Value| {
            let (outcome, _) =
                call(&store, tool, &arguments, |call, cx| call.run_recorded(cx, None));
            outcome
        };
        let read = recorded("read_text_file", json!({ "path": "$DIR/a.txt" })).expect("it reads");
        assert_eq!(read.blocks[0].to_string(), "one\n");
        let listed = recorded("list_files", json!({})).expect("it lists");
        assert!(listed.written.expect("an object").contains("a.txt"));
        let walked = recorded("resources/list", json!({})).expect("it walks").data;
        assert_eq!(walked.expect("a page")["files"][0]["name"], "a.txt");
    }

    #[test]
    fn folders_that_would_be_made_are_not_missed() {
        let store = Faulty::new(MemoryStore::new(1 << 20));
        let new = json!({ "path": "$DIR/b/a.txt", "content": "", "create_dirs": true });
        store.fail(Step::List, 0, StoreError::NoFolder);
        assert!(call(&store, "write_text_file", &new, Prepared::rehearse).is_ok());
        // An existing file does not need its folder listed either.
        store.inner().put(&file(), "one");
        assert!(write(&store, "two", Prepared::rehearse).is_ok());
    }

    #[test]
    fn a_folder_that_cannot_be_listed_may_be_written_in() {
        let store = Faulty::new(MemoryStore::new(1 << 20));
        store.fail(Step::List, 0, StoreError::Denied { reason: None });
        let rehearsed = write(&store, "one", Prepared::rehearse).expect("it would be written");
        let changed = rehearsed.changed.expect("that has to be asked about");
        let question = question("write_text_file", "/a.txt", changed);
        assert!(question.starts_with("Allow write_text_file to create "), "{question}");
        store.fail(Step::List, 0, StoreError::NoFolder);
        let refused = write(&store, "one", Prepared::rehearse).map(drop).expect_err("no folder");
        assert_eq!(refused.kind, FailureKind::NotFound);
    }

    #[test]
    fn what_was_seen_comes_back_from_bytes() {
        for before in [None, Some([1; 32])] {
            for after in [None, Some([2; 32])] {
                let seen = ChangeDigest { before, after };
                let bytes = seen.to_bytes();
                assert_eq!(ChangeDigest::from_bytes(&bytes), Some(seen));
                assert_eq!(ChangeDigest::from_bytes(&bytes[1..]), None);
                assert_eq!(ChangeDigest::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
        assert_eq!(ChangeDigest::from_bytes(&[2, 0]), None);
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
