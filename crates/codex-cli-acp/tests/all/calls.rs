//! Tests of calls of the program's own tools over HTTP: the editor is shown each, whatever id it comes with.

use std::fs;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::common::TestSession;
use crate::common::http::Tools;

impl TestSession {
    pub fn tools(&self) -> Tools {
        Tools::of(&self.codex.all("thread/start")[0])
    }

    /// Calls `write_text_file`, which may have to wait for an answer.
    fn write(&self, name: &str, content: &str, meta: Value) -> JoinHandle<Result<String, String>> {
        let arguments = json!({ "path": self.path(name), "content": content });
        let tools = self.tools();
        thread::spawn(move || tools.call("write_text_file", &arguments, &meta))
    }

    fn choose_mode(&self, mode: &str) {
        let params = json!({ "sessionId": self.id, "modeId": mode });
        self.editor.ask("session/set_mode", params);
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Returns the tool calls that were shown: their ids, each with its last status and the text that it wrote.
    fn shown(&self) -> Vec<(String, String, Value)> {
        let text = |update: &Value, name: &str| update[name].as_str().unwrap().to_owned();
        let ends = self.editor.updates("tool_call_update");
        let begins = self.editor.updates("tool_call");
        begins
            .iter()
            .map(|begin| {
                let id = text(begin, "toolCallId");
                let end = ends.iter().rfind(|end| end["toolCallId"] == *id).unwrap();
                (id, text(end, "status"), end["content"][0]["newText"].clone())
            })
            .collect()
    }
}

#[test]
fn a_call_without_an_id_is_asked_about_and_shown() {
    for meta in [json!(null), json!({}), json!({ "callId": 7 }), json!({ "callId": "" })] {
        let session = TestSession::open();
        let prompt = session.prompt();
        let call = session.write("a.txt", "one\n", meta.clone());
        let question = session.editor.asked("session/request_permission");
        let asked = &question["params"]["toolCall"];
        assert_eq!(asked["content"][0]["newText"], "one\n", "{meta}");
        session.editor.choose(&question, "allow");
        call.join().unwrap().unwrap();
        session.end_turn();
        session.editor.result(prompt);
        assert_eq!(session.text("a.txt").as_deref(), Some("one\n"));
        let id = asked["toolCallId"].as_str().unwrap().to_owned();
        assert!(!id.is_empty());
        assert_eq!(session.shown(), [(id, "completed".into(), json!("one\n"))], "{meta}");
    }
}

#[test]
fn calls_without_an_id_are_shown_when_nobody_is_asked() {
    for is_allowed_for_good in [true, false] {
        let session = TestSession::open();
        let prompt = session.prompt();
        if is_allowed_for_good {
            let call = session.write("0.txt", "0\n", json!({ "callId": "call_0" }));
            let question = session.editor.asked("session/request_permission");
            session.editor.choose(&question, "allow-always");
            call.join().unwrap().unwrap();
        } else {
            session.choose_mode("full-access");
            session.write("0.txt", "0\n", json!({ "callId": "call_0" })).join().unwrap().unwrap();
        }
        session.write("1.txt", "1\n", json!(null)).join().unwrap().unwrap();
        session.write("2.txt", "2\n", json!(null)).join().unwrap().unwrap();
        session.end_turn();
        session.editor.result(prompt);
        let shown = session.shown();
        let texts: Vec<_> = shown.iter().map(|(_, status, text)| (status.as_str(), text)).collect();
        let expected = [json!("0\n"), json!("1\n"), json!("2\n")];
        assert_eq!(texts, expected.each_ref().map(|text| ("completed", text)));
        assert!(shown[0].0 == "call_0" && shown[1].0 != shown[2].0, "{shown:?}");
    }
}

#[test]
fn two_calls_with_one_id_are_both_shown() {
    let session = TestSession::open();
    let prompt = session.prompt();
    session.choose_mode("full-access");
    for text in ["one\n", "two\n"] {
        session.write("a.txt", text, json!({ "callId": "call_1" })).join().unwrap().unwrap();
    }
    session.end_turn();
    session.editor.result(prompt);
    let shown = session.shown();
    assert_eq!((shown[0].0.as_str(), &shown[0].2), ("call_1", &json!("one\n")));
    assert_eq!((shown[1].1.as_str(), &shown[1].2), ("completed", &json!("two\n")));
    assert_ne!(shown[0].0, shown[1].0);
}

#[test]
fn a_call_that_codex_gave_up_and_that_comes_all_the_same_is_shown() {
    let session = TestSession::open();
    let prompt = session.prompt();
    session.choose_mode("full-access");
    let config = session.codex.all("thread/start")[0]["params"]["config"].clone();
    let server =
        config.as_object().unwrap().keys().find_map(|key| key.strip_prefix("mcp_servers."));
    let item = json!({
        "type": "mcpToolCall", "id": "call_1", "server": server, "tool": "write_text_file",
        "arguments": {}, "status": "failed", "error": { "message": "given up" },
    });
    session.codex.notify("item/completed", json!({ "threadId": session.id, "item": item }));
    session.editor.wait("the end of the call", |messages| {
        let mut updates = messages.iter().map(|message| &message["params"]["update"]);
        updates.any(|update| update["status"] == "failed").then_some(())
    });
    session.write("a.txt", "late\n", json!({ "callId": "call_1" })).join().unwrap().unwrap();
    session.end_turn();
    session.editor.result(prompt);
    let shown = session.shown();
    assert_eq!((shown[0].0.as_str(), shown[0].1.as_str()), ("call_1", "failed"));
    assert_eq!((shown[1].1.as_str(), &shown[1].2), ("completed", &json!("late\n")));
}

#[test]
fn outside_a_turn_nothing_is_written_and_reads_go_on() {
    let session = TestSession::open();
    session.choose_mode("full-access");
    fs::write(session.path("a.txt"), "one\n").unwrap();
    for _ in 0..2 {
        for meta in [json!(null), json!({ "callId": "call_1" })] {
            let refused =
                session.write("a.txt", "two\n", meta.clone()).join().unwrap().unwrap_err();
            assert!(refused.contains("the prompt that it was for is over"), "{refused}");
            let arguments = json!({ "path": session.path("a.txt") });
            let read = session.tools().call("read_text_file", &arguments, &meta);
            assert!(read.unwrap().starts_with("one\n"));
        }
        // Not after a turn either.
        let prompt = session.prompt();
        session.end_turn();
        session.editor.result(prompt);
    }
    assert_eq!(session.text("a.txt").as_deref(), Some("one\n"));
    assert!(session.shown().is_empty());
}
