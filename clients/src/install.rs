//! Clients, installed by name and version into `.cache/clients`, once.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, Trouble};

/// The machine's own Node may be too old for some of them.
const NODE: &str = "node@22.23.3";

/// A folder with `node_modules`, and the Node to run what is in it.
pub struct Npm {
    pub node: PathBuf,
    pub folder: PathBuf,
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/clients")
}

/// Packages of the npm registry, each with its exact version, in a folder of their own.
pub fn npm(packages: &[&str]) -> Outcome<Npm> {
    let name = packages.join("+").replace(['/', '@'], "-");
    let folder = cache().join(format!("npm{name}"));
    let node = folder.join("node_modules/node/bin/node");
    let done = folder.join("installed");
    if !done.exists() {
        std::fs::create_dir_all(&folder).map_err(|e| Trouble::NotRun(e.to_string()))?;
        let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let arguments = ["install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix"];
        run(Command::new(program).args(arguments).arg(&folder).arg(NODE).args(packages))?;
        std::fs::write(done, "").map_err(|e| Trouble::NotRun(e.to_string()))?;
    }
    Ok(Npm { node, folder })
}

/// A Python with packages of PyPI, each with its exact version; the path of its interpreter.
pub fn python(packages: &[&str]) -> Outcome<PathBuf> {
    let venv = cache().join(format!("python-{}", packages.join("+").replace("==", "-")));
    let (bin, suffix) = if cfg!(windows) { ("Scripts", ".exe") } else { ("bin", "") };
    let python = venv.join(bin).join(format!("python{suffix}"));
    let done = venv.join("installed");
    if !done.exists() {
        let program = if cfg!(windows) { "python" } else { "python3" };
        run(Command::new(program).args(["-m", "venv", "--clear"]).arg(&venv))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
        std::fs::write(done, "").map_err(|e| Trouble::NotRun(e.to_string()))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Outcome<()> {
    let output = command.output().map_err(|e| Trouble::NotRun(format!("{command:?}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Trouble::NotRun(format!("{command:?}: {}: {}", output.status, said.trim())))
}
