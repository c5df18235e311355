//! The `codex app-server` process, and the JSON-RPC messages on its pipes.
//!
//! One message a line, without the `jsonrpc` member. Codex and the processes it started end with this program: its
//! stdin closes when this program is gone, for whatever reason, and then Codex cleans up. It has seconds to do that
//! before it is killed; `leftovers` ends the rest.
//!
//! The length of a message is bounded, and so are the queues: of messages from Codex until they are handled, and of
//! messages to Codex until it reads them.

mod queue;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
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

pub use queue::{MessageReceiver, MessageSender, queue};

use crate::{leftovers, lock};

/// The oldest Codex whose app-server has every method that is used here.
const OLDEST: (u32, u32) = (0, 160);
/// Time limit for the answer to `initialize`. A cold start from a slow disk takes seconds.
const INTRODUCTION: Duration = Duration::from_secs(30);
/// Time for Codex to end by itself once its stdin is closed.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes of the end of its stderr that are kept for an error message.
const LAST_WORDS: usize = 2000;
/// Limit of the bytes of a message: items hold whole files and images, and a loaded thread its whole history.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Bytes of the line buffer that are kept for the next message.
const KEPT_BUFFER_BYTES: usize = 1 << 20;
/// Bytes of Codex's log in a piece, and pieces that are queued while nothing reads this program's stderr.
const LOG_PIECE_BYTES: usize = 64 * 1024;
const MAX_LOG_PIECES: usize = 16;
/// Time that Codex's log waits for a reader of this program's stderr.
const LOG_PATIENCE: Duration = Duration::from_secs(1);
/// Limit of the messages to Codex that wait until it reads.
const MAX_LINES: usize = 16;

/// Errors of a request to Codex.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CodexError {
    #[error(
        "Codex CLI was not found at `{program}`: install it with `npm install -g @openai/codex`, or say where it is \
         with --codex or CODEX_BIN"
    )]
    Missing { program: String },
    #[error(
        "Codex CLI could not be started from `{program}`: {reason}; --codex or CODEX_BIN can name another"
    )]
    NotStarted { program: String, reason: String },
    #[error(
        "Codex CLI {found} is too old, {}.{} or newer is needed: update it with `npm install -g @openai/codex`",
        OLDEST.0, OLDEST.1
    )]
    TooOld { found: String },
    #[error("Codex CLI ended unexpectedly ({how}); send the prompt again to start it anew{}", last_words(.said))]
    Ended { how: String, said: String },
    #[error(
        "Codex CLI was ended because it sent a message of more than {} MB; send the prompt again to start it anew, or begin \
         a new session if that happens again",
        MAX_MESSAGE_BYTES >> 20
    )]
    TooLong,
    #[error("Codex CLI did not answer within {} s; try again, or name another with --codex or CODEX_BIN", INTRODUCTION.as_secs())]
    Silent,
    /// Codex answered with an error.
    #[error("{message}")]
    Refused { code: i64, message: String },
}

impl CodexError {
    fn unstarted(program: &OsStr, error: &io::Error) -> Self {
        let program = program.to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { program },
            _ => Self::NotStarted { program, reason: error.to_string() },
        }
    }

    /// Builds the error for a Codex that ended. Its stderr is quoted only after an exit with a failure: a killed
    /// process had no time to write a reason.
    fn ended(status: Option<ExitStatus>, said: &str) -> Self {
        let how = status.map_or("it closed its output".into(), |status| status.to_string());
        let failed = status.is_some_and(|status| status.code().is_some_and(|code| code != 0));
        Self::Ended { how, said: if failed { without_colors(said) } else { String::new() } }
    }
}

fn last_words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(". It said: {said}") }
}

