//! Rehearsals: finds out what a call would write without writing it, and runs a call that writes just that.
//!
//! A person who is asked about a change must be shown it, and exactly that change must be written then. So a call is
//! first run on a store that keeps everything as it is, and later on one that refuses any change other than the one
//! shown.
//!
//! - `change`: the change of each file, and the digest of all of them
//! - `question`: what a person is shown
//! - `intercept`: the store that such a call runs on

mod change;
mod intercept;
mod question;

pub use change::{ChangeDigest, FileChange};
pub use question::question;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use files::{Call, FilePath, Hash, Saved, Stamp, Stop, Store, StoreError, Version};

use crate::{Context, Dialect, Effect, Failure, FailureKind, Prepared, ToolOutput};
use change::TargetNames;
use intercept::{InterceptedStore, Update};

/// The result of a rehearsal.
pub struct Rehearsal {
    pub digest: ChangeDigest,
    /// The changes of the files, in order; empty if nothing would be written.
    pub changes: Vec<FileChange>,
}

/// Files as an update found them.
#[derive(Default)]
struct FoundFiles {
    at: Vec<FilePath>,
    versions: Vec<Option<Version>>,
}

impl FoundFiles {
    fn new(at: &[FilePath], versions: &[Option<Version>]) -> Self {
        Self { at: at.to_vec(), versions: versions.to_vec() }
    }

    /// Makes the failure for a file that is not what was shown.
    fn stale(&self, index: usize, names: &TargetNames) -> Failure {
        let version = self.versions[index].as_ref();
        Failure::stale(&names.of(&self.at[index]), version.map(|version| Hash::of(&version.bytes)))
    }
}

