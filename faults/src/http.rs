//! A server on HTTP, as clients see it who write what they like: bytes in, bytes out.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{HANG, await_end, binary, memory, signal};

pub struct HttpServer {
    child: Child,
    pub port: u16,
    lines: Arc<AtomicUsize>,
}

impl HttpServer {
    pub fn start(dir: &Path, flags: &[&str], env: &[(&str, &str)]) -> Self {
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new(binary());
            for name in ["FILE_EDITOR_TOKEN", "LISTEN_FDS", "LISTEN_PID"] {
                command.env_remove(name);
            }
            command.arg(format!("--dir={}", dir.display())).arg(format!("--port={port}"));
            command.arg("--log=warn").args(flags).envs(env.iter().copied());
            let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let log = BufReader::new(child.stderr.take().unwrap());
            let lines = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&lines);
            std::thread::spawn(move || {
                for _ in log.split(b'\n').map_while(Result::ok) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut server = Self { child, port, lines };
            let until = Instant::now() + HANG;
            while Instant::now() < until && server.is_running() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return server;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("the server does not start");
    }

    /// Ends it by the signal for it; why it did not end well.
    pub fn end(&mut self) -> std::result::Result<(), String> {
        signal(self.child.id(), rustix::process::Signal::TERM);
        await_end(&mut self.child)
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lines of its log so far.
    pub fn log_lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// How many it has open.
    pub fn descriptors(&self) -> u64 {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.map_or(0, |open| open.count() as u64)
    }

    /// A figure of `/proc/<pid>/status`, in KiB; none of a process that is gone.
    pub fn memory(&self, name: &str) -> u64 {
        memory(self.child.id(), name)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it would let a web page in.
    pub fn invites_pages(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("access-control"))
    }

    /// Enough of it to look into.
    pub fn short(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        format!("{} {body}", self.status)
    }
}

/// One connection.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(HANG))?;
        stream.set_write_timeout(Some(HANG))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub fn stream(&self) -> &TcpStream {
        self.0.get_ref()
    }

    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut stream = self.stream();
        stream.write_all(bytes)
    }

    pub fn close_writing(&self) {
        let _ = self.stream().shutdown(Shutdown::Write);
    }

    pub fn send(&mut self, request: &[u8]) -> Result<Answer> {
        let written = self.write(request);
        // Whoever is refused early may not be able to write it all.
        self.receive().or_else(|error| written.and(Err(error)))
    }

    /// The next answer that is not only a word in between.
    pub fn receive(&mut self) -> Result<Answer> {
        loop {
            let answer = receive(&mut self.0)?;
            if answer.status != 100 {
                return Ok(answer);
            }
        }
    }

    /// All answers until the server closes the connection; an error if it does not.
    pub fn receive_all(&mut self, patience: Duration) -> Result<Vec<Answer>> {
        self.stream().set_read_timeout(Some(patience))?;
        let mut answers = Vec::new();
        loop {
            match receive(&mut self.0) {
                Ok(answer) => answers.push(answer),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::InvalidData => {
                        return Err(error);
                    }
                    _ => return Ok(answers),
                },
            }
        }
    }
}

fn receive(from: &mut impl BufRead) -> Result<Answer> {
    let start = line(from)?;
    let no_http = || Error::new(ErrorKind::InvalidData, format!("no answer of HTTP: {start:.200}"));
    let status = start.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(no_http)?;
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => return Err(no_http()),
        }
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    if answer.header("transfer-encoding").is_some() {
        loop {
            let size = u64::from_str_radix(&line(from)?, 16).map_err(|_| no_http())?;
            take(from, size, &mut answer.body)?;
            line(from)?;
            if size == 0 {
                break;
            }
        }
    } else {
        take(from, length.unwrap_or(0), &mut answer.body)?;
    }
    Ok(answer)
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    from.take(64 << 10).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn take(from: &mut impl BufRead, size: u64, into: &mut Vec<u8>) -> Result<()> {
    let read = from.take(size).read_to_end(into)?;
    if read as u64 == size { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// A request with a JSON body; `headers` are whole lines.
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A call of a plain method.
pub fn plain(method: &str, arguments: &Value) -> Vec<u8> {
    post(&format!("/{method}"), "", &arguments.to_string())
}

/// A call of an MCP tool.
pub fn tool(id: usize, name: &str, arguments: &Value) -> Vec<u8> {
    let params = serde_json::json!({ "name": name, "arguments": arguments });
    let message =
        serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    post("/mcp", "", &message.to_string())
}

/// As many connections as the process may have.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
