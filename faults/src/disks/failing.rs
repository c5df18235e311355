//! Any operation of the file system fails: the n-th, or all from the n-th on; is done by half, or done and said to have
//! failed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::acts::{self, Act};
use super::fixture::{before, differences, is_litter, start, told};
use super::judge::{Attempt, REASONS, Tally};
use super::not_tried;
use crate::fuse::{Disk, Fault, Feature, Io, Keeps, Nature, NewFiles, Node, Op, Plan, Span, Tree};
use crate::report::{Row, Scale};
use crate::server::{Answer, HANG, NoAnswer, Server};

/// Three pages, so that a text takes several reads and writes.
const SIZE: usize = 9000;

const FULL: &str = "--durability=full";
const DATA: &str = "--durability=data";
const NONE: &str = "--durability=none";

pub fn rows(scale: Scale) -> Vec<Row> {
    let reasons: Vec<i32> = REASONS[..scale.of(4, 9)].iter().map(|(errno, ..)| *errno).collect();
    let lasting = scale.of(vec![libc::EIO], vec![libc::EIO, libc::ENOSPC, libc::EROFS]);
    let mut rows = Vec::new();
    for flag in scale.of(vec![FULL, NONE], vec![FULL, DATA, NONE]) {
        rows.push(on(Nature::default(), flag, "the n-th operation fails", |bench, log| {
            for (act, &errno) in each(&acts::all(SIZE), &reasons) {
                bench.one_after_another(act, None, Span::Once, Fault::Errno(errno), log);
            }
        }));
        rows.extend(new_files(flag, &reasons));
        rows.push(on(Nature::default(), flag, "done, and said to have failed", |bench, log| {
            for (act, &errno) in each(&acts::all(SIZE), &[libc::EIO, libc::ENOENT, libc::EEXIST]) {
                bench.one_after_another(act, Some(Op::Rename), Span::Once, Fault::Done(errno), log);
            }
            for act in acts::all(SIZE) {
                let fault = Fault::Done(libc::EIO);
                bench.one_after_another(&act, Some(Op::Create), Span::Once, fault, log);
            }
        }));
        rows.push(on(Nature::default(), flag, "short writes", |bench, log| {
            short(bench, &[Op::Write], log);
        }));
        let direct = Nature { io: Io::Direct, ..Nature::default() };
        rows.push(on(direct, flag, "direct I/O, short reads and writes", |bench, log| {
            short(bench, &[Op::Read, Op::Write], log);
        }));
        let late = Nature { keeps: Keeps::OnceFlushed, ..Nature::default() };
        rows.push(on(late, flag, "a failing flush or sync loses the text", |bench, log| {
            for (act, op) in each(&acts::all(SIZE), &[Op::Flush, Op::Fsync]) {
                for span in [Span::Once, Span::FromThenOn] {
                    bench.one_after_another(act, Some(*op), span, Fault::Errno(libc::EDQUOT), log);
                }
            }
        }));
    }
    for flag in scale.of(vec![FULL], vec![FULL, DATA, NONE]) {
        rows.push(on(Nature::default(), flag, "all fail from the n-th on", |bench, log| {
            for (act, &errno) in each(&acts::all(SIZE), &lasting) {
                bench.one_after_another(act, None, Span::FromThenOn, Fault::Errno(errno), log);
                bench.kind_after_kind(act, Span::FromThenOn, Fault::Errno(errno), log);
            }
        }));
    }
    rows.push(on(Nature::default(), FULL, "reading, the n-th operation fails", |bench, log| {
        for &errno in &reasons {
            bench.read_one_after_another(Fault::Errno(errno), log);
        }
    }));
    rows
}

fn new_files(flag: &'static str, reasons: &[i32]) -> [Row; 2] {
    let acts = [acts::create_by_edit(SIZE), acts::create(SIZE)];
    let private = Nature { new_files: NewFiles::Private, ..Nature::default() };
    let linking = Nature::without(&[(Feature::NoReplace, libc::EINVAL)]);
    [
        on(private, flag, "new files are private, the n-th operation fails", |bench, log| {
            for (act, &errno) in each(&acts, reasons) {
                bench.one_after_another(act, None, Span::Once, Fault::Errno(errno), log);
            }
        }),
        on(linking, flag, "new files by hard link, the n-th operation fails", |bench, log| {
            for (act, &errno) in each(&acts, reasons) {
                bench.one_after_another(act, None, Span::Once, Fault::Errno(errno), log);
                for op in [Op::Link, Op::Unlink] {
                    bench.one_after_another(act, Some(op), Span::Once, Fault::Done(errno), log);
                }
            }
        }),
    ]
}

