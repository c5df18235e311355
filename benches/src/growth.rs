//! `cargo xtask bench growth`: how time and memory grow with files, folders, edits and clients.
//!
//! What grows as a power of something is a straight line in the plots, and its slope is the power. That is taken from the
//! upper two powers of ten: below them it is hidden by what every call takes.

mod calls;
mod clients;

use std::fmt::Write as _;
use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::time::Instant;

use crate::document;
use crate::figures::short;
use crate::plot::{self, Axis, Line, Plot, Unit};

/// Kilobytes and megabytes are powers of ten here, as they are along the axes.
const KB: usize = 1_000;
const MB: usize = 1_000_000;
/// Less cannot be told: what the kernel counts is off by some pages.
const LEAST_MEMORY: f64 = 100_000.0;
/// Time in proportion to a size has a power of 1, and a square one of 2. Larger texts leave the caches of the processor and
/// get their memory from the system anew each time, which adds to it.
const WORST: f64 = 1.5;

/// What is done at each step.
struct Series {
    name: String,
    points: Vec<Point>,
    /// Beyond this size it does something else, and grows otherwise.
    bends_at: usize,
}

struct Point {
    /// How large, or how many.
    size: usize,
    /// Milliseconds from question to answer, and of the server's processor for each.
    median: f64,
    most: f64,
    cpu: f64,
    /// Bytes at the peak, above what the server had before.
    memory: f64,
    /// Calls in a second, where several are made at once.
    rate: f64,
}

/// A part of it: its name on the command line, in the document and of its picture.
struct Part {
    name: &'static str,
    /// What its steps are steps of.
    axis: Axis,
    measure: fn(&Path, &Path) -> Result<Vec<Series>>,
    plots: fn(&Part, &[Series]) -> Vec<Plot>,
    tables: fn(&Part, &[Series]) -> String,
}

const PARTS: &[Part] = &[
    Part {
        name: "files",
        axis: Axis { name: "size of the file", unit: Unit::Bytes },
        measure: calls::files,
        plots: |part, series| vec![part.plot_time(series), plot_memory_of_files(part, series)],
        tables: |part, series| {
            part.tables(series, &[TIME, CPU]) + &table_of_memory_of_files(part, series)
        },
    },
    Part {
        name: "folders",
        axis: Axis { name: "files in the folder", unit: Unit::Number },
        measure: calls::folders,
        plots: |part, series| vec![part.plot_time(series), part.plot_memory(series)],
        tables: |part, series| part.tables(series, &[TIME, CPU, MEMORY]),
    },
    Part {
        name: "edits",
        axis: Axis { name: "edits in one call", unit: Unit::Number },
        measure: calls::edits,
        plots: |part, series| vec![part.plot_time(series), part.plot_memory(series)],
        tables: |part, series| part.tables(series, &[TIME, CPU, MEMORY]),
    },
    Part {
        name: "clients",
        axis: Axis { name: "connections, each with a call under way", unit: Unit::Number },
        measure: clients::clients,
        plots: |part, series| {
            vec![
                part.plot_rate(series),
                part.plot_latency(series),
                part.plot_cpu(series),
                part.plot_memory(series),
            ]
        },
        tables: |part, series| part.tables(series, &[RATE, TIME, MOST, CPU, MEMORY]),
    },
];

