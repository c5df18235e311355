//! A tool call in the format of ACP.

use serde_json::{Map, Value, json};

use super::said::text;

/// Phase of an item that is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The item begins.
    Begun,
    /// The item ends, and its start was sent.
    Ended,
    /// The item ended long ago: start and end are sent at once.
    Past,
}

/// Fields of a tool call. Null and empty ones are not sent.
#[derive(Debug, Default)]
pub struct ToolCall {
    pub id: String,
    pub title: String,
    /// The tool's own name, if it has one.
    pub name: Option<String>,
    pub kind: &'static str,
    pub status: &'static str,
    /// Content that is shown from the start on.
    pub shown: Vec<Value>,
    /// Content at the end. It replaces `shown`.
    pub result: Vec<Value>,
    pub locations: Vec<Value>,
    pub input: Value,
    pub output: Value,
    pub meta: Value,
}

impl ToolCall {
    /// Sets the id and the status of the item. An ended item is never left in progress.
    pub fn in_phase(mut self, id: &str, item: &Value, phase: Phase) -> Self {
        self.id = id.into();
        let said = text(item, "status").unwrap_or_default();
        let failed = match said {
            "failed" | "declined" | "interrupted" | "incomplete" => true,
            "inProgress" | "in_progress" => phase == Phase::Past,
            _ => item["failure"].is_object(),
        };
        self.status = match phase {
            Phase::Begun => "in_progress",
            Phase::Ended | Phase::Past if failed => "failed",
            Phase::Ended | Phase::Past => "completed",
        };
        self
    }

    /// Returns the `tool_call` with all fields.
    pub fn begun(mut self) -> Value {
        let mut fields = self.about();
        if self.status == "in_progress" {
            self.result.clear();
            self.output = Value::Null;
        }
        let content = if self.result.is_empty() { self.shown } else { self.result };
        fields.extend(members("content", content));
        fields.extend(member("rawInput", self.input));
        fields.extend(member("rawOutput", self.output));
        update("tool_call", &self.id, fields, self.meta)
    }

    /// Returns the `tool_call_update` for the end. The name is repeated, since for some items only the end has it.
    pub fn ended(self) -> Value {
        let mut fields = self.about();
        fields.extend(members("content", self.result));
        fields.extend(member("rawOutput", self.output));
        update("tool_call_update", &self.id, fields, self.meta)
    }

    /// Returns the tool call for a permission request.
    pub fn asked(mut self) -> Value {
        self.status = "pending";
        let mut call = Map::from_iter([("toolCallId".into(), self.id.clone().into())]);
        call.extend(self.about());
        call.extend(members("content", self.shown));
        call.extend(member("rawInput", self.input));
        call.into()
    }

    fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        about.insert("title".into(), self.title.clone().into());
        about.extend(self.name.clone().and_then(|name| member("name", name.into())));
        about.insert("kind".into(), self.kind.into());
        about.insert("status".into(), self.status.into());
        about.extend(members("locations", self.locations.clone()));
        about
    }
}

fn update(what: &str, id: &str, fields: Map<String, Value>, meta: Value) -> Value {
    let mut update = json!({"sessionUpdate": what, "toolCallId": id});
    if let Some(update) = update.as_object_mut() {
        update.extend(fields);
        update.extend(member("_meta", meta));
    }
    update
}

fn member(name: &str, value: Value) -> Option<(String, Value)> {
    (!value.is_null()).then(|| (name.into(), value))
}

fn members(name: &str, values: Vec<Value>) -> Option<(String, Value)> {
    (!values.is_empty()).then(|| (name.into(), values.into()))
}
