//! An answer of the Responses API, as it is streamed.

use serde_json::{Value, json};

use super::{End, Item};

/// How much of a text comes at once.
const PIECE: usize = 16;

/// What every answer is said to have cost: what went in, and what came out.
pub const TOKENS: (u64, u64) = (1000, 24);

/// The events of answer `number`.
pub fn of(number: usize, items: Vec<Item>, end: &End) -> Vec<Value> {
    let mut response = json!({ "id": format!("resp_{number}") });
    let mut events = vec![json!({ "type": "response.created", "response": response })];
    for (index, item) in items.into_iter().enumerate() {
        events.extend(streamed(&format!("{number}_{index}"), index, item));
    }
    if let End::Complete = end {
        let (input, output) = TOKENS;
        response["usage"] = json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        });
        events.push(json!({ "type": "response.completed", "response": response }));
    }
    events
}

/// An item, from its first event to its last. Most have only a last one.
fn streamed(number: &str, index: usize, item: Item) -> Vec<Value> {
    let (id, call) = (format!("item_{number}"), format!("call_{number}"));
    let event = |kind: &str, item: &Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": index, "item": item });
    let mut events = Vec::new();
    let item = match item {
        Item::Say(text) => {
            let message = |content: Value| json!({ "type": "message", "id": id, "role": "assistant", "content": content });
            events.push(event("added", &message(json!([]))));
            events.extend(pieces(&text).map(|piece| {
                json!({
                    "type": "response.output_text.delta", "item_id": id,
                    "output_index": index, "content_index": 0, "delta": piece,
                })
            }));
            message(json!([{ "type": "output_text", "text": text }]))
        }
        Item::Think(text) => {
            let thought =
                |summary: Value| json!({ "type": "reasoning", "id": id, "summary": summary });
            let part = |text: &str| json!({ "type": "summary_text", "text": text });
            events.push(event("added", &thought(json!([]))));
            events.push(json!({
                "type": "response.reasoning_summary_part.added", "item_id": id,
                "output_index": index, "summary_index": 0, "part": part(""),
            }));
            events.extend(pieces(&text).map(|piece| {
                json!({
                    "type": "response.reasoning_summary_text.delta", "item_id": id,
                    "output_index": index, "summary_index": 0, "delta": piece,
                })
            }));
            thought(json!([part(&text)]))
        }
        Item::Call { namespace, name, arguments } => {
            let mut item = json!({
                "type": "function_call", "id": id, "call_id": call,
                "name": name, "arguments": arguments.to_string(),
            });
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
        Item::Write { name, input } => json!({
            "type": "custom_tool_call", "id": id, "call_id": call, "name": name, "input": input,
        }),
        Item::Search { query } => json!({
            "type": "tool_search_call", "id": id, "call_id": call,
            "execution": "client", "arguments": { "query": query },
        }),
        Item::Browse { query } => {
            let action = json!({ "type": "search", "query": query });
            let search = |status: &str| json!({ "type": "web_search_call", "id": id, "status": status, "action": action });
            events.push(event("added", &search("in_progress")));
            search("completed")
        }
    };
    events.push(event("done", &item));
    events
}

/// Words are shown while they come, so they come in pieces.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
