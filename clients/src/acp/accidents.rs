//! Somebody is gone in the middle: Codex, the editor, the agent. Nothing hangs, nobody stays, no file is half written.

use serde_json::{Value, json};

use super::editor::{Editor, Manners, Says, Serves};
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::{Scenario, expect};
use crate::codex::ensure;
use crate::codex::program::{see_off, working_in};
use crate::model::{End, Item, Turn};
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "when Codex is killed the turn fails and says so, and the next works",
        minds: BOTH,
        play: codex_killed,
    },
    Scenario {
        name: "when Codex is killed while a person is asked, the answer writes nothing",
        minds: CLASSIC,
        play: killed_while_asking,
    },
    Scenario {
        name: "when Codex is killed between two turns, the next works",
        minds: CLASSIC,
        play: killed_between,
    },
    Scenario {
        name: "when the editor is gone in the middle, all go",
        minds: BOTH,
        play: editor_gone,
    },
    Scenario {
        name: "when the agent is killed in the middle, all go",
        minds: BOTH,
        play: agent_killed,
    },
    Scenario {
        name: "a model that breaks off is an error of the turn, and the next works",
        minds: CLASSIC,
        play: model_drops,
    },
    Scenario {
        name: "an MCP server that does not start is no hindrance",
        minds: CLASSIC,
        play: dead_server,
    },
    Scenario {
        name: "what is no message is answered or passed over, and the agent goes on",
        minds: CLASSIC,
        play: nonsense,
    },
];

#[cfg(unix)]
fn kill(id: u32) -> Outcome<()> {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    let id = id.ok_or_else(|| Trouble::Wrong("there is no such process".into()))?;
    let killed = rustix::process::kill_process(id, rustix::process::Signal::KILL);
    killed.map_err(|e| Trouble::Wrong(e.to_string()))
}

#[cfg(not(unix))]
fn kill(_: u32) -> Outcome<()> {
    Err(Trouble::NotRun("there are no signals here".into()))
}

/// Kills the Codex that the agent runs.
fn kill_codex(stage: &Stage, editor: &Editor) -> Outcome<()> {
    let all = working_in(stage.home());
    let codex = all.iter().find(|(id, name)| *id != editor.agent() && name.starts_with("codex"));
    let Some((id, _)) = codex else {
        return Err(Trouble::NotRun(format!("Codex is not among {all:?}")));
    };
    kill(*id)
}

fn codex_killed(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let read = json!({ "path": path });
    let script = stage
        .script()
        .answer(lasting_command(stage))
        .call("read_text_file", read.clone())
        .call("read_text_file", read)
        .saw("unsaved")
        .say("Back again.");
    stage.think(script)?;
    let silent = Manners { serves: Box::new(|_| Serves::Hold), ..Manners::default() };
    let talk = stage.open(silent, &[])?;
    // Without a sandbox, which would go with Codex and take its commands along.
    talk.set_mode("full-access")?;
    talk.editor.open(&path, "unsaved\n");
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("fs/read_text_file")?;
    kill_codex(stage, &talk.editor)?;
    let error = talk.editor.answer(turn)?["error"].clone();
    let message = error["message"].as_str().unwrap_or_default();
    ensure(message.contains("Codex"), || format!("the turn ended with {error}"))?;
    // What Codex had started has nobody now but the agent.
    let left = working_in(stage.home());
    let command = left.iter().find(|(_, name)| name == "sleep");
    ensure(command.is_none(), || format!("{left:?} are left"))?;
    talk.editor.behave(|manners| manners.serves = Box::new(|_| Serves::Well));
    talk.editor.release();
    talk.work()?;
    let wire = talk.close()?;
    let calls = wire.calls();
    let reads = calls.iter().filter(|call| call.state["kind"] == "read");
    let statuses: Vec<&Value> = reads.map(|call| &call.state["status"]).collect();
    ensure(statuses == ["failed", "completed"], || format!("the calls are {statuses:?}"))
}

/// A command that is let go of after a moment, and runs on.
fn lasting_command(stage: &Stage) -> Item {
    let run = json!({ "cmd": "echo > started; sleep 600", "login": false, "yield_time_ms": 250 });
    stage.mind.own("exec_command", run)
}

