//! Power cuts. Records every block that the file system writes while the server edits, and every flush of the disk. Then
//! drops some of the blocks that were not flushed, mounts the rest and compares the files with what was answered.

mod disk;
mod volume;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::chance::Chance;
use crate::disks::{not_tried, own_mounts};
use crate::report::{Row, Scale};
use crate::server::Server;
use disk::{Blocks, Disk, Event};
use volume::{ALL, File, FileSystem, MODE, OWNER};

/// The file that is edited again and again, in the served folder.
const FILE: &str = "edited.txt";
const EDITS_MAX: usize = 120;

/// A step of the server, recorded between the writes of its blocks.
#[derive(Clone, Debug)]
enum Mark {
    EditBegins(usize),
    EditAnswered(usize),
    CreationBegins(String, usize),
    CreationAnswered(String),
}

pub fn run(scale: Scale) -> Vec<Row> {
    // A thread with mounts of its own: whatever becomes of it, nothing stays mounted.
    let rows = thread::spawn(move || {
        if let Err(error) = own_mounts() {
            return vec![not_tried("power cuts", &format!("no mounts of our own: {error}"))];
        }
        let tried = match scale {
            Scale::Short => vec![(ALL[0], "data"), (ALL[2], "full")],
            Scale::Full => {
                let durabilities = ["none", "data", "full"];
                ALL.iter().flat_map(|system| durabilities.map(|level| (*system, level))).collect()
            }
        };
        let row = |(system, durability): (FileSystem, &str)| {
            let what = format!("{}, durability {durability}", system.name);
            cut(scale, system, durability, &what).unwrap_or_else(|why| not_tried(&what, &why))
        };
        tried.into_iter().map(row).collect()
    });
    rows.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn cut(scale: Scale, system: FileSystem, durability: &str, what: &str) -> Result<Row, String> {
    let disk = Disk::new(system.megabytes).map_err(|error| format!("FUSE: {error}"))?;
    system.make(&disk.path())?;
    let recording = record(scale, system, durability, &disk)?;
    let mut row = Row::new(what);
    let mut judge = Judge { system, durability, disk: &disk, row: &mut row, seen: Seen::default() };
    judge.try_states(scale.of(30, 120), &recording);
    let seen = judge.seen;
    let flushes = recording.events.iter().filter(|event| matches!(event, Event::Flush)).count();
    Ok(row.found(format!("{seen}; {flushes} flushes recorded")))
}

/// The text of a version: no two have the same, nor the same length as the one before.
fn version(number: usize) -> String {
    let lines = (0..300 + number % 2 * 100).map(|line| format!("line {line} of {number}\n"));
    format!("version {number}\n") + &lines.collect::<String>() + &format!("end of {number}\n")
}

/// The number of the version that a text is, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let text = str::from_utf8(bytes).ok()?;
    let number = text.strip_prefix("version ")?.lines().next()?.parse().ok()?;
    (text == version(number)).then_some(number)
}

/// The disk before the first event, all of it safe, and what was done to it since.
struct Recording {
    before: Blocks,
    events: Vec<Event>,
}

/// Lets the server edit and create files for some seconds.
fn record(
    scale: Scale,
    system: FileSystem,
    durability: &str,
    disk: &Disk,
) -> Result<Recording, String> {
    let mounted = system.mount(&disk.path())?;
    let folder = mounted.path().join("served");
    fs::create_dir(&folder).unwrap();
    volume::write_owned(&folder.join(FILE), &version(0));
    rustix::fs::sync();
    let before = disk.record();
    let flags = ["--tools=text", "--timeout=60", &format!("--durability={durability}")];
    let mut server = Server::start(&folder, &flags);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        if durability == "none" {
            // Nothing else would be written in so short a time.
            scope.spawn(|| sync_now_and_then(&folder, &is_over));
        }
        let until = Instant::now() + scale.of(Duration::from_secs(3), Duration::from_secs(8));
        let mut chance = Chance::new(1);
        for number in 1..=EDITS_MAX {
            if Instant::now() > until {
                break;
            }
            disk.mark(Mark::EditBegins(number));
            write(&mut server, &folder.join(FILE), number);
            disk.mark(Mark::EditAnswered(number));
            if number.is_multiple_of(4) {
                let name = match number % 8 {
                    0 => format!("folder {number}/inner/new.txt"),
                    _ => format!("new {number}.txt"),
                };
                disk.mark(Mark::CreationBegins(name.clone(), number));
                write(&mut server, &folder.join(&name), number);
                disk.mark(Mark::CreationAnswered(name));
            }
            let pause = [0, 0, 10, 100][usize::try_from(chance.below(4)).unwrap()];
            thread::sleep(Duration::from_millis(pause));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let events = disk.recorded();
    server.end()?;
    Ok(Recording { before, events })
}

fn write(server: &mut Server, path: &Path, number: usize) {
    let arguments = json!({ "path": path, "content": version(number), "create_dirs": true });
    let answer = server.call("write_text_file", &arguments).unwrap();
    assert!(!answer.is_error(), "{answer:?}");
}

fn sync_now_and_then(folder: &Path, is_over: &AtomicBool) {
    let mut chance = Chance::new(2);
    let folder = fs::File::open(folder).unwrap();
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(chance.duration(Duration::from_millis(200)));
        rustix::fs::syncfs(&folder).unwrap();
    }
}

