//! Calls one after another on stdio.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{KB, LEAST_MEMORY, MB, Point, Series, above};
use crate::contenders::{Contender, Durability, Kind, Round, Task};
use crate::figures::Figures;
use crate::process::{OnStdio, message};
use crate::scene;

const SIZES: [usize; 6] = [KB, 10 * KB, 100 * KB, MB, 10 * MB, 100 * MB];
const FOLDERS: [usize; 6] = [10, 100, 1_000, 10_000, 30_000, 100_000];
/// So many files are remembered at least; in a larger folder all lines are counted each time.
const REMEMBERED: usize = 32_768;
const EDITS: [usize; 7] = [1, 3, 10, 30, 100, 300, 1_000];

/// Calls at each step: so many at least, and then more for so long.
const FEWEST: usize = 5;
const MOST: usize = 200;
const LONGEST: Duration = Duration::from_millis(600);

/// A server, and what it is asked; the number says how often it was asked before.
struct Bench<'a> {
    ours: &'a Contender,
    folder: &'a Path,
    ask: Box<dyn Fn(usize) -> Value + 'a>,
    rounds: usize,
}

impl<'a> Bench<'a> {
    fn new(ours: &'a Contender, folder: &'a Path, ask: impl Fn(usize) -> Value + 'a) -> Self {
        Self { ours, folder, ask: Box::new(ask), rounds: 0 }
    }

    fn start(&self) -> Result<OnStdio> {
        let mut command = self.ours.command(self.folder, Durability::None);
        OnStdio::start(command.args(["--max-size=100", "--timeout=300"]))
    }

    /// Asks once more.
    fn call(&mut self, server: &mut OnStdio, figures: &mut Figures) -> Result<()> {
        let line = message(2, "tools/call", &(self.ask)(self.rounds));
        self.rounds += 1;
        let before = server.process.cpu()?;
        figures.add(server.call(&line)?);
        figures.add_cpu(server.process.cpu()?.saturating_sub(before));
        server.check()
    }

    /// Asks again and again.
    fn repeat(&mut self, server: &mut OnStdio) -> Result<Figures> {
        let (mut figures, since) = (Figures::default(), Instant::now());
        let is_enough = |calls| calls >= FEWEST && (calls >= MOST || since.elapsed() > LONGEST);
        for _ in (0..).take_while(|calls| !is_enough(*calls)) {
            self.call(server, &mut figures)?;
        }
        Ok(figures)
    }

    /// The peak of one call above what the server has before it: the largest of some, each by a server of its own. Each
    /// has made a call of `small` before, after which it has in memory what the code itself needs.
    fn peak(&mut self, small: &mut Bench) -> Result<f64> {
        let mut largest = LEAST_MEMORY;
        for _ in 0..3 {
            let mut server = self.start()?;
            small.call(&mut server, &mut Figures::default())?;
            let before = server.process.memory("VmRSS")?;
            server.process.forget_peak()?;
            self.call(&mut server, &mut Figures::default())?;
            largest = largest.max(above(before, server.process.memory("VmHWM")?));
        }
        Ok(largest)
    }

    /// Time and memory of a step.
    fn point(&mut self, size: usize, small: &mut Bench) -> Result<Point> {
        let mut server = self.start()?;
        self.call(&mut server, &mut Figures::default())?;
        let figures = self.repeat(&mut server)?;
        drop(server);
        Ok(point(size, &figures, self.peak(small)?))
    }
}

fn point(size: usize, figures: &Figures, memory: f64) -> Point {
    let (median, most, cpu) = (figures.median(), figures.quantile(0.95), figures.cpu());
    Point { size, median, most, cpu, memory, rate: 1000.0 / median }
}

/// What is to be done with a text, which has that size.
type TaskOf = fn(&str, usize) -> Task;

/// Files of all sizes.
pub fn files(binary: &Path, folder: &Path) -> Result<Vec<Series>> {
    let operations: [(&str, TaskOf); 5] = [
        ("read all of it", |_, _| Task::Read),
        ("read 100 lines in the middle", |text, _| {
            let line = scene::marked_line(text);
            Task::Lines(line.saturating_sub(50), line + 49)
        }),
        ("edit a string", |_, _| Task::Edit),
        ("edit a line", |text, _| Task::EditLine(scene::marked_line(text))),
        ("write all of it", |_, size| Task::Write(size)),
    ];
    let ours = &Contender::alone(Kind::Ours, binary);
    let mut all = operations.map(|(name, _)| Series::new(name, Vec::new()));
    for size in SIZES {
        for ((_, task), series) in operations.iter().zip(&mut all) {
            let [large, small] = ["large.rs", "small.rs"].map(|name| folder.join(name));
            let ask = |path: &PathBuf, size| {
                let text = scene::marked(size, 1);
                fs::write(path, &text)?;
                Ok::<_, Error>((task(&text, size), path.clone()))
            };
            let question = |(task, path): (Task, PathBuf)| {
                move |number| ours.ask(task, Round { path: &path, number }).unwrap_or_default()
            };
            let mut small = Bench::new(ours, folder, question(ask(&small, KB)?));
            let mut bench = Bench::new(ours, folder, question(ask(&large, size)?));
            series.points.push(bench.point(size, &mut small)?);
            let (rounds, text) = (bench.rounds, fs::read_to_string(&large)?);
            let is_there = match task(&text, size) {
                Task::Read | Task::Lines(..) => true,
                Task::Write(size) => text == scene::written(size, rounds - 1),
                _ => text.contains(&scene::mark(0, rounds)),
            };
            if !is_there {
                return Err(Error::other(format!("{}: an edit was lost", series.name)));
            }
        }
    }
    Ok(all.into())
}

