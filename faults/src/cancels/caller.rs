//! Somebody who calls a server and takes the call back; and what the server's log says of it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{self, Client, plain, post};
use crate::server::{Answer, HANG, NoAnswer, cancellation, command};
use crate::tracer::{Plan, Traced};

/// How a call is made, and taken back: on stdio by `notifications/cancelled`, over HTTP by closing the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Stdio,
    /// As a plain method.
    StdioMethod,
    /// As clients of 2026-07-28 do it.
    Http,
    /// As clients of 2025-06-18 do it.
    HttpBefore,
    /// As a plain method.
    HttpMethod,
}

impl Way {
    pub const ALL: [Self; 5] =
        [Self::Stdio, Self::StdioMethod, Self::Http, Self::HttpBefore, Self::HttpMethod];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StdioMethod => "stdio, plain methods",
            Self::Http => "HTTP of 2026-07-28",
            Self::HttpBefore => "HTTP of 2025-06-18",
            Self::HttpMethod => "HTTP, plain methods",
        }
    }

    pub fn is_plain(self) -> bool {
        matches!(self, Self::StdioMethod | Self::HttpMethod)
    }

    pub fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::HttpBefore | Self::HttpMethod)
    }
}

/// What the log says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    Ok,
    Cancelled,
    Otherwise(String),
}

impl Logged {
    fn read(line: &Value) -> Self {
        match (line["outcome"].as_str(), line["message"].as_str()) {
            (Some("ok"), _) => Self::Ok,
            (Some("error"), Some("cancelled")) => Self::Cancelled,
            _ => Self::Otherwise(line.to_string()),
        }
    }
}

/// A call that was made.
pub struct Called {
    id: i64,
    /// What the log calls it.
    name: String,
    /// Its own, over HTTP.
    connection: Option<Client>,
}

pub struct Caller {
    pub traced: Traced,
    way: Way,
    /// Over HTTP.
    port: u16,
    next_id: i64,
    log: Receiver<Value>,
    logged: HashMap<String, Logged>,
    /// Those that came though nobody waited for them, and all others on stdio.
    answers: HashMap<i64, Answer>,
}

