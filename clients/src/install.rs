//! Clients, installed by name and version into `.cache/clients`, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::Program;
use crate::{Outcome, Trouble};

/// The machine's own Node may be too old for some of them.
const NODE: &str = "node@22.23.3";

/// How long a registry may take.
const PATIENCE: Duration = Duration::from_mins(10);

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
    let node = npm_folder(&[NODE])?.join("node_modules/node/bin/node");
    let node = node.with_extension(std::env::consts::EXE_EXTENSION);
    Ok(Npm { node, folder: npm_folder(packages)? })
}

fn npm_folder(packages: &[&str]) -> Outcome<PathBuf> {
    let folder = cache().join(format!("npm-{}", packages.join("+").replace(['/', '@'], "-")));
    once(&folder, || {
        let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let arguments = ["install", "--loglevel=error", "--no-audit", "--no-fund", "--no-save"];
        run(Command::new(program).args(arguments).arg("--prefix").arg(&folder).args(packages))
    })?;
    Ok(folder)
}

/// A Python with packages of `PyPI`, each with its exact version; the path of its interpreter.
pub fn python(packages: &[&str]) -> Outcome<PathBuf> {
    python_with(packages, &[])
}

/// The same, without what these packages would need besides.
pub fn python_alone(packages: &[&str]) -> Outcome<PathBuf> {
    python_with(packages, &["--no-deps"])
}

fn python_with(packages: &[&str], flags: &[&str]) -> Outcome<PathBuf> {
    let venv = cache().join(format!("python-{}", packages.join("+").replace("==", "-")));
    let (bin, suffix) = if cfg!(windows) { ("Scripts", ".exe") } else { ("bin", "") };
    let python = venv.join(bin).join(format!("python{suffix}"));
    once(&venv, || {
        let program = if cfg!(windows) { "python" } else { "python3" };
        run(Command::new(program).args(["-m", "venv", "--clear"]).arg(&venv))?;
        let mut pip = Command::new(&python);
        run(pip.args(["-m", "pip", "install", "--quiet"]).args(flags).args(packages))
    })?;
    Ok(python)
}

/// A program of crates.io, with its exact version; its path.
pub fn cargo(name: &str, version: &str) -> Outcome<PathBuf> {
    let folder = cache().join(format!("cargo-{name}-{version}"));
    once(&folder, || {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Its own lock file, and a place of its own to build: it shares nothing with the workspace.
        let arguments = ["install", "--quiet", "--locked", name, "--version", version, "--root"];
        run(Command::new(program).args(arguments).arg(&folder).env_remove("CARGO_TARGET_DIR"))
    })?;
    Ok(folder.join("bin").join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

/// A program of a Debian package, in the version of the system; its path. Installed if it is missing and this is root.
pub fn apt(program: &str, package: &str) -> Outcome<PathBuf> {
    if let Some(found) = on_path(program) {
        return Ok(found);
    }
    let missing = || Trouble::NotRun(format!("{program} is not on PATH; install {package}"));
    let apt_get = on_path("apt-get").filter(|_| is_root()).ok_or_else(missing)?;
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends", package]] {
        let mut command = Command::new(&apt_get);
        run(command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments))?;
    }
    on_path(program).ok_or_else(missing)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Fills the folder, unless it was filled to the end before.
fn once(folder: &Path, fill: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let done = folder.join("installed");
    if done.exists() {
        return Ok(());
    }
    let not_run = |e: std::io::Error| Trouble::NotRun(format!("{}: {e}", folder.display()));
    fs::create_dir_all(folder).map_err(not_run)?;
    fill()?;
    fs::write(done, "").map_err(not_run)
}

fn run(command: &mut Command) -> Outcome<()> {
    let ended = Program::start(command, Instant::now() + PATIENCE)?.finish();
    let trouble = match ended {
        Ok(ended) if ended.code == Some(0) => return Ok(()),
        Ok(ended) => format!("exit code {:?}: {}", ended.code, ended.complained.trim()),
        Err(Trouble::NotRun(why) | Trouble::Wrong(why)) => why,
    };
    Err(Trouble::NotRun(format!("{command:?}: {trouble}")))
}
