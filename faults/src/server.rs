//! A server on stdio, as a client sees it: its answers, or that it is gone.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What takes longer than this hangs.
pub const HANG: Duration = Duration::from_mins(2);

static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Says once which binary is put to the test.
pub fn set_binary(path: PathBuf) {
    BINARY.set(path).expect("it is said once");
}

pub fn binary() -> &'static Path {
    BINARY.get().expect("it was said which")
}

/// The server's command line, in an environment that says nothing to it.
pub fn command(dir: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(binary());
    for name in ["FILE_EDITOR_TOKEN", "LISTEN_FDS", "LISTEN_PID"] {
        command.env_remove(name);
    }
    command.arg(format!("--dir={}", dir.display())).args(flags);
    if !flags.iter().any(|flag| flag.starts_with("--log=")) {
        command.arg("--log=error");
    }
    command
}

pub struct Server {
    /// `None` when somebody else waits for the process.
    child: Option<Child>,
    pid: u32,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The process ended.
    Gone,
    /// It did not come in time.
    Late,
}

/// What a tool answered.
#[derive(Clone, Debug)]
pub struct Answer(pub Value);

impl Answer {
    pub fn is_error(&self) -> bool {
        self.0["result"]["isError"] != false
    }

    /// All texts, one a line.
    pub fn text(&self) -> String {
        let blocks = self.0["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn code(&self) -> Option<i64> {
        self.0["result"]["structuredContent"]["error"]["code"].as_i64()
    }

    pub fn data(&self) -> &Value {
        &self.0["result"]["structuredContent"]
    }
}

impl Server {
    pub fn start(dir: &Path, flags: &[&str]) -> Self {
        Self::spawn(command(dir, flags).arg("--transport=stdio"))
    }

    /// One of which nobody wants to know what it says besides its answers.
    pub fn start_quietly(dir: &Path, flags: &[&str]) -> Self {
        Self::spawn_with(command(dir, flags).arg("--transport=stdio"), Stdio::null())
    }

    pub fn spawn(command: &mut Command) -> Self {
        Self::spawn_with(command, Stdio::inherit())
    }

    fn spawn_with(command: &mut Command, log: Stdio) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self::attach(child.id(), stdin, stdout);
        server.child = Some(child);
        server
    }

    /// A process that somebody else has started, and waits for.
    pub fn attach(pid: u32, stdin: ChildStdin, stdout: ChildStdout) -> Self {
        let mut stdout = BufReader::new(stdout);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let mut line = String::new();
                // Half a line is what a killed process leaves.
                let read = stdout.read_line(&mut line);
                if !line.ends_with('\n') || read.is_err() || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child: None, pid, stdin: Some(stdin), lines, next_id: 1 }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a tool's call without waiting; its id.
    pub fn send(&mut self, tool: &str, arguments: &Value) -> Result<i64, NoAnswer> {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a request without waiting; its id.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<i64, NoAnswer> {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Takes a request back.
    pub fn cancel(&mut self, id: i64) -> Result<(), NoAnswer> {
        self.write(&cancellation(id))
    }

    fn write(&mut self, message: &Value) -> Result<(), NoAnswer> {
        let stdin = self.stdin.as_mut().ok_or(NoAnswer::Gone)?;
        stdin.write_all(format!("{message}\n").as_bytes()).map_err(|_| NoAnswer::Gone)
    }

    /// There will be no more requests.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// The next answer, whichever call it is of.
    pub fn receive(&mut self, patience: Duration) -> Result<Answer, NoAnswer> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Answer(serde_json::from_str(&line).unwrap())),
            Err(RecvTimeoutError::Disconnected) => Err(NoAnswer::Gone),
            Err(RecvTimeoutError::Timeout) => Err(NoAnswer::Late),
        }
    }

    /// Calls a tool, the only call under way.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, NoAnswer> {
        let id = self.send(tool, arguments)?;
        let answer = self.receive(HANG)?;
        assert_eq!(answer.0["id"], id, "{answer:?}");
        Ok(answer)
    }

    /// Calls a plain method, the only call under way.
    pub fn method(&mut self, name: &str, params: &Value) -> Result<Answer, NoAnswer> {
        self.request(name, params)?;
        self.receive(HANG)
    }

    /// Comes back when the server answers.
    pub fn ready(&mut self) {
        self.request("ping", &json!({})).unwrap();
        self.receive(HANG).unwrap();
    }

    /// Ends the process by its input; why it did not end well.
    pub fn end(&mut self) -> Result<(), String> {
        self.stdin = None;
        self.child.take().map_or(Ok(()), |mut child| await_end(&mut child))
    }

    /// Ends the process without any notice.
    pub fn kill(&mut self) {
        signal(self.pid, rustix::process::Signal::KILL);
        if let Some(mut child) = self.child.take() {
            child.wait().unwrap();
        }
    }
}

/// The notification that takes a request back.
pub fn cancellation(id: i64) -> Value {
    let params = json!({ "requestId": id, "reason": "changed my mind" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Waits until a process ends that was asked to; one that does not is killed.
pub fn await_end(child: &mut Child) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Err(error) => return Err(error.to_string()),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err("it does not end".into())
}

/// A figure of `/proc/<pid>/status`, in KiB; 0 of a process that is gone.
pub fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok()).unwrap_or(0)
}

/// Sends a signal to a process of ours.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
