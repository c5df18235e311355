//! The text tools on an editor's buffers, while a person types: the same tools, another store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use files::{Call, Editor, EditorStore, FilePath, Hash, LineCounts, Root, StoreError};
use serde_json::{Value, json};
use tools::{Context, Failure, FailureKind, Limits, ToolOutput};

/// What a person does to a buffer after each message.
type Typing = fn(&mut String);

struct Buffers {
    texts: Mutex<BTreeMap<String, String>>,
    typing: Typing,
    refuses: Option<fn() -> StoreError>,
}

impl Buffers {
    fn type_into(&self, at: &FilePath) {
        if let Some(text) = self.texts.lock().unwrap().get_mut(&at.to_string()) {
            (self.typing)(text);
        }
    }
}

impl Editor for Buffers {
    fn read(&self, at: &FilePath, _: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        let text = self.texts.lock().unwrap().get(&at.to_string()).cloned();
        self.type_into(at);
        Ok(text.map(String::into_bytes))
    }

    fn write(&self, at: &FilePath, bytes: &[u8], _: &Call) -> Result<(), StoreError> {
        if let Some(refusal) = self.refuses {
            return Err(refusal());
        }
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.texts.lock().unwrap().insert(at.to_string(), text);
        self.type_into(at);
        Ok(())
    }
}

struct Session {
    root: Root,
    store: EditorStore<Buffers>,
}

impl Session {
    fn new(text: &str, typing: Typing) -> Self {
        let texts = Mutex::new(BTreeMap::from([("a.txt".to_owned(), text.to_owned())]));
        // No file is on the disk: all there is are buffers.
        let root = Root::open(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self { root, store: EditorStore::new(Buffers { texts, typing, refuses: None }, 1 << 20) }
    }

    fn refusing(mut self, refusal: fn() -> StoreError) -> Self {
        let Buffers { texts, typing, .. } = self.store.editor();
        let texts = Mutex::new(texts.lock().unwrap().clone());
        let buffers = Buffers { texts, typing: *typing, refuses: Some(refusal) };
        self.store = EditorStore::new(buffers, 1 << 20);
        self
    }

    fn call(&self, tool: &str, mut arguments: Value) -> Result<ToolOutput, Failure> {
        let name = arguments["name"].take();
        arguments.as_object_mut().unwrap().remove("name");
        let name = name.as_str().unwrap_or("a.txt").to_owned();
        arguments["path"] = json!(self.root.path().join(name));
        let entry = tools::TEXT.iter().find(|entry| entry.name == tool).unwrap();
        let limits = Limits::new(1 << 20, Duration::from_mins(1));
        let call = Call::until(Instant::now() + limits.timeout);
        entry.prepare(arguments)?.run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &LineCounts::default(),
            limits: &limits,
            call: &call,
            expected: None,
        })
    }

    fn edit(&self, old: &str, new: &str) -> Result<ToolOutput, Failure> {
        let edits = json!([{ "old_string": old, "new_string": new }]);
        self.call("multi_edit_text_file", json!({ "edits": edits }))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.store.editor().texts.lock().unwrap().get(name).cloned()
    }
}

fn nobody_types(_: &mut String) {}

/// Pauses after two lines.
fn types_at_the_end(text: &mut String) {
    if text.matches("typed").count() < 2 {
        text.push_str("typed\n");
    }
}

