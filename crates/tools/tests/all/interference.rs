//! The text tools on a store in memory, while another program changes the file, and on one that fails or reports what
//! happened.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use files::{
    Call, Decide, DirPath, Entry, FaultyStore, FilePath, Hash, Interference, LineCounts,
    MemoryStore, Root, Saved, Step, Store, StoreError, Version,
};
use serde_json::{Value, json};
use tools::{Context, Failure, FailureKind, Limits, ToolOutput};

const MAX_SIZE: u64 = 1 << 20;

/// A folder of which all files are in memory.
struct Session<S> {
    root: Root,
    store: S,
}

/// A store in memory whose updates are reported with other outcomes than they have.
struct Reporting {
    files: MemoryStore,
    report: fn(&mut Saved),
}

impl Store for Reporting {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.files.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.files.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.files.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut saved = self.files.update(at, call, change)?;
        saved.iter_mut().for_each(self.report);
        Ok(saved)
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.files.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.files.remove_folders(made);
    }
}

impl<S: Store> Session<S> {
    fn on(store: S) -> Self {
        let root = Root::open(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self { root, store }
    }

    fn call(&self, tool: &str, mut arguments: Value) -> Result<ToolOutput, Failure> {
        let name = arguments["name"].take();
        arguments.as_object_mut().unwrap().remove("name");
        let name = name.as_str().unwrap_or("a.txt").to_owned();
        arguments["path"] = json!(self.root.path().join(name));
        let entry = tools::TEXT.iter().find(|entry| entry.name == tool).unwrap();
        let limits = Limits::new(MAX_SIZE, Duration::from_mins(1));
        entry.prepare(arguments)?.run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &LineCounts::default(),
            limits: &limits,
            call: &call(),
            expected: None,
        })
    }

    fn edit(&self, old: &str, new: &str) -> Result<ToolOutput, Failure> {
        let edits = json!([{ "old_string": old, "new_string": new }]);
        self.call("multi_edit_text_file", json!({ "edits": edits }))
    }

    fn text(&self, name: &str) -> Option<String> {
        let version = self.store.read(&at(name), &call()).unwrap();
        version.map(|version| String::from_utf8(version.bytes.to_vec()).unwrap())
    }
}

impl Session<FaultyStore<MemoryStore>> {
    fn new(text: &str) -> Self {
        let files = MemoryStore::new(MAX_SIZE);
        files.put(&at("a.txt"), text);
        Self::on(FaultyStore::new(files))
    }

    /// Another program writes `text` just before the `after + 1`-th try to publish.
    fn interfere(&self, after: usize, name: &'static str, text: &str) {
        let text = text.to_owned();
        self.store.interfere(Step::Publish, after, move |files| files.put(&at(name), text));
    }
}

impl Session<Reporting> {
    fn reporting(text: &str, report: fn(&mut Saved)) -> Self {
        let files = MemoryStore::new(MAX_SIZE);
        files.put(&at("a.txt"), text);
        Self::on(Reporting { files, report })
    }
}

fn at(name: &str) -> FilePath {
    FilePath::flat(name).unwrap()
}

fn call() -> Call {
    Call::until(Instant::now() + Duration::from_mins(1))
}

#[test]
fn a_file_is_read_edited_and_written() {
    let session = Session::new("one\ntwo\n");
    let reply = session.call("read_text_file", json!({ "line": 2 })).unwrap();
    assert_eq!(reply.blocks[0].to_string(), "two\n");
    assert_eq!(reply.meta.unwrap()["total_lines"], 2);
    let data = session.edit("two", "three").unwrap().data.unwrap();
    assert_eq!((&data["applied_count"], data.get("notes")), (&json!(1), None));
    assert_eq!(data["hash"], Hash::of(b"one\nthree\n").to_string());
    assert_eq!(session.text("a.txt").unwrap(), "one\nthree\n");
    let new = json!({ "name": "new.txt", "content": "new" });
    assert_eq!(session.call("write_text_file", new).unwrap().data.unwrap()["created"], true);
    assert_eq!(session.text("new.txt").unwrap(), "new");
    let missing = session.call("read_text_file", json!({ "name": "missing.txt" }));
    assert_eq!(missing.unwrap_err().kind, FailureKind::NotFound);
}

#[test]
fn an_edit_is_made_from_a_text_that_changed_elsewhere_meanwhile() {
    let session = Session::new("one\ntwo\n");
    session.interfere(0, "a.txt", "one\ntwo\ntyped\n");
    session.interfere(1, "a.txt", "one\ntwo\ntyped\ntyped\n");
    let reply = session.edit("one", "1").unwrap();
    assert_eq!(session.text("a.txt").unwrap(), "1\ntwo\ntyped\ntyped\n");
    assert_eq!(reply.hash, Some(Hash::of(b"1\ntwo\ntyped\ntyped\n")));
}