/// Folders of many files: the first call of a server, and those after it.
pub fn folders(binary: &Path, base: &Path) -> Result<Vec<Series>> {
    let ours = &Contender::alone(Kind::Ours, binary);
    let folders = FOLDERS.map(|count| (count, base.join(count.to_string())));
    for (count, folder) in &folders {
        fs::create_dir(folder)?;
        scene::many(folder, *count)?;
    }
    // What a file holds is not remembered while its times are new.
    std::thread::sleep(Duration::from_secs(3));
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for (count, folder) in &folders {
        let path = folder.join("file_000000.rs");
        let ask =
            |task, path| move |number| ours.ask(task, Round { path, number }).unwrap_or_default();
        let mut list = Bench::new(ours, folder, ask(Task::List, folder));
        let mut read = Bench::new(ours, folder, ask(Task::Read, &path));
        let (mut figures, since) = (Figures::default(), Instant::now());
        for _ in 0..MOST {
            if figures.len() >= FEWEST && since.elapsed() > LONGEST {
                break;
            }
            let mut server = list.start()?;
            read.call(&mut server, &mut Figures::default())?;
            list.call(&mut server, &mut figures)?;
        }
        cold.push(point(*count, &figures, list.peak(&mut read)?));
        let mut server = list.start()?;
        read.call(&mut server, &mut Figures::default())?;
        let before = server.process.memory("VmRSS")?;
        list.call(&mut server, &mut Figures::default())?;
        let figures = list.repeat(&mut server)?;
        let peak = server.process.memory("VmHWM")?;
        warm.push(point(*count, &figures, above(before, peak)));
        let answer: Value = serde_json::from_slice(server.answer())?;
        if answer["result"]["structuredContent"]["total_count"] != json!(count) {
            return Err(Error::other("not all files were listed"));
        }
    }
    let again = Series { bends_at: REMEMBERED, ..Series::new("list again", warm) };
    Ok(vec![Series::new("list, first call of a server", cold), again])
}

/// Many edits in one call.
pub fn edits(binary: &Path, folder: &Path) -> Result<Vec<Series>> {
    let ours = &Contender::alone(Kind::Ours, binary);
    let mut all = Vec::new();
    for (name, size, ask) in [
        ("edit strings of 100 KB", 100 * KB, by_string as Edits),
        ("edit strings of 1 MB", MB, by_string),
        ("edit lines of 1 MB", MB, by_line),
    ] {
        let mut points = Vec::new();
        for count in EDITS {
            let [large, small] = ["large.rs", "small.rs"].map(|name| folder.join(name));
            let marks = marked(&large, size, count)?;
            let mark = marked(&small, KB, 1)?;
            let mut small = Bench::new(ours, folder, |number| ask(&small, &mark, number));
            let mut bench = Bench::new(ours, folder, |number| ask(&large, &marks, number));
            points.push(bench.point(count, &mut small)?);
            let text = fs::read_to_string(&large)?;
            let is_there = |mark| text.contains(&scene::mark(mark, bench.rounds));
            if !(0..count).all(is_there) {
                return Err(Error::other(format!("{name}: an edit was lost")));
            }
        }
        all.push(Series::new(name, points));
    }
    Ok(all)
}

/// Writes a file with so many marks; the numbers of their lines.
fn marked(path: &Path, size: usize, count: usize) -> Result<Vec<usize>> {
    let text = scene::marked(size, count);
    fs::write(path, &text)?;
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("mark_"));
    Ok(lines.map(|(number, _)| number).collect())
}

/// A call that edits all marks of a file, which stand on these lines.
type Edits = fn(&Path, &[usize], usize) -> Value;

fn by_string(path: &Path, lines: &[usize], number: usize) -> Value {
    let edit = |mark| {
        let (old, new) = (scene::mark(mark, number), scene::mark(mark, number + 1));
        json!({ "old_string": old, "new_string": new })
    };
    let edits: Value = (0..lines.len()).map(edit).collect();
    json!({ "name": "multi_edit_text_file", "arguments": { "path": path, "edits": edits } })
}

fn by_line(path: &Path, lines: &[usize], number: usize) -> Value {
    let edit = |(mark, line): (usize, &usize)| json!({ "operation": "replace", "line": line, "content": scene::mark(mark, number + 1) });
    let edits: Value = lines.iter().enumerate().map(edit).collect();
    let name = path.file_name().map(|name| name.to_string_lossy());
    json!({ "name": "edit_file", "arguments": { "name": name, "edits": edits } })
}