impl Prepared {
    /// Finds out what the call would write, and writes nothing.
    pub fn rehearse(self, cx: &Context) -> Result<Rehearsal, Failure> {
        let nothing = Rehearsal { digest: ChangeDigest::NOTHING, changes: Vec::new() };
        let (makes_folders, rehearsed) = (AtomicBool::default(), Mutex::new(nothing));
        let names = TargetNames::new(&self, cx.root);
        let update: &Update = &|at, call, change| {
            let read = |at| read_target(cx.store, at, call, &makes_folders);
            let versions = at.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            let decided = change(&versions).map_err(|Stop| StoreError::Stopped)?;
            let digest = ChangeDigest::of_versions(at, &versions).with_changes(&versions, &decided);
            let changes = FileChange::of_update(at, &versions, &decided, &names);
            *lock(&rehearsed) = Rehearsal { digest, changes };
            Ok(versions.iter().map(Option::as_ref).map(pretended).collect())
        };
        let store =
            InterceptedStore { store: cx.store, update, pretends_folders: Some(&makes_folders) };
        self.run(&Context { store: &store, ..*cx })?;
        Ok(rehearsed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs the call, which writes exactly what was shown, or nothing.
    pub fn run_approved(self, cx: &Context, shown: &ChangeDigest) -> Result<ToolOutput, Failure> {
        let names = TargetNames::new(&self, cx.root);
        // Set if the call was refused.
        let stale = Mutex::new(None);
        let update: &Update = &|at, call, change| {
            cx.store.update(at, call, &mut |versions| {
                let refuse = |index| {
                    *lock(&stale) = Some(FoundFiles::new(at, versions).stale(index, &names));
                    Err(Stop)
                };
                let now = ChangeDigest::of_versions(at, versions);
                if let Some(index) = shown.first_changed_since(&now) {
                    return refuse(index);
                }
                let changes = change(versions)?;
                let is_shown = shown.allows(&now.with_changes(versions, &changes));
                if is_shown { Ok(changes) } else { refuse(0) }
            })
        };
        let store = InterceptedStore { store: cx.store, update, pretends_folders: None };
        let outcome = self.run(&Context { store: &store, ..*cx });
        match lock(&stale).take() {
            Some(stale) if outcome.is_err() => Err(stale.with_hint(
                "the file changed after the edit was shown; nothing was written; call again for a new question",
            )),
            _ => outcome,
        }
    }

    /// Runs the call, with `shown` as [`Prepared::run_approved`] does, and also returns what it wrote. String edits are
    /// made on the file as it is now, if they still fit, so that what a person typed elsewhere in it stays.
    pub fn run_recorded(
        self,
        cx: &Context,
        shown: Option<&ChangeDigest>,
    ) -> (Result<ToolOutput, Failure>, Vec<FileChange>) {
        let (written, found) = (Mutex::new(Vec::new()), Mutex::new(FoundFiles::default()));
        let (names, tool) = (TargetNames::new(&self, cx.root), self.tool);
        let update: &Update = &|at, call, change| {
            let mut last = Vec::new();
            let saved = cx.store.update(at, call, &mut |versions| {
                *lock(&found) = FoundFiles::new(at, versions);
                let decided = change(versions)?;
                last = FileChange::of_update(at, versions, &decided, &names);
                Ok(decided)
            })?;
            *lock(&written) = last;
            Ok(saved)
        };
        let store = InterceptedStore { store: cx.store, update, pretends_folders: None };
        let recorded = Context { store: &store, ..*cx };
        let outcome = match shown {
            Some(shown) if tool.dialect == Dialect::Text && tool.effect == Effect::Edits => {
                self.run(&recorded).map_err(|failure| unfit(failure, shown, &lock(&found), &names))
            }
            Some(shown) => self.run_approved(&recorded, shown),
            None => self.run(&recorded),
        };
        (outcome, std::mem::take(&mut lock(&written)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the failure of an edit; it is `Stale` if the edit no longer fits because a file changed after it was shown.
fn unfit(
    failure: Failure,
    shown: &ChangeDigest,
    found: &FoundFiles,
    names: &TargetNames,
) -> Failure {
    let is_miss = matches!(
        failure.kind,
        FailureKind::NoMatch | FailureKind::Ambiguous | FailureKind::Conflict
    );
    let now = || ChangeDigest::of_versions(&found.at, &found.versions);
    let changed = is_miss.then(|| shown.first_changed_since(&now())).flatten();
    changed.map_or(failure, |index| {
        found.stale(index, names).with_hint(
            "the file changed after the edit was shown, and the edit no longer applies; nothing was written; read the file again before editing",
        )
    })
}

/// Reads a file for a rehearsal. Refuses one whose folder is missing, unless the call makes folders.
fn read_target(
    store: &dyn Store,
    at: &FilePath,
    call: &Call,
    makes_folders: &AtomicBool,
) -> Result<Option<Version>, StoreError> {
    let version = store.read_for_update(at, call)?;
    if version.is_none() && !makes_folders.load(Ordering::Relaxed) {
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
fn pretended(version: Option<&Version>) -> Saved {
    Saved {
        created: version.is_none(),
        ..Saved::kept(version.map_or(Stamp::MISSING, |version| version.stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use files::{Change, FaultyStore, LineCounts, MemoryStore, Root, Step, UpdateError, Updater};
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use crate::{FailureKind, Limits, Tool, ToolSpec};

    /// Prepares a call of a tool and passes it to `run`. In its arguments, `$DIR` is the folder.
    fn call<T>(
        store: &dyn Store,
        tool: &str,
        arguments: &Value,
        run: impl FnOnce(Prepared, &Context) -> T,
    ) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(folder.path()).expect("a folder");
        let mut tools = crate::all_tools().chain(&MOVE_AND_LOG);
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

    fn named(name: &str) -> FilePath {
        FilePath::flat(name).expect("a name")
    }

    fn file() -> FilePath {
        named("a.txt")
    }

    fn contents_of(store: &MemoryStore, name: &str) -> Option<Vec<u8>> {
        let call = Call::until(Instant::now() + Duration::from_mins(1));
        store.read(&named(name), &call).expect("it reads").map(|version| version.bytes.to_vec())
    }

    fn contents(store: &MemoryStore) -> Option<Vec<u8>> {
        contents_of(store, "a.txt")
    }

    /// Returns the texts before and after each change.
    fn sides(changes: &[FileChange]) -> Vec<(Option<String>, Option<String>)> {
        let text = |side: &Option<Arc<Vec<u8>>>| {
            side.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        changes.iter().map(|change| (text(&change.before), text(&change.after))).collect()
    }

    /// Moves a file, and appends to a log.
    #[derive(Deserialize, JsonSchema)]
    struct MoveAndLog {
        from: String,
        to: String,
        log: String,
    }

    static MOVE_AND_LOG: [ToolSpec; 1] = [ToolSpec::of::<MoveAndLog>()];

    impl Tool for MoveAndLog {
        const NAME: &'static str = "move_and_log";
        const TITLE: &'static str = "Move and log";
        const EFFECT: Effect = Effect::Edits;
        type Toolset = crate::flat::Flat;

        fn targets(&self) -> Vec<&str> {
            vec![&self.from, &self.to, "log.txt"]
        }

        fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
            let at = self.targets().into_iter().map(named).collect::<Vec<_>>();
            let updated = Updater::new(cx.store).update(&at, cx.call, |versions| {
                let bytes = |index: usize| versions[index].as_ref().map(|it| Arc::clone(&it.bytes));
                let missing = || Failure::new(FailureKind::NoMatch, "nothing to move");
                let log = [&*bytes(2).unwrap_or_default(), self.log.as_bytes()].concat();
                let moved = Change::Write(bytes(0).ok_or_else(missing)?);
                Ok((vec![Change::Remove, moved, Change::Write(Arc::new(log))], ()))
            });
            updated.map(|_| ToolOutput::default()).map_err(|error| match error {
                UpdateError::Change(failure) => failure,
                UpdateError::Store(error) => Self::refused("", &error, cx.limits),
            })
        }
    }

    /// Calls `move_and_log` for `a.txt` and `b.txt`.
    fn move_and_log<T>(
        store: &dyn Store,
        log: &str,
        run: impl FnOnce(Prepared, &Context) -> T,
    ) -> T {
        let arguments = json!({ "from": "a.txt", "to": "b.txt", "log": log });
        call(store, "move_and_log", &arguments, run)
    }

    /// Makes a store with a file to move, and a log.
    fn store_with_log() -> MemoryStore {
        let store = MemoryStore::new(1 << 20);
        store.put(&file(), "one\n");
        store.put(&named("log.txt"), "1\n");
        store
    }

    #[test]
    fn a_rehearsal_finds_every_file_that_would_change() {
        let store = store_with_log();
        let rehearsed = move_and_log(&store, "2\n", Prepared::rehearse).expect("it would be done");
        let changes = rehearsed.changes;
        let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a.txt", "b.txt", "log.txt"]);
        let text = |text: &str| Some(text.to_owned());
        let expected =
            [(text("one\n"), None), (None, text("one\n")), (text("1\n"), text("1\n2\n"))];
        assert_eq!(sides(&changes), expected);
        assert_eq!(changes.iter().map(FileChange::memory_bytes).sum::<usize>(), 4 + 4 + 2 + 4);
        assert_eq!((contents(&store), contents_of(&store, "b.txt")), (Some(b"one\n".into()), None));
        // A file that stays as it is is not shown.
        let rehearsed = move_and_log(&store, "", Prepared::rehearse).expect("it would be done");
        assert_eq!(sides(&rehearsed.changes), expected[..2]);
    }

    #[test]
    fn files_are_moved_as_it_was_shown_or_not_at_all() {
        let text = |text: &str| Some(text.as_bytes().to_vec());
        let shown = |store: &MemoryStore| {
            move_and_log(store, "2\n", Prepared::rehearse).expect("it would be done").digest
        };
        let check = |meddle: fn(&MemoryStore), log, stale: Option<&str>| {
            let store = store_with_log();
            let shown = shown(&store);
            meddle(&store);
            let run = |call: Prepared, cx: &Context| call.run_approved(cx, &shown);
            let outcome = move_and_log(&store, log, run).map(drop);
            let message = outcome.map_err(|failure| (failure.kind, failure.message));
            match stale {
                None => assert_eq!(message, Ok(())),
                Some(name) => {
                    let expected = format!("File changed since it was read: {name}");
                    assert_eq!(message, Err((FailureKind::Stale, expected)));
                }
            }
            let moved = ["a.txt", "b.txt"].map(|name| contents_of(&store, name));
            let is_moved = moved == [None, text("one\n")];
            assert_eq!(is_moved, stale.is_none());
            assert_eq!(contents_of(&store, "log.txt") == text("1\n2\n"), stale.is_none());
        };
        check(|_| {}, "2\n", None);
        check(|_| {}, "3\n", Some("a.txt"));
        check(|_| {}, "", Some("a.txt"));
        check(|store| store.put(&file(), "two\n"), "2\n", Some("a.txt"));
        check(|store| store.put(&named("b.txt"), ""), "2\n", Some("b.txt"));
        check(|store| store.put(&named("log.txt"), "0\n"), "2\n", Some("log.txt"));
    }

    #[test]
    fn a_move_is_recorded_as_a_removal_and_a_creation() {
        let store = store_with_log();
        let record = |call: Prepared, cx: &Context| call.run_recorded(cx, None);
        let (outcome, changes) = move_and_log(&store, "", record);
        assert!(outcome.is_ok());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(sides(&changes), [(text("one\n"), None), (None, text("one\n"))]);
        let (outcome, changes) = move_and_log(&store, "", record);
        assert_eq!(outcome.map(drop).map_err(|failure| failure.kind), Err(FailureKind::NoMatch));
        assert_eq!(changes, []);
    }

    #[test]
    fn what_was_seen_is_written_over_what_was_seen_and_nothing_else() {
        let store = MemoryStore::new(1 << 20);
        let seen = |text| write(&store, text, Prepared::rehearse).map(|rehearsed| rehearsed.digest);
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
            let (outcome, changes) = write(&store, text, record);
            (outcome.is_ok(), sides(&changes))
        };
        let wrote = |before: Option<&str>, after: &str| {
            (true, vec![(before.map(String::from), Some(after.to_owned()))])
        };
        assert_eq!(put("one", None), wrote(None, "one"));
        assert_eq!(put("one", None), (true, vec![]), "it was kept");
        let seen = write(&store, "two", Prepared::rehearse).expect("it would be written").digest;
        assert_eq!(put("three", Some(&seen)), (false, vec![]), "it was refused");
        assert_eq!(put("two", Some(&seen)), wrote(Some("one"), "two"));
        let store = FaultyStore::new(MemoryStore::new(1 << 20));
        store.fail(Step::Publish, 0, StoreError::DiskFull);
        let (outcome, changes) =
            write(&store, "one", |prepared, cx| prepared.run_recorded(cx, None));
        assert!(outcome.is_err());
        assert_eq!(changes, [], "it failed at the last step");
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
        let seen = edit(&store, two, Prepared::rehearse).expect("it would be written").digest;
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
        assert_eq!(rehearsed.changes, []);
        let run = |call: Prepared, cx: &Context| call.run_approved(cx, &rehearsed.digest);
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
        let store = FaultyStore::new(MemoryStore::new(1 << 20));
        let new = json!({ "path": "$DIR/b/a.txt", "content": "", "create_dirs": true });
        store.fail(Step::List, 0, StoreError::NoFolder);
        assert!(call(&store, "write_text_file", &new, Prepared::rehearse).is_ok());
        // An existing file does not need its folder listed either.
        store.inner().put(&file(), "one");
        assert!(write(&store, "two", Prepared::rehearse).is_ok());
    }

    #[test]
    fn a_folder_that_cannot_be_listed_may_be_written_in() {
        let store = FaultyStore::new(MemoryStore::new(1 << 20));
        store.fail(Step::List, 0, StoreError::Denied { reason: None });
        let rehearsed = write(&store, "one", Prepared::rehearse).expect("it would be written");
        let question = question("write_text_file", rehearsed.changes);
        assert!(question.starts_with("Allow write_text_file to create "), "{question}");
        store.fail(Step::List, 0, StoreError::NoFolder);
        let refused = write(&store, "one", Prepared::rehearse).map(drop).expect_err("no folder");
        assert_eq!(refused.kind, FailureKind::NotFound);
    }
}
