//! The plain methods over HTTP: `POST /list_files`, `/read_file`, `/edit_file`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::Request;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use files::Hash;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::{Dialect, Failure, FailureKind, ToolOutput, ToolSpec};

use crate::call::Calls;
use crate::call::pending_call::CallResult;
use crate::cancel::CancelSignal;
use crate::memory_budget::Permit;
use crate::outgoing::{LargeTexts, Outgoing};
use crate::{confirm, error_codes, json_arguments, plain};

use super::bodies::Bodies;
use super::responses::{self, refuse};
use super::stall_timeout::TransferMonitor;

pub async fn answer(
    tool: &'static ToolSpec,
    calls: Arc<Calls>,
    bodies: &Bodies,
    request: Request,
) -> Response {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let (mut parts, body) = request.into_parts();
    let monitor = parts.extensions.remove::<TransferMonitor>().unwrap_or_default();
    let (body, _held) = match bodies.receive(&parts, body).await {
        Ok(received) => received,
        Err(refusal) => return refusal,
    };
    if json_arguments::are_too_many(&body) {
        let faults = vec![json_arguments::TOO_MANY.into()];
        return failed(
            tool,
            &Failure::new(FailureKind::Invalid, "Invalid params").with_argument_errors(faults),
        );
    }
    let arguments = match serde_json::from_slice::<&RawValue>(&body)
        .and_then(|body| json_arguments::read(body.get()))
    {
        Ok(arguments @ Value::Object(_)) => arguments,
        Ok(_) => {
            return refuse(
                StatusCode::BAD_REQUEST,
                error_codes::INVALID_REQUEST,
                "Invalid Request",
            );
        }
        Err(_) => return refuse(StatusCode::BAD_REQUEST, error_codes::PARSE_ERROR, "Parse error"),
    };
    let expected = match expected_hash(&parts.headers) {
        Ok(expected) => expected,
        Err(failure) => return failed(tool, &failure),
    };
    let id = format!("rest-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let pending = calls.accept(tool, arguments, id, None).expecting(expected);
    drop(body);
    let guard = CancelGuard(Some(pending.control.cancel.clone()));
    // In a task of its own: a client that hangs up does not stop an edit halfway to its line in the log.
    let work = async move { confirm::answer_unasked(&calls, pending).await };
    let result = tokio::spawn(work).await;
    guard.disarm();
    match result {
        Ok(CallResult { outcome: Ok(reply), permit }) => succeeded(reply, permit, &monitor),
        Ok(CallResult { outcome: Err(failure), .. }) => failed(tool, &failure),
        Err(_) => failed(tool, &Failure::new(FailureKind::Internal, "Internal error")),
    }
}

/// Cancels the call when the client hangs up before it is answered: an edit that cannot be acknowledged is better not made.
struct CancelGuard(Option<CancelSignal>);

impl CancelGuard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

/// `If-Match: "1bf67208bddf1edb"`: the hash of the file that is to be edited.
fn expected_hash(headers: &HeaderMap) -> Result<Option<Hash>, Failure> {
    let mut values = headers.get_all(IF_MATCH).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().unwrap_or_default().trim(),
        (Some(_), Some(_)) => "",
    };
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    quoted.and_then(|hash| hash.parse().ok()).map(Some).ok_or_else(|| {
        let fault = "If-Match must be one ETag, as returned by the last answer about the file";
        Failure::new(FailureKind::Invalid, fault).with_argument_errors(vec![fault.into()])
    })
}

fn succeeded(reply: ToolOutput, permit: Option<Permit>, monitor: &TransferMonitor) -> Response {
    let hash = reply.hash;
    let (object, blocks) = plain::object(reply);
    let message = Outgoing::with_large_texts(&object, LargeTexts { blocks, permit });
    let mut response = responses::stream(StatusCode::OK, message, monitor);
    let tag = hash.and_then(|hash| HeaderValue::from_str(&format!("\"{hash}\"")).ok());
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The answer to a tool that failed: status 200, since the request itself was handled.
fn failed(tool: &ToolSpec, failure: &Failure) -> Response {
    let (code, message, data) = error_codes::json_rpc(tool, failure);
    if failure.kind == FailureKind::Internal {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, code, &message);
    }
    let text = error_codes::text(Dialect::Plain, failure);
    let body = json!({
        "isError": true,
        "content": [{ "type": "text", "text": text }],
        "error": { "code": code, "message": message, "data": data },
    });
    responses::answer(StatusCode::OK, Outgoing::new(&body))
}
