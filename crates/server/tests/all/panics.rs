//! A panic in one call is answered with -32603 and logged, and harms no other call, over every transport.
//!
//! No tool panics by itself, so the server has a store that does. It is this test program, started a second time to run
//! one of the ignored tests, which serve.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use files::{
    Access, Call, Decide, DirPath, DiskOptions, DiskStore, Durability, Entry, FilePath, Root,
    Saved, Store, StoreError, Version,
};
use serde_json::{Value, json};
use server::http::ListenOptions;
use server::signal::Signals;
use server::{Calls, Confirm, Level, Log, Options, Structured, ToolErrors};
use tempfile::TempDir;
use tools::Limits;

const BOOM: &str = "boom.txt";
/// Longer than anything takes that is not broken.
const HANG: Duration = Duration::from_secs(30);
const MAX_SIZE: u64 = 1 << 20;

/// A disk on which calls for `boom.txt` panic.
struct PanickingStore(DiskStore);

fn panic_for(at: &FilePath) {
    assert!(at.name() != BOOM, "contents of the file");
}

impl Store for PanickingStore {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        panic_for(at);
        self.0.read(at, call)
    }

    fn size(&self, at: &FilePath) -> Option<u64> {
        self.0.size(at)
    }

    fn waits_for_disk(&self) -> bool {
        self.0.waits_for_disk()
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.walk(after, call, each)
    }

    /// Panics while the files are locked.
    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.0.update(at, call, &mut |versions| {
            let changes = change(versions)?;
            at.iter().for_each(panic_for);
            Ok(changes)
        })
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.0.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.0.remove_folders(made);
    }
}

/// Serves the current folder from a [`PanickingStore`].
fn serve<S: Future<Output = ()>>(transport: impl FnOnce(Arc<Calls>) -> S) {
    let root = Arc::new(Root::open(Path::new(".")).unwrap());
    let disk = DiskOptions { max_size: MAX_SIZE, durability: Durability::None };
    let store = PanickingStore(DiskStore::open(Arc::clone(&root), disk));
    let options = Options {
        tools: tools::FLAT.iter().collect(),
        access: Access::ReadWrite,
        tool_errors: ToolErrors::Result,
        structured: Structured::On,
        confirm: Confirm::Never,
        observer: None,
        model: None,
        instructions: None,
    };
    let limits = Limits::new(MAX_SIZE, HANG);
    let calls = Calls::new(root, Box::new(store), limits, options, Log::new(Level::Info));
    calls.log_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { transport(Arc::clone(&calls)).await });
    calls.log.close(HANG);
}

#[test]
#[ignore = "the server of another test"]
fn serves_on_stdio() {
    serve(|calls| async { server::stdio::serve(calls, Signals::catch().unwrap()).await.unwrap() });
}

/// Until the end of input.
#[test]
#[ignore = "the server of another test"]
fn serves_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    serve(|calls| async move {
        let signals = Signals::catch().unwrap();
        let options = ListenOptions { listeners: vec![listener], hosts: Vec::new(), token: None };
        let input = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        writeln!(std::io::stdout(), "{}", json!({ "address": address })).unwrap();
        tokio::select! {
            served = server::http::serve(calls, options, signals) => served.unwrap(),
            _ = input => {}
        }
    });
}

/// A server in a process of its own, and its folder.
struct Server {
    folder: TempDir,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts one of the ignored tests.
    fn start(test: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in [BOOM, "fine.txt"] {
            std::fs::write(folder.path().join(name), "one\n").unwrap();
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(format!("panics::{test}"));
        // So it prints nothing on a line of ours.
        command.args(["--exact", "--ignored", "--nocapture", "--quiet", "--test-threads=2"]);
        command.current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { folder, child, stdout }
    }

    /// The next line that is a JSON object: the test runner prints others before.
    fn receive(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the server has ended");
            if line.starts_with('{') {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.child.stdin.as_ref().unwrap(), "{message}").unwrap();
        self.receive()
    }

    // Only here is a path written as it is in a URI.
    #[cfg(unix)]
    fn uri(&self, name: &str) -> String {
        format!("file://{}/{name}", self.folder.path().display())
    }

    /// Ends the server, which is well and has left everything as it was. `count` panics are in its log.
    fn end(self, count: usize) {
        let output = self.child.wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{}: {log}", output.status);
        let lines: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {log}")))
            .collect();
        // A panic is logged like everything else. Its own message might hold contents of files.
        assert!(!log.contains("contents of the file"), "{log}");
        let logged = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
        assert_eq!(logged("panic"), count, "{log}");
        assert_eq!(lines.iter().filter(|line| line["code"] == -32603).count(), count, "{log}");
        let boom = std::fs::read_to_string(self.folder.path().join(BOOM)).unwrap();
        assert_eq!(boom, "one\n");
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 2);
    }
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn check_panicked(answer: &Value) {
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("Internal error")));
    assert!(answer.get("result").is_none(), "{answer}");
}

