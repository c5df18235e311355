//! Turns that are taken back, whatever they are at: they end at once, what was open is closed, and the next one works.

use serde_json::json;

use super::Scenario;
use super::editor::{Manners, Says, Serves};
use super::mind::{BOTH, CLASSIC, Script};
use super::stage::{Stage, Talk};
use super::wire::Wire;
use crate::codex::ensure;
use crate::model::{End, Item, Turn};
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a turn is cancelled while a person is asked",
        minds: BOTH,
        play: cancelled_question,
    },
    Scenario {
        name: "an answer that comes after the turn was cancelled writes nothing",
        minds: BOTH,
        play: late_answer,
    },
    Scenario {
        name: "a turn is cancelled while the editor does not answer",
        minds: BOTH,
        play: cancelled_read,
    },
    Scenario {
        name: "a turn is cancelled while the model hangs",
        minds: CLASSIC,
        play: cancelled_model,
    },
    Scenario {
        name: "a turn is cancelled while a command runs",
        minds: BOTH,
        play: cancelled_command,
    },
    Scenario {
        name: "a prompt that is taken back at once is cancelled",
        minds: CLASSIC,
        play: cancelled_at_once,
    },
    Scenario {
        name: "a request to prompt can be cancelled by its number",
        minds: CLASSIC,
        play: cancelled_request,
    },
    Scenario {
        name: "a second prompt during a turn is refused",
        minds: CLASSIC,
        play: second_prompt,
    },
];

/// A script that is cut off at its first answer, and says something when it is asked once more.
fn cut_off(stage: &Stage) -> Script {
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "one", "new_string": "two" });
    let script = stage.script();
    script.call("multi_edit_text_file", json!({ "path": path, "edits": [edit] })).say("Back again.")
}

/// Waits for the end of the cancelled turn, and has the next one work.
fn recover(talk: &Talk, turn: u64) -> Outcome<()> {
    let stopped = talk.stopped(turn)?;
    ensure(stopped == "cancelled", || format!("the turn stopped with {stopped}"))?;
    talk.work()?;
    let said = talk.wire().words("agent_message_chunk");
    ensure(said.ends_with("Back again."), || format!("it said {said:?}"))
}

fn failed(wire: &Wire) -> Outcome<()> {
    let calls = wire.calls();
    let [call] = &calls[..] else {
        return Err(Trouble::Wrong(format!("{} calls", calls.len())));
    };
    ensure(call.state["status"] == "failed", || format!("the call is {}", call.state))
}

fn cancelled_question(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    stage.think(cut_off(stage))?;
    let talk = stage.open(Manners::saying(&[Says::Hold, Says::Cancelled]), &[])?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("session/request_permission")?;
    talk.cancel()?;
    // As ACP has it: what is asked is answered, with `cancelled`.
    talk.editor.release();
    recover(&talk, turn)?;
    failed(&talk.close()?)?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn cancelled_read(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    stage.think(cut_off(stage))?;
    let silent = Manners { serves: Box::new(|_| Serves::Hold), ..Manners::default() };
    let talk = stage.open(silent, &[])?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("fs/read_text_file")?;
    talk.cancel()?;
    recover(&talk, turn)?;
    // What comes too late changes nothing any more.
    talk.editor.behave(|manners| manners.serves = Box::new(|_| Serves::Well));
    talk.editor.release();
    let wire = talk.close()?;
    failed(&wire)?;
    ensure(wire.heard("fs/write_text_file").is_empty(), || "it was written all the same".into())?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn cancelled_model(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().hang("I will now").say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    // Nothing is under way: nothing happens.
    talk.cancel()?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.heard("the first words", 0, |message| {
        message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    })?;
    talk.cancel()?;
    recover(&talk, turn)?;
    talk.close().map(drop)
}

fn cancelled_command(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().shell("echo started; sleep 600").say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.heard("a command", 0, |message| {
        message["params"]["update"]["sessionUpdate"] == "tool_call"
    })?;
    talk.cancel()?;
    recover(&talk, turn)?;
    failed(&talk.close()?)
}

fn cancelled_request(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().hang("I will now").say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    stage.asked(1)?;
    talk.editor.tell("$/cancel_request", json!({ "requestId": turn }))?;
    recover(&talk, turn)?;
    talk.close().map(drop)
}

/// Before Codex has said what it calls the turn.
fn cancelled_at_once(stage: &mut Stage) -> Outcome<()> {
    const TIMES: usize = 5;
    // A model that is asked all the same does not answer; the last one does.
    let hang = |script: Script, _| {
        script.answer_by(|request| {
            let last =
                request.said().last().is_some_and(|part| part["text"] == "Follow the script.");
            let text = Item::Say("Back again.".into());
            Ok(if last { text.into() } else { Turn { items: vec![], end: End::Hanging } })
        })
    };
    stage.think((0..=TIMES).fold(stage.script(), hang))?;
    let talk = stage.open(Manners::default(), &[])?;
    for _ in 0..TIMES {
        let turn = talk.begin("Never mind.")?;
        talk.cancel()?;
        let stopped = talk.stopped(turn)?;
        ensure(stopped == "cancelled", || format!("the turn stopped with {stopped}"))?;
    }
    talk.work()?;
    talk.close().map(drop)
}

/// The editor leaves the question open, against the protocol, and answers it when nobody asks any more.
fn late_answer(stage: &mut Stage) -> Outcome<()> {
    stage.put("a.txt", "one\n")?;
    stage.think(cut_off(stage))?;
    let talk = stage.open(Manners::saying(&[Says::Hold, Says::AllowOnce]), &[])?;
    let turn = talk.begin("Follow the script.")?;
    talk.editor.held("session/request_permission")?;
    talk.cancel()?;
    recover(&talk, turn)?;
    talk.editor.release();
    // Whatever follows from the answer is done before the next one.
    talk.editor.ask("session/list", json!({ "cwd": stage.folder() }))?;
    let wire = talk.close()?;
    failed(&wire)?;
    ensure(wire.heard("fs/write_text_file").is_empty(), || "it was written all the same".into())?;
    ensure(stage.text("a.txt")? == "one\n", || "the file was changed".into())
}

fn second_prompt(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script().hang("I will now").say("Back again."))?;
    let talk = stage.open(Manners::default(), &[])?;
    let turn = talk.begin("Follow the script.")?;
    stage.asked(1)?;
    let prompt = json!([{ "type": "text", "text": "And this?" }]);
    let params = json!({ "sessionId": talk.session, "prompt": prompt });
    let error = talk.editor.refused("session/prompt", params)?;
    let message = error["message"].as_str().unwrap_or_default();
    ensure(message.contains("cancel"), || format!("it was refused with {error}"))?;
    talk.cancel()?;
    recover(&talk, turn)?;
    talk.close().map(drop)
}
