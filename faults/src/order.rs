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
                "data" => "the file is synced before it is published",
                _ => "so is the file; after that the folder, with all above a new file",
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
    let (before, after) = calls.split_at(published);
    let is_sync = |call: &&String| call.starts_with("fsync(") || call.starts_with("fdatasync(");
    let synced = before.iter().rposition(|call| is_sync(&call));
    let is_synced = synced.is_some_and(|synced| synced > written);
    let synced_after = after.iter().filter(is_sync).count();
    // The folder of the file, and for a new file those above it; without a journal, a new file as well.
    let expected = match (durability, operation.is_new()) {
        ("full", true) => operation.depth(),
        ("full", false) => 1,
        _ => 0,
    };
    if durability == "none" && calls.iter().any(|call| is_sync(&call)) {
        return Err("synced for nothing".into());
    }
    if durability != "none" && !is_synced {
        return Err("the file is not synced before it is published".into());
    }
    let without_journal = usize::from(durability == "full" && operation.is_new());
    if !(expected..=expected + without_journal).contains(&synced_after) {
        return Err(format!("synced {synced_after} times after it is published, not {expected}"));
    }
    Ok(())
}
