//! Codex as a program: run with a configuration of its own, for so long, and gone afterwards.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::install::{Npm, npm};
use crate::scene::Scene;
use crate::{Outcome, Trouble};

pub const PACKAGE: &str = "@openai/codex@0.166.0";
const DEADLINE: Duration = Duration::from_mins(2);
/// How long those that Codex started may take to notice that it is gone.
const FAREWELL: Duration = Duration::from_secs(30);

pub struct Codex(Npm);

impl Codex {
    pub fn install() -> Outcome<Self> {
        npm(&[PACKAGE]).map(Self)
    }

    /// The program proper, which what npm installs only starts.
    pub fn binary(&self) -> Outcome<PathBuf> {
        let packages = self.0.folder.join("node_modules/@openai");
        let name = format!("bin/codex{}", std::env::consts::EXE_SUFFIX);
        let each = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let vendors = each(&packages).map(|package| package.path().join("vendor"));
        let mut binaries = vendors.flat_map(|vendor| {
            each(&vendor).map(|target| target.path().join(&name)).collect::<Vec<_>>()
        });
        let found = binaries.find(|binary| binary.is_file());
        found.ok_or_else(|| Trouble::NotRun(format!("no binary below {}", packages.display())))
    }

    /// Gives Codex something to do in the scene's folder, and returns what it logged. Nothing of this user's is seen:
    /// no variable but `PATH`, and a home of its own.
    pub fn exec(&self, scene: &Scene, config: &str) -> Outcome<String> {
        let trouble = |e: std::io::Error| Trouble::NotRun(e.to_string());
        let home = scene.path("home");
        fs::create_dir_all(&home).map_err(trouble)?;
        fs::write(home.join("config.toml"), config).map_err(trouble)?;
        let (said, logged) = (home.join("said"), home.join("logged"));
        let mut command = Command::new(&self.0.node);
        command
            .arg(self.0.folder.join("node_modules/@openai/codex/bin/codex.js"))
            .args(["exec", "--json", "--strict-config", "--skip-git-repo-check", "--cd"])
            .arg(scene.folder())
            .arg("Follow the script.")
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "SystemRoot"))
            .envs([("HOME", &home), ("CODEX_HOME", &home)])
            .envs([("NO_PROXY", "127.0.0.1,localhost"), ("RUST_LOG", "rmcp=info")])
            .stdin(Stdio::null())
            .stdout(File::create(&said).map_err(trouble)?)
            .stderr(File::create(&logged).map_err(trouble)?);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let ended = wait(command.spawn().map_err(trouble)?);
        let logged = fs::read_to_string(logged).map_err(trouble)?;
        match ended {
            Ok(()) => Ok(logged),
            Err(why) => {
                let said = fs::read_to_string(said).map_err(trouble)?;
                Err(Trouble::Wrong(format!("{why}\n{}\n{}", tail(&said), tail(&logged))))
            }
        }
    }
}

/// Waits for the end of Codex, and brings it about at the deadline.
fn wait(mut child: Child) -> Result<(), String> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("Codex ended with {status}")),
            Ok(None) if Instant::now() < deadline => sleep(Duration::from_millis(10)),
            Ok(None) => break,
            Err(e) => return Err(e.to_string()),
        }
    }
    // What npm installs is a script that starts the program proper: the group holds both.
    #[cfg(unix)]
    {
        use rustix::process::{Signal, kill_process_group};
        let _ = pid(child.id()).map(|group| kill_process_group(group, Signal::KILL));
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("Codex was still at work after {} s", DEADLINE.as_secs()))
}

/// Codex puts the servers it starts into groups of their own. They have to go when it goes.
pub fn see_off(folder: &Path) -> Outcome<()> {
    let until = Instant::now() + FAREWELL;
    loop {
        let left = working_in(folder);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            #[cfg(unix)]
            for id in left.iter().filter_map(|(id, _)| pid(*id)) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
            let names: Vec<_> = left.into_iter().map(|(_, name)| name).collect();
            return Err(Trouble::Wrong(format!("outlived Codex: {}", names.join(", "))));
        }
        sleep(Duration::from_millis(10));
    }
}

/// The processes that have the folder, which is unique, in their arguments or variables. Only Linux shows them.
pub fn working_in(folder: &Path) -> Vec<(u32, String)> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let mentions = |path: &Path| {
        fs::read(path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| {
            let id = process.file_name().to_str()?.parse().ok()?;
            let known = mentions(&process.path().join("cmdline"))
                || mentions(&process.path().join("environ"));
            let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            known.then(|| (id, name().trim().to_owned()))
        })
        .collect()
}

#[cfg(unix)]
fn pid(id: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(id.try_into().ok()?)
}

/// The last of a text, as much as an eye can take in.
pub fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    &text[start..]
}
