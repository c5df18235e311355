//! A server on HTTP and a client of it, as small as they can be.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{HANG, command};

pub struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    /// Comes back when it takes connections.
    pub fn start(dir: &Path, flags: &[&str]) -> Self {
        let until = Instant::now() + HANG;
        // A free port may be taken before the server has it: then another one is tried.
        while Instant::now() < until {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = command(dir, flags).arg(format!("--port={port}")).spawn().unwrap();
            let mut server = Self { child, port };
            while matches!(server.child.try_wait(), Ok(None)) && Instant::now() < until {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return server;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        panic!("the server does not listen");
    }

    pub fn connect(&self) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection(BufReader::new(stream))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One that is kept alive.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Calls a tool by MCP; the whole answer.
    pub fn tool(&mut self, name: &str, arguments: &Value) -> Result<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        self.post("mcp", &message)
    }

    /// Posts to `/path`; the answer, whatever its status.
    pub fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let head = format!(
            "POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.get_mut().write_all([head, body].concat().as_bytes())?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = self.line()?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(Error::other)?;
            }
            chunked |= header.starts_with("transfer-encoding:");
        }
        let mut answer = Vec::new();
        while chunked {
            length = u64::from_str_radix(&self.line()?, 16).map_err(Error::other)?;
            chunked = length > 0;
            self.take(length, &mut answer)?;
            self.line()?;
            length = 0;
        }
        self.take(length, &mut answer)?;
        serde_json::from_slice(&answer).map_err(Error::other)
    }

    fn take(&mut self, length: u64, into: &mut Vec<u8>) -> Result<()> {
        match (&mut self.0).take(length).read_to_end(into)? {
            read if read as u64 == length => Ok(()),
            _ => Err(Error::other("the answer ends too early")),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or_else(|| Error::other("no answer"))?;
        Ok(line.to_owned())
    }
}
