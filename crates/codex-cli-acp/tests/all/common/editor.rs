//! A fake editor: an ACP client on the stdin and stdout of the program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TIMEOUT, Watched, codex};

/// Limit of the bytes of a text that is kept. Longer ones are only counted.
const KEPT_TEXT_BYTES_MAX: usize = 10_000;

pub struct Editor {
    child: Child,
    stdin: Watched<Stdin>,
    shared: Arc<Watched<Received>>,
}

#[derive(Default)]
struct Stdin {
    pipe: Option<ChildStdin>,
    requests: u64,
}

/// Output of the program.
#[derive(Default)]
struct Received {
    messages: Vec<Value>,
    /// Requests that the test has read.
    read: usize,
    /// Bytes of the messages of Codex.
    chunk_bytes: usize,
    /// True while the editor does not read.
    is_paused: bool,
    is_over: bool,
}

impl Editor {
    /// Starts the program, with a Codex that reports to this address.
    pub fn start(codex: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_codex-cli-acp"))
            .arg("--codex")
            .arg(codex::program())
            .env("FAKE_CODEX", codex)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Nobody reads its log.
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = Watched::<Stdin>::default();
        stdin.lock().pipe = child.stdin.take();
        let (shared, stdout) =
            (Arc::new(Watched::<Received>::default()), child.stdout.take().unwrap());
        let received = Arc::clone(&shared);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
                let message: Value = serde_json::from_str(&line).unwrap();
                received.change(|received| received.take(message));
                received.wait_until(|received| !received.is_paused);
                line.clear();
            }
            received.change(|received| received.is_over = true);
        });
        Self { child, stdin, shared }
    }

    /// Returns the id of the program's process.
    #[cfg(target_os = "linux")]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, method: &str, params: Value) -> u64 {
        let mut stdin = self.stdin.lock();
        stdin.requests += 1;
        let id = stdin.requests;
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        request["params"] = params;
        stdin.write(&request);
        id
    }

    /// Writes bytes to the program, which need not be a message.
    pub fn write_raw(&self, line: &[u8]) {
        let mut stdin = self.stdin.lock();
        stdin.pipe.as_mut().unwrap().write_all(line).unwrap();
    }

    pub fn notify(&self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        message["params"] = params;
        self.stdin.lock().write(&message);
    }

    /// Waits for the answer to a request: its result or its error.
    pub fn answer(&self, id: u64) -> Value {
        self.shared.wait(&format!("the answer to request {id}"), |received| {
            let mut answers =
                received.messages.iter().filter(|message| message["method"].is_null());
            let answer = answers.find(|message| message["id"] == id).cloned();
            assert!(answer.is_some() || !received.is_over, "the program ended without an answer");
            answer
        })
    }

    /// Waits for the result of a request.
    pub fn result(&self, id: u64) -> Value {
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Waits for the error that answers a request, and returns its message.
    pub fn error(&self, id: u64) -> String {
        let answer = self.answer(id);
        assert!(answer["result"].is_null(), "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    pub fn ask(&self, method: &str, params: Value) -> Value {
        self.result(self.send(method, params))
    }

    /// Waits for the next request of the program.
    pub fn asked(&self, method: &str) -> Value {
        self.shared.wait(method, |received| {
            let is_request = |message: &Value| message["method"] == method;
            let later = received.messages.iter().enumerate().skip(received.read);
            let (at, request) = later.into_iter().find(|(_, message)| is_request(message))?;
            let request = request.clone();
            received.read = at + 1;
            Some(request)
        })
    }

    /// Answers a request of the program.
    pub fn reply(&self, request: &Value, result: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.stdin.lock().write(&answer);
    }

    /// Chooses one of the options of a question.
    pub fn choose(&self, question: &Value, option: &str) {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        self.reply(question, &json!({ "outcome": outcome }));
    }

    /// Returns all messages so far.
    pub fn messages(&self) -> Vec<Value> {
        self.shared.lock().messages.clone()
    }

    /// Returns all updates of this kind so far.
    pub fn updates(&self, kind: &str) -> Vec<Value> {
        let messages = self.messages().into_iter();
        let updates = messages.map(|mut message| message["params"]["update"].take());
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Waits for something among all messages so far.
    pub fn wait<R>(&self, what: &str, find: impl Fn(&[Value]) -> Option<R>) -> R {
        self.shared.wait(what, |received| find(&received.messages))
    }

    /// Waits until so many bytes of Codex's messages came.
    pub fn wait_for_chunks(&self, bytes: usize) {
        self.shared.wait("the rest", |received| (received.chunk_bytes >= bytes).then_some(()));
    }

    /// Stops reading, until [`Editor::resume`].
    pub fn pause(&self) {
        self.shared.change(|received| received.is_paused = true);
    }

    pub fn resume(&self) {
        self.shared.change(|received| received.is_paused = false);
    }

    /// Waits until the program has ended.
    pub fn wait_for_end(&mut self) {
        let until = Instant::now() + TIMEOUT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "the program does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes the program's stdin, so that it ends.
    pub fn close_stdin(&self) {
        self.stdin.lock().pipe = None;
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.close_stdin();
        self.resume();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stdin {
    fn write(&mut self, message: &Value) {
        let pipe = self.pipe.as_mut().unwrap();
        pipe.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
}

impl Received {
    fn take(&mut self, message: Value) {
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            let bytes = update["content"]["text"].as_str().map_or(0, str::len);
            self.chunk_bytes += bytes;
            if bytes > KEPT_TEXT_BYTES_MAX {
                return;
            }
        }
        self.messages.push(message);
    }
}
