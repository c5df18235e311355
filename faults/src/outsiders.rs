//! Editors that take no lock, and change a file while it is being edited: they are noticed before they are overwritten.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

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
    for manner in [Manner::InPlace, Manner::ByRename] {
        rows.push(all_the_time(manner, scale.of(1000, 10_000)));
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

/// Somebody adds lines as fast as three milliseconds allow, while we do.
fn all_the_time(manner: Manner, edits: usize) -> Row {
    let mut row = Row::new(format!("somebody adds a line {} every 3 ms", manner.name()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, "").unwrap();
    let mut server = Server::start(folder.path(), &["--durability=none", "--timeout=60"]);
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
