//! Where an edit lands: in the editor's buffers if it has both messages for files, else on the disk, and never in both.

use serde_json::{Value, json};

use super::editor::{Manners, Serves};
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::{Scenario, expect};
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "without both file capabilities the disk is edited", minds: BOTH, play: disk },
    Scenario {
        name: "an editor that cannot what it offered is passed over",
        minds: CLASSIC,
        play: cannot,
    },
    Scenario {
        name: "an error of the editor reaches the model, and nothing goes to the disk",
        minds: BOTH,
        play: editor_refuses,
    },
    Scenario {
        name: "a write that is not answered is not made a second time",
        minds: CLASSIC,
        play: unanswered,
    },
    Scenario { name: "what is not edited stays, byte for byte", minds: BOTH, play: kept },
    Scenario {
        name: "a large buffer is edited, and only what changed of it is shown",
        minds: CLASSIC,
        play: large,
    },
    #[cfg(unix)]
    Scenario {
        name: "a folder that is opened by a link is worked in by that name",
        minds: CLASSIC,
        play: linked,
    },
];

fn disk(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let each = [(false, false), (true, false), (false, true)];
    let mut script = stage.script();
    for _ in each {
        let edit = json!({ "old_string": "two", "new_string": "2" });
        script = script
            .call("read_text_file", json!({ "path": path }))
            .saw("one\ntwo\n")
            .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
            .say("Done.");
    }
    stage.think(script)?;
    for (reads, writes) in each {
        stage.put("a.txt", "one\ntwo\n")?;
        let talk = stage.open(Manners { reads, writes, ..Manners::default() }, &[])?;
        talk.editor.open(&path, "something else\n");
        talk.work()?;
        let wire = talk.close()?;
        let text = stage.text("a.txt")?;
        ensure(text == "one\n2\n", || format!("reads {reads}, writes {writes}: {text:?}"))?;
        let foreign = |method| !wire.heard(method).is_empty();
        let asked = foreign("fs/read_text_file") || foreign("fs/write_text_file");
        ensure(!asked, || format!("the editor was asked, reads {reads}, writes {writes}"))?;
        let calls = wire.calls();
        let diff = calls.get(1).map_or(&Value::Null, |call| &call.state["content"][0]["newText"]);
        ensure(diff == "one\n2\n", || format!("the diff leads to {diff}"))?;
    }
    Ok(())
}

fn editor_refuses(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("a.txt")
        .say("Done.");
    stage.think(script)?;
    let refusing = Manners {
        serves: Box::new(|method| match method {
            "fs/write_text_file" => Serves::Refuses(-32603),
            _ => Serves::Well,
        }),
        ..Manners::default()
    };
    let talk = stage.open(refusing, &[])?;
    talk.editor.open(&path, "one\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&path);
    let wire = talk.close()?;
    ensure(buffer.as_deref() == Some("one\n"), || format!("the buffer is {buffer:?}"))?;
    ensure(stage.text("a.txt")? == "one\n", || "the disk was changed".into())?;
    let calls = wire.calls();
    let told = json!({ "status": "failed" });
    expect(&told, calls.first().map_or(&Value::Null, |call| &call.state))
}

/// It says of a method that it does not know it: then nothing was done, and the disk is what is left.
fn cannot(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("one\n")
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("+two")
        .say("Done.");
    stage.think(script)?;
    let unable = Manners { serves: Box::new(|_| Serves::Refuses(-32601)), ..Manners::default() };
    let talk = stage.open(unable, &[])?;
    talk.work()?;
    talk.close()?;
    let text = stage.text("a.txt")?;
    ensure(text == "two\n", || format!("the file holds {text:?}"))
}

/// Whether it was made nobody knows. The model is told, and the disk is left alone.
fn unanswered(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("read")
        .say("Done.");
    stage.think(script)?;
    let silent = Manners {
        serves: Box::new(|method| match method {
            "fs/write_text_file" => Serves::Hold,
            _ => Serves::Well,
        }),
        ..Manners::default()
    };
    let talk = stage.open(silent, &[])?;
    talk.editor.open(&path, "one\n");
    talk.work()?;
    let wire = talk.close()?;
    ensure(stage.text("a.txt")? == "one\n", || "the disk was changed".into())?;
    let writes = wire.heard("fs/write_text_file").len();
    ensure(writes == 1, || format!("{writes} writes"))?;
    let calls = wire.calls();
    let shown = calls.first().map_or(&Value::Null, |call| &call.state);
    expect(&json!({ "status": "failed", "rawOutput": { "error": { "code": -32014 } } }), shown)
}

fn kept(stage: &mut Stage) -> Outcome<()> {
    let old = "\u{feff}eins\r\nzwei\u{2028}ö\r\ndrei\rvier\n\tünf 👩‍👩‍👧 kein Ende";
    let path = stage.path("ä b'c\"d.txt");
    let edit = json!({ "old_string": "zwei", "new_string": "2\n2" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, old);
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    talk.close()?;
    let expected = old.replace("zwei", "2\n2");
    let as_its_lines = old.replace("zwei", "2\r\n2");
    ensure(buffer == expected || buffer == as_its_lines, || format!("the buffer is {buffer:?}"))
}

/// The editor knows its files by the name under which it was opened.
#[cfg(unix)]
fn linked(stage: &mut Stage) -> Outcome<()> {
    std::fs::create_dir(stage.path("real"))?;
    std::os::unix::fs::symlink(stage.path("real"), stage.path("link"))?;
    stage.put("real/a.txt", "saved\n")?;
    let path = stage.path("link").join("a.txt");
    let edit = json!({ "old_string": "typed", "new_string": "edited" });
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("typed\n")
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("+edited")
        .say("Done.");
    stage.think(script)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let cwd = stage.path("link");
    let talk = Talk::new(editor, &json!({ "cwd": cwd, "mcpServers": [] }))?;
    talk.editor.open(&path, "typed\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    let listed = talk.editor.ask("session/list", json!({ "cwd": cwd }))?;
    let wire = talk.close()?;
    ensure(buffer == "edited\n", || format!("the buffer is {buffer:?}"))?;
    ensure(stage.text("real/a.txt")? == "saved\n", || "the disk was changed".into())?;
    for call in wire.calls() {
        expect(&json!([{ "path": path }]), &call.state["locations"])?;
    }
    let sessions = listed["sessions"].as_array().map_or(0, Vec::len);
    ensure(sessions == 1, || format!("the list is {listed}"))
}

fn large(stage: &mut Stage) -> Outcome<()> {
    let lines: Vec<_> = (0..200_000).map(|line| format!("this is line {line}\n")).collect();
    let (text, path) = (lines.concat(), stage.path("large.txt"));
    let edit = json!({ "old_string": "line 150000\n", "new_string": "another line\n" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("+this is another line")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, &text);
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    let wire = talk.close()?;
    let edited = text.replace("line 150000\n", "another line\n");
    ensure(buffer == edited, || "the buffer is not what it should be".into())?;
    let told: usize = wire.updates().iter().map(|(_, update)| update.to_string().len()).sum();
    ensure(told < 100_000, || format!("the updates have {told} bytes"))?;
    let calls = wire.calls();
    let shown = calls.first().map_or(&Value::Null, |call| &call.state);
    let diff =
        json!({ "type": "diff", "oldText": "…line 150000\n…", "newText": "…another line\n…" });
    expect(&json!({ "locations": [{ "line": 150_001 }], "content": [diff] }), shown)
}
