//! `cargo xtask coverage`: how many lines the tests of the workspace run, servers that they start included; in the four
//! parts for which the contract names a least share.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, cargo, footprint, report, root, target_folder};

/// What is measured together.
struct Part {
    name: &'static str,
    /// The share that has to be run, in percent.
    least: usize,
    /// Files and folders below `crates`.
    sources: &'static [&'static str],
}

const PARTS: [Part; 4] = [
    Part {
        name: "input validation",
        least: 100,
        sources: &[
            "files/src/root.rs",
            "files/src/temp_name.rs",
            "server/src/json_arguments.rs",
            "server/src/http/access.rs",
            "text/src/decode.rs",
            "tools/src/aliases.rs",
            "tools/src/line_number.rs",
            "tools/src/resource/uri.rs",
            "tools/src/schema.rs",
        ],
    },
    Part { name: "tools", least: 95, sources: &["tools/src"] },
    Part {
        name: "concurrency",
        least: 90,
        sources: &[
            "files/src/attempt.rs",
            "files/src/call.rs",
            "files/src/disk.rs",
            "files/src/lock.rs",
            "files/src/sweep.rs",
            "files/src/target.rs",
            "files/src/updater.rs",
            "server/src/call.rs",
            "server/src/call/pending_call.rs",
            "server/src/call/queue.rs",
            "server/src/memory_budget.rs",
            "server/src/stdio/in_flight.rs",
            "server/src/stdio/inline.rs",
        ],
    },
    Part {
        name: "protocol",
        least: 95,
        sources: &[
            "server/src/client_channel.rs",
            "server/src/confirm.rs",
            "server/src/error_codes.rs",
            "server/src/http.rs",
            "server/src/http/bodies.rs",
            "server/src/http/event_stream.rs",
            "server/src/http/mcp_endpoint.rs",
            "server/src/http/responses.rs",
            "server/src/http/rest.rs",
            "server/src/http/sessions.rs",
            "server/src/mcp.rs",
            "server/src/mcp/call_handle.rs",
            "server/src/mcp/methods.rs",
            "server/src/mcp/resources.rs",
            "server/src/message.rs",
            "server/src/outgoing.rs",
            "server/src/plain.rs",
            "server/src/stdio.rs",
            "server/src/stdio/lines.rs",
            "server/src/stdio/reader.rs",
            "server/src/stdio/writer.rs",
        ],
    },
];

/// Of the whole, for orientation.
const CRATES: [&str; 5] = ["text", "files", "tools", "server", "file-editor"];

/// Counters are kept in a file while a program runs, and all that run it share the file: a server that is killed has counted
/// too.
const FLAGS: &str = "-C instrument-coverage -C llvm-args=-runtime-counter-relocation";

