//! Translates between Codex's messages and ACP. Pure functions from JSON to JSON.
//!
//! Everything is a [`Value`], since the types of the crate leave out `"status":"pending"`. Codex's messages are not
//! trusted: a field that is missing or of another type counts as empty, and an item without an id shows nothing.

mod command;
mod item_text;
mod json;
mod notification;
mod patch;
mod prompt;
mod sent_updates;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
mod tool_call;
mod tools;
mod turn_outcome;
mod user_request;

use std::path::Path;

use serde_json::{Value, json};

pub use json::one_line;
pub use notification::notification;
pub use prompt::prompt;
pub use sent_updates::SentUpdates;
pub use turn_outcome::{TurnError, turn_outcome, usage};
pub use user_request::{UserRequest, user_request};

use json::text;
use tool_call::{ItemPhase, ToolCall};

/// Capabilities of the editor for showing things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct DisplayCapabilities {
    /// Output of commands as it comes, in a display-only terminal (`_meta.terminal_output`).
    pub terminal_output: bool,
    /// `notice` updates.
    pub notices: bool,
    /// `compaction_update` updates.
    pub compaction: bool,
    /// `elicitation/create` with a form.
    pub forms: bool,
    /// `elicitation/create` with a link.
    pub urls: bool,
}

impl DisplayCapabilities {
    /// Reads the `clientCapabilities` of `initialize`.
    pub fn new(capabilities: &Value) -> Self {
        Self {
            terminal_output: capabilities["_meta"]["terminal_output"] == true,
            notices: capabilities["session"]["notices"].is_object(),
            compaction: capabilities["session"]["compaction"].is_object(),
            forms: capabilities["elicitation"]["form"].is_object(),
            urls: capabilities["elicitation"]["url"].is_object(),
        }
    }
}

/// Returns the updates of an item that begins. A tool call begins once.
pub fn item_started(
    item: &Value,
    cwd: &Path,
    display: DisplayCapabilities,
    sent_updates: &mut SentUpdates,
) -> Vec<Value> {
    if item["type"] == "contextCompaction" {
        let update = item_text::compaction(item, "in_progress", display);
        sent_updates
            .set_compaction(update.as_ref().and_then(|_| text(item, "id")).map(str::to_owned));
        return update.into_iter().collect();
    }
    let call = tool_call(item, ItemPhase::Started, cwd, display);
    let begun = call.filter(|call| sent_updates.begin(call));
    begun.map(ToolCall::start_update).into_iter().collect()
}

/// Returns the updates of an item that ends: all that was not sent yet. A tool call that never began begins and ends
/// here.
pub fn item_completed(
    item: &Value,
    cwd: &Path,
    display: DisplayCapabilities,
    sent_updates: &mut SentUpdates,
) -> Vec<Value> {
    let id = text(item, "id").unwrap_or_default();
    if item["type"] == "userMessage" {
        // The editor sent it itself.
        return vec![];
    }
    if let Some(text_item) = item_text::item_text(item) {
        let missing = sent_updates.finish_text(id, &text_item);
        return item_text::chunk(&text_item, id, missing).into_iter().collect();
    }
    if item["type"] == "contextCompaction" {
        sent_updates.set_compaction(None);
    }
    let Some(output) = sent_updates.finish_call(id) else { return replayed(item, cwd, display) };
    let Some(mut call) = tool_call(item, ItemPhase::Completed, cwd, display) else {
        return vec![abandoned(id)];
    };
    if item["type"] == "commandExecution" && display.terminal_output {
        call.meta = command::closing_terminal(item, &output);
    }
    vec![call.end_update()]
}

/// Returns the updates of an item of a loaded thread: whole messages, and each tool call in one `tool_call`.
pub fn replayed(item: &Value, cwd: &Path, display: DisplayCapabilities) -> Vec<Value> {
    if item["type"] == "userMessage" {
        return item_text::user_message(item);
    }
    let update = if item["type"] == "contextCompaction" {
        item_text::compaction(item, "completed", display)
    } else if let Some(text_item) = item_text::item_text(item) {
        item_text::chunk(&text_item, text(item, "id").unwrap_or_default(), text_item.shown())
    } else {
        tool_call(item, ItemPhase::Replayed, cwd, display).map(ToolCall::start_update)
    };
    update.into_iter().collect()
}

/// Returns the end of a tool call whose turn was cancelled or failed.
pub fn abandoned(tool_call_id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": "failed"})
}

/// Returns the update of a tool call that continues after a person allowed it.
pub fn resumed(tool_call_id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": "in_progress"})
}

/// Converts an item to a tool call, if it is one.
fn tool_call(
    item: &Value,
    phase: ItemPhase,
    cwd: &Path,
    display: DisplayCapabilities,
) -> Option<ToolCall> {
    let id = text(item, "id")?;
    let call = match text(item, "type")? {
        "commandExecution" => command::tool_call(item, phase, cwd, display),
        "fileChange" => patch::tool_call(id, &patch::changes(item, cwd), cwd),
        "mcpToolCall" => tools::mcp(item),
        "dynamicToolCall" => tools::dynamic(item),
        "webSearch" => tools::web_search(item),
        "imageView" => tools::image_view(item, cwd),
        "imageGeneration" => tools::image_generation(item, cwd),
        "collabAgentToolCall" => tools::collab(item),
        "subAgentActivity" => tools::sub_agent(item),
        "sleep" => tools::sleep(item),
        _ => return None,
    };
    Some(call.in_phase(id, item, phase))
}
