//! The MCP endpoint: `POST /mcp`.
//!
//! As on stdio, a tool's arguments go straight to the tool, and large texts come straight from it. `rmcp` gets the rest, and
//! keeps the protocol: versions, headers, statuses.

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
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::call::Calls;
use crate::client_channel::ClientChannel;
use crate::lock::lock;
use crate::mcp::call_handle::{CallHandle, ToolCall};
use crate::mcp::{Mcp, methods, resources};
use crate::memory_budget::Permit;
use crate::message::{ClientMessage, Envelope, ErrorResponse, VALUES_MAX};
use crate::options::Confirm;
use crate::outgoing::Outgoing;
use crate::{error_codes, json_arguments};

use super::bodies::Bodies;
use super::event_stream;
use super::responses::{self, method_not_allowed, refuse};
use super::sessions::{RunningCall, SESSION_ID, Session, Sessions};
use super::stall_timeout::TransferMonitor;

/// Bytes that a message may have besides the arguments of a call.
const ENVELOPE_MAX: usize = 64 * 1024;

/// A notification that `rmcp` ignores.
const IGNORED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/ignored"}"#;

pub struct McpEndpoint {
    calls: Arc<Calls>,
    bodies: Arc<Bodies>,
    rmcp: StreamableHttpService<Arc<Mcp>, NeverSessionManager>,
    /// `None`: nobody is asked anything.
    sessions: Option<Sessions>,
}

/// Messages to the client before the answer.
type EarlyMessages = UnboundedSender<(Value, Option<Permit>)>;

/// A posted message, with what `rmcp` is given of it.
enum PostedMessage {
    Call(CallHandle, Option<RunningCall>, Bytes),
    Initialize(ClientChannel, Bytes),
    Other(Bytes),
    /// A response to a question, which has been delivered.
    Response,
}

/// A call without its arguments, for `rmcp`.
#[derive(Serialize)]
struct CallWithoutArguments<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    method: &'a str,
    params: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// An answer of `rmcp`, ready to be sent.
enum FinishedResponse {
    Json(StatusCode, HeaderMap, Outgoing),
    Other(Response),
}

impl McpEndpoint {
    pub fn new(calls: Arc<Calls>, bodies: Arc<Bodies>) -> Self {
        let mcp = Arc::new(Mcp::new(Arc::clone(&calls)));
        // Access and the size of bodies are checked before.
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
        let sessions = (calls.options.confirm != Confirm::Never).then(Sessions::default);
        Self { calls, bodies, rmcp, sessions }
    }

    pub async fn answer(self: Arc<Self>, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let monitor = parts.extensions.remove::<TransferMonitor>().unwrap_or_default();
        let (body, held) = match self.bodies.receive(&parts, body).await {
            Ok(received) => received,
            Err(refusal) => return refusal,
        };
        let (early, mut messages) = mpsc::unbounded_channel();
        let posted = match self.accept(&parts.headers, &body, early) {
            Ok(posted) => posted,
            Err((status, response)) => {
                self.calls.log_refusal(&response);
                let message = self.with_permit(response.answer()).await;
                return responses::stream(status, message, &monitor);
            }
        };
        drop(body);
        let (mut handle, mut running, mut newcomer) = (None, None, None);
        let message = match posted {
            PostedMessage::Call(call, listed, message) => {
                // The arguments are what is left of the body.
                call.hold(held);
                parts.extensions.insert(call.clone());
                (handle, running) = (Some(call), listed);
                message
            }
            PostedMessage::Initialize(channel, message) => {
                newcomer = Some(channel);
                message
            }
            PostedMessage::Other(message) => message,
            PostedMessage::Response => return accepted(),
        };
        // Any client gets plain JSON, whatever it accepts, unless there are messages before the answer.
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(ACCEPT, accepted);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        parts.headers.remove(CONTENT_LENGTH);
        let request = Request::from_parts(parts, Full::new(message));
        let endpoint = Arc::clone(&self);
        let mut answer = Box::pin(async move {
            let _running = running;
            let response = endpoint.rmcp.handle(request).await;
            endpoint.finish(response, handle).await
        });
        let finished = tokio::select! {
            biased;
            finished = &mut answer => finished,
            Some((first, _)) = messages.recv() => {
                let answer = Box::pin(async move {
                    match answer.await {
                        FinishedResponse::Json(_, _, message) => Some(message),
                        FinishedResponse::Other(_) => None,
                    }
                });
                return event_stream::stream(messages, &first, answer, monitor);
            }
        };
        match finished {
            FinishedResponse::Json(status, headers, message) => {
                let mut response = responses::stream(status, message, &monitor);
                response.headers_mut().extend(headers);
                if let (Some(sessions), Some(newcomer)) = (&self.sessions, newcomer)
                    && status == StatusCode::OK
                {
                    sessions.open_for(newcomer, response.headers_mut());
                }
                response
            }
            FinishedResponse::Other(response) => response,
        }
    }

