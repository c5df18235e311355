//! What README and the documents say is so: commands print what is shown, tables are what the binary offers, links lead
//! somewhere.
//!
//! `UPDATE=1` writes the tables anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::harness::{Folder, listed_tools};
use serde_json::Value;

/// What README starts the server with, and the binary under test in its place.
const SERVER: &str = "cargo run --release --quiet --bin file-editor --";

/// Where the documents' server listens, and the one under test in its place.
const ADDRESS: &str = "localhost:8080";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// Blocks of code, each with its language.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').unwrap();
        let (body, after) = after.split_once("\n```\n").unwrap();
        blocks.push((language, body));
        rest = after;
    }
    blocks
}

/// Shell commands, each with the output that is shown behind it, if any.
fn commands(document: &str) -> Vec<(String, Option<String>)> {
    let mut blocks = blocks(document);
    blocks.push(("", ""));
    let pairs = blocks.windows(2).filter(|pair| pair[0].0 == "sh");
    let is_output = |language: &str| matches!(language, "json" | "text");
    pairs
        .map(|pair| (pair[0].1.into(), Some(pair[1].1.into()).filter(|_| is_output(pair[1].0))))
        .collect()
}

/// Runs it in `folder`, for somebody who has nothing else.
fn run(command: &str, folder: &Folder) -> std::process::Output {
    let binary = env!("CARGO_BIN_EXE_file-editor");
    let command = command.replace(SERVER, binary);
    let command = command.replace("\nfile-editor ", &format!("\n{binary} "));
    let command = match command.strip_prefix("file-editor ") {
        Some(rest) => format!("{binary} {rest}"),
        None => command,
    };
    let home = folder.path().join("home");
    fs::create_dir_all(home.join(".cursor")).unwrap();
    Command::new("sh")
        .args(["-e", "-c", &command])
        .current_dir(folder.path())
        .env("HOME", &home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CODEX_HOME")
        .output()
        .unwrap()
}

fn check(command: &str, output: Option<&str>, folder: &Folder) {
    let found = run(command, folder);
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success(), "{command}\n{said}");
    if let Some(output) = output {
        assert_eq!(String::from_utf8_lossy(&found.stdout).trim_end(), output, "{command}");
        assert!(said.is_empty(), "{command}\n{said}");
    }
}

#[test]
fn every_command_of_readme_does_what_it_shows() {
    let commands = commands(&document("README.md"));
    // It is what runs this test.
    let own = |(command, _): &&(String, _)| command != "cargo xtask test";
    assert_eq!(commands.len(), 4, "{commands:#?}");
    for (command, output) in commands.iter().filter(own) {
        check(command, output.as_deref(), &Folder::new());
    }
}

#[test]
fn every_request_is_answered_as_is_shown() {
    if Command::new("curl").arg("--version").output().is_err() {
        return crate::harness::not_checked("the requests of the documents", "curl");
    }
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let server = folder.http();
    let commands = commands(&document("docs/http.md"));
    assert_eq!(commands.len(), 6, "five requests, and the plain method: {commands:#?}");
    for (command, output) in commands {
        let command = command.replace(ADDRESS, &format!("localhost:{}", server.port));
        check(&command, Some(output.as_deref().unwrap()), &elsewhere);
    }
}

fn row(set: &str, tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap();
    let description = tool["description"].as_str().unwrap();
    let first = description.split_once(". ").map_or(description, |(first, _)| first);
    let arguments = tool["inputSchema"]["properties"].as_object();
    let arguments: Vec<_> =
        arguments.into_iter().flatten().map(|(key, _)| format!("`{key}`")).collect();
    format!("| {set} | `{name}` | {} | {} |\n", first.trim_end_matches('.'), arguments.join(", "))
}

#[test]
fn the_table_of_tools_is_what_clients_are_told() {
    let mut table = String::from("| set | tool | what it does | arguments |\n|---|---|---|---|\n");
    for set in ["text", "code", "flat"] {
        for tool in listed_tools(set) {
            table.push_str(&row(set, &tool));
        }
    }
    compare("tools", &table);
}

