//! Helpers of all tests: a folder, the program, a fake editor and a fake Codex.

pub mod codex;
pub mod editor;
pub mod http;

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use codex::{Codex, CodexListener};
use editor::Editor;

/// Time limit of every wait, far longer than anything takes.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A session of the first Codex that the program started.
pub struct TestSession {
    pub editor: Editor,
    pub codex: Codex,
    pub id: String,
    pub listener: CodexListener,
    folder: TempDir,
}

impl TestSession {
    /// Opens a session of an editor without file messages: files are on disk.
    pub fn open() -> Self {
        Self::open_with(&json!({}))
    }

    /// Opens a session like [`TestSession::open`], with a configuration of Codex.
    pub fn open_with(config: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = CodexListener::bind();
        let editor = Editor::start(&listener.address());
        let initialize = json!({
            "protocolVersion": 1, "clientCapabilities": {},
            "clientInfo": { "name": "scripted-editor", "version": "1" },
        });
        let initialized = editor.send("initialize", initialize);
        let codex = listener.accept(config);
        editor.result(initialized);
        let new = editor.ask("session/new", json!({ "cwd": folder.path(), "mcpServers": [] }));
        let id = new["sessionId"].as_str().unwrap().to_owned();
        Self { editor, codex, id, listener, folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sends a prompt and waits until Codex has begun its turn. Returns the number of the request.
    pub fn prompt(&self) -> u64 {
        let prompt = json!([{ "type": "text", "text": "Follow the script." }]);
        let params = json!({ "sessionId": self.id, "prompt": prompt });
        let request = self.editor.send("session/prompt", params);
        self.codex.answered("turn/start");
        request
    }

    /// Ends the turn of Codex.
    pub fn end_turn(&self) {
        let turn = json!({ "id": "turn", "status": "completed", "error": null });
        self.codex.notify("turn/completed", json!({ "threadId": self.id, "turn": turn }));
    }
}

/// A value that threads change and wait for.
#[derive(Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits for a condition, for as long as it takes.
    pub fn wait_until(&self, may_pass: impl Fn(&T) -> bool) {
        let waited = self.changed.wait_while(self.lock(), |value| !may_pass(value));
        drop(waited);
    }

    /// Waits until `find` returns something.
    pub fn wait<R>(&self, what: &str, mut find: impl FnMut(&mut T) -> Option<R>) -> R {
        let until = Instant::now() + TIMEOUT;
        let mut value = self.lock();
        loop {
            if let Some(found) = find(&mut value) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not come");
            let waited = self.changed.wait_timeout(value, left);
            value = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
