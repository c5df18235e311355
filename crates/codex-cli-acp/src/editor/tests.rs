//! Tests of the editor's store, with a fake editor and a real folder, mostly through the tools.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test sets the scene")]

mod fake_editor;
mod fallback;
mod stale;
mod store_suite;
mod typing;
mod update;
mod window;

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use files::{
    Call, Change, DiskOptions, DiskStore, Durability, FilePath, LineCounts, Root, Saved, Store,
    StoreError,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tools::{Context, Failure, Limits, Prepared, ToolOutput};

use super::{CommandPeriods, EditorFiles, EditorStore, PathsInUse};
use fake_editor::{FakeEditor, FakeEditorState};

const MAX: u64 = 1 << 20;

/// A folder, an editor, and the store between them.
struct Session<E = FakeEditor> {
    dir: TempDir,
    root: Arc<Root>,
    store: EditorStore<E>,
}

impl Session {
    fn new() -> Self {
        Self::with(FakeEditor::default())
    }

    fn editor(&self) -> MutexGuard<'_, FakeEditorState> {
        self.store.editor.lock()
    }

    /// Opens a text in a buffer.
    fn open(&self, name: &str, text: &str) {
        let path = self.path(name);
        self.editor().buffers.insert(path, text.into());
    }

    fn buffer(&self, name: &str) -> Option<String> {
        let path = self.path(name);
        self.editor().buffers.get(&path).cloned()
    }

    /// Messages to the editor: `read a.txt`, `write a.txt`, …
    fn messages(&self) -> Vec<String> {
        let path = format!("{}/", self.root.path().display());
        self.editor().messages.iter().map(|message| message.replace(&path, "")).collect()
    }
}

impl<E: EditorFiles> Session<E> {
    fn with(editor: E) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(dir.path()).unwrap());
        let store = store(&root, editor, PathsInUse::default());
        Self { dir, root, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn at(&self, name: &str) -> FilePath {
        self.root.absolute(self.path(name).to_str().unwrap()).unwrap()
    }

    fn save(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join(name), text).unwrap();
    }

    fn on_disk(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join(name)).ok()
    }

    fn prepare(&self, tool: &str, name: &str, mut arguments: Value) -> Prepared {
        arguments["path"] = json!(self.path(name));
        let entry = tools::TEXT.iter().find(|entry| entry.name == tool).unwrap();
        entry.prepare(arguments).unwrap()
    }

    fn run<T>(&self, call: &Call, run: impl FnOnce(&Context) -> T) -> T {
        run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &LineCounts::default(),
            limits: &Limits::new(MAX, Duration::from_mins(1)),
            call,
            expected: None,
        })
    }

    fn call(&self, tool: &str, name: &str, arguments: Value) -> Result<ToolOutput, Failure> {
        let prepared = self.prepare(tool, name, arguments);
        self.run(&call(), |cx| prepared.run(cx))
    }

    fn read(&self, name: &str) -> Result<ToolOutput, Failure> {
        self.call("read_text_file", name, json!({}))
    }

    fn text(&self, name: &str) -> String {
        self.read(name).unwrap().blocks[0].to_string()
    }

    fn write(&self, name: &str, content: &str) -> Result<ToolOutput, Failure> {
        self.call("write_text_file", name, json!({ "content": content }))
    }

    fn edit(&self, name: &str, old: &str, new: &str) -> Result<ToolOutput, Failure> {
        self.call("multi_edit_text_file", name, edits(old, new))
    }
}

/// Makes a store whose editor is given no time to reload.
fn store<E: EditorFiles>(root: &Arc<Root>, editor: E, paths_in_use: PathsInUse) -> EditorStore<E> {
    let options = DiskOptions { max_size: MAX, durability: Durability::None };
    let disk = DiskStore::open(Arc::clone(root), options);
    let periods = Arc::new(CommandPeriods::default());
    let store = EditorStore::new(Arc::clone(root), editor, disk, MAX, periods, paths_in_use);
    EditorStore { reload_pause: Duration::ZERO, ..store }
}

/// Appends a text, and creates the file.
fn append(store: &dyn Store, at: &FilePath, text: &str, call: &Call) -> Result<Saved, StoreError> {
    let saved = store.update(std::slice::from_ref(at), call, &mut |versions| {
        let old = versions[0].as_ref().map(|version| version.bytes.to_vec()).unwrap_or_default();
        Ok(vec![Change::write([&old, text.as_bytes()].concat())])
    })?;
    Ok(saved.into_iter().next().unwrap())
}

fn edits(old: &str, new: &str) -> Value {
    json!({ "edits": [{ "old_string": old, "new_string": new }] })
}

fn call() -> Call {
    Call::until(Instant::now() + Duration::from_mins(1))
}

