//! Tests of modes, models and efforts: what an editor chooses, what Codex answers, and what holds afterwards.

use serde_json::{Value, json};

use crate::common::TestSession;

const SETTINGS: &str = "thread/settings/update";

/// Opens a session whose choices wait for the test to answer them.
fn session() -> TestSession {
    let session = TestSession::open();
    session.codex.hold_answers(SETTINGS);
    session
}

/// A choice that Codex has not answered.
struct PendingChoice {
    /// The editor's request.
    request: u64,
    /// The program's request to Codex.
    settings: Value,
}

impl PendingChoice {
    /// Returns the type of the sandbox that Codex must use.
    fn sandbox(&self) -> &str {
        self.settings["params"]["sandboxPolicy"]["type"].as_str().unwrap()
    }
}

impl TestSession {
    fn set_mode(&self, mode: &str) -> PendingChoice {
        let params = json!({ "sessionId": self.id, "modeId": mode });
        let request = self.editor.send("session/set_mode", params);
        PendingChoice { request, settings: self.codex.next(SETTINGS) }
    }

    fn set_option(&self, option: &str, value: &str) -> PendingChoice {
        let params = json!({ "sessionId": self.id, "configId": option, "value": value });
        let request = self.editor.send("session/set_config_option", params);
        PendingChoice { request, settings: self.codex.next(SETTINGS) }
    }

    /// Accepts the choice as Codex. Returns the program's answer to the editor.
    fn accept(&self, choice: &PendingChoice) -> Value {
        self.codex.answer(&choice.settings, &json!({}));
        self.editor.result(choice.request)
    }

    fn refuse(&self, choice: &PendingChoice) {
        self.codex.refuse(&choice.settings, "not here");
        assert_eq!(self.editor.error(choice.request), "not here");
    }

    /// Asserts that `/status` shows this mode, model and effort, and that the editor was sent nothing else since.
    fn assert_sent(&self, mode: &str, model: &str, effort: &str) {
        self.assert_holds(mode, model, effort);
        let told = self.editor.updates("current_mode_update");
        if let Some(told) = told.last() {
            assert_eq!(told["currentModeId"], mode);
        }
        let told = self.editor.updates("config_option_update");
        if let Some(told) = told.last() {
            assert_options(&told["configOptions"], mode, model, effort);
        }
    }

    /// Asserts that `/status` shows this mode, model and effort.
    fn assert_holds(&self, mode: &str, model: &str, effort: &str) {
        let prompt = json!([{ "type": "text", "text": "/status" }]);
        let params = json!({ "sessionId": self.id, "prompt": prompt });
        self.editor.ask("session/prompt", params);
        let chunks = self.editor.updates("agent_message_chunk");
        let text = chunks.last().unwrap()["content"]["text"].as_str().unwrap();
        for (name, value) in [("Mode", mode), ("Model", model), ("Reasoning effort", effort)] {
            let name = format!("- **{name}:** ");
            // The effort that a model has by itself is not shown.
            let shown = text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or(value);
            assert_eq!(shown.to_lowercase().replace(' ', "-"), value);
        }
    }
}

fn assert_options(options: &Value, mode: &str, model: &str, effort: &str) {
    for (id, value) in [("mode", mode), ("model", model), ("reasoning_effort", effort)] {
        let mut options = options.as_array().unwrap().iter();
        assert_eq!(options.find(|option| option["id"] == id).unwrap()["currentValue"], value);
    }
}

#[test]
fn a_refused_mode_does_not_come_back_over_a_newer_one() {
    let session = session();
    let slow = session.set_mode("full-access");
    let quick = session.set_mode("read-only");
    assert_eq!(quick.sandbox(), "readOnly");
    session.accept(&quick);
    session.refuse(&slow);
    session.assert_sent("read-only", "small", "low");
    assert_eq!(session.editor.updates("current_mode_update").len(), 1, "the error misled");
}

#[test]
fn a_refused_mode_does_not_undo_a_newer_one_that_has_no_answer() {
    let session = session();
    let first = session.set_option("mode", "full-access");
    let second = session.set_option("mode", "read-only");
    session.refuse(&first);
    session.assert_sent("read-only", "small", "low");
    let answer = session.accept(&second);
    assert_options(&answer["configOptions"], "read-only", "small", "low");
    session.assert_sent("read-only", "small", "low");
}

