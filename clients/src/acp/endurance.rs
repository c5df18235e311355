//! Many calls, calls at the same time, and sessions at the same time.

use serde_json::{Value, json};

use super::Scenario;
use super::editor::{Manners, Says};
use super::mind::{BOTH, CLASSIC};
use super::stage::Stage;
use super::wire::Wire;
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "200 calls of one turn are each told of, and answered",
        minds: BOTH,
        play: many,
    },
    Scenario {
        name: "20 edits of one file at the same time are all made",
        minds: BOTH,
        play: at_once,
    },
    Scenario {
        name: "two sessions work at the same time, each in its folder",
        minds: CLASSIC,
        play: two_sessions,
    },
];

fn many(stage: &mut Stage) -> Outcome<()> {
    const ROUNDS: usize = 10;
    const CALLS: usize = 20;
    let path = stage.path("a.txt");
    let lines: Vec<_> = (1..=ROUNDS * CALLS).map(|line| format!("line {line}\n")).collect();
    let mut script = stage.script();
    for round in 0..ROUNDS {
        let read = |line| json!({ "path": path, "line": line, "limit": 1 });
        let lines = (0..CALLS).map(|call| round * CALLS + call + 1);
        script = script.calls(lines.map(|line| ("read_text_file", read(line))).collect());
    }
    stage.think(script.say("Done."))?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, &lines.concat());
    talk.work()?;
    let wire = talk.close()?;
    let mut read: Vec<(u64, Value)> = Vec::new();
    for call in wire.calls() {
        let line = call.state["rawInput"]["line"].as_u64().unwrap_or_default();
        read.push((line, call.state["rawOutput"]["content"].clone()));
    }
    read.sort_by_key(|(line, _)| *line);
    let expected = (1..=200).map(|line| (line, json!(format!("line {line}\n"))));
    ensure(read == expected.collect::<Vec<_>>(), || format!("{} calls: {read:?}", read.len()))
}

fn at_once(stage: &mut Stage) -> Outcome<()> {
    const EDITS: usize = 20;
    let path = stage.path("a.txt");
    let edit = |number: usize| {
        let edit = json!({ "old_string": "end", "new_string": format!("{number} end") });
        ("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
    };
    let script = stage.script().calls((0..EDITS).map(edit).collect()).say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::saying(&[Says::AllowAlways]), &[])?;
    talk.set_mode("full-access")?;
    talk.editor.open(&path, "end\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    talk.close()?;
    // Codex sends them in no order of its own.
    let mut made: Vec<usize> = buffer.split(' ').filter_map(|word| word.parse().ok()).collect();
    made.sort_unstable();
    let whole = made.iter().copied().eq(0..EDITS) && buffer.ends_with(" end\n");
    ensure(whole, || format!("the buffer is {buffer:?}"))
}

fn two_sessions(stage: &mut Stage) -> Outcome<()> {
    let names = ["first", "second"];
    let mut scripts = Vec::new();
    for name in names {
        let folder = stage.path(name);
        std::fs::create_dir(&folder)?;
        let write = |at: &str| json!({ "path": stage.path(at).join("a.txt"), "content": name });
        let other = if name == "first" { "second" } else { "first" };
        let script = stage
            .script()
            .call("write_text_file", write(name))
            .call("write_text_file", write(other))
            .saw("Permission denied")
            .say("Done.");
        scripts.push((name, script.steps()?));
    }
    stage.think_of(scripts, "")?;
    let editor = stage.edit(Manners::default(), &[])?;
    let mut turns = Vec::new();
    for name in names {
        let opened =
            editor.ask("session/new", json!({ "cwd": stage.path(name), "mcpServers": [] }))?;
        let prompt = json!([{ "type": "text", "text": format!("Work in the {name} folder.") }]);
        let params = json!({ "sessionId": opened["sessionId"], "prompt": prompt });
        turns.push((opened["sessionId"].clone(), editor.send("session/prompt", params)?));
    }
    ensure(turns[0].0 != turns[1].0, || "both sessions have one id".into())?;
    for (_, turn) in &turns {
        editor.result(*turn)?;
    }
    for (name, (session, _)) in names.iter().zip(&turns) {
        let text = stage.text(&format!("{name}/a.txt"))?;
        ensure(text == *name, || format!("{name} holds {text:?}"))?;
        // What one does is told in that one.
        let wire = Wire(editor.wire());
        let asked = wire.heard("session/request_permission");
        let path = json!(stage.path(name).join("a.txt"));
        let mut here = asked.iter().filter(|(_, params)| params["sessionId"] == *session);
        let right = here.all(|(_, params)| params["toolCall"]["locations"][0]["path"] == path);
        ensure(right && asked.len() == 2, || format!("asked were {asked:?}"))?;
    }
    Ok(())
}
