//! `cargo xtask bench footprint`: what the release binary weighs, on disk and in memory.
//!
//! Sizes and memory have limits that always hold, and the command fails when one does not. The time to start is
//! only reported: it depends on what else the machine is doing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::servers::{OnHttp, OnStdio};
use crate::{Outcome, cargo, target_folder};

const MB: u64 = 1 << 20;
const AGENT: &str = "codex-cli-acp";
/// It has ten seconds to fall back to idle; a few are enough.
const SETTLED: Duration = Duration::from_secs(6);

pub fn run() -> Outcome {
    let binary = build()?;
    let folder = std::env::temp_dir().join(format!("file-editor-footprint-{}", std::process::id()));
    let rows = fs::create_dir_all(&folder).and_then(|()| measure(&binary, &folder));
    let _ = fs::remove_dir_all(&folder);
    report(rows.map_err(|error| error.to_string())?)
}

/// Both binaries for the machine's own target, static, beside each other; the server's path. They are built together,
/// so that what they share is built once.
pub fn build() -> Result<PathBuf, String> {
    let target = host_target()?;
    crate::run(
        cargo()
            .args([
                "build",
                "--release",
                "--bin",
                "file-editor",
                "--bin",
                AGENT,
                "--target",
                &target,
            ])
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    let name = format!("file-editor{}", std::env::consts::EXE_SUFFIX);
    Ok(target_folder().join(target).join("release").join(name))
}

fn host_target() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc does not name its host".into())
}

struct Row {
    what: &'static str,
    measured: String,
    limit: &'static str,
    /// `None`: only reported.
    holds: Option<bool>,
}

fn measure(binary: &Path, folder: &Path) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let bytes = fs::read(binary)?;
    let size = bytes.len() as u64;
    rows.push(limited("binary", size, "under 10 MB", 10 * MB));
    if let Some(interpreter) = needs_interpreter(&bytes) {
        let measured = if interpreter { "dynamic" } else { "static" }.into();
        rows.push(Row { what: "linking", measured, limit: "static", holds: Some(!interpreter) });
    }

    let agent = binary.with_file_name(format!("{AGENT}{}", std::env::consts::EXE_SUFFIX));
    rows.push(limited(
        "binary of codex-cli-acp",
        fs::metadata(&agent)?.len(),
        "under 10 MB",
        10 * MB,
    ));

    let start = |_| OnStdio::start(binary, folder).map(|server| server.started);
    let mut starts = (0..50).map(start).collect::<io::Result<Vec<_>>>()?;
    starts.sort();
    let shown = format!("{:.2?} median, {:.2?} fastest of 50", starts[25], starts[0]);
    rows.push(Row { what: "start", measured: shown, limit: "under 10 ms", holds: None });
    if cfg!(target_os = "linux") {
        measure_memory(binary, folder, &mut rows)?;
    }
    Ok(rows)
}

fn measure_memory(binary: &Path, folder: &Path, rows: &mut Vec<Row>) -> io::Result<()> {
    let text = "A line of plain text, as long as lines of source usually are.\n";
    fs::write(folder.join("1mb.txt"), text.repeat((1 << 20) / text.len()))?;
    fs::write(folder.join("10mb.txt"), text.repeat((10 << 20) / text.len()))?;

    let mut server = OnStdio::start(binary, folder)?;
    let idle = server.process.memory("VmRSS:")?;
    rows.push(limited("idle memory", idle, "under 5 MB", 5 * MB));
    let agent = OnStdio::start_agent(&binary.with_file_name(AGENT))?;
    let idle = agent.process.memory("VmRSS:")?;
    rows.push(limited("idle memory of codex-cli-acp", idle, "under 5 MB", 5 * MB));
    drop(agent);
    for _ in 0..200 {
        server.read_large("1mb.txt")?;
    }
    std::thread::sleep(SETTLED);
    let settled = server.process.memory("VmRSS:")?;
    rows.push(limited("6 s after 200 reads of 1 MB", settled, "under 5 MB", 5 * MB));

    let mut server = OnStdio::start(binary, folder)?;
    server.read_large("10mb.txt")?;
    let peak = server.process.memory("VmHWM:")?;
    rows.push(limited("peak of a 10 MB read", peak, "under file size + 6 MB", 16 * MB));
    drop(server);

    let server = OnHttp::start(binary, folder)?;
    let idle = server.process.memory("VmRSS:")?;
    rows.push(limited("idle memory, HTTP", idle, "under 5 MB", 5 * MB));
    server.load("1mb.txt")?;
    std::thread::sleep(SETTLED);
    let settled = server.process.memory("VmRSS:")?;
    let what = "6 s after 64 × 200 calls among 1,000 idle connections";
    rows.push(limited(what, settled, "under idle + 1 MB", idle + MB));
    Ok(())
}

fn report(rows: Vec<Row>) -> Outcome {
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
    if broken.is_empty() { Ok(()) } else { Err(format!("over the limit: {}", broken.join(", "))) }
}

fn limited(what: &'static str, bytes: u64, limit: &'static str, most: u64) -> Row {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let measured = format!("{:.2} MB", bytes as f64 / MB as f64);
    Row { what, measured, limit, holds: Some(bytes < most) }
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
