//! `cargo xtask bench footprint`: what the release binaries weigh, on disk and in memory.
//!
//! Sizes and memory have limits that always hold, and the command fails when one does not. The time to start is
//! only reported: it depends on what else the machine is doing.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::contenders::{Contender, Kind};
use crate::figures::{Figures, megabytes, short};
use crate::http::{Load, post};
use crate::process::OnStdio;
use crate::{Options, throughput};

const MB: u64 = 1 << 20;
/// A server that has just answered does not idle yet: it lets go of its code after half a second, and looks every half.
const IDLE: Duration = Duration::from_millis(1500);

/// It has ten seconds to fall back to idle; six are enough, unless the machine is busy.
const SETTLED: Duration = Duration::from_secs(6);
const SETTLED_LATE: Duration = Duration::from_secs(4);
const CLIENTS: usize = 64;
const CALLS_OF_EACH: usize = 200;
const IDLE_CONNECTIONS: usize = 1000;

struct Row {
    what: &'static str,
    measured: String,
    limit: &'static str,
    /// `None`: only reported.
    holds: Option<bool>,
}

pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    measure_files(&options.binary, &mut rows)?;
    measure_start(&options.binary, folder.path(), &mut rows)?;
    measure_memory(&options.binary, folder.path(), &mut rows)?;
    report(rows)
}

fn measure_files(binary: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let bytes = fs::read(binary)?;
    rows.push(program("binary", bytes.len() as u64));
    if let Some(interpreter) = needs_interpreter(&bytes) {
        let measured = if interpreter { "dynamic" } else { "static" }.into();
        rows.push(Row { what: "linking", measured, limit: "static", holds: Some(!interpreter) });
    }
    let agent = fs::metadata(agent(binary))?.len();
    rows.push(program("binary of codex-cli-acp", agent));
    Ok(())
}

fn measure_start(binary: &Path, folder: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let mut starts = Figures::default();
    for _ in 0..50 {
        starts.add(start(binary, folder)?.started);
    }
    let (median, fastest) = (short(starts.median()), short(starts.quantile(0.0)));
    let measured = format!("{median} ms median, {fastest} ms fastest of 50");
    rows.push(Row { what: "start", measured, limit: "under 10 ms", holds: None });
    Ok(())
}

fn measure_memory(binary: &Path, folder: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let text = "A line of plain text, as long as lines of source usually are.\n";
    fs::write(folder.join("1mb.txt"), text.repeat((1 << 20) / text.len()))?;
    fs::write(folder.join("10mb.txt"), text.repeat((10 << 20) / text.len()))?;

    let mut server = start(binary, folder)?;
    let measured = format!("{} MB", megabytes(server.process.memory("VmRSS")?));
    rows.push(Row { what: "memory at the first answer", measured, limit: "–", holds: None });
    std::thread::sleep(IDLE);
    let idle = server.process.memory("VmRSS")?;
    rows.push(limited("idle memory", idle, "under 5 MB", 5 * MB));
    let agent = start_agent(binary)?;
    std::thread::sleep(IDLE);
    let idle = agent.process.memory("VmRSS")?;
    rows.push(limited("idle memory of codex-cli-acp", idle, "under 5 MB", 5 * MB));
    drop(agent);
    for _ in 0..200 {
        read_large(&mut server, "1mb.txt")?;
    }
    std::thread::sleep(SETTLED);
    let settled = server.process.memory("VmRSS")?;
    rows.push(limited("6 s after 200 reads of 1 MB", settled, "under 5 MB", 5 * MB));

    let mut server = start(binary, folder)?;
    // What the program itself takes is told above.
    let first = server.process.memory("VmRSS")?;
    read_large(&mut server, "10mb.txt")?;
    let taken = server.process.memory("VmHWM")?.saturating_sub(first);
    rows.push(limited("a 10 MB read takes", taken, "under file size + 1 MB", 11 * MB));
    drop(server);

    let server = throughput::serve(&Contender::alone(Kind::Ours, binary), folder)?;
    std::thread::sleep(IDLE);
    let idle = server.process.memory("VmRSS")?;
    rows.push(limited("idle memory, HTTP", idle, "under 5 MB", 5 * MB));
    let others = Load::connect(server.port, IDLE_CONNECTIONS)?;
    Load::connect(server.port, CLIENTS)?.run_each(|client, call| {
        (call < CALLS_OF_EACH).then(|| request("1mb.txt", client, call))
    })?;
    drop(others);
    std::thread::sleep(SETTLED);
    let mut settled = server.process.memory("VmRSS")?;
    // What connections kept that ended late is given back late.
    if settled >= idle + MB {
        std::thread::sleep(SETTLED_LATE);
        settled = server.process.memory("VmRSS")?;
    }
    let what = "within 10 s of 64 × 200 calls among 1,000 idle connections";
    rows.push(limited(what, settled, "under idle + 1 MB", idle + MB));
    Ok(())
}

