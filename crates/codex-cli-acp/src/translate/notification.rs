//! Notifications of Codex about a running thread, except for the start and end of items.

use std::path::Path;

use serde_json::{Value, json};

use super::item_text::{chunk_of, notice};
use super::json::{list, text, text_content};
use super::patch;
use super::sent_updates::ThoughtPart;
use super::turn_outcome::is_refusal;
use super::{DisplayCapabilities, SentUpdates};

/// Translates a notification to updates. Those that an editor has no use for give none.
pub fn notification(
    method: &str,
    params: &Value,
    cwd: &Path,
    display: DisplayCapabilities,
    sent_updates: &mut SentUpdates,
) -> Vec<Value> {
    update(method, params, cwd, display, sent_updates).into_iter().collect()
}

fn update(
    method: &str,
    params: &Value,
    cwd: &Path,
    display: DisplayCapabilities,
    sent_updates: &mut SentUpdates,
) -> Option<Value> {
    match method {
        "item/agentMessage/delta"
        | "item/plan/delta"
        | "item/reasoning/summaryTextDelta"
        | "item/reasoning/textDelta"
        | "item/commandExecution/outputDelta"
        | "item/mcpToolCall/progress"
        | "item/fileChange/patchUpdated" => item_update(method, params, cwd, sent_updates),
        "turn/plan/updated" => Some(plan(params)),
        "thread/tokenUsage/updated" => usage(&params["tokenUsage"]),
        "thread/name/updated" => {
            let title = text(params, "threadName");
            Some(json!({"sessionUpdate": "session_info_update", "title": title}))
        }
        "error" => failure(params, display),
        "warning" | "guardianWarning" => {
            Some(notice("warning", text(params, "message")?, None, display))
        }
        "configWarning" => {
            Some(notice("warning", text(params, "summary")?, text(params, "details"), display))
        }
        "model/rerouted" => {
            let (from, to) = (text(params, "fromModel")?, text(params, "toModel")?);
            let title = format!("Codex goes on with {to} in place of {from}");
            Some(notice("warning", &title, text(params, "reason"), display))
        }
        "mcpServer/startupStatus/updated" if params["status"] == "failed" => {
            let title = format!("MCP server `{}` did not start", text(params, "name")?);
            Some(notice("warning", &title, text(params, "error"), display))
        }
        "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted" => {
            Some(notice("info", text(params, "message")?, None, display))
        }
        // Ignored are, among others: `item/reasoning/summaryPartAdded`, since the next delta names its part;
        // `item/commandExecution/terminalInteraction`, since a terminal echoes the input; `thread/compacted`, since an
        // item reports it; and `deprecationNotice`, which concerns this program's use of Codex.
        _ => None,
    }
}

/// Translates a notification about an item. Tool calls must have begun: editors show an error for an update of an
/// unknown one.
fn item_update(
    method: &str,
    params: &Value,
    cwd: &Path,
    sent_updates: &mut SentUpdates,
) -> Option<Value> {
    let id = text(params, "itemId")?;
    let plain = |text: String| json!({"type": "text", "text": text});
    let of_call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
        update.as_object_mut()?.extend(fields.as_object()?.clone());
        sent_updates.is_open(id).then_some(update)
    };
    match method {
        "item/mcpToolCall/progress" => {
            of_call(json!({"content": [text_content(text(params, "message")?)]}))
        }
        "item/fileChange/patchUpdated" => {
            let call = patch::tool_call(id, &patch::changes(params, cwd), cwd);
            of_call(json!({
                "title": call.title,
                "kind": call.kind,
                "locations": call.locations,
                "content": call.content,
            }))
        }
        _ => {
            let delta = text(params, "delta")?;
            match method {
                "item/commandExecution/outputDelta" => {
                    let has_terminal = sent_updates.output(id, delta);
                    let data = json!({"terminal_output": {"terminal_id": id, "data": delta}});
                    has_terminal.then(|| {
                        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": data})
                    })
                }
                "item/agentMessage/delta" | "item/plan/delta" => {
                    let piece = sent_updates.text(id, delta)?;
                    Some(chunk_of("agent_message_chunk", id, plain(piece)))
                }
                _ => {
                    let summary = method == "item/reasoning/summaryTextDelta";
                    let number = if summary { "summaryIndex" } else { "contentIndex" };
                    let index = params[number].as_u64().unwrap_or_default();
                    let piece = sent_updates.thought(id, ThoughtPart { summary, index }, delta)?;
                    Some(chunk_of("agent_thought_chunk", id, plain(piece)))
                }
            }
        }
    }
}

fn plan(params: &Value) -> Value {
    let entry = |step: &Value| {
        let status = match text(step, "status").unwrap_or_default() {
            "inProgress" => "in_progress",
            "completed" => "completed",
            _ => "pending",
        };
        Some(json!({"content": text(step, "step")?, "priority": "medium", "status": status}))
    };
    let entries: Vec<_> = list(params, "plan").iter().filter_map(entry).collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

/// Returns the fill level of the context, if its size is known.
fn usage(usage: &Value) -> Option<Value> {
    let used = usage["last"]["totalTokens"].as_u64()?;
    let size = usage["modelContextWindow"].as_u64().filter(|size| *size > 0)?;
    Some(json!({"sessionUpdate": "usage_update", "used": used, "size": size}))
}

/// Translates an error that Codex recovers from. One that ends the turn is reported with its end, except for a refusal,
/// whose stop reason has no text.
fn failure(params: &Value, display: DisplayCapabilities) -> Option<Value> {
    let error = &params["error"];
    let message = text(error, "message")?;
    if params["willRetry"] == true {
        return Some(notice("warning", message, text(error, "additionalDetails"), display));
    }
    is_refusal(error)
        .then(|| chunk_of("agent_message_chunk", "", json!({"type": "text", "text": message})))
}
