//! Reads of 1 KB over HTTP: how many in a second, and what each takes of the server's processor.

use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::contenders::{Contender, Kind};
use crate::figures::{Figures, short};
use crate::http::{Load, OnHttp, post};
use crate::process::message;
use crate::report::Report;
use crate::scene::{self, KB};

/// How many connections, and how that is said.
pub const CONNECTIONS: [(usize, &str); 3] =
    [(1, "1 connection"), (64, "64 connections"), (1000, "1,000 connections")];
const TURNS: usize = 4;
const TURN: Duration = Duration::from_millis(750);

/// What is spoken over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Floor,
    Rest,
    Mcp,
}

impl Dialect {
    const ALL: [Self; 3] = [Self::Floor, Self::Rest, Self::Mcp];

    fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Rest => "file-editor, REST",
            Self::Mcp => "file-editor, MCP",
        }
    }

    fn kind(self) -> Kind {
        if self == Self::Floor { Kind::Floor } else { Kind::Ours }
    }

    /// Reads a file.
    pub fn request(self, path: &Path) -> Vec<u8> {
        let name = path.file_name().map(|name| name.to_string_lossy());
        match self {
            Self::Floor => post("/read", "", &json!({ "path": path }).to_string()),
            Self::Rest => post("/read_file", "", &json!({ "name": name }).to_string()),
            Self::Mcp => {
                let params = json!({ "name": "read_file", "arguments": { "name": name } });
                let call = message(1, "tools/call", &params);
                let headers = "Accept: application/json, text/event-stream\r\n\
                               MCP-Protocol-Version: 2025-11-25\r\n";
                post("/mcp", headers, &String::from_utf8_lossy(&call))
            }
        }
    }
}

/// The server, serving `folder` over HTTP.
pub fn serve(contender: &Contender, folder: &Path) -> Result<OnHttp> {
    OnHttp::start(|port| {
        let mut command = Command::new(&contender.program);
        command.arg(format!("--port={port}"));
        if contender.kind.is_ours() {
            command.arg("--log=error").arg(format!("--dir={}", folder.display()));
        }
        command
    })
}

/// What was done from so many connections.
struct Throughput {
    dialect: Dialect,
    calls: Figures,
    seconds: f64,
}

impl Throughput {
    fn calls_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let calls = self.calls.len() as f64;
        calls / self.seconds
    }
}

/// Everybody by turns, each time with new connections to the same server.
fn measure(contenders: &[Contender], folder: &Path, connections: usize) -> Result<Vec<Throughput>> {
    let path = folder.join("http.rs");
    fs::write(&path, scene::source(KB))?;
    let mut seats = Vec::new();
    for dialect in Dialect::ALL {
        let wanted = |contender: &&Contender| contender.kind == dialect.kind();
        if let Some(contender) = contenders.iter().find(wanted) {
            let done = Throughput { dialect, calls: Figures::default(), seconds: 0.0 };
            seats.push((serve(contender, folder)?, done));
        }
    }
    for _ in 0..TURNS {
        seats.rotate_left(1);
        for (server, done) in &mut seats {
            let mut load = Load::connect(server.port, connections)?;
            let request = done.dialect.request(&path);
            load.run(&request, TURN / 10)?;
            let before = server.process.cpu()?;
            let (figures, time) = load.run(&request, TURN)?;
            done.calls.add_all(&figures);
            done.calls.add_cpu(server.process.cpu()?.saturating_sub(before));
            done.seconds += time.as_secs_f64();
        }
    }
    seats.sort_by_key(|(_, done)| done.dialect as usize);
    Ok(seats.into_iter().map(|(_, done)| done).collect())
}

pub fn tell(
    name: &str,
    contenders: &[Contender],
    connections: usize,
    folder: &Path,
    report: &mut Report,
) {
    report.title(&format!("{name}, reads of 1 KB"));
    let results = match measure(contenders, folder, connections) {
        Ok(results) => results,
        Err(error) => return report.fault(name, &error),
    };
    let floor = results.iter().find(|result| result.dialect == Dialect::Floor);
    let floor = floor.map_or(f64::NAN, |floor| floor.calls.cpu());
    let mut rows = Vec::new();
    for result in &results {
        let columns = [
            result.calls_per_second(),
            result.calls.median(),
            result.calls.quantile(0.95),
            result.calls.cpu(),
            result.calls.cpu() / floor,
        ];
        let mut row = vec![result.dialect.name().to_owned()];
        row.extend(columns.map(short));
        rows.push(row);
        let mut figures = result.calls.to_json();
        figures["calls per second"] = result.calls_per_second().into();
        report.keep("http", &format!("{name}: {}", result.dialect.name()), figures);
    }
    let head = ["", "calls a second", "median ms", "p95 ms", "CPU ms a call", "CPU × floor"];
    report.table(&head, &rows);
}
