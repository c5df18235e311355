//! What a store may fail with, in the words of each family of tools; and what it may say of a file that it saved.

use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;

use expect_test::expect_file;
use files::{
    Call, Decide, DirPath, Durable, Entry as Listed, FaultyStore, FilePath, Hash, MemoryStore,
    Saved, Step, Store, StoreError, Version,
};
use serde_json::{Value, json};
use tools::{Failure, ToolOutput, ToolSpec};

use crate::limits::{self, absolute};

fn call(
    store: &dyn Store,
    tool: &'static ToolSpec,
    arguments: Value,
) -> Result<ToolOutput, Failure> {
    limits::call(store, 1 << 20, tool, arguments)
}

fn io_error() -> io::Error {
    io::Error::other("the cable is loose")
}

fn errors() -> Vec<StoreError> {
    vec![
        StoreError::Denied { reason: None },
        StoreError::NotRegular,
        StoreError::IsFolder,
        StoreError::NoFolder,
        StoreError::TooLarge { size: 3 << 20, max: 1 << 20 },
        StoreError::SameFile,
        StoreError::LockTimeout { holder: None },
        StoreError::TimedOut,
        StoreError::Cancelled,
        StoreError::Stopping,
        StoreError::NoLocks { file_system: "oddfs".into() },
        StoreError::DiskFull,
        StoreError::ReadOnly,
        StoreError::Stale { why: "somebody was here", current: Some(Hash::of(b"now")) },
        StoreError::Unconfirmed,
        StoreError::Stopped,
        StoreError::Write { doing: "write", source: io_error() },
        StoreError::Io { doing: "open", source: io_error() },
    ]
}

#[test]
fn every_refusal_has_words_in_every_family() {
    let path = absolute("a.txt");
    let uri = format!("file://{path}");
    let edits = json!([{ "old_string": "a", "new_string": "b" }]);
    let code = json!({ "target_file": "a.txt", "edit_instruction": "x", "code_block": "b" });
    let calls = [
        (&tools::FLAT[0], Step::List, json!({})),
        (&tools::FLAT[1], Step::Read, json!({ "name": "a.txt" })),
        (&tools::FLAT[2], Step::Update, json!({ "name": "a.txt", "append": "b" })),
        (&tools::TEXT[0], Step::Read, json!({ "path": path })),
        (&tools::TEXT[1], Step::Update, json!({ "path": path, "content": "b" })),
        (&tools::TEXT[2], Step::Update, json!({ "path": path, "edits": edits })),
        (&tools::CODE[0], Step::Update, code),
        (&tools::RESOURCES[0], Step::List, json!({})),
        (&tools::RESOURCES[1], Step::Read, json!({ "uri": uri })),
    ];
    let at = FilePath::flat("a.txt").unwrap();
    let mut told = String::new();
    for (tool, step, arguments) in calls {
        let _ = writeln!(told, "{}", tool.name);
        for error in errors() {
            let refusal = format!("{error:?}");
            let store = FaultyStore::new(MemoryStore::new(1 << 20));
            store.inner().put(&at, "a\n");
            store.fail(step, 0, error);
            let Failure { kind, message, hint, .. } =
                call(&store, tool, arguments.clone()).unwrap_err();
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            let name = refusal.split([' ', '{']).next().unwrap();
            let _ = writeln!(told, "  {name}: {kind:?}: {message}{hint}");
        }
    }
    let told = told.replace(env!("CARGO_TARGET_TMPDIR"), "$DIR");
    expect_file!["refusals.txt"].assert_eq(&told);
}

/// Keeps files in memory, and says odd things of what it saved.
struct Odd(MemoryStore);

impl Store for Odd {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.0.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut saved = self.0.update(at, call, change)?;
        saved[0].durable = Durable::Unknown;
        saved[0].lost = vec!["owner", "access list"];
        saved[0].links = 2;
        Ok(saved)
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.0.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.0.remove_folders(made);
    }
}

#[test]
fn whatever_could_not_be_kept_is_told() {
    let store = Odd(MemoryStore::new(1 << 20));
    let new = json!({ "path": absolute("a.txt"), "content": "b" });
    let data = call(&store, &tools::TEXT[1], new).unwrap().data.unwrap();
    let notes = [
        "2 other hard links of this file keep the old text",
        "the server's user has no permission to keep: owner, access list",
        "applied, durability unknown: the folder could not be synced",
    ];
    assert_eq!(data["notes"], json!(notes));
}
