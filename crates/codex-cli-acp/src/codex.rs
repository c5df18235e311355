//! The `codex app-server` process, and the JSON-RPC messages on its pipes.
//!
//! One message a line, without the `jsonrpc` member. Codex and the processes it started end with this program: its
//! stdin closes when this program is gone, for whatever reason, and then Codex cleans up. It has seconds to do that
//! before it is killed; `process_cleanup` ends the rest.
//!
//! The length of a message is bounded, and so are the queues: of messages from Codex until they are handled, and of
//! messages to Codex until it reads them.

mod error;
mod queue;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use server::terminal::{self, Stream};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

pub use error::CodexError;
pub use queue::{MessageReceiver, MessageSender, queue};

use crate::{lock, process_cleanup};

/// The oldest Codex whose app-server has every method that is used here.
const VERSION_MIN: (u32, u32) = (0, 160);
/// Time limit for the answer to `initialize`. A cold start from a slow disk takes seconds.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for Codex to end by itself once its stdin is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of the end of its stderr that are kept for an error message.
const LOG_END_BYTES: usize = 2000;
/// Limit of the bytes of a message: items hold whole files and images, and a loaded thread its whole history.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes of the line buffer that are kept for the next message.
const LINE_BUFFER_KEPT_MAX: usize = 1 << 20;
/// Bytes of Codex's log in a piece, and pieces that are queued while nothing reads this program's stderr.
const LOG_PIECE_BYTES_MAX: usize = 64 * 1024;
const LOG_PIECES_MAX: usize = 16;
/// Time that Codex's log waits for a reader of this program's stderr.
const LOG_READER_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit of the messages to Codex that wait until it reads.
const OUTGOING_LINES_MAX: usize = 16;

/// A message that Codex sends by itself.
#[derive(Debug)]
pub enum CodexMessage {
    Notification {
        method: String,
        params: Value,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// Codex is gone. This is its last message.
    Ended(CodexError),
}

type CodexResult = Result<Value, CodexError>;

/// A running Codex process.
pub struct Codex {
    lines: Arc<OutgoingLines>,
    /// Set when Codex was told to end.
    closing: watch::Sender<bool>,
    waiting: Arc<PendingRequests>,
    gone: watch::Receiver<bool>,
    next_id: AtomicU64,
    /// Number of this process among those that were started.
    pub number: u64,
    /// Version from the answer to `initialize`.
    pub version: String,
}

/// Channel of lines to Codex. `None` once it was told to end.
type OutgoingLines = Mutex<Option<mpsc::Sender<String>>>;

/// Requests without an answer, and the reason why no more answers will come.
#[derive(Default)]
struct PendingRequests(Mutex<PendingAnswers>);

type PendingAnswers = (HashMap<u64, oneshot::Sender<CodexResult>>, Option<CodexError>);

impl PendingRequests {
    fn answer(&self, id: Option<u64>, answer: CodexResult) {
        let waiting = id.and_then(|id| lock(&self.0).0.remove(&id));
        waiting.map(|waiting| waiting.send(answer));
    }

    fn end(&self, why: &CodexError) {
        let (waiting, ended) = &mut *lock(&self.0);
        *ended = Some(why.clone());
        for (_, waiting) in waiting.drain() {
            let _ = waiting.send(Err(why.clone()));
        }
    }
}

impl Codex {
    /// Starts `program`. Its messages are sent to `messages`, in order.
    pub async fn start(
        program: &OsStr,
        number: u64,
        messages: MessageSender,
    ) -> Result<Arc<Self>, CodexError> {
        let mut child = spawn(program)?;
        let (lines, outgoing) = mpsc::channel(OUTGOING_LINES_MAX);
        let lines = Arc::new(Mutex::new(Some(lines)));
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all three are pipes")
        };
        let waiting = Arc::new(PendingRequests::default());
        let log_end = Arc::new(Mutex::new(String::new()));
        let log_copied = tokio::spawn(copy_log(stderr, Arc::clone(&log_end)));
        tokio::spawn(write(stdin, outgoing));
        let ((closing, is_closing), (is_gone, gone)) =
            (watch::channel(false), watch::channel(false));
        let (answers, outgoing) = (Arc::clone(&waiting), Arc::clone(&lines));
        tokio::spawn(async move {
            let mut forwarder = MessageForwarder { messages, number, is_closing };
            let read = read(stdout, &answers, &mut forwarder).await;
            lock(&outgoing).take();
            let status = end(child).await;
            process_cleanup::kill_all().await;
            let _ = log_copied.await;
            let why = read.err().unwrap_or_else(|| CodexError::ended(status, &lock(&log_end)));
            answers.end(&why);
            forwarder.forward(CodexMessage::Ended(why)).await;
            let _ = is_gone.send(true);
        });
        let mut codex = Self {
            lines,
            closing,
            waiting,
            gone,
            next_id: AtomicU64::new(1),
            number,
            version: String::new(),
        };
        let initialized = tokio::time::timeout(INITIALIZE_TIMEOUT, codex.initialize()).await;
        match initialized.unwrap_or(Err(CodexError::NoAnswer)) {
            Ok(version) => codex.version = version,
            Err(error) => {
                codex.close().await;
                return Err(explain_failed_start(program, error).await);
            }
        }
        Ok(Arc::new(codex))
    }

