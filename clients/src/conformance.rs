//! The conformance suite of the protocol, over HTTP, once for each era.
//!
//! Much of it asks for tools, prompts and resources that only the suite's own server has. What fails for that is listed in
//! `conformance/<revision>.yml`, check by check, with the suite's words for it. The suite itself is lenient with what is
//! listed and gone, and with scenarios that it does not score; here they count like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::install::{self, Npm};
use crate::play::FLAGS;
use crate::program::{self, PATIENCE, Program};
use crate::scene::Scene;
use crate::ways::Transport;
use crate::{Outcome, Row, Trouble};

pub const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

const PROGRAM: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

/// That every message is valid is part of every scenario, but for those that look at HTTP alone.
const VALID: &str = "wire-schema-valid";
const HTTP_ALONE: &[&str] = &[
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "server-stateless",
    "tasks-status-notifications",
];

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let npm = install::npm(&[SUITE])?;
    scene.put("notes.txt", "something to read\n")?;
    let row = |protocol| {
        let did = run(&npm, scene, protocol);
        Row { transport: Transport::Http.shown(), protocol, did }
    };
    Ok(["2025-11-25", "2026-07-28"].map(row).into())
}

fn run(npm: &Npm, scene: &Scene, revision: &str) -> Outcome<String> {
    let server = scene.serve(FLAGS)?;
    let results = scene.aside().join(revision);
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("conformance/{revision}.yml"));
    let mut command = program::client(&npm.node);
    command.arg(npm.folder.join(PROGRAM)).args(["server", "--url", &server.url]);
    command.args(["--requirements", revision, "--expected-failures"]).arg(&list);
    command.arg("--output-dir").arg(&results);
    let ended = Program::start(&mut command, Instant::now() + PATIENCE)?.finish()?;
    let ran = ended.said.lines().filter_map(|line| {
        line.strip_prefix("=== Running scenario: ")?.strip_suffix(" ===").map(str::to_owned)
    });
    let mut judgement = Judgement { excused: excused(&list)?, ..Judgement::default() };
    for scenario in ran {
        judgement.add(&scenario, &checks(&results, &scenario)?);
    }
    let verdict = judgement.verdict()?;
    // The suite must come to the same end, as far as it looks.
    ended.expect(0).map(|_| verdict)
}

/// Checks by scenario and id, with the words of the suite that excuse them.
fn excused(list: &Path) -> Outcome<BTreeMap<String, String>> {
    let wrong = |why: &str| Trouble::Wrong(format!("{}: {why}", list.display()));
    let text = fs::read_to_string(list).map_err(|e| wrong(&e.to_string()))?;
    let entries = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    let entries = entries.map(|entry| match entry.split_once(" # ") {
        Some((check, _)) if check.ends_with(VALID) => {
            Err(wrong(&format!("nothing excuses {check}")))
        }
        Some((check, words)) => Ok((check.to_owned(), words.to_owned())),
        None => Err(wrong(&format!("no reason is given for {entry}"))),
    });
    entries.collect()
}

/// What the suite wrote down of a scenario.
fn checks(results: &Path, scenario: &str) -> Outcome<Vec<Value>> {
    let wrong = |why: String| Trouble::Wrong(format!("{scenario} left no result: {why}"));
    // The folder of a scenario is called by it and the time.
    let is_its = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let time =
            name.as_deref().and_then(|name| name.strip_prefix("server-")?.strip_prefix(scenario));
        time.is_some_and(|time| time.starts_with("-2") && time.ends_with('Z'))
    };
    let folders = fs::read_dir(results).map_err(|e| wrong(e.to_string()))?;
    let folder = folders.flatten().map(|entry| entry.path()).find(is_its);
    let file = folder.ok_or_else(|| wrong("no folder".into()))?.join("checks.json");
    let text = fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))
}

#[derive(Default)]
struct Judgement {
    excused: BTreeMap<String, String>,
    /// Those of them that were needed.
    needed: BTreeSet<String>,
    passed: usize,
    in_full: usize,
    in_part: usize,
    wrong: Vec<String>,
}

impl Judgement {
    fn add(&mut self, scenario: &str, checks: &[Value]) {
        let needed = self.needed.len();
        for check in checks {
            self.judge(scenario, check);
        }
        *(if self.needed.len() == needed { &mut self.in_full } else { &mut self.in_part }) += 1;
        if checks.is_empty() {
            self.wrong.push(format!("{scenario}: nothing was checked"));
        }
        let validated = checks.iter().any(|check| check["id"] == VALID);
        if !validated && !HTTP_ALONE.contains(&scenario) {
            self.wrong.push(format!("{scenario}: its messages were not validated"));
        }
    }

    fn judge(&mut self, scenario: &str, check: &Value) {
        let text = |name: &str| check[name].as_str().unwrap_or_default();
        let (name, status) = (format!("{scenario}:{}", text("id")), text("status"));
        let said =
            check["errorMessage"].as_str().map_or(check["details"].to_string(), str::to_owned);
        match self.excused.get(&name) {
            _ if status == "INFO" => {}
            None if status == "SUCCESS" => self.passed += 1,
            None => self.wrong.push(format!("{name}: {status}: {said}")),
            Some(_) if status == "SUCCESS" => {
                self.needed.insert(name.clone());
                self.wrong.push(format!("{name} passes: it needs no excuse any more"));
            }
            Some(words) => {
                if !said.contains(words) {
                    self.wrong.push(format!("{name}: not for {words:?}, but {said}"));
                }
                self.needed.insert(name);
            }
        }
    }

    fn verdict(mut self) -> Outcome<String> {
        let unneeded = self.excused.keys().filter(|name| !self.needed.contains(*name));
        self.wrong.extend(unneeded.map(|name| format!("{name} is excused, and not there")));
        let Self { passed, in_full, in_part, needed, wrong, .. } = self;
        if !wrong.is_empty() {
            return Err(Trouble::Wrong(wrong.join("\n  ")));
        }
        let (scenarios, excused) = (in_full + in_part, needed.len());
        Ok(format!(
            "{passed} checks passed in {scenarios} scenarios, {in_full} of them in full; {excused} checks are \
             excused, each with its reason: they need tools, prompts or resources of the suite's own server"
        ))
    }
}
