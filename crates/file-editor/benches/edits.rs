//! `cargo bench --bench edits`: many string edits in one call, against the plainest loop that could do them; and what it
//! takes to explain one that missed.
//!
//! The loop finds each string and replaces it, and nothing else: it does not look for a second match, count lines, make
//! a diff or write a file. Everything is measured in turns in one run, and what counts is the ratio.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to its user")]
#![allow(clippy::disallowed_methods, reason = "a benchmark sets the scene")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{Call, LineCounts, MemoryStore, Root};
use memchr::memmem;
use serde_json::{Value, json};
use text::diff::{self, DiffNames};
use text::exact::{Matching, Pick, StagedText};
use text::{StringEdit, Text, nearest};
use tools::{Context, Limits};

const ROUNDS: usize = 15;

fn main() {
    explain();
    println!("| edits | file | way | median ms | of the loop |\n|---|---|---|---|---|");
    for (edits, size) in [(100, 100 << 10), (1000, 1 << 20)] {
        measure(edits, size);
    }
}

/// How long it takes to say why a string is not there.
fn explain() {
    let (text, _) = scene(1, 1 << 20);
    let part = |from: usize| &text[text.floor_char_boundary(from)..][..10 << 10];
    let tabs = part(500_000).replace("    ", "\t");
    let changed = part(500_000).replace("compute", "calculate");
    let unrelated = "fn unrelated() -> Nothing { todo!() }\n".repeat(270);
    let line = text.replace('\n', " ");
    let same = "    value += 1;\n".repeat(1 << 16);
    let rows = [
        ("tabs for spaces", &text, tabs),
        ("a word in every line", &text, changed),
        ("nothing like it", &text, unrelated.clone()),
        ("a file of one line", &line, part(500_000).replace("compute", "calculate")),
        ("a file of equal lines", &same, "\tvalue += 2;\n".repeat(700)),
    ];
    println!("| 1 MB, old_string of 10 KB | median ms |\n|---|---|");
    for (name, text, old) in rows {
        let mut times: Vec<_> =
            (0..ROUNDS).map(|_| time(|| nearest::explain(text, &old))).collect();
        times.sort();
        println!("| {name} | {:.1} |", times[ROUNDS / 2].as_secs_f64() * 1000.0);
    }
    println!();
}

/// Lines of code-like text, some of which are edited, in no order.
fn scene(edits: usize, size: usize) -> (String, Vec<(String, String)>) {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        writeln!(text, "    let value_{number} = compute(input, {number});").unwrap();
    }
    let lines: Vec<&str> = text.lines().collect();
    let pick = |index: usize| lines[index * 7919 % edits * (lines.len() / edits)].trim();
    let edit = |index: usize| (pick(index).to_owned(), pick(index).replace("compute", "derive"));
    let edits = (0..edits).map(edit).collect();
    (text, edits)
}

fn measure(edits: usize, size: usize) {
    let (text, edits) = scene(edits, size);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rs");
    let list: Vec<Value> =
        edits.iter().map(|(old, new)| json!({ "old_string": old, "new_string": new })).collect();
    let arguments = json!({ "path": path, "edits": list });
    let mut server = Server::start(folder.path());
    let mut expected = text.clone();
    replace_each(&mut expected, &edits);

    let mut times = vec![Vec::new(); 4];
    for _ in 0..ROUNDS {
        times[0].push(time(|| {
            let mut text = text.clone();
            replace_each(&mut text, &edits);
            text
        }));
        times[1].push(time(|| staged(&text, &edits)));
        times[2].push(in_process(folder.path(), &text, arguments.clone()));
        std::fs::write(&path, &text).unwrap();
        times[3].push(time(|| server.call(&arguments)));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }
    let ways =
        ["memmem and replace", "staged, with diff", "the tool, in memory", "a call on stdio"];
    let medians = times.iter_mut().map(|times| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64() * 1000.0
    });
    let medians: Vec<f64> = medians.collect();
    for (way, median) in ways.iter().zip(&medians) {
        let (count, kilobytes, ratio) = (edits.len(), size >> 10, median / medians[0]);
        println!("| {count} | {kilobytes} KB | {way} | {median:.2} | {ratio:.2} |");
    }
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let since = Instant::now();
    black_box(work());
    since.elapsed()
}

fn replace_each(text: &mut String, edits: &[(String, String)]) {
    for (old, new) in edits {
        let at = memmem::find(text.as_bytes(), old.as_bytes()).unwrap();
        text.replace_range(at..at + old.len(), new);
    }
}

fn staged(text: &str, edits: &[(String, String)]) -> (String, String) {
    let old = Text::decode(Arc::new(text.as_bytes().to_vec())).unwrap();
    let mut staged = StagedText::new(&old, usize::MAX);
    for (old, new) in edits {
        let (pick, matching) = (Pick::Only, Matching::Exact);
        staged.apply(StringEdit { old, new, pick, count: None, matching }).unwrap();
    }
    let (new, composed, _) = staged.finish();
    let names = DiffNames { old: "a", new: "a" };
    let diff = diff::unified(old.whole(), &new, &composed, names);
    (new, diff)
}

/// From its arguments to its answer, on a store in memory.
fn in_process(folder: &std::path::Path, text: &str, arguments: Value) -> Duration {
    let root = Root::open(folder).unwrap();
    let store = MemoryStore::new(10 << 20);
    store.put(&root.flat_name("a.rs").unwrap(), text);
    let limits = Limits::new(10 << 20, Duration::from_mins(1));
    let call = Call::until(Instant::now() + limits.timeout);
    let entry = tools::TEXT.iter().find(|entry| entry.name == "multi_edit_text_file").unwrap();
    let context = Context {
        root: &root,
        store: &store,
        line_counts: &LineCounts::default(),
        limits: &limits,
        call: &call,
        expected: None,
    };
    time(|| entry.prepare(arguments).unwrap().run(&context).unwrap())
}

struct Server {
    process: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(folder: &std::path::Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_file-editor"))
            .arg(format!("--dir={}", folder.display()))
            .args(["--transport=stdio", "--tools=text", "--log=error", "--durability=none"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    fn call(&mut self, arguments: &Value) -> String {
        let params = json!({ "name": "multi_edit_text_file", "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let line = message.to_string() + "\n";
        self.process.stdin.as_ref().unwrap().write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"isError\":false"), "{answer}");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
