//! A cancellation stops a call before it publishes, and never after: the call is taken back while it is held at each of
//! its calls of the file system.

mod caller;
mod waiting;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tempfile::TempDir;

use crate::operations::{DURABILITIES, Operation, State};
use crate::report::{Row, Scale};
use crate::server::{HANG, Server};
use crate::tracer::{Act, Plan, Seen};
use caller::{Called, Caller, Logged, Way};

/// Servers at a time whose calls are held.
const AT_ONCE: usize = 4;

/// What is taken back while a call is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The call itself.
    Own,
    /// Another one, which must not matter.
    Anothers,
}

pub fn run(scale: Scale) -> Vec<Row> {
    let operations = Operation::all();
    let picked = |short: &[&str]| -> Vec<&Operation> {
        let is_picked = |name| scale == Scale::Full || short.contains(&name);
        operations.iter().filter(|operation| is_picked(operation.name)).collect()
    };
    let mut rows = Vec::new();
    for operation in picked(&["edit", "create", "create folders"]) {
        let jobs = jobs_for(&[operation], scale, Way::Stdio, Whose::Own);
        rows.push(everywhere(&format!("{}, {}", operation.name, Way::Stdio.name()), &jobs));
    }
    for (way, short) in [
        (Way::StdioMethod, "create"),
        (Way::Http, "edit"),
        (Way::HttpBefore, "create"),
        (Way::HttpMethod, "create"),
    ] {
        rows.push(everywhere(way.name(), &jobs_for(&picked(&[short]), scale, way, Whose::Own)));
    }
    for (way, what) in [
        (Way::Stdio, "control, stdio: a call that is over is taken back"),
        (Way::Http, "control, HTTP: somebody else takes back a call of the same id"),
    ] {
        let jobs = jobs_for(&picked(&["create"]), scale, way, Whose::Anothers);
        rows.push(everywhere(what, &jobs));
    }
    rows.extend(waiting::run(scale));
    rows
}

/// One operation, and one way to take it back, at each of its calls in turn.
struct Job<'a> {
    operation: &'a Operation,
    durability: &'static str,
    without_unnamed: bool,
    way: Way,
    whose: Whose,
}

fn jobs_for<'a>(
    operations: &[&'a Operation],
    scale: Scale,
    way: Way,
    whose: Whose,
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    let can_be_called = |operation: &&&Operation| operation.is_plain() || !way.is_plain();
    for &operation in operations.iter().filter(can_be_called) {
        // The strictest makes every call that the others make.
        for &durability in &DURABILITIES[scale.of(2, 0)..] {
            for &without_unnamed in scale.of(&[false][..], &[false, true]) {
                jobs.push(Job { operation, durability, without_unnamed, way, whose });
            }
        }
    }
    jobs
}

#[derive(Default)]
struct Tally {
    tries: usize,
    old: usize,
    new: usize,
    torn: usize,
    answered: usize,
    left_over: usize,
    /// Names of the call that publishes, as it was found there.
    borders: BTreeSet<&'static str>,
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
    let Tally { tries, old, new, torn, answered, left_over, borders, bad } =
        tally.into_inner().unwrap();
    let mut row = Row::new(what);
    (row.tries, row.bad) = (tries, bad);
    if jobs.iter().any(|job| job.whose == Whose::Anothers) {
        row.check(new > 10, || "it never came to that".into());
        return row.found(format!("applied {new}, answered {answered}"));
    }
    row.check(old > 10 && new > 0, || "it never came to that".into());
    let border = borders.into_iter().collect::<Vec<_>>().join(" or ");
    row.found(format!(
        "old {old}, before {border}; new {new}, from there on; torn {torn}; answered {answered}; \
         left over {left_over}"
    ))
}

/// A server that is called and one beside it, in a folder of their own.
struct Place {
    folder: TempDir,
    caller: Caller,
    other: Server,
    /// What was taken back, and where.
    taken_back: Vec<(Called, String)>,
}

/// How a try ended.
enum Ended {
    /// It was held, taken back and let go on.
    AsPlanned,
    /// The call was over before it came to that.
    Before(Seen),
    /// There is no point in another one.
    ForGood,
}

