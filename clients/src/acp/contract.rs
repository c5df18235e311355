//! The events that the tools' contracts demand, captured from the wire and held against the contracts' own JSON.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::editor::Manners;
use super::mind::BOTH;
use super::stage::Stage;
use super::wire::Wire;
use super::{Scenario, expect};
use crate::codex::ensure;
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "`--events=contract` is what the contracts say, field by field",
        minds: BOTH,
        play: contract,
    },
    Scenario {
        name: "`--events=both` is ACP and the contracts in one message",
        minds: BOTH,
        play: both,
    },
];

const FILE: &str = "[server]\nhost = \"localhost\"\nport = 8080\n\n[log]\ndebug = false\n";
const DIFF: &str = "…-host = \"localhost\"\n-port = 8080\n+host = \"0.0.0.0\"\n+port = 3000\n…-debug = false\n+debug = true\n";

/// A call, and the contract's two events of it: `$DIR` is the folder, `$ID` the id of the call.
struct Told {
    tool: &'static str,
    arguments: Value,
    begin: Value,
    end: Value,
}

fn lines(numbers: Range<usize>) -> String {
    numbers.fold(String::new(), |text, number| text + &format!("line {number}\n"))
}

/// The examples of the contracts, with the files they are about.
fn told() -> [Told; 3] {
    let read = json!({ "path": "$DIR/file.txt", "line": 10, "limit": 10 });
    let lines = lines(10..20);
    let write = json!({ "path": "$DIR/new.txt", "content": "Hello, World!\n" });
    let edit = |old: &str, new: &str| json!({ "old_string": old, "new_string": new });
    let edits = json!({ "path": "$DIR/config.toml", "edits": [
        edit("port = 8080", "port = 3000"),
        edit("host = \"localhost\"", "host = \"0.0.0.0\""),
        edit("debug = false", "debug = true"),
    ] });
    let range = |edit: u64, line: u64| json!({ "edit_index": edit, "start": line, "end": line });
    let begin = |kind: &str, title: &str, file: &str, input: &Value| {
        json!({
            "type": "toolCall", "id": "$ID", "kind": kind, "status": "pending", "title": title,
            "locations": [{ "path": format!("$DIR/{file}") }], "rawInput": input,
        })
    };
    let end = |fields: Value| json!({ "type": "toolCallUpdate", "id": "$ID", "fields": fields });
    [
        Told {
            tool: "read_text_file",
            begin: begin("read", "read_text_file", "file.txt", &read),
            arguments: read,
            end: end(json!({ "status": "completed", "rawOutput": {
                "content": lines,
                "_meta": {
                    "total_lines": 100, "returned_lines": 10, "has_more": true, "next_line": 20,
                },
            } })),
        },
        Told {
            tool: "write_text_file",
            begin: begin("write", "write_text_file", "new.txt", &write),
            arguments: write,
            end: end(json!({ "status": "completed", "rawOutput": {
                "success": true, "bytes_written": 14, "created": true,
            } })),
        },
        Told {
            tool: "multi_edit_text_file",
            begin: begin("edit", "multi_edit_text_file (3 edits)", "config.toml", &edits),
            arguments: edits,
            end: end(json!({
                "status": "completed",
                "rawOutput": {
                    "success": true, "diff": DIFF, "applied_count": 3,
                    "line_ranges": [range(0, 3), range(1, 2), range(2, 6)],
                },
                "content": [{ "type": "text", "text": DIFF }],
            })),
        },
    ]
}

/// Every name of the one is in the other, and no other is; what they stand for fits.
fn exactly(place: &str, expected: &Value, found: &Value) -> Outcome<()> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let sorted =
                |names: &Map<String, Value>| names.keys().cloned().collect::<BTreeSet<_>>();
            let names = [sorted(expected), sorted(found)];
            ensure(names[0] == names[1], || {
                format!("{place} should have {:?} and has {:?}", names[0], names[1])
            })?;
            expected.iter().try_for_each(|(name, expected)| {
                exactly(&format!("{place}/{name}"), expected, &found[name])
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found).enumerate();
            pairs.try_for_each(|(at, (one, other))| exactly(&format!("{place}/{at}"), one, other))
        }
        _ => expect(expected, found).map_err(|trouble| trouble.at(place)),
    }
}

