//! Schemathesis drives a real server by `docs/openapi.json`: every answer must be what the description says.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::server::Server;
use crate::{Outcome, cargo, not_checked, root, target_folder};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

pub fn check() -> Outcome {
    let Some(schemathesis) = install()? else { return Ok(()) };
    crate::run(cargo().args(["build", "--quiet", "--bin", "file-editor"]))?;
    let name = format!("file-editor{}", std::env::consts::EXE_SUFFIX);
    let binary = target_folder().join("debug").join(name);
    let folder = std::env::temp_dir().join(format!("file-editor-openapi-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let outcome = fs::write(folder.join("notes.txt"), "one\ntwo\nthree\n")
        .and_then(|()| Server::start(&binary, &folder))
        .map_err(|e| e.to_string())
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
        return not_checked::tell("docs/openapi.json needs Python 3 with venv").map(|()| None);
    }
    let pip = venv.join(bin).join(format!("pip{suffix}"));
    crate::run(Command::new(pip).args(["install", "--quiet", SCHEMATHESIS]))?;
    Ok(Some(program))
}
