//! Tests of the updates for editors. Each is read by the types of the crate as well, so that no client has to guess.

mod items;
mod mangled;
mod notifications;
mod samples;
mod turns;
mod user_requests;

use std::path::Path;

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, RequestPermissionRequest, SessionUpdate,
};
use expect_test::Expect;
use serde_json::{Value, json};

use super::DisplayCapabilities;
use super::user_request::{ChoiceRequest, FormRequest};

/// Folder of the session.
fn cwd() -> &'static Path {
    Path::new("/home/me/project")
}

/// Capabilities of an editor that shows everything.
fn everything() -> DisplayCapabilities {
    DisplayCapabilities {
        terminal_output: true,
        notices: true,
        compaction: true,
        forms: true,
        urls: true,
    }
}

fn lines(updates: &[Value]) -> String {
    updates.iter().flat_map(|update| [update.to_string(), "\n".into()]).collect()
}

/// Checks the updates, and that a client that uses the crate reads all of each.
fn check(updates: &[Value], expect: &Expect) {
    expect.assert_eq(&lines(updates));
    updates.iter().for_each(read);
}

/// Checks that a client reads the whole update.
fn read(update: &Value) {
    let typed: SessionUpdate = serde_json::from_value(update.clone()).expect("an update");
    let read = serde_json::to_value(typed).expect("JSON");
    assert_eq!(read, plain(update), "read of {update}");
}

/// Checks that a client reads the whole question.
fn read_question(question: &ChoiceRequest) {
    let (call, options) = (&question.tool_call, question.options());
    let request = json!({"sessionId": "s", "toolCall": call, "options": options});
    let typed: RequestPermissionRequest =
        serde_json::from_value(request.clone()).expect("a permission request");
    let read = serde_json::to_value(typed).expect("JSON");
    assert_eq!(read["options"], request["options"]);
    let mut call = plain(call);
    call["status"] = json!("pending");
    call["kind"] = question.tool_call["kind"].clone();
    assert_eq!(read["toolCall"], call);
    for field in ["title", "kind"] {
        assert!(call[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {call}");
    }
    assert!(call["content"].as_array().is_some_and(|content| !content.is_empty()), "{call}");
    let ids: std::collections::HashSet<_> = question.choices.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), question.choices.len(), "ids differ");
}

/// Checks that a client reads the whole form.
fn read_form(form: &FormRequest) {
    let mut request = form.params.clone();
    request["sessionId"] = json!("s");
    let typed: CreateElicitationRequest =
        serde_json::from_value(request.clone()).expect("an elicitation");
    assert_eq!(serde_json::to_value(typed).expect("JSON"), request);
}

/// Removes members that the crate leaves out when it serializes: defaults, and the null of a new file.
fn plain(update: &Value) -> Value {
    let mut update = update.clone();
    let whole = update["sessionUpdate"] != "tool_call_update";
    if let Some(fields) = update.as_object_mut() {
        fields.retain(|name, value| {
            !(whole && name == "status" && value == "pending"
                || whole && name == "kind" && value == "other")
        });
    }
    for part in update.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            part.retain(|name, value| !(name == "oldText" && value.is_null()));
        }
    }
    update
}

#[test]
fn capabilities_are_read() {
    let capabilities = json!({
        "_meta": {"terminal_output": true},
        "session": {"notices": {}, "compaction": {}},
        "elicitation": {"form": {}, "url": {}},
    });
    assert_eq!(DisplayCapabilities::new(&capabilities), everything());
    assert_eq!(
        DisplayCapabilities::new(&json!({"elicitation": {"form": null}})),
        DisplayCapabilities::default()
    );
}
