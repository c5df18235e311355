//! What Codex says, in ACP's words, and back. Pure: JSON in, JSON out.
//!
//! Everything is a [`Value`], since the types of the crate leave `"status":"pending"` out. What Codex says is not
//! trusted: a field that is missing or of another type counts as empty, and an item without an id shows nothing.

mod asked;
mod command;
mod ended;
mod message;
mod notification;
mod patch;
mod prompt;
mod said;
mod streamed;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
mod tool_call;
mod tools;

use std::path::Path;

use serde_json::{Value, json};

pub use asked::{Asked, asked};
pub use ended::{Failed, ended, usage};
pub use notification::notification;
pub use prompt::prompt;
pub use said::one_line;
pub use streamed::Streamed;

use said::text;
use tool_call::{Phase, ToolCall};

/// What the editor said it can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct Shown {
    /// Output of commands as it comes, in a terminal that only shows (`_meta.terminal_output`).
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

impl Shown {
    /// What `clientCapabilities` of `initialize` say.
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

/// The updates of an item that begins. A tool call begins once.
pub fn item_started(item: &Value, cwd: &Path, shown: Shown, streamed: &mut Streamed) -> Vec<Value> {
    if item["type"] == "contextCompaction" {
        let update = message::compaction(item, "in_progress", shown);
        streamed.compacts(update.as_ref().and_then(|_| text(item, "id")).map(str::to_owned));
        return update.into_iter().collect();
    }
    let call = tool_call(item, Phase::Begun, cwd, shown);
    let begun = call.filter(|call| streamed.begin(call));
    begun.map(ToolCall::begun).into_iter().collect()
}

/// The updates of an item that ends: what of it was not sent yet. A tool call that never began does both at once.
pub fn item_completed(
    item: &Value,
    cwd: &Path,
    shown: Shown,
    streamed: &mut Streamed,
) -> Vec<Value> {
    let id = text(item, "id").unwrap_or_default();
    if item["type"] == "userMessage" {
        // The editor sent it.
        return vec![];
    }
    if let Some(told) = message::told(item) {
        let missing = streamed.finish_text(id, &told);
        return message::chunk(&told, id, missing).into_iter().collect();
    }
    if item["type"] == "contextCompaction" {
        streamed.compacts(None);
    }
    let Some(output) = streamed.finish_call(id) else { return replayed(item, cwd, shown) };
    let Some(mut call) = tool_call(item, Phase::Ended, cwd, shown) else {
        return vec![abandoned(id)];
    };
    if item["type"] == "commandExecution" && shown.terminal_output {
        call.meta = command::closing_terminal(item, &output);
    }
    vec![call.ended()]
}

/// The updates of an item of the past: whole messages, and tool calls that begin and end in one `tool_call`.
pub fn replayed(item: &Value, cwd: &Path, shown: Shown) -> Vec<Value> {
    if item["type"] == "userMessage" {
        return message::of_user(item);
    }
    let update = if item["type"] == "contextCompaction" {
        message::compaction(item, "completed", shown)
    } else if let Some(told) = message::told(item) {
        message::chunk(&told, text(item, "id").unwrap_or_default(), told.whole())
    } else {
        tool_call(item, Phase::Past, cwd, shown).map(ToolCall::begun)
    };
    update.into_iter().collect()
}

/// The end of a tool call whose turn was cancelled or failed.
pub fn abandoned(tool_call_id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": "failed"})
}

/// A tool call goes on after a person allowed it.
pub fn resumed(tool_call_id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": "in_progress"})
}

/// The tool call that an item is, if it is one.
fn tool_call(item: &Value, phase: Phase, cwd: &Path, shown: Shown) -> Option<ToolCall> {
    let id = text(item, "id")?;
    let call = match text(item, "type")? {
        "commandExecution" => command::tool_call(item, phase, cwd, shown),
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