fn notes(reply: &ToolOutput) -> Vec<String> {
    let data = reply.data.as_ref().or(reply.meta.as_ref());
    let notes = data.and_then(|data| data.get("notes")).and_then(Value::as_array);
    let notes: Vec<_> = notes.into_iter().flatten().filter_map(Value::as_str).collect();
    let words = reply.blocks.last().unwrap().to_string();
    assert!(notes.iter().all(|note| words.contains(note)), "both say the same: {words}");
    notes.into_iter().map(String::from).collect()
}

#[test]
fn what_is_not_saved_is_read_and_edited_and_the_disk_stays_as_it_is() {
    let session = Session::new();
    session.save("a.txt", "one\n");
    session.open("a.txt", "one\ntwo\n");
    let reply = session.read("a.txt").unwrap();
    assert_eq!(reply.blocks[0].to_string(), "one\ntwo\n");
    assert_eq!(reply.meta.as_ref().unwrap()["total_lines"], 2);
    assert_eq!(notes(&reply), [""; 0]);
    let data = session.edit("a.txt", "two", "three").unwrap().data.unwrap();
    assert_eq!((&data["applied_count"], data.get("notes")), (&json!(1), None));
    assert_eq!(session.buffer("a.txt").unwrap(), "one\nthree\n");
    assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
    let edit = ["read a.txt", "read a.txt", "write a.txt", "read a.txt"];
    assert_eq!(session.messages()[1..], edit);
}

#[test]
fn the_editor_keeps_its_line_breaks_and_the_hash_is_that_of_what_it_keeps() {
    let session = Session::new();
    session.save("a.txt", "\u{feff}one\r\n");
    session.open("a.txt", "one\n");
    session.editor().keeps_line_feeds_only = true;
    let _command = session.store.command_periods.start();
    assert_eq!(notes(&session.read("a.txt").unwrap()), [""; 0], "not stale");
    let reply = session.write("a.txt", "two\r\nthree\r\n").unwrap();
    assert_eq!(notes(&reply), ["the editor keeps this text with line breaks of its own"]);
    let hash = reply.hash.unwrap();
    assert_eq!(hash, files::Hash::of(b"two\nthree\n"));
    let mut next = edits("two", "2");
    next["expected_hash"] = json!(hash.to_string());
    session.call("multi_edit_text_file", "a.txt", next).unwrap();
    assert_eq!(session.buffer("a.txt").unwrap(), "2\nthree\n");
    // The text as it was before the editor normalized it.
    session.open("a.txt", "2\r\nthree\r\n");
    let reply = session.edit("a.txt", "three", "3").unwrap();
    assert_eq!(session.buffer("a.txt").unwrap(), "2\n3\n");
    assert_eq!(reply.hash.unwrap(), files::Hash::of(b"2\n3\n"));
}

#[test]
fn two_paths_of_one_file_are_one_buffer() {
    let session = Session::new();
    fs::create_dir(session.path("folder")).unwrap();
    session.save("folder/real.txt", "one");
    session.open("folder/real.txt", "one, not saved");
    symlink("folder", session.path("way")).unwrap();
    symlink("way/real.txt", session.path("link.txt")).unwrap();
    for name in ["folder/real.txt", "way/real.txt", "link.txt", "folder/../way/real.txt"] {
        assert_eq!(session.text(name), "one, not saved");
        assert_eq!(session.messages().pop().unwrap(), "read folder/real.txt", "{name}");
    }
}

#[test]
fn updates_of_one_file_wait_for_each_other_by_whatever_path_they_come() {
    let session = Session::new();
    session.save("real.txt", "one");
    session.open("real.txt", "one");
    symlink("real.txt", session.path("link.txt")).unwrap();
    let paths = ["real.txt", "link.txt"].map(|name| session.at(name));
    let write = |path: usize, call: &Call, meanwhile: &mut dyn FnMut()| {
        session.store.update(&paths[path..=path], call, &mut |_| {
            meanwhile();
            Ok(vec![Change::write(b"two")])
        })
    };
    let late = Call::until(Instant::now() + Duration::from_millis(20));
    let mut other = None;
    let saved = write(0, &call(), &mut || other = Some(write(1, &late, &mut || ())));
    assert!(matches!(other, Some(Err(StoreError::LockTimeout { .. }))), "{other:?}");
    assert!(!saved.unwrap()[0].is_contested());
    write(1, &call(), &mut || ()).unwrap();
}

#[test]
fn several_files_at_once_are_refused() {
    let session = Session::new();
    let both = [session.at("a"), session.at("b")];
    assert!(session.store.update(&both, &call(), &mut |_| unreachable!()).is_err());
    assert_eq!(session.messages(), [""; 0]);
}
