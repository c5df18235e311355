//! The folder, the server that lives through it all, and what must be true of both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use super::book::{Book, Fate};
use super::gate::Gate;
use super::weather::Weather;
use crate::disks::Mount;
use crate::folder::{in_memory, names};
use crate::http::{Client, HttpServer};
use crate::report::{Row, grouped};
use crate::server::Server;

pub const FLAGS: &[&str] = &["--tools=all", "--durability=none", "--confirm=auto"];
/// Faults that are kept.
const MOST_BAD: usize = 50;
pub const LARGE: [&str; 3] = ["large-0.txt", "large-1.txt", "large-2.txt"];

/// Sources: their names, and lines of which the second may change.
pub const SOURCES: &[(&str, &[&str])] = &[
    (
        "main.rs",
        &[
            "fn main() {",
            "    // note",
            "    let total = add(1, 2);",
            "}",
            "fn add(a: i32, b: i32) -> i32 { a + b }",
        ],
    ),
    ("tool.py", &["def total(a, b):", "    # note", "    return a + b", "class Tool:", "    pass"]),
    ("view.js", &["function total(a, b) {", "  // note", "  return a + b;", "}", "class View {}"]),
    ("view.ts", &["export function total(a: number): number {", "  // note", "  return a;", "}"]),
    ("main.go", &["package main", "// note", "func total(a int, b int) int { return a + b }"]),
    ("main.c", &["int total(int a, int b) {", "  /* note */", "  return a + b;", "}"]),
    (
        "Main.java",
        &["class Main {", "  // note", "  int total(int a, int b) { return a + b; }", "}"],
    ),
    ("tool.rb", &["def total(a, b)", "  # note", "  a + b", "end"]),
    ("style.css", &["body {", "  /* note */", "  color: red;", "}"]),
    ("data.json", &["{", "  \"note\": 1,", "  \"total\": 2", "}"]),
];

enum Disk {
    /// A small one of our own, which can be filled.
    Mounted(Mount),
    /// And why it is no such disk.
    Folder(TempDir, String),
}

impl Disk {
    fn path(&self) -> &Path {
        match self {
            Self::Mounted(mount) => mount.path(),
            Self::Folder(folder, _) => folder.path(),
        }
    }
}

pub struct Scene {
    /// Ends before its disk does.
    pub server: Mutex<HttpServer>,
    pub port: u16,
    pub gate: Gate,
    pub book: Book,
    pub calls: AtomicUsize,
    pub kills: AtomicUsize,
    pub hang_ups: AtomicUsize,
    pub refusals: AtomicUsize,
    /// Moments in which the disk was full, and in which it was read-only.
    pub full: AtomicUsize,
    pub read_only: AtomicUsize,
    pub weather: Weather,
    /// Appends to the server that lives through it all, since the last rest.
    pub acknowledged: AtomicUsize,
    pub refused: AtomicUsize,
    pub bad: Mutex<Vec<String>>,
    pub root: PathBuf,
    disk: Disk,
}

impl Scene {
    pub fn open() -> Self {
        let disk = match Mount::tmpfs("size=160m") {
            Ok(mount) => Disk::Mounted(mount),
            Err(why) => Disk::Folder(in_memory(), why),
        };
        let root = disk.path().join("root");
        fs::create_dir_all(root.join("sources")).unwrap();
        for (name, lines) in SOURCES {
            fs::write(root.join("sources").join(name), lines.join("\n") + "\n").unwrap();
        }
        for name in LARGE {
            fs::write(root.join(name), whole_text(1, 1 << 20)).unwrap();
        }
        fs::write(root.join("theirs.txt"), "theirs\n").unwrap();
        let server = HttpServer::start(&root, FLAGS, &[]);
        Self {
            port: server.port,
            server: Mutex::new(server),
            gate: Gate::new(),
            book: Book::new(),
            calls: AtomicUsize::new(0),
            kills: AtomicUsize::new(0),
            hang_ups: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
            read_only: AtomicUsize::new(0),
            weather: Weather::new(),
            acknowledged: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            bad: Mutex::new(Vec::new()),
            root,
            disk,
        }
    }

