//! Killed before each of its calls of the file system, a server leaves the old file or the new one.

use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::operations::{DURABILITIES, Operation, State, is_temporary};
use crate::report::{Row, Scale};
use crate::server::{NoAnswer, Server};
use crate::tracer::{Act, Plan, Traced};

/// Killed servers at a time.
const AT_ONCE: usize = 4;
/// Servers at a time that work while another one is killed.
const WORKING_AT_ONCE: usize = 16;

/// Who works in the folder next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A server that has worked there before.
    Running,
    New,
}

pub fn run(scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in Operation::all() {
        for (index, durability) in DURABILITIES.iter().enumerate() {
            if scale == Scale::Short && index != 2 {
                continue;
            }
            for without_unnamed in [false, true] {
                rows.push(kill_everywhere(&operation, durability, without_unnamed));
            }
        }
    }
    rows.push(kill_while_sweeping());
    rows.push(left_while_another_works());
    rows
}

#[derive(Default)]
struct Tally {
    points: usize,
    old: usize,
    new: usize,
    torn: usize,
    leftovers: usize,
    /// After the next use of the folder.
    still_left: usize,
    bad: Vec<String>,
}

fn kill_everywhere(operation: &Operation, durability: &str, without_unnamed: bool) -> Row {
    let temps = if without_unnamed { ", named temporary files" } else { "" };
    let mut row = Row::new(format!("{}, durability {durability}{temps}", operation.name));
    let (next_point, over) = (AtomicUsize::new(1), AtomicBool::new(false));
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                let durability = format!("--durability={durability}");
                let flags = ["--tools=all", "--timeout=100", &durability];
                operation.set_up(folder.path());
                let mut running = Server::start(folder.path(), &flags);
                operation.edit_again(&mut running, folder.path()).unwrap();
                while !over.load(Ordering::SeqCst) {
                    let nth = next_point.fetch_add(1, Ordering::SeqCst);
                    let kill = Plan { nth, act: Act::Kill, without_unnamed, ..Plan::default() };
                    let next = if nth.is_multiple_of(2) { Next::Running } else { Next::New };
                    let mut own = Tally::default();
                    let was_hit =
                        kill_once(operation, &folder, &flags, kill, next, &mut running, &mut own);
                    if !was_hit {
                        over.store(true, Ordering::SeqCst);
                    }
                    let mut all = tally.lock().unwrap();
                    all.points += own.points;
                    all.old += own.old;
                    all.new += own.new;
                    all.torn += own.torn;
                    all.leftovers += own.leftovers;
                    all.still_left += own.still_left;
                    all.bad.append(&mut own.bad);
                }
            });
        }
    });
    let Tally { points, old, new, torn, leftovers, still_left, bad } = tally.into_inner().unwrap();
    row.tries = points;
    row.bad = bad;
    row.check(points > 10 && old > 0 && new > 0, || format!("only {points} points"));
    row.found(format!(
        "{old} old, {new} new, {torn} torn; a hidden leftover after {leftovers}, after the next use {still_left}"
    ))
}

/// Whether there was such a call to kill the server at.
fn kill_once(
    operation: &Operation,
    folder: &tempfile::TempDir,
    flags: &[&str],
    kill: Plan,
    next: Next,
    running: &mut Server,
    tally: &mut Tally,
) -> bool {
    let dir = folder.path();
    operation.set_up(dir);
    let without_unnamed = kill.without_unnamed;
    let mut traced = Traced::start(dir, flags, Plan { without_unnamed, ..Plan::default() });
    traced.server.ready();
    traced.plan(kill);
    let (tool, arguments) = operation.call(dir);
    let answer = traced.server.call(tool, &arguments);
    let Some(place) = traced.seen().hit else {
        let answer = answer.unwrap();
        assert!(!answer.is_error(), "{}", answer.text());
        return false;
    };
    traced.wait();
    tally.points += 1;
    let mut bad = |what: String| tally.bad.push(format!("killed at {place}: {what}"));
    match answer {
        Err(NoAnswer::Gone) => {}
        other => bad(format!("{other:?}")),
    }
    match operation.state(dir) {
        State::Old => tally.old += 1,
        State::New => tally.new += 1,
        State::Torn(what) => {
            tally.torn += 1;
            bad(format!("torn: {what}"));
        }
    }
    let leftovers = operation.leftovers(dir);
    let files: Vec<_> = leftovers.iter().filter(|name| !dir.join(name).is_dir()).collect();
    tally.leftovers += usize::from(!files.is_empty());
    if files.len() > 1 || files.iter().any(|name| !is_temporary(name)) {
        bad(format!("left over: {files:?}"));
    }
    // A new file may be for all to read, the text of one that is not is not for all either.
    let mode = |name: &&String| std::fs::metadata(dir.join(name)).map_or(0, |found| found.mode());
    if !operation.is_new() && files.iter().any(|name| mode(name) & 0o007 != 0) {
        bad(format!("for all to read: {files:?}"));
    }
    let changed = operation.changed_attributes(dir);
    if !changed.is_empty() {
        bad(format!("changed: {changed:?}"));
    }
    let mut new;
    let server = match next {
        Next::Running => running,
        Next::New => {
            new = Server::start(dir, flags);
            &mut new
        }
    };
    if let Err(what) = operation.edit_again(server, dir) {
        bad(what);
    }
    let leftovers = operation.leftovers(dir);
    tally.still_left += usize::from(!leftovers.is_empty());
    if !leftovers.is_empty() {
        bad(format!("left over after the next use ({next:?} server): {leftovers:?}"));
    }
    true
}

