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
use tools::{Dialect, Entry, Failure, Kind, Reply};

use crate::calls::{Answered, Calls, Recall};
use crate::http::{self, Bodies, refuse};
use crate::mcp::Parked;
use crate::room::Share;
use crate::unstalled::Taker;
use crate::wire::{self, Outgoing};
use crate::{arguments, fault};

pub async fn answer(
    entry: &'static Entry,
    calls: Arc<Calls>,
    bodies: &Bodies,
    request: Request,
) -> Response {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let (mut parts, body) = request.into_parts();
    let taker = parts.extensions.remove::<Taker>().unwrap_or_default();
    let (body, _held) = match bodies.receive(&parts, body).await {
        Ok(received) => received,
        Err(refusal) => return refusal,
    };
    if arguments::are_too_many(&body) {
        let faults = vec![arguments::TOO_MANY.into()];
        return failed(entry, &Failure::new(Kind::Invalid, "Invalid params").with_faults(faults));
    }
    let arguments = match serde_json::from_slice::<&RawValue>(&body)
        .and_then(|body| arguments::read(body.get()))
    {
        Ok(arguments @ Value::Object(_)) => arguments,
        Ok(_) => {
            return refuse(StatusCode::BAD_REQUEST, fault::INVALID_REQUEST, "Invalid Request");
        }
        Err(_) => return refuse(StatusCode::BAD_REQUEST, fault::PARSE_ERROR, "Parse error"),
    };
    let expected = match expected_hash(&parts.headers) {
        Ok(expected) => expected,
        Err(failure) => return failed(entry, &failure),
    };
    let id = format!("rest-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let arrived = calls.arrive(entry, arguments, id, None).expecting(expected);
    drop(body);
    let taken_back = TakenBack(Some(arrived.recall().clone()));
    // In a task of its own: a client that hangs up does not stop an edit halfway to its line in the log.
    let answered = tokio::spawn(calls.answer(arrived)).await;
    taken_back.not_any_more();
    match answered {
        Ok(Answered { outcome: Ok(reply), share }) => succeeded(reply, share, &taker),
        Ok(Answered { outcome: Err(failure), .. }) => failed(entry, &failure),
        Err(_) => failed(entry, &Failure::new(Kind::Internal, "Internal error")),
    }
}

/// Takes the call back when the client hangs up before it is answered: an edit that cannot be acknowledged is better
/// not made.
struct TakenBack(Option<Recall>);

impl TakenBack {
    fn not_any_more(mut self) {
        self.0 = None;
    }
}

impl Drop for TakenBack {
    fn drop(&mut self) {
        if let Some(recall) = &self.0 {
            recall.ring();
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
        let fault = "If-Match must be one ETag, as the last answer about the file carried it";
        Failure::new(Kind::Invalid, fault).with_faults(vec![fault.into()])
    })
}

fn succeeded(reply: Reply, share: Option<Share>, taker: &Taker) -> Response {
    let hash = reply.hash;
    let (object, blocks) = wire::plain_object(reply);
    let message = Outgoing::with_parked(&object, Parked { blocks, share });
    let mut response = http::stream(StatusCode::OK, message, taker);
    let tag = hash.and_then(|hash| HeaderValue::from_str(&format!("\"{hash}\"")).ok());
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The status is for the transport: a tool that fails is still answered with 200.
fn failed(entry: &Entry, failure: &Failure) -> Response {
    let (code, message, data) = fault::json_rpc(entry, failure);
    if failure.kind == Kind::Internal {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, code, &message);
    }
    let text = fault::text(Dialect::Plain, failure);
    let body = json!({
        "isError": true,
        "content": [{ "type": "text", "text": text }],
        "error": { "code": code, "message": message, "data": data },
    });
    http::answer(StatusCode::OK, Outgoing::new(&body))
}
