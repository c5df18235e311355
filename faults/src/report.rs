//! What an experiment did, how often, and what it found.

use std::fmt::{Display, Write as _};
use std::path::Path;

use crate::server;

/// How much of it: a few minutes for every change, or all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Short,
    Full,
}

impl Scale {
    pub fn of<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    pub what: String,
    /// How often it was tried.
    pub tries: usize,
    /// What came of it, in figures.
    pub found: String,
    /// What must never be, each with enough to look into it.
    pub bad: Vec<String>,
}

impl Row {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), tries: 0, found: String::new(), bad: Vec::new() }
    }

    /// Notes a fault unless this holds.
    pub fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.bad.push(otherwise());
        }
    }

    #[must_use]
    pub fn found(mut self, found: impl Display) -> Self {
        self.found = found.to_string();
        self
    }
}

/// What an experiment is, and its lines.
pub struct Section {
    pub title: &'static str,
    pub rows: Vec<Row>,
}

/// How many faults of a row are shown.
const SHOWN: usize = 5;

pub fn print(section: &Section) {
    println!("\n### {}\n\n{}", section.title, table(&section.rows));
    for row in &section.rows {
        for bad in row.bad.iter().take(SHOWN) {
            println!("BAD: {}: {bad}", row.what);
        }
        if row.bad.len() > SHOWN {
            println!("BAD: {}: … {} in all", row.what, row.bad.len());
        }
    }
}

pub fn table(rows: &[Row]) -> String {
    let mut table = String::from("| what | tries | found | bad |\n|---|---|---|---|\n");
    for Row { what, tries, found, bad } in rows {
        let _ = writeln!(table, "| {what} | {} | {found} | {} |", grouped(*tries), bad.len());
    }
    table
}

const BEGIN: &str = "<!-- figures: written by `cargo xtask faults` -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Puts the figures into a document, between their marks.
pub fn write(path: &Path, sections: &[Section]) {
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("a mark where figures begin");
    let (_, after) = rest.split_once(END).expect("a mark where figures end");
    let mut figures = format!("\n{}\n", machine());
    for Section { title, rows } in sections {
        let _ = write!(figures, "\n### {title}\n\n{}", table(rows));
    }
    std::fs::write(path, format!("{before}{BEGIN}{figures}\n{END}{after}")).unwrap();
}

/// Puts what one long experiment found into a document, between its own marks.
pub fn write_one(path: &Path, name: &str, rows: &[Row]) {
    let document = std::fs::read_to_string(path).unwrap();
    let begin = format!("<!-- {name}: written by `cargo xtask {name}` -->\n");
    let end = format!("<!-- end of {name} -->\n");
    let (before, rest) = document.split_once(&begin).expect("a mark where it begins");
    let (_, after) = rest.split_once(&end).expect("a mark where it ends");
    let found = format!("\n{}\n\n{}\n", machine(), table(rows));
    std::fs::write(path, [before, &begin, &found, &end, after].concat()).unwrap();
}

/// What it was that was put to the test, and where.
fn machine() -> String {
    let version = std::process::Command::new(server::binary()).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let system = rustix::system::uname();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let release = system.release().to_string_lossy();
    let numbers = release.split('-').next().unwrap_or_default();
    format!("{version}, release build, on Linux {numbers} with {cores} cores.")
}

/// A number as it is read: 500,000.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
