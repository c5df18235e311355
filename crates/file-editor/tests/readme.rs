//! README's commands do what README says: each shell block that is followed by a block of output is run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::process::Command;

use harness::Folder;

/// What README starts the server with, and the binary under test in its place.
const SERVER: &str = "cargo run --release --quiet --bin file-editor --";

#[test]
fn every_command_prints_what_readme_shows() {
    let readme = include_str!("../../../README.md");
    let mut blocks = Vec::new();
    let mut rest = readme;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').unwrap();
        let (body, after) = after.split_once("\n```\n").unwrap();
        blocks.push((language, body));
        rest = after;
    }
    let mut run = 0;
    for pair in blocks.windows(2) {
        let [("sh", command), ("json", output)] = pair else { continue };
        if !command.contains(SERVER) {
            continue;
        }
        let folder = Folder::new();
        let command = command.replace(SERVER, env!("CARGO_BIN_EXE_file-editor"));
        let found =
            Command::new("sh").arg("-c").arg(&command).current_dir(folder.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout).trim_end(), *output, "{command}");
        assert!(found.stderr.is_empty(), "{}", String::from_utf8_lossy(&found.stderr));
        run += 1;
    }
    assert_eq!(run, 2, "README shows two commands with their output");
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
