//! Answers to plain methods: `list_files`, `read_file` and `edit_file` as bare JSON-RPC and REST.

use rmcp::model::RequestId;
use serde_json::{Map, Value, json};
use tools::{Block, ToolOutput, ToolSpec};

use crate::call::pending_call::CallResult;
use crate::error_codes;
use crate::message::ErrorResponse;
use crate::outgoing::{LargeTexts, Outgoing, marker};

/// The JSON-RPC response to a plain method.
pub fn response(
    tool: &'static ToolSpec,
    id: RequestId,
    CallResult { outcome, permit }: CallResult,
) -> Outgoing {
    match outcome {
        Ok(reply) => {
            let (result, blocks) = object(reply);
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            Outgoing::with_large_texts(&message, LargeTexts { blocks, permit })
        }
        Err(failure) => {
            let (code, message, data) = error_codes::json_rpc(tool, &failure);
            ErrorResponse::new(Some(id), code, message).with_data(data).answer()
        }
    }
}

/// The result of a plain method, with the large texts that its markers stand for: its only text is `content`. If the reply
/// is JSON already, one marker stands for all of it.
pub fn object(ToolOutput { blocks, data, written, .. }: ToolOutput) -> (Value, Vec<Block>) {
    if let Some(json) = written {
        return (marker(0).into(), vec![Block::of_json(json)]);
    }
    let mut object = Map::new();
    if !blocks.is_empty() {
        object.insert("content".into(), marker(0).into());
    }
    object.extend(data.unwrap_or_default());
    (object.into(), blocks)
}
