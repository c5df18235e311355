//! A short talk with a server on stdio: what it is, its tools, an edit and a read.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::VERSION;
use crate::Outcome;

/// For an answer: an emulator may have to set itself up first.
const PATIENCE: Duration = Duration::from_mins(2);

/// The folder gets a file, and the server, which serves this toolset, must change one line of it and nothing else.
pub fn edit_and_read(mut server: Command, folder: &Path, toolset: &str) -> Outcome {
    let path = folder.join("notes.txt");
    fs::write(&path, "one\r\ntwo\r\nthree\r\n").map_err(|e| format!("{}: {e}", path.display()))?;
    let shown = format!("{server:?}").replace('"', "");
    println!("\n$ {shown}");
    let outcome = Talk::start(&mut server).and_then(|talk| hold(talk, &path, toolset));
    outcome.map_err(|reason| format!("{shown}: {reason}"))?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    expect(&text, "one\r\ntwo and a half\r\nthree\r\n")
}

fn hold(mut talk: Talk, path: &Path, toolset: &str) -> Outcome {
    let client = json!({ "name": "dist", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let server = talk.ask("initialize", &hello)?;
    expect(&server["serverInfo"]["version"], VERSION)?;
    talk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let tools = talk.ask("tools/list", &json!({}))?;
    let (edit, read) = if toolset == "flat" { flat() } else { text(path) };
    for (name, arguments) in [edit, read] {
        let names = tools["tools"].as_array().map_or(&[][..], Vec::as_slice);
        if !names.iter().any(|tool| tool["name"] == name) {
            return Err(format!("there is no {name} among {tools}"));
        }
        let reply = talk.ask("tools/call", &json!({ "name": name, "arguments": arguments }))?;
        if reply["isError"] == true || !reply.to_string().contains("two and a half") {
            return Err(format!("{name} answered {reply}"));
        }
    }
    talk.end()
}

type Call = (&'static str, Value);

fn flat() -> (Call, Call) {
    let edits = json!([{ "line": 1, "operation": "replace", "content": "two and a half" }]);
    (
        ("edit_file", json!({ "name": "notes.txt", "edits": edits })),
        ("read_file", json!({ "name": "notes.txt" })),
    )
}

fn text(path: &Path) -> (Call, Call) {
    let edits = json!([{ "old_string": "two", "new_string": "two and a half" }]);
    (
        ("multi_edit_text_file", json!({ "path": path, "edits": edits })),
        ("read_text_file", json!({ "path": path })),
    )
}

fn expect(found: &(impl PartialEq<str> + std::fmt::Debug), expected: &str) -> Outcome {
    if *found == *expected { Ok(()) } else { Err(format!("{found:?} is not {expected:?}")) }
}

/// With a server that does not outlive it.
struct Talk {
    server: Child,
    /// `None` once everything is said.
    to: Option<ChildStdin>,
    from: Receiver<String>,
    asked: u64,
}

impl Talk {
    fn start(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().map_err(|e| e.to_string())?;
        let (to, output) = (server.stdin.take(), server.stdout.take());
        let (sender, from) = channel();
        // Ends with the server, or when nobody listens any more.
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { server, to, from, asked: 0 })
    }

    fn say(&mut self, message: &Value) -> Outcome {
        let to = self.to.as_mut().ok_or("its input is closed")?;
        writeln!(to, "{message}").and_then(|()| to.flush()).map_err(|e| e.to_string())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = self.from.recv_timeout(PATIENCE);
            let line = line.map_err(|_| format!("{method}: no answer"))?;
            let mut answer: Value =
                serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?;
            if answer["id"] == id {
                let result = answer["result"].take();
                return if result.is_null() { Err(line) } else { Ok(result) };
            }
        }
    }

    /// Its input ends, and so must the server.
    fn end(mut self) -> Outcome {
        self.to = None;
        // Nothing more is said, so what comes is the end of its output.
        if let Ok(line) = self.from.recv_timeout(PATIENCE) {
            return Err(format!("it said {line} at the end"));
        }
        for _ in 0..PATIENCE.as_secs() {
            match self.server.try_wait().map_err(|e| e.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("it ended with {status}")),
                None => thread::sleep(Duration::from_secs(1)),
            }
        }
        Err("it does not end with its input".into())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
