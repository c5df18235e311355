//! `cargo xtask bench`: this product, its rivals and the floor below them, on the same work in one run.
//!
//! Times are told and compared, never required: the machine has other things to do. What fails is what does not work.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a command talks to its user")]

pub mod code;
pub mod compare;
pub mod contenders;
pub mod contract;
pub mod document;
pub mod figures;
pub mod footprint;
pub mod growth;
pub mod http;
pub mod memory;
pub mod operations;
pub mod plot;
pub mod process;
pub mod ratios;
pub mod report;
pub mod rivals;
pub mod scene;
pub mod sizes;
pub mod throughput;
pub mod together;
pub mod turns;

use std::io::{Error, Result};
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::process::{Resource, getrlimit, setrlimit};

/// `benches <command> <binary of the server> [--before=BINARY] [--rivals=FOLDER] [--save=NAME] [words]`
pub struct Options {
    /// The release binary of the product.
    pub binary: PathBuf,
    /// Another build, to be compared with instead of rivals.
    pub before: Option<PathBuf>,
    /// Where rivals are installed.
    pub rivals: PathBuf,
    /// Under which name the figures are kept, if at all.
    pub save: Option<String>,
    /// The document that the figures go into, if any.
    pub write: Option<PathBuf>,
    /// What to measure: whatever has one of these words in its name, or all.
    pub words: Vec<String>,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let (mut flags, mut words) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument.strip_prefix("--").and_then(|flag| flag.split_once('=')) {
                Some((name, value)) => flags.push((name.to_owned(), value.to_owned())),
                None => words.push(argument),
            }
        }
        let flag = |wanted| flags.iter().find(|(name, _)| name == wanted).map(|(_, v)| v.clone());
        if words.is_empty()
            || flags
                .iter()
                .any(|(name, _)| !["before", "rivals", "save", "write"].contains(&name.as_str()))
        {
            return None;
        }
        let rivals = flag("rivals").map_or_else(|| "target/rivals".into(), PathBuf::from);
        Some(Self {
            binary: words.remove(0).into(),
            before: flag("before").map(PathBuf::from),
            rivals,
            save: flag("save"),
            write: flag("write").map(PathBuf::from),
            words,
        })
    }

    /// Whether that is to be measured.
    pub fn picks(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}

pub fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let usage =
        "benches <command> <binary> [--before=BINARY] [--rivals=FOLDER] [--save=NAME] [words]";
    let outcome = allow_many_connections().and_then(|()| {
        let options = Options::read(arguments).ok_or_else(|| Error::other(usage))?;
        match command.as_str() {
            "compare" => compare::run(&options),
            "contract" => contract::run(&options.binary, options.write.as_deref()),
            "growth" => growth::run(&options.binary, options.write.as_deref(), &options.words),
            "code" => code::run(&options),
            "footprint" => footprint::run(&options),
            _ => Err(Error::other(usage)),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// A thousand connections are more than a process may open by default; servers are started with the same limit.
fn allow_many_connections() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}
