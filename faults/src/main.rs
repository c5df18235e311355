//! Breaks the server on purpose, and looks at what is left: `cargo xtask faults`.
//!
//! Each experiment is a file. It says what it did, how often and what it found; anything bad ends the run with a failure.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]
#![allow(clippy::unwrap_used, reason = "an experiment that cannot be made is a failure")]
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the experiments are for Linux"))]

mod errors;
mod kills;
mod locks;
mod operations;
mod order;
mod outsiders;
mod report;
mod sandbox;
mod server;
mod tracer;

use std::process::ExitCode;
use std::time::Instant;

use report::{Row, Scale, Section};

/// An experiment: its name on the command line, what it shows, and how it is made.
type Experiment = (&'static str, &'static str, fn(Scale) -> Vec<Row>);

const EXPERIMENTS: &[Experiment] = &[
    ("kills", "Killed before each call of the file system", kills::run),
    ("order", "What is on the disk before the answer", order::run),
    ("errors", "Each call of the file system fails", errors::run),
    ("locks", "Holders of locks that are stopped or killed, and no locks at all", locks::run),
    ("outsiders", "Editors that take no lock", outsiders::run),
    ("sandbox", "The second wall around the folder", sandbox::run),
];

const USAGE: &str = "faults <binary> [--short] [<experiment> …]";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    server::set_binary(binary.into());
    let (mut scale, mut names) = (Scale::Full, Vec::new());
    for argument in arguments {
        match argument.as_str() {
            "--short" => scale = Scale::Short,
            _ => names.push(argument),
        }
    }
    let known = |name: &String| EXPERIMENTS.iter().any(|(known, ..)| known == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<_> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
        eprintln!("no experiment `{unknown}`; there are: {}", all.join(", "));
        return ExitCode::FAILURE;
    }
    let mut bad = 0;
    for (name, title, run) in EXPERIMENTS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let since = Instant::now();
        let section = Section { title, rows: run(scale) };
        report::print(&section);
        println!("`{name}` took {:.0?}", since.elapsed());
        bad += section.rows.iter().map(|row| row.bad.len()).sum::<usize>();
    }
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