    /// Ends the session of a client, if it has one.
    pub fn end_session(&self, headers: &HeaderMap) -> Response {
        match (&self.sessions, session_id(headers)) {
            (Some(sessions), Some(id)) if sessions.close(id) => empty(StatusCode::NO_CONTENT),
            (Some(_), Some(_)) => {
                refuse(StatusCode::NOT_FOUND, error_codes::INVALID_REQUEST, "Session not found")
            }
            _ => method_not_allowed("POST"),
        }
    }

    /// The way to a client while its call runs. There is none if the client does not accept events.
    fn channel(
        headers: &HeaderMap,
        early: EarlyMessages,
        session: Option<&Session>,
    ) -> Option<ClientChannel> {
        let questions = session.map(|session| Arc::clone(&session.questions));
        let send = move |message, permit| drop(early.send((message, permit)));
        accepts_events(headers).then(|| ClientChannel::new(send, questions))
    }

    /// Accepts the call of a `tools/call`. What is left for `rmcp` is small.
    fn accept(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        early: EarlyMessages,
    ) -> Result<PostedMessage, (StatusCode, ErrorResponse)> {
        let message =
            ClientMessage::parse(body).map_err(|response| (StatusCode::BAD_REQUEST, response))?;
        let session = self.session(headers)?;
        let envelope = match message {
            ClientMessage::Request(envelope) => envelope,
            ClientMessage::Response(id, result) => {
                check_size(None, body.len(), json_arguments::count(body))?;
                let Some(session) = session else { return Ok(PostedMessage::Other(body.clone())) };
                session.questions.answer(&id, result);
                return Ok(PostedMessage::Response);
            }
        };
        if let (Some(session), Some(id)) = (&session, envelope.cancelled()) {
            session.cancel(&id);
        }
        let Envelope { id, method, params } = envelope;
        let Some(id) = id else {
            // A notification that makes no sense is ignored like any other.
            let readable = check_size(None, body.len(), json_arguments::count(body)).is_ok()
                && serde_json::from_slice::<ClientJsonRpcMessage>(body).is_ok();
            let ignored = Bytes::from_static(IGNORED);
            return Ok(PostedMessage::Other(if readable { body.clone() } else { ignored }));
        };
        if let RequestId::String(id) = &id {
            check_size(None, id.len(), 0)?;
        }
        if method != "tools/call" {
            return self.accept_request(headers, &id, &method, body, early, session);
        }
        let given = params.map_or("{}", RawValue::get);
        let mut rest: BTreeMap<Cow<str>, &RawValue> =
            serde_json::from_str(given).unwrap_or_default();
        rest.remove("arguments");
        let bytes = rest.iter().map(|(name, value)| name.len() + value.get().len()).sum();
        let values = rest.values().map(|value| json_arguments::count(value.get().as_bytes())).sum();
        check_size(Some(&id), bytes, values)?;
        let call = ToolCall::parse(&id, params).map_err(|refusal| (StatusCode::OK, refusal))?;
        // Members that were not read may not even be UTF-8.
        rest.retain(|name, _| ToolCall::MEMBERS.contains(&name.as_ref()));
        let forwarded =
            CallWithoutArguments { jsonrpc: "2.0", id: &id, method: &method, params: rest };
        let message = serde_json::to_vec(&forwarded).unwrap_or_default().into();
        if contradicts(headers, "mcp-method", &method)
            || contradicts(headers, "mcp-name", &call.name)
        {
            return Ok(PostedMessage::Other(message));
        }
        let channel = Self::channel(headers, early, session.as_deref());
        let handle = CallHandle::accept(&self.calls, &id, &call, channel)
            .map_err(|refusal| (StatusCode::OK, refusal))?;
        let running = session.and_then(|session| session.start(id, handle.cancel_signal()));
        Ok(PostedMessage::Call(handle, running, message))
    }

    /// Any other request.
    fn accept_request(
        &self,
        headers: &HeaderMap,
        id: &RequestId,
        method: &str,
        body: &Bytes,
        early: EarlyMessages,
        session: Option<Arc<Session>>,
    ) -> Result<PostedMessage, (StatusCode, ErrorResponse)> {
        let known = methods::SERVED.contains(&method);
        if !known && !contradicts(headers, "mcp-method", method) {
            return Err((unknown_method(headers), methods::not_found(id, method, None)));
        }
        check_size(Some(id), body.len(), json_arguments::count(body))?;
        if !known {
            return Ok(PostedMessage::Other(body.clone()));
        }
        let message = methods::request(id, method, body).map_err(|refusal| match refusal.code {
            error_codes::METHOD_NOT_FOUND => (unknown_method(headers), refusal),
            _ => (StatusCode::OK, refusal),
        })?;
        let newcomer = ClientChannel::new(|_, _| {}, Some(Arc::default()));
        newcomer.note_capabilities(&message);
        if newcomer.can_ask() {
            return Ok(PostedMessage::Initialize(newcomer, body.clone()));
        }
        let channel = Self::channel(headers, early, session.as_deref());
        let Some(handle) = resources::accept(&self.calls, &message, channel) else {
            return Ok(PostedMessage::Other(body.clone()));
        };
        let running = session.and_then(|session| session.start(id.clone(), handle.cancel_signal()));
        Ok(PostedMessage::Call(handle, running, body.clone()))
    }

