//! `cargo xtask mutants`: does any test notice if the code does something else? `cargo mutants` changes it in one place
//! after the other and runs the tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::{Outcome, cargo, report, root, target_folder};

/// What is mutated, and what has to notice.
struct Subject {
    name: &'static str,
    /// For `cargo test`.
    tests: &'static [&'static str],
    /// Sources that are no part of the product, or not for this platform.
    left_out: &'static [&'static str],
}

const SUBJECTS: [Subject; 3] = [
    Subject { name: "text", tests: &["--package=text"], left_out: &["**/by_line/model.rs"] },
    Subject {
        name: "files",
        tests: &["--package=files"],
        left_out: &["**/faulty.rs", "**/memory.rs", "**/windows/**"],
    },
    Subject {
        name: "tools",
        tests: &[
            "--package=tools",
            "--package=file-editor",
            "--lib",
            "--test=cases",
            "--test=code_tools",
            "--test=contract",
            "--test=generation",
            "--test=resources",
            "--test=text_tools",
        ],
        left_out: &[],
    },
];

/// How many in a hundred have to be noticed.
const LEAST: usize = 90;

/// Names of subjects pick some; `--share=10` tries every tenth mutant, spread over all files.
pub fn run(arguments: &[&str]) -> Outcome {
    install()?;
    let share = arguments.iter().find_map(|argument| argument.strip_prefix("--share="));
    let names: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let chosen = SUBJECTS.iter().filter(|it| names.is_empty() || names.contains(&&it.name));
    for subject in chosen {
        try_all(subject, share)?;
    }
    let counts: Vec<_> = SUBJECTS.iter().map(|subject| (subject, Counts::read(subject))).collect();
    let text = table(&counts);
    println!("\n{text}");
    report::write("mutants", &text)?;
    let low = counts.iter().filter(|(_, counts)| counts.as_ref().is_some_and(Counts::is_low));
    let low: Vec<_> = low.map(|(subject, _)| subject.name).collect();
    if low.is_empty() { Ok(()) } else { Err(format!("fewer than {LEAST} %: {}", low.join(", "))) }
}

fn install() -> Outcome {
    if cargo().args(["mutants", "--version"]).output().is_ok_and(|it| it.status.success()) {
        return Ok(());
    }
    crate::run(cargo().args(["install", "--locked", "cargo-mutants"]))
}

fn folder(subject: &Subject) -> PathBuf {
    target_folder().join("mutants").join(subject.name)
}

fn try_all(subject: &Subject, share: Option<&str>) -> Outcome {
    let folder = folder(subject);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut mutants = cargo();
    mutants.args(["mutants", "--package", subject.name, "--output"]).arg(&folder);
    mutants.args(["--profile=mutants", "--no-shuffle", "--minimum-test-timeout=60"]);
    mutants.args(subject.left_out.iter().flat_map(|glob| ["--exclude", glob]));
    if let Some(share) = share {
        mutants.args(["--sharding=round-robin", "--shard", &format!("0/{share}")]);
    }
    // All of a workspace's tests may tell; which do is said by what cargo is given.
    mutants.args(["--test-workspace=true", "--"]).args(subject.tests);
    println!("\n$ {mutants:?}");
    // Those that nobody noticed make it fail, which is not for it to say.
    let status = mutants.current_dir(root()).env("PROPTEST_CASES", "64").status();
    match status.map_err(|e| format!("cargo mutants: {e}"))?.code() {
        Some(0 | 2 | 3) => Ok(()),
        code => Err(format!("cargo mutants ended with {code:?}")),
    }
}

/// What became of the mutants of a crate.
#[derive(Default)]
struct Counts {
    caught: usize,
    /// Among those that were caught: the tests did not come to an end.
    timeouts: usize,
    /// They do not compile, and count for nothing.
    unviable: usize,
    missed: Vec<String>,
}

impl Counts {
    fn read(subject: &Subject) -> Option<Counts> {
        let path = folder(subject).join("mutants.out/outcomes.json");
        let told: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let mut counts = Counts::default();
        for outcome in told["outcomes"].as_array()? {
            let name = outcome["scenario"]["Mutant"]["name"].as_str().unwrap_or_default();
            match outcome["summary"].as_str().unwrap_or_default() {
                "CaughtMutant" => counts.caught += 1,
                "Timeout" => {
                    counts.caught += 1;
                    counts.timeouts += 1;
                }
                "Unviable" => counts.unviable += 1,
                "MissedMutant" => counts.missed.push(placeless(name)),
                _ => {}
            }
        }
        Some(counts)
    }

    fn tried(&self) -> usize {
        self.caught + self.missed.len()
    }

    fn is_low(&self) -> bool {
        self.caught * 100 < self.tried() * LEAST
    }
}

/// Without line and column: these move with every change.
fn placeless(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    let (path, what) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
    format!("{path}:{what}").replace('|', "\\|")
}

fn table(counts: &[(&Subject, Option<Counts>)]) -> String {
    let old = fs::read_to_string(root().join(report::PATH)).unwrap_or_default();
    let reasons = reasons(&old);
    let mut text = String::from(
        "| crate | tried | noticed | of these by time | share | do not compile |\n|---|---|---|---|---|---|\n",
    );
    for (subject, counts) in counts {
        let Some(counts) = counts else { continue };
        let (tried, caught) = (counts.tried(), counts.caught);
        let share = (caught * 1000).checked_div(tried).unwrap_or(0);
        let _ = writeln!(
            text,
            "| `{}` | {tried} | {caught} | {} | {}.{} % | {} |",
            subject.name,
            counts.timeouts,
            share / 10,
            share % 10,
            counts.unviable
        );
    }
    text += "\nThose that nobody noticed:\n\n| mutant | why it may live |\n|---|---|\n";
    let missed = counts.iter().filter_map(|(_, counts)| counts.as_ref()).flat_map(|it| &it.missed);
    for name in missed {
        let reason = reasons.get(name.as_str()).copied().unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {reason} |");
    }
    text
}

/// What the document says of each, by its name.
fn reasons(document: &str) -> BTreeMap<&str, &str> {
    let row = |line| str::strip_suffix(line, " |")?.strip_prefix("| `")?.rsplit_once("` | ");
    document.lines().filter_map(row).map(|(name, reason)| (name, reason.trim())).collect()
}

#[test]
fn names_have_no_place() {
    let name = "crates/text/src/lines.rs:97:14: replace || with && in Line::content";
    let placeless = placeless(name);
    assert_eq!(placeless, "crates/text/src/lines.rs: replace \\|\\| with && in Line::content");
    let row = format!("| `{placeless}` | it is slower |");
    assert_eq!(reasons(&row).get(placeless.as_str()), Some(&"it is slower"));
}