impl Job<'_> {
    fn run(&self, tally: &Mutex<Tally>) {
        let mut place = self.start();
        for nth in 1.. {
            let seen = match self.hold(&mut place, nth, None, tally) {
                Ended::AsPlanned => continue,
                Ended::Before(seen) => seen,
                Ended::ForGood => break,
            };
            // How many calls there are varies a little, but none must be missed that publishes.
            let only = seen.calls.iter().find_map(|call| self.operation.published_by(call));
            let ended = self.hold(&mut place, 1, only, tally);
            assert!(!matches!(ended, Ended::Before(_)), "it was not held where it publishes");
            break;
        }
        place.caller.end();
        let mut tally = lock(tally);
        for (called, at) in place.taken_back {
            if place.caller.is_answered(&called) {
                tally.answered += 1;
                tally.bad.push(format!("{at}: answered though it was taken back"));
            }
        }
    }

    fn start(&self) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let durability = format!("--durability={}", self.durability);
        // The disk of a busy machine may take its time.
        let flags = ["--tools=all", "--timeout=100", &durability];
        let mut caller = Caller::start(dir, self.way, &flags);
        let other = Server::start(dir, &flags);
        // What is opened once and for all is open now.
        self.operation.set_up(dir);
        let (tool, arguments) = self.operation.call(dir);
        assert!(!caller.call(tool, &arguments).unwrap().is_error());
        Place { folder, caller, other, taken_back: Vec::new() }
    }

    fn call(&self, dir: &Path) -> (&'static str, Value) {
        if self.way.is_plain() { self.operation.plain_call(dir) } else { self.operation.call(dir) }
    }

    /// One call, held at its n-th call of the file system, or the n-th of that name, and taken back there.
    fn hold(
        &self,
        place: &mut Place,
        nth: usize,
        only: Option<&'static str>,
        tally: &Mutex<Tally>,
    ) -> Ended {
        let Place { folder, caller, other, taken_back } = place;
        let dir = folder.path();
        self.operation.set_up(dir);
        let release = Arc::new(AtomicBool::new(false));
        let (act, without_unnamed) = (Act::Hold(Arc::clone(&release)), self.without_unnamed);
        caller.traced.plan(Plan { nth, act, only, without_unnamed, ..Plan::default() });
        let (tool, arguments) = self.call(dir);
        let mut called = caller.begin(tool, &arguments);
        if !caller.is_held(&called) {
            return Ended::Before(caller.traced.end_plan());
        }
        let heard = match self.whose {
            Whose::Own => caller.cancel(&mut called),
            Whose::Anothers => caller.cancel_another(&called),
        };
        release.store(true, Ordering::SeqCst);
        let logged = caller.logged(&called, HANG);
        let seen = caller.traced.end_plan();
        let at = self.describe(&seen);
        let bad = |what: String| lock(tally).bad.push(format!("{at}: {what}"));
        let (Ok(()), Some(logged)) = (&heard, logged) else {
            bad(format!("it does not end: {heard:?}"));
            return Ended::ForGood;
        };
        self.judge(dir, nth, &seen, &logged, &mut lock(tally));
        match self.whose {
            Whose::Own => taken_back.push((called, at.clone())),
            Whose::Anothers => match caller.succeeds(&mut called) {
                Ok(()) => lock(tally).answered += 1,
                Err(what) => bad(what),
            },
        }
        if !is_unlocked(&self.operation.file(dir)) {
            bad("the file is still locked".into());
            return Ended::ForGood;
        }
        let by_other = self.operation.edit_again(other, dir);
        let by_same = self.operation.append(dir, |tool, arguments| caller.call(tool, arguments));
        for what in [by_other, by_same].into_iter().filter_map(Result::err) {
            bad(what);
        }
        Ended::AsPlanned
    }

    fn describe(&self, seen: &Seen) -> String {
        let Job { operation, durability, way, .. } = self;
        let hit = seen.hit.as_deref().unwrap_or_default();
        format!("{}, {}, durability {durability}, {hit}", operation.name, way.name())
    }

    fn judge(&self, dir: &Path, nth: usize, seen: &Seen, logged: &Logged, tally: &mut Tally) {
        let operation = self.operation;
        let mut bad = |what: String| tally.bad.push(format!("{}: {what}", self.describe(seen)));
        let state = operation.state(dir);
        let published = seen.calls.iter().position(|call| operation.published_by(call).is_some());
        // Counted as the tracer does.
        let published = published.map(|index| index + 1);
        match (&state, published) {
            (State::Torn(what), _) => bad(format!("torn: {what}")),
            (State::Old, Some(_)) => bad("published, and undone".into()),
            (State::Old, None) if self.whose == Whose::Anothers => bad("not applied".into()),
            (State::New, None) => bad("nobody saw it published".into()),
            (State::New, Some(at)) if at > nth && self.whose == Whose::Own => {
                bad(format!("published later, by {}", seen.calls[at - 1]));
            }
            (State::Old, None) | (State::New, Some(_)) => {}
        }
        let is_told = match logged {
            Logged::Ok => state == State::New,
            Logged::Cancelled => state == State::Old,
            Logged::Otherwise(_) => false,
        };
        if !is_told {
            bad(format!("the file is {state:?}, the log says {logged:?}"));
        }
        let leftovers = operation.leftovers(dir);
        if !leftovers.is_empty() {
            bad(format!("left over: {leftovers:?}"));
        }
        let changed = operation.changed_attributes(dir);
        if !changed.is_empty() {
            bad(format!("changed: {changed:?}"));
        }
        tally.tries += 1;
        tally.left_over += usize::from(!leftovers.is_empty());
        match state {
            State::Old => tally.old += 1,
            State::New => tally.new += 1,
            State::Torn(_) => tally.torn += 1,
        }
        if published == Some(nth) {
            tally.borders.extend(operation.published_by(&seen.calls[nth - 1]));
        }
    }
}

/// Whether nobody has the file's lock; a missing one has none.
fn is_unlocked(path: &Path) -> bool {
    let file = File::options().read(true).write(true).open(path);
    file.map_or(true, |file| file.try_lock().is_ok())
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap()
}
