//! Many clients over HTTP, each of which asks again as soon as it is answered.

use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{Point, Series, above};
use crate::http::{Load, OnHttp, post};
use crate::scene;

const CLIENTS: [usize; 7] = [1, 3, 10, 30, 100, 300, 1_000];
const WARM: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_secs(1);

pub fn clients(binary: &Path, folder: &Path) -> Result<Vec<Series>> {
    fs::write(folder.join("file.rs"), scene::source(scene::KB))?;
    let read = json!({ "name": "file.rs" });
    let params = json!({ "name": "read_file", "arguments": read });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers =
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n";
    let requests = [
        ("MCP, read 1 KB", post("/mcp", headers, &call.to_string())),
        ("REST, read 1 KB", post("/read_file", "", &read.to_string())),
    ];
    let mut all = Vec::new();
    for (name, request) in &requests {
        let points = CLIENTS.iter().map(|count| point(binary, folder, *count, request));
        all.push(Series::new(name, points.collect::<Result<_>>()?));
    }
    Ok(all)
}

#[expect(clippy::cast_precision_loss, reason = "it goes into a plot")]
fn point(binary: &Path, folder: &Path, count: usize, request: &[u8]) -> Result<Point> {
    let server = OnHttp::start(|port| {
        let mut command = Command::new(binary);
        command.args(["--log=error", &format!("--dir={}", folder.display())]);
        command.arg(format!("--port={port}"));
        command
    })?;
    // One client first: what the code itself needs is in memory then.
    Load::connect(server.port, 1)?.run(request, WARM)?;
    let idle = server.process.memory("VmRSS")?;
    let mut load = Load::connect(server.port, count)?;
    load.run(request, WARM)?;
    server.process.forget_peak()?;
    let before = server.process.cpu()?;
    let (mut figures, duration) = load.run(request, MEASURED)?;
    figures.add_cpu(server.process.cpu()?.saturating_sub(before));
    let peak = server.process.memory("VmHWM")?;
    let (median, most, cpu) = (figures.median(), figures.quantile(0.95), figures.cpu());
    let memory = above(idle, peak);
    let rate = figures.len() as f64 / duration.as_secs_f64();
    Ok(Point { size: count, median, most, cpu, memory, rate })
}
