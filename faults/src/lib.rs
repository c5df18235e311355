//! Breaks the server on purpose, and looks at what is left: `cargo xtask faults`.
//!
//! Each experiment is a file. It says what it did, how often and what it found; anything bad makes the run a failure.

// Registers and system calls are those of one kind of machine.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::print_stdout, reason = "a command talks to its user")]
#![allow(clippy::unwrap_used, reason = "an experiment that cannot be made is a failure")]

mod attack;
mod cancels;
mod chance;
mod disks;
mod errors;
mod escapes;
mod exhaustion;
mod folder;
mod fuse;
mod history;
mod http;
mod kills;
mod locks;
mod model;
mod operations;
mod order;
mod outsiders;
mod power;
mod races;
mod report;
mod rest;
mod sandbox;
mod server;
mod soak;
mod tracer;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use report::{Row, Scale, Section};

/// An experiment: its name on the command line, what it shows, and how it is made.
type Experiment = (&'static str, &'static str, fn(Scale) -> Vec<Row>);

const EXPERIMENTS: &[Experiment] = &[
    ("kills", "Killed before each call of the file system", kills::run),
    ("order", "What is on the disk before the answer", order::run),
    ("power", "Power cuts: blocks that were written are lost", power::run),
    ("errors", "Each call of the file system fails", errors::run),
    ("cancels", "Taken back at each call of the file system", cancels::run),
    ("disks", "File systems that fail, fill up, or lack what others have", disks::run),
    ("races", "Many servers, one file", races::run),
    ("history", "Appends and reads, and servers killed on the way", history::run),
    ("locks", "Holders of locks that are stopped or killed, and no locks at all", locks::run),
    ("outsiders", "Editors that take no lock", outsiders::run),
    ("escapes", "Names that lead outside, or are swapped", escapes::run),
    ("sandbox", "The Landlock sandbox", sandbox::run),
    ("exhaustion", "Folders and arguments made to exhaust the server", exhaustion::run),
    ("attack", "HTTP under attack", attack::run),
    ("model", "Random steps against a model", model::run),
];

/// What was asked for: experiments, or one of those that take as long as they are told to.
enum Request {
    Experiments(Asked),
    Model { binary: PathBuf, steps: usize, seed: u64, write: Option<PathBuf> },
    Soak { binary: PathBuf, minutes: u64, write: Option<PathBuf> },
}

struct Asked {
    binary: PathBuf,
    scale: Scale,
    /// Where the figures go, if anywhere.
    write: Option<PathBuf>,
    experiments: Vec<&'static Experiment>,
}

pub fn main() -> ExitCode {
    match read(std::env::args().skip(1)) {
        Ok(Request::Experiments(experiments)) => make(experiments),
        Ok(Request::Model { binary, steps, seed, write }) => {
            server::set_binary(binary);
            tell("model", "Random steps against a model", model::row(steps, seed), write)
        }
        Ok(Request::Soak { binary, minutes, write }) => {
            server::set_binary(binary);
            tell("soak", "Everything at once, for a while", soak::row(minutes), write)
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// What one long experiment found.
fn tell(name: &str, title: &'static str, row: Row, write: Option<PathBuf>) -> ExitCode {
    let section = Section { title, rows: vec![row] };
    report::print(&section);
    if let Some(path) = write {
        report::write(&path, name, &report::table(&section.rows));
    }
    if section.rows[0].bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn make(Asked { binary, scale, write, experiments }: Asked) -> ExitCode {
    server::set_binary(binary);
    let mut sections = Vec::new();
    for (name, title, run) in experiments {
        let since = Instant::now();
        let section = Section { title, rows: run(scale) };
        report::print(&section);
        println!("`{name}` took {:.0?}", since.elapsed());
        sections.push(section);
    }
    if let Some(path) = write {
        report::write(&path, "figures", &report::titled(&sections));
    }
    let is_bad = |section: &Section| section.rows.iter().any(|row| !row.bad.is_empty());
    if sections.iter().any(is_bad) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Request, String> {
    let usage = "faults <binary> [--short] [--write=<document>] [<experiment> …]\n\
        faults <binary> --steps=<number> [--seed=<number>] [--write=<document>]\n\
        faults <binary> --minutes=<number> [--write=<document>]";
    let binary = arguments.next().ok_or(usage)?.into();
    let (mut scale, mut write, mut experiments) = (Scale::Full, None, Vec::new());
    let (mut steps, mut seed, mut minutes) = (None, None, None);
    for argument in arguments {
        if let Some(given) = argument.strip_prefix("--steps=") {
            steps = Some(given.parse().map_err(|_| usage)?);
        } else if let Some(given) = argument.strip_prefix("--seed=") {
            seed = Some(given.parse().map_err(|_| usage)?);
        } else if let Some(given) = argument.strip_prefix("--minutes=") {
            minutes = Some(given.parse().map_err(|_| usage)?);
        } else if argument == "--short" {
            scale = Scale::Short;
        } else if let Some(path) = argument.strip_prefix("--write=") {
            write = Some(path.into());
        } else {
            let found = EXPERIMENTS.iter().find(|(name, ..)| *name == argument);
            let all = || EXPERIMENTS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
            let unknown = || format!("no experiment `{argument}`; there are: {}", all());
            experiments.push(found.ok_or_else(unknown)?);
        }
    }
    if let Some(steps) = steps {
        let seed = seed.unwrap_or_else(model::chance_seed);
        return Ok(Request::Model { binary, steps, seed, write });
    }
    if let Some(minutes) = minutes {
        return Ok(Request::Soak { binary, minutes, write });
    }
    if experiments.is_empty() {
        experiments = EXPERIMENTS.iter().collect();
    }
    Ok(Request::Experiments(Asked { binary, scale, write, experiments }))
}
