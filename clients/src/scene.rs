//! A folder with files, and servers that serve it.

use std::fs;
use std::io::{BufRead as _, BufReader, copy, sink};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{Outcome, Trouble};

/// A folder of its own for each client, with the server's binary at hand.
pub struct Scene {
    pub binary: PathBuf,
    folder: TempDir,
}

impl Scene {
    pub fn new(binary: &Path) -> Outcome<Self> {
        let folder = tempfile::tempdir().map_err(|e| Trouble::NotRun(e.to_string()))?;
        Ok(Self { binary: binary.into(), folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn put(&self, name: &str, text: &str) -> Outcome<()> {
        fs::write(self.path(name), text).map_err(|e| Trouble::Wrong(format!("{name}: {e}")))
    }

    pub fn text(&self, name: &str) -> Outcome<String> {
        fs::read_to_string(self.path(name)).map_err(|e| Trouble::Wrong(format!("{name}: {e}")))
    }

    /// The arguments that make the binary serve the folder on stdio.
    pub fn stdio_arguments(&self, more: &[&str]) -> Vec<String> {
        let dir = format!("--dir={}", self.folder().display());
        let fixed = [dir, "--transport=stdio".into(), "--log=error".into()];
        fixed.into_iter().chain(more.iter().map(ToString::to_string)).collect()
    }

    /// Serves the folder over HTTP.
    pub fn serve(&self, more: &[&str]) -> Outcome<OnHttp> {
        let trouble = |e: std::io::Error| Trouble::NotRun(e.to_string());
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
            let port = port.map_err(trouble)?.port();
            let mut child = Command::new(&self.binary)
                .arg(format!("--dir={}", self.folder().display()))
                .arg(format!("--port={port}"))
                .args(more)
                .stderr(Stdio::piped())
                .spawn()
                .map_err(trouble)?;
            let log = child.stderr.take();
            let server = OnHttp { child, url: format!("http://127.0.0.1:{port}/mcp") };
            let Some(log) = log else { continue };
            let (mut log, mut first) = (BufReader::new(log), String::new());
            log.read_line(&mut first).map_err(trouble)?;
            if first.contains("\"ready\"") {
                std::thread::spawn(move || copy(&mut log, &mut sink()));
                return Ok(server);
            }
        }
        Err(Trouble::NotRun("no port is free".into()))
    }
}

/// A server that does not outlive its use.
pub struct OnHttp {
    child: Child,
    pub url: String,
}

impl Drop for OnHttp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