/// Removes the escape sequences that color a log on a terminal.
fn without_colors(log: &str) -> String {
    let mut parts = log.trim().split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// A message that Codex sends by itself.
#[derive(Debug)]
pub enum Message {
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

type Answer = Result<Value, CodexError>;

/// A running Codex process.
pub struct Codex {
    lines: Arc<Lines>,
    /// Set when Codex was told to end.
    closing: watch::Sender<bool>,
    waiting: Arc<Waiting>,
    gone: watch::Receiver<bool>,
    next_id: AtomicU64,
    /// Number of this process among those that were started.
    pub number: u64,
    /// Version from the answer to `initialize`.
    pub version: String,
}

/// Channel of lines to Codex. `None` once it was told to end.
type Lines = Mutex<Option<mpsc::Sender<String>>>;

/// Requests without an answer, and the reason why no more answers will come.
#[derive(Default)]
struct Waiting(Mutex<Answers>);

type Answers = (HashMap<u64, oneshot::Sender<Answer>>, Option<CodexError>);

impl Waiting {
    fn answer(&self, id: Option<u64>, answer: Answer) {
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
        let (lines, outgoing) = mpsc::channel(MAX_LINES);
        let lines = Arc::new(Mutex::new(Some(lines)));
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all three are pipes")
        };
        let waiting = Arc::new(Waiting::default());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = tokio::spawn(hear(stderr, Arc::clone(&said)));
        tokio::spawn(write(stdin, outgoing));
        let ((closing, is_closing), (is_gone, gone)) =
            (watch::channel(false), watch::channel(false));
        let (answers, outgoing) = (Arc::clone(&waiting), Arc::clone(&lines));
        tokio::spawn(async move {
            let mut forwarder = MessageForwarder { messages, number, is_closing };
            let read = read(stdout, &answers, &mut forwarder).await;
            lock(&outgoing).take();
            let status = end(child).await;
            leftovers::end().await;
            let _ = heard.await;
            let why = read.err().unwrap_or_else(|| CodexError::ended(status, &lock(&said)));
            answers.end(&why);
            forwarder.forward(Message::Ended(why)).await;
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
        let introduced = tokio::time::timeout(INTRODUCTION, codex.introduce()).await;
        match introduced.unwrap_or(Err(CodexError::Silent)) {
            Ok(version) => codex.version = version,
            Err(error) => {
                codex.close().await;
                return Err(explain(program, error).await);
            }
        }
        Ok(Arc::new(codex))
    }

    async fn introduce(&self) -> Result<String, CodexError> {
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
    pub async fn request(&self, method: &str, params: Value) -> Answer {
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
        answered.await.unwrap_or(Err(CodexError::Silent))
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
    pub fn is_over(&self) -> bool {
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
        if tokio::time::timeout(FAREWELL, self.ended()).await.is_err() {
            leftovers::end().await;
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
    let mut command = leftovers::kept(program);
    command
        .arg("app-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The keeper must not be killed: then it could not end Codex.
        .kill_on_drop(cfg!(not(target_os = "linux")));
    let names = ["NO_PROXY", "no_proxy"];
    let given = names.map(|name| std::env::var(name).unwrap_or_default());
    command.envs(names.into_iter().zip(unproxied(&given)));
    command.spawn().map_err(|error| CodexError::unstarted(program, &error))
}

/// Returns `NO_PROXY` and `no_proxy` with loopback added, since Codex would use a proxy even for the loopback server of
/// this program. Codex reads only the first that is set, so a value that is set in one of them is used for both.
fn unproxied([upper, lower]: &[String; 2]) -> [String; 2] {
    let or = |one: &str, other: &str| match (one, other) {
        ("", "") => "127.0.0.1,localhost".into(),
        ("", given) | (given, _) => format!("{given},127.0.0.1,localhost"),
    };
    [or(upper, lower), or(lower, upper)]
}

/// Finds a better error for a Codex that did not answer `initialize`. One that is too old has no app-server, or another
/// one, and its own message says less than its version.
async fn explain(program: &OsStr, error: CodexError) -> CodexError {
    if !matches!(error, CodexError::Ended { .. } | CodexError::Silent) {
        return error;
    }
    let asked =
        Command::new(program).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(FAREWELL, asked).await {
        Ok(Ok(output)) => output,
        Ok(Err(reason)) => return CodexError::unstarted(program, &reason),
        Err(_) => return error,
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let found = said.split_whitespace().last().unwrap_or_default();
    if is_too_old(found) { CodexError::TooOld { found: found.to_owned() } } else { error }
}

/// True only if the version is certainly older. A development build has no version.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(0)), Some(Ok(0))) | (None, _) | (_, None) => false,
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST,
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
    async fn forward(&mut self, message: Message) {
        tokio::select! {
            biased;
            () = self.messages.send(self.number, message) => {}
            _ = self.is_closing.wait_for(|is_closing| *is_closing) => {}
        }
    }
}

/// A parsed line from Codex.
enum Incoming {
    /// A notification or request of Codex.
    Message(Message),
    /// An answer, with the id of the request.
    Answer(Option<u64>, Answer),
}

/// Reads messages until Codex closes its stdout or sends one that is too long.
async fn read(
    stdout: ChildStdout,
    waiting: &Waiting,
    forwarder: &mut MessageForwarder,
) -> Result<(), CodexError> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    loop {
        let mut bounded = (&mut stdout).take(MAX_MESSAGE_BYTES as u64 + 1);
        if bounded.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
            return Ok(());
        }
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(CodexError::TooLong);
        }
        let parsed = parse(&line);
        line.clear();
        line.shrink_to(KEPT_BUFFER_BYTES);
        match parsed {
            Some(Incoming::Message(message)) => forwarder.forward(message).await,
            Some(Incoming::Answer(id, answer)) => waiting.answer(id, answer),
            None => {}
        }
    }
}

/// Parses a line. `None` if it is no message.
fn parse(line: &[u8]) -> Option<Incoming> {
    let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else { return None };
    let mut take = |name: &str| message.remove(name);
    let (id, method) = (take("id"), take("method"));
    match (id, method) {
        (Some(id), Some(Value::String(method))) => {
            let params = take("params").unwrap_or_default();
            Some(Incoming::Message(Message::Request { id, method, params }))
        }
        (None, Some(Value::String(method))) => {
            let params = take("params").unwrap_or_default();
            Some(Incoming::Message(Message::Notification { method, params }))
        }
        (Some(id), None) => {
            let answer = match take("error") {
                Some(error) => Err(CodexError::Refused {
                    code: error["code"].as_i64().unwrap_or(-32603),
                    message: error["message"].as_str().unwrap_or("no reason given").to_owned(),
                }),
                None => Ok(take("result").unwrap_or_default()),
            };
            Some(Incoming::Answer(id.as_u64(), answer))
        }
        _ => None,
    }
}

/// Copies Codex's stderr to this program's stderr, which editors keep, and keeps its end for error messages. A long
/// line is written in pieces.
async fn hear(stderr: ChildStderr, said: Arc<Mutex<String>>) {
    let (log, mut is_read) = (log(), true);
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut piece = Vec::new();
        let mut bounded = (&mut stderr).take(LOG_PIECE_BYTES as u64);
        if bounded.read_until(b'\n', &mut piece).await.unwrap_or(0) == 0 {
            return;
        }
        {
            let mut said = lock(&said);
            said.push_str(&String::from_utf8_lossy(&piece));
            if said.len() > 2 * LAST_WORDS {
                let start = said.ceil_char_boundary(said.len() - LAST_WORDS);
                said.drain(..start);
            }
        }
        // A reader that does not read this program's log must not block Codex: pieces are dropped instead.
        is_read = match log.try_send(piece) {
            Ok(()) => true,
            Err(TrySendError::Full(piece)) if is_read => {
                tokio::time::timeout(LOG_PATIENCE, log.send(piece)).await.is_ok()
            }
            Err(_) => false,
        };
    }
}

/// Returns a channel to stderr. A thread writes it, since a write may block.
fn log() -> mpsc::Sender<Vec<u8>> {
    let (log, mut pieces) = mpsc::channel::<Vec<u8>>(MAX_LOG_PIECES);
    thread::spawn(move || {
        while let Some(piece) = pieces.blocking_recv() {
            let _ = terminal::write_bytes(Stream::Stderr, &piece);
        }
    });
    log
}

/// Waits for the exit of a process that closed its stdout, and kills it after a while.
async fn end(mut child: Child) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(FAREWELL, child.wait()).await {
        return status.ok();
    }
    let _ = child.kill().await;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_taken_out() {
        assert_eq!(
            without_colors(" \x1b[2mnow\x1b[0m \x1b[31mERROR\x1b[0m: no [m] \n"),
            "now ERROR: no [m]"
        );
    }

    #[test]
    fn our_own_machine_is_reached_without_a_proxy_and_so_is_what_was() {
        let ours = "127.0.0.1,localhost".to_owned();
        let both = |given: &str| [format!("{given},{ours}"), format!("{given},{ours}")];
        let unproxied = |upper: &str, lower: &str| unproxied(&[upper.into(), lower.into()]);
        assert_eq!(unproxied("", ""), [ours.clone(), ours.clone()]);
        assert_eq!(unproxied("a", ""), both("a"));
        assert_eq!(unproxied("", "a"), both("a"));
        assert_eq!(unproxied("a", "b"), [format!("a,{ours}"), format!("b,{ours}")]);
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
