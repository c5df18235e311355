//! What servers hold: when they idle, at most, and ten seconds after work.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use serde_json::json;

use crate::contenders::{Contender, Durability, Kind, Round, Task, serving};
use crate::figures::megabytes;
use crate::http::Load;
use crate::process::{OnStdio, Process, message};
use crate::report::{Bar, Report, failure};
use crate::scene::{self, MB};
use crate::throughput::{self, Dialect};

/// A server that was just started does not idle yet.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(10);
const IDLE: u64 = 4 << 20;
const SETTLED: u64 = 1 << 20;
const CALLS: usize = 100;
const HTTP_LOAD: Duration = Duration::from_secs(2);

/// In bytes.
#[derive(Clone, Copy, Debug)]
struct Memory {
    idle: u64,
    peak: u64,
    settled: u64,
}

/// What a server is loaded with.
#[derive(Clone, Copy, Debug)]
enum Work {
    Reads,
    Edits,
    Lists,
    /// From so many connections.
    Http(usize),
}

impl Work {
    const ALL: [Self; 5] =
        [Self::Reads, Self::Edits, Self::Lists, Self::Http(64), Self::Http(1000)];

    fn name(self) -> &'static str {
        match self {
            Self::Reads => "stdio, 100 reads of 1 MB",
            Self::Edits => "stdio, 100 edits of 1 MB",
            Self::Lists => "stdio, 100 lists of 10,000 files",
            Self::Http(64) => "HTTP, 64 connections, REST and MCP",
            Self::Http(_) => "HTTP, 1,000 connections, REST and MCP",
        }
    }

    fn is_http(self) -> bool {
        matches!(self, Self::Http(_))
    }
}

/// Who is measured, with what.
type Case<'a> = (&'a Contender, Work);

/// All at the same time: this is about memory.
fn measure(cases: &[Case], folder: &Path) -> Vec<Result<Memory>> {
    let join = |thread: ScopedJoinHandle<Result<Memory>>| {
        thread.join().unwrap_or_else(|_| Err(Error::other("a client panicked")))
    };
    thread::scope(|scope| {
        let start = |(number, (contender, work)): (usize, &Case)| {
            let (contender, work) = ((*contender).clone(), *work);
            let folder = folder.join(format!("memory-{number}"));
            scope.spawn(move || match work {
                Work::Http(connections) => on_http(&contender, &folder, connections),
                _ => on_stdio(&contender, &folder, work),
            })
        };
        let threads: Vec<_> = cases.iter().enumerate().map(start).collect();
        threads.into_iter().map(join).collect()
    })
}

fn on_stdio(contender: &Contender, folder: &Path, work: Work) -> Result<Memory> {
    fs::create_dir(folder)?;
    let (path, task) = match work {
        Work::Lists => (folder.to_path_buf(), Task::List),
        Work::Edits => (folder.join("file.rs"), Task::Edit),
        _ => (folder.join("file.rs"), Task::Read),
    };
    match work {
        Work::Lists => scene::many(folder, 10_000)?,
        _ => fs::write(&path, scene::marked(MB, 1))?,
    }
    let mut server = OnStdio::start(&mut contender.command(folder, Durability::None))?;
    let idle = resident_after(BEFORE, &server.process)?;
    for number in 0..CALLS {
        let params = contender.ask(task, Round { path: &path, number });
        let params = params.ok_or_else(|| Error::other("it has no such tool"))?;
        server.call(&message(number + 2, "tools/call", &params))?;
        server.check()?;
    }
    finish(idle, &server.process)
}

fn on_http(contender: &Contender, folder: &Path, connections: usize) -> Result<Memory> {
    fs::create_dir(folder)?;
    let path = folder.join("file.rs");
    fs::write(&path, scene::source(scene::KB))?;
    let server = throughput::serve(contender, folder)?;
    let idle = resident_after(BEFORE, &server.process)?;
    for dialect in [Dialect::Rest, Dialect::Mcp] {
        let mut load = Load::connect(server.port, connections)?;
        load.run(&dialect.request(&path), HTTP_LOAD)?;
    }
    finish(idle, &server.process)
}

fn finish(idle: u64, process: &Process) -> Result<Memory> {
    let peak = process.memory("VmHWM")?;
    Ok(Memory { idle, peak, settled: resident_after(AFTER, process)? })
}

fn resident_after(time: Duration, process: &Process) -> Result<u64> {
    thread::sleep(time);
    process.memory("VmRSS")
}

pub fn tell(contenders: &[Contender], folder: &Path, report: &mut Report) {
    let everybody = serving(contenders);
    let mut cases: Vec<_> = everybody.map(|contender| (contender, Work::Reads)).collect();
    let ours = contenders.iter().filter(|contender| contender.kind == Kind::Ours);
    cases.extend(ours.flat_map(|ours| Work::ALL[1..].iter().map(move |work| (ours, *work))));
    report.title("Memory: MB resident when idle, at most, and 10 s after");
    let mut rows = Vec::new();
    for ((contender, work), outcome) in cases.iter().zip(measure(&cases, folder)) {
        let (kind, name) = (contender.kind, work.name());
        let mut row = vec![kind.name().to_owned(), name.to_owned()];
        match outcome {
            Ok(memory) => {
                let Memory { idle, peak, settled } = memory;
                row.extend([idle, peak, settled].map(megabytes));
                let figures = json!({ "idle": idle, "peak": peak, "settled": settled });
                report.keep("memory", &format!("{name}: {}", kind.name()), figures);
                if kind == Kind::Ours {
                    promise_memory(*work, memory, report);
                }
            }
            Err(error) => {
                row.push(failure(&error));
                if !kind.is_rival() {
                    report.fault(&format!("memory: {name}"), &error);
                }
            }
        }
        rows.push(row);
    }
    report.table(&["", "load", "idle", "peak", "10 s later"], &rows);
}

fn promise_memory(work: Work, memory: Memory, report: &mut Report) {
    let mut bar = |what: String, promised: String, found: u64, limit: u64| {
        let (against, found, holds) =
            ("–".into(), format!("{} MB", megabytes(found)), found <= limit);
        report.bar(Bar { what, against, promised, found, holds });
    };
    if matches!(work, Work::Reads | Work::Http(64)) {
        let transport = if work.is_http() { "HTTP" } else { "stdio" };
        bar(format!("idle memory, {transport}"), "at most 4 MB".into(), memory.idle, IDLE);
    }
    let limit = memory.idle + SETTLED;
    let promised = format!("at most idle + 1 MB = {} MB", megabytes(limit));
    bar(format!("memory 10 s after {}", work.name()), promised, memory.settled, limit);
}
