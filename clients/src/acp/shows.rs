//! What an editor is shown of a turn: words, thoughts, plans, searches, numbers; and what a prompt brings.

use serde_json::{Value, json};

use super::editor::Manners;
use super::mind::{BOTH, CLASSIC};
use super::stage::Stage;
use super::{Scenario, expect};
use crate::Outcome;
use crate::codex::ensure;
use crate::model::{Item, TOKENS};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a prompt's texts, images, links and resources reach the model",
        minds: CLASSIC,
        play: prompts,
    },
    Scenario {
        name: "thoughts and words come in pieces, a plan whole, tokens are counted",
        minds: BOTH,
        play: words,
    },
    Scenario { name: "a search of the web is shown", minds: CLASSIC, play: web_search },
    Scenario {
        name: "/status, /compact, /review and unknown commands",
        minds: CLASSIC,
        play: commands,
    },
    Scenario {
        name: "a sub-agent's calls are told in the session it belongs to",
        minds: CLASSIC,
        play: sub_agent,
    },
];

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn prompts(stage: &mut Stage) -> Outcome<()> {
    let link = stage.path("linked.txt");
    stage.put("linked.txt", "linked\n")?;
    let path = link.display().to_string();
    let script = stage.script().check(move |request| {
        let parts = request.said();
        let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        let texts = texts.join("\n");
        for wanted in ["Look at this:", &path, "embedded text", "mem://notes", "And answer."] {
            ensure(texts.contains(wanted), || format!("{wanted} is not in {texts}"))?;
        }
        let place = |word: &str| texts.find(word);
        ensure(place("Look at") < place(&path) && place(&path) < place("And answer"), || {
            format!("the order is lost: {texts}")
        })?;
        let image = format!("data:image/png;base64,{PNG}");
        let images = parts.iter().filter(|part| part["type"] == "input_image");
        let images: Vec<_> = images.map(|part| &part["image_url"]).collect();
        ensure(images == [&json!(image)], || format!("the images are {images:?}"))
    });
    stage.think(script.say("Done."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin_with(&json!([
        { "type": "text", "text": "Look at this:" },
        { "type": "image", "mimeType": "image/png", "data": PNG },
        { "type": "resource_link", "name": "linked.txt", "uri": format!("file://{}", link.display()) },
        { "type": "resource", "resource": { "uri": "mem://notes", "text": "embedded text" } },
        { "type": "text", "text": "And answer." },
    ]))?;
    talk.stopped(turn)?;
    talk.close().map(drop)
}

fn words(stage: &mut Stage) -> Outcome<()> {
    let plan = json!([
        { "step": "look", "status": "completed" },
        { "step": "leap", "status": "in_progress" },
        { "step": "land", "status": "pending" },
    ]);
    let thought = "**Thinking** about what is to be done, at some length.";
    let text = &"There are wörds here that are more than one piece long. ".repeat(200);
    let script =
        stage.script().answer(vec![Item::Think(thought.into()), stage.mind.plan(&plan)]).say(text);
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    let answer = talk.editor.result(turn)?;
    let wire = talk.close()?;
    let thoughts = wire.words("agent_thought_chunk");
    // What Codex has to say of a model that it does not know comes first.
    ensure(thoughts.trim().ends_with(thought), || format!("it thought {thoughts:?}"))?;
    let said = wire.words("agent_message_chunk");
    ensure(said == *text, || format!("it said {said:?}"))?;
    let pieces = wire.of("agent_message_chunk").len();
    ensure(pieces > 1, || "it came in one piece".into())?;
    let entry = |content: &str, status: &str| json!({ "content": content, "status": status });
    let entries =
        [entry("look", "completed"), entry("leap", "in_progress"), entry("land", "pending")];
    let plans = wire.of("plan");
    let shown = plans.last().copied().unwrap_or(&Value::Null);
    expect(&json!({ "entries": entries }), shown)?;
    // A plan is not a tool.
    ensure(wire.calls().is_empty(), || {
        format!("it is shown as a call: {}", wire.calls()[0].state)
    })?;
    let usage = wire.of("usage_update");
    let (input, output) = TOKENS;
    let used = usage.last().map_or(&Value::Null, |update| &update["used"]);
    ensure(*used == input + output, || format!("usage is {usage:?}"))?;
    let total = json!({ "inputTokens": 2 * input, "outputTokens": 2 * output, "totalTokens": 2 * (input + output) });
    expect(&total, &answer["usage"])
}

fn commands(stage: &mut Stage) -> Outcome<()> {
    let script = stage
        .script()
        .say("First.")
        // A summary of what was before.
        .say("SUMMARY")
        .check(|request| {
            let body = request.body().to_string();
            ensure(body.contains("SUMMARY"), || "the summary is not there".into())
        })
        .say("After it.")
        // A review.
        .say("{\"findings\":[],\"overall_correctness\":\"patch is correct\",\"overall_explanation\":\"Nothing to say.\",\"overall_confidence_score\":1.0}")
        .check(|request| {
            let asked = request.body().to_string();
            ensure(asked.contains("/unknown thing"), || "it did not reach the model".into())
        })
        .say("What?");
    stage.think(script)?;
    let talk = stage.open(Manners::default(), &[])?;
    let prompt = |text: &str| -> Outcome<String> {
        let before = talk.wire().words("agent_message_chunk").len();
        let stopped = talk.prompt(text).map_err(|trouble| trouble.at(text))?;
        ensure(stopped == "end_turn", || format!("{text} stopped with {stopped}"))?;
        Ok(talk.wire().words("agent_message_chunk")[before..].to_owned())
    };
    prompt("Hello.")?;
    let status = prompt("/status")?;
    let folder = stage.folder().display().to_string();
    for word in ["scripted", &folder] {
        ensure(status.contains(word), || format!("{word} is not in {status}"))?;
    }
    prompt("/compact")?;
    let after = prompt("Go on.")?;
    ensure(after == "After it.", || format!("after /compact: {after}"))?;
    let review = prompt("/review what there is")?;
    ensure(review.contains("Nothing to say."), || format!("/review: {review}"))?;
    let unknown = prompt("/unknown thing")?;
    ensure(unknown == "What?", || format!("/unknown: {unknown}"))?;
    talk.close().map(drop)
}

fn sub_agent(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let child = stage
        .script()
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .shell("echo by the child")
        .say("The child is done.");
    let agents = "multi_agent_v1";
    let spawn = json!({ "message": "Errand 4711: change the file." });
    let parent = stage
        .script()
        .answer(Item::Call { namespace: Some(agents), name: "spawn_agent", arguments: spawn })
        .answer_by(move |request| {
            let spawned = crate::codex::answers(request).pop().unwrap_or_default();
            let spawned: Value = serde_json::from_str(&spawned).unwrap_or_default();
            let wait = json!({ "targets": [spawned["agent_id"]] });
            Ok(Item::Call { namespace: Some(agents), name: "wait_agent", arguments: wait }.into())
        })
        .say("Done.");
    let scripts = vec![("Errand 4711", child.steps()?), ("", parent.steps()?)];
    stage.think_of(scripts, "")?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&path, "one\n");
    talk.work()?;
    let buffer = talk.editor.buffer(&path).unwrap_or_default();
    let session = talk.session.clone();
    let wire = talk.close()?;
    ensure(buffer == "two\n", || format!("the buffer is {buffer:?}"))?;
    let strangers =
        wire.heard("session/update").iter().filter(|(_, p)| p["sessionId"] != *session).count();
    ensure(strangers == 0, || format!("{strangers} updates of another session"))?;
    for kind in ["edit", "execute"] {
        let calls = wire.calls();
        let told = calls.iter().filter(|call| call.state["kind"] == kind).count();
        ensure(told == 1, || format!("{told} calls to {kind} are told of"))?;
    }
    // What the child says is for its parent.
    let said = wire.words("agent_message_chunk");
    ensure(said == "Done.", || format!("it said {said:?}"))
}

fn web_search(stage: &mut Stage) -> Outcome<()> {
    let search = vec![Item::Browse { query: "how to edit" }, Item::Say("Found.".into())];
    stage.think(stage.script().answer(search))?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.work()?;
    let wire = talk.close()?;
    let calls = wire.calls();
    let shown = calls.first().map_or(&Value::Null, |call| &call.state);
    expect(&json!({ "title": "…how to edit…", "status": "completed" }), shown)?;
    let kind = &shown["kind"];
    ensure(kind == "search" || kind == "fetch", || format!("it is shown as {shown}"))
}
