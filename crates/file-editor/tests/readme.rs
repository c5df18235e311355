//! README's commands do what README says: each shell block that is followed by a block of output is run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads what the project ships")]

mod harness;

use std::path::Path;
use std::process::Command;

use harness::Folder;

/// What README starts the server with, and the binary under test in its place.
const SERVER: &str = "cargo run --release --quiet --bin file-editor --";

/// Where README's server listens, and the one under test in its place.
const ADDRESS: &str = "localhost:8080";

/// Shell commands, each with the output that README shows behind it.
fn commands(readme: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = readme;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').unwrap();
        let (body, after) = after.split_once("\n```\n").unwrap();
        blocks.push((language, body));
        rest = after;
    }
    blocks
        .windows(2)
        .filter(|pair| pair[0].0 == "sh" && pair[1].0 == "json")
        .map(|pair| (pair[0].1, pair[1].1))
        .collect()
}

fn check(command: &str, output: &str, folder: &Folder) {
    let found = Command::new("sh").arg("-c").arg(command).current_dir(folder.path()).output();
    let found = found.unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim_end(), output, "{command}");
    assert!(found.stderr.is_empty(), "{}", String::from_utf8_lossy(&found.stderr));
}

#[test]
fn every_command_prints_what_readme_shows() {
    let commands = commands(include_str!("../../../README.md"));
    let started: Vec<_> = commands.iter().filter(|(command, _)| command.contains(SERVER)).collect();
    for (command, output) in &started {
        let command = command.replace(SERVER, env!("CARGO_BIN_EXE_file-editor"));
        check(&command, output, &Folder::new());
    }
    assert_eq!(started.len(), 2, "README starts the server twice by itself");
}

#[test]
fn every_request_is_answered_as_readme_shows() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "curl is not installed");
        return harness::not_checked("README's requests: curl is not installed");
    }
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let server = folder.http();
    let commands = commands(include_str!("../../../README.md"));
    let requests: Vec<_> =
        commands.iter().filter(|(command, _)| command.contains("curl")).collect();
    for (command, output) in &requests {
        let command = command.replace(ADDRESS, &format!("localhost:{}", server.port));
        check(&command, output, &elsewhere);
    }
    assert_eq!(requests.len(), 5, "every endpoint is shown");
}

#[test]
fn every_option_is_in_readme_and_in_help() {
    let help = Command::new(env!("CARGO_BIN_EXE_file-editor")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let readme = include_str!("../../../README.md");
    let options = |text: &str, start: &str| {
        let mut found: Vec<String> = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix(start))
            .map(|rest| {
                rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap().into()
            })
            .collect();
        found.sort();
        found
    };
    let mut documented = options(readme, "| `--");
    documented.extend(["help", "version"].map(String::from)); // every program's
    documented.sort();
    let mut offered = options(&help, "--");
    offered.extend(["help", "version"].map(String::from)); // these have short forms before them
    offered.sort();
    offered.dedup();
    assert_eq!(documented, offered);
}

/// What the table of misses quotes is what agents are told: each quotation stands in a case.
#[test]
fn what_readme_says_of_misses_is_what_agents_see() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let cases: String = std::fs::read_dir(root.join("cases/text"))
        .unwrap()
        .map(|case| std::fs::read_to_string(case.unwrap().path()).unwrap())
        .collect();
    let (_, section) = readme.split_once("### What an agent sees when an edit misses").unwrap();
    let (section, _) = section.split_once("| other failures").unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{section}");
    for row in rows {
        let said = row.split('|').nth(2).unwrap().trim();
        let fence = if said.starts_with("``") { "``" } else { "`" };
        let quoted = said.strip_prefix(fence).and_then(|said| said.split_once(fence)).unwrap().0;
        assert!(cases.contains(quoted.trim()), "no agent is told {quoted:?}");
    }
    let (_, whole) = section.split_once("```\n").unwrap();
    let whole =
        whole.split_once("```").unwrap().0.replace("\n\nnearest", "\n--- then hints\nnearest");
    assert!(cases.contains(&whole), "no agent is told {whole}");
}
