//! A call that is taken back while it waits, before it begins, or at any moment.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::caller::{Called, Caller, Logged, Way};
use crate::chance::Chance;
use crate::folder;
use crate::report::{Row, Scale};
use crate::server::{HANG, Server};
use crate::tracer::{Act, Lasting, Plan};

const FILE: &str = "a.txt";
const TEXT: &str = "one\ntwo\n";

/// So many edits a server works on at the same time.
const AT_WORK: usize = 32;

pub fn run(scale: Scale) -> Vec<Row> {
    vec![
        for_a_lock(scale.of(1, 20)),
        in_the_queue(scale.of(1, 20)),
        for_a_thread(scale.of(1, 5)),
        at_any_moment(scale.of(5, 200)),
    ]
}

fn append(line: &str) -> Value {
    json!({ "name": FILE, "append": line })
}

/// A server that is called in one way, and another one beside it.
struct Scene {
    folder: TempDir,
    way: Way,
    caller: Caller,
    other: Server,
    taken_back: Vec<Called>,
    row: Row,
}

impl Scene {
    fn open(way: Way) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let caller = Caller::start(folder.path(), way, &["--timeout=300"]);
        let other = Server::start(folder.path(), &["--timeout=300"]);
        Self { folder, way, caller, other, taken_back: Vec::new(), row: Row::new(way.name()) }
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn set_up(&self) {
        fs::write(self.dir().join(FILE), TEXT).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.dir().join(FILE)).unwrap()
    }

    /// Holds the first call of the file system, or all of them, until the release.
    fn hold(&self, lasting: Lasting) -> Arc<AtomicBool> {
        let release = Arc::new(AtomicBool::new(false));
        let act = Act::Hold(Arc::clone(&release));
        self.caller.traced.plan(Plan { nth: 1, act, lasting, ..Plan::default() });
        release
    }

    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        let way = self.way.name();
        self.row.check(holds, || format!("{way}: {}", otherwise()));
    }

    fn check_text(&mut self, expected: &str) {
        let found = self.text();
        self.check(found == expected, || format!("{found:?}, not {expected:?}"));
        let names = folder::names(self.dir());
        let is_clean = names.iter().all(|name| !name.starts_with('.'));
        self.check(is_clean, || format!("left over: {names:?}"));
    }

    /// Takes back a call that waits. It is over at once: what it waits for is let go of only after this.
    fn take_back(&mut self, mut called: Called) {
        let heard = self.caller.cancel(&mut called);
        self.check(heard.is_ok(), || format!("{heard:?}"));
        let logged = self.caller.logged(&called, HANG);
        self.check(logged == Some(Logged::Cancelled), || format!("the log says {logged:?}"));
        self.taken_back.push(called);
    }

    fn succeeds(&mut self, mut called: Called) {
        let outcome = self.caller.succeeds(&mut called);
        self.check(outcome.is_ok(), || format!("{outcome:?}"));
    }

    /// The next edits of the file, by both servers.
    fn edit_again(&mut self) {
        let before = self.text();
        for answer in [
            self.other.call("edit_file", &append("by another")),
            self.caller.call("edit_file", &append("by the same")),
        ] {
            let is_applied = answer.as_ref().is_ok_and(|answer| !answer.is_error());
            self.check(is_applied, || format!("the next edit: {answer:?}"));
        }
        self.check_text(&format!("{before}by another\nby the same\n"));
    }

    fn end(mut self, into: &mut Row) {
        self.caller.end();
        for called in std::mem::take(&mut self.taken_back) {
            let is_answered = self.caller.is_answered(&called);
            self.check(!is_answered, || "answered though it was taken back".into());
        }
        into.tries += self.row.tries;
        into.bad.append(&mut self.row.bad);
    }
}

/// Tries it so many times in each of the ways, as long as nothing is bad.
fn in_ways(ways: &[Way], what: &str, times: usize, try_once: impl Fn(&mut Scene) + Sync) -> Row {
    let row = Mutex::new(Row::new(what));
    std::thread::scope(|scope| {
        for &way in ways {
            let (row, try_once) = (&row, &try_once);
            scope.spawn(move || {
                let mut scene = Scene::open(way);
                while scene.row.tries < times && scene.row.bad.is_empty() {
                    scene.row.tries += 1;
                    scene.set_up();
                    try_once(&mut scene);
                }
                scene.end(&mut row.lock().unwrap());
            });
        }
    });
    row.into_inner().unwrap()
}

/// What was found, unless it was not.
fn unless_bad(row: Row, found: &str) -> Row {
    let found = if row.bad.is_empty() { found } else { "see below" };
    row.found(found)
}