    pub fn about(&self) -> &'static str {
        match self.disk {
            Disk::Mounted(_) => "a small file system of its own",
            Disk::Folder(..) => "a folder that cannot be filled",
        }
    }

    /// Why the disk cannot be full or read-only, if it cannot.
    pub fn never_fails(&self) -> Option<&str> {
        match &self.disk {
            Disk::Mounted(_) => None,
            Disk::Folder(_, why) => Some(why),
        }
    }

    /// The root of a file system that is ours alone, if it is one.
    pub fn mount(&self) -> Option<&Path> {
        match &self.disk {
            Disk::Mounted(mount) => Some(mount.path()),
            Disk::Folder(..) => None,
        }
    }

    pub fn bad(&self, what: impl Into<String>) {
        let mut bad = self.bad.lock().unwrap();
        if bad.len() < MOST_BAD {
            bad.push(what.into());
        }
    }

    pub fn connect(&self) -> Option<Client> {
        match Client::connect(self.port) {
            Ok(client) => Some(client),
            Err(why) => {
                self.bad(format!("the server takes no connection: {why}"));
                None
            }
        }
    }

    /// While all rest: every append, every file.
    pub fn verify(&self, row: &mut Row) {
        row.check(self.server.lock().unwrap().is_running(), || "the server is gone".into());
        let [done, refused] =
            [&self.acknowledged, &self.refused].map(|count| count.swap(0, Ordering::Relaxed));
        // The disk fails for moments only: a server that goes on refusing has not noticed its recovery.
        row.check(done > refused, || {
            format!("since the last rest {done} appends were acknowledged, {refused} refused")
        });
        let is_count = |name: &String| name.starts_with("count-");
        let read = |name: &String| fs::read_to_string(self.root.join(name)).unwrap_or_default();
        let counts: BTreeMap<_, _> = names(&self.root)
            .into_iter()
            .filter(is_count)
            .map(|name| (name.clone(), read(&name)))
            .collect();
        row.bad.extend(self.book.settle(&counts));
        for name in counts.keys() {
            fs::remove_file(self.root.join(name)).unwrap();
        }
        for name in LARGE {
            let text = fs::read_to_string(self.root.join(name)).unwrap_or_default();
            row.check(is_whole(&text), || format!("{name} is not whole: {} bytes", text.len()));
        }
        for (name, lines) in SOURCES {
            let text = fs::read_to_string(self.root.join("sources").join(name)).unwrap_or_default();
            let now: Vec<_> = text.lines().collect();
            let is_same = |at: usize| at == 1 || now.get(at) == lines.get(at);
            let is_whole = now.len() == lines.len() && (0..lines.len()).all(is_same);
            row.check(is_whole, || format!("{name} is not whole: {text:?}"));
        }
    }

    /// After all: nothing is left over once somebody has written again.
    pub fn verify_end(&self, row: &mut Row) {
        let mut server = Server::start(&self.root, FLAGS);
        let arguments = json!({ "name": "last.txt", "append": "last" });
        let last = server.call("edit_file", &arguments);
        row.check(last.is_ok_and(|answer| !answer.is_error()), || "no edit in the end".into());
        drop(server);
        let known = |name: &String| {
            LARGE.contains(&name.as_str())
                || ["last.txt", "sources", "theirs.txt"].contains(&name.as_str())
        };
        let left: Vec<_> = names(&self.root).into_iter().filter(|name| !known(name)).collect();
        row.check(left.is_empty(), || format!("left over: {left:?}"));
    }

    pub fn found(&self) -> String {
        let load = |count: &AtomicUsize| grouped(count.load(Ordering::Relaxed));
        let fate = |fate| grouped(self.book.count(fate));
        let disk = match self.never_fails() {
            None => format!(
                "{} moments with a full disk, {} with a read-only one",
                load(&self.full),
                load(&self.read_only)
            ),
            Some(why) => format!("not tried: a full or read-only disk: {why}"),
        };
        format!(
            "in {}; {} appends acknowledged, {} refused, {} without an answer; {} calls refused in all; \
             {} kills, {} connections dropped, {disk}",
            self.about(),
            fate(Fate::Acknowledged),
            fate(Fate::Refused),
            fate(Fate::Unknown),
            load(&self.refusals),
            load(&self.kills),
            load(&self.hang_ups),
        )
    }
}

pub fn count(what: &AtomicUsize) {
    what.fetch_add(1, Ordering::Relaxed);
}

/// How each line of such a text ends.
const LINE: &str = " of many lines, as long as any";

/// A text that tells whether all of it is there.
pub fn whole_text(number: u64, size: usize) -> String {
    let line = format!("{number}{LINE}\n");
    let body = line.repeat(size / line.len() + 1);
    format!("{:016x}\n{body}", xxh3_64(body.as_bytes()))
}

pub fn is_whole(text: &str) -> bool {
    let (head, body) = text.split_once('\n').unwrap_or_default();
    format!("{:016x}", xxh3_64(body.as_bytes())) == head
}

/// Whether these are so many lines of one such text.
pub fn are_lines(text: &str, count: usize) -> bool {
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    first.ends_with(LINE) && lines.all(|line| line == first) && text.split('\n').count() == count
}

/// A refusal's code, wherever an answer has it.
pub fn code(answer: &Value) -> Option<Value> {
    let structured = &answer["result"]["structuredContent"];
    let places = [&answer["error"]["code"], &structured["error"]["code"], &structured["code"]];
    places.into_iter().find(|code| !code.is_null()).cloned()
}