    /// The client's session, if it has one. One that is over is an error.
    fn session(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Session>>, (StatusCode, ErrorResponse)> {
        let (Some(sessions), Some(id)) = (&self.sessions, session_id(headers)) else {
            return Ok(None);
        };
        let over = || {
            let code = error_codes::INVALID_REQUEST;
            let response = ErrorResponse::new(None, code, "Session not found");
            (
                StatusCode::NOT_FOUND,
                response.with_detail("the session has ended; `initialize` starts a new one"),
            )
        };
        sessions.find(id).map(Some).ok_or_else(over)
    }

    /// Completes an answer of `rmcp`: JSON with its charset, errors as JSON too, large texts in place.
    async fn finish(
        &self,
        response: axum::http::Response<
            http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>,
        >,
        handle: Option<CallHandle>,
    ) -> FinishedResponse {
        let (mut parts, body) = response.into_parts();
        let media = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media {
            Some(media) if media.starts_with("application/json") => {
                let Ok(body) = body.collect().await;
                let large_texts =
                    handle.as_ref().map(|handle| std::mem::take(&mut *lock(&handle.large_texts)));
                let crashed = handle.is_some_and(|handle| handle.has_crashed());
                let status = if crashed { StatusCode::INTERNAL_SERVER_ERROR } else { parts.status };
                let large_texts = large_texts.unwrap_or_default();
                let message = Outgoing::from_json(body.to_bytes().into(), large_texts);
                parts.headers.remove(CONTENT_TYPE);
                parts.headers.remove(CONTENT_LENGTH);
                FinishedResponse::Json(status, parts.headers, self.with_permit(message).await)
            }
            _ if parts.status.is_client_error() || parts.status.is_server_error() => {
                let Ok(body) = body.collect().await;
                let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                // What is JSON but no message is a bad request, whatever its media type.
                let status = match parts.status {
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
                    status => status,
                };
                FinishedResponse::Other(refuse(status, error_codes::INVALID_REQUEST, &text))
            }
            _ => FinishedResponse::Other(Response::from_parts(parts, Body::new(body))),
        }
    }

    /// Waits for a permit for a large message without one: an error, for instance, that repeats a long id.
    async fn with_permit(&self, mut message: Outgoing) -> Outgoing {
        let bytes = message.memory_bytes();
        if let (None, Some(budget)) = (&message.permit, self.calls.answer_memory.of(bytes)) {
            message.permit = Some(budget.acquire(bytes, Instant::now()).await);
        }
        message
    }
}

/// The session id of a request. Since 2026-07-28 there are no sessions.
fn session_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(SESSION_ID)?.to_str().ok()?;
    (version(headers) != b"2026-07-28").then_some(id)
}

/// True if the client accepts server-sent events.
fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut media =
        accepted.flat_map(|value| value.split(',')).filter_map(|one| one.split(';').next());
    media.any(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}

fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Refuses what would become too many objects.
fn check_size(
    id: Option<&RequestId>,
    bytes: usize,
    values: usize,
) -> Result<(), (StatusCode, ErrorResponse)> {
    if bytes <= ENVELOPE_MAX && values <= VALUES_MAX {
        return Ok(());
    }
    let refusal =
        ErrorResponse::new(id.cloned(), error_codes::INVALID_REQUEST, "Request too large");
    let detail = format!(
        "without a tool's arguments, a message may have at most {ENVELOPE_MAX} bytes and {VALUES_MAX} names and values"
    );
    Err((StatusCode::PAYLOAD_TOO_LARGE, refusal.with_detail(detail)))
}

/// Since 2026-07-28 headers say again what the body says. What they contradict is left to `rmcp`, which refuses it before
/// anything else is looked at.
fn contradicts(headers: &HeaderMap, name: &str, body: &str) -> bool {
    let said = headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    // What is encoded is none of our names.
    version(headers) == b"2026-07-28" && said != body.as_bytes() && !said.starts_with(b"=?")
}

/// Since 2026-07-28 an unknown method is not found, in HTTP's words too.
fn unknown_method(headers: &HeaderMap) -> StatusCode {
    if version(headers) == b"2026-07-28" { StatusCode::NOT_FOUND } else { StatusCode::OK }
}

fn version(headers: &HeaderMap) -> &[u8] {
    headers.get("mcp-protocol-version").map_or(&b""[..], HeaderValue::as_bytes)
}