/// A table: its title, and what is in its cells.
type Column = (&'static str, fn(&Point) -> String);
const TIME: Column = ("Time from question to answer, median, ms", |point| short(point.median));
const MOST: Column = ("Time within which 95 % were answered, ms", |point| short(point.most));
const CPU: Column = ("Processor time of the server for each call, ms", |point| short(point.cpu));
const MEMORY: Column = ("Memory at the peak, above an idle server, MB", |point| megabytes(point));
const RATE: Column = ("Calls in a second", |point| grouped(point.rate));

/// Measures these parts, or all if none is named; figures and pictures go into `document` and beside it, if there is one.
pub fn run(binary: &Path, document: Option<&Path>, names: &[String]) -> Result<()> {
    let is_part = |name: &String| PARTS.iter().any(|part| part.name == name);
    if let Some(name) = names.iter().find(|name| !is_part(name)) {
        let all: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        return Err(Error::other(format!("no part `{name}`; there are: {}", all.join(", "))));
    }
    let is_wanted = |part: &Part| names.is_empty() || names.iter().any(|name| name == part.name);
    let mut measured = Vec::new();
    for part in PARTS.iter().filter(|part| is_wanted(part)) {
        let since = Instant::now();
        // In memory: it is the server that is measured, not what a disk does about a hundred thousand files.
        let folder = tempfile::tempdir_in("/dev/shm")?;
        let series = (part.measure)(binary, folder.path())
            .map_err(|error| Error::other(format!("{}: {error}", part.name)))?;
        let tables = (part.tables)(part, &series);
        println!(
            "\n## {}\n\n{tables}\n`{}` took {:.0?}",
            part.axis.name,
            part.name,
            since.elapsed()
        );
        if let Some(document) = document {
            document::replace(document, part.name, &tables)?;
            let pictures = document.with_extension("");
            fs::create_dir_all(&pictures)?;
            let picture = plot::draw(&(part.plots)(part, &series));
            fs::write(pictures.join(part.name).with_extension("svg"), picture)?;
        }
        measured.push((part, series));
    }
    let (table, worst) = powers(&measured);
    println!("\n## Powers\n\n{table}");
    if let Some(document) = document.filter(|_| measured.len() == PARTS.len()) {
        document::replace(
            document,
            "powers",
            &format!("{}\n\n{table}", document::machine(binary)?),
        )?;
    }
    let too_fast = || Error::other(format!("more than in proportion: {}", worst.join("; ")));
    if worst.is_empty() { Ok(()) } else { Err(too_fast()) }
}

/// With what power of its size everything grows, and whatever grows too fast.
fn powers(measured: &[(&Part, Vec<Series>)]) -> (String, Vec<String>) {
    let mut table =
        "| | grows with | time | processor time | memory |\n|---|---|--:|--:|--:|\n".to_owned();
    let mut worst = Vec::new();
    for (part, all) in measured {
        for series in all {
            let time = series.power(|point| point.median);
            let cpu = series.power(|point| point.cpu);
            let memory = series.power(|point| point.memory);
            // Not by time, which others on this machine have a part in.
            if cpu > WORST {
                worst.push(format!("{}, by {}", series.name, part.axis.name));
            }
            let (name, axis) = (&series.name, part.axis.name.split(',').next().unwrap_or_default());
            let _ = writeln!(table, "| {name} | {axis} | {time:.2} | {cpu:.2} | {memory:.2} |");
        }
    }
    (table, worst)
}

/// The slope of the straight line that is nearest to the points of the upper two powers of ten.
#[expect(clippy::cast_precision_loss, reason = "a handful of points")]
fn power(line: &Line) -> f64 {
    let last = line.points.last().map_or(1.0, |point| point.0);
    let upper = line.points.iter().filter(|point| point.0 > 0.009 * last);
    let points: Vec<_> = upper.map(|(x, y)| (x.log10(), y.log10())).collect();
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let alone: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    // Not "-0.00".
    (together / alone * 100.0).round() / 100.0 + 0.0
}

/// A peak above what there was before, as far as that can be told.
#[expect(clippy::cast_precision_loss, reason = "it goes into a plot")]
fn above(before: u64, peak: u64) -> f64 {
    (peak.saturating_sub(before) as f64).max(LEAST_MEMORY)
}

impl Series {
    fn new(name: &str, points: Vec<Point>) -> Self {
        Self { name: name.into(), points, bends_at: usize::MAX }
    }

    /// With what power of the size this grows.
    fn power(&self, value: fn(&Point) -> f64) -> f64 {
        let mut line = self.line(value);
        line.points.truncate(self.points.partition_point(|point| point.size <= self.bends_at));
        power(&line)
    }

    #[expect(clippy::cast_precision_loss, reason = "it goes into a plot")]
    fn line(&self, value: fn(&Point) -> f64) -> Line {
        let place = |point: &Point| (point.size as f64, value(point));
        Line { name: self.name.clone(), points: self.points.iter().map(place).collect() }
    }
}

fn lines(series: &[Series], value: fn(&Point) -> f64) -> Vec<Line> {
    series.iter().map(|series| series.line(value)).collect()
}

const DURATION: Axis = Axis { name: "time", unit: Unit::Milliseconds };
const BYTES: Axis = Axis { name: "memory", unit: Unit::Bytes };

impl Part {
    fn plot(&self, title: &'static str, y: Axis, lines: Vec<Line>) -> Plot {
        let guides = vec![Line::in_proportion(&lines, "in proportion")];
        Plot { title, x: self.axis, y, lines, guides }
    }

    fn plot_time(&self, series: &[Series]) -> Plot {
        self.plot("Time of a call", DURATION, lines(series, |point| point.median))
    }

    fn plot_cpu(&self, series: &[Series]) -> Plot {
        let lines = lines(series, |point| point.cpu);
        Plot { guides: vec![], ..self.plot("Processor time of a call", DURATION, lines) }
    }

    fn plot_memory(&self, series: &[Series]) -> Plot {
        let lines = lines(series, |point| point.memory);
        self.plot("Memory at the peak, above an idle server", BYTES, lines)
    }

    fn plot_rate(&self, series: &[Series]) -> Plot {
        let lines = lines(series, |point| point.rate);
        let axis = Axis { name: "calls in a second", unit: Unit::Number };
        Plot { guides: vec![], ..self.plot("Calls in a second", axis, lines) }
    }

    fn plot_latency(&self, series: &[Series]) -> Plot {
        let named = |name: &str, value| {
            let all = lines(series, value).into_iter();
            let lines = all.map(|line| Line { name: format!("{}, {name}", line.name), ..line });
            lines.collect::<Vec<_>>()
        };
        let mut all = named("median", |point| point.median);
        all.extend(named("95 % within", |point| point.most));
        self.plot("Time of a call", DURATION, all)
    }

    fn tables(&self, series: &[Series], columns: &[Column]) -> String {
        let mut tables = String::new();
        for (title, cell) in columns {
            let _ = write!(tables, "{}", self.head(title, series));
            for Series { name, points, .. } in series {
                let cells: Vec<_> = points.iter().map(cell).collect();
                let _ = writeln!(tables, "| {name} | {} |", cells.join(" | "));
            }
            tables.push('\n');
        }
        tables
    }

    /// A title, and a row with all sizes.
    fn head(&self, title: &str, series: &[Series]) -> String {
        let points = series.first().map(|series| &series.points[..]).unwrap_or_default();
        let sizes: Vec<_> = points.iter().map(|point| self.axis.unit.name(point.size)).collect();
        format!("{title}:\n\n| | {} |\n|---|{}\n", sizes.join(" | "), "--:|".repeat(sizes.len()))
    }
}

/// What a call on a file may take.
#[expect(clippy::cast_precision_loss, reason = "it is compared with what was measured")]
fn allowed(size: usize) -> f64 {
    (size + MB) as f64
}

fn plot_memory_of_files(part: &Part, series: &[Series]) -> Plot {
    let points = (30..=80).map(|step| 10_f64.powf(f64::from(step) / 10.0));
    #[expect(clippy::cast_precision_loss, reason = "it goes into a plot")]
    let points = points.map(|size| (size, size + MB as f64)).collect();
    let guides = vec![Line { name: "size of the file + 1 MB".into(), points }];
    Plot { guides, ..part.plot_memory(series) }
}

fn table_of_memory_of_files(part: &Part, series: &[Series]) -> String {
    let mut table = part.head(MEMORY.0, series);
    let points = series.first().map(|series| &series.points[..]).unwrap_or_default();
    let row: Vec<_> =
        points.iter().map(|point| format!("{:.1}", allowed(point.size) / 1e6)).collect();
    let _ = writeln!(table, "| *size of the file + 1 MB* | {} |", row.join(" | "));
    for Series { name, points, .. } in series {
        let cell = |point: &Point| match point.memory {
            memory if memory > allowed(point.size) => {
                format!("**{}**, {:.1}×", megabytes(point), memory / allowed(point.size))
            }
            _ => megabytes(point),
        };
        let cells: Vec<_> = points.iter().map(cell).collect();
        let _ = writeln!(table, "| {name} | {} |", cells.join(" | "));
    }
    table
}

fn megabytes(point: &Point) -> String {
    match point.memory {
        memory if memory <= LEAST_MEMORY => "≤ 0.1".into(),
        memory => format!("{:.1}", memory / 1e6),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of calls")]
fn grouped(number: f64) -> String {
    Unit::Number.name(number.round() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded")]
    fn the_power_is_that_of_the_upper_end() {
        let line = |value: fn(f64) -> f64| {
            let sizes = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
            let points = sizes.into_iter().map(|size| (size, value(size))).collect();
            power(&Line { name: String::new(), points })
        };
        assert_eq!(line(|size| 3.0 * size * size), 2.0);
        assert_eq!(line(|size| 5e4 + size), 0.99, "what every call takes does not hide it");
        assert_eq!(line(|_| 7.0), 0.0);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded")]
    fn a_bend_is_left_out() {
        let point =
            |size: usize, cpu| Point { size, median: 1.0, most: 1.0, cpu, memory: 1.0, rate: 1.0 };
        let points = vec![point(1, 1.0), point(10, 10.0), point(100, 100.0), point(1000, 9e9)];
        let mut series = Series::new("", points);
        assert!(series.power(|point| point.cpu) > 2.0);
        series.bends_at = 100;
        assert_eq!(series.power(|point| point.cpu), 1.0);
    }
}
