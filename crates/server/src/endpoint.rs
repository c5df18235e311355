//! The MCP endpoint: what a client posts goes to `rmcp`, except what must not be copied through it.
//!
//! As on stdio, a tool's arguments go straight to the tool and large texts come straight from it. `rmcp` sees the
//! rest and keeps the protocol: versions, headers, statuses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use serde_json::value::RawValue;

use crate::calls::Calls;
use crate::http::{self, Bodies, refuse};
use crate::mcp::{self, Carried, Mcp, ToolCall, lock};
use crate::unstalled::Taker;
use crate::wire::{Envelope, Outgoing, Refusal};
use crate::{arguments, fault};

/// What a message may have besides the arguments of a call, in bytes, and in names and values: `rmcp` makes objects of it
/// that take a hundred times as much.
const MOST_BYTES: usize = 64 * 1024;
const MOST_VALUES: usize = 256;

/// A notification that nothing comes of.
const IGNORED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/ignored"}"#;

pub struct Endpoint {
    calls: Arc<Calls>,
    bodies: Arc<Bodies>,
    rmcp: StreamableHttpService<Arc<Mcp>, NeverSessionManager>,
}

impl Endpoint {
    pub fn new(calls: Arc<Calls>, bodies: Arc<Bodies>) -> Self {
        let mcp = Arc::new(Mcp::new(Arc::clone(&calls)));
        // Who may come in is decided at the door, how large a body may be before it gets here.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(usize::MAX);
        let rmcp = StreamableHttpService::new(
            move || Ok(Arc::clone(&mcp)),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        Self { calls, bodies, rmcp }
    }

    pub async fn answer(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let taker = parts.extensions.remove::<Taker>().unwrap_or_default();
        let (body, _held) = match self.bodies.receive(&parts, body).await {
            Ok(received) => received,
            Err(refusal) => return refusal,
        };
        let (carried, message) = match self.take(&parts.headers, &body) {
            Ok(split) => split,
            Err((status, refusal)) => {
                self.calls.log_refusal(&refusal);
                return self.respond(status, refusal.answer(), &taker).await;
            }
        };
        drop(body);
        if let Some(carried) = &carried {
            parts.extensions.insert(carried.clone());
        }
        // Any client gets plain JSON, whatever it says it accepts.
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(ACCEPT, accepted);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        parts.headers.remove(CONTENT_LENGTH);
        let request = Request::from_parts(parts, Full::new(message));
        self.finish(self.rmcp.handle(request).await, carried, &taker).await
    }

    /// Takes the call out of a `tools/call`; what is left for `rmcp` is small.
    fn take(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<(Option<Carried>, Bytes), (StatusCode, Refusal)> {
        let envelope =
            Envelope::parse(body).map_err(|refusal| (StatusCode::BAD_REQUEST, refusal))?;
        let Some(Envelope { id, method, params }) = envelope else {
            check_size(None, body.len(), arguments::count(body))?;
            return Ok((None, body.clone()));
        };
        let Some(id) = id else {
            // A notification that makes no sense is ignored like any other.
            let readable = check_size(None, body.len(), arguments::count(body)).is_ok()
                && serde_json::from_slice::<ClientJsonRpcMessage>(body).is_ok();
            let ignored = Bytes::from_static(IGNORED);
            return Ok((None, if readable { body.clone() } else { ignored }));
        };
        if let RequestId::String(id) = &id {
            check_size(None, id.len(), 0)?;
        }
        if method != "tools/call" {
            if !mcp::SERVED.contains(&method.as_ref()) {
                return Err((unknown_method(headers), mcp::method_not_found(&id, &method)));
            }
            check_size(Some(&id), body.len(), arguments::count(body))?;
            mcp::request(&id, body).map_err(|refusal| (StatusCode::OK, refusal))?;
            return Ok((None, body.clone()));
        }
        let given = params.map_or("{}", RawValue::get);
        let mut rest: BTreeMap<Cow<str>, &RawValue> =
            serde_json::from_str(given).unwrap_or_default();
        rest.remove("arguments");
        let bytes = rest.iter().map(|(name, value)| name.len() + value.get().len()).sum();
        let values = rest.values().map(|value| arguments::count(value.get().as_bytes())).sum();
        check_size(Some(&id), bytes, values)?;
        let carried = ToolCall::parse(&id, params)
            .and_then(|call| Carried::take(&self.calls, &id, &call))
            .map_err(|refusal| (StatusCode::OK, refusal))?;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": rest });
        Ok((Some(carried), message.to_string().into()))
    }

    /// The answer as our clients are promised it: JSON with its charset, errors as JSON too, large texts in place.
    async fn finish(
        &self,
        response: axum::http::Response<
            http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>,
        >,
        carried: Option<Carried>,
        taker: &Taker,
    ) -> Response {
        let (mut parts, body) = response.into_parts();
        let media = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media {
            Some(media) if media.starts_with("application/json") => {
                let Ok(body) = body.collect().await;
                let parked =
                    carried.as_ref().map(|carried| std::mem::take(&mut *lock(&carried.parked)));
                let crashed = carried.is_some_and(|carried| carried.crashed());
                let status = if crashed { StatusCode::INTERNAL_SERVER_ERROR } else { parts.status };
                let parked = parked.unwrap_or_default();
                let message = Outgoing::from_json(body.to_bytes().into(), parked);
                let mut response = self.respond(status, message, taker).await;
                parts.headers.remove(CONTENT_TYPE);
                parts.headers.remove(CONTENT_LENGTH);
                response.headers_mut().extend(parts.headers);
                response
            }
            _ if parts.status.is_client_error() || parts.status.is_server_error() => {
                let Ok(body) = body.collect().await;
                let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                // What is JSON but no message is a bad request, whatever its media type.
                let status = match parts.status {
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
                    status => status,
                };
                refuse(status, fault::INVALID_REQUEST, &text)
            }
            _ => Response::from_parts(parts, Body::new(body)),
        }
    }

    /// What is no file's text can be long too, as an id comes back that was: then it waits for its room here.
    async fn respond(&self, status: StatusCode, mut message: Outgoing, taker: &Taker) -> Response {
        if let (None, Some(room)) = (&message.share, self.calls.answers.of(message.holds())) {
            message.share = Some(room.take(message.holds(), Instant::now()).await);
        }
        http::stream(status, message, taker)
    }
}

/// Refuses what would become too many objects.
fn check_size(
    id: Option<&RequestId>,
    bytes: usize,
    values: usize,
) -> Result<(), (StatusCode, Refusal)> {
    if bytes <= MOST_BYTES && values <= MOST_VALUES {
        return Ok(());
    }
    let refusal = Refusal::new(id.cloned(), fault::INVALID_REQUEST, "Request too large");
    let detail = format!(
        "besides a tool's arguments a message may have {MOST_BYTES} bytes, {MOST_VALUES} names and values"
    );
    Err((StatusCode::PAYLOAD_TOO_LARGE, refusal.with_detail(detail)))
}

/// Since 2026-07-28 an unknown method is not found, in HTTP's words too.
fn unknown_method(headers: &HeaderMap) -> StatusCode {
    let version = headers.get("mcp-protocol-version").map_or(&b""[..], HeaderValue::as_bytes);
    if version == b"2026-07-28" { StatusCode::NOT_FOUND } else { StatusCode::OK }
}
