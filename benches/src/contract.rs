//! `cargo xtask bench contract`: what was promised about time, measured as it was promised, with everything as it is by
//! default.
//!
//! Every answer is checked, and so is what is in the files after it: a quick wrong answer is none.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::document;
use crate::figures::{Figures, short};
use crate::process::{End, OnStdio, message};
use crate::scene::{self, KB, MB};

/// A promise: what is done, in how many milliseconds, and how often it is tried.
struct Promise {
    what: &'static str,
    target: u32,
    times: usize,
    measure: fn(&Place, usize) -> Result<Figures>,
}

const PROMISES: &[Promise] = &[
    promise("list 100 files", 20, 1000, |place, times| list(place, 100, times)),
    promise("start, until the first answer", 100, 10, start),
    promise("read 1 KB", 5, 1000, |place, times| read(place, KB, times)),
    promise("read 1 MB", 50, 100, |place, times| read(place, MB, times)),
    promise("edit a line of 1 MB", 100, 100, edit),
    promise("5 processes edit 100 KB at once, until the last answer", 200, 50, edit_at_once),
    promise("list 1,000 files", 20, 100, |place, times| list(place, 1000, times)),
    promise("write 1 MB", 100, 100, write),
    promise("100 string edits in one call, 100 KB", 500, 100, edit_strings),
    promise("shutdown at the end of input", 2000, 10, |place, times| {
        leave_idle(place, times, End::OfInput)
    }),
    promise("shutdown by SIGTERM", 2000, 10, |place, times| {
        leave_idle(place, times, End::BySignal)
    }),
    promise("shutdown with an edit of 1 MB under way", 2000, 10, leave_at_work),
    promise("shutdown with an edit that waits for a lock", 2000, 10, leave_waiting),
];

const fn promise(
    what: &'static str,
    target: u32,
    times: usize,
    measure: fn(&Place, usize) -> Result<Figures>,
) -> Promise {
    Promise { what, target, times, measure }
}

/// Measures all of them; the table goes into `document` too, if there is one.
pub fn run(binary: &Path, document: Option<&Path>) -> Result<()> {
    // A disk, even where other temporary folders are memory.
    let folder = tempfile::tempdir_in("/var/tmp")?;
    let mut place = Place { binary: binary.into(), folder: PathBuf::new() };
    let mut table =
        "| what | tries | target | median | 95 % within | |\n|---|--:|--:|--:|--:|---|\n"
            .to_owned();
    print!("{table}");
    let mut broken = Vec::new();
    for (number, promise) in PROMISES.iter().enumerate() {
        place.folder = folder.path().join(number.to_string());
        fs::create_dir(&place.folder)?;
        let figures = (promise.measure)(&place, promise.times)
            .map_err(|error| Error::other(format!("{}: {error}", promise.what)))?;
        let holds = figures.quantile(0.95) <= f64::from(promise.target);
        if !holds {
            broken.push(promise.what);
        }
        let row = row(promise, &figures, if holds { "pass" } else { "FAIL" });
        print!("{row}");
        table.push_str(&row);
    }
    if let Some(document) = document {
        let figures = format!("{}\n\n{table}", document::machine(&place.binary)?);
        document::replace(document, "contract", &figures)?;
    }
    let late = || Error::other(format!("not within the target: {}", broken.join("; ")));
    if broken.is_empty() { Ok(()) } else { Err(late()) }
}

fn row(promise: &Promise, figures: &Figures, verdict: &str) -> String {
    let Promise { what, target, times, .. } = promise;
    let (median, most) = (short(figures.median()), short(figures.quantile(0.95)));
    format!("| {what} | {times} | {target} ms | {median} ms | {most} ms | {verdict} |\n")
}

/// The server, and a folder for it that nobody has used before.
struct Place {
    binary: PathBuf,
    folder: PathBuf,
}

const NAME: &str = "file.txt";

