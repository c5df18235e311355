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

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::http::HttpServer;
use crate::report::{Row, grouped};
use scene::Scene;

/// How long all rest before the server is looked at: what it keeps for a while has gone by then.
const REST: Duration = Duration::from_secs(15);
/// How long they work before they rest.
const WORK: Duration = Duration::from_mins(5);
const SAMPLE: Duration = Duration::from_secs(3);

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
        for (number, (_, work)) in clients::WORKERS.iter().enumerate() {
            let scene = &scene;
            threads.spawn(move || {
                let mut chance = Chance::new(number as u64);
                while scene.gate.pass() {
                    work(scene, &mut chance);
                }
            });
        }
        // Three rests at least, or there would be nothing to compare.
        let work = WORK.min(Duration::from_secs(20 * minutes));
        loop {
            watch(&scene, (Instant::now() + work).min(until), began, &mut watched);
            scene.gate.close(clients::WORKERS.len());
            std::thread::sleep(REST);
            let sample = Sample::of(&scene.server.lock().unwrap());
            println!("at rest: {}", sample.shown());
            watched.rests.push(sample);
            scene.verify(&mut row);
            if Instant::now() >= until {
                break;
            }
            scene.gate.open();
        }
        scene.gate.end();
    });
    scene.verify_end(&mut row);
    judge(&mut row, first, &watched);
    row.bad.extend(scene.bad.lock().unwrap().drain(..));
    row.tries = scene.calls.load(Ordering::Relaxed);
    let found = found(&scene, first, &watched);
    row.found(found)
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
