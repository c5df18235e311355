//! acpx: a client for the command line, with files and permissions. What it does is seen on the disk and on its wire.

use std::time::Instant;

use serde_json::{Value, json};

use super::editor::From;
use super::mind::{BOTH, Mind};
use super::stage::{Cast, Stage};
use super::wire::Wire;
use super::{PROTOCOL, expect};
use crate::codex::ensure;
use crate::install::npm;
use crate::program::{PATIENCE, Program};
use crate::scene::Scene;
use crate::{Outcome, Row, Trouble};

pub const ACPX: &str = "acpx@0.19.1";

/// What it is told to do, and what comes of it.
struct Run {
    flags: &'static [&'static str],
    did: &'static str,
    /// What the file holds afterwards.
    left: &'static str,
    /// What the model is told of its edit.
    told: &'static str,
    status: &'static str,
    /// How often the client was asked to write, and whether it was asked for leave.
    writes: usize,
    asked: usize,
}

const RUNS: &[Run] = &[
    Run {
        flags: &["--approve-all"],
        did: "read and edit by way of its files, allowed; `--approve-all`",
        left: "one\n2\n",
        told: "+2",
        status: "completed",
        writes: 1,
        asked: 1,
    },
    Run {
        flags: &["--approve-reads", "--non-interactive-permissions", "deny"],
        did: "an edit refused, nothing changed; `--approve-reads`",
        left: "one\ntwo\n",
        told: "Not confirmed",
        status: "failed",
        writes: 0,
        asked: 1,
    },
    Run {
        flags: &["--deny-all"],
        did: "not even read, nothing changed; `--deny-all`",
        left: "one\ntwo\n",
        told: "Permission denied",
        status: "failed",
        writes: 0,
        asked: 0,
    },
    Run {
        flags: &["--approve-all", "--no-fs"],
        did: "read and edit on the disk; `--no-fs`",
        left: "one\n2\n",
        told: "+2",
        status: "completed",
        writes: 0,
        asked: 1,
    },
];

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let (cast, acpx) = (Cast::gather(scene)?, npm(&[ACPX])?);
    let row = |(run, mind): (&Run, Mind)| {
        let played = Stage::new(&cast, mind).and_then(|mut stage| {
            let played = run.play(&mut stage, &acpx);
            played.and(stage.end())
        });
        let shown = format!("{}; {}", run.did, mind.shown());
        let did = played.map_err(|trouble| trouble.at(&shown)).map(|()| shown);
        Row { transport: "stdio", protocol: PROTOCOL, did }
    };
    let plays = RUNS.iter().flat_map(|run| BOTH.iter().map(move |mind| (run, *mind)));
    Ok(plays.map(row).collect())
}

impl Run {
    fn play(&self, stage: &mut Stage, acpx: &crate::install::Npm) -> Outcome<()> {
        stage.put("a.txt", "one\ntwo\n")?;
        let path = stage.path("a.txt");
        let edit = json!({ "old_string": "two", "new_string": "2" });
        let script = stage
            .script()
            .call("read_text_file", json!({ "path": path }))
            .saw(if self.asked > 0 { "one\ntwo\n" } else { "Permission denied" })
            .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
            .saw(self.told)
            .say("Done.");
        stage.think(script)?;
        let mut command = stage.program(&acpx.node);
        command
            .arg(acpx.folder.join("node_modules/acpx/dist/cli.js"))
            .arg("--agent")
            .arg(format!("\"{}\"", stage.cast.agent.display()))
            .arg("--cwd")
            .arg(stage.folder())
            .args(self.flags)
            .args(["--format", "json", "--json-strict", "exec", "Follow the script."])
            .env("CODEX_BIN", &stage.cast.codex)
            .env("XDG_STATE_HOME", stage.home());
        let ended = Program::start(&mut command, Instant::now() + PATIENCE)?.finish()?;
        // Its exit code says whether something was denied, too.
        let wire = heard(&ended.said)?;
        let stopped =
            wire.0.iter().any(|(_, message)| message["result"]["stopReason"] == "end_turn");
        let shown = || format!("{}{}", ended.said, ended.complained);
        ensure(stopped, || format!("the turn did not end by itself\n{}", shown()))?;
        let calls = wire.calls();
        let last = calls.last().map_or(&Value::Null, |call| &call.state);
        let told =
            json!({ "kind": "edit", "status": self.status, "locations": [{ "path": path }] });
        expect(&told, last)?;
        if self.status == "completed" {
            let diff = json!({ "type": "diff", "oldText": "one\ntwo\n", "newText": "one\n2\n" });
            expect(&json!([diff]), &last["content"])?;
        }
        let counted = |method, times: usize| {
            let found = wire.heard(method).len();
            ensure(found == times, || format!("{found} times {method}, not {times}\n{}", shown()))
        };
        counted("fs/write_text_file", self.writes)?;
        counted("session/request_permission", self.asked)?;
        let text = stage.text("a.txt")?;
        ensure(text == self.left, || format!("the file holds {text:?}"))
    }
}

/// The wire as it prints it: every message, without saying whose. What has the name of an agent's method is the agent's.
fn heard(said: &str) -> Outcome<Wire> {
    let mut wire = Vec::new();
    for line in said.lines() {
        let message: Value = serde_json::from_str(line)
            .map_err(|e| Trouble::Wrong(format!("it prints what is not JSON: {e}: {line}")))?;
        wire.push((From::Agent, message));
    }
    Ok(Wire(wire))
}
