//! Sessions: begun, listed, loaded, gone on with, and forgotten.

use serde_json::{Value, json};

use super::editor::{Editor, Manners};
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::wire::Wire;
use super::{Scenario, expect};
use crate::codex::ensure;
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "what is offered at first: version 1, capabilities, modes, options, commands",
        minds: CLASSIC,
        play: offered,
    },
    Scenario {
        name: "sessions that are begun at the same time, before Codex is there, all begin",
        minds: CLASSIC,
        play: at_once,
    },
    Scenario {
        name: "a session is listed, loaded with all it said, and goes on",
        minds: BOTH,
        play: loaded,
    },
    Scenario { name: "what Codex did by itself is replayed, too", minds: BOTH, play: replayed },
    Scenario {
        name: "a session is resumed without a word, and goes on",
        minds: CLASSIC,
        play: resumed,
    },
    Scenario { name: "a session is closed, forked and deleted", minds: CLASSIC, play: closed },
    Scenario {
        name: "a session that is closed during a turn ends it",
        minds: CLASSIC,
        play: closed_meanwhile,
    },
    Scenario { name: "what cannot be is refused with what to do", minds: CLASSIC, play: refused },
];

fn offered(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script())?;
    let editor = Editor::start(&mut stage.agent(&[]), Manners::default())?;
    let can = editor.initialize()?;
    let expected = json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true },
            "sessionCapabilities": { "list": {}, "delete": {}, "resume": {}, "close": {} },
        },
        "agentInfo": { "name": "codex-cli-acp", "version": "…" },
    });
    expect(&expected, &can)?;
    let talk = Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": [] }))?;
    let mode = |id: &str| json!({ "id": id });
    let modes = json!({
        "currentModeId": "auto",
        "availableModes": [mode("read-only"), mode("auto"), mode("full-access")],
    });
    expect(&modes, &talk.opened["modes"])?;
    let options = talk.opened["configOptions"].as_array().into_iter().flatten();
    let options: Vec<_> = options.map(|option| (&option["id"], &option["category"])).collect();
    let first = (&json!("mode"), &json!("mode"));
    let second = (&json!("model"), &json!("model"));
    ensure(options.starts_with(&[first, second]), || format!("the options are {options:?}"))?;
    let commands = talk.editor.heard("the commands", 0, |message| {
        message["params"]["update"]["sessionUpdate"] == "available_commands_update"
    })?;
    let commands = &commands["params"]["update"]["availableCommands"];
    let names: Vec<_> = commands.as_array().into_iter().flatten().map(|c| &c["name"]).collect();
    for name in ["init", "status", "compact", "review"] {
        ensure(names.contains(&&json!(name)), || format!("the commands are {names:?}"))?;
    }
    // They come once the editor knows of the session.
    let wire = talk.close()?;
    let known = wire.0.iter().position(|(_, message)| message["result"]["sessionId"].is_string());
    let first = wire.heard("session/update").first().map(|(place, _)| *place);
    ensure(known < first, || "an update comes before the session is known".into())
}

/// A session with a message, a call and an answer, and its editor gone.
fn past(stage: &mut Stage, more: usize) -> Outcome<String> {
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let mut script = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .say("I did it.");
    for _ in 0..more {
        script = script
            .check(|request| {
                let before = request.body().to_string();
                ensure(before.contains("I did it."), || "the model forgot what was before".into())
            })
            .call("read_text_file", json!({ "path": path }))
            .saw("two\n")
            .say("It is there.");
    }
    stage.think(script)?;
    stage.put("a.txt", "one\n")?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.prompt("Make it two.")?;
    let session = talk.session.clone();
    talk.close()?;
    Ok(session)
}

fn loaded(stage: &mut Stage) -> Outcome<()> {
    let session = past(stage, 1)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let listed = editor.ask("session/list", json!({ "cwd": stage.folder() }))?;
    let found = listed["sessions"].as_array().into_iter().flatten();
    let found: Vec<_> = found.filter(|one| one["sessionId"] == *session).collect();
    let [found] = found[..] else {
        return Err(Trouble::Wrong(format!("the list is {listed}")));
    };
    expect(&json!({ "cwd": stage.folder(), "title": "Make it two.…", "updatedAt": "20…" }), found)?;
    let elsewhere = editor.ask("session/list", json!({ "cwd": stage.home() }))?;
    ensure(elsewhere["sessions"] == json!([]), || format!("elsewhere is {elsewhere}"))?;

    let params = json!({ "sessionId": session, "cwd": stage.folder(), "mcpServers": [] });
    let opened = editor.ask("session/load", params)?;
    expect(&json!({ "modes": { "currentModeId": "auto" } }), &opened)?;
    let wire = Wire(editor.wire());
    ensure(wire.words("user_message_chunk") == "Make it two.", || {
        format!("the user said {:?}", wire.words("user_message_chunk"))
    })?;
    ensure(wire.words("agent_message_chunk") == "I did it.", || {
        format!("the agent said {:?}", wire.words("agent_message_chunk"))
    })?;
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls are replayed", calls.len())));
    };
    let path = stage.path("a.txt");
    let replayed = json!({
        "title": "multi_edit_text_file (1 edit)…", "kind": "edit", "status": "completed",
        "locations": [{ "path": path }], "rawInput": { "path": path },
    });
    expect(&replayed, &call.state)?;
    let talk = Talk { editor, session, opened };
    talk.work()?;
    talk.close().map(drop)
}

