//! The server on HTTP, for as long as it is used.

use std::io::{BufRead, BufReader, Error, Result, copy, sink};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that does not outlive its use.
pub struct Server {
    process: Child,
    pub port: u16,
}

impl Server {
    pub fn start(binary: &Path, folder: &Path) -> Result<Self> {
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let mut process = Command::new(binary)
                .arg(format!("--dir={}", folder.display()))
                .arg(format!("--port={port}"))
                .stderr(Stdio::piped())
                .spawn()?;
            let log = process.stderr.take();
            let server = Self { process, port };
            let Some(mut log) = log.map(BufReader::new) else { continue };
            let mut first = String::new();
            log.read_line(&mut first)?;
            if first.contains("\"ready\"") {
                std::thread::spawn(move || copy(&mut log, &mut sink()));
                return Ok(server);
            }
        }
        Err(Error::other("no port is free"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
