//! What is on the disk before a file is replaced, and before the answer is given: a power cut cannot be made here, but the
//! order of the calls that survive one can be looked at.

use crate::operations::{DURABILITIES, Operation};
use crate::report::{Row, Scale};
use crate::tracer::{Plan, Traced};

pub fn run(_: Scale) -> Vec<Row> {
    DURABILITIES
        .iter()
        .map(|durability| {
            let mut row = Row::new(format!("durability {durability}"));
            for operation in Operation::all() {
                for without_unnamed in [false, true] {
                    let calls = calls_of(&operation, durability, without_unnamed);
                    row.tries += 1;
                    if let Err(what) = check(durability, &operation, &calls) {
                        row.bad.push(format!("{}: {what}: {calls:?}", operation.name));
                    }
                }
            }
            row.found(match *durability {
                "none" => "nothing is synced",
                "data" => "the text is synced between its last write and its name",
                _ => "so is the text, and after that the folder, with all above a new one",
            })
        })
        .collect()
}

fn calls_of(operation: &Operation, durability: &str, without_unnamed: bool) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    operation.set_up(folder.path());
    let flags = ["--tools=all", &format!("--durability={durability}")];
    let mut traced = Traced::start(folder.path(), &flags, Plan::default());
    traced.server.ready();
    traced.plan(Plan { without_unnamed, ..Plan::default() });
    let (tool, arguments) = operation.call(folder.path());
    assert!(!traced.server.call(tool, &arguments).unwrap().is_error());
    traced.end_plan().calls
}

fn check(durability: &str, operation: &Operation, calls: &[String]) -> Result<(), String> {
    let last = |names: &[&str]| {
        calls.iter().rposition(|call| names.iter().any(|name| call.starts_with(name)))
    };
    let written = last(&["write(", "pwrite64("]).ok_or("nothing is written")?;
    // Renamed over the old file, or given the name of the new one.
    let published = last(&["renameat(", "renameat2(", "linkat("]).ok_or("nothing is published")?;
    let synced = last(&["fdatasync("]);
    let is_synced = synced.is_some_and(|synced| written < synced && synced < published);
    let folders: Vec<_> =
        calls.iter().skip(published).filter(|call| call.starts_with("fsync(")).collect();
    // The folder of the file, and for a new file those above it.
    let expected = match (durability, operation.is_new()) {
        ("full", true) => operation.depth(),
        ("full", false) => 1,
        _ => 0,
    };
    if durability == "none" && last(&["fdatasync(", "fsync("]).is_some() {
        return Err("synced for nothing".into());
    }
    if durability != "none" && !is_synced {
        return Err("the text is not synced before it is published".into());
    }
    if folders.len() != expected {
        return Err(format!("{} folders are synced, not {expected}", folders.len()));
    }
    Ok(())
}