#[test]
fn interference_is_reported_in_both_parts_of_the_answer() {
    let session = Session::reporting("one\n", |saved| saved.interference = Interference::Contested);
    let reply = session.edit("one", "1").unwrap();
    let data = reply.data.unwrap();
    let [note] = &data["notes"].as_array().unwrap()[..] else { panic!("one note") };
    let note = note.as_str().unwrap();
    assert!(note.contains("changed the file at the same moment: read it again"), "{note}");
    assert!(reply.blocks[1].to_string().contains(note));
}

#[test]
fn syntax_is_verified_of_the_text_that_is_written() {
    let verified = |content: &str| {
        let session = Session::new("");
        session.store.inner().put(&at("a.rs"), "fn one() {}\n");
        for count in 0..5 {
            let typed = "// typed\n".repeat(count + 1);
            session.interfere(count, "a.rs", &format!("fn one() {{}}\n{typed}"));
        }
        let edits = json!([{ "old_string": "{}", "new_string": content }]);
        let edit = json!({ "name": "a.rs", "edits": edits, "verify": "syntax" });
        let outcome = session.call("multi_edit_text_file", edit).map(drop);
        (outcome.map_err(|failure| failure.kind), session.text("a.rs").unwrap())
    };
    let (outcome, text) = verified("{ }");
    assert_eq!((outcome, text), (Ok(()), format!("fn one() {{ }}\n{}", "// typed\n".repeat(5))));
    let (outcome, text) = verified("{ (");
    assert_eq!(outcome, Err(FailureKind::Invalid));
    assert!(text.starts_with("fn one() {}\n"), "{text}");
}

#[test]
fn an_edit_that_fits_no_more_is_out_of_date() {
    let session = Session::new("one\ntwo\n");
    session.interfere(0, "a.txt", "two\ntwo\n");
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
    let path = session.root.path().join("a.txt");
    assert_eq!(failure.message, format!("File changed since it was read: {}", path.display()));
    assert!(failure.hint.unwrap().contains("Edit 0: String not found: one"));
    assert_eq!(session.text("a.txt").unwrap(), "two\ntwo\n");
    // A string that was never there is not found.
    assert_eq!(session.edit("zero", "0").unwrap_err().kind, FailureKind::NoMatch);
}

#[test]
fn a_text_that_never_holds_still_is_out_of_date() {
    let session = Session::new("one\n");
    let current = Some(Hash::of(b"one\n."));
    let stale = || StoreError::Stale { why: "try again in a moment", current };
    session.store.fail(Step::Publish, 0, stale());
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
    assert!(failure.message.starts_with("File changed since it was read: "));
    assert!(failure.hint.unwrap().contains("try again in a moment"));
    assert_eq!(failure.current, current);
    assert_eq!(session.text("a.txt").unwrap(), "one\n", "nothing was written");
    session.store.fail(Step::Publish, 0, stale());
    let failure = session.call("write_text_file", json!({ "content": "new" })).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
}

#[test]
fn the_hash_is_that_of_the_text_that_the_store_keeps() {
    let session = Session::reporting("one\n", |saved| saved.restyled = Some(Hash::of(b"1\n2\n")));
    let reply = session.call("write_text_file", json!({ "content": "1\r\n2\r\n" })).unwrap();
    assert_eq!(reply.hash, Some(Hash::of(b"1\n2\n")));
    let note = "the editor keeps this text with line breaks of its own";
    assert_eq!(reply.data.unwrap()["notes"], json!([note]));
    let session = Session::reporting("one\r\n", |saved| saved.restyled = Some(Hash::of(b"2\n")));
    assert_eq!(session.edit("one", "2").unwrap().hash, Some(Hash::of(b"2\n")));
}

#[test]
fn a_store_that_refuses_and_one_that_does_not_answer_are_told_apart() {
    let session = Session::new("one");
    let denied = StoreError::Denied { reason: Some("not this one".into()) };
    session.store.fail(Step::Publish, 0, denied);
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(
        (failure.kind, failure.hint.unwrap().as_str()),
        (FailureKind::Denied, "not this one")
    );
    session.store.fail(Step::Publish, 0, StoreError::Unconfirmed);
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(failure.message, "The outcome is unknown, read the file again");
    assert_eq!(session.text("a.txt").unwrap(), "one");
}