fn resumed(stage: &mut Stage) -> Outcome<()> {
    let session = past(stage, 1)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let params = json!({ "sessionId": session, "cwd": stage.folder(), "mcpServers": [] });
    let opened = editor.ask("session/resume", params.clone())?;
    let talk = Talk { editor, session, opened };
    // One that is open is begun anew in the mode it is in.
    talk.set_mode("read-only")?;
    let opened = talk.editor.ask("session/resume", params)?;
    expect(&json!({ "modes": { "currentModeId": "read-only" } }), &opened)?;
    talk.work()?;
    let wire = talk.close()?;
    let said = wire.words("agent_message_chunk");
    ensure(said == "It is there.", || format!("the agent said {said:?}"))?;
    ensure(wire.calls().len() == 1, || "what was before is replayed".into())
}

fn closed(stage: &mut Stage) -> Outcome<()> {
    let session = past(stage, 1)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let open = json!({ "sessionId": session, "cwd": stage.folder(), "mcpServers": [] });
    editor.ask("session/resume", open.clone())?;
    editor.ask("session/close", json!({ "sessionId": session }))?;
    let prompt = json!([{ "type": "text", "text": "Still there?" }]);
    let error =
        editor.refused("session/prompt", json!({ "sessionId": session, "prompt": prompt }))?;
    expect(&json!({ "message": "…load…" }), &error)?;
    // Closed is not gone: what it was can be gone on with, under another name.
    let forked = editor.ask("session/fork", open.clone())?;
    let fork = forked["sessionId"].as_str().unwrap_or_default().to_owned();
    ensure(!fork.is_empty() && fork != session, || format!("the fork is {forked}"))?;
    let talk = Talk { editor, session: fork.clone(), opened: forked };
    talk.work()?;
    let editor = talk.editor;
    // What was forked from it is in the way of deleting a session.
    for id in [&fork, &session] {
        editor.ask("session/delete", json!({ "sessionId": id }))?;
    }
    let listed = editor.ask("session/list", json!({ "cwd": stage.folder() }))?;
    ensure(listed["sessions"] == json!([]), || format!("the list is {listed}"))?;
    editor.refused("session/load", open).map(drop)
}

fn refused(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script())?;
    let editor = stage.edit(Manners::default(), &[])?;
    let sse =
        json!([{ "type": "sse", "name": "old", "url": "http://127.0.0.1:9/", "headers": [] }]);
    let cwd = stage.folder();
    let new = |cwd: Value, servers: Value| json!({ "cwd": cwd, "mcpServers": servers });
    let none = "00000000-0000-7000-8000-000000000000";
    let load = json!({ "sessionId": none, "cwd": cwd, "mcpServers": [] });
    let each = [
        ("session/new", new(json!(cwd), sse), "old"),
        ("session/new", new(json!(stage.path("missing")), json!([])), "missing"),
        ("session/prompt", json!({ "sessionId": none, "prompt": [] }), none),
        ("session/load", load, none),
        ("session/nonsense", json!({}), "session/nonsense"),
    ];
    for (method, params, word) in each {
        let error = editor.refused(method, params)?;
        let message = error.to_string();
        ensure(message.contains(word), || format!("{method}: {word} is not in {message}"))?;
    }
    let talk = Talk::new(editor, &new(json!(cwd), json!([])))?;
    let mode = json!({ "sessionId": talk.session, "modeId": "careless" });
    let error = talk.editor.refused("session/set_mode", mode)?;
    expect(&json!({ "message": "…read-only, auto, full-access…" }), &error)?;
    talk.close().map(drop)
}

fn closed_meanwhile(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().hang("I will now").say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    stage.asked(1)?;
    talk.editor.ask("session/close", json!({ "sessionId": talk.session }))?;
    let stopped = talk.stopped(turn)?;
    ensure(stopped == "cancelled", || format!("the turn stopped with {stopped}"))?;
    let again = Talk::new(talk.editor, &json!({ "cwd": stage.folder(), "mcpServers": [] }))?;
    again.work()?;
    again.close().map(drop)
}

fn replayed(stage: &mut Stage) -> Outcome<()> {
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch";
    let patch = stage.mind.patch(patch);
    let script = stage.script().shell("echo by a command").answer(patch).say("Done.");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let (session, before) = (talk.session.clone(), talk.close()?);
    let editor = stage.edit(Manners::default(), &[])?;
    let open = json!({ "sessionId": session, "cwd": stage.folder(), "mcpServers": [] });
    // Twice: a session that is open can be loaded, too.
    for _ in 0..2 {
        let start = editor.wire().len();
        editor.ask("session/load", open.clone())?;
        let after = Wire(editor.wire().split_off(start));
        let told = |wire: &Wire| -> Vec<(Value, Value, Value)> {
            let states = wire.calls().into_iter().map(|call| call.state);
            states
                .map(|call| (call["kind"].clone(), call["title"].clone(), call["status"].clone()))
                .collect()
        };
        let (before, after) = (told(&before), told(&after));
        ensure(!before.is_empty() && before == after, || {
            format!("told was {before:?}, and is {after:?}")
        })?;
    }
    Ok(())
}

fn at_once(stage: &mut Stage) -> Outcome<()> {
    const SESSIONS: usize = 4;
    let script = (0..SESSIONS).fold(stage.script(), |script, _| script.say("Done."));
    stage.think(script)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let new = || json!({ "cwd": stage.folder(), "mcpServers": [] });
    let asked: Outcome<Vec<_>> = (0..SESSIONS).map(|_| editor.send("session/new", new())).collect();
    let mut turns = Vec::new();
    for id in asked? {
        let prompt = json!([{ "type": "text", "text": "Follow the script." }]);
        let session = editor.result(id)?["sessionId"].clone();
        let params = json!({ "sessionId": session, "prompt": prompt });
        turns.push(editor.send("session/prompt", params)?);
    }
    turns.into_iter().try_for_each(|turn| editor.result(turn).map(drop))
}
