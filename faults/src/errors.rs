//! Each call of the file system fails, moves less than it was asked to, or takes longer than the caller waits: the answer
//! always tells what became of the file.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libc::c_int;
use serde_json::json;

use crate::operations::{DURABILITIES, Operation, State};
use crate::report::{Row, Scale};
use crate::server::{Answer, HANG, NoAnswer};
use crate::tracer::{Act, Lasting, Plan, Seen, Traced};

#[rustfmt::skip]
const ERRORS: [(&str, c_int); 7] = [
    ("EIO", libc::EIO), ("ENOSPC", libc::ENOSPC), ("EDQUOT", libc::EDQUOT), ("EINTR", libc::EINTR),
    ("EACCES", libc::EACCES), ("EMFILE", libc::EMFILE), ("EROFS", libc::EROFS),
];

/// Servers at a time whose calls fail, and whose calls are held up.
const AT_ONCE: usize = 3;
const HELD_AT_ONCE: usize = 24;

pub fn run(scale: Scale) -> Vec<Row> {
    let operations = Operation::all();
    let mut rows: Vec<Row> = ERRORS
        .iter()
        .map(|&(name, number)| {
            let fail = Act::Fail(number);
            let mut jobs = jobs_for(&operations, scale, &fail, Lasting::Once);
            // A call that is interrupted for ever is tried again for ever.
            if name != "EINTR" && scale.of(name == "EIO", true) {
                jobs.extend(jobs_for(&operations, scale, &fail, Lasting::FromThenOn));
            }
            everywhere(name, &jobs)
        })
        .collect();
    let mut jobs = jobs_for(&operations, scale, &Act::Shorten, Lasting::Once);
    jobs.extend(jobs_for(&operations, scale, &Act::Shorten, Lasting::FromThenOn));
    rows.push(everywhere("reads and writes of half of what was asked for", &jobs));
    rows.push(reading());
    rows.push(too_late(&operations, scale));
    rows
}

/// One operation under one kind of fault, at each of its calls in turn.
struct Job<'a> {
    operation: &'a Operation,
    durability: &'static str,
    without_unnamed: bool,
    act: Act,
    lasting: Lasting,
}

fn jobs_for<'a>(
    operations: &'a [Operation],
    scale: Scale,
    act: &Act,
    lasting: Lasting,
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for operation in operations {
        // The strictest makes every call that the others make.
        for &durability in &DURABILITIES[scale.of(2, 0)..] {
            for without_unnamed in [false, true] {
                jobs.push(Job {
                    operation,
                    durability,
                    without_unnamed,
                    act: act.clone(),
                    lasting,
                });
            }
        }
    }
    jobs
}

#[derive(Default)]
struct Tally {
    tries: usize,
    applied: usize,
    durability_unknown: usize,
    refused: BTreeMap<i64, usize>,
    dishonest: usize,
    left_over: usize,
    bad: Vec<String>,
}

fn everywhere(what: &str, jobs: &[Job]) -> Row {
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    job.run(&tally);
                }
            });
        }
    });
    let Tally { tries, applied, durability_unknown, refused, dishonest, left_over, bad } =
        tally.into_inner().unwrap();
    let refused: Vec<_> =
        refused.iter().map(|(code, count)| format!("{count} with {code}")).collect();
    let refused = if refused.is_empty() { "none".into() } else { refused.join(", ") };
    let mut row = Row::new(what);
    (row.tries, row.bad) = (tries, bad);
    row.check(tries > 100, || format!("only {tries} tries"));
    row.found(format!(
        "applied {applied} ({durability_unknown} \"durability unknown\"); refused {refused}; \
         dishonest {dishonest}; left over {left_over}"
    ))
}