fn for_a_lock(times: usize) -> Row {
    let what = "while it waits for a lock that another process has";
    let row = in_ways(&Way::ALL, what, times, |scene| {
        let file = File::options().read(true).write(true).open(scene.dir().join(FILE)).unwrap();
        file.lock().unwrap();
        scene.caller.traced.plan(Plan { only: Some("flock"), ..Plan::default() });
        let called = scene.caller.begin("edit_file", &append("never"));
        // It has tried, and tries again.
        scene.caller.wait_until_seen(2);
        scene.take_back(called);
        scene.caller.traced.end_plan();
        drop(file);
        scene.check_text(TEXT);
        scene.edit_again();
    });
    unless_bad(row, "over while it was still locked, nothing written; the next edits applied")
}

fn in_the_queue(times: usize) -> Row {
    let row =
        in_ways(&Way::ALL, "while it waits behind another edit of the file", times, |scene| {
            let release = scene.hold(Lasting::Once);
            let first = scene.caller.begin("edit_file", &append("first"));
            scene.caller.wait_until_seen(1);
            let called = scene.caller.begin("edit_file", &append("never"));
            let third = scene.caller.begin("edit_file", &append("third"));
            scene.caller.settle().unwrap();
            scene.take_back(called);
            scene.check_text(TEXT);
            release.store(true, Ordering::SeqCst);
            scene.succeeds(first);
            scene.succeeds(third);
            scene.check_text(&format!("{TEXT}first\nthird\n"));
            scene.edit_again();
        });
    unless_bad(row, "over while the one before it was at work, nothing written; the others applied")
}

fn for_a_thread(times: usize) -> Row {
    let what = format!("before it begins: {AT_WORK} edits of other files are at work");
    let row = in_ways(&Way::ALL, &what, times, |scene| {
        let release = scene.hold(Lasting::FromThenOn);
        let mut at_work = Vec::new();
        for number in 0..AT_WORK {
            let name = format!("{number}.txt");
            fs::write(scene.dir().join(&name), TEXT).unwrap();
            let arguments = json!({ "name": name, "append": "at work" });
            at_work.push(scene.caller.begin("edit_file", &arguments));
        }
        scene.caller.wait_until_seen(AT_WORK);
        let called = scene.caller.begin("edit_file", &append("never"));
        scene.caller.settle().unwrap();
        scene.take_back(called);
        let calls = scene.caller.traced.end_plan().calls;
        scene.check(calls.len() == AT_WORK, || format!("it has begun: {calls:?}"));
        release.store(true, Ordering::SeqCst);
        for called in at_work {
            scene.succeeds(called);
        }
        scene.check_text(TEXT);
        scene.edit_again();
    });
    unless_bad(row, "over while the others were at work, nothing written; the others applied")
}

/// Whether it comes in time is chance. What came of it is told.
fn at_any_moment(times: usize) -> Row {
    /// About as long as an edit takes that is watched.
    const MOMENTS: Duration = Duration::from_millis(3);
    let chance = Mutex::new(Chance::new(1));
    let [old, new, answered] = [const { AtomicUsize::new(0) }; 3];
    let count = |which: &AtomicUsize, holds| which.fetch_add(usize::from(holds), Ordering::SeqCst);
    // Where the log counts calls itself, it could not be told which one it means if one has not become a call.
    let ways = [Way::Stdio, Way::StdioMethod, Way::Http, Way::HttpBefore];
    let row = in_ways(&ways, "at any moment, not held", times, |scene| {
        let mut called = scene.caller.begin("edit_file", &append("perhaps"));
        let moment = chance.lock().unwrap().duration(MOMENTS);
        std::thread::sleep(moment);
        let heard = scene.caller.cancel(&mut called);
        scene.check(heard.is_ok(), || format!("{heard:?}"));
        // Edits of one file are made in order, so that it is over after this one.
        let next = scene.caller.call("edit_file", &append("next"));
        let is_applied = next.as_ref().is_ok_and(|next| !next.is_error());
        scene.check(is_applied, || format!("the next edit: {next:?}"));
        let is_old = scene.text() == format!("{TEXT}next\n");
        let lines = if is_old { "next\n" } else { "perhaps\nnext\n" };
        scene.check_text(&format!("{TEXT}{lines}"));
        let is_answered = scene.caller.is_answered(&called);
        scene.check(!is_old || !is_answered, || "answered, and nothing was written".into());
        // A connection that is closed at once may be gone before there is a call.
        let may_lack = is_old && scene.way.is_http();
        let logged = scene.caller.logged(&called, if may_lack { Duration::ZERO } else { HANG });
        let truth = if is_old { Logged::Cancelled } else { Logged::Ok };
        let is_true = logged.as_ref().map_or(may_lack, |logged| *logged == truth);
        scene.check(is_true, || format!("{lines:?} came of it, the log says {logged:?}"));
        count(&old, is_old);
        count(&new, !is_old);
        count(&answered, is_answered);
    });
    let [old, new, answered] = [old, new, answered].map(AtomicUsize::into_inner);
    row.found(format!("old {old}; new {new}, of which answered before {answered}"))
}
