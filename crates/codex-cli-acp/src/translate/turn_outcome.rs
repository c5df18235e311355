//! The outcome of a turn: stop reason, error and token usage.

use serde_json::{Value, json};

use super::json::{present, text};

/// ACP's error code for a missing login.
const AUTH_REQUIRED: i32 = -32000;
const INTERNAL_ERROR: i32 = -32603;

/// The JSON-RPC error that answers a prompt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct TurnError {
    pub code: i32,
    pub message: String,
    pub data: Value,
}

/// Returns the stop reason of a turn, or the error for its prompt.
pub fn turn_outcome(turn: &Value) -> Result<&'static str, TurnError> {
    let error = &turn["error"];
    match text(turn, "status").unwrap_or_default() {
        "completed" => Ok("end_turn"),
        "interrupted" => Ok("cancelled"),
        "failed" if is_refusal(error) => Ok("refusal"),
        _ => Err(turn_error(error)),
    }
}

/// True if the model or its provider refused, rather than failed.
pub fn is_refusal(error: &Value) -> bool {
    matches!(reason(error), "cyberPolicy" | "misalignmentPolicyViolation")
}

/// Returns the name in `codexErrorInfo`, which stands alone or is the key of its details.
fn reason(error: &Value) -> &str {
    let info = &error["codexErrorInfo"];
    let name = info.as_object().and_then(|info| info.keys().next()).map(String::as_str);
    name.or(info.as_str()).unwrap_or_default()
}

fn turn_error(error: &Value) -> TurnError {
    let info = &error["codexErrorInfo"];
    let reason = reason(error);
    let unauthorized = reason == "unauthorized" || info[reason]["httpStatusCode"] == 401;
    let said = text(error, "message").unwrap_or("Codex ended the turn without an answer");
    let advice = match reason {
        _ if unauthorized => "; log in to Codex and try again",
        "contextWindowExceeded" => "; use /compact or start a new session",
        "usageLimitExceeded" => "; wait until the limit is reset or change your plan",
        "sessionBudgetExceeded" => "; the budget of this session is used up, start a new one",
        "rateLimitExceeded" | "serverOverloaded" | "flexUnavailable" => "; try again later",
        "modelNotFound" => "; choose another model",
        _ => "",
    };
    TurnError {
        code: if unauthorized { AUTH_REQUIRED } else { INTERNAL_ERROR },
        message: format!("{}{advice}", said.trim_end_matches('.')),
        data: present(json!({
            "codexErrorInfo": info,
            "details": error["additionalDetails"],
        })),
    }
}

/// Converts `thread/tokenUsage/updated` to the token usage of the session, for the answer to a prompt.
pub fn usage(params: &Value) -> Option<Value> {
    let total = &params["tokenUsage"]["total"];
    let count = |key: &str| total[key].as_u64();
    Some(present(json!({
        "totalTokens": count("totalTokens")?,
        "inputTokens": count("inputTokens")?,
        "outputTokens": count("outputTokens")?,
        "thoughtTokens": count("reasoningOutputTokens"),
        "cachedReadTokens": count("cachedInputTokens"),
        "cachedWriteTokens": count("cacheWriteInputTokens"),
    })))
}