fn each<'a, A, B>(ones: &'a [A], others: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    ones.iter().flat_map(move |one| others.iter().map(move |other| (one, other)))
}

fn short(bench: &mut Bench, ops: &[Op], log: &mut Log) {
    for (act, op) in each(&acts::all(SIZE), ops) {
        for (span, fault) in each(&[Span::Once, Span::FromThenOn], &[Fault::Half, Fault::Nothing]) {
            bench.one_after_another(act, Some(*op), *span, *fault, log);
        }
    }
}

/// One row: what is tried on such a file system.
fn on(
    nature: Nature,
    flag: &'static str,
    what: &str,
    tries: impl FnOnce(&mut Bench, &mut Log),
) -> Row {
    let what = format!("FUSE: {what}, {flag}");
    let mut bench = match Bench::new(nature, flag) {
        Ok(bench) => bench,
        Err(error) => return not_tried(&what, &error),
    };
    let mut log = Log { row: Row::new(what), tally: Tally::default() };
    tries(&mut bench, &mut log);
    let forgotten = bench.forgotten_descriptors();
    log.row.check(forgotten == 0, || format!("{forgotten} descriptors more are open than before"));
    log.row.found(log.tally)
}

/// A row and its figures.
struct Log {
    row: Row,
    tally: Tally,
}

/// A file system and a server that works on it.
struct Bench {
    disk: Disk,
    server: Server,
    flag: &'static str,
    /// Descriptors it has open when it does nothing.
    at_rest: usize,
}

impl Bench {
    fn new(nature: Nature, flag: &'static str) -> std::io::Result<Self> {
        let disk = Disk::mount(nature)?;
        let server = start(&disk, flag);
        let mut bench = Self { disk, server, flag, at_rest: 0 };
        bench.at_rest = bench.open_descriptors();
        Ok(bench)
    }

    fn restart(&mut self) {
        self.server.kill();
        self.server = start(&self.disk, self.flag);
    }

