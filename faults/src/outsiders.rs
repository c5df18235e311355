//! Editors that take no lock, and change a file while it is being edited: they are noticed before they are overwritten.

#![allow(unsafe_code, reason = "a mapping is bare memory")]

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::report::{Row, Scale};
use crate::server::{Answer, Server};
use crate::tracer::{Act, Plan, Traced};

/// How another program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Opens the file, adds a line and closes it.
    InPlace,
    /// The same in two writes, some milliseconds apart.
    InHalves,
    /// Keeps the file open for a while, and adds lines.
    KeptOpen,
    /// Stores into a mapping of the file whose page is dirty already, which changes no time.
    Mapped,
    /// Writes a copy and renames it over the file.
    ByRename,
}

/// Between the two halves of a line.
const HALF: Duration = Duration::from_millis(5);

impl Manner {
    fn add_line(self, path: &Path, line: &str) {
        let open = || File::options().append(true).open(path).unwrap();
        match self {
            Self::InPlace => open().write_all(line.as_bytes()).unwrap(),
            Self::InHalves => {
                let (mut file, (one, two)) = (open(), line.split_at(line.len() / 2));
                file.write_all(one.as_bytes()).unwrap();
                thread::sleep(HALF);
                file.write_all(two.as_bytes()).unwrap();
            }
            Self::ByRename => {
                let text = fs::read_to_string(path).unwrap() + line;
                let beside = path.with_extension("theirs");
                fs::write(&beside, text).unwrap();
                fs::rename(beside, path).unwrap();
            }
            Self::KeptOpen | Self::Mapped => unreachable!("these begin before"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::InHalves => "in two writes",
            Self::KeptOpen => "to a file that it keeps open",
            Self::Mapped => "by mmap",
            Self::ByRename => "by rename",
        }
    }
}

const FILE: &str = "a.txt";
const TEXT: &str = "one\ntwo\nthree\n";

/// What an answer says if a change of another program may be lost.
const TELLS: [&str; 2] = [
    "another program changed the file at the same moment",
    "another program has this file open for writing",
];

fn tells(answer: &Answer) -> bool {
    TELLS.iter().any(|words| answer.text().contains(words))
}

pub fn run(scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    for manner in [Manner::InPlace, Manner::InHalves, Manner::ByRename] {
        rows.push(at_every_call(manner, 1));
    }
    // Each edit waits for the mapping to go, and looks at it all the while.
    rows.push(at_every_call(Manner::Mapped, scale.of(9, 1)));
    rows.push(emptied_at_every_call());
    rows.push(created_at_every_call());
    rows.push(piped_at_every_call());
    for manner in [Manner::InPlace, Manner::InHalves, Manner::KeptOpen, Manner::ByRename] {
        for durability in ["none", "data"] {
            let edits = match manner {
                // Each waits for the other program to close the file.
                Manner::KeptOpen => scale.of(50, 500),
                _ => scale.of(500, 5000),
            };
            rows.push(all_the_time(manner, durability, edits));
        }
    }
    rows
}

/// Another program adds a line just before each call of an edit, or every so many.
fn at_every_call(manner: Manner, step: usize) -> Row {
    let mut row =
        Row::new(format!("another program adds a line {} before each call", manner.name()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mut traced = Traced::start(folder.path(), &["--tools=all"], Plan::default());
    let edits = json!([{ "old_string": "two\n", "new_string": "2\n" }]);
    let arguments = json!({ "path": path.display().to_string(), "edits": edits });
    let (mut both, mut told, mut silent) = (0, 0, Vec::new());
    for nth in (1..).step_by(step) {
        fs::write(&path, TEXT).unwrap();
        let writer = Arc::new(Mutex::new(None));
        let (held, theirs) = (Arc::clone(&writer), path.clone());
        let mapping = (manner == Manner::Mapped).then(|| Arc::new(Mapping::of(&path)));
        let happens = Arc::new(move || {
            if let Some(mapping) = &mapping {
                mapping.store();
                return;
            }
            let theirs = theirs.clone();
            *held.lock().unwrap() = Some(beside(move || manner.add_line(&theirs, "theirs\n")));
        });
        traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..Plan::default() });
        let answer = traced.server.call("multi_edit_text_file", &arguments).unwrap();
        if let Some(writer) = writer.lock().unwrap().take() {
            writer.join().unwrap();
        }
        let Some(hit) = traced.end_plan().hit else { break };
        row.tries += 1;
        let text = fs::read_to_string(&path).unwrap();
        row.check(!answer.is_error(), || format!("{hit}: {}", answer.text()));
        row.check(text.contains("2\n"), || format!("{hit}: ours is lost: {text:?}"));
        if text.to_lowercase().contains("theirs\n") || text.starts_with("ONE") {
            both += 1;
        } else if tells(&answer) {
            told += 1;
        } else {
            silent.push(hit);
        }
    }
    row.check(silent.is_empty(), || format!("theirs is lost in silence: {silent:?}"));
    row.found(format!("both are there {both}; theirs is lost, and the answer says so, {told}"))
}

/// Does something in a thread of its own, and waits for it only as long as it should take: the server may hold it back by
/// a lease, while it is itself held.
fn beside(act: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let acting = thread::spawn(act);
    let until = Instant::now() + HALF;
    while !acting.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_micros(100));
    }
    acting
}