/// Plays the three calls, and returns what passed.
fn play(stage: &mut Stage, flag: &str) -> Outcome<Wire> {
    let mut script = stage.script();
    for Told { tool, mut arguments, .. } in told() {
        fill(&mut arguments, stage, "");
        script = script.call(tool, arguments);
    }
    stage.think(script.say("Done."))?;
    let mut talk = stage.open(Manners::default(), &[flag])?;
    talk.editor.open(&stage.path("file.txt"), &lines(1..101));
    talk.editor.open(&stage.path("config.toml"), FILE);
    talk.work()?;
    talk.editor.leave()?;
    Ok(talk.wire())
}

fn fill(value: &mut Value, stage: &Stage, id: &str) {
    let folder = stage.folder().display().to_string();
    crate::play::replace(value, &[("$DIR", &folder), ("$ID", &id.to_owned())]);
}

fn of_type<'a>(wire: &'a Wire, name: &str) -> Vec<&'a Value> {
    let updates = wire.updates().into_iter().map(|(_, update)| update);
    updates.filter(|update| update["type"] == name).collect()
}

fn contract(stage: &mut Stage) -> Outcome<()> {
    let wire = play(stage, "--events=contract")?;
    let (begins, ends) = (of_type(&wire, "toolCall"), of_type(&wire, "toolCallUpdate"));
    let counted = (begins.len(), ends.len());
    ensure(counted == (3, 3), || format!("{counted:?} begins and ends\n{:?}", wire.updates()))?;
    for (told, (begin, end)) in told().into_iter().zip(begins.into_iter().zip(ends)) {
        let id = begin["id"].as_str().unwrap_or_default();
        for (mut expected, found) in [(told.begin, begin), (told.end, end)] {
            fill(&mut expected, stage, id);
            let checked = exactly("", &expected, found);
            checked.map_err(|trouble| trouble.at(&format!("{}: {found}", told.tool)))?;
        }
    }
    let message = wire.heard("session/update");
    let mut params = message.iter().map(|(_, params)| params.as_object());
    let named =
        params.all(|params| params.is_some_and(|params| params.keys().eq(["sessionId", "update"])));
    ensure(named, || "an update has other names than `sessionId` and `update`".into())
}

fn both(stage: &mut Stage) -> Outcome<()> {
    let wire = play(stage, "--events=both")?;
    wire.in_order().map_err(Trouble::Wrong)?;
    let (begins, ends) = (of_type(&wire, "toolCall"), of_type(&wire, "toolCallUpdate"));
    let counted = (begins.len(), ends.len());
    ensure(counted == (3, 3), || format!("{counted:?} begins and ends"))?;
    for (told, (begin, end)) in told().into_iter().zip(begins.into_iter().zip(ends)) {
        let id = begin["id"].as_str().unwrap_or_default();
        let (mut began, mut ended) = (told.begin, told.end);
        for told in [&mut began, &mut ended] {
            fill(told, stage, id);
        }
        // A location has its line for ACP.
        expect(&began, begin).map_err(|trouble| trouble.at(told.tool))?;
        let contracts = json!({ "type": end["type"], "id": end["id"], "fields": end["fields"] });
        exactly("", &ended, &contracts).map_err(|trouble| trouble.at(told.tool))?;
        let ids = [&begin["toolCallId"], &end["toolCallId"]];
        ensure(ids.iter().all(|one| **one == id), || format!("{id} is also {ids:?}"))?;
        ensure(begin["sessionUpdate"] == "tool_call", || format!("not ACP: {begin}"))?;
        ensure(end["sessionUpdate"] == "tool_call_update", || format!("not ACP: {end}"))?;
        expect(&json!({ "status": "completed", "rawOutput": {} }), end)?;
        let edits = told.tool != "read_text_file";
        ensure(!edits || end["content"][0]["type"] == "diff", || format!("no diff: {end}"))?;
    }
    Ok(())
}
