//! Writers of the watched files: the server, and a plain rename.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Outcome;
use crate::codex::ensure;
use crate::program::{PATIENCE, Program};
use crate::scene::Scene;

pub const PROTOCOL: &str = "2025-11-25";

pub trait Writer {
    /// Replaces the only occurrence of a text in a file.
    fn edit(&mut self, path: &Path, old: &str, new: &str) -> Outcome<()>;

    fn create(&mut self, path: &Path, text: &str) -> Outcome<()>;
}

/// Writes a new file beside the old one and renames it over that, as most programs do that save atomically.
#[derive(Default)]
pub struct Renaming {
    written: usize,
}

impl Writer for Renaming {
    fn edit(&mut self, path: &Path, old: &str, new: &str) -> Outcome<()> {
        self.create(path, &fs::read_to_string(path)?.replace(old, new))
    }

    fn create(&mut self, path: &Path, text: &str) -> Outcome<()> {
        self.written += 1;
        let temporary = path.with_file_name(format!(".renamed-{}.tmp", self.written));
        let mut file = File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        Ok(fs::rename(&temporary, path)?)
    }
}

/// The server on stdio, asked without an SDK in between.
pub struct Server {
    program: Program,
    last_id: u64,
}

impl Server {
    pub fn start(scene: &Scene) -> Outcome<Self> {
        let mut command = std::process::Command::new(&scene.binary);
        command.args(scene.stdio_arguments(&["--tools=text"]));
        let program = Program::start(&mut command, Instant::now() + PATIENCE)?;
        let mut server = Self { program, last_id: 0 };
        let client = json!({ "name": "watchers", "version": "1" });
        let params =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        server.request("initialize", &params)?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        server.program.say(&initialized.to_string())?;
        Ok(server)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<()> {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", &params)?;
        let is_done = answer["structuredContent"]["success"] == true;
        ensure(is_done, || format!("{tool} answers {answer}"))
    }

    fn request(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        self.last_id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.program.say(&request.to_string())?;
        let line = self.program.hear()?;
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        let is_answer = answer["id"] == self.last_id && answer["result"].is_object();
        if !is_answer {
            return Err(self.program.wrong(&format!("{method} is answered by {line}")));
        }
        Ok(answer["result"].clone())
    }
}

impl Writer for Server {
    fn edit(&mut self, path: &Path, old: &str, new: &str) -> Outcome<()> {
        let edit = json!({ "old_string": old, "new_string": new });
        self.call("multi_edit_text_file", &json!({ "path": path, "edits": [edit] }))
    }

    fn create(&mut self, path: &Path, text: &str) -> Outcome<()> {
        self.call("write_text_file", &json!({ "path": path, "content": text }))
    }
}
