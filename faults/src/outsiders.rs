//! Editors that take no lock, and change a file while it is being edited: they are noticed before they are overwritten.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::report::{Row, Scale};
use crate::server::Server;
use crate::tracer::{Act, Plan, Traced};

/// How somebody else writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Opens the file and adds to it.
    InPlace,
    /// Writes a copy and renames it over the file.
    ByRename,
}

impl Manner {
    fn add_line(self, path: &Path, line: &str) {
        match self {
            Self::InPlace => {
                let mut file = File::options().append(true).open(path).unwrap();
                file.write_all(line.as_bytes()).unwrap();
            }
            Self::ByRename => {
                let text = fs::read_to_string(path).unwrap() + line;
                let beside = path.with_extension("theirs");
                fs::write(&beside, text).unwrap();
                fs::rename(beside, path).unwrap();
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::ByRename => "by rename",
        }
    }
}

const FILE: &str = "a.txt";
const TEXT: &str = "one\ntwo\nthree\n";

pub fn run(scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    for manner in [Manner::InPlace, Manner::ByRename] {
        rows.push(at_every_call(manner));
    }
    rows.push(emptied_at_every_call());
    rows.push(created_at_every_call());
    rows.push(piped_at_every_call());
    for manner in [Manner::InPlace, Manner::ByRename] {
        for durability in ["none", "data"] {
            rows.push(all_the_time(manner, durability, scale.of(500, 5000)));
        }
    }
    rows
}

/// Somebody adds a line just before each call of an edit.
fn at_every_call(manner: Manner) -> Row {
    let mut row = Row::new(format!("somebody adds a line {} before each call", manner.name()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mut traced = Traced::start(folder.path(), &["--tools=all"], Plan::default());
    let edits = json!([{ "old_string": "two\n", "new_string": "2\n" }]);
    let arguments = json!({ "path": path.display().to_string(), "edits": edits });
    let (mut both, mut lost) = (0, Vec::new());
    for nth in 1.. {
        fs::write(&path, TEXT).unwrap();
        let theirs = path.clone();
        let happens = Arc::new(move || manner.add_line(&theirs, "theirs\n"));
        traced.plan(Plan { nth, act: Act::Meanwhile(happens), ..Plan::default() });
        let answer = traced.server.call("multi_edit_text_file", &arguments).unwrap();
        let Some(hit) = traced.end_plan().hit else { break };
        row.tries += 1;
        let text = fs::read_to_string(&path).unwrap();
        row.check(!answer.is_error(), || format!("{hit}: {}", answer.text()));
        row.check(text.contains("2\n"), || format!("{hit}: ours is lost: {text:?}"));
        if text.contains("theirs\n") {
            both += 1;
        } else {
            lost.push(hit);
        }
    }
    // After the last look there is one call left, the one that publishes; what is renamed then is never seen. A file that is
    // written to is still open here, and looked at once more.
    let may_be_lost = |hit: &String| manner == Manner::ByRename && hit.contains("renameat(");
    row.check(lost.iter().all(may_be_lost), || format!("theirs is lost: {lost:?}"));
    let lost = lost.len();
    row.found(format!("both are there {both}; theirs is lost {lost}, just before the rename"))
}

/// Somebody empties the file just before each call of an edit, and writes a whole new text a moment later, as a shell and
/// many an editor do. Whoever comes last, what is there in the end is a whole text.
fn emptied_at_every_call() -> Row {
    const THEIRS: &str = "one\ntwo\ntheirs\n";
    let mut row = Row::new("somebody empties the file before each call and fills it after that");
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
            let mut file = File::create(&emptied).unwrap();
            *held.lock().unwrap() = Some(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(3));
                file.write_all(THEIRS.as_bytes()).unwrap();
            }));
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

/// Somebody creates the file just before each call of a creation: it is added to, never replaced.
fn created_at_every_call() -> Row {
    let mut row = Row::new("somebody creates the file before each call of our creating it");
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

/// Somebody puts a pipe in the file's place just before each call: nobody waits at its other end, and nor do we.
fn piped_at_every_call() -> Row {
    let mut row = Row::new("somebody puts a pipe in the file's place before each call");
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

/// Somebody adds lines as fast as three milliseconds allow, while we do.
fn all_the_time(manner: Manner, durability: &str, edits: usize) -> Row {
    let what =
        format!("somebody adds a line {} every 3 ms, durability {durability}", manner.name());
    let mut row = Row::new(what);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, "").unwrap();
    let mut server =
        Server::start(folder.path(), &[&format!("--durability={durability}"), "--timeout=60"]);
    let (over, theirs) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let number = theirs.fetch_add(1, Ordering::SeqCst);
                manner.add_line(&path, &format!("theirs {number}\n"));
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        for number in 0..edits {
            let arguments = json!({ "name": FILE, "append": format!("ours {number}") });
            let answer = server.call("edit_file", &arguments).unwrap();
            row.check(!answer.is_error(), || answer.text());
            row.tries += 1;
        }
        over.store(true, Ordering::SeqCst);
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines: std::collections::HashSet<&str> = text.lines().collect();
    let theirs = theirs.into_inner();
    let lost_of = |whose: &str, count: usize| {
        (0..count).filter(|number| !lines.contains(format!("{whose} {number}").as_str())).count()
    };
    let (our_loss, their_loss) = (lost_of("ours", edits), lost_of("theirs", theirs));
    row.found(format!(
        "their {theirs} edits: {their_loss} lost to us; our {edits}: {our_loss} lost to them, who do not look"
    ))
}
