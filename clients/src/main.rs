//! Real clients against the real server and the real agent: `cargo xtask clients [names]`.
//!
//! Each is installed by name and version into the project's cache, drives the server on every transport it has and in
//! every protocol era it knows, and is held to what it saw. What could not run is listed, and fails under `CI=true`.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]

mod acp;
mod codex;
mod conformance;
mod inspector;
mod install;
mod local;
mod model;
mod pattern;
mod play;
mod program;
mod scene;
mod sdks;
mod setup;
mod watchers;
mod ways;
mod workflow;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use When::{Always, Named};
use scene::Scene;

/// One row of the table: what a client did, on which transport, in which version of the protocol.
pub struct Row {
    pub transport: &'static str,
    pub protocol: &'static str,
    pub did: Outcome<String>,
}

/// Why a client did not do what it should.
pub enum Trouble {
    /// It could not be run at all: something is missing on this machine.
    NotRun(String),
    /// It ran, and something was wrong.
    Wrong(String),
}

/// What the machine does not do is missing on it.
impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::NotRun(error.to_string())
    }
}

impl Trouble {
    /// The same, with what was being done.
    fn at(self, place: &str) -> Self {
        match self {
            Self::NotRun(why) => Self::NotRun(format!("{place}: {why}")),
            Self::Wrong(why) => Self::Wrong(format!("{place}: {why}")),
        }
    }
}

type Outcome<T> = Result<T, Trouble>;

/// When a client is run.
#[derive(PartialEq, Eq)]
enum When {
    Always,
    /// It takes minutes, and shows nothing of the protocol that others do not.
    Named,
}

struct Client {
    /// As `cargo xtask clients <name>` says it. Several may have the same.
    name: &'static str,
    when: When,
    /// As the table says it, with the version.
    shown: &'static str,
    drive: fn(&Scene) -> Outcome<Vec<Row>>,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "conformance",
        when: Always,
        shown: conformance::SUITE,
        drive: conformance::drive,
    },
    Client {
        name: "inspector",
        when: Always,
        shown: inspector::INSPECTOR,
        drive: inspector::drive,
    },
    Client { name: "python", when: Always, shown: sdks::PYTHON, drive: sdks::python },
    Client { name: "sdk", when: Always, shown: sdks::SDK, drive: sdks::sdk },
    Client { name: "client", when: Always, shown: sdks::CLIENT, drive: sdks::client },
    Client { name: "codex", when: Always, shown: codex::CODEX, drive: codex::drive },
    Client { name: "claude", when: Always, shown: setup::CLAUDE, drive: setup::claude },
    Client { name: "gemini", when: Always, shown: setup::GEMINI, drive: setup::gemini },
    Client { name: "acp", when: Always, shown: acp::SHOWN, drive: acp::drive },
    Client { name: "acpx", when: Always, shown: acp::acpx::ACPX, drive: acp::acpx::drive },
    Client { name: "watchers", when: Always, shown: watchers::CHOKIDAR, drive: watchers::chokidar },
    Client {
        name: "watchers",
        when: Always,
        shown: watchers::CHOKIDAR_3,
        drive: watchers::chokidar_3,
    },
    Client { name: "watchers", when: Always, shown: watchers::PARCEL, drive: watchers::parcel },
    Client {
        name: "watchers",
        when: Always,
        shown: watchers::WATCHFILES,
        drive: watchers::watchfiles,
    },
    Client {
        name: "watchers",
        when: Always,
        shown: watchers::INOTIFYWAIT,
        drive: watchers::inotifywait,
    },
    Client { name: "yopo", when: Named, shown: acp::yopo::YOPO, drive: acp::yopo::drive },
    Client { name: "model", when: Named, shown: local::SHOWN, drive: local::drive },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    // Clients start it from folders of their own.
    let Some(Ok(binary)) = arguments.next().map(std::path::absolute) else {
        eprintln!("clients <binary of the server> [names]");
        return ExitCode::FAILURE;
    };
    let names: Vec<String> = arguments.collect();
    if let Some(name) = names.iter().find(|name| CLIENTS.iter().all(|c| c.name != **name)) {
        let mut known: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        // The watchers share one.
        known.dedup();
        eprintln!("no client is called `{name}`; there are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let asked = |client: &&Client| {
        let unnamed = names.is_empty() && client.when == Always;
        unnamed || names.iter().any(|name| name == client.name)
    };
    let mut table = Table::default();
    println!("\n| client | transport | protocol | what it did |\n|---|---|---|---|");
    for client in CLIENTS.iter().filter(asked) {
        match Scene::new(&binary).and_then(|scene| (client.drive)(&scene)) {
            Ok(rows) => rows.into_iter().for_each(|row| table.add(client.shown, row)),
            Err(trouble) => table.note(client.shown, trouble),
        }
    }
    table.end()
}

/// What was wrong or could not run is told below the table, where it is not overlooked.
#[derive(Default)]
struct Table {
    not_run: Vec<String>,
    wrong: Vec<String>,
}

impl Table {
    fn add(&mut self, client: &str, Row { transport, protocol, did }: Row) {
        let did = did.unwrap_or_else(|trouble| {
            self.note(&format!("{client}, {transport}, {protocol}"), trouble);
            "**not what it should: see below**".into()
        });
        println!("| {client} | {transport} | {protocol} | {did} |");
    }

    fn note(&mut self, who: &str, trouble: Trouble) {
        match trouble {
            Trouble::NotRun(why) => self.not_run.push(format!("{who}: {why}")),
            Trouble::Wrong(why) => self.wrong.push(format!("{who}: {why}")),
        }
    }

    fn end(self) -> ExitCode {
        let list = std::env::var_os("FILE_EDITOR_NOT_CHECKED");
        let mut list =
            list.and_then(|list| File::options().append(true).create(true).open(list).ok());
        for why in &self.not_run {
            println!("not checked: {why}");
            if let Some(list) = &mut list {
                let _ = writeln!(list, "not checked: {why}");
            }
        }
        for why in &self.wrong {
            eprintln!("WRONG: {why}");
        }
        let in_ci = std::env::var_os("CI").is_some();
        let failed = !self.wrong.is_empty() || (!self.not_run.is_empty() && in_ci);
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_name_these_versions() {
        let documents = [
            include_str!("../../docs/clients.md"),
            include_str!("../../docs/codex.md"),
            include_str!("../../docs/tools.md"),
        ];
        for Client { shown, .. } in CLIENTS {
            let version = shown.rsplit(['@', '=']).next().unwrap_or_default();
            let is_named = documents.concat().contains(&format!(" {version}"));
            assert!(is_named, "{shown}");
        }
    }
}
