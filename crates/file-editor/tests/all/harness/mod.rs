//! A folder and a server in it, as a client sees them.

pub mod http;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What takes longer than this hangs.
pub const HANG: Duration = Duration::from_mins(2);

/// A folder of its own, gone afterwards.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), contents).unwrap();
    }

    /// Writes a file, and makes its folders.
    pub fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        self.write(name, contents);
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// Everything in the folder, sorted, hidden names too.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Takes the file's lock, as another process would, until the handle is dropped.
    pub fn lock(&self, name: &str) -> File {
        let file = File::options().read(true).write(true).open(self.file(name)).unwrap();
        file.lock().unwrap();
        file
    }

    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[&str]) -> Server {
        Server::start(self.path(), flags, &[])
    }
}

/// A running server on stdio.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
}

/// The server's binary, in an environment that says nothing to it.
pub fn binary() -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_file-editor")))
}

fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    for name in [
        "FILE_EDITOR_LLM_API_KEY",
        "FILE_EDITOR_LLM_BASE_URL",
        "FILE_EDITOR_LLM_MODEL",
        "FILE_EDITOR_LLM_TIMEOUT",
        "FILE_EDITOR_TOKEN",
        "LISTEN_FDS",
        "LISTEN_PID",
    ] {
        command.env_remove(name);
    }
    command
}

/// A folder with a file, `a.txt`, and somebody who may read both and write nowhere. Even root is refused here: whoever
/// it is runs a copy of the binary as nobody.
#[cfg(unix)]
pub struct Unwritable {
    place: Folder,
}

#[cfg(unix)]
impl Unwritable {
    pub fn new() -> Self {
        let place = Folder::new();
        std::fs::copy(env!("CARGO_BIN_EXE_file-editor"), place.file("file-editor")).unwrap();
        std::fs::create_dir(place.file("root")).unwrap();
        place.write("root/a.txt", "one\n");
        let scene = Self { place };
        for (name, mode) in [("", 0o755), ("root/a.txt", 0o644), ("root", 0o555)] {
            scene.set_mode(name, mode);
        }
        scene
    }

    pub fn root(&self) -> PathBuf {
        self.place.file("root")
    }

    /// A file beside the folder, with its mode.
    pub fn put(&self, name: &str, text: &str, mode: u32) {
        self.place.put(name, text);
        self.set_mode(name, mode);
    }

    pub fn set_mode(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.place.file(name), mode).unwrap();
    }

    /// In the folder, with its parent as a home.
    pub fn command(&self, arguments: &[&str]) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = program(&self.place.file("file-editor"));
        command.args(arguments).current_dir(self.root()).env("HOME", self.place.path());
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        output(&mut self.command(arguments))
    }
}

#[cfg(unix)]
impl Drop for Unwritable {
    fn drop(&mut self) {
        // Else its files could not be removed.
        self.set_mode("root", 0o755);
    }
}

/// Runs a command to its end. A process that another test is just starting may still hold a copy of the binary open for
/// writing.
pub fn output(command: &mut Command) -> Output {
    loop {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            output => return output.unwrap(),
        }
    }
}

