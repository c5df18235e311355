//! `cargo xtask bench code <folder>`: `ai_get_code_context` and `search_files` on real sources, and `rg` for the same
//! words, by turns.
//!
//! The server runs on; `rg` is started for each question, as those who have no such tool do. What has to hold is told
//! beside: a context within twice, a search within 1.2 times what `rg` takes, and no more than 40 MB at most.

use std::io::{Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::Options;
use crate::figures::{Figures, megabytes, short};
use crate::process::{OnStdio, message};

const TURNS: usize = 15;

/// Questions, with what they are for `rg`.
const QUESTIONS: &[(&str, &str)] = &[
    ("parallel directory walk", "parallel|directory|walk"),
    ("tls handshake certificate verification", "tls|handshake|certificate|verif"),
    ("where is the config parsed", "config|pars"),
    (
        "how are flow control windows handled when a stream is reset",
        "flow|control|window|handl|stream|reset",
    ),
    ("read_to_end", "read|end"),
];

pub fn run(options: &Options) -> Result<()> {
    let [folder] = options.words.as_slice() else {
        return Err(Error::other("say which folder: cargo xtask bench code <folder>"));
    };
    let folder = Path::new(folder);
    let mut server = OnStdio::start(
        Command::new(&options.binary)
            .arg(format!("--dir={}", folder.display()))
            .args(["--tools=code", "--transport=stdio", "--timeout=60"])
            .stderr(Stdio::null()),
    )?;
    println!(
        "| question | context, ms | first | search, ms | rg, ms | context / rg | search / rg |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (question, pattern) in QUESTIONS {
        let [mut context, mut search, mut rg] = <[Figures; 3]>::default();
        let mut first = None;
        for _ in 0..TURNS {
            let arguments = json!({ "query": question });
            let time = server.call(&call("ai_get_code_context", &arguments))?;
            server.check()?;
            first.get_or_insert(time);
            context.add(time);
            let arguments = json!({ "pattern": pattern, "case": "insensitive", "show": "counts", "max_results": 1000 });
            search.add(server.call(&call("search_files", &arguments))?);
            server.check()?;
            let since = Instant::now();
            let mut searched = Command::new("rg");
            searched.args(["-i", "-c", pattern]).arg(folder).stdout(Stdio::null());
            searched.status().map_err(|error| Error::other(format!("rg is needed: {error}")))?;
            rg.add(since.elapsed());
        }
        let [c, s, r] = [&context, &search, &rg].map(Figures::median);
        let first = first.map_or(f64::NAN, |first| first.as_secs_f64() * 1000.0);
        println!(
            "| {question} | {} | {} | {} | {} | {:.2} | {:.2} |",
            short(c),
            short(first),
            short(s),
            short(r),
            c / r,
            s / r
        );
    }
    let since = Instant::now();
    server.call(&call("ai_get_code_context", &json!({})))?;
    server.check()?;
    println!("\nthe map of all: {} ms", short(since.elapsed().as_secs_f64() * 1000.0));
    let answer: Value = serde_json::from_slice(server.answer()).map_err(Error::other)?;
    let stats = &answer["result"]["structuredContent"]["stats"];
    println!("files: {}", stats["files_scanned"]);
    println!("memory at most: {} MB", megabytes(server.process.memory("VmHWM")?));
    Ok(())
}

fn call(name: &str, arguments: &Value) -> Vec<u8> {
    message(2, "tools/call", &json!({ "name": name, "arguments": arguments }))
}
