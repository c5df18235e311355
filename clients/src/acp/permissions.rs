//! Who may write: what a person is asked, and what follows from the answer.

use serde_json::{Value, json};

use super::editor::{Manners, Says};
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::wire::Wire;
use super::{Scenario, expect};
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a refused permission changes nothing, and the model is told",
        minds: BOTH,
        play: refused,
    },
    Scenario {
        name: "a question that the editor fails to ask is a refusal",
        minds: CLASSIC,
        play: unasked,
    },
    Scenario {
        name: "allowed always is not asked again, in this session",
        minds: BOTH,
        play: always,
    },
    Scenario { name: "allowed once is asked again", minds: BOTH, play: once },
    Scenario {
        name: "in read-only mode writes are refused without asking",
        minds: BOTH,
        play: read_only,
    },
    Scenario { name: "in full-access mode nobody is asked", minds: BOTH, play: full_access },
    Scenario {
        name: "a mode that is chosen during a turn counts at once",
        minds: BOTH,
        play: mode_meanwhile,
    },
    Scenario { name: "a command outside the sandbox is asked about", minds: BOTH, play: command },
    Scenario {
        name: "another server's tool that overwrites is asked about",
        minds: BOTH,
        play: another_server,
    },
    Scenario {
        name: "another server that asks a person is answered by way of the editor",
        minds: BOTH,
        play: asking_server,
    },
];

const OLD: &str = "one\ntwo\n";

/// A script of edits of one file that each replace a word.
fn edits(stage: &Stage, edits: &[(&str, &str)], told: Option<&str>) -> super::mind::Script {
    let path = stage.path("a.txt");
    let mut script = stage.script();
    for (old, new) in edits {
        let edit = json!({ "old_string": old, "new_string": new });
        script = script.call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }));
        script = script.saw(told.unwrap_or(new));
    }
    script.say("Done.")
}

fn open(stage: &Stage, manners: Manners) -> Outcome<Talk> {
    stage.put("a.txt", OLD)?;
    let talk = stage.open(manners, &[])?;
    talk.editor.open(&stage.path("a.txt"), OLD);
    Ok(talk)
}

/// Does the work, and returns what the buffer became and what passed.
fn work(stage: &Stage, talk: Talk) -> Outcome<(String, Wire)> {
    talk.work()?;
    let buffer = talk.editor.buffer(&stage.path("a.txt")).unwrap_or_default();
    let wire = talk.close()?;
    ensure(stage.text("a.txt")? == OLD, || "the disk was changed".into())?;
    Ok((buffer, wire))
}

fn asked(wire: &Wire, times: usize) -> Outcome<()> {
    let asked = wire.heard("session/request_permission").len();
    ensure(asked == times, || format!("a person was asked {asked} times, not {times}"))
}

fn untouched(buffer: &str, wire: &Wire) -> Outcome<()> {
    ensure(buffer == OLD, || format!("the buffer is {buffer:?}"))?;
    let written = wire.heard("fs/write_text_file").len();
    ensure(written == 0, || format!("{written} writes"))?;
    let told =
        json!({ "kind": "edit", "status": "failed", "rawOutput": { "error": { "code": -32002 } } });
    let calls = wire.calls();
    ensure(!calls.is_empty(), || "the editor heard of no call".into())?;
    calls.iter().try_for_each(|call| expect(&told, &call.state))
}

fn refused(stage: &mut Stage) -> Outcome<()> {
    stage.think(edits(stage, &[("one", "1"), ("two", "2")], Some("Not confirmed")))?;
    let talk = open(stage, Manners::saying(&[Says::RejectOnce, Says::Cancelled]))?;
    let (buffer, wire) = work(stage, talk)?;
    asked(&wire, 2)?;
    untouched(&buffer, &wire)
}

fn always(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let script = edits(stage, &[("one", "1"), ("two", "2")], None)
        .call("write_text_file", json!({ "path": path, "content": "new\n" }))
        .say("Done.");
    stage.think(script)?;
    let talk = open(stage, Manners::saying(&[Says::AllowAlways, Says::RejectOnce]))?;
    talk.work()?;
    let (buffer, wire) = work(stage, talk)?;
    asked(&wire, 1)?;
    ensure(buffer == "new\n", || format!("the buffer is {buffer:?}"))
}

fn once(stage: &mut Stage) -> Outcome<()> {
    stage.think(edits(stage, &[("one", "1"), ("two", "2")], None))?;
    let (buffer, wire) = work(stage, open(stage, Manners::default())?)?;
    asked(&wire, 2)?;
    ensure(buffer == "1\n2\n", || format!("the buffer is {buffer:?}"))
}

fn read_only(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let script = edits(stage, &[("one", "1")], Some("Permission denied"))
        .call("read_text_file", json!({ "path": path }))
        .saw(OLD)
        .say("Done.");
    stage.think(script)?;
    let talk = open(stage, Manners::default())?;
    talk.set_mode("read-only")?;
    talk.work()?;
    let wire = talk.wire();
    asked(&wire, 0)?;
    untouched(&talk.editor.buffer(&path).unwrap_or_default(), &wire)?;
    work(stage, talk).map(drop)
}