/// Runs the tests, unless it is only to say `again` what they ran.
pub fn run(is_again: bool) -> Outcome {
    // Programs count where they are told to, in whichever folder they run.
    let folder = std::path::absolute(target_folder()).map_err(|e| e.to_string())?.join("coverage");
    let profiles = folder.join("profiles");
    let tools = [tool("llvm-profdata")?, tool("llvm-cov")?];
    let programs = programs(&folder)?;
    let mut faults = Vec::new();
    if !is_again {
        // Those of the build do not count.
        let _ = fs::remove_dir_all(&profiles);
        faults.extend(crate::run(tests(&folder).arg("--no-fail-fast")).err());
    }
    let lines = lines(&folder, &programs, tools)?;
    let (table, missed) = table(&lines);
    println!("\n{table}");
    report::write("coverage", &table)?;
    faults.extend(missed);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The tests of the product, each program counting its lines.
fn tests(folder: &Path) -> Command {
    let mut tests = cargo();
    tests
        .arg("test")
        .args(CRATES.iter().flat_map(|name| ["--package", name]))
        .env("CARGO_TARGET_DIR", folder)
        .env("RUSTFLAGS", FLAGS)
        .env("LLVM_PROFILE_FILE", folder.join("profiles/%m%c.profraw"));
    tests
}

/// All that is built for them: tests, and the server.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut build = tests(folder);
    build.args(["--no-run", "--message-format=json"]).current_dir(root());
    let output =
        build.stderr(std::process::Stdio::inherit()).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err("the tests cannot be built".into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter_map(|message| message["executable"].as_str().map(Into::into));
    Ok(programs.collect())
}

/// Of each source, by its path below `crates`: its lines, and whether each was run.
type Lines = BTreeMap<String, BTreeMap<usize, bool>>;

fn lines(
    folder: &Path,
    programs: &[PathBuf],
    [mut merge, mut export]: [Command; 2],
) -> Result<Lines, String> {
    let merged = folder.join("merged.profdata");
    let profiles = fs::read_dir(folder.join("profiles")).map_err(|e| e.to_string())?;
    let profiles = profiles.flatten().map(|profile| profile.path().display().to_string());
    // A command line could not hold them all.
    let list = folder.join("profiles.txt");
    fs::write(&list, profiles.collect::<Vec<_>>().join("\n")).map_err(|e| e.to_string())?;
    merge.args(["merge", "-sparse", "--failure-mode=all", "-f"]).arg(list).arg("-o").arg(&merged);
    crate::run(&mut merge)?;
    export.args(["export", "-format=lcov"]).arg(format!("-instr-profile={}", merged.display()));
    let mut programs = programs.iter();
    export.args(programs.next());
    programs.for_each(|program| {
        export.arg("-object").arg(program);
    });
    let output = export.output().map_err(|e| format!("llvm-cov: {e}"))?;
    if !output.status.success() {
        return Err(format!("llvm-cov: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let before_tests = |path: &Path| product(&fs::read_to_string(path).unwrap_or_default());
    Ok(read(&String::from_utf8_lossy(&output.stdout), &root().join("crates"), &before_tests))
}

/// One of the tools that come with the compiler, if they were asked for.
fn tool(name: &str) -> Result<Command, String> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = output.map_err(|e| format!("rustc: {e}"))?.stdout;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    let path = sysroot.join("lib/rustlib").join(footprint::host_target()?).join("bin").join(name);
    if path.is_file() {
        Ok(Command::new(path))
    } else {
        Err(format!("{name} is not there: `rustup component add llvm-tools`"))
    }
}

/// What an export in the form of `lcov` says of the sources in `folder`, but for the tests in them.
fn read(export: &str, folder: &Path, last: &dyn Fn(&Path) -> usize) -> Lines {
    let mut all = Lines::new();
    let mut current: Option<(String, usize)> = None;
    for line in export.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            let path = Path::new(path).strip_prefix(folder).ok().and_then(Path::to_str);
            current = path.map(|path| (path.to_owned(), last(&folder.join(path))));
        } else if let (Some((path, end)), Some(data)) = (&current, line.strip_prefix("DA:"))
            && let Some((number, count)) = data.split_once(',')
            && let Ok(number) = number.parse::<usize>()
            && number <= *end
        {
            *all.entry(path.clone()).or_default().entry(number).or_default() |= count != "0";
        }
    }
    all
}

/// How many lines of a source are before its tests.
fn product(source: &str) -> usize {
    let begins_tests = |line: &&str| line.starts_with("#[cfg(") && line.contains("test");
    let last = source.lines().zip(source.lines().skip(1).chain([""])).take_while(|(line, next)| {
        !(begins_tests(line) && next.trim_start_matches("pub ").starts_with("mod "))
    });
    last.count()
}

/// The four figures, then the crates; and which are too low.
fn table(lines: &Lines) -> (String, Vec<String>) {
    let mut table =
        String::from("| part | lines | run | share | at least |\n|---|---|---|---|---|\n");
    let mut missed = Vec::new();
    for part in &PARTS {
        let (all, run) = count(lines, part.sources);
        let _ = writeln!(
            table,
            "| {} | {all} | {run} | {} | {} % |",
            part.name,
            share(all, run),
            part.least
        );
        if run * 100 < all * part.least {
            missed.push(format!("{}: less than {} %", part.name, part.least));
        }
        let gone = part.sources.iter().filter(|source| count(lines, &[source]).0 == 0);
        missed.extend(gone.map(|source| format!("{}: {source} has no lines", part.name)));
    }
    for name in CRATES {
        let (all, run) = count(lines, &[&format!("{name}/src")]);
        let _ = writeln!(table, "| crate `{name}` | {all} | {run} | {} | |", share(all, run));
    }
    (table + "\n" + &left(lines), missed)
}

fn count(lines: &Lines, sources: &[&str]) -> (usize, usize) {
    let is_in = |path: &str| sources.iter().any(|source| Path::new(path).starts_with(source));
    let lines = lines.iter().filter(|(path, _)| is_in(path)).flat_map(|(_, lines)| lines.values());
    lines.fold((0, 0), |(all, run), is_run| (all + 1, run + usize::from(*is_run)))
}

fn share(all: usize, run: usize) -> String {
    let tenths = (run * 1000).checked_div(all).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The lines of the four parts that no test runs.
fn left(lines: &Lines) -> String {
    let sources: Vec<&str> = PARTS.iter().flat_map(|part| part.sources).copied().collect();
    let mut left = String::from("Lines of these parts that no test runs:\n\n");
    for (path, lines) in lines {
        let numbers: Vec<usize> =
            lines.iter().filter(|(_, is_run)| !**is_run).map(|(number, _)| *number).collect();
        let is_in = sources.iter().any(|source| Path::new(path).starts_with(source));
        if is_in && !numbers.is_empty() {
            let _ = writeln!(left, "- `{path}`: {}", ranges(&numbers));
        }
    }
    left
}

/// `1-3, 7`
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn exports_are_read_up_to_the_tests() {
    let source = "one\n#[cfg(test)]\nfn three() {}\n#[cfg(all(test, unix))]\nmod tests {\n}\n";
    assert_eq!(product(source), 3);
    let export = "SF:/c/a.rs\nDA:1,0\nDA:2,5\nDA:3,0\nDA:5,1\nend_of_record\nSF:/b.rs\nDA:1,1\n";
    let lines = read(export, Path::new("/c"), &|_| product(source));
    assert_eq!(count(&lines, &["a.rs"]), (3, 1));
    assert_eq!(lines.len(), 1);
    assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
    assert_eq!(share(3, 1), "33.3 %");
}