impl Job<'_> {
    fn run(&self, tally: &Mutex<Tally>) {
        let folder = tempfile::tempdir().unwrap();
        let mut traced = self.start(&folder);
        let mut open_files = count_open_files(&traced);
        for nth in 1.. {
            self.operation.set_up(folder.path());
            let plan = Plan {
                nth,
                act: self.act.clone(),
                lasting: self.lasting,
                without_unnamed: self.without_unnamed,
                ..Plan::default()
            };
            traced.plan(plan);
            let (tool, arguments) = self.operation.call(folder.path());
            let answer = traced.server.call(tool, &arguments);
            let seen = traced.end_plan();
            if seen.hit.is_none() {
                let answer = answer.unwrap();
                assert!(!answer.is_error(), "without a fault: {} {:?}", answer.text(), seen.calls);
                return;
            }
            let alive = answer.is_ok();
            self.judge(&folder, &mut traced, &seen, answer, &mut tally.lock().unwrap());
            // A server that found that something does not work here remembers it.
            let is_telling = |hit: &String| hit.contains("openat(") || hit.contains("linkat(");
            if !alive || seen.hit.as_ref().is_some_and(is_telling) {
                drop(traced);
                traced = self.start(&folder);
                open_files = count_open_files(&traced);
            } else {
                let now = count_open_files(&traced);
                if now > open_files {
                    let bad = format!("{}: {now} open files, not {open_files}", self.place(&seen));
                    tally.lock().unwrap().bad.push(bad);
                    open_files = now;
                }
            }
        }
    }

    fn start(&self, folder: &tempfile::TempDir) -> Traced {
        let durability = format!("--durability={}", self.durability);
        // The disk of a busy machine may take its time.
        let flags = ["--tools=all", "--timeout=100", &durability];
        let plan = Plan { without_unnamed: self.without_unnamed, ..Plan::default() };
        let mut traced = Traced::start(folder.path(), &flags, plan);
        // What is opened once and for all is open now.
        self.operation.set_up(folder.path());
        let (tool, arguments) = self.operation.call(folder.path());
        assert!(!traced.server.call(tool, &arguments).unwrap().is_error());
        traced
    }

    fn place(&self, seen: &Seen) -> String {
        let Job { operation, durability, lasting, .. } = self;
        let hit = seen.hit.as_deref().unwrap_or_default();
        format!("{}, durability {durability}, {lasting:?}, {hit}", operation.name)
    }

    fn judge(
        &self,
        folder: &tempfile::TempDir,
        traced: &mut Traced,
        seen: &Seen,
        answer: Result<Answer, NoAnswer>,
        tally: &mut Tally,
    ) {
        let (operation, dir) = (self.operation, folder.path());
        let mut bad = |what: String| tally.bad.push(format!("{}: {what}", self.place(seen)));
        tally.tries += 1;
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return bad(format!("no answer: {why:?}")),
        };
        if let Some(what) = operation.dishonest(dir, &answer) {
            tally.dishonest += 1;
            bad(what);
        }
        let must_work = match self.act {
            Act::Fail(number) => number == libc::EINTR,
            _ => true,
        };
        let changed = operation.changed_attributes(dir);
        if must_work && !changed.is_empty() {
            bad(format!("changed: {changed:?}"));
        }
        if answer.is_error() {
            *tally.refused.entry(answer.code().unwrap_or_default()).or_default() += 1;
            let has_panicked = answer.text().contains("Internal error");
            if must_work || answer.code().is_none() || answer.text().is_empty() || has_panicked {
                bad(format!("refused: {}", answer.0));
            }
        } else {
            tally.applied += 1;
            let is_unknown = answer.text().contains("durability unknown");
            tally.durability_unknown += usize::from(is_unknown);
            let sync_failed = self.lasting == Lasting::Once
                && seen.hit.as_ref().is_some_and(|hit| hit.contains(", fsync("));
            if sync_failed && !must_work && !is_unknown {
                bad(format!("a failed sync of the folder is not told: {}", answer.text()));
            }
            let text_unsynced = seen.hit.as_ref().is_some_and(|hit| hit.contains(", fdatasync("));
            if text_unsynced && !must_work {
                bad(format!("a failed sync of the text is not told: {}", answer.text()));
            }
        }
        // Where nothing works any more, nothing can be tidied up either: then the next use does it.
        let leftovers = operation.leftovers(dir);
        if self.lasting == Lasting::Once && !leftovers.is_empty() {
            tally.left_over += 1;
            bad(format!("left over: {leftovers:?}"));
        }
        if let Err(what) = operation.edit_again(&mut traced.server, dir) {
            bad(what);
        }
        let leftovers = operation.leftovers(dir);
        if !leftovers.is_empty() {
            tally.left_over += 1;
            bad(format!("left over after the next use: {leftovers:?}"));
        }
    }
}

/// Reading and listing, with each error at each call: the truth or a refusal.
fn reading() -> Row {
    let mut row = Row::new("the same while reading and listing");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir(dir.join("sub")).unwrap();
    let text = "a line\n".repeat(1000);
    for name in ["a.txt", "b.txt", "sub/a.txt"] {
        fs::write(dir.join(name), &text).unwrap();
    }
    std::os::unix::fs::symlink("sub/a.txt", dir.join("link.txt")).unwrap();
    let path = dir.join("sub/a.txt").display().to_string();
    let calls = [
        ("read_file", json!({ "name": "a.txt" })),
        ("read_file", json!({ "name": "link.txt" })),
        ("read_text_file", json!({ "path": path })),
        ("list_files", json!({})),
    ];
    let mut traced = Traced::start(dir, &["--tools=all"], Plan::default());
    let (mut answered, mut refused) = (0, 0);
    for (tool, arguments) in calls {
        let truth = traced.server.call(tool, &arguments).unwrap().text();
        for (name, act) in ERRORS.map(|(name, number)| (name, Act::Fail(number))) {
            for nth in 1.. {
                traced.plan(Plan { nth, act: act.clone(), ..Plan::default() });
                let answer = traced.server.call(tool, &arguments).unwrap();
                let Some(hit) = traced.end_plan().hit else { break };
                row.tries += 1;
                let place = format!("{name}, {tool}, {hit}: {}", answer.text());
                if answer.is_error() {
                    refused += 1;
                    row.check(name != "EINTR" && answer.code().is_some(), || place);
                } else {
                    answered += 1;
                    // A file that cannot be looked at is not listed, one that cannot be read has no count of lines.
                    let may_lack = tool == "list_files" && name != "EINTR";
                    row.check(answer.text() == truth || may_lack, || place);
                }
            }
        }
    }
    row.check(traced.server.call("list_files", &json!({})).is_ok(), || "it serves no more".into());
    row.found(format!("answered {answered}, refused {refused}"))
}