#[test]
fn a_panic_harms_no_other_call_on_stdio() {
    let mut server = Server::start("serves_on_stdio");
    let (boom, fine) = (json!({ "name": BOOM }), json!({ "name": "fine.txt" }));
    let edit = json!({ "name": BOOM, "append": "x" });
    for _ in 0..3 {
        check_panicked(&server.request("tools/call", tool("read_file", boom.clone())));
        check_panicked(&server.request("tools/call", tool("edit_file", edit.clone())));
        check_panicked(&server.request("edit_file", edit.clone()));
        let read = server.request("tools/call", tool("read_file", fine.clone()));
        assert_eq!(read["result"]["content"][0]["text"], "File: fine.txt (1 lines)\n\none");
    }
    #[cfg(unix)]
    {
        check_panicked(&server.request("resources/read", json!({ "uri": server.uri(BOOM) })));
        let read = server.request("resources/read", json!({ "uri": server.uri("fine.txt") }));
        assert_eq!(read["result"]["contents"][0]["text"], "one\n");
    }
    let edit = json!({ "name": "fine.txt", "append": "two" });
    let edited = server.request("tools/call", tool("edit_file", edit));
    assert_eq!(edited["result"]["isError"], false, "{edited}");
    server.end(if cfg!(unix) { 10 } else { 9 });
}

/// A connection that stays open.
struct Connection(BufReader<TcpStream>);

impl Connection {
    /// A JSON body, and the status and JSON body of its answer.
    fn post(&mut self, path: &str, headers: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.0.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let head = head.to_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap_or_else(|| panic!("{head}"));
        let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    fn mcp(&mut self, path: &str, method: &str, params: Value) -> (u16, Value) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post(path, "", &message)
    }

    /// A request in the protocol version without a handshake.
    fn modern(&mut self, method: &str, name: &str, mut params: Value) -> (u16, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test-client", "version": "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
        );
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post("/mcp", &headers, &message)
    }
}

#[test]
fn a_panic_harms_no_other_call_over_http() {
    let mut server = Server::start("serves_over_http");
    let address = server.receive()["address"].as_str().unwrap().to_owned();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let mut connection = Connection(BufReader::new(stream));
    let check = |(status, answer): (u16, Value)| {
        assert_eq!(status, 500, "{answer}");
        check_panicked(&answer);
        answer
    };
    let (boom, fine) = (json!({ "name": BOOM }), json!({ "name": "fine.txt" }));
    let edit = json!({ "name": BOOM, "append": "x" });
    for _ in 0..3 {
        for path in ["/", "/mcp"] {
            let read = tool("read_file", boom.clone());
            assert_eq!(check(connection.mcp(path, "tools/call", read))["id"], 1);
        }
        check(connection.modern("tools/call", "edit_file", tool("edit_file", edit.clone())));
        check(connection.post("/read_file", "", &boom));
        check(connection.post("/edit_file", "", &edit));
        let (status, read) = connection.post("/read_file", "", &fine);
        assert_eq!((status, &read["content"]), (200, &json!("one")), "{read}");
    }
    #[cfg(unix)]
    for is_modern in [false, true] {
        let mut read = |name: &str| {
            let uri = server.uri(name);
            let params = json!({ "uri": uri });
            if is_modern {
                connection.modern("resources/read", &uri, params)
            } else {
                connection.mcp("/mcp", "resources/read", params)
            }
        };
        assert_eq!(check(read(BOOM))["id"], 1);
        let (status, read) = read("fine.txt");
        let text = &read["result"]["contents"][0]["text"];
        assert_eq!((status, text), (200, &json!("one\n")), "{read}");
    }
    let (_, read) = connection.mcp("/mcp", "tools/call", tool("read_file", fine));
    assert_eq!(read["result"]["content"][0]["text"], "File: fine.txt (1 lines)\n\none");
    server.end(if cfg!(unix) { 17 } else { 15 });
}
