//! `cargo xtask fuzz`: chance looks for what breaks, and what it finds worth keeping is kept in `fuzz/corpus`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Outcome, cargo, footprint, report, root, run, target_folder};

/// A folder of cases for each, and words that chance would not come upon.
const TARGETS: [Target; 8] = [
    Target { name: "line_protocol", words: "messages" },
    Target { name: "http_bodies", words: "messages" },
    Target { name: "decode", words: "texts" },
    Target { name: "line_edits", words: "texts" },
    Target { name: "string_edits", words: "texts" },
    Target { name: "near_misses", words: "texts" },
    Target { name: "diffs", words: "texts" },
    Target { name: "outlines", words: "code" },
];

/// How long each is tried if nothing else is said.
const SECONDS: u64 = 600;
/// Bytes of a case. More of them find nothing else, and take longer.
const LONGEST: usize = 4096;
/// Of each target so many cases are kept, those that have names among them, and so many bytes of the others.
const MOST_KEPT: usize = 60;
const MOST_KEPT_BYTES: usize = 24 * 1024;
/// Lines of what a run said that are shown when it found something.
const SHOWN: usize = 60;

#[derive(Clone, Copy)]
struct Target {
    name: &'static str,
    words: &'static str,
}

/// What came of a run.
struct Tried {
    target: Target,
    seconds: u64,
    runs: u64,
    /// `cov: 1 ft: 2 corp: 3/4b`: places reached, how often, and by how many cases.
    reached: Option<[u64; 3]>,
    /// Where the input is.
    finding: Option<String>,
}

