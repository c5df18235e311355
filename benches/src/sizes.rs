//! What has to be installed, and what a client is told before it can call anything.

use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::contenders::{Contender, Durability, Kind, serving};
use crate::figures::megabytes;
use crate::process::OnStdio;
use crate::report::{Report, failure};

pub fn tell(contenders: &[Contender], folder: &Path, report: &mut Report) {
    report.title("Installed size, and what `tools/list` costs");
    let mut rows = Vec::new();
    for contender in serving(contenders) {
        let name = contender.kind.name();
        let size = size(&contender.installed).map_or_else(|error| failure(&error), megabytes);
        let all = &mut contender.command(folder, Durability::None);
        rows.push(row(name, &size, all, report));
        if contender.kind == Kind::Ours {
            let mut command = Command::new(&contender.program);
            let folder = format!("--dir={}", folder.display());
            command.args([&folder, "--transport=stdio", "--log=error"]);
            rows.push(row("file-editor, default tools", &size, &mut command, report));
        }
    }
    report.table(&["", "installed MB", "bytes of `tools/list`", "tools"], &rows);
    report.say("\nserver-filesystem needs Node besides.");
}

fn row(name: &str, size: &str, command: &mut Command, report: &mut Report) -> Vec<String> {
    let (bytes, count) = match tools(command) {
        Ok((bytes, count)) => (bytes.to_string(), count.to_string()),
        Err(error) => (failure(&error), String::new()),
    };
    let figures = json!({ "installed MB": size, "tools/list bytes": bytes, "tools": count });
    report.keep("sizes", name, figures);
    vec![name.into(), size.into(), bytes, count]
}

fn size(path: &Path) -> Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}

/// The bytes of the answer to `tools/list`, and how many tools there are.
fn tools(command: &mut Command) -> Result<(usize, usize)> {
    let mut server = OnStdio::start(command)?;
    let answer = server.request("tools/list", &json!({}))?;
    let count = answer["result"]["tools"].as_array().map_or(0, Vec::len);
    Ok((server.answer().len(), count))
}
