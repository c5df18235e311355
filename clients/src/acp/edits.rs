//! What an edit changes, and what the editor is told of it.

use serde_json::{Value, json};

use super::editor::Manners;
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::wire::Wire;
use super::{Scenario, expect};
use crate::codex::ensure;
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "an unsaved buffer is read and edited, the disk is not",
        minds: BOTH,
        play: unsaved_buffer,
    },
    Scenario { name: "a new file is made by way of the editor", minds: BOTH, play: new_file },
    Scenario {
        name: "an edit that misses changes nothing and asks nobody",
        minds: BOTH,
        play: miss,
    },
    Scenario {
        name: "a file that is nowhere is told to be missing",
        minds: CLASSIC,
        play: missing,
    },
    Scenario {
        name: "what is outside the session's folders is refused",
        minds: BOTH,
        play: outside,
    },
    Scenario { name: "long content is cut in events, not in the file", minds: BOTH, play: long },
];

/// The place of the only message of a method.
fn only(wire: &Wire, method: &str) -> Outcome<usize> {
    match wire.heard(method)[..] {
        [(place, _)] => Ok(place),
        ref all => Err(Trouble::Wrong(format!("{} times {method}", all.len()))),
    }
}

fn unsaved_buffer(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\ntwo\nthree\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "unsaved", "new_string": "edited" });
    let script = stage
        .script()
        .offered()
        .call("read_text_file", json!({ "path": path }))
        .saw("one\nunsaved\nthree\n")
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("edited")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, "one\nunsaved\nthree\n");
    talk.work()?;
    ensure(stage.text("a.txt")? == "one\ntwo\nthree\n", || "the disk was changed".into())?;
    let buffer = talk.editor.buffer(&path);
    ensure(buffer.as_deref() == Some("one\nedited\nthree\n"), || {
        format!("the buffer is {buffer:?}")
    })?;
    let wire = talk.close()?;
    let [read, edited] = &wire.calls()[..] else {
        return Err(Trouble::Wrong(format!("{} calls", wire.calls().len())));
    };
    expect(
        &json!({
            "title": "read_text_file…", "kind": "read", "status": "completed",
            "locations": [{ "path": path }], "rawInput": { "path": path },
            "rawOutput": { "content": "one\nunsaved\nthree\n" },
        }),
        &read.state,
    )?;
    let diff = json!({
        "type": "diff", "path": path,
        "oldText": "one\nunsaved\nthree\n", "newText": "one\nedited\nthree\n",
    });
    expect(
        &json!({
            "title": "multi_edit_text_file (1 edit)…", "kind": "edit", "status": "completed",
            "locations": [{ "path": path, "line": 2 }],
            "rawInput": { "path": path, "edits": [edit] },
            "rawOutput": { "success": true, "applied_count": 1, "diff": "…-unsaved\n+edited\n…" },
            "content": [diff],
        }),
        &edited.state,
    )?;
    let asked = only(&wire, "session/request_permission")?;
    let about = &wire.0[asked].1["params"]["toolCall"];
    let question = json!({
        "title": format!("Edit {}", path.display()), "kind": "edit",
        "locations": [{ "path": path, "line": 2 }], "content": [diff],
    });
    expect(&question, about)?;
    let written = only(&wire, "fs/write_text_file")?;
    let order = [read.began, read.ended(), edited.began, asked, written, edited.ended()];
    ensure(order.is_sorted_by(|a, b| a < b), || format!("the order is {order:?}"))
}

fn new_file(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("new.txt");
    let script = stage
        .script()
        .call("write_text_file", json!({ "path": path, "content": "hello\n" }))
        .saw("new.txt")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    ensure(stage.text("new.txt")? == "hello\n", || "the file is not there".into())?;
    only(&wire, "fs/write_text_file")?;
    // By us: Codex would ask once more.
    only(&wire, "session/request_permission")?;
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls", calls.len())));
    };
    expect(
        &json!({
            "kind": "edit", "status": "completed", "locations": [{ "path": path }],
            "rawInput": { "path": path, "content": "hello\n" },
            "rawOutput": { "success": true, "bytes_written": 6, "created": true },
            "content": [{ "type": "diff", "path": path, "oldText": null, "newText": "hello\n" }],
        }),
        &call.state,
    )
}

/// Plays one call that must fail without a change and without a question.
fn fails(stage: &Stage, talk: Talk, told: &Value) -> Outcome<()> {
    talk.work()?;
    let wire = talk.close()?;
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls", calls.len())));
    };
    expect(told, &call.state)?;
    let asked = wire.heard("session/request_permission").len();
    ensure(asked == 0, || "a person was asked".into())?;
    let written = wire.heard("fs/write_text_file").len();
    ensure(written == 0, || format!("{written} writes in {}", stage.folder().display()))
}

fn miss(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "on e", "new_string": "two" });
    let script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("String not found: on e")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    let told =
        json!({ "kind": "edit", "status": "failed", "rawOutput": { "error": { "code": -32010 } } });
    fails(stage, talk, &told)?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn outside(stage: &mut Stage) -> Outcome<()> {
    let path = stage.home().join("secret.txt");
    std::fs::write(&path, "secret\n")?;
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("Permission denied")
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    let told =
        json!({ "kind": "read", "status": "failed", "rawOutput": { "error": { "code": -32002 } } });
    fails(stage, talk, &told)
}

fn long(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("long.txt");
    let content = "0123456789abcde\n".repeat(4096);
    let script = stage
        .script()
        .call("write_text_file", json!({ "path": path, "content": content }))
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    ensure(stage.text("long.txt")? == content, || "the file is not whole".into())?;
    let calls = wire.calls();
    let shown = calls.first().and_then(|call| call.state["rawInput"]["content"].as_str());
    let shown = shown.unwrap_or_default();
    let fits = shown.len() > 1000 && shown.len() < 11 * 1024 && content.starts_with(&shown[..1000]);
    ensure(fits, || format!("rawInput has {} bytes of content", shown.len()))
}

fn missing(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("none.txt");
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw(&format!("File not found: {}", path.display()))
        .say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    let told =
        json!({ "kind": "read", "status": "failed", "rawOutput": { "error": { "code": -32001 } } });
    fails(stage, talk, &told)
}