/// What a killed server left is removed by the next one, which may be killed too.
fn kill_while_sweeping() -> Row {
    let mut row = Row::new("start of a server, while it removes what another one left");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let operations = Operation::all();
    let operation = &operations[0];
    for nth in 1.. {
        operation.set_up(dir);
        std::fs::write(dir.join(".fe-4194304-0123456789abcdef.tmp"), "half a fi").unwrap();
        let kill = Plan { nth, act: Act::Kill, ..Plan::default() };
        let mut traced = Traced::start(dir, &["--tools=all"], kill);
        let answer = traced.server.call("list_files", &serde_json::json!({}));
        let Some(place) = traced.seen().hit else {
            row.check(answer.is_ok_and(|answer| !answer.is_error()), || "no answer".into());
            row.check(operation.leftovers(dir).is_empty(), || "not swept".into());
            break;
        };
        row.tries += 1;
        traced.wait();
        row.check(operation.state(dir) == State::Old, || format!("killed at {place}: torn"));
        let mut server = Server::start(dir, &["--tools=all"]);
        if let Err(what) = operation.edit_again(&mut server, dir) {
            row.bad.push(format!("killed at {place}: {what}"));
        }
        let leftovers = operation.leftovers(dir);
        row.check(leftovers.is_empty(), || format!("killed at {place}: left over {leftovers:?}"));
    }
    let found =
        if row.bad.is_empty() { "the file as it was, nothing left over" } else { "see below" };
    row.found(found)
}

/// Another server is killed, and leaves something, while this one edits a file of the same folder: at each of its calls.
fn left_while_another_works() -> Row {
    let mut row = Row::new("another server, while this one edits; then this one edits again");
    let (next, over, tally) = (AtomicUsize::new(1), AtomicBool::new(false), Mutex::new(&mut row));
    std::thread::scope(|scope| {
        for _ in 0..WORKING_AT_ONCE {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    let Some((place, left)) = leave_meanwhile(nth) else {
                        return over.store(true, Ordering::SeqCst);
                    };
                    let mut row = tally.lock().unwrap();
                    row.tries += 1;
                    row.check(left.is_empty(), || format!("{place}: left over {left:?}"));
                }
            });
        }
    });
    row.check(row.tries > 10, || "it never came to that".into());
    row.found("gone with the next edit a moment later")
}

/// The call it was left at, and what is left after one more edit.
fn leave_meanwhile(nth: usize) -> Option<(String, Vec<String>)> {
    const A_MOMENT: Duration = Duration::from_millis(1100);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let operations = Operation::all();
    let operation = &operations[0];
    operation.set_up(dir);
    let mut traced = Traced::start(dir, &["--tools=all", "--timeout=100"], Plan::default());
    let append = |traced: &mut Traced| {
        let arguments = serde_json::json!({ "name": "a.txt", "append": "a line" });
        let answer = traced.server.call("edit_file", &arguments).unwrap();
        assert!(!answer.is_error(), "{}", answer.text());
    };
    // The folder is known to be clean.
    append(&mut traced);
    let left = dir.join(".fe-4194304-0123456789abcdef.tmp");
    let happens = Arc::new(move || std::fs::write(&left, "half a fi").unwrap());
    traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..Plan::default() });
    append(&mut traced);
    let place = traced.end_plan().hit?;
    std::thread::sleep(A_MOMENT);
    append(&mut traced);
    Some((place, operation.leftovers(dir)))
}
