//! A server on HTTP, and a client that says exactly what a test wants said.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[cfg(unix)]
use super::send_signal;
use super::{Folder, HANG, binary, modern, wait_for_end};

/// A running server on HTTP. Its log is always read.
pub struct HttpServer {
    child: Child,
    pub port: u16,
    log: Option<JoinHandle<String>>,
}

/// A port that is likely to be free: below those that systems give to connections.
pub fn some_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id() * 97 + NEXT.fetch_add(1, Ordering::Relaxed);
    u16::try_from(20_000 + number % 12_000).unwrap()
}

impl Folder {
    pub fn http(&self) -> HttpServer {
        self.http_with(&[])
    }

    pub fn http_with(&self, flags: &[&str]) -> HttpServer {
        HttpServer::start(self.path(), flags, &[])
    }
}

impl HttpServer {
    pub fn start(dir: &Path, flags: &[&str], env: &[(&str, &str)]) -> Self {
        for _ in 0..100 {
            let port = some_port();
            let mut command = binary();
            command.arg(format!("--dir={}", dir.display())).arg(format!("--port={port}"));
            command.args(flags).envs(env.iter().copied());
            match Self::spawn(&mut command, port) {
                Ok(server) => return server,
                Err(told) if told.contains("already in use") => {}
                Err(told) => panic!("the server does not start: {told}"),
            }
        }
        panic!("no port is free")
    }

    /// Waits until it says that it is ready; `Err` with what it said instead.
    pub fn spawn(command: &mut Command, port: u16) -> std::result::Result<Self, String> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, ready) = mpsc::channel();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            loop {
                let start = log.len();
                if stderr.read_line(&mut log).unwrap() == 0 {
                    return log;
                }
                if log[start..].contains(r#""event":"ready""#) {
                    let _ = sender.send(());
                }
            }
        });
        match ready.recv_timeout(HANG) {
            Ok(()) => Ok(Self { child, port, log: Some(log) }),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                child.wait().unwrap();
                Err(log.join().unwrap())
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("not ready within {HANG:?}")
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection of its own.
    pub fn connect(&self) -> Client {
        Client::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// A request on a connection of its own, and its answer.
    pub fn send(&self, request: &Request) -> Response {
        self.connect().send(request)
    }

    /// A call of dialect B: its status is 200.
    pub fn rest(&self, name: &str, arguments: Value) -> Value {
        self.connect().rest(name, arguments)
    }

    /// An MCP client that needs no handshake to talk to us.
    pub fn mcp(&self) -> Mcp {
        Mcp { client: self.connect(), next_id: 1, modern: false }
    }

    /// An MCP client of the version without a handshake.
    pub fn modern(&self) -> Mcp {
        Mcp { modern: true, ..self.mcp() }
    }

    /// Comes back when the server has done everything that it was sent before: it has been around its loop often.
    pub fn settle(&self) {
        let mut client = self.connect();
        for _ in 0..50 {
            assert_eq!(client.send(&Request::new("GET", "/health")).status, 200);
        }
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        send_signal(self.pid(), signal);
    }

    /// Waits for the end; status and log.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = wait_for_end(&mut self.child);
        (status, self.log.take().unwrap().join().unwrap())
    }

    /// Tells it to stop; its log. All must be well.
    #[cfg(not(unix))]
    pub fn stop(self) -> String {
        String::new()
    }

    #[cfg(unix)]
    pub fn stop(self) -> String {
        self.signal(rustix::process::Signal::TERM);
        let (status, log) = self.wait();
        assert!(status.success(), "{status}: {log}");
        log
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        #[cfg(unix)]
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(rustix::process::Signal::TERM);
            let until = Instant::now() + Duration::from_secs(5);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as it will be written: nothing is added but the length of its body.
#[derive(Clone)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        let headers = vec![("Host".into(), "localhost".into())];
        let (method, path) = (method.into(), path.into());
        Self { method, path, headers, body: Vec::new(), chunked: false }
    }

    /// A JSON body.
    pub fn post(path: &str, body: impl AsRef<[u8]>) -> Self {
        let mut request =
            Self::new("POST", path).with("Content-Type", "application/json; charset=utf-8");
        request.body = body.as_ref().to_vec();
        request
    }

    /// A JSON-RPC request to the MCP endpoint.
    pub fn mcp(method: &str, params: Value) -> Self {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Self::post("/mcp", message.to_string())
    }

    /// The same as a client of 2026-07-28 sends it.
    pub fn modern(method: &str, params: Value) -> Self {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(String::from);
        let request = Self::mcp(method, modern(params))
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", method);
        match name {
            Some(name) => request.with("Mcp-Name", &name),
            None => request,
        }
    }

    pub fn tool(name: &str, arguments: Value) -> Self {
        Self::mcp("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// One more header.
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// This header, and no other of its name.
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub fn to(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// In chunks, its length not told before.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Everything before the body, with a length or none.
    pub fn head(&self, length: Option<usize>) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if let Some(length) = length {
            write!(head, "Content-Length: {length}\r\n").unwrap();
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        if self.chunked {
            let mut bytes = self.clone().and("Transfer-Encoding", "chunked").head(None);
            for chunk in self.body.chunks(50_000) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            return bytes;
        }
        let length = (self.method == "POST" || !self.body.is_empty()).then_some(self.body.len());
        [self.head(length), self.body.clone()].concat()
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The header of that name, of which there is one at most.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }

    /// The body, which must say that it is JSON, to those who asked for it and to no web page.
    pub fn json(&self) -> Value {
        assert_eq!(self.header("Content-Type"), Some("application/json; charset=utf-8"), "{self}");
        self.check_headers();
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Nothing that lets web pages in, nothing that would have to be remembered.
    pub fn check_headers(&self) {
        for (name, _) in &self.headers {
            let name = name.to_ascii_lowercase();
            let foreign = name.starts_with("access-control") || name == "mcp-session-id";
            assert!(!foreign, "{name}: {self}");
        }
    }

    /// That it has this status and an error with this code; its message.
    pub fn refusal(&self, status: u16, code: i64) -> String {
        assert_eq!(self.status, status, "{self}");
        let body = self.json();
        assert_eq!(body["error"]["code"], code, "{self}");
        assert!(body.get("result").is_none(), "{self}");
        body["error"]["message"].as_str().unwrap_or_else(|| panic!("{self}")).to_owned()
    }
}

impl std::fmt::Display for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(2000)]);
        write!(f, "{} {:?} {body}", self.status, self.headers)
    }
}