    async fn initialize(&self) -> Result<String, CodexError> {
        let name = env!("CARGO_PKG_NAME");
        let us =
            json!({ "name": name, "title": "file-editor", "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "experimentalApi": true, "requestAttestation": false });
        let params = json!({ "clientInfo": us, "capabilities": capabilities });
        let answer = self.request("initialize", params).await?;
        self.send(&json!({ "method": "initialized" })).await;
        let agent = answer["userAgent"].as_str().unwrap_or_default();
        let version = agent.split_once('/').and_then(|(_, rest)| rest.split(' ').next());
        let version = version.unwrap_or_default().to_owned();
        if is_too_old(&version) { Err(CodexError::TooOld { found: version }) } else { Ok(version) }
    }

    /// Sends a request to Codex and waits for the answer.
    pub async fn request(&self, method: &str, params: Value) -> CodexResult {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let (waiting, ended) = &mut *lock(&self.waiting.0);
            if let Some(why) = ended {
                return Err(why.clone());
            }
            waiting.insert(id, answer);
        }
        self.send(&json!({ "id": id, "method": method, "params": params })).await;
        answered.await.unwrap_or(Err(CodexError::NoAnswer))
    }

    /// Answers a request of Codex.
    pub async fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({ "id": id, "result": result })).await;
    }

    /// Answers a request of Codex with "method not found".
    pub async fn refuse(&self, id: &Value, method: &str) {
        let message = format!("{method} is not offered by this client");
        self.send(&json!({ "id": id, "error": { "code": -32601, "message": message } })).await;
    }

    /// True if the process has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.waiting.0).1.is_some()
    }

    /// Waits for the end of the process.
    pub async fn ended(&self) {
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }

    /// Ends Codex and all processes it started.
    pub async fn close(&self) {
        let _ = self.closing.send(true);
        lock(&self.lines).take();
        if tokio::time::timeout(EXIT_TIMEOUT, self.ended()).await.is_err() {
            process_cleanup::kill_all().await;
        }
    }

    /// Sends a message, and waits until Codex reads. If Codex ends, the waiting requests get the error.
    async fn send(&self, message: &Value) {
        let lines = lock(&self.lines).clone();
        if let Some(lines) = lines {
            let _ = lines.send(message.to_string()).await;
        }
    }
}

fn spawn(program: &OsStr) -> Result<Child, CodexError> {
    let mut command = process_cleanup::supervised(program);
    command
        .arg("app-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The supervisor must not be killed: then it could not end Codex.
        .kill_on_drop(cfg!(not(target_os = "linux")));
    let names = ["NO_PROXY", "no_proxy"];
    let given = names.map(|name| std::env::var(name).unwrap_or_default());
    command.envs(names.into_iter().zip(no_proxy(&given)));
    command.spawn().map_err(|error| CodexError::not_started(program, &error))
}

/// Returns `NO_PROXY` and `no_proxy` with loopback added, since Codex would use a proxy even for the loopback server of
/// this program. Codex reads only the first that is set, so a value that is set in one of them is used for both.
fn no_proxy([upper, lower]: &[String; 2]) -> [String; 2] {
    let or = |one: &str, other: &str| match (one, other) {
        ("", "") => "127.0.0.1,localhost".into(),
        ("", given) | (given, _) => format!("{given},127.0.0.1,localhost"),
    };
    [or(upper, lower), or(lower, upper)]
}

/// Finds a better error for a Codex that did not answer `initialize`. One that is too old has no app-server, or another
/// one, and its own message says less than its version.
async fn explain_failed_start(program: &OsStr, error: CodexError) -> CodexError {
    if !matches!(error, CodexError::Ended { .. } | CodexError::NoAnswer) {
        return error;
    }
    let asked =
        Command::new(program).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(EXIT_TIMEOUT, asked).await {
        Ok(Ok(output)) => output,
        Ok(Err(reason)) => return CodexError::not_started(program, &reason),
        Err(_) => return error,
    };
    let log_end = String::from_utf8_lossy(&output.stdout);
    let found = log_end.split_whitespace().last().unwrap_or_default();
    if is_too_old(found) { CodexError::TooOld { found: found.to_owned() } } else { error }
}

/// True only if the version is certainly older. A development build has no version.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(0)), Some(Ok(0))) | (None, _) | (_, None) => false,
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < VERSION_MIN,
        _ => false,
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Forwards the messages of one Codex to the queue.
struct MessageForwarder {
    messages: MessageSender,
    number: u64,
    is_closing: watch::Receiver<bool>,
}

impl MessageForwarder {
    /// Waits until the queue has room. Messages of a Codex that was told to end are dropped instead, since it could not
    /// end while it waits to write them.
    async fn forward(&mut self, message: CodexMessage) {
        tokio::select! {
            biased;
            () = self.messages.send(self.number, message) => {}
            _ = self.is_closing.wait_for(|is_closing| *is_closing) => {}
        }
    }
}

/// A parsed line from Codex.
enum ParsedLine {
    /// A notification or request of Codex.
    Message(CodexMessage),
    /// An answer, with the id of the request.
    Answer(Option<u64>, CodexResult),
}

/// Reads messages until Codex closes its stdout or sends one that is too long.
async fn read(
    stdout: ChildStdout,
    waiting: &PendingRequests,
    forwarder: &mut MessageForwarder,
) -> Result<(), CodexError> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    loop {
        let mut bounded = (&mut stdout).take(MESSAGE_BYTES_MAX as u64 + 1);
        if bounded.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
            return Ok(());
        }
        if line.len() > MESSAGE_BYTES_MAX {
            return Err(CodexError::TooLong);
        }
        let parsed = parse(&line);
        line.clear();
        line.shrink_to(LINE_BUFFER_KEPT_MAX);
        match parsed {
            Some(ParsedLine::Message(message)) => forwarder.forward(message).await,
            Some(ParsedLine::Answer(id, answer)) => waiting.answer(id, answer),
            None => {}
        }
    }
}