/// A command runs, and an edit is on its way: the editor was asked for the text.
fn in_the_middle(stage: &mut Stage) -> Outcome<Editor> {
    stage.put("a.txt", "one\n")?;
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let script = stage
        .script()
        .answer(lasting_command(stage))
        .call("multi_edit_text_file", json!({ "path": stage.path("a.txt"), "edits": [edit] }));
    stage.think(script)?;
    let silent = Manners { serves: Box::new(|_| Serves::Hold), ..Manners::default() };
    let talk = stage.open(silent, &[])?;
    // Without a sandbox, which would go with Codex and take its commands along.
    talk.set_mode("full-access")?;
    talk.begin("Follow the script.")?;
    talk.editor.held("fs/read_text_file")?;
    ensure(stage.path("started").exists(), || "the command did not run".into())?;
    Ok(talk.editor)
}

fn editor_gone(stage: &mut Stage) -> Outcome<()> {
    let mut editor = in_the_middle(stage)?;
    editor.leave()?;
    see_off(stage.home())?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn agent_killed(stage: &mut Stage) -> Outcome<()> {
    let mut editor = in_the_middle(stage)?;
    editor.kill();
    see_off(stage.home())?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn model_drops(stage: &mut Stage) -> Outcome<()> {
    let dropped = Turn { items: vec![Item::Say("I will".into())], end: End::Dropped };
    stage.think(stage.script().answer(dropped).say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    let error = talk.editor.answer(turn)?["error"].clone();
    let message = error["message"].as_str().unwrap_or_default();
    ensure(message.contains("stream"), || format!("the turn ended with {error}"))?;
    talk.work()?;
    talk.close().map(drop)
}

fn nonsense(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().say("Done."))?;
    let talk = stage.open(Manners::default(), &[])?;
    for line in ["", "not JSON", "[]", "{}", "{\"jsonrpc\":\"2.0\",\"id\":99}", "\u{0}"] {
        talk.editor.mumble(line)?;
    }
    let unknown = json!({ "sessionId": talk.session, "prompt": "not a list" });
    talk.editor.refused("session/prompt", unknown)?;
    talk.work()?;
    let mut editor = talk.editor;
    editor.leave()
}

fn killed_while_asking(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let edit = json!({ "path": stage.path("a.txt"), "edits": [edit] });
    stage.think(stage.script().call("multi_edit_text_file", edit).say("Back again."))?;
    let talk = stage.open(Manners::saying(&[Says::Hold, Says::AllowOnce]), &[])?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("session/request_permission")?;
    kill_codex(stage, &talk.editor)?;
    let answer = talk.editor.answer(turn)?;
    ensure(answer.get("error").is_some(), || format!("the turn ended with {answer}"))?;
    talk.editor.release();
    talk.work()?;
    let wire = talk.close()?;
    ensure(wire.heard("fs/write_text_file").is_empty(), || "it was written all the same".into())?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn killed_between(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let read = json!({ "path": path });
    let script = stage
        .script()
        .say("First.")
        .check(|request| {
            let before = request.body().to_string();
            ensure(before.contains("First."), || "the model forgot what was before".into())
        })
        .call("read_text_file", read)
        .saw("typed")
        .say("Second.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, "typed\n");
    talk.work()?;
    kill_codex(stage, &talk.editor)?;
    // Whoever is quick is told that it is gone, and to ask again; then it is there.
    let turn = talk.begin("Follow the script.")?;
    if let Some(error) = talk.editor.answer(turn)?.get("error") {
        expect(&json!({ "message": "…send the prompt again…" }), error)?;
        talk.work()?;
    }
    talk.close().map(drop)
}

fn dead_server(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().say("Done."))?;
    let editor = stage.edit(Manners::default(), &[])?;
    let nowhere = stage.path("no-server");
    let dead = json!({ "name": "dead", "command": nowhere, "args": [], "env": [] });
    let talk = Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": [dead] }))?;
    talk.work()?;
    talk.close().map(drop)
}
