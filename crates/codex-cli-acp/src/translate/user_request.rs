//! Requests of Codex that a person decides, and the answers offered for each.

mod command;
mod elicitation;
mod patch;
mod permissions;
mod user_input;

use std::path::Path;

use serde_json::{Value, json};

use super::DisplayCapabilities;
use super::json::text;
use super::tool_call::ToolCall;

/// The form in which a request of Codex is put to a person.
#[derive(Debug)]
pub enum UserRequest {
    /// `session/request_permission`.
    Choice(ChoiceRequest),
    /// `elicitation/create`.
    Form(FormRequest),
    /// The request cannot be shown; the answer that declines it.
    Unsupported(Value),
}

/// A question with a few answers.
#[derive(Debug)]
pub struct ChoiceRequest {
    /// The `ToolCallUpdate` that is asked about.
    pub tool_call: Value,
    pub choices: Vec<ChoiceOption>,
    /// Codex's answer if the person does not choose.
    pub default_answer: Value,
    /// True if the tool call exists only for the question, so that nothing else ends it.
    pub is_own_call: bool,
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceOption {
    pub id: String,
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: &'static str,
    /// The result for Codex.
    pub answer: Value,
}

/// A form or a link.
#[derive(Debug)]
pub struct FormRequest {
    /// Parameters of `elicitation/create` without the `sessionId`.
    pub params: Value,
    /// Codex's answer if the form is not filled in.
    pub default_answer: Value,
    kind: FormKind,
}

#[derive(Debug)]
enum FormKind {
    Elicitation,
    UserInput(Vec<user_input::FormField>),
}

impl ChoiceOption {
    fn new(id: &str, name: impl Into<String>, kind: &'static str, answer: Value) -> Self {
        Self { id: id.into(), name: name.into(), kind, answer }
    }
}

impl ChoiceRequest {
    fn new(call: ToolCall, choices: Vec<ChoiceOption>, default_answer: Value) -> Self {
        Self { tool_call: call.permission_request(), choices, default_answer, is_own_call: false }
    }

    /// Returns the `options` of `session/request_permission`.
    pub fn options(&self) -> Value {
        let option = |choice: &ChoiceOption| json!({"optionId": choice.id, "name": choice.name, "kind": choice.kind});
        self.choices.iter().map(option).collect()
    }

    /// Returns the choice in the result of `session/request_permission`. `None` if there is none, or it was not
    /// offered.
    pub fn chosen(&self, result: &Value) -> Option<&ChoiceOption> {
        let outcome = &result["outcome"];
        let id = text(outcome, "optionId").filter(|_| outcome["outcome"] == "selected")?;
        self.choices.iter().find(|choice| choice.id == id)
    }

    /// Gives the tool call an id of its own, if it exists only for the question. Returns the update that begins it.
    pub fn open(&mut self, number: &str) -> Option<Value> {
        if !self.is_own_call {
            return None;
        }
        let id = text(&self.tool_call, "toolCallId").unwrap_or_default();
        self.tool_call["toolCallId"] = format!("{id}-{number}").into();
        let mut update = self.tool_call.clone();
        update["sessionUpdate"] = "tool_call".into();
        Some(update)
    }

    /// Returns the update that ends the tool call, if it exists only for the question.
    pub fn closing(&self, chosen: Option<&ChoiceOption>) -> Option<Value> {
        let allowed = chosen.is_some_and(|choice| choice.kind.starts_with("allow"));
        self.is_own_call.then(|| {
            json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": self.tool_call["toolCallId"],
                "status": if allowed { "completed" } else { "failed" },
            })
        })
    }
}

impl FormRequest {
    /// Converts the result of `elicitation/create` to Codex's answer.
    pub fn answer(&self, result: &Value) -> Value {
        match (&self.kind, text(result, "action")) {
            (FormKind::Elicitation, Some("accept")) => {
                let content = &result["content"];
                let content = if content.is_object() { content.clone() } else { json!({}) };
                json!({"action": "accept", "content": content, "_meta": null})
            }
            (FormKind::Elicitation, Some("decline")) => elicitation::declined(),
            (FormKind::UserInput(fields), Some("accept")) => {
                user_input::answers(fields, &result["content"])
            }
            _ => self.default_answer.clone(),
        }
    }
}

/// Translates a request of Codex. `item` is the item it is about, if known. `None` if it is not for a person.
pub fn user_request(
    method: &str,
    params: &Value,
    item: Option<&Value>,
    cwd: &Path,
    display: DisplayCapabilities,
) -> Option<UserRequest> {
    Some(match method {
        "item/commandExecution/requestApproval" => {
            UserRequest::Choice(command::choice_request(params, item, cwd, display))
        }
        "execCommandApproval" => UserRequest::Choice(command::legacy_request(params, cwd, display)),
        "item/fileChange/requestApproval" => {
            UserRequest::Choice(patch::choice_request(params, item, cwd))
        }
        "applyPatchApproval" => UserRequest::Choice(patch::legacy_request(params, cwd)),
        "item/permissions/requestApproval" => {
            UserRequest::Choice(permissions::choice_request(params, item, cwd))
        }
        "mcpServer/elicitation/request" => elicitation::user_request(params, item, display),
        "item/tool/requestUserInput" => user_input::user_request(params, display),
        _ => return None,
    })
}
