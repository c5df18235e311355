//! The rivals, installed by name and version, once.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contenders::{Contender, Kind};

struct Rival {
    kind: Kind,
    package: &'static str,
    version: &'static str,
    /// Its program, below the folder it is installed in.
    program: &'static str,
}

const RIVALS: &[Rival] = &[
    Rival {
        kind: Kind::Official,
        package: "@modelcontextprotocol/server-filesystem",
        version: "2026.8.31",
        program: "node_modules/.bin/mcp-server-filesystem",
    },
    Rival {
        kind: Kind::RustMcp,
        package: "rust-mcp-filesystem",
        version: "0.4.5",
        program: "bin/rust-mcp-filesystem",
    },
    Rival {
        kind: Kind::Patchloom,
        package: "patchloom",
        version: "0.37.6",
        program: "bin/patchloom",
    },
];

/// A rival that takes part, or why it does not.
pub struct Taken {
    pub kind: Kind,
    /// As its registry has it.
    pub version: &'static str,
    pub outcome: Result<Contender>,
}

pub fn install(folder: &Path) -> Vec<Taken> {
    let take = |rival: &Rival| {
        let outcome = rival.install(folder).map(|installed| Contender {
            kind: rival.kind,
            program: installed.join(rival.program),
            installed,
        });
        Taken { kind: rival.kind, version: rival.version, outcome }
    };
    RIVALS.iter().map(take).collect()
}

impl Rival {
    /// The folder it is installed in.
    fn install(&self, folder: &Path) -> Result<PathBuf> {
        let folder = std::path::absolute(folder)?;
        let done = folder.join(format!("{}-{}", self.kind.name(), self.version));
        if done.join(self.program).exists() {
            return Ok(done);
        }
        // Half of it must not pass for all of it.
        let partial = folder.join(format!("{}.partial", self.kind.name()));
        let _ = fs::remove_dir_all(&partial);
        let _ = fs::remove_dir_all(&done);
        fs::create_dir_all(&partial)?;
        let named = format!("{}@{}", self.package, self.version);
        println!("installing {named} …");
        let mut command = match self.kind {
            Kind::Official => Command::new("npm"),
            _ => Command::new("cargo"),
        };
        match self.kind {
            Kind::Official => command.args(["install", "--no-audit", "--no-fund", "--prefix"]),
            _ => command.args(["install", "--quiet", "--locked", "--root"]),
        };
        let output = command.arg(&partial).arg(named).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or_default();
            return Err(Error::other(format!("{}: {last}", output.status)));
        }
        fs::rename(partial, &done)?;
        Ok(done)
    }
}
