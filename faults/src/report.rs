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

/// Puts what was found into a document, between the marks of that part of it.
pub fn write(path: &Path, part: &str, found: &str) {
    let document = std::fs::read_to_string(path).unwrap();
    let begin = document.find(&format!("<!-- {part}: ")).expect("a mark where it begins");
    let (before, rest) = document.split_at(begin);
    let (mark, rest) = rest.split_once('\n').expect("a line of its own");
    let end = rest.find(&format!("<!-- end of {part} -->")).expect("a mark where it ends");
    let (found, machine, after) = (found.trim(), machine(), &rest[end..]);
    let document = format!("{before}{mark}\n\n{machine}\n\n{found}\n\n{after}");
    std::fs::write(path, document).unwrap();
}

/// Sections, each under its title.
pub fn titled(sections: &[Section]) -> String {
    let shown = |Section { title, rows }: &Section| format!("### {title}\n\n{}\n", table(rows));
    sections.iter().map(shown).collect()
}

/// What it was that was put to the test, and where.
fn machine() -> String {
    let version = std::process::Command::new(server::binary()).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let system = rustix::system::uname();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let release = system.release().to_string_lossy();
    let numbers = release.split('-').next().unwrap_or_default();
    let commit = commit().map(|commit| format!(" at {commit}")).unwrap_or_default();
    format!("{version}{commit}, release build, on Linux {numbers} with {cores} cores.")
}

/// What is checked out here, and whether something was changed since; nothing where git knows of none. The figures are
/// not looked at: they may just have been written.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let hash = git(&["rev-parse", "--short", "HEAD"])?;
    let touched = git(&["status", "--porcelain", "--", ":/", ":(top,exclude)docs/reliability.md"])?;
    let changed = if touched.is_empty() { "" } else { ", changed" };
    Some(format!("{hash}{changed}"))
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
