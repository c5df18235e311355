//! The MCP Inspector on its command line: a process for each question. Besides the workflow it looks through the tools'
//! schemas for what some hosts cannot take.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::install::{self, Npm};
use crate::play::{Asker, FLAGS, play};
use crate::program::{self, Ended, PATIENCE, Program};
use crate::scene::{Scene, Server};
use crate::ways::{Transport, each_way};
use crate::workflow::NO_TOOL;
use crate::{Outcome, Row, Trouble};

pub const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";

const LAUNCHER: &str =
    "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Its exit codes for a tool that answers `isError`, and for schemas that the lint refuses.
const IS_ERROR: i32 = 5;
const REFUSED: i32 = 6;

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let npm = install::npm(&[INSPECTOR])?;
    let mut rows = each_way(scene, &["2025-11-25", "2026-07-28"], |transport, protocol, scene| {
        let server = scene.server(transport, FLAGS)?;
        let until = Instant::now() + PATIENCE;
        play(&mut Inspector { npm: &npm, scene, server, protocol, until }, scene, protocol)
    });
    let (transport, protocol) = (Transport::Http.shown(), "2025-11-25");
    rows.push(Row { transport, protocol, did: lint(&npm, scene, protocol) });
    Ok(rows)
}

struct Inspector<'a> {
    npm: &'a Npm,
    scene: &'a Scene,
    server: Server,
    protocol: &'static str,
    until: Instant,
}

impl Inspector<'_> {
    fn run(&self, method: &str, more: &[String]) -> Outcome<Ended> {
        let era = if self.protocol < "2026-07-28" { "legacy" } else { "modern" };
        let mut command = program::client(&self.npm.node);
        command.arg(self.npm.folder.join(LAUNCHER));
        command.args(["--cli", "--format=json", "--protocol-era", era, "--method", method]);
        // It keeps a folder in the user's home.
        command.args(more).env("HOME", self.scene.aside()).env("USERPROFILE", self.scene.aside());
        match &self.server {
            Server::Stdio(words) => command.arg("--").args(words),
            Server::Http(server) => command.arg("--server-url").arg(&server.url),
        };
        Program::start(&mut command, self.until)?.finish()
    }
}

impl Asker for Inspector<'_> {
    fn open(&mut self) -> Outcome<Value> {
        let ended = self.run("initialize", &[])?.expect(0)?;
        Ok(json(&ended.said)?["result"].take())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Option<Value>> {
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let more = match method {
            "tools/list" | "resources/list" | "resources/templates/list" => vec![],
            "resources/read" => vec!["--uri".into(), text("uri")],
            // It looks a tool up before it calls it.
            "tools/call" if text("name") == NO_TOOL => return Ok(None),
            "tools/call" => {
                [vec!["--tool-name".into(), text("name")], arguments(&params["arguments"])].concat()
            }
            _ => return Ok(None),
        };
        let ended = self.run(method, &more)?;
        let answer = json(if ended.said.is_empty() { &ended.complained } else { &ended.said })?;
        let code = match &answer {
            answer if answer["result"]["isError"] == true => IS_ERROR,
            answer if answer["error"].is_object() => 1,
            _ => 0,
        };
        ended.expect(code).map(|_| Some(answer))
    }

    /// Errors come without their codes.
    fn shows(&self, mut answer: Value) -> Value {
        if let Some(error) = answer["error"].as_object_mut() {
            error.remove("code");
        }
        answer
    }
}

/// As people type them where they can: a lone string as a pair, all else as JSON.
fn arguments(arguments: &Value) -> Vec<String> {
    let pairs: Vec<_> = arguments.as_object().into_iter().flatten().collect();
    match pairs.as_slice() {
        [(name, Value::String(text))] => vec!["--tool-arg".into(), format!("{name}={text}")],
        _ => vec!["--tool-args-json".into(), arguments.to_string()],
    }
}

/// Nothing to complain of in any toolset, by a lint that complains where it should.
fn lint(npm: &Npm, scene: &Scene, protocol: &'static str) -> Outcome<String> {
    let until = Instant::now() + PATIENCE;
    let inspect = |server| {
        Inspector { npm, scene, server, protocol, until }.run("tools/list", &["--strict".into()])
    };
    for toolset in ["flat", "text", "all"] {
        let server = scene.server(Transport::Http, &[&format!("--tools={toolset}")])?;
        let ended = inspect(server)?.expect(0)?;
        if !ended.complained.is_empty() {
            return Err(Trouble::Wrong(format!("of {toolset}: {}", ended.complained)));
        }
    }
    let careless = scene.aside().join("careless.mjs");
    fs::write(&careless, include_str!("../adapters/careless.mjs"))
        .map_err(|e| Trouble::NotRun(e.to_string()))?;
    let words = [&npm.node, &careless].map(|word| word.display().to_string());
    inspect(Server::Stdio(words.into()))?.expect(REFUSED)?;
    Ok("strict lint: nothing to complain of in flat, text and all; a careless server is refused"
        .into())
}

fn json(text: &str) -> Outcome<Value> {
    serde_json::from_str(text).map_err(|e| Trouble::Wrong(format!("{e}: {text}")))
}