impl Caller {
    pub fn start(dir: &Path, way: Way, flags: &[&str]) -> Self {
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let transport =
                if way.is_http() { format!("--port={port}") } else { "--transport=stdio".into() };
            let flags = [&["--log=info", transport.as_str()], flags].concat();
            let mut command = command(dir, &flags);
            command.stderr(Stdio::piped());
            let mut traced = Traced::spawn(dir, command, Plan::default());
            let log = BufReader::new(traced.log.take().unwrap());
            let (sender, lines) = mpsc::channel();
            std::thread::spawn(move || {
                for line in log.lines().map_while(Result::ok) {
                    let _ = sender.send(serde_json::from_str(&line).unwrap_or_default());
                }
            });
            if lines.recv_timeout(HANG).is_ok_and(|line: Value| line["event"] == "ready") {
                let (logged, answers) = (HashMap::new(), HashMap::new());
                return Self { traced, way, port, next_id: 1, log: lines, logged, answers };
            }
        }
        panic!("the server does not start");
    }

    /// Makes a call without waiting for its answer.
    pub fn begin(&mut self, tool: &str, arguments: &Value) -> Called {
        if !self.way.is_http() {
            let params = json!({ "name": tool, "arguments": arguments });
            let (method, params) =
                if self.way.is_plain() { (tool, arguments) } else { ("tools/call", &params) };
            let id = self.traced.server.request(method, params).unwrap();
            return Called { id, name: id.to_string(), connection: None };
        }
        // Over HTTP ids need not differ, but that is how the log tells calls apart. Plain methods it counts itself.
        let id = self.next_id;
        self.next_id += 1;
        let name = if self.way.is_plain() { format!("rest-{id}") } else { id.to_string() };
        let connection = self.connect();
        connection.write(&self.http_request(id, tool, arguments)).unwrap();
        Called { id, name, connection: Some(connection) }
    }

    fn http_request(&self, id: i64, tool: &str, arguments: &Value) -> Vec<u8> {
        let mut params = json!({ "name": tool, "arguments": arguments });
        let headers = match self.way {
            Way::HttpMethod => return plain(tool, arguments),
            Way::Http => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "faults", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                format!(
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                     Mcp-Name: {tool}\r\n"
                )
            }
            _ => "MCP-Protocol-Version: 2025-06-18\r\n".into(),
        };
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        post("/mcp", &headers, &message.to_string())
    }

    /// One the server knows of.
    fn connect(&self) -> Client {
        let mut connection = Client::connect(self.port).unwrap();
        connection.send(HEALTH).unwrap();
        connection
    }

    /// Comes back when the server has taken in all that was sent before. It has one thread for the protocol, which does
    /// one thing after another, and that thread answers this.
    pub fn settle(&mut self) -> Result<(), NoAnswer> {
        if self.way.is_http() {
            let answer = Client::connect(self.port).and_then(|mut client| client.send(HEALTH));
            return answer.map(drop).map_err(|_| NoAnswer::Late);
        }
        let id = self.traced.server.request("ping", &json!({}))?;
        self.wait_for(id).map(drop)
    }

    /// Takes a call back; the server knows then.
    pub fn cancel(&mut self, called: &mut Called) -> Result<(), String> {
        match &mut called.connection {
            None => self.traced.server.cancel(called.id).map_err(|why| format!("{why:?}"))?,
            Some(connection) => {
                // That is how a connection is closed, and this way it can be seen what still comes.
                connection.close_writing();
                let answers =
                    connection.receive_all(HANG).map_err(|e| format!("connected: {e}"))?;
                for answer in answers {
                    self.answers.insert(called.id, Answer(answer.json()));
                }
            }
        }
        self.settle().map_err(|why| format!("not heard: {why:?}"))
    }

    /// Takes something else back: on stdio a call that is over, over HTTP a call of that id that somebody else has made.
    pub fn cancel_another(&mut self, called: &Called) -> Result<(), String> {
        if self.way.is_http() {
            let mut another = self.connect();
            let notice = cancellation(called.id).to_string();
            let answer = another.send(&post("/mcp", "", &notice)).map_err(|e| e.to_string())?;
            drop(another);
            if answer.status != 202 {
                return Err(answer.short());
            }
        } else {
            self.traced.server.cancel(called.id - 1).map_err(|why| format!("{why:?}"))?;
        }
        self.settle().map_err(|why| format!("not heard: {why:?}"))
    }

    /// Whether the call comes to where it is held; `false` if it ends before.
    pub fn is_held(&mut self, called: &Called) -> bool {
        let until = Instant::now() + HANG;
        while self.traced.seen().hit.is_none() {
            assert!(Instant::now() < until, "it neither works nor ends");
            if self.logged(called, Duration::from_micros(200)).is_some() {
                return self.traced.seen().hit.is_some();
            }
        }
        true
    }

    /// Waits until the plan has seen so many calls of the file system.
    pub fn wait_until_seen(&self, calls: usize) {
        let until = Instant::now() + HANG;
        while self.traced.seen().calls.len() < calls {
            assert!(Instant::now() < until, "it never comes to that: {:?}", self.traced.seen());
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// What the log says of a call when it is over.
    pub fn logged(&mut self, called: &Called, patience: Duration) -> Option<Logged> {
        let until = Instant::now() + patience;
        while !self.logged.contains_key(&called.name) {
            match self.log.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line["event"] == "call" => {
                    let name = line["request_id"].as_str().unwrap_or_default().to_owned();
                    self.logged.insert(name, Logged::read(&line));
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.logged.get(&called.name).cloned()
    }

    /// Whether a call that was not taken back is answered, and well.
    pub fn succeeds(&mut self, called: &mut Called) -> Result<(), String> {
        let answer = match &mut called.connection {
            None => self.wait_for(called.id).map_err(|why| format!("no answer: {why:?}"))?.0,
            Some(connection) => connection.receive().map_err(|e| e.to_string())?.json(),
        };
        let is_bare = self.way == Way::HttpMethod;
        let result = if is_bare { &answer } else { &answer["result"] };
        let is_success = result["isError"] == false || result["success"] == true;
        if is_success { Ok(()) } else { Err(format!("answered: {answer}")) }
    }

    /// Whether a call that was taken back was answered so far.
    pub fn is_answered(&self, called: &Called) -> bool {
        self.answers.contains_key(&called.id)
    }

    /// Calls a tool and waits.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, NoAnswer> {
        if self.way.is_http() {
            let answer = self.connect().send(&http::tool(0, tool, arguments));
            return answer.map(|answer| Answer(answer.json())).map_err(|_| NoAnswer::Late);
        }
        let id = self.traced.server.send(tool, arguments)?;
        self.wait_for(id)
    }

    /// The answer to a request on stdio. Others that come before it are kept.
    fn wait_for(&mut self, id: i64) -> Result<Answer, NoAnswer> {
        while !self.answers.contains_key(&id) {
            let answer = self.traced.server.receive(HANG)?;
            self.keep(answer);
        }
        self.answers.get(&id).cloned().ok_or(NoAnswer::Late)
    }

    /// Lets a server on stdio end, so that no answer can come any more.
    pub fn end(&mut self) {
        self.traced.server.close_input();
        while !self.way.is_http()
            && let Ok(answer) = self.traced.server.receive(HANG)
        {
            self.keep(answer);
        }
    }

    fn keep(&mut self, answer: Answer) {
        self.answers.insert(answer.0["id"].as_i64().unwrap_or_default(), answer);
    }
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