/// Parses a line. `None` if it is no message.
fn parse(line: &[u8]) -> Option<ParsedLine> {
    let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else { return None };
    let mut take = |name: &str| message.remove(name);
    let (id, method) = (take("id"), take("method"));
    match (id, method) {
        (Some(id), Some(Value::String(method))) => {
            let params = take("params").unwrap_or_default();
            Some(ParsedLine::Message(CodexMessage::Request { id, method, params }))
        }
        (None, Some(Value::String(method))) => {
            let params = take("params").unwrap_or_default();
            Some(ParsedLine::Message(CodexMessage::Notification { method, params }))
        }
        (Some(id), None) => {
            let answer = match take("error") {
                Some(error) => Err(CodexError::Refused {
                    code: error["code"].as_i64().unwrap_or(-32603),
                    message: error["message"].as_str().unwrap_or("no reason given").to_owned(),
                }),
                None => Ok(take("result").unwrap_or_default()),
            };
            Some(ParsedLine::Answer(id.as_u64(), answer))
        }
        _ => None,
    }
}

/// Copies Codex's stderr to this program's stderr, which editors keep, and keeps its end for error messages. A long
/// line is written in pieces.
async fn copy_log(stderr: ChildStderr, log_end: Arc<Mutex<String>>) {
    let (log, mut is_read) = (log(), true);
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut piece = Vec::new();
        let mut bounded = (&mut stderr).take(LOG_PIECE_BYTES_MAX as u64);
        if bounded.read_until(b'\n', &mut piece).await.unwrap_or(0) == 0 {
            return;
        }
        {
            let mut log_end = lock(&log_end);
            log_end.push_str(&String::from_utf8_lossy(&piece));
            if log_end.len() > 2 * LOG_END_BYTES {
                let start = log_end.ceil_char_boundary(log_end.len() - LOG_END_BYTES);
                log_end.drain(..start);
            }
        }
        // A reader that does not read this program's log must not block Codex: pieces are dropped instead.
        is_read = match log.try_send(piece) {
            Ok(()) => true,
            Err(TrySendError::Full(piece)) if is_read => {
                tokio::time::timeout(LOG_READER_TIMEOUT, log.send(piece)).await.is_ok()
            }
            Err(_) => false,
        };
    }
}

/// Returns a channel to stderr. A thread writes it, since a write may block.
fn log() -> mpsc::Sender<Vec<u8>> {
    let (log, mut pieces) = mpsc::channel::<Vec<u8>>(LOG_PIECES_MAX);
    thread::spawn(move || {
        while let Some(piece) = pieces.blocking_recv() {
            let _ = terminal::write_bytes(Stream::Stderr, &piece);
        }
    });
    log
}

/// Waits for the exit of a process that closed its stdout, and kills it after a while.
async fn end(mut child: Child) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        return status.ok();
    }
    let _ = child.kill().await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_machine_is_reached_without_a_proxy_and_so_is_what_was() {
        let ours = "127.0.0.1,localhost".to_owned();
        let both = |given: &str| [format!("{given},{ours}"), format!("{given},{ours}")];
        let no_proxy = |upper: &str, lower: &str| no_proxy(&[upper.into(), lower.into()]);
        assert_eq!(no_proxy("", ""), [ours.clone(), ours.clone()]);
        assert_eq!(no_proxy("a", ""), both("a"));
        assert_eq!(no_proxy("", "a"), both("a"));
        assert_eq!(no_proxy("a", "b"), [format!("a,{ours}"), format!("b,{ours}")]);
    }

    #[test]
    fn versions() {
        for old in ["0.1.0", "0.159.9", "0.63.0-alpha.1"] {
            assert!(is_too_old(old), "{old}");
        }
        for young in ["0.160.0", "0.166.0", "0.170.0-alpha.3", "1.0.0", "0.0.0", "", "dev"] {
            assert!(!is_too_old(young), "{young}");
        }
    }
}
