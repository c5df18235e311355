//! Codex's own commands and patches, as an editor is shown them; and what they change behind its back.

use serde_json::{Value, json};

use super::editor::{Manners, Says};
use super::mind::{BOTH, CLASSIC};
use super::stage::Stage;
use super::{Scenario, expect};
use crate::codex::{answers, ensure};
use crate::model::Request;
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a command is shown with its output, which is not said twice",
        minds: BOTH,
        play: command,
    },
    Scenario {
        name: "output of a command comes as it is made, and once, where a terminal can show it",
        minds: BOTH,
        play: terminal,
    },
    Scenario {
        name: "a command that fails is shown as failed",
        minds: CLASSIC,
        play: failing_command,
    },
    Scenario { name: "a patch of Codex's own is shown as a diff", minds: BOTH, play: patch },
    Scenario {
        name: "a command's change of a file that is open and not saved is told",
        minds: BOTH,
        play: stale,
    },
    Scenario {
        name: "a buffer that follows the disk, or has other line breaks, is no surprise",
        minds: BOTH,
        play: following,
    },
];

fn command(stage: &mut Stage) -> Outcome<()> {
    let script = stage
        .script()
        .shell("for n in 1 2 3 4 5; do echo line $n; sleep 0.1; done")
        .saw("line 5")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls", calls.len())));
    };
    expect(
        &json!({ "kind": "execute", "title": "…echo line…", "status": "completed" }),
        &call.state,
    )?;
    let shown = call.state.to_string();
    ensure(shown.contains("line 1\\n") && shown.contains("line 5\\n"), || {
        format!("the output is not in {shown}")
    })?;
    let exit = shown.contains("\"exit_code\":0") || shown.contains("\"exitCode\":0");
    ensure(exit, || format!("no exit code in {shown}"))
}

fn failing_command(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().shell("echo no good; exit 3").saw("no good").say("Done."))?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    let calls = wire.calls();
    let shown = calls.first().map_or(&Value::Null, |call| &call.state);
    expect(&json!({ "kind": "execute", "status": "failed" }), shown)
}

fn patch(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\ntwo\nthree\n")?;
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** Add File: b.txt\n+new\n*** End Patch";
    let item = stage.mind.patch(patch);
    stage.think(stage.script().answer(item).say("Done."))?;
    let talk = stage.open(Manners::saying(&[Says::AllowOnce]), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    ensure(stage.text("a.txt")? == "one\n2\nthree\n", || "it was not applied".into())?;
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls", calls.len())));
    };
    expect(&json!({ "kind": "edit", "status": "completed" }), &call.state)?;
    let diff = |name: &str| {
        let content = call.state["content"].as_array().into_iter().flatten();
        let mut content = content.filter(|part| part["type"] == "diff");
        content.find(|part| part["path"] == json!(stage.path(name))).cloned().unwrap_or_default()
    };
    let (a, b) = (diff("a.txt"), diff("b.txt"));
    expect(&json!({ "oldText": "…two…", "newText": "…2…" }), &a)?;
    expect(&json!({ "oldText": null, "newText": "new…" }), &b)?;
    let locations = call.state["locations"].as_array().map_or(0, Vec::len);
    ensure(locations == 2, || format!("{locations} locations"))
}

fn stale(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "saved\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "mine", "new_string": "edited" });
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("mine\n")
        .shell("echo by a command > a.txt")
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("disk")
        .shell("echo once more > a.txt")
        .call("read_text_file", json!({ "path": path }))
        .saw("disk")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, "mine\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    talk.close()?;
    let disk = stage.text("a.txt")?;
    ensure(disk == "once more\n", || format!("the disk holds {disk:?}"))?;
    ensure(buffer == "mine\n" || buffer == "edited\n", || format!("the buffer is {buffer:?}"))
}

fn terminal(stage: &mut Stage) -> Outcome<()> {
    let command = "for n in $(seq 1 40); do echo this is line $n; sleep 0.02; done";
    stage.think(stage.script().shell(command).saw("line 40").say("Done."))?;
    let can = json!({ "_meta": { "terminal_output": true } });
    let talk = stage.open(Manners { offers: can, ..Manners::default() }, &[])?;
    talk.work()?;
    let wire = talk.close()?;
    let mut output = String::new();
    let mut pieces = 0;
    for update in wire.of("tool_call_update") {
        if let Some(data) = update["_meta"]["terminal_output"]["data"].as_str() {
            output.push_str(data);
            pieces += 1;
        }
    }
    // Codex's pieces begin late: what they miss is told in the end.
    let (rest, begin) = output.split_once("[the output began with:]").unwrap_or((&output, ""));
    let lines: Vec<_> = [begin, rest].iter().flat_map(|part| part.lines()).collect();
    let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty());
    let expected = (1..=40).map(|line| format!("this is line {line}"));
    ensure(lines.eq(expected), || format!("the output is {output:?}"))?;
    ensure(pieces > 1, || "it came in one piece".into())?;
    let calls = wire.calls();
    let shown = calls.first().map_or(&Value::Null, |call| &call.state);
    expect(&json!({ "status": "completed", "content": [{ "type": "terminal" }] }), shown)
}

/// Editors load again what changed on disk, if nobody typed, and many hold all texts with one kind of line breaks.
fn following(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "old\n")?;
    stage.put("b.txt", "one\r\ntwo\r\n")?;
    let (a, b) = (stage.path("a.txt"), stage.path("b.txt"));
    let quiet = |request: &Request| {
        let newest = answers(request).pop().unwrap_or_default();
        ensure(!newest.contains("disk"), || format!("a warning: {newest}"))
    };
    let edit = json!({ "old_string": "two", "new_string": "2" });
    let script = stage
        .script()
        .calls(vec![
            ("read_text_file", json!({ "path": a })),
            ("read_text_file", json!({ "path": b })),
        ])
        .shell("echo new > a.txt; touch b.txt")
        .call("read_text_file", json!({ "path": a }))
        .saw("new\n")
        .check(quiet)
        .call("multi_edit_text_file", json!({ "path": b, "edits": [edit] }))
        .saw("+2")
        .check(quiet)
        .say("Done.");
    stage.think(script)?;
    let at = a.clone();
    let reloading = Manners {
        person: Box::new(move |_, buffers| {
            let disk = std::fs::read_to_string(&at).unwrap_or_default();
            if let Some(buffer) = buffers.get_mut(&at) {
                *buffer = disk;
            }
        }),
        ..Manners::default()
    };
    let talk = stage.open(reloading, &[])?;
    talk.editor.open(&a, "old\n");
    talk.editor.open(&b, "one\ntwo\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&b).unwrap_or_default();
    talk.close()?;
    ensure(buffer == "one\n2\n", || format!("the buffer is {buffer:?}"))
}