/// One connection, kept alive.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(to: impl std::net::ToSocketAddrs) -> Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(HANG))?;
        stream.set_write_timeout(Some(HANG))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// A request and its answer. Who is refused early may not be able to write it all.
    pub fn try_send(&mut self, request: &Request) -> Result<Response> {
        let written = self.write(&request.bytes());
        let response = self.receive_to(&request.method);
        response.or_else(|error| written.and(Err(error)))
    }

    pub fn send(&mut self, request: &Request) -> Response {
        self.try_send(request).unwrap()
    }

    /// A call of dialect B: its status is 200.
    pub fn rest(&mut self, name: &str, arguments: Value) -> Value {
        let response = self.send(&Request::post(&format!("/{name}"), arguments.to_string()));
        assert_eq!(response.status, 200, "{response}");
        response.json()
    }

    /// The next answer, to anything but HEAD.
    pub fn receive(&mut self) -> Result<Response> {
        self.receive_to("POST")
    }

    fn head(&mut self) -> Result<(u16, Vec<(String, String)>)> {
        let start = self.line()?;
        let status = start.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer of HTTP: {start:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok((status, headers))
    }

    fn receive_to(&mut self, method: &str) -> Result<Response> {
        let (status, headers) = self.head()?;
        let mut response = Response { status, headers, body: Vec::new() };
        if status == 100 {
            return Ok(response);
        }
        let length = response.header("Content-Length").map(|length| length.parse().unwrap());
        if method == "HEAD" || status == 204 {
            return Ok(response);
        }
        if response.header("Transfer-Encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).unwrap();
                self.read(size, &mut response.body)?;
                assert_eq!(self.line()?, "");
                if size == 0 {
                    return Ok(response);
                }
            }
        }
        self.read(length.unwrap_or_else(|| panic!("no length: {response}")), &mut response.body)?;
        Ok(response)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(Error::new(ErrorKind::UnexpectedEof, line)),
        }
    }

    fn read(&mut self, size: usize, into: &mut Vec<u8>) -> Result<()> {
        let at = into.len();
        into.resize(at + size, 0);
        self.0.read_exact(&mut into[at..])
    }

    /// That the server has nothing more to say, and says so by closing the connection.
    pub fn assert_closed(&mut self) {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
            Ok(_) => assert_eq!(String::from_utf8_lossy(&rest), ""),
        }
    }

    /// Takes a little of what the server has sent, if there is any, and forgets it.
    pub fn take_a_little(&self) {
        let mut stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let _ = stream.read(&mut [0; 1000]);
    }

    /// A request whose answer is a stream of events.
    pub fn open_events(mut self, request: &Request) -> Events {
        self.write(&request.bytes()).unwrap();
        let (status, headers) = self.head().unwrap();
        let response = Response { status, headers, body: Vec::new() };
        assert_eq!(status, 200, "{response}");
        assert_eq!(response.header("Content-Type"), Some("text/event-stream"), "{response}");
        Events { client: self, buffer: Vec::new() }
    }

    /// Whether the server has neither said anything nor hung up.
    pub fn is_silent(&self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let found = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        found.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Says that nothing more will come.
    pub fn close_writing(&self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Another handle of the connection, to write while answers are read.
    pub fn writer(&self) -> TcpStream {
        self.0.get_ref().try_clone().unwrap()
    }

    /// Hangs up, whatever is under way.
    pub fn hang_up(self) {
        self.0.get_ref().shutdown(Shutdown::Both).unwrap();
    }
}

/// A stream of events: an answer with something before it.
pub struct Events {
    client: Client,
    buffer: Vec<u8>,
}

impl Events {
    /// The next message; `None` at the end. What only keeps the connection alive is passed over.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\n\n");
            let Some(end) = end else {
                let size = usize::from_str_radix(&self.client.line().unwrap(), 16).unwrap();
                self.client.read(size, &mut self.buffer).unwrap();
                assert_eq!(self.client.line().unwrap(), "");
                if size == 0 {
                    assert!(self.buffer.is_empty(), "half an event");
                    return None;
                }
                continue;
            };
            let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
            if let Some(data) = event.strip_prefix(b"data: ") {
                return Some(serde_json::from_slice(data.trim_ascii_end()).unwrap());
            }
            assert!(event.starts_with(b":"), "{}", String::from_utf8_lossy(&event));
        }
    }

    pub fn hang_up(self) {
        self.client.hang_up();
    }
}

/// An MCP client on one connection, of either era.
pub struct Mcp {
    client: Client,
    next_id: i64,
    modern: bool,
}

impl Mcp {
    /// The request as this client writes it, and its id.
    fn message(&mut self, method: &str, params: Value) -> (i64, Request) {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = if self.modern {
            Request::modern(method, params.clone())
        } else {
            Request::mcp(method, params.clone())
        };
        let params = if self.modern { modern(params) } else { params };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        request.body = message.to_string().into_bytes();
        let accept = "application/json, text/event-stream";
        (id, request.with("Accept", accept))
    }

    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Response> {
        let (_, request) = self.message(method, params);
        self.client.try_send(&request)
    }

    /// A request and its answer, whose status is 200.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let (id, request) = self.message(method, params);
        let response = self.client.send(&request);
        assert_eq!(response.status, 200, "{response}");
        let answer = response.json();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let response = self.client.send(&Request::post("/mcp", message.to_string()));
        assert_eq!((response.status, &response.body[..]), (202, &b""[..]), "{response}");
        response.check_headers();
    }

    /// Calls a tool; the whole answer.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool that must succeed; its first text.
    pub fn text(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.tool(name, arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}