/// Tries targets, all if none is named, for so many seconds each; or keeps what was found so far.
pub fn run_all(words: &[&str]) -> Outcome {
    let (seconds, names) = match words {
        [first, rest @ ..] if first.parse::<u64>().is_ok() => (first.parse().ok(), rest),
        names => (None, names),
    };
    let (keeps, names) = match names {
        ["keep", rest @ ..] => (true, rest),
        names => (false, names),
    };
    let targets = chosen(names)?;
    let binaries = build()?;
    if keeps {
        return targets.into_iter().try_for_each(|target| keep(&binaries, target));
    }
    let seconds = seconds.unwrap_or(SECONDS);
    let (mut tried, mut faults) = (Vec::new(), Vec::new());
    for target in targets {
        match try_one(&binaries, target, seconds) {
            Ok(outcome) => {
                println!("{}", row(&outcome));
                faults.extend(outcome.fault(seconds));
                tried.push(outcome);
            }
            Err(reason) => faults.push(reason),
        }
    }
    // A short look is no proof, unless it found something.
    tried.retain(|tried| tried.seconds >= SECONDS || tried.finding.is_some());
    let document = fs::read_to_string(root().join(report::PATH)).unwrap_or_default();
    report::write("fuzz", &table(&tried, &document))?;
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

impl Tried {
    /// Why it proves nothing.
    fn fault(&self, seconds: u64) -> Option<String> {
        let name = self.target.name;
        match &self.finding {
            Some(at) => Some(format!("{name}: found {at}")),
            None if self.runs == 0 || self.seconds < seconds => {
                Some(format!("{name}: {} runs in {} s", self.runs, self.seconds))
            }
            None => None,
        }
    }
}

fn chosen(names: &[&str]) -> Result<Vec<Target>, String> {
    let find = |name: &&str| {
        let known = || TARGETS.map(|target| target.name).join(", ");
        let found = TARGETS.into_iter().find(|target| target.name == *name);
        found.ok_or_else(|| format!("there is no target {name}; there are {}", known()))
    };
    if names.is_empty() { Ok(TARGETS.to_vec()) } else { names.iter().map(find).collect() }
}

/// Builds all targets, with what the fuzzer needs in them; where they are.
fn build() -> Result<PathBuf, String> {
    let says = |command: &mut Command| {
        let output = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        output.is_ok_and(|status| status.success())
    };
    if !says(nightly().args(["rustc", "--version"])) {
        let how = "rustup toolchain install nightly --profile minimal";
        return Err(format!("fuzzing needs the nightly toolchain: {how}"));
    }
    if !says(nightly().args(["cargo", "fuzz", "--version"])) {
        println!("cargo-fuzz is not installed yet");
        run(cargo().args(["install", "--locked", "cargo-fuzz"]))?;
    }
    // Of dependencies the very versions that are released.
    let lock = root().join("fuzz/Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let target = footprint::host_target()?;
    run(nightly()
        .args(["cargo", "fuzz", "build", "--fuzz-dir", "fuzz", "--target", &target])
        .env("CARGO_TARGET_DIR", folder()))?;
    Ok(folder().join(target).join("release"))
}

/// Runs what follows with the nightly toolchain, whatever this was started with.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).env_remove("CARGO").env_remove("RUSTC");
    command
}

fn folder() -> PathBuf {
    std::path::absolute(target_folder()).unwrap_or_else(|_| target_folder()).join("fuzz")
}

fn kept(target: Target) -> PathBuf {
    root().join("fuzz/corpus").join(target.name)
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// A target's program, with what each run of it needs.
fn program(binaries: &Path, target: Target) -> Command {
    let mut program = Command::new(binaries.join(target.name));
    let words = root().join("fuzz/dictionaries").join(target.words).with_extension("dict");
    program
        .arg(format!("-dict={}", words.display()))
        .arg(format!("-max_len={LONGEST}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-detect_leaks=0", "-print_final_stats=1"])
        .env("ASAN_OPTIONS", "detect_odr_violation=0");
    // Cases have files, and a disk is slow.
    if Path::new("/dev/shm").is_dir() {
        program.env("TMPDIR", "/dev/shm");
    }
    program
}

/// Cases that are new are left below where cargo builds, to be gone on from; `keep` picks some.
fn try_one(binaries: &Path, target: Target, seconds: u64) -> Result<Tried, String> {
    let found = folder().join("corpus").join(target.name);
    let artifacts = root().join("fuzz/artifacts").join(target.name);
    let log = folder().join("logs").join(target.name).with_extension("log");
    [&found, &artifacts, &folder().join("logs")].into_iter().try_for_each(|at| make_folder(at))?;
    println!("\n{}: {seconds} s, log in {}", target.name, log.display());
    let output = fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let since = Instant::now();
    let status = program(binaries, target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([&found, &kept(target)])
        .stdout(Stdio::null())
        .stderr(output)
        .status()
        .map_err(|e| format!("{}: {e}", target.name))?;
    let said = fs::read(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let said = String::from_utf8_lossy(&said);
    let finding = (!status.success()).then(|| {
        let lines: Vec<&str> = said.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(SHOWN)..].join("\n"));
        let written = said.lines().find_map(|line| line.split_once("Test unit written to "));
        written.map_or_else(|| format!("{} ({status})", log.display()), |(_, at)| at.to_owned())
    });
    Ok(Tried { finding, ..tried(target, &said, since.elapsed()) })
}

fn tried(target: Target, said: &str, time: Duration) -> Tried {
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let reached = said.lines().rev().find_map(|line| {
        let number = |name: &str| {
            let (_, rest) = line.split_once(name)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Some([number(" cov: ")?, number(" ft: ")?, number(" corp: ")?])
    });
    let runs = runs.and_then(|runs| runs.trim().parse().ok()).unwrap_or(0);
    Tried { target, seconds: time.as_secs(), runs, reached, finding: None }
}

/// Targets that were not tried this time have the row that they had.
fn table(tried: &[Tried], document: &str) -> String {
    let rows = TARGETS.iter().filter_map(|target| {
        let tried = tried.iter().find(|tried| tried.target.name == target.name).map(row);
        let begin = format!("| {} | ", target.name);
        tried.or_else(|| document.lines().find(|line| line.starts_with(&begin)).map(String::from))
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "Each target is tried with bytes by chance, checked for what must be true of it (`fuzz/trials`), and for memory that \
         is not its own. Coverage is what was reached: places in the program, and places with how often they were. The \
         corpus is the cases that each reached something else.\n\n\
         | target | seconds | runs | runs/s | corpus | coverage | findings |\n\
         |---|---|---|---|---|---|---|\n{}",
        rows.join("\n")
    )
}

fn row(tried: &Tried) -> String {
    let Tried { target, seconds, runs, reached, finding } = tried;
    let [places, often, cases] = reached.unwrap_or_default().map(grouped);
    let each = grouped(runs / (*seconds).max(1));
    let (name, runs, findings) = (target.name, grouped(*runs), usize::from(finding.is_some()));
    format!("| {name} | {seconds} | {runs} | {each} | {cases} | {places}, {often} | {findings} |")
}

/// 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Puts into `fuzz/corpus` some of the smallest cases that reach all that was reached. Those with names stay.
fn keep(binaries: &Path, target: Target) -> Outcome {
    let (merged, found) = (folder().join("merged").join(target.name), folder().join("corpus"));
    let _ = fs::remove_dir_all(&merged);
    let found = found.join(target.name);
    [&merged, &found].into_iter().try_for_each(|at| make_folder(at))?;
    let mut merge = program(binaries, target);
    run(merge.arg("-merge=1").args([&merged, &kept(target), &found]).stderr(Stdio::null()))?;
    for old in cases(&kept(target))?.into_iter().filter(|(path, _)| is_unnamed(path)) {
        fs::remove_file(&old.0).map_err(|e| e.to_string())?;
    }
    let named: Vec<Vec<u8>> = cases(&kept(target))?.into_iter().map(|(_, bytes)| bytes).collect();
    let mut merged = cases(&merged)?;
    merged.retain(|(_, bytes)| !named.contains(bytes));
    merged.sort_by_key(|(_, bytes)| bytes.len());
    let (mut left, places) = (MOST_KEPT_BYTES, MOST_KEPT.saturating_sub(named.len()).max(1));
    // Of all sizes, since the smallest reach the least.
    let step = merged.len().div_ceil(places).max(1);
    for (path, bytes) in merged.into_iter().step_by(step) {
        let (Some(rest), Some(name)) = (left.checked_sub(bytes.len()), path.file_name()) else {
            break;
        };
        left = rest;
        fs::write(kept(target).join(name), bytes).map_err(|e| e.to_string())?;
    }
    println!("{}: {} cases", target.name, cases(&kept(target))?.len());
    Ok(())
}

/// Whether the fuzzer named it, by its hash.
fn is_unnamed(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn cases(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        let bytes = fs::read(&path)?;
        Ok((path, bytes))
    };
    let read: std::io::Result<Vec<_>> = entries.map(read).collect();
    read.map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_said_becomes_a_row() {
        let said = "INFO: seed\n#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb\n\
                    #1234\tDONE   cov: 1200 ft: 3400 corp: 56/7890b lim: 4096 exec/s: 3 rss: 40Mb\n\
                    stat::number_of_executed_units: 1234567\nstat::peak_rss_mb: 40\n";
        let tried = tried(TARGETS[2], said, Duration::from_secs(10));
        let found = row(&tried);
        assert_eq!(found, "| decode | 10 | 1,234,567 | 123,456 | 56 | 1,200, 3,400 | 0 |");
        let old = "| diffs | 7 |\n| decode | 8 |\n";
        assert!(table(&[tried], old).ends_with(&format!("|\n{found}\n| diffs | 7 |")));
    }

    #[test]
    fn every_target_has_its_shim_and_its_cases() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("it is there");
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
            let all = cases(&kept(target)).expect("there are cases");
            // Those with names are findings, and all of them stay.
            let unnamed = all.iter().filter(|(path, _)| is_unnamed(path));
            let bytes: usize = unnamed.clone().map(|(_, bytes)| bytes.len()).sum();
            assert!(!all.is_empty() && unnamed.count() <= MOST_KEPT, "{}", target.name);
            assert!(bytes <= MOST_KEPT_BYTES, "{}: {bytes}", target.name);
        }
    }
}