/// Findings in all states of a row.
#[derive(Default)]
struct Seen {
    edits: usize,
    creations: usize,
    /// Edits that were answered and are not there, at the most.
    behind: usize,
    not_whole: usize,
    leftovers: usize,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { edits, creations, behind, not_whole, leftovers } = self;
        write!(
            f,
            "{edits} edits, {creations} files created; answered edits undone by a cut: at most {behind}; \
             states with an empty, torn or missing file: {not_whole}, with a temporary file: {leftovers}"
        )
    }
}

/// Answers that had been given when the power was cut.
#[derive(Default)]
struct Answered {
    begun: usize,
    edits: usize,
    /// The version of each new file, and whether its creation was answered.
    creations: BTreeMap<String, (usize, bool)>,
}

impl Answered {
    fn take(&mut self, mark: &Mark) {
        match mark.clone() {
            Mark::EditBegins(number) => self.begun = number,
            Mark::EditAnswered(number) => self.edits = number,
            Mark::CreationBegins(name, number) => {
                self.creations.insert(name, (number, false));
            }
            Mark::CreationAnswered(name) => {
                self.creations.entry(name).and_modify(|(_, is_answered)| *is_answered = true);
            }
        }
    }
}

struct Judge<'a> {
    system: FileSystem,
    durability: &'a str,
    disk: &'a Disk,
    row: &'a mut Row,
    seen: Seen,
}

impl Judge<'_> {
    /// Cuts the power at `cuts` of the events: once with every block there, once without those since the last flush, and
    /// twice with some of them.
    fn try_states(&mut self, cuts: usize, Recording { before, events }: &Recording) {
        let mut chance = Chance::new(7);
        let step = u64::try_from(events.len() / cuts).unwrap().max(1);
        let mut next = 0;
        let mut written = before.clone();
        let (mut safe, mut unsafe_writes) = (written.clone(), Vec::new());
        let mut answered = Answered::default();
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Write { at, bytes } => {
                    disk::write(&mut written, *at, bytes);
                    unsafe_writes.push((*at, bytes));
                }
                Event::Flush => {
                    safe.clone_from(&written);
                    unsafe_writes.clear();
                }
                Event::Mark(mark) => answered.take(mark),
            }
            if at < next {
                continue;
            }
            next = at + 1 + usize::try_from(chance.below(2 * step)).unwrap();
            let cut = |how: &str| format!("event {at}, {how}");
            self.look(written.clone(), &answered, &cut("all blocks written"));
            if unsafe_writes.is_empty() {
                continue;
            }
            self.look(safe.clone(), &answered, &cut("no block since the last flush"));
            for _ in 0..2 {
                let mut some = safe.clone();
                for (at, bytes) in unsafe_writes.iter().filter(|_| chance.below(2) == 0) {
                    disk::write(&mut some, *at, bytes);
                }
                self.look(some, &answered, &cut("some blocks since the last flush"));
            }
        }
        self.seen.edits = answered.edits;
        self.seen.creations = answered.creations.len();
    }

    /// Mounts a state, and compares its files with what was answered.
    fn look(&mut self, state: Blocks, answered: &Answered, cut: &str) {
        self.row.tries += 1;
        self.disk.set_blocks(state);
        let files = match self.system.files(&self.disk.path()) {
            Ok(files) => files,
            Err(why) => return self.row.bad.push(format!("{cut}: {why}")),
        };
        let is_leftover = |path: &&String| path.contains(".fe-");
        self.seen.leftovers += usize::from(files.keys().any(|path| is_leftover(&path)));
        let mut wrong = self.wrong_with_edited(files.get(FILE), answered);
        for (name, (number, is_answered)) in &answered.creations {
            match files.get(name).map(|file| whole(&file.bytes)) {
                Some(Some(found)) if found == *number => {}
                None if self.durability != "full" || !is_answered => {}
                None => wrong.push(format!("{name} was created and is not there")),
                Some(_) => wrong.push(format!("{name} is not whole")),
            }
        }
        // The help of `--durability` says what is promised.
        let is_promised = match self.durability {
            "none" => false,
            "data" => self.system.has_journal,
            _ => true,
        };
        if is_promised {
            self.row.bad.extend(wrong.iter().map(|wrong| format!("{cut}: {wrong}")));
        } else {
            self.seen.not_whole += usize::from(!wrong.is_empty());
        }
    }

    fn wrong_with_edited(&mut self, file: Option<&File>, answered: &Answered) -> Vec<String> {
        let Some(file) = file else { return vec!["the file is gone".into()] };
        let Some(number) = whole(&file.bytes) else {
            let is_empty = file.bytes.iter().all(|byte| *byte == 0);
            return vec![format!("the file is {}", if is_empty { "empty" } else { "torn" })];
        };
        self.seen.behind = self.seen.behind.max(answered.edits.saturating_sub(number));
        let mut wrong = Vec::new();
        let mut check = |holds: bool, what: String| wrong.extend((!holds).then_some(what));
        let (begun, edits) = (answered.begun, answered.edits);
        check(number <= begun, format!("version {number} is there before it was written"));
        let is_kept = self.durability != "full" || number >= edits;
        check(is_kept, format!("version {number} is there, though {edits} was answered"));
        check(file.mode == MODE, format!("its mode is {:o}", file.mode));
        check(file.owner == OWNER, format!("its owner is {}", file.owner));
        check(file.has_note, "its attribute is gone".into());
        wrong
    }
}
