//! Modes, models and efforts: what an editor chooses, what Codex makes of it, and what holds afterwards.

use serde_json::{Value, json};

use crate::common::Stage;

const SETTINGS: &str = "thread/settings/update";

/// A session whose choices wait for the test to answer them.
fn stage() -> Stage {
    let stage = Stage::open();
    stage.codex.hold(SETTINGS);
    stage
}

/// A choice that is under way.
struct Choosing {
    /// The editor's request.
    request: u64,
    /// Codex's part of it.
    settings: Value,
}

impl Choosing {
    /// The kind of sandbox that Codex is told to use.
    fn sandbox(&self) -> &str {
        self.settings["params"]["sandboxPolicy"]["type"].as_str().unwrap()
    }
}

impl Stage {
    fn set_mode(&self, mode: &str) -> Choosing {
        let params = json!({ "sessionId": self.session, "modeId": mode });
        let request = self.editor.send("session/set_mode", params);
        Choosing { request, settings: self.codex.heard(SETTINGS) }
    }

    fn set_option(&self, option: &str, value: &str) -> Choosing {
        let params = json!({ "sessionId": self.session, "configId": option, "value": value });
        let request = self.editor.send("session/set_config_option", params);
        Choosing { request, settings: self.codex.heard(SETTINGS) }
    }

    /// Codex accepts; what the editor is answered.
    fn accept(&self, choosing: &Choosing) -> Value {
        self.codex.answer(&choosing.settings, &json!({}));
        self.editor.result(choosing.request)
    }

    fn refuse(&self, choosing: &Choosing) {
        self.codex.refuse(&choosing.settings, "not here");
        assert_eq!(self.editor.error(choosing.request), "not here");
    }

