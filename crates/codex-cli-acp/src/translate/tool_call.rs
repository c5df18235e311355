//! A tool call as an editor shows it.

use serde_json::{Map, Value, json};

use super::said::text;

/// When an item is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It begins.
    Begun,
    /// It ends, and its beginning was told.
    Ended,
    /// Over long ago: begins and ends at once.
    Past,
}

/// Everything known of a tool call. What is null or empty is not said.
#[derive(Debug, Default)]
pub struct ToolCall {
    pub id: String,
    pub title: String,
    /// The tool's own name, when it has one.
    pub name: Option<String>,
    pub kind: &'static str,
    pub status: &'static str,
    /// What is shown from the start, and stays.
    pub shown: Vec<Value>,
    /// What there is to show at the end. It replaces what was shown.
    pub result: Vec<Value>,
    pub locations: Vec<Value>,
    pub input: Value,
    pub output: Value,
    pub meta: Value,
}

impl ToolCall {
    /// With the id and status of its item. What has ended is never left in progress.
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

    /// The `tool_call`: all there is.
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

    /// The `tool_call_update` at its end. Its name is said again: of some only the end tells it.
    pub fn ended(self) -> Value {
        let mut fields = self.about();
        fields.extend(members("content", self.result));
        fields.extend(member("rawOutput", self.output));
        update("tool_call_update", &self.id, fields, self.meta)
    }

    /// The tool call of a permission request.
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
