//! Real clients against the real server: `cargo xtask clients [names]`.
//!
//! Each is installed by name and version into the project's cache, drives the server on every transport it has and in
//! every protocol era it knows, and is held to what it saw. What could not run is listed, and fails under `CI=true`.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]

mod codex;
mod install;
mod model;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;

use scene::Scene;

/// One row of the table: what a client did, on which transport, in which version of the protocol.
pub struct Row {
    pub transport: &'static str,
    pub protocol: &'static str,
    pub did: String,
}

/// Why a client did not do what it should.
pub enum Trouble {
    /// It could not be run at all: something is missing on this machine.
    NotRun(String),
    /// It ran, and something was wrong.
    Wrong(String),
}

type Outcome<T> = Result<T, Trouble>;

struct Client {
    /// As `cargo xtask clients <name>` says it.
    name: &'static str,
    /// As the table says it, with the version.
    shown: &'static str,
    drive: fn(&Scene) -> Outcome<Vec<Row>>,
}

const CLIENTS: &[Client] =
    &[Client { name: "codex", shown: "Codex CLI 0.166.0", drive: codex::drive }];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next().map(PathBuf::from) else {
        eprintln!("clients <binary of the server> [names]");
        return ExitCode::FAILURE;
    };
    let names: Vec<String> = arguments.collect();
    let asked = |client: &&Client| names.is_empty() || names.iter().any(|name| name == client.name);
    let (mut not_run, mut wrong) = (Vec::new(), Vec::new());
    println!("\n| client | transport | protocol | what it did |\n|---|---|---|---|");
    for client in CLIENTS.iter().filter(asked) {
        let outcome = Scene::new(&binary).and_then(|scene| (client.drive)(&scene));
        match outcome {
            Ok(rows) => {
                for Row { transport, protocol, did } in rows {
                    println!("| {} | {transport} | {protocol} | {did} |", client.shown);
                }
            }
            Err(Trouble::NotRun(why)) => not_run.push(format!("{}: {why}", client.shown)),
            Err(Trouble::Wrong(why)) => wrong.push(format!("{}: {why}", client.shown)),
        }
    }
    for why in &not_run {
        println!("not checked: {why}");
    }
    for why in &wrong {
        eprintln!("WRONG: {why}");
    }
    let failed = !wrong.is_empty() || (!not_run.is_empty() && std::env::var_os("CI").is_some());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
