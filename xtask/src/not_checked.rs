//! Checks that this machine cannot run. Tests, `clients` and xtask add a line each to one list, which `cargo xtask test`
//! prints at its end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use crate::{Outcome, target_folder};

/// Names the list to tests and to `clients`.
pub const VARIABLE: &str = "FILE_EDITOR_NOT_CHECKED";

/// The list: a file with a line for each check, in no order and with repetitions.
pub fn list() -> PathBuf {
    let file = target_folder().join("not_checked.txt");
    std::path::absolute(&file).unwrap_or(file)
}

/// Says what is not checked, and adds it to the list. An error under CI, where everything must be checked.
pub fn tell(what: &str) -> Outcome {
    let line = format!("not checked: {what}");
    println!("{line}");
    let file = File::options().append(true).create(true).open(list());
    let added = file.and_then(|mut file| writeln!(file, "{line}"));
    added.map_err(|e| format!("{}: {e}", list().display()))?;
    if std::env::var_os("CI").is_some() { Err(line) } else { Ok(()) }
}

/// Runs `work` with an empty list, and prints the list afterwards, whatever came of the work.
pub fn with_list(work: impl FnOnce() -> Outcome) -> Outcome {
    let _ = std::fs::remove_file(list());
    let outcome = work();
    let lines = std::fs::read_to_string(list()).unwrap_or_default();
    let lines: BTreeSet<_> = lines.lines().collect();
    if !lines.is_empty() {
        println!();
    }
    for line in lines {
        println!("{line}");
    }
    outcome
}