/// A file that is mapped, its page dirty.
struct Mapping {
    start: *mut u8,
}

// SAFETY: one thread at a time stores into it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    const LENGTH: usize = TEXT.len();

    fn of(path: &Path) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let file = File::options().read(true).write(true).open(path).unwrap();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which takes the place of no other.
        let start = unsafe {
            mmap(std::ptr::null_mut(), Self::LENGTH, protection, MapFlags::SHARED, &file, 0)
        };
        let mapping = Self { start: start.unwrap().cast() };
        mapping.write(b"o");
        mapping
    }

    fn store(&self) {
        self.write(b"ONE");
    }

    fn write(&self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: the mapping is longer, and stays until this is dropped.
            unsafe { self.start.add(at).write_volatile(*byte) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing points into it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), Self::LENGTH) };
    }
}

/// Another program empties the file just before each call of an edit, and writes a whole new text a moment later, as a shell and
/// many an editor do. Whoever comes last, what is there in the end is a whole text.
fn emptied_at_every_call() -> Row {
    const THEIRS: &str = "one\ntwo\ntheirs\n";
    let mut row =
        Row::new("another program empties the file before each call and fills it after that");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mut traced = Traced::start(folder.path(), &["--tools=all"], Plan::default());
    let arguments = json!({ "name": FILE, "append": "ours" });
    let with_ours = |text: &str| format!("{text}ours\n");
    let (mut ours, mut theirs, mut both) = (0, 0, 0);
    for nth in 1.. {
        fs::write(&path, TEXT).unwrap();
        let (emptied, writer) = (path.clone(), Arc::new(Mutex::new(None)));
        let held = Arc::clone(&writer);
        let happens = Arc::new(move || {
            let emptied = emptied.clone();
            let writing = beside(move || {
                let mut file = File::create(&emptied).unwrap();
                thread::sleep(Duration::from_millis(3));
                file.write_all(THEIRS.as_bytes()).unwrap();
            });
            *held.lock().unwrap() = Some(writing);
        });
        traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..Plan::default() });
        let answer = traced.server.call("edit_file", &arguments).unwrap();
        if let Some(writer) = writer.lock().unwrap().take() {
            writer.join().unwrap();
        }
        let Some(hit) = traced.end_plan().hit else { break };
        row.tries += 1;
        let text = fs::read_to_string(&path).unwrap();
        if text == with_ours(TEXT) {
            ours += 1;
        } else if text == THEIRS {
            theirs += 1;
        } else if text == with_ours(THEIRS) {
            both += 1;
        } else {
            row.bad.push(format!("{hit}: {text:?} is left, answered {}", answer.text()));
        }
    }
    row.found(format!(
        "ours is there {ours}, theirs {theirs}, both {both}; never less than a whole text"
    ))
}

/// Another program creates the file just before each call of a creation: it is added to, never replaced.
fn created_at_every_call() -> Row {
    let mut row = Row::new("another program creates the file before each call of our creating it");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let arguments = json!({ "name": FILE, "append": "ours" });
    for without_unnamed in [false, true] {
        let plan = || Plan { without_unnamed, ..Plan::default() };
        let mut traced = Traced::start(folder.path(), &["--tools=all"], plan());
        for nth in 1.. {
            let _ = fs::remove_file(&path);
            let (theirs, came_first) = (path.clone(), Arc::new(AtomicBool::new(false)));
            let comes_first = Arc::clone(&came_first);
            let happens = Arc::new(move || {
                if let Ok(mut file) = File::create_new(&theirs) {
                    file.write_all(b"theirs\n").unwrap();
                    comes_first.store(true, Ordering::SeqCst);
                }
            });
            traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..plan() });
            let answer = traced.server.call("edit_file", &arguments).unwrap();
            let Some(hit) = traced.end_plan().hit else { break };
            row.tries += 1;
            let text = fs::read_to_string(&path).unwrap();
            row.check(!answer.is_error(), || format!("{hit}: {}", answer.text()));
            let by_them = came_first.load(Ordering::SeqCst);
            let expected = if by_them { "theirs\nours\n" } else { "ours\n" };
            row.check(text == expected, || format!("{hit}: {text:?}, created by them: {by_them}"));
            let told = answer.text().contains("File created: true");
            row.check(told != by_them, || format!("{hit}: {}", answer.text()));
        }
    }
    row.found("theirs is kept, and one creates")
}

