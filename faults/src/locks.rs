//! Whoever holds a file's lock may be stopped or killed; and there are file systems without locks.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::operations::{Operation, State};
use crate::report::{Row, Scale};
use crate::server::{HANG, Server, signal};
use crate::tracer::{Act, Lasting, Plan, Traced};

const FILE: &str = "a.txt";

fn append(line: &str) -> Value {
    json!({ "name": FILE, "append": line })
}

pub fn run(scale: Scale) -> Vec<Row> {
    let mut rows = vec![stopped(scale), killed(scale.of(10, 100))];
    for (name, number) in
        [("ENOLCK", libc::ENOLCK), ("ENOSYS", libc::ENOSYS), ("EOPNOTSUPP", libc::EOPNOTSUPP)]
    {
        rows.push(without_locks(name, number));
    }
    rows
}

/// A server that was stopped while it held the lock of the file.
struct Holder {
    server: Server,
    line: String,
}

impl Holder {
    fn stop_in(dir: &Path) -> Self {
        // Syncing takes its time, so it is soon found at it.
        let mut server = Server::start(dir, &["--durability=full", "--timeout=300"]);
        for number in 0.. {
            let line = format!("holder {number}");
            server.send("edit_file", &append(&line)).unwrap();
            std::thread::sleep(Duration::from_micros(100 * (number % 40)));
            signal(server.pid(), Signal::STOP);
            wait_until_stopped(server.pid());
            let file = File::options().read(true).write(true).open(dir.join(FILE)).unwrap();
            // A lock on a file that has been replaced meanwhile says nothing.
            let is_current = same_file(&file, &dir.join(FILE));
            if is_current && file.try_lock().is_err() {
                // It holds it, and it is not one of those that are published already.
                if !fs::read_to_string(dir.join(FILE)).unwrap().contains(&line) {
                    return Self { server, line };
                }
            }
            drop(file);
            signal(server.pid(), Signal::CONT);
            assert!(!server.receive(HANG).unwrap().is_error());
        }
        unreachable!("numbers do not end")
    }
}

/// A thread stops only when it comes back from what the kernel does for it.
fn wait_until_stopped(pid: u32) {
    let is_stopped = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
    };
    let tasks = || fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    while !tasks().all(is_stopped) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (open, named) = (file.metadata().unwrap(), fs::metadata(path).unwrap());
    open.ino() == named.ino()
}

/// Others wait as long as they were told to, are refused, and read meanwhile; when the holder goes on, so do all.
fn stopped(scale: Scale) -> Row {
    let mut row = Row::new("the holder of a lock is stopped, others have a timeout");
    let mut waits = Vec::new();
    for seconds in scale.of(&[1][..], &[1, 3, 60]) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        fs::write(dir.join(FILE), "first\n").unwrap();
        let mut holder = Holder::stop_in(dir);
        let before = fs::read_to_string(dir.join(FILE)).unwrap();
        let mut other = Server::start(dir, &[&format!("--timeout={seconds}")]);
        let since = Instant::now();
        let answer = other.call("edit_file", &append("other")).unwrap();
        waits.push(format!("{seconds} s: {:.1?}", since.elapsed()));
        row.tries += 1;
        row.check(answer.code() == Some(-32014), || answer.text());
        let text = answer.text();
        row.check(text.contains("Failed to acquire file lock within timeout"), || text.clone());
        // No wall-clock time is promised, but nobody gives up before the time.
        let least = Duration::from_secs(*seconds).min(Duration::from_secs(30));
        row.check(since.elapsed() >= least, || format!("gave up after {:?}", since.elapsed()));
        let read = other.call("read_file", &json!({ "name": FILE })).unwrap();
        row.check(!read.is_error(), || read.text());
        row.check(fs::read_to_string(dir.join(FILE)).unwrap() == before, || "changed".into());
        signal(holder.server.pid(), Signal::CONT);
        let answer = holder.server.receive(HANG).unwrap();
        row.check(!answer.is_error(), || answer.text());
        let answer = other.call("edit_file", &append("afterwards")).unwrap();
        row.check(!answer.is_error(), || answer.text());
        let expected = format!("{before}{}\nafterwards\n", holder.line);
        let found = fs::read_to_string(dir.join(FILE)).unwrap();
        row.check(found == expected, || format!("{found:?}, not {expected:?}"));
    }
    row.found(format!(
        "refused with -32014 after its time, at most 30 s ({}); all went on with the holder",
        waits.join(", ")
    ))
}

/// Who waits for the lock of a killed process has it at once.
fn killed(times: usize) -> Row {
    let mut row = Row::new("the holder of a lock is killed while others wait");
    let mut waits = Vec::new();
    for _ in 0..times {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        fs::write(dir.join(FILE), "first\n").unwrap();
        let mut holder = Holder::stop_in(dir);
        let before = fs::read_to_string(dir.join(FILE)).unwrap();
        let mut other = Server::start(dir, &["--timeout=60", "--durability=none"]);
        other.ready();
        other.send("edit_file", &append("other")).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let since = Instant::now();
        holder.server.kill();
        let answer = other.receive(HANG).unwrap();
        waits.push(since.elapsed());
        row.tries += 1;
        row.check(!answer.is_error(), || answer.text());
        let found = fs::read_to_string(dir.join(FILE)).unwrap();
        let expected = format!("{before}other\n");
        row.check(found == expected, || format!("{found:?}, not {expected:?}"));
    }
    waits.sort();
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    row.found(format!("applied after {median:.1?} (median), {longest:.1?} at most"))
}

/// Where files cannot be locked nothing is written, and the refusal names the file system.
fn without_locks(name: &str, number: i32) -> Row {
    let mut row = Row::new(format!("a file system that answers a lock with {name}"));
    for operation in Operation::all() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        operation.set_up(dir);
        let mut traced = Traced::start(dir, &["--tools=all"], Plan::default());
        traced.server.ready();
        traced.plan(Plan {
            nth: 1,
            act: Act::Fail(number),
            lasting: Lasting::FromThenOn,
            only: Some("flock"),
            ..Plan::default()
        });
        let (tool, arguments) = operation.call(dir);
        let answer = traced.server.call(tool, &arguments).unwrap();
        row.tries += 1;
        row.check(traced.end_plan().hit.is_some(), || format!("{}: no lock", operation.name));
        row.check(answer.is_error() && answer.text().contains("file system"), || answer.text());
        row.check(operation.state(dir) == State::Old, || format!("{}: written", operation.name));
        let leftovers = operation.leftovers(dir);
        row.check(leftovers.is_empty(), || format!("{}: {leftovers:?}", operation.name));
        row.found = answer.text().lines().next().unwrap_or_default().into();
    }
    row
}
