//! A tool call in the format of ACP.

use serde_json::{Map, Value, json};

use super::json::text;

/// Phase of an item that is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemPhase {
    /// The item begins.
    Started,
    /// The item ends, and its start was sent.
    Completed,
    /// The item ended long ago: start and end are sent at once.
    Replayed,
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
    pub content: Vec<Value>,
    /// Content at the end. It replaces [`ToolCall::content`].
    pub final_content: Vec<Value>,
    pub locations: Vec<Value>,
    pub input: Value,
    pub output: Value,
    pub meta: Value,
}

impl ToolCall {
    /// Sets the id and the status of the item. An ended item is never left in progress.
    pub fn in_phase(mut self, id: &str, item: &Value, phase: ItemPhase) -> Self {
        self.id = id.into();
        let status = text(item, "status").unwrap_or_default();
        let failed = match status {
            "failed" | "declined" | "interrupted" | "incomplete" => true,
            "inProgress" | "in_progress" => phase == ItemPhase::Replayed,
            _ => item["failure"].is_object(),
        };
        self.status = match phase {
            ItemPhase::Started => "in_progress",
            ItemPhase::Completed | ItemPhase::Replayed if failed => "failed",
            ItemPhase::Completed | ItemPhase::Replayed => "completed",
        };
        self
    }

    /// Returns the `tool_call` with all fields.
    pub fn start_update(mut self) -> Value {
        let mut fields = self.common_fields();
        if self.status == "in_progress" {
            self.final_content.clear();
            self.output = Value::Null;
        }
        let content = if self.final_content.is_empty() { self.content } else { self.final_content };
        fields.extend(members("content", content));
        fields.extend(member("rawInput", self.input));
        fields.extend(member("rawOutput", self.output));
        update("tool_call", &self.id, fields, self.meta)
    }

    /// Returns the `tool_call_update` for the end. The name is repeated, since for some items only the end has it.
    pub fn end_update(self) -> Value {
        let mut fields = self.common_fields();
        fields.extend(members("content", self.final_content));
        fields.extend(member("rawOutput", self.output));
        update("tool_call_update", &self.id, fields, self.meta)
    }

    /// Returns the tool call for a permission request.
    pub fn permission_request(mut self) -> Value {
        self.status = "pending";
        let mut call = Map::from_iter([("toolCallId".into(), self.id.clone().into())]);
        call.extend(self.common_fields());
        call.extend(members("content", self.content));
        call.extend(member("rawInput", self.input));
        call.into()
    }

    fn common_fields(&self) -> Map<String, Value> {
        let mut common_fields = Map::new();
        common_fields.insert("title".into(), self.title.clone().into());
        common_fields.extend(self.name.clone().and_then(|name| member("name", name.into())));
        common_fields.insert("kind".into(), self.kind.into());
        common_fields.insert("status".into(), self.status.into());
        common_fields.extend(members("locations", self.locations.clone()));
        common_fields
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