#[test]
fn a_buffer_is_read_edited_and_written() {
    let session = Session::new("one\ntwo\n", nobody_types);
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
fn an_edit_lands_while_a_person_types_elsewhere() {
    let session = Session::new("one\ntwo\n", types_at_the_end);
    let reply = session.edit("one", "1").unwrap();
    let text = session.text("a.txt").unwrap();
    assert_eq!(text, "1\ntwo\ntyped\ntyped\n");
    // That somebody was at it is told in both parts of the answer.
    let note = "somebody else changed the file at the same moment: read it again";
    assert_eq!(reply.data.unwrap()["notes"], json!([note]));
    assert!(reply.blocks[1].to_string().contains(note));
}

/// What is written is what was looked at, though it has to be looked at again.
#[test]
fn syntax_is_verified_while_a_person_types() {
    let typing = |text: &mut String| {
        if text.lines().count() < 10 {
            text.push_str("// typed\n");
        }
    };
    let verified = |content: &str| {
        let session = Session::new("", typing);
        let write = json!({ "name": "a.rs", "content": "fn one() {}\n" });
        session.call("write_text_file", write).unwrap();
        assert!(session.text("a.rs").unwrap().lines().count() < 5, "somebody is still typing");
        let edits = json!([{ "old_string": "{}", "new_string": content }]);
        let edit = json!({ "name": "a.rs", "edits": edits, "verify": "syntax" });
        let outcome = session.call("multi_edit_text_file", edit).map(drop);
        (outcome.map_err(|failure| failure.kind), session.text("a.rs").unwrap())
    };
    let (outcome, text) = verified("{ }");
    assert_eq!((outcome, text), (Ok(()), format!("fn one() {{ }}\n{}", "// typed\n".repeat(9))));
    let (outcome, text) = verified("{ (");
    assert_eq!(outcome, Err(FailureKind::Invalid));
    assert!(text.starts_with("fn one() {}\n// typed\n"), "{text}");
}

#[test]
fn an_edit_that_fits_no_more_is_out_of_date() {
    // The first look still has it, the second does not.
    let session = Session::new("one\ntwo\n", |text| *text = text.replace("one", "two"));
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
    let path = session.root.path().join("a.txt");
    assert_eq!(failure.message, format!("File changed since it was read: {}", path.display()));
    assert!(failure.hint.unwrap().contains("Edit 0: String not found: one"));
    assert_eq!(session.text("a.txt").unwrap(), "two\ntwo\n");
    // Never there is simply not there.
    assert_eq!(session.edit("zero", "0").unwrap_err().kind, FailureKind::NoMatch);
}

#[test]
fn an_edit_of_what_never_holds_still_is_out_of_date() {
    let session = Session::new("one\n", |text| text.push('.'));
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
    assert!(failure.message.starts_with("File changed since it was read: "));
    assert!(failure.hint.unwrap().contains("try again in a moment"));
    // The hash is that of the text as it was last read.
    let text = session.text("a.txt").unwrap();
    assert_eq!(failure.current, Some(Hash::of(&text.as_bytes()[..text.len() - 1])));
    assert!(text.starts_with("one\n."), "nothing was written, and all that was typed is there");
    let failure = session.call("write_text_file", json!({ "content": "new" })).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
}

#[test]
fn the_hash_is_that_of_what_the_editor_keeps() {
    let session = Session::new("one\n", |text| *text = text.replace("\r\n", "\n"));
    let reply = session.call("write_text_file", json!({ "content": "1\r\n2\r\n" })).unwrap();
    assert_eq!(reply.hash, Some(Hash::of(b"1\n2\n")));
    let note = "the editor keeps this text with line breaks of its own";
    assert_eq!(reply.data.unwrap()["notes"], json!([note]));
    // It does so once it is given the new text.
    let session = Session::new("one\r\n", |text| *text = text.replace("2\r\n", "2\n"));
    assert_eq!(session.edit("one", "2").unwrap().hash, Some(Hash::of(b"2\n")));
}

#[test]
fn an_editor_that_refuses_or_does_not_answer_is_told_apart() {
    let session = Session::new("one", nobody_types);
    let session = session.refusing(|| StoreError::Denied { reason: Some("not this one".into()) });
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(
        (failure.kind, failure.hint.unwrap().as_str()),
        (FailureKind::Denied, "not this one")
    );
    let session = session.refusing(|| StoreError::TimedOut);
    let failure = session.edit("one", "1").unwrap_err();
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(failure.message, "The outcome is unknown, read the file again");
    assert_eq!(session.text("a.txt").unwrap(), "one");
}
