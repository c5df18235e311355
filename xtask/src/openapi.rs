//! Schemathesis drives a real server by `docs/openapi.json`: every answer must be what the description says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::{Outcome, cargo, root};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

pub fn check() -> Outcome {
    let Some(schemathesis) = install()? else { return Ok(()) };
    crate::run(cargo().args(["build", "--quiet", "--bin", "file-editor"]))?;
    let folder = std::env::temp_dir().join(format!("file-editor-openapi-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let outcome = fs::write(folder.join("notes.txt"), "one\ntwo\nthree\n")
        .map_err(|e| e.to_string())
        .and_then(|()| Server::start(&folder))
        .and_then(|server| {
            crate::run(
                Command::new(schemathesis)
                    .args(["run", "docs/openapi.json", "--no-color", "--seed", "1"])
                    .args(["--phases", "coverage,fuzzing", "--max-examples", "100"])
                    // What a tool refuses is answered with 200 and `isError`: the status is for the transport.
                    .args(["--exclude-checks", "negative_data_rejection"])
                    .args(["--url", &format!("http://127.0.0.1:{}", server.port)]),
            )
        });
    let _ = fs::remove_dir_all(&folder);
    outcome
}

/// Installs it by name into the project's cache, once. `None` where there is no Python; under CI that is a fault.
fn install() -> Result<Option<PathBuf>, String> {
    let venv = root().join(".cache").join(SCHEMATHESIS.replace("==", "-"));
    let (bin, suffix) = if cfg!(windows) { ("Scripts", ".exe") } else { ("bin", "") };
    let program = venv.join(bin).join(format!("schemathesis{suffix}"));
    if program.exists() {
        return Ok(Some(program));
    }
    let python = if cfg!(windows) { "python" } else { "python3" };
    if crate::run(Command::new(python).args(["-m", "venv"]).arg(&venv)).is_err() {
        let message = "not checked: docs/openapi.json needs Python 3 with venv";
        println!("{message}");
        return if std::env::var_os("CI").is_some() { Err(message.into()) } else { Ok(None) };
    }
    let pip = venv.join(bin).join(format!("pip{suffix}"));
    crate::run(Command::new(pip).args(["install", "--quiet", SCHEMATHESIS]))?;
    Ok(Some(program))
}

/// The development build, listening.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &std::path::Path) -> Result<Self, String> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
        let binary =
            target.join("debug").join(format!("file-editor{}", std::env::consts::EXE_SUFFIX));
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let port = free.map_err(|e| e.to_string())?.port();
            let mut child = Command::new(&binary)
                .arg(format!("--dir={}", folder.display()))
                .arg(format!("--port={port}"))
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|e| e.to_string())?;
            let mut log = BufReader::new(child.stderr.take().ok_or("no stderr")?);
            let mut first = String::new();
            log.read_line(&mut first).map_err(|e| e.to_string())?;
            if first.contains("\"ready\"") {
                std::thread::spawn(move || log.lines().count());
                return Ok(Self { child, port });
            }
            let _ = child.wait();
        }
        Err("no port is free".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