/// Runs the binary to its end, without any input. It has little to say.
pub fn run(arguments: &[&str]) -> Output {
    let mut command = binary();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("{arguments:?} runs on: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap()
}

impl Server {
    pub fn start(dir: &Path, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = binary();
        command.arg(format!("--dir={}", dir.display())).arg("--transport=stdio").args(flags);
        command.envs(env.iter().copied());
        Self::spawn(&mut command)
    }

    /// Stdout is always read, stderr not before the end.
    pub fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let mut line = String::new();
                if stdout.read_line(&mut line).unwrap() == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, next_id: 1 }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line as it is.
    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// Sends bytes without a line break.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line, without its line break; empty at the end.
    pub fn receive_line(&mut self) -> String {
        let line = match self.lines.recv_timeout(HANG) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return String::new(),
            Err(RecvTimeoutError::Timeout) => panic!("no answer within {HANG:?}"),
        };
        line.strip_suffix('\n').expect("a line ends with a line break").to_owned()
    }

    pub fn receive(&mut self) -> Value {
        let line = self.receive_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a line as it is; the next answer.
    pub fn exchange(&mut self, line: &str) -> Value {
        self.send_line(line);
        self.receive()
    }

    /// The answers to these requests, in the order of the requests; no other may come in between.
    pub fn receive_all(&mut self, ids: &[i64]) -> Vec<Value> {
        let mut answers: Vec<Option<Value>> = vec![None; ids.len()];
        for _ in ids {
            let answer = self.receive();
            let at = ids.iter().position(|id| answer["id"] == *id);
            let slot = &mut answers[at.unwrap_or_else(|| panic!("unexpected: {answer}"))];
            assert!(slot.is_none(), "answered twice: {answer}");
            *slot = Some(answer);
        }
        answers.into_iter().flatten().collect()
    }

    /// Sends a request without waiting; its id.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(&message.to_string());
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_line(&message.to_string());
    }

    /// A request and its answer, the only one under way.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls an MCP tool; the whole answer.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    pub fn send_tool(&mut self, name: &str, arguments: Value) -> i64 {
        self.send("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool that must succeed; its first text.
    pub fn text(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.tool(name, arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Calls a tool that must fail; its first text.
    pub fn error(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.tool(name, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the process without any notice.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The end of input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Ends the input and waits; status, the rest of stdout, stderr.
    pub fn finish(mut self) -> (ExitStatus, String, String) {
        self.close_input();
        self.wait()
    }

    /// Waits for the end; status, the rest of stdout, stderr.
    pub fn wait(mut self) -> (ExitStatus, String, String) {
        let mut stderr = self.child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        let status = wait_for_end(&mut self.child);
        let rest = self.lines.iter().collect();
        (status, rest, errors.join().unwrap())
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        send_signal(self.pid(), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits for the end of a process, for as long as [`HANG`].
fn wait_for_end(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + HANG;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < until, "still running after {HANG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(unix)]
fn send_signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A figure of a process's memory, in KiB: `VmHWM` is the most that it ever had.
#[cfg(target_os = "linux")]
pub fn memory_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let figure = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    figure.unwrap().trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The tools of a set, as `tools/list` describes them.
pub fn listed_tools(set: &str) -> Vec<Value> {
    let flag = format!("--tools={set}");
    let answer = Folder::new().serve_with(&[&flag]).request("tools/list", json!({}));
    answer["result"]["tools"].as_array().unwrap().clone()
}

/// `params` of `initialize`, of a client without capabilities.
pub fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "test-client", "version": "1.0.0" },
    })
}

/// JSON that is no JSON-RPC message, and the id that its answer has.
pub fn invalid_requests() -> [(&'static str, Value); 16] {
    [
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null)),
        ("[]", json!(null)),
        ("5", json!(null)),
        ("null", json!(null)),
        (r#""ping""#, json!(null)),
        ("{}", json!(null)),
        (r#"{"id":1,"method":"ping"}"#, json!(1)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1}"#, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, json!(null)),
    ]
}

/// A server in `place/root`, as a user who owns nothing there; only root can do that.
#[cfg(unix)]
pub fn as_nobody(place: &Folder, flags: &[&str]) -> Server {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    // The one that was built may be where nobody else may look.
    let program = place.file("file-editor");
    std::fs::copy(env!("CARGO_BIN_EXE_file-editor"), &program).unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = || {
        let mut command = Command::new(&program);
        command.uid(65534).gid(65534);
        command
    };
    // A process that another test is just starting may still hold our copy open for writing.
    while let Err(error) = command().arg("--version").output() {
        assert_eq!(error.kind(), std::io::ErrorKind::ExecutableFileBusy);
    }
    let dir = format!("--dir={}", place.file("root").display());
    Server::spawn(command().arg(dir).arg("--transport=stdio").args(flags))
}

/// `params` of a request in the protocol version that has no handshake.
pub fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test-client", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// The texts of a tool's answer.
pub fn texts(answer: &Value) -> Vec<&str> {
    let blocks = answer["result"]["content"].as_array();
    let blocks = blocks.unwrap_or_else(|| panic!("not a tool's answer: {answer}"));
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

/// That a tool's answer is a failure with this code; its message.
pub fn failure(answer: &Value, code: i64) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["error"]["code"], code, "{answer}");
    texts(answer)[0]
}

/// That an answer is a JSON-RPC error with this code; its message.
pub fn fault(answer: &Value, code: i64) -> &str {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

/// That every line of stderr is a JSON object; the lines.
pub fn log_lines(stderr: &str) -> Vec<Value> {
    let parse = |line| match serde_json::from_str(line) {
        Ok(Value::Object(line)) => Value::Object(line),
        _ => panic!("not a JSON object on stderr: {line}"),
    };
    stderr.lines().map(parse).collect()
}

/// What somebody sees who runs it at a terminal, stdout and stderr alike; `None` where there is no terminal to be had.
/// The command may set variables, but not take away those it inherits.
#[cfg(target_os = "linux")]
pub fn at_a_terminal(command: &Command) -> Option<String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted =
        |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
    let line: Vec<_> = words.map(quoted).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        script.current_dir(folder);
    }
    let Ok(output) = script.env("TERM", "xterm").stdin(Stdio::null()).output() else {
        not_checked("output at a terminal", "`script`");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n"))
}

/// Acts on terminals, reorders or hides; and of everything else whose neighbours do, some.
pub const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\u{200d}\u{2060}\
                           \u{feff}\u{2028}\u{2029}\u{ad}\u{fe0f}\u{e0041}\u{e007f}";

/// The same as it is shown.
pub const SHOWN: &str = r"\u{1b}]0;owned\u{7}\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\u{200d}\u{2060}\u{feff}\u{2028}\u{2029}\u{ad}\u{fe0f}\u{e0041}\u{e007f}";

/// That nothing which was shown on a terminal acts on it, but for our own colours and the line that says what is going
/// on, and that nothing hides.
pub fn check_harmless(seen: &str) {
    let mut rest = seen.replace("\r\u{1b}[K", "");
    for color in ["", "1", "2", "31", "32", "36"] {
        rest = rest.replace(&format!("\u{1b}[{color}m"), "");
    }
    let found = rest.find(text::is_hidden);
    assert_eq!(found, None, "{seen:?}");
}

/// Configurations that are nested a million times: a user's file, its client and its text.
pub fn bottomless() -> Vec<(&'static str, &'static str, String)> {
    const DEPTH: usize = 1_000_000;
    let json = |open: &str| format!("{{\"a\": {}", open.repeat(DEPTH));
    vec![
        (".cursor/mcp.json", "cursor", json("[")),
        (".cursor/mcp.json", "cursor", json("{\"a\":")),
        (
            ".cursor/mcp.json",
            "cursor",
            format!("{{\"a\": {}{}}}", "[".repeat(500_000), "]".repeat(500_000)),
        ),
        ("config.toml", "codex", format!("a = {}", "[".repeat(DEPTH))),
        ("config.toml", "codex", format!("a = {}", "{a=".repeat(DEPTH))),
    ]
}

/// Prints `not checked: <what> (needs <needs>)` to stderr, past the test runner's capture, and adds the line to the list
/// that `cargo xtask test` prints at its end. Under CI everything is there but root.
pub fn not_checked(what: &str, needs: &str) {
    let line = format!("not checked: {what} (needs {needs})\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("FILE_EDITOR_NOT_CHECKED") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(needs == "root" || !is_ci, "{line}");
}

/// True if the tests run as root; otherwise says what is not checked.
#[cfg(unix)]
pub fn is_root_to_check(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_checked(what, "root");
    }
    is_root
}

/// Says, past the test runner's capture, what was measured.
pub fn measured(what: &str) {
    let _ = writeln!(std::io::stderr(), "measured: {what}");
}