    fn open_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.server.pid())).unwrap().count()
    }

    /// How many are still open though nothing is under way.
    fn forgotten_descriptors(&self) -> usize {
        let until = Instant::now() + HANG;
        loop {
            let forgotten = self.open_descriptors().saturating_sub(self.at_rest);
            // The last call may not have closed its own yet.
            if forgotten == 0 || Instant::now() > until {
                return forgotten;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn call(&mut self, act: &Act) -> Result<Answer, NoAnswer> {
        act.call(&mut self.server, self.disk.path())
    }

    /// The same act, one time after the other, until all operations had their turn.
    fn one_after_another(
        &mut self,
        act: &Act,
        op: Option<Op>,
        span: Span,
        fault: Fault,
        log: &mut Log,
    ) {
        let before = before(act);
        let (wanted, clean) = self.undisturbed(act, &before, log);
        for nth in 1.. {
            let plan = Plan { op, nth, span, fault };
            self.disk.put(&before);
            self.disk.plan(Some(plan));
            let answer = self.call(act);
            let (seen, struck, tree) = (self.disk.seen(), self.disk.struck(), self.disk.tree());
            self.disk.plan(None);
            if nth > seen.iter().filter(|seen| op.is_none_or(|op| op == **seen)).count() {
                break;
            }
            if struck.is_empty() {
                continue;
            }
            log.row.tries += 1;
            log.tally.kinds.extend(&struck);
            let (before, wanted, clean) = (&before, &wanted, &clean[..]);
            match answer {
                Ok(answer) => {
                    let attempt =
                        Attempt { act, plan, before, wanted, clean, seen, struck, tree, answer };
                    log.tally.add(&attempt);
                    attempt.judge(&mut log.row);
                    self.serves_on(&attempt, log);
                }
                Err(none) => {
                    log.row.bad.push(format!("{} {plan:?} {struck:?}: {none:?}", act.name));
                    self.restart();
                }
            }
        }
    }

    /// The same for each kind of operation there is by itself.
    fn kind_after_kind(&mut self, act: &Act, span: Span, fault: Fault, log: &mut Log) {
        let (_, clean) = self.undisturbed(act, &before(act), log);
        for op in BTreeSet::from_iter(clean) {
            self.one_after_another(act, Some(op), span, fault, log);
        }
    }

    /// What there is once an act is done, and what operations it took.
    fn undisturbed(&mut self, act: &Act, before: &Tree, log: &mut Log) -> (Tree, Vec<Op>) {
        self.disk.put(before);
        self.disk.plan(None);
        let answer = self.call(act);
        let (tree, seen) = (self.disk.tree(), self.disk.seen());
        let done = answer.as_ref().is_ok_and(|answer| !answer.is_error());
        let is_new = tree.get(act.file).is_some_and(
            |node| matches!(node, Node::File(file) if file.bytes == act.after.as_bytes()),
        );
        log.row.check(done && is_new, || format!("{}, nothing failing: {answer:?}", act.name));
        (tree, seen)
    }

    /// The same again, with nothing to hinder it, is done; and what was left behind is gone once the server was
    /// started anew.
    fn serves_on(&mut self, attempt: &Attempt<'_>, log: &mut Log) {
        let act = attempt.act;
        if attempt.tree.keys().any(|path| is_litter(path)) {
            self.restart();
            if !attempt.answer.is_error() {
                // The folder is used, so that it is swept.
                let other = Path::new(act.file).with_file_name("other.txt");
                let other = self.disk.path().join(other).display().to_string();
                let used =
                    self.server.call("write_text_file", &json!({ "path": other, "content": "" }));
                let tree = self.disk.tree();
                let left: Vec<_> = tree.keys().filter(|path| is_litter(path)).collect();
                log.row
                    .check(used.is_ok_and(|answer| !answer.is_error()) && left.is_empty(), || {
                        format!("{}: still there after a new start: {left:?}", attempt.about())
                    });
            }
        }
        if !attempt.answer.is_error() {
            self.disk.put(attempt.before);
        }
        let answer = self.call(act);
        let tree = self.disk.tree();
        let done = answer.as_ref().is_ok_and(|answer| !answer.is_error());
        let told = answer.map_or_else(|none| format!("{none:?}"), |answer| told(&answer));
        log.row.check(done && tree == *attempt.wanted, || {
            let differences = differences(attempt.wanted, &tree);
            format!("{}: then {told} and {differences:?}", attempt.about())
        });
    }

    /// Reading and listing tell the truth or fail.
    fn read_one_after_another(&mut self, fault: Fault, log: &mut Log) {
        let act = acts::edit(SIZE);
        let path = self.disk.path().join(act.file).display().to_string();
        let calls = [
            ("read_file", json!({ "name": act.file })),
            ("read_text_file", json!({ "path": path })),
            ("list_files", json!({})),
        ];
        self.disk.put(&before(&act));
        for (tool, arguments) in calls {
            for nth in 1.. {
                self.disk.plan(Some(Plan { op: None, nth, span: Span::Once, fault }));
                let answer = self.server.call(tool, &arguments);
                let struck = self.disk.struck();
                self.disk.plan(None);
                if struck.is_empty() {
                    break;
                }
                log.row.tries += 1;
                log.tally.kinds.extend(&struck);
                let about = format!("{tool} {fault:?} at {struck:?}");
                match answer {
                    Ok(answer) if answer.is_error() => {
                        *log.tally.refused.entry(answer.code().unwrap_or_default()).or_default() +=
                            1;
                        let told_off = fault == Fault::Errno(libc::EINTR);
                        log.row.check(!told_off, || format!("{about}: {}", told(&answer)));
                    }
                    Ok(answer) => {
                        log.tally.done += 1;
                        let is_true = is_true(tool, &answer, &act);
                        log.row.check(is_true, || format!("{about}: {}", told(&answer)));
                    }
                    Err(none) => {
                        log.row.bad.push(format!("{about}: {none:?}"));
                        self.restart();
                    }
                }
            }
        }
    }
}

/// Whether the answer of a tool that reads is so.
fn is_true(tool: &str, answer: &Answer, act: &Act) -> bool {
    let text = act.before.as_deref().unwrap_or_default();
    let shown = answer.0["result"]["content"][0]["text"].as_str().unwrap_or_default();
    match tool {
        "read_file" => shown.ends_with(text.trim_end()),
        "read_text_file" => shown == text,
        _ => {
            let all = [(act.file, text.lines().count()), ("other.txt", 1)];
            let rows = answer.data()["files"].as_array().map(Vec::as_slice).unwrap_or_default();
            // A file that cannot be looked at is left out, and one that cannot be read has -1 lines.
            rows.iter().all(|row| {
                all.iter().any(|(name, lines)| {
                    row["name"] == *name && (row["lines"] == *lines || row["lines"] == -1)
                })
            })
        }
    }
}