impl Place {
    fn start(&self) -> Result<OnStdio> {
        let mut command = Command::new(&self.binary);
        command.args(["--transport=stdio", "--log=error", "--tools=all"]);
        OnStdio::start(command.arg(format!("--dir={}", self.folder.display())))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// Whether the file is this now.
    fn expect(&self, text: &str) -> Result<()> {
        let is_there = fs::read_to_string(self.path())? == text;
        if is_there { Ok(()) } else { Err(Error::other("an edit was lost")) }
    }
}

fn call(tool: &str, arguments: &Value) -> Vec<u8> {
    message(2, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

fn replace_line(line: usize, content: &str) -> Vec<u8> {
    let edit = json!({ "line": line, "content": content, "operation": "replace" });
    call("edit_file", &json!({ "name": NAME, "edits": [edit] }))
}

/// The same call again and again. `is_right` looks at the first result, and all others have to be the same.
fn repeat(
    place: &Place,
    line: &[u8],
    times: usize,
    is_right: impl FnOnce(&Value) -> bool,
) -> Result<Figures> {
    let mut server = place.start()?;
    let mut figures = Figures::default();
    figures.add(server.call(line)?);
    server.check()?;
    let first = server.answer().to_vec();
    let answer: Value = serde_json::from_slice(&first)?;
    let mut right = is_right(&answer["result"]);
    for _ in 1..times {
        figures.add(server.call(line)?);
        right &= server.answer() == first;
    }
    if right { Ok(figures) } else { Err(Error::other("a wrong answer")) }
}

fn list(place: &Place, count: usize, times: usize) -> Result<Figures> {
    scene::many(&place.folder, count)?;
    let example = fs::read_to_string(place.folder.join("file_000000.rs"))?;
    let lines = example.lines().count();
    repeat(place, &call("list_files", &json!({})), times, |result| {
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let row = format!(", lines: {lines}\n");
        text.ends_with(&format!("Total files: {count}")) && text.matches(&row).count() == count
    })
}

fn start(place: &Place, times: usize) -> Result<Figures> {
    let mut figures = Figures::default();
    for _ in 0..times {
        figures.add(place.start()?.started);
    }
    Ok(figures)
}

fn read(place: &Place, size: usize, times: usize) -> Result<Figures> {
    let text = scene::source(size);
    fs::write(place.path(), &text)?;
    repeat(place, &call("read_file", &json!({ "name": NAME })), times, |result| {
        let read = result["content"][0]["text"].as_str().and_then(|read| read.split_once("\n\n"));
        read.map(|(_, read)| read) == text.strip_suffix('\n')
    })
}

fn edit(place: &Place, times: usize) -> Result<Figures> {
    let text = scene::marked(MB, 1);
    let line = scene::marked_line(&text);
    fs::write(place.path(), &text)?;
    let mut server = place.start()?;
    let mut figures = Figures::default();
    for edits in 1..=times {
        let mark = scene::mark(0, edits);
        figures.add(server.call(&replace_line(line, &mark))?);
        server.check()?;
        place.expect(&text.replacen(&scene::mark(0, 0), &mark, 1))?;
    }
    Ok(figures)
}

/// Servers of their own, each of which edits a line of its own.
fn edit_at_once(place: &Place, times: usize) -> Result<Figures> {
    const PROCESSES: usize = 5;
    let mut text = scene::marked(100 * KB, PROCESSES);
    let line_of = |mark: usize| text.lines().position(|line| line == scene::mark(mark, 0));
    let lines: Vec<usize> = (0..PROCESSES).filter_map(line_of).collect();
    fs::write(place.path(), &text)?;
    let mut servers = (0..PROCESSES).map(|_| place.start()).collect::<Result<Vec<_>>>()?;
    let mut figures = Figures::default();
    for edits in 1..=times {
        let calls: Vec<_> = (lines.iter().enumerate())
            .map(|(mark, line)| replace_line(*line, &scene::mark(mark, edits)))
            .collect();
        let since = Instant::now();
        for (server, call) in servers.iter_mut().zip(&calls) {
            server.tell(call)?;
        }
        servers.iter_mut().try_for_each(OnStdio::listen)?;
        figures.add(since.elapsed());
        servers.iter().try_for_each(OnStdio::check)?;
        for mark in 0..PROCESSES {
            text = text.replacen(&scene::mark(mark, edits - 1), &scene::mark(mark, edits), 1);
        }
        place.expect(&text)?;
    }
    Ok(figures)
}

fn write(place: &Place, times: usize) -> Result<Figures> {
    let mut server = place.start()?;
    let mut figures = Figures::default();
    for round in 0..times {
        let content = scene::written(MB, round);
        let line = call("write_text_file", &json!({ "path": place.path(), "content": content }));
        figures.add(server.call(&line)?);
        expect_fact(&server, "bytes_written", MB)?;
        place.expect(&content)?;
    }
    Ok(figures)
}

fn edit_strings(place: &Place, times: usize) -> Result<Figures> {
    let mut text = scene::marked(100 * KB, scene::MARKS);
    fs::write(place.path(), &text)?;
    let mut server = place.start()?;
    let mut figures = Figures::default();
    for edits in 1..=times {
        let edit = |mark| (scene::mark(mark, edits - 1), scene::mark(mark, edits));
        let list: Value = (0..scene::MARKS)
            .map(edit)
            .map(|(old, new)| json!({ "old_string": old, "new_string": new }))
            .collect();
        let line = call("multi_edit_text_file", &json!({ "path": place.path(), "edits": list }));
        figures.add(server.call(&line)?);
        expect_fact(&server, "applied_count", scene::MARKS)?;
        for (old, new) in (0..scene::MARKS).map(edit) {
            text = text.replacen(&old, &new, 1);
        }
        place.expect(&text)?;
    }
    Ok(figures)
}

/// Whether the last answer says so.
fn expect_fact(server: &OnStdio, name: &str, number: usize) -> Result<()> {
    server.check()?;
    let answer: Value = serde_json::from_slice(server.answer())?;
    let found = &answer["result"]["structuredContent"][name];
    let wrong = || Error::other(format!("`{name}` is {found} instead of {number}"));
    if *found == json!(number) { Ok(()) } else { Err(wrong()) }
}

fn leave_idle(place: &Place, times: usize, how: End) -> Result<Figures> {
    let mut figures = Figures::default();
    for _ in 0..times {
        figures.add(place.start()?.leave(how)?.0);
    }
    Ok(figures)
}

/// What was sent before the end of input is done and answered.
fn leave_at_work(place: &Place, times: usize) -> Result<Figures> {
    let text = scene::marked(MB, 1);
    let line = scene::marked_line(&text);
    fs::write(place.path(), &text)?;
    let mut figures = Figures::default();
    for edits in 1..=times {
        let mut server = place.start()?;
        let mark = scene::mark(0, edits);
        server.tell(&replace_line(line, &mark))?;
        let (time, said) = server.leave(End::OfInput)?;
        figures.add(time);
        if !String::from_utf8_lossy(&said).contains("\"success\":true") {
            return Err(Error::other("the edit was not answered"));
        }
        place.expect(&text.replacen(&scene::mark(0, 0), &mark, 1))?;
    }
    Ok(figures)
}

/// Somebody else holds the lock and keeps it: the edit cannot be made, and must not keep the server.
fn leave_waiting(place: &Place, times: usize) -> Result<Figures> {
    let text = scene::marked(KB, 1);
    fs::write(place.path(), &text)?;
    let file = File::open(place.path())?;
    file.lock()?;
    let mut figures = Figures::default();
    for _ in 0..times {
        let mut server = place.start()?;
        server.tell(&replace_line(0, "never"))?;
        // Until it surely waits.
        std::thread::sleep(Duration::from_millis(50));
        let (time, said) = server.leave(End::BySignal)?;
        figures.add(time);
        if !String::from_utf8_lossy(&said).contains("server is stopping") {
            return Err(Error::other("the edit did not wait, or was not answered"));
        }
        place.expect(&text)?;
    }
    Ok(figures)
}