/// Another program puts a pipe in the file's place just before each call: nobody waits at its other end, and nor do we.
fn piped_at_every_call() -> Row {
    let mut row = Row::new("another program puts a pipe in the file's place before each call");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let name = path.display().to_string();
    let edits = json!([{ "old_string": "two\n", "new_string": "2\n" }]);
    let calls = [
        ("read_text_file", json!({ "path": name })),
        ("multi_edit_text_file", json!({ "path": name, "edits": edits })),
    ];
    for (tool, arguments) in calls {
        let mut traced = Traced::start(folder.path(), &["--tools=all"], Plan::default());
        for nth in 1.. {
            let _ = fs::remove_file(&path);
            fs::write(&path, TEXT).unwrap();
            let place = path.clone();
            let happens = Arc::new(move || {
                fs::remove_file(&place).unwrap();
                mknodat(CWD, &place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            });
            traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..Plan::default() });
            let answer = traced.server.call(tool, &arguments);
            let Some(hit) = traced.end_plan().hit else { break };
            row.tries += 1;
            if let Err(none) = answer {
                row.bad.push(format!("{tool}, {hit}: {none:?}"));
                break;
            }
        }
    }
    row.found("answered at once")
}

/// A line of another program.
struct Added {
    number: usize,
    /// From when the program opened the file until it closed it.
    during: Range<Instant>,
}

/// Another program adds lines as fast as three milliseconds allow, while we do.
fn all_the_time(manner: Manner, durability: &str, edits: usize) -> Row {
    let name = manner.name();
    let what = format!("another program adds a line {name} every 3 ms, durability {durability}");
    let mut row = Row::new(what);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, "").unwrap();
    let mut server =
        Server::start(folder.path(), &[&format!("--durability={durability}"), "--timeout=60"]);
    let over = AtomicBool::new(false);
    let mut told: Vec<Range<Instant>> = Vec::new();
    let theirs = thread::scope(|scope| {
        let adding = scope.spawn(|| add_lines(manner, &path, &over));
        for number in 0..edits {
            let arguments = json!({ "name": FILE, "append": format!("ours {number}") });
            let since = Instant::now();
            let answer = server.call("edit_file", &arguments).unwrap();
            if tells(&answer) {
                told.push(since..Instant::now());
            }
            row.check(!answer.is_error(), || answer.text());
            row.tries += 1;
        }
        over.store(true, Ordering::SeqCst);
        adding.join().unwrap()
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines: HashSet<&str> = text.lines().collect();
    let our_loss =
        (0..edits).filter(|number| !lines.contains(format!("ours {number}").as_str())).count();
    let is_lost = |added: &&Added| !lines.contains(format!("theirs {}", added.number).as_str());
    let lost: Vec<_> = theirs.iter().filter(is_lost).collect();
    let overlaps = |added: &Added, told: &Range<Instant>| {
        added.during.start < told.end && told.start < added.during.end
    };
    let silent = lost.iter().filter(|added| !told.iter().any(|told| overlaps(added, told)));
    let silent = silent.count();
    row.check(silent == 0, || format!("{silent} of {} lost lines are not told", lost.len()));
    let (all, lost) = (theirs.len(), lost.len());
    row.found(format!(
        "their {all} lines: {lost} lost to us, told by {} answers, in silence {silent}; our {edits}: \
         {our_loss} lost to them, who do not look",
        told.len()
    ))
}

fn add_lines(manner: Manner, path: &Path, over: &AtomicBool) -> Vec<Added> {
    const PAUSE: Duration = Duration::from_millis(3);
    /// Lines until a file that is kept open is closed.
    const AT_ONCE: usize = 100;
    let mut added = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let (first, since) = (added.len(), Instant::now());
        if manner == Manner::KeptOpen {
            let mut file = File::options().append(true).open(path).unwrap();
            for number in first..first + AT_ONCE {
                file.write_all(format!("theirs {number}\n").as_bytes()).unwrap();
                thread::sleep(PAUSE);
            }
            drop(file);
            let during = since..Instant::now();
            added.extend(
                (first..first + AT_ONCE).map(|number| Added { number, during: during.clone() }),
            );
        } else {
            manner.add_line(path, &format!("theirs {first}\n"));
            added.push(Added { number: first, during: since..Instant::now() });
        }
        thread::sleep(PAUSE);
    }
    added
}