#[test]
fn after_two_refused_modes_the_accepted_one_holds() {
    for order in [[0, 1], [1, 0]] {
        let session = session();
        session.accept(&session.set_mode("read-only"));
        let modes = [session.set_mode("full-access"), session.set_mode("auto")];
        for at in order {
            session.refuse(&modes[at]);
        }
        session.assert_sent("read-only", "small", "low");
    }
}

#[test]
fn a_refused_mode_leaves_the_model_that_was_chosen_meanwhile() {
    let session = session();
    let mode = session.set_mode("full-access");
    let model = session.set_option("model", "large");
    session.accept(&model);
    session.refuse(&mode);
    // The new model has no effort `low`.
    session.assert_sent("auto", "large", "high");
}

#[test]
fn a_refused_model_gives_back_the_effort_it_took() {
    let session = session();
    let model = session.set_option("model", "large");
    assert_eq!(model.settings["params"]["effort"], Value::Null);
    session.refuse(&model);
    session.assert_sent("auto", "small", "low");
}

#[test]
fn an_effort_that_codex_accepted_holds_with_its_model() {
    for order in [[0, 1], [1, 0]] {
        let session = session();
        let choices =
            [session.set_option("model", "large"), session.set_option("reasoning_effort", "max")];
        let params = &choices[1].settings["params"];
        assert_eq!((&params["model"], &params["effort"]), (&json!("large"), &json!("max")));
        for at in order {
            if at == 0 {
                session.refuse(&choices[0]);
            } else {
                session.accept(&choices[1]);
            }
        }
        session.assert_sent("auto", "large", "max");
    }
}

#[test]
fn a_mode_that_codex_accepts_too_late_is_replaced_by_the_newer_one() {
    let session = session();
    let slow = session.set_mode("full-access");
    let quick = session.set_mode("read-only");
    session.accept(&quick);
    // Whatever Codex made of the two, it is told once more.
    session.codex.answer(&slow.settings, &json!({}));
    let again = PendingChoice { request: slow.request, settings: session.codex.next(SETTINGS) };
    assert_eq!(again.sandbox(), "readOnly");
    session.accept(&again);
    session.assert_sent("read-only", "small", "low");
    assert_eq!(session.editor.updates("current_mode_update").len(), 1, "the answer misled");
}

#[test]
fn a_mode_that_codex_insists_on_is_told() {
    let session = session();
    let slow = session.set_mode("full-access");
    let quick = session.set_mode("read-only");
    session.accept(&quick);
    session.codex.answer(&slow.settings, &json!({}));
    let again = PendingChoice { request: slow.request, settings: session.codex.next(SETTINGS) };
    session.refuse(&again);
    session.assert_sent("full-access", "small", "low");
}

#[test]
fn a_mode_that_codex_never_answers_holds_up_no_other() {
    let session = session();
    session.set_mode("full-access");
    session.accept(&session.set_mode("read-only"));
    session.assert_sent("read-only", "small", "low");
}

#[test]
fn an_answer_from_before_the_session_was_loaded_again_changes_nothing() {
    for is_accepted in [true, false] {
        let session = session();
        let slow = session.set_mode("full-access");
        let load = json!({ "sessionId": session.id, "cwd": session.folder(), "mcpServers": [] });
        session.editor.ask("session/load", load);
        let chosen = session.set_mode("read-only");
        session.accept(&chosen);
        if is_accepted {
            session.codex.answer(&slow.settings, &json!({}));
            let again =
                PendingChoice { request: slow.request, settings: session.codex.next(SETTINGS) };
            assert_eq!(again.sandbox(), "readOnly");
            session.accept(&again);
        } else {
            session.refuse(&slow);
        }
        session.assert_sent("read-only", "small", "low");
    }
}

#[test]
fn what_was_chosen_last_holds_in_the_next_codex() {
    let session = session();
    let slow = session.set_mode("full-access");
    session.accept(&session.set_mode("read-only"));
    session.codex.end();
    assert!(session.editor.error(slow.request).contains("Codex CLI ended"));
    let params = json!({ "sessionId": session.id, "configId": "mode", "value": "auto" });
    let request = session.editor.send("session/set_config_option", params);
    let next = session.listener.accept(&json!({}));
    let answer = session.editor.result(request);
    assert_options(&answer["configOptions"], "auto", "small", "low");
    let kinds: Vec<Value> = next
        .all(SETTINGS)
        .iter()
        .map(|settings| settings["params"]["sandboxPolicy"]["type"].clone())
        .filter(|kind| !kind.is_null())
        .collect();
    assert!(kinds.iter().all(|kind| kind == "workspaceWrite"), "{kinds:?}");
    session.assert_holds("auto", "small", "low");
}
