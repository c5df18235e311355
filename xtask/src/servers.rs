//! The server, started and spoken to: on stdio and on HTTP.

use std::fs;
use std::io::{BufRead, BufReader, Error, Read, Result, Write, copy, sink};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A process that does not outlive its use.
pub struct Process(Child);

impl Process {
    /// A figure of `/proc/<pid>/status`, in bytes.
    pub fn memory(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| Error::other("no such figure"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// On stdio.
pub struct OnStdio {
    pub process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// How long it took until its first answer.
    pub started: Duration,
}

impl OnStdio {
    pub fn start(binary: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command
            .arg(format!("--dir={}", folder.display()))
            .args(["--transport=stdio", "--log=error"]);
        Self::greet(&mut command, &json!("2025-11-25"))
    }

    /// The agent, without a Codex behind it.
    pub fn start_agent(binary: &Path) -> Result<Self> {
        Self::greet(Command::new(binary).arg("--codex=/nowhere/codex"), &json!(1))
    }

    fn greet(command: &mut Command, version: &Value) -> Result<Self> {
        let since = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::other("no pipes"));
        };
        let (process, output) = (Process(child), BufReader::new(output));
        let mut server = Self { process, input, output, started: Duration::ZERO };
        let client = json!({ "name": "xtask", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        server.request("initialize", &params)?;
        server.started = since.elapsed();
        Ok(server)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<String> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.input, "{message}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        if answer.contains("\"result\"") { Ok(answer) } else { Err(Error::other(answer)) }
    }

    /// Reads a file of at least a megabyte.
    pub fn read_large(&mut self, name: &str) -> Result<()> {
        let params = json!({ "name": "read_file", "arguments": { "name": name } });
        let answer = self.request("tools/call", &params)?;
        if answer.len() > 1_000_000 { Ok(()) } else { Err(Error::other(answer)) }
    }
}

/// On HTTP.
pub struct OnHttp {
    pub process: Process,
    pub port: u16,
}

impl OnHttp {
    pub fn start(binary: &Path, folder: &Path) -> Result<Self> {
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let mut child = Command::new(binary)
                .arg(format!("--dir={}", folder.display()))
                .arg(format!("--port={port}"))
                .stderr(Stdio::piped())
                .spawn()?;
            let Some(log) = child.stderr.take() else { continue };
            let (process, mut log) = (Process(child), BufReader::new(log));
            let mut first = String::new();
            log.read_line(&mut first)?;
            if first.contains("\"ready\"") {
                std::thread::spawn(move || copy(&mut log, &mut sink()));
                return Ok(Self { process, port });
            }
        }
        Err(Error::other("no port is free"))
    }

    /// 64 clients with 200 calls each, among 1,000 connections that say nothing: whole reads of `large`, parts of it,
    /// edits, listings.
    pub fn load(&self, large: &str) -> Result<()> {
        let connect = || TcpStream::connect(("127.0.0.1", self.port));
        let idle = (0..1000).map(|_| connect()).collect::<Result<Vec<_>>>()?;
        let client = |number: usize| {
            let mut stream = connect()?;
            (0..200).try_for_each(|call| post(&mut stream, large, number, call))
        };
        let outcome = std::thread::scope(|scope| {
            let clients: Vec<_> =
                (0..64).map(|number| scope.spawn(move || client(number))).collect();
            let panicked = |_| Err(Error::other("a client panicked"));
            clients.into_iter().try_for_each(|client| client.join().unwrap_or_else(panicked))
        });
        drop(idle);
        outcome
    }
}

fn post(stream: &mut TcpStream, large: &str, client: usize, call: usize) -> Result<()> {
    let (path, body) = match call % 4 {
        0 if call.is_multiple_of(40) => ("read_file", json!({ "name": large })),
        0 | 1 => ("list_files", json!({})),
        2 => ("read_file", json!({ "name": large, "start_line": 100, "end_line": 110 })),
        _ => {
            let name = format!("edited-{}.txt", client % 8);
            ("edit_file", json!({ "name": name, "append": "x", "create_if_missing": true }))
        }
    };
    let body = body.to_string();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).map(|_| line)
    };
    let status = line()?;
    if !status.starts_with("HTTP/1.1 200") {
        return Err(Error::other(status));
    }
    let (mut length, mut chunked) = (0, false);
    loop {
        let header = line()?.to_ascii_lowercase();
        if header == "\r\n" {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(Error::other)?;
        }
        chunked |= header.starts_with("transfer-encoding:");
    }
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(Error::other)?;
        copy(&mut reader.by_ref().take(size + 2), &mut sink())?;
        chunked = size > 0;
    }
    copy(&mut reader.by_ref().take(length), &mut sink()).map(drop)
}