fn full_access(stage: &mut Stage) -> Outcome<()> {
    stage.think(edits(stage, &[("one", "1"), ("two", "2")], None))?;
    let talk = open(stage, Manners::saying(&[Says::RejectOnce]))?;
    let option = json!({ "sessionId": talk.session, "configId": "mode", "value": "full-access" });
    let set = talk.editor.ask("session/set_config_option", option)?;
    let mut options = set["configOptions"].as_array().into_iter().flatten();
    let mode = options.find(|option| option["id"] == "mode").cloned().unwrap_or_default();
    expect(&json!({ "type": "select", "currentValue": "full-access" }), &mode)?;
    let (buffer, wire) = work(stage, talk)?;
    asked(&wire, 0)?;
    ensure(buffer == "1\n2\n", || format!("the buffer is {buffer:?}"))
}

/// Codex's own question, by way of the editor.
fn command(stage: &mut Stage) -> Outcome<()> {
    let target = stage.path("made");
    let run = json!({
        "cmd": format!("touch {}", target.display()), "login": false,
        "sandbox_permissions": "require_escalated", "justification": "May I?",
    });
    let run = |stage: &Stage| stage.mind.own("exec_command", run.clone());
    let script = stage.script().answer(run(stage)).answer(run(stage)).say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::saying(&[Says::RejectOnce, Says::AllowOnce]), &[])?;
    // Codex offers no other way to refuse than to stop.
    let stopped = talk.prompt("Follow the script.")?;
    ensure(stopped == "cancelled", || format!("the turn stopped with {stopped}"))?;
    ensure(!target.exists(), || "the command ran although it was refused".into())?;
    talk.work()?;
    ensure(target.exists(), || "the command did not run".into())?;
    let wire = talk.close()?;
    asked(&wire, 2)?;
    let told = |call: &super::wire::ToolCall| call.state["status"].clone();
    let statuses: Vec<Value> = wire.calls().iter().map(told).collect();
    ensure(statuses == ["failed", "completed"], || format!("the calls are {statuses:?}"))
}

fn mode_meanwhile(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let edit = |old: &str, new: &str| {
        let edit = json!({ "old_string": old, "new_string": new });
        json!({ "path": path, "edits": [edit] })
    };
    let script = stage
        .script()
        .call("multi_edit_text_file", edit("one", "1"))
        .saw("+1")
        .call("multi_edit_text_file", edit("two", "2"))
        .saw("Permission denied")
        .say("Done.");
    stage.think(script)?;
    let talk = open(stage, Manners::saying(&[Says::Hold, Says::AllowOnce]))?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("session/request_permission")?;
    // What is being asked about may still be allowed; what comes after it is refused.
    talk.editor.release();
    talk.editor.heard("the end of the first edit", 0, |message| {
        message["params"]["update"]["status"] == "completed"
    })?;
    talk.set_mode("read-only")?;
    talk.stopped(turn)?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    asked(&talk.close()?, 1)?;
    ensure(buffer == "1\ntwo\n", || format!("the buffer is {buffer:?}"))
}

/// A session with a server of the editor's, which is called `other`.
fn with_server(stage: &Stage, manners: Manners, flag: &str) -> Outcome<Talk> {
    let editor = stage.edit(manners, &[])?;
    let dir = format!("--dir={}", stage.folder().display());
    let other = json!({
        "name": "other", "command": stage.cast.server, "env": [],
        "args": [dir, "--transport=stdio", "--log=error", "--tools=text", flag],
    });
    Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": [other] }))
}

/// Its tool is called twice, and the first time refused.
fn twice(stage: &mut Stage, tool: &'static str, arguments: &Value, refused: &str) -> Outcome<()> {
    let call = |stage: &Stage| stage.mind.calls("mcp__other", vec![(tool, arguments.clone())]);
    let script = stage.script().answer(call(stage)).saw(refused).answer(call(stage)).say("Done.");
    stage.think(script)
}

/// Codex asks before a tool runs that says of itself that it destroys, by an elicitation.
fn another_server(stage: &mut Stage) -> Outcome<()> {
    let write = json!({ "path": stage.path("b.txt"), "content": "new\n" });
    twice(stage, "write_text_file", &write, "rejected")?;
    let manners = Manners::saying(&[Says::RejectOnce, Says::AllowOnce]);
    let talk = with_server(stage, manners, "--confirm=never")?;
    talk.work()?;
    asked(&talk.close()?, 2)?;
    ensure(stage.text("b.txt")? == "new\n", || "it was not written".into())
}

fn asking_server(stage: &mut Stage) -> Outcome<()> {
    stage.put("b.txt", "old\n")?;
    let edit = json!({ "old_string": "old", "new_string": "new" });
    let edit = json!({ "path": stage.path("b.txt"), "edits": [edit] });
    twice(stage, "multi_edit_text_file", &edit, "Not confirmed")?;
    let manners = Manners::saying(&[Says::RejectOnce, Says::AllowOnce]);
    let talk = with_server(stage, manners, "--confirm=always")?;
    talk.work()?;
    asked(&talk.close()?, 2)?;
    ensure(stage.text("b.txt")? == "new\n", || "it was not written".into())
}

fn unasked(stage: &mut Stage) -> Outcome<()> {
    stage.think(edits(stage, &[("one", "1")], Some("nothing was written")))?;
    let talk = open(stage, Manners::saying(&[Says::Error]))?;
    let (buffer, wire) = work(stage, talk)?;
    asked(&wire, 1)?;
    untouched(&buffer, &wire)
}
