//! `cargo xtask bench footprint`: what the release binary weighs, on disk and in memory.
//!
//! Sizes and memory have limits that always hold, and the command fails when one does not. The time to start is
//! only reported: it depends on what else the machine is doing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Outcome, cargo, root};

const MB: u64 = 1 << 20;

pub fn run() -> Outcome {
    let binary = build()?;
    let folder = std::env::temp_dir().join(format!("file-editor-footprint-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let outcome = measure(&binary, &folder);
    let _ = fs::remove_dir_all(&folder);
    outcome
}

/// A static release binary of the machine's own target.
pub fn build() -> Result<PathBuf, String> {
    let target = host_target()?;
    crate::run(
        cargo()
            .args(["build", "--release", "--bin", "file-editor", "--target", &target])
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let name = format!("file-editor{}", std::env::consts::EXE_SUFFIX);
    Ok(folder.join(target).join("release").join(name))
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

fn measure(binary: &Path, folder: &Path) -> Outcome {
    let fail = |error: std::io::Error| error.to_string();
    let mut rows = Vec::new();
    let bytes = fs::read(binary).map_err(fail)?;
    let size = bytes.len() as u64;
    rows.push(Row {
        what: "binary",
        measured: megabytes(size),
        limit: "under 10 MB",
        holds: Some(size < 10 * MB),
    });
    if let Some(interpreter) = needs_interpreter(&bytes) {
        let measured = if interpreter { "dynamic" } else { "static" }.into();
        rows.push(Row { what: "linking", measured, limit: "static", holds: Some(!interpreter) });
    }

    let mut starts: Vec<Duration> = (0..50)
        .map(|_| Server::start(binary, folder).map(|s| s.started))
        .collect::<Result<_, _>>()?;
    starts.sort();
    let shown = format!("{:.2?} median, {:.2?} fastest of 50", starts[25], starts[0]);
    rows.push(Row { what: "start", measured: shown, limit: "under 10 ms", holds: None });

    if cfg!(target_os = "linux") {
        let text = "A line of plain text, as long as lines of source usually are.\n";
        for (name, size) in [("1mb.txt", MB), ("10mb.txt", 10 * MB)] {
            let lines = usize::try_from(size).map_err(|e| e.to_string())? / text.len();
            fs::write(folder.join(name), text.repeat(lines)).map_err(fail)?;
        }
        let mut server = Server::start(binary, folder)?;
        let idle = server.memory("VmRSS:")?;
        rows.push(memory("idle memory", idle, "under 5 MB", 5 * MB));
        for _ in 0..200 {
            server.read("1mb.txt")?;
        }
        // It has ten seconds to fall back; a few are enough.
        std::thread::sleep(Duration::from_secs(6));
        let settled = server.memory("VmRSS:")?;
        rows.push(memory("6 s after 200 reads of 1 MB", settled, "under 5 MB", 5 * MB));

        let mut server = Server::start(binary, folder)?;
        server.read("10mb.txt")?;
        let peak = server.memory("VmHWM:")?;
        rows.push(memory("peak of a 10 MB read", peak, "under file size + 6 MB", 16 * MB));
    }

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

fn memory(what: &'static str, bytes: u64, limit: &'static str, most: u64) -> Row {
    Row { what, measured: megabytes(bytes), limit, holds: Some(bytes < most) }
}

fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let megabytes = bytes as f64 / MB as f64;
    format!("{megabytes:.2} MB")
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

/// The release binary on stdio, spoken to by hand.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    started: Duration,
}

impl Server {
    /// Starts it and waits for its first answer.
    fn start(binary: &Path, folder: &Path) -> Result<Self, String> {
        let since = Instant::now();
        let mut child = Command::new(binary)
            .arg(format!("--dir={}", folder.display()))
            .args(["--transport=stdio", "--log=error"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut server = Self { child, input, output, started: Duration::ZERO };
        let client = json!({ "name": "footprint", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        server.request("initialize", &params)?;
        server.started = since.elapsed();
        Ok(server)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<String, String> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.input, "{message}").map_err(|e| e.to_string())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).map_err(|e| e.to_string())?;
        if answer.contains("\"result\"") { Ok(answer) } else { Err(format!("{method}: {answer}")) }
    }

    fn read(&mut self, name: &str) -> Outcome {
        let params = json!({ "name": "read_file", "arguments": { "name": name } });
        let answer = self.request("tools/call", &params)?;
        if answer.len() > 1_000_000 { Ok(()) } else { Err(format!("a short answer: {answer}")) }
    }

    /// A figure of `/proc/<pid>/status`, in bytes.
    fn memory(&self, name: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).map_err(|e| e.to_string())?;
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().map_err(|_| line)?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
