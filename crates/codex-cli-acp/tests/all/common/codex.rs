//! A fake Codex: requests are answered at once, or by the test.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::Watched;

/// Returns the path of the fake Codex that the program starts; `cargo test` builds it.
pub fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples");
    let program = built.join(format!("fake_codex{}", env::consts::EXE_SUFFIX));
    assert!(program.exists(), "`cargo build --example fake_codex` makes {}", program.display());
    program
}

/// The socket to which each started Codex connects.
pub struct CodexListener(TcpListener);

impl CodexListener {
    pub fn bind() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// Accepts the next Codex that is started, with this configuration.
    pub fn accept(&self, config: &Value) -> Codex {
        let (lines, _) = self.0.accept().unwrap();
        let (log, _) = self.0.accept().unwrap();
        let shared = Arc::new(Watched::<Requests>::default());
        let (told, config) = (Arc::clone(&shared), config.clone());
        let stdout = Stdout(Arc::new(Mutex::new(lines.try_clone().unwrap())));
        let answers = stdout.clone();
        let incoming = BufReader::new(lines.try_clone().unwrap());
        thread::spawn(move || {
            for line in incoming.lines().map_while(Result::ok) {
                told.wait_until(|told| !told.is_paused);
                let message: Value = serde_json::from_str(&line).unwrap();
                let method = message["method"].as_str().unwrap_or_default();
                let is_request = !message["method"].is_null() && !message["id"].is_null();
                let held = told.change(|told| {
                    told.messages.push(message.clone());
                    told.held.contains(method)
                });
                if is_request && !held {
                    let result = default_answer(method, &message["params"], &config);
                    answers.send(&json!({ "id": message["id"], "result": result }));
                    told.change(|told| told.answered.insert(method.to_owned()));
                }
            }
            told.change(|told| told.is_over = true);
        });
        Codex { lines, stdout, log, shared }
    }
}

/// A started Codex.
pub struct Codex {
    lines: TcpStream,
    stdout: Stdout,
    log: TcpStream,
    shared: Arc<Watched<Requests>>,
}

/// Stdout of a Codex. Several threads write there, each whole lines.
#[derive(Clone)]
pub struct Stdout(Arc<Mutex<TcpStream>>);

impl Stdout {
    pub fn send(&self, message: &Value) {
        // One that is gone says nothing.
        let _ = self.write(format!("{message}\n").as_bytes());
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().write_all(bytes)
    }
}

/// Messages that a Codex received.
#[derive(Default)]
struct Requests {
    messages: Vec<Value>,
    /// Messages that the test has read.
    seen: BTreeSet<usize>,
    /// Methods that the test answers itself.
    held: BTreeSet<String>,
    /// Methods that were answered at once.
    answered: BTreeSet<String>,
    /// True while the Codex does not read.
    is_paused: bool,
    is_over: bool,
}

impl Codex {
    /// Lets requests of this method wait for [`Codex::answer`] or [`Codex::refuse`] from now on.
    pub fn hold_answers(&self, method: &str) {
        self.shared.lock().held.insert(method.into());
    }

    /// Waits for the next request or notification of this method.
    pub fn next(&self, method: &str) -> Value {
        self.shared.wait(method, |told| {
            let mut messages = told.messages.iter().enumerate();
            let found = messages
                .find(|(at, message)| message["method"] == method && !told.seen.contains(at));
            let (at, message) = found.map(|(at, message)| (at, message.clone()))?;
            told.seen.insert(at);
            Some(message)
        })
    }

    /// Waits until a request of this method was answered at once.
    pub fn answered(&self, method: &str) {
        self.shared.wait(method, |told| told.answered.remove(method).then_some(()));
    }

    /// Waits until so many requests of the Codex were answered. Returns the answers.
    pub fn answers(&self, number: usize) -> Vec<Value> {
        self.shared.wait("an answer", |told| {
            let answers = told.messages.iter().filter(|message| message["method"].is_null());
            let answers: Vec<Value> = answers.cloned().collect();
            (answers.len() >= number).then_some(answers)
        })
    }

    /// Returns all messages of this method so far.
    pub fn all(&self, method: &str) -> Vec<Value> {
        let told = self.shared.lock();
        told.messages.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    pub fn answer(&self, request: &Value, result: &Value) {
        self.send(&json!({ "id": request["id"], "result": result }));
    }

    pub fn refuse(&self, request: &Value, message: &str) {
        self.send(&json!({ "id": request["id"], "error": { "code": -32600, "message": message } }));
    }

    pub fn notify(&self, method: &str, params: Value) {
        let mut message = json!({ "method": method });
        message["params"] = params;
        self.send(&message);
    }

    pub fn send(&self, message: &Value) {
        self.stdout.send(message);
    }

    pub fn stdout(&self) -> Stdout {
        self.stdout.clone()
    }

    /// Returns the stderr of the Codex.
    pub fn stderr(&self) -> TcpStream {
        self.log.try_clone().unwrap()
    }

    /// Stops reading, until [`Codex::resume`].
    pub fn pause(&self) {
        self.shared.change(|told| told.is_paused = true);
    }

    pub fn resume(&self) {
        self.shared.change(|told| told.is_paused = false);
    }

    /// Ends the Codex, as if it had ended by itself.
    pub fn end(&self) {
        let _ = self.lines.shutdown(Shutdown::Both);
    }

    /// Waits until the Codex has ended.
    pub fn wait_for_end(&self) {
        self.shared.wait("the end of Codex", |told| told.is_over.then_some(()));
    }
}

/// Returns the answer to a request that the test does not answer.
fn default_answer(method: &str, params: &Value, config: &Value) -> Value {
    let effort = |id: &str| json!({ "reasoningEffort": id, "description": "" });
    let model = |id: &str, efforts: [&str; 2]| {
        json!({
            "model": id, "displayName": id, "description": "",
            "supportedReasoningEfforts": efforts.map(effort), "defaultReasoningEffort": efforts[0],
        })
    };
    let thread = |id: &Value| {
        json!({
            "thread": { "id": id, "turns": [] }, "model": "small", "reasoningEffort": "low",
            "sandbox": { "type": "workspaceWrite" },
        })
    };
    match method {
        "initialize" => json!({ "userAgent": "codex/0.166.0 (test)" }),
        "account/read" => json!({ "account": null, "requiresOpenaiAuth": false }),
        "config/read" => json!({ "config": config }),
        "model/list" => {
            json!({ "data": [model("small", ["low", "high"]), model("large", ["high", "max"])] })
        }
        "thread/start" => thread(&json!("thread")),
        "thread/resume" => thread(&params["threadId"]),
        "turn/start" => json!({ "turn": { "id": "turn" } }),
        _ => json!({}),
    }
}