#[test]
fn the_table_of_options_is_what_the_help_says() {
    let help = Command::new(env!("CARGO_BIN_EXE_file-editor")).arg("-h").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, options) = help.split_once("\nOptions:\n").unwrap();
    let (options, _) = options.split_once("\n\n").unwrap();
    let mut rows: Vec<String> = Vec::new();
    for line in options.lines() {
        match line.trim_start().strip_prefix("--") {
            Some(option) => {
                let (name, meaning) = option.split_once("  ").unwrap();
                let name = name.replacen(" <", "=<", 1).to_lowercase();
                rows.push(format!("| `--{name}` | {}", meaning.trim()));
            }
            None if line.starts_with("  -") => {} // every program's
            None => rows.last_mut().unwrap().extend([" ", line.trim()]),
        }
    }
    let rows = rows.iter().map(|row| match row.rsplit_once(" [default: ") {
        Some((meaning, default)) => format!("{meaning} | {} |\n", default.trim_end_matches(']')),
        None => format!("{row} | |\n"),
    });
    let table = rows
        .fold(String::from("| option | meaning | default |\n|---|---|---|\n"), |all, row| {
            all + &row
        });
    compare("options", &table);
}

/// What stands in README between the marks of that name.
fn compare(name: &str, table: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let readme = document("README.md");
    let start = readme.find(&format!("<!-- {name}:")).unwrap();
    let start = start + readme[start..].find("-->\n").unwrap() + 4;
    let end = readme.find(&format!("<!-- end of {name} -->")).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let readme = format!("{}{table}{}", &readme[..start], &readme[end..]);
        return fs::write(root().join("README.md"), readme).unwrap();
    }
    assert_eq!(&readme[start..end], table, "`UPDATE=1` writes it anew");
}

/// Documents that people read, with their links.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("skills/file-editor/SKILL.md")];
    for folder in ["", "docs", "benches/runs", "packaging"] {
        let Ok(entries) = fs::read_dir(root().join(folder)) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        documents.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    documents
}

/// Where a heading is found, as those who show documents make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let link = link.0;
            if link.starts_with("http") {
                continue;
            }
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = path.parent().unwrap().join(file);
            let target = if file.is_empty() { path.clone() } else { target };
            assert!(target.exists(), "{}: {link}", path.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.any(|one| one == heading), "{}: {link}", path.display());
            }
        }
    }
    assert!(count > 40, "{count} links were found");
}

/// What the table of misses quotes is what agents are told: each quotation stands in a case.
#[test]
fn what_is_said_of_misses_is_what_agents_see() {
    let tools = document("docs/tools.md");
    let cases: String = fs::read_dir(root().join("cases/text"))
        .unwrap()
        .map(|case| fs::read_to_string(case.unwrap().path()).unwrap())
        .collect();
    let (_, section) = tools.split_once("### What an agent sees when an edit misses").unwrap();
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

/// Edits and writes below the folder, and nothing else.
#[test]
#[cfg(unix)]
fn the_hook_sends_agents_to_these_tools() {
    use std::io::Write as _;
    use std::process::Stdio;
    let ask = |event: &str| {
        let mut hook = Command::new("sh")
            .arg(root().join("skills/file-editor/hooks/prefer-file-editor.sh"))
            .env("FILE_EDITOR_DIR", "/project")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        hook.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
        String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap()
    };
    let names: Vec<_> = listed_tools("text").iter().map(|tool| tool["name"].to_string()).collect();
    for (tool, ours) in [("Edit", "multi_edit_text_file"), ("Write", "write_text_file")] {
        assert!(names.contains(&format!("{ours:?}")));
        let event = serde_json::json!({ "tool_name": tool, "tool_input": { "file_path": "/project/a.rs",
            "new_string": "\"tool_name\": \"Other\"" } });
        let answer: Value = serde_json::from_str(&ask(&event.to_string())).unwrap();
        let decision = &answer["hookSpecificOutput"];
        assert_eq!(decision["permissionDecision"], "deny");
        let reason = decision["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains(&format!("mcp__file-editor__{ours} ")), "{reason}");
    }
    assert_eq!(ask(r#"{"tool_name":"Edit","tool_input":{"file_path":"/elsewhere/a.rs"}}"#), "");
    assert_eq!(ask(r#"{"tool_name":"Read","tool_input":{"file_path":"/project/a.rs"}}"#), "");
}