fn start(binary: &Path, folder: &Path) -> Result<OnStdio> {
    let folder = format!("--dir={}", folder.display());
    OnStdio::start(Command::new(binary).args([&folder, "--transport=stdio", "--log=error"]))
}

/// The agent, without a Codex behind it.
fn start_agent(binary: &Path) -> Result<OnStdio> {
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    OnStdio::greet(Command::new(agent(binary)).arg("--codex=/nowhere/codex"), &params)
}

fn agent(binary: &Path) -> std::path::PathBuf {
    binary.with_file_name("codex-cli-acp")
}

/// Reads a file of at least a megabyte.
fn read_large(server: &mut OnStdio, name: &str) -> Result<()> {
    let params = json!({ "name": "read_file", "arguments": { "name": name } });
    server.request("tools/call", &params)?;
    let is_large = server.answer().len() > 1_000_000;
    if is_large { Ok(()) } else { Err(Error::other("that was not all of it")) }
}

/// Whole reads of `large`, parts of it, edits, listings.
fn request(large: &str, client: usize, call: usize) -> Vec<u8> {
    let (path, body) = match call % 4 {
        0 if call.is_multiple_of(40) => ("/read_file", json!({ "name": large })),
        0 | 1 => ("/list_files", json!({})),
        2 => ("/read_file", json!({ "name": large, "start_line": 100, "end_line": 110 })),
        _ => {
            let name = format!("edited-{}.txt", client % 8);
            ("/edit_file", json!({ "name": name, "append": "x", "create_if_missing": true }))
        }
    };
    post(path, "", &body.to_string())
}

fn report(rows: Vec<Row>) -> Result<()> {
    println!("\n| what | measured | limit | |\n|---|---|---|---|");
    let mut broken = Vec::new();
    for Row { what, measured, limit, holds } in rows {
        let verdict = match holds {
            Some(true) => "holds",
            Some(false) => "BROKEN",
            None => "reported",
        };
        println!("| {what} | {measured} | {limit} | {verdict} |");
        if holds == Some(false) {
            broken.push(what);
        }
    }
    println!();
    let over = || Error::other(format!("over the limit: {}", broken.join(", ")));
    if broken.is_empty() { Ok(()) } else { Err(over()) }
}

/// A file, in the MB that people download: a million bytes each.
fn program(what: &'static str, bytes: u64) -> Row {
    let measured = format!("{}.{:02} MB", bytes / 1_000_000, bytes / 10_000 % 100);
    Row { what, measured, limit: "under 10 MB", holds: Some(bytes < 10_000_000) }
}

fn limited(what: &'static str, bytes: u64, limit: &'static str, most: u64) -> Row {
    Row { what, measured: format!("{} MB", megabytes(bytes)), limit, holds: Some(bytes < most) }
}

/// Whether an ELF file asks for a dynamic loader (`PT_INTERP`); `None` for other formats.
fn needs_interpreter(bytes: &[u8]) -> Option<bool> {
    let number = |at: usize, length: usize| {
        let bytes = bytes.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    if bytes.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    Some((0..count).any(|index| number(start + index * size, 4) == Some(3)))
}