fn count_open_files(traced: &Traced) -> usize {
    fs::read_dir(format!("/proc/{}/fd", traced.server.pid())).map_or(0, Iterator::count)
}

/// The caller's time is over while a call of the file system has not come back yet, at each of them.
fn too_late(operations: &[Operation], scale: Scale) -> Row {
    let mut row = Row::new("the deadline passes during the call");
    let mut points = Vec::new();
    for operation in operations {
        let calls = count_calls(operation);
        points.extend((1..=calls).step_by(scale.of(3, 1)).map(|nth| (operation, nth)));
    }
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..HELD_AT_ONCE {
            scope.spawn(|| {
                while let Some(&(operation, nth)) = points.get(next.fetch_add(1, Ordering::SeqCst))
                {
                    hold(operation, nth, &tally);
                }
            });
        }
    });
    let Tally { tries, applied, refused, dishonest, bad, .. } = tally.into_inner().unwrap();
    (row.tries, row.bad) = (tries, bad);
    let refused: usize = refused.values().sum();
    row.check(applied > 0 && refused > 0, || "it never came to that".into());
    row.found(format!(
        "applied and said so {applied}; refused with -32014 and nothing written, then or later \
         {refused}; dishonest {dishonest}"
    ))
}

fn count_calls(operation: &Operation) -> usize {
    let folder = tempfile::tempdir().unwrap();
    operation.set_up(folder.path());
    let mut traced = Traced::start(folder.path(), &["--tools=all"], Plan::default());
    traced.server.ready();
    traced.plan(Plan::default());
    let (tool, arguments) = operation.call(folder.path());
    assert!(!traced.server.call(tool, &arguments).unwrap().is_error());
    traced.end_plan().calls.len()
}

fn hold(operation: &Operation, nth: usize, tally: &Mutex<Tally>) {
    const PAST_THE_DEADLINE: Duration = Duration::from_millis(1200);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    operation.set_up(dir);
    let mut traced = Traced::start(dir, &["--tools=all", "--timeout=1"], Plan::default());
    traced.server.ready();
    let release = Arc::new(AtomicBool::new(false));
    traced.plan(Plan { nth, act: Act::Hold(Arc::clone(&release)), ..Plan::default() });
    let (tool, arguments) = operation.call(dir);
    let since = Instant::now();
    traced.server.send(tool, &arguments).unwrap();
    let early = traced.server.receive(PAST_THE_DEADLINE);
    std::thread::sleep(PAST_THE_DEADLINE.saturating_sub(since.elapsed()));
    release.store(true, Ordering::SeqCst);
    let answer = if early.is_ok() { early } else { traced.server.receive(HANG) };
    let Some(place) = traced.end_plan().hit else { return };
    let place = format!("{}, {place}", operation.name);
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return tally.lock().unwrap().bad.push(format!("{place}: {why:?}")),
    };
    // The work has ended when another edit of the file has: only one at a time is made.
    let (state, dishonest) = (operation.state(dir), operation.dishonest(dir, &answer));
    let again = operation.edit_again(&mut traced.server, dir);
    let mut tally = tally.lock().unwrap();
    tally.tries += 1;
    if answer.is_error() {
        *tally.refused.entry(answer.code().unwrap_or_default()).or_default() += 1;
        if answer.code() != Some(-32014) {
            tally.bad.push(format!("{place}: {}", answer.text()));
        }
    } else {
        tally.applied += 1;
    }
    if let Some(what) = dishonest {
        tally.dishonest += 1;
        tally.bad.push(format!("{place}: {what}"));
    }
    if let Err(what) = again {
        tally.bad.push(format!("{place}: it was {state:?}; {what}"));
    }
    let leftovers = operation.leftovers(dir);
    if state == State::Old && !leftovers.is_empty() {
        tally.bad.push(format!("{place}: left over: {leftovers:?}"));
    }
}
