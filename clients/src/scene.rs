//! A folder with files, and servers that serve it.

use std::fs;
use std::io::{BufRead as _, BufReader, copy, sink};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::ways::Transport;
use crate::{Outcome, Trouble};

/// A folder of its own for each client, with the server's binary at hand.
pub struct Scene {
    pub binary: PathBuf,
    folder: TempDir,
    aside: TempDir,
}

impl Scene {
    pub fn new(binary: &Path) -> Outcome<Self> {
        let folder = || tempfile::tempdir().map_err(|e| Trouble::NotRun(e.to_string()));
        Ok(Self { binary: binary.into(), folder: folder()?, aside: folder()? })
    }

    /// The binary of the ACP agent, which is built beside the server's.
    pub fn agent(&self) -> Outcome<PathBuf> {
        let name = format!("codex-cli-acp{}", std::env::consts::EXE_SUFFIX);
        let agent = self.binary.with_file_name(name);
        if agent.is_file() {
            return Ok(agent);
        }
        Err(Trouble::NotRun(format!("{} is not built", agent.display())))
    }

    /// What is served.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is not: for what clients keep and write.
    pub fn aside(&self) -> &Path {
        self.aside.path()
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

    /// A server of the folder, as a client is told of it.
    pub fn server(&self, transport: Transport, more: &[&str]) -> Outcome<Server> {
        match transport {
            Transport::Http => self.serve(more).map(Server::Http),
            Transport::Stdio => {
                let binary = self.binary.display().to_string();
                Ok(Server::Stdio([vec![binary], self.stdio_arguments(more)].concat()))
            }
        }
    }

    /// Serves the folder over HTTP.
    pub fn serve(&self, more: &[&str]) -> Outcome<OnHttp> {
        let trouble = |e: std::io::Error| Trouble::NotRun(e.to_string());
        let mut said = String::new();
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
            let port = port.map_err(trouble)?.port();
            let mut child = Command::new(&self.binary)
                .arg(format!("--dir={}", self.folder().display()))
                .arg(format!("--port={port}"))
                .args(more)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(trouble)?;
            let log = child.stderr.take();
            let server = OnHttp { child, url: format!("http://127.0.0.1:{port}/mcp") };
            let Some(log) = log else { continue };
            let mut log = BufReader::new(log);
            said.clear();
            log.read_line(&mut said).map_err(trouble)?;
            if said.contains("\"ready\"") {
                std::thread::spawn(move || copy(&mut log, &mut sink()));
                return Ok(server);
            }
        }
        Err(Trouble::Wrong(format!("the server does not listen: {}", said.trim())))
    }
}

pub enum Server {
    /// The words of the command that starts it.
    Stdio(Vec<String>),
    Http(OnHttp),
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
