//! Everything at once, for as long as it is told to: `cargo xtask soak`.
//!
//! One server on HTTP lives from the beginning to the end; others, on stdio, come, go and are killed. All work in one
//! folder, with others who take no lock, on a disk that is full or read-only at times. Every few minutes all of them
//! rest: then what was acknowledged must be there, once, and the server must be as small as it was before.

mod book;
mod clients;
mod gate;
mod others;
mod scene;
mod weather;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::disks::not_tried;
use crate::http::HttpServer;
use crate::report::{Row, grouped};
use crate::server::HANG;
use scene::Scene;

/// How long all rest before the server is looked at: what it keeps for a while has gone by then.
const REST: Duration = Duration::from_secs(15);
/// How long they work before they rest.
const WORK: Duration = Duration::from_mins(5);
const SAMPLE: Duration = Duration::from_secs(3);
/// How long a worker may take to come to rest: three calls of it may hang, one after another.
const LATE: Duration = HANG.saturating_mul(3);
/// How long one rests whose work ended in a panic.
const SHOCK: Duration = Duration::from_secs(1);
/// From how many minutes on the disk must have been full and read-only.
const MINUTES_WITH_FAULTS: u64 = 2;

/// How much more than at the beginning a resting server may have: memory of its own in KiB, for what its allocator
/// keeps back; and what one rest may have more than the first, for the same reason.
const MEMORY_SLACK: u64 = 3 << 10;
const GROWTH_SLACK: u64 = 1 << 10;

/// What the server has at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// In KiB.
    own: u64,
    resident: u64,
    descriptors: u64,
    threads: u64,
}

impl Sample {
    fn of(server: &HttpServer) -> Self {
        Self {
            own: server.memory("RssAnon"),
            resident: server.memory("VmRSS"),
            descriptors: server.descriptors(),
            threads: server.memory("Threads"),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            own: self.own.max(other.own),
            resident: self.resident.max(other.resident),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }

    fn shown(self) -> String {
        let Self { own, resident, descriptors, threads } = self;
        #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
        let megabytes = |kib: u64| kib as f64 / 1024.0;
        format!(
            "{:.1} MB of its own ({:.1} in all), {descriptors} descriptors, {threads} threads",
            megabytes(own),
            megabytes(resident)
        )
    }
}

/// What was seen of the server.
#[derive(Default)]
struct Watched {
    rests: Vec<Sample>,
    peak: Sample,
}

pub fn row(minutes: u64) -> Row {
    crate::http::raise_descriptor_limit();
    let mut row = Row::new(format!("everything at once for {minutes} minutes"));
    let scene = Scene::open();
    println!("soak: {minutes} minutes, in {}", scene.about());
    // What is made once and kept, such as the parsers of languages, is made before the server is looked at.
    clients::once_each(&scene);
    std::thread::sleep(REST);
    let first = Sample::of(&scene.server.lock().unwrap());
    println!("at rest in the beginning: {}", first.shown());

    let mut watched = Watched::default();
    let began = Instant::now();
    let until = began + Duration::from_secs(60 * minutes);
    std::thread::scope(|threads| {
        let _over = scene.gate.over_at_last();
        for (number, worker) in clients::WORKERS.iter().enumerate() {
            let scene = &scene;
            threads.spawn(move || labour(scene, worker, Chance::new(number as u64)));
        }
        // Three rests at least, or there would be nothing to compare.
        let work = WORK.min(Duration::from_secs(20 * minutes));
        loop {
            watch(&scene, (Instant::now() + work).min(until), began, &mut watched);
            let missing = scene.gate.close(clients::WORKERS.len(), LATE);
            if missing > 0 {
                row.bad.push(format!("{missing} workers do not come to rest in {LATE:?}"));
                break;
            }
            std::thread::sleep(REST);
            let sample = Sample::of(&scene.server.lock().unwrap());
            println!("at rest: {}", sample.shown());
            watched.rests.push(sample);
            clients::append_at_rest(&scene, &mut row);
            scene.verify(&mut row);
            if Instant::now() >= until {
                break;
            }
            scene.gate.open();
        }
    });
    scene.verify_end(&mut row);
    judge(&mut row, first, &watched);
    judge_faults(&mut row, &scene, minutes);
    // What clients saw comes first: the rest may follow from it.
    row.bad.splice(0..0, scene.bad.lock().unwrap().drain(..));
    row.tries = scene.calls.load(Ordering::Relaxed);
    let found = found(&scene, first, &watched);
    row.found(found)
}

/// Works and rests until all is over. What panics has seen something that must never be, such as a line that is no JSON.
fn labour(scene: &Scene, (name, work): &clients::Worker, mut chance: Chance) {
    while scene.gate.pass() {
        let worked = catch_unwind(AssertUnwindSafe(|| work(scene, &mut chance)));
        if let Err(panic) = worked {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            scene.bad(format!("{name}: panicked: {text:.1000}"));
            std::thread::sleep(SHOCK);
        }
    }
}

/// Looks at the server every few seconds, and says a word every minute.
fn watch(scene: &Scene, until: Instant, began: Instant, watched: &mut Watched) {
    let mut minute = began.elapsed().as_secs() / 60;
    while Instant::now() < until {
        std::thread::sleep(SAMPLE.min(until.saturating_duration_since(Instant::now())));
        let sample = Sample::of(&scene.server.lock().unwrap());
        watched.peak = watched.peak.most(sample);
        let now = began.elapsed().as_secs() / 60;
        if now != minute {
            minute = now;
            let calls = grouped(scene.calls.load(Ordering::Relaxed));
            println!("after {now} min: {calls} calls; {}", sample.shown());
        }
    }
}

fn judge(row: &mut Row, first: Sample, watched: &Watched) {
    for (number, rest) in watched.rests.iter().enumerate() {
        let about = |what: &str| {
            format!("rest {number}: {what}: {}; at first {}", rest.shown(), first.shown())
        };
        row.check(rest.own <= first.own + MEMORY_SLACK, || about("more memory"));
        row.check(rest.descriptors <= first.descriptors, || about("more descriptors"));
        row.check(rest.threads <= first.threads, || about("more threads"));
    }
    if let [early, .., late] = &watched.rests[..] {
        row.check(late.own <= early.own + GROWTH_SLACK, || {
            format!("memory grows from rest to rest: {} KiB, then {} KiB", early.own, late.own)
        });
    }
}

/// A soak in which nothing went wrong with the disk has not tried what it is for.
fn judge_faults(row: &mut Row, scene: &Scene, minutes: u64) {
    if let Some(why) = scene.never_fails() {
        let why = format!("a full or read-only disk: {why}");
        row.bad.extend(not_tried(&row.what, &why).bad);
        return;
    }
    for (what, count) in [("full", &scene.full), ("read-only", &scene.read_only)] {
        let has_been = count.load(Ordering::Relaxed) > 0;
        row.check(has_been || minutes < MINUTES_WITH_FAULTS, || {
            format!("the disk was never {what}")
        });
    }
}

fn found(scene: &Scene, first: Sample, watched: &Watched) -> String {
    let last = watched.rests.last().copied().unwrap_or_default();
    format!(
        "{}; at rest in the beginning {}; at most {}; at rest in the end {}; {} rests",
        scene.found(),
        first.shown(),
        watched.peak.shown(),
        last.shown(),
        watched.rests.len(),
    )
}