    /// That `/status` shows this mode, model and effort, and that the editor was told nothing else since.
    fn assert_told(&self, mode: &str, model: &str, effort: &str) {
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

    /// That `/status` shows this mode, model and effort.
    fn assert_holds(&self, mode: &str, model: &str, effort: &str) {
        let prompt = json!([{ "type": "text", "text": "/status" }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
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
    let stage = stage();
    let slow = stage.set_mode("full-access");
    let quick = stage.set_mode("read-only");
    assert_eq!(quick.sandbox(), "readOnly");
    stage.accept(&quick);
    stage.refuse(&slow);
    stage.assert_told("read-only", "small", "low");
    assert_eq!(stage.editor.updates("current_mode_update").len(), 1, "the error misled");
}

#[test]
fn a_refused_mode_does_not_undo_a_newer_one_that_has_no_answer() {
    let stage = stage();
    let first = stage.set_option("mode", "full-access");
    let second = stage.set_option("mode", "read-only");
    stage.refuse(&first);
    stage.assert_told("read-only", "small", "low");
    let answer = stage.accept(&second);
    assert_options(&answer["configOptions"], "read-only", "small", "low");
    stage.assert_told("read-only", "small", "low");
}

#[test]
fn after_two_refused_modes_the_accepted_one_holds() {
    for order in [[0, 1], [1, 0]] {
        let stage = stage();
        stage.accept(&stage.set_mode("read-only"));
        let modes = [stage.set_mode("full-access"), stage.set_mode("auto")];
        for at in order {
            stage.refuse(&modes[at]);
        }
        stage.assert_told("read-only", "small", "low");
    }
}

#[test]
fn a_refused_mode_leaves_the_model_that_was_chosen_meanwhile() {
    let stage = stage();
    let mode = stage.set_mode("full-access");
    let model = stage.set_option("model", "large");
    stage.accept(&model);
    stage.refuse(&mode);
    // The new model has no effort `low`.
    stage.assert_told("auto", "large", "high");
}

#[test]
fn a_refused_model_gives_back_the_effort_it_took() {
    let stage = stage();
    let model = stage.set_option("model", "large");
    assert_eq!(model.settings["params"]["effort"], Value::Null);
    stage.refuse(&model);
    stage.assert_told("auto", "small", "low");
}

#[test]
fn an_effort_that_codex_accepted_holds_with_its_model() {
    for order in [[0, 1], [1, 0]] {
        let stage = stage();
        let choices =
            [stage.set_option("model", "large"), stage.set_option("reasoning_effort", "max")];
        let params = &choices[1].settings["params"];
        assert_eq!((&params["model"], &params["effort"]), (&json!("large"), &json!("max")));
        for at in order {
            if at == 0 {
                stage.refuse(&choices[0]);
            } else {
                stage.accept(&choices[1]);
            }
        }
        stage.assert_told("auto", "large", "max");
    }
}

#[test]
fn a_mode_that_codex_accepts_too_late_is_replaced_by_the_newer_one() {
    let stage = stage();
    let slow = stage.set_mode("full-access");
    let quick = stage.set_mode("read-only");
    stage.accept(&quick);
    // Whatever Codex made of the two, it is told once more.
    stage.codex.answer(&slow.settings, &json!({}));
    let again = Choosing { request: slow.request, settings: stage.codex.heard(SETTINGS) };
    assert_eq!(again.sandbox(), "readOnly");
    stage.accept(&again);
    stage.assert_told("read-only", "small", "low");
    assert_eq!(stage.editor.updates("current_mode_update").len(), 1, "the answer misled");
}

#[test]
fn a_mode_that_codex_insists_on_is_told() {
    let stage = stage();
    let slow = stage.set_mode("full-access");
    let quick = stage.set_mode("read-only");
    stage.accept(&quick);
    stage.codex.answer(&slow.settings, &json!({}));
    let again = Choosing { request: slow.request, settings: stage.codex.heard(SETTINGS) };
    stage.refuse(&again);
    stage.assert_told("full-access", "small", "low");
}

#[test]
fn a_mode_that_codex_never_answers_holds_up_no_other() {
    let stage = stage();
    stage.set_mode("full-access");
    stage.accept(&stage.set_mode("read-only"));
    stage.assert_told("read-only", "small", "low");
}

#[test]
fn an_answer_from_before_the_session_was_loaded_again_changes_nothing() {
    for is_accepted in [true, false] {
        let stage = stage();
        let slow = stage.set_mode("full-access");
        let load = json!({ "sessionId": stage.session, "cwd": stage.folder(), "mcpServers": [] });
        stage.editor.ask("session/load", load);
        let chosen = stage.set_mode("read-only");
        stage.accept(&chosen);
        if is_accepted {
            stage.codex.answer(&slow.settings, &json!({}));
            let again = Choosing { request: slow.request, settings: stage.codex.heard(SETTINGS) };
            assert_eq!(again.sandbox(), "readOnly");
            stage.accept(&again);
        } else {
            stage.refuse(&slow);
        }
        stage.assert_told("read-only", "small", "low");
    }
}

#[test]
fn what_was_chosen_last_holds_in_the_next_codex() {
    let stage = stage();
    let slow = stage.set_mode("full-access");
    stage.accept(&stage.set_mode("read-only"));
    stage.codex.end();
    assert!(stage.editor.error(slow.request).contains("Codex CLI ended"));
    let params = json!({ "sessionId": stage.session, "configId": "mode", "value": "auto" });
    let request = stage.editor.send("session/set_config_option", params);
    let next = stage.listener.accept(&json!({}));
    let answer = stage.editor.result(request);
    assert_options(&answer["configOptions"], "auto", "small", "low");
    let kinds: Vec<Value> = next
        .all(SETTINGS)
        .iter()
        .map(|settings| settings["params"]["sandboxPolicy"]["type"].clone())
        .filter(|kind| !kind.is_null())
        .collect();
    assert!(kinds.iter().all(|kind| kind == "workspaceWrite"), "{kinds:?}");
    stage.assert_holds("auto", "small", "low");
}
