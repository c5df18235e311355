//! Where an attack takes place: a folder, a server, and somebody at work there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Client, HttpServer, post};
use crate::report::{Row, grouped};

/// KiB that the server may take whatever happens: the program itself, and what its allocator keeps.
pub const PROCESS: u64 = 32 << 10;
/// KiB that a connection may take by itself.
pub const CONNECTION: u64 = 200;
/// KiB of its own that the server may keep when all is over.
const SETTLED: u64 = 8 << 10;

const STEADY: &str = "first \"line\"\nsecond\\line";

pub struct Scene {
    folder: TempDir,
    pub server: HttpServer,
    worker: Worker,
    pub row: Row,
}

impl Scene {
    pub fn open(what: &str, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("steady.txt"), format!("{STEADY}\n")).unwrap();
        let flags = [&["--durability=none"], flags].concat();
        let server = HttpServer::start(folder.path(), &flags, env);
        let token = env.iter().find(|(name, _)| *name == "FILE_EDITOR_TOKEN");
        let worker = Worker::start(server.port, token.map(|(_, token)| *token));
        Self { folder, server, worker, row: Row::new(what) }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Notes what an answer must never be.
    pub fn bad(&mut self, what: impl Into<String>) {
        self.row.bad.push(what.into());
    }

    /// The attack is over. `found` is what came of it, `files` what it may have left, `allowed` how many KiB the server may
    /// have had at its peak.
    pub fn close(mut self, found: String, files: &[&str], allowed: u64) -> JoinHandle<Row> {
        let work = self.worker.finish(self.folder.path());
        self.row.bad.extend(work.bad);
        self.row.bad.extend(strangers(self.folder.path(), files));
        let alive = self.server.is_running();
        self.row.check(alive, || "the server is gone".into());
        let peak = self.server.memory("VmHWM");
        self.row.check(peak <= allowed, || format!("{peak} KiB at its peak, {allowed} allowed"));
        std::thread::spawn(move || {
            // What an idle server gives back it gives back within seconds.
            let until = Instant::now() + Duration::from_secs(20);
            while self.server.memory("RssAnon") > SETTLED && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            let settled = self.server.memory("RssAnon");
            self.row.check(settled <= SETTLED, || format!("{settled} KiB are kept afterwards"));
            let mut row = self.row;
            row.found = format!(
                "{found}; legitimate calls {}, slowest {:.0?}; peak {} MB, own memory afterwards {:.1} MB",
                grouped(work.calls),
                work.slowest,
                peak >> 10,
                f64::from(u32::try_from(settled).unwrap_or(u32::MAX)) / 1024.0,
            );
            row
        })
    }
}

/// What is in the folder and has no business there. An edit that nobody waited for may still be under way.
fn strangers(folder: &Path, allowed: &[&str]) -> Vec<String> {
    let known = [&["steady.txt", "worker.txt"], allowed].concat();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let strange: Vec<_> = names.filter(|name| !known.contains(&name.as_str())).collect();
        if strange.is_empty() || Instant::now() > until {
            return strange.iter().map(|name| format!("`{name}` was made")).collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Somebody who reads, edits and lists on a connection of their own, and looks closely at every answer.
struct Worker {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Work>,
}

#[derive(Default)]
struct Work {
    calls: usize,
    slowest: Duration,
    bad: Vec<String>,
    /// Lines whose edit was answered.
    lines: usize,
}

/// Every so many calls the worker comes anew.
const CALLS_A_CONNECTION: usize = 50;
const PAUSE: Duration = Duration::from_millis(3);

impl Worker {
    fn start(port: u16, token: Option<&str>) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let header = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let (header, finished) = (header.unwrap_or_default(), Arc::clone(&done));
        let thread = std::thread::spawn(move || {
            let mut work = Work::default();
            let mut client = Client::connect(port);
            while !finished.load(Ordering::Relaxed) && work.bad.len() < 10 {
                if work.calls.is_multiple_of(CALLS_A_CONNECTION) {
                    client = Client::connect(port);
                }
                match &mut client {
                    Ok(client) => work.call(client, &header),
                    Err(error) => work.bad.push(format!("no connection: {error}")),
                }
                if work.bad.len() > work.calls {
                    client = Client::connect(port);
                }
                std::thread::sleep(PAUSE);
            }
            work
        });
        Self { done, thread }
    }

    fn finish(self, folder: &Path) -> Work {
        self.done.store(true, Ordering::Relaxed);
        let mut work = self.thread.join().unwrap();
        let text = std::fs::read_to_string(folder.join("worker.txt")).unwrap_or_default();
        let expected = (0..work.lines).map(|line| format!("line {line}"));
        if work.bad.is_empty() && !text.lines().eq(expected) {
            work.bad.push(format!("{} lines are there of {}", text.lines().count(), work.lines));
        }
        if work.calls == 0 {
            work.bad.push("nobody was at work".into());
        }
        work
    }
}

impl Work {
    fn call(&mut self, client: &mut Client, header: &str) {
        let line = format!("line {}", self.lines);
        let mcp = |name: &str, arguments: Value| {
            let params = json!({ "name": name, "arguments": arguments });
            let message =
                json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
            ("/mcp", message)
        };
        let append = json!({ "name": "worker.txt", "append": line, "create_if_missing": true });
        let (path, body) = match self.calls % 6 {
            0 => ("/read_file", json!({ "name": "steady.txt" })),
            1 => ("/edit_file", append),
            2 => ("/list_files", json!({})),
            3 => mcp("read_file", json!({ "name": "steady.txt" })),
            4 => mcp("edit_file", append),
            _ => mcp("list_files", json!({})),
        };
        let since = Instant::now();
        let answer = client.send(&post(path, header, &body.to_string()));
        self.slowest = self.slowest.max(since.elapsed());
        let right = answer.as_ref().is_ok_and(|answer| {
            let json = answer.json();
            let text = json["result"]["content"][0]["text"].as_str().unwrap_or_default();
            answer.status == 200
                && match self.calls % 6 {
                    0 => json["content"] == STEADY,
                    1 => json["success"] == true && json["new_total_lines"] == self.lines + 1,
                    2 => json["files"].to_string().contains("steady.txt"),
                    3 => text.ends_with(STEADY),
                    4 => json["result"]["isError"] == false,
                    _ => text.contains("name: steady.txt"),
                }
        });
        if !right {
            let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.short());
            self.bad.push(format!("{path} was answered with: {answer}"));
        } else if matches!(self.calls % 6, 1 | 4) {
            self.lines += 1;
        }
        self.calls += 1;
    }
}

/// How often each status came.
#[derive(Default)]
pub struct Statuses(BTreeMap<u16, usize>);

impl Statuses {
    pub fn add(&mut self, status: u16) {
        *self.0.entry(status).or_default() += 1;
    }
}

impl std::fmt::Display for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let each = |(status, count): (&u16, &usize)| match status {
            0 => format!("closed × {}", grouped(*count)),
            _ => format!("{status} × {}", grouped(*count)),
        };
        f.write_str(&self.0.iter().map(each).collect::<Vec<_>>().join(", "))
    }
}
