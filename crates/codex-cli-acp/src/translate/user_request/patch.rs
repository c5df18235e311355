//! Questions whether Codex may change files.

use std::path::Path;

use serde_json::{Value, json};

use super::{ChoiceOption, ChoiceRequest, command};
use crate::translate::json::{absolute, location, text, text_content};
use crate::translate::patch::{PatchedFile, changes, tool_call};
use crate::translate::tool_call::ToolCall;

/// Translates `item/fileChange/requestApproval`. The changes are in the item.
pub fn choice_request(params: &Value, item: Option<&Value>, cwd: &Path) -> ChoiceRequest {
    let id = text(params, "itemId").unwrap_or_default();
    let mut call = tool_call(id, &changes(item.unwrap_or(&Value::Null), cwd), cwd);
    let root = add_reason(&mut call, params, cwd);
    let session = match root {
        Some(root) => format!("Allow changes in `{root}` for this session"),
        None => "Allow for this session".into(),
    };
    let answer = |decision: &str| json!({"decision": decision});
    let choices = vec![
        ChoiceOption::new("accept", "Allow once", "allow_once", answer("accept")),
        ChoiceOption::new("acceptForSession", session, "allow_always", answer("acceptForSession")),
        ChoiceOption::new("decline", "Reject", "reject_once", answer("decline")),
        ChoiceOption::new("cancel", "Reject and stop", "reject_once", answer("cancel")),
    ];
    ChoiceRequest::new(call, choices, answer("cancel"))
}

/// Translates `applyPatchApproval`, which older versions of Codex send.
pub fn legacy_request(params: &Value, cwd: &Path) -> ChoiceRequest {
    let files = params["fileChanges"].as_object();
    let change = |(path, change)| {
        let diff = text(change, "unified_diff").or(text(change, "content"));
        PatchedFile::new(path, change, diff.unwrap_or_default(), cwd)
    };
    let changes: Vec<_> =
        files.into_iter().flatten().map(|(path, file)| change((path.as_str(), file))).collect();
    let mut call = tool_call(text(params, "callId").unwrap_or_default(), &changes, cwd);
    add_reason(&mut call, params, cwd);
    ChoiceRequest::new(call, command::legacy_choices(), command::aborted())
}

/// Adds the reason to the tool call. Returns the folder in which changes would be allowed for the session, if any.
fn add_reason(call: &mut ToolCall, params: &Value, cwd: &Path) -> Option<String> {
    let root = text(params, "grantRoot").map(|root| absolute(root, cwd));
    if let Some(root) = root.as_deref().filter(|_| call.locations.is_empty()) {
        call.locations.push(location(root, None));
    }
    let why = text(params, "reason");
    if why.is_some() || call.content.is_empty() {
        call.content.insert(0, text_content(why.unwrap_or("Codex wants to change files")));
    }
    root
}
