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
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::aside::Aside;
use crate::calls::Calls;
use crate::confirm::Confirm;
use crate::events;
use crate::http::{self, Bodies, method_not_allowed, refuse};
use crate::mcp::{self, Carried, Mcp, ToolCall, lock};
use crate::room::Share;
use crate::sessions::{Session, Sessions, UnderWay};
use crate::unstalled::Taker;
use crate::wire::{Envelope, MOST_VALUES, Outgoing, Refusal, Said};
use crate::{arguments, fault, resources};

/// What a message may have besides the arguments of a call.
const MOST_BYTES: usize = 64 * 1024;

pub const SESSION_ID: &str = "mcp-session-id";

/// A notification that nothing comes of.
const IGNORED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/ignored"}"#;

pub struct Endpoint {
    calls: Arc<Calls>,
    bodies: Arc<Bodies>,
    rmcp: StreamableHttpService<Arc<Mcp>, NeverSessionManager>,
    /// `None`: nobody is asked anything.
    sessions: Option<Sessions>,
}

/// The way of what is said before the answer.
type Say = UnboundedSender<(Value, Option<Share>)>;

/// What becomes of what a client posts.
enum Taken {
    Call(Carried, Option<UnderWay>, Bytes),
    Initialize(Aside, Bytes),
    Other(Bytes),
    /// An answer, which has found its question.
    Heard,
}

/// A call as `rmcp` is given it: without its arguments.
#[derive(Serialize)]
struct Forwarded<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    method: &'a str,
    params: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// An answer of `rmcp`, ready to be sent.
enum Finished {
    Json(StatusCode, HeaderMap, Outgoing),
    Other(Response),
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
        let sessions = (calls.options.confirm != Confirm::Never).then(Sessions::default);
        Self { calls, bodies, rmcp, sessions }
    }

    pub async fn answer(self: Arc<Self>, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let taker = parts.extensions.remove::<Taker>().unwrap_or_default();
        let (body, held) = match self.bodies.receive(&parts, body).await {
            Ok(received) => received,
            Err(refusal) => return refusal,
        };
        let (say, mut said) = mpsc::unbounded_channel();
        let message = match self.take(&parts.headers, &body, say) {
            Ok(message) => message,
            Err((status, refusal)) => {
                self.calls.log_refusal(&refusal);
                let refusal = self.with_room(refusal.answer()).await;
                return http::stream(status, refusal, &taker);
            }
        };
        drop(body);
        let (mut carried, mut under_way, mut newcomer) = (None, None, None);
        let message = match message {
            Taken::Call(call, listed, message) => {
                // The arguments are what is left of the body.
                call.hold(held);
                parts.extensions.insert(call.clone());
                (carried, under_way) = (Some(call), listed);
                message
            }
            Taken::Initialize(aside, message) => {
                newcomer = Some(aside);
                message
            }
            Taken::Other(message) => message,
            Taken::Heard => return accepted(),
        };
        // Any client gets plain JSON, whatever it says it accepts, unless there is something to say before.
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(ACCEPT, accepted);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        parts.headers.remove(CONTENT_LENGTH);
        let request = Request::from_parts(parts, Full::new(message));
        let endpoint = Arc::clone(&self);
        let mut answer = Box::pin(async move {
            let _under_way = under_way;
            let response = endpoint.rmcp.handle(request).await;
            endpoint.finish(response, carried).await
        });
        let finished = tokio::select! {
            biased;
            finished = &mut answer => finished,
            Some((first, _)) = said.recv() => {
                let answer = Box::pin(async move {
                    match answer.await {
                        Finished::Json(_, _, message) => Some(message),
                        Finished::Other(_) => None,
                    }
                });
                return events::stream(said, &first, answer, taker);
            }
        };
        match finished {
            Finished::Json(status, headers, message) => {
                let mut response = http::stream(status, message, &taker);
                response.headers_mut().extend(headers);
                if let (Some(sessions), Some(newcomer)) = (&self.sessions, newcomer)
                    && status == StatusCode::OK
                {
                    sessions.welcome(newcomer, response.headers_mut());
                }
                response
            }
            Finished::Other(response) => response,
        }
    }

    /// The end of a session, if there is one.
    pub fn end(&self, headers: &HeaderMap) -> Response {
        match (&self.sessions, session_id(headers)) {
            (Some(sessions), Some(id)) if sessions.close(id) => empty(StatusCode::NO_CONTENT),
            (Some(_), Some(_)) => {
                refuse(StatusCode::NOT_FOUND, fault::INVALID_REQUEST, "Session not found")
            }
            _ => method_not_allowed("POST"),
        }
    }

    /// How to reach the client while its call is under way. One that takes no events cannot be reached.
    fn aside(headers: &HeaderMap, say: Say, session: Option<&Session>) -> Option<Aside> {
        let questions = session.map(|session| Arc::clone(&session.questions));
        let say = move |message, share| drop(say.send((message, share)));
        takes_events(headers).then(|| Aside::new(say, questions))
    }

    /// Takes the call out of a `tools/call`; what is left for `rmcp` is small.
    fn take(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        say: Say,
    ) -> Result<Taken, (StatusCode, Refusal)> {
        let said = Said::parse(body).map_err(|refusal| (StatusCode::BAD_REQUEST, refusal))?;
        let session = self.session(headers)?;
        let envelope = match said {
            Said::Message(envelope) => envelope,
            Said::Answer(id, result) => {
                check_size(None, body.len(), arguments::count(body))?;
                let Some(session) = session else { return Ok(Taken::Other(body.clone())) };
                session.questions.answer(&id, result);
                return Ok(Taken::Heard);
            }
        };
        if let (Some(session), Some(id)) = (&session, envelope.cancelled()) {
            session.recall(&id);
        }
        let Envelope { id, method, params } = envelope;
        let Some(id) = id else {
            // A notification that makes no sense is ignored like any other.
            let readable = check_size(None, body.len(), arguments::count(body)).is_ok()
                && serde_json::from_slice::<ClientJsonRpcMessage>(body).is_ok();
            let ignored = Bytes::from_static(IGNORED);
            return Ok(Taken::Other(if readable { body.clone() } else { ignored }));
        };
        if let RequestId::String(id) = &id {
            check_size(None, id.len(), 0)?;
        }
        if method != "tools/call" {
            return self.take_request(headers, &id, &method, body, say, session);
        }
        let given = params.map_or("{}", RawValue::get);
        let mut rest: BTreeMap<Cow<str>, &RawValue> =
            serde_json::from_str(given).unwrap_or_default();
        rest.remove("arguments");
        let bytes = rest.iter().map(|(name, value)| name.len() + value.get().len()).sum();
        let values = rest.values().map(|value| arguments::count(value.get().as_bytes())).sum();
        check_size(Some(&id), bytes, values)?;
        let call = ToolCall::parse(&id, params).map_err(|refusal| (StatusCode::OK, refusal))?;
        // What was not read may be no text at all.
        rest.retain(|name, _| ToolCall::MEMBERS.contains(&name.as_ref()));
        let forwarded = Forwarded { jsonrpc: "2.0", id: &id, method: &method, params: rest };
        let message = serde_json::to_vec(&forwarded).unwrap_or_default().into();
        if contradicts(headers, "mcp-method", &method)
            || contradicts(headers, "mcp-name", &call.name)
        {
            return Ok(Taken::Other(message));
        }
        let aside = Self::aside(headers, say, session.as_deref());
        let carried = Carried::take(&self.calls, &id, &call, aside)
            .map_err(|refusal| (StatusCode::OK, refusal))?;
        let under_way = session.and_then(|session| session.start(id, carried.recall()));
        Ok(Taken::Call(carried, under_way, message))
    }

    /// Any other request.
    fn take_request(
        &self,
        headers: &HeaderMap,
        id: &RequestId,
        method: &str,
        body: &Bytes,
        say: Say,
        session: Option<Arc<Session>>,
    ) -> Result<Taken, (StatusCode, Refusal)> {
        let known = mcp::SERVED.contains(&method);
        if !known && !contradicts(headers, "mcp-method", method) {
            return Err((unknown_method(headers), mcp::method_not_found(id, method, None)));
        }
        check_size(Some(id), body.len(), arguments::count(body))?;
        if !known {
            return Ok(Taken::Other(body.clone()));
        }
        let message = mcp::request(id, method, body).map_err(|refusal| match refusal.code {
            fault::METHOD_NOT_FOUND => (unknown_method(headers), refusal),
            _ => (StatusCode::OK, refusal),
        })?;
        let newcomer = Aside::new(|_, _| {}, Some(Arc::default()));
        newcomer.meet(&message);
        if newcomer.can_ask() {
            return Ok(Taken::Initialize(newcomer, body.clone()));
        }
        let aside = Self::aside(headers, say, session.as_deref());
        let Some(carried) = resources::take(&self.calls, &message, aside) else {
            return Ok(Taken::Other(body.clone()));
        };
        let under_way = session.and_then(|session| session.start(id.clone(), carried.recall()));
        Ok(Taken::Call(carried, under_way, body.clone()))
    }

    /// The client's session, if it has one; if that is over it has to be told.
    fn session(&self, headers: &HeaderMap) -> Result<Option<Arc<Session>>, (StatusCode, Refusal)> {
        let (Some(sessions), Some(id)) = (&self.sessions, session_id(headers)) else {
            return Ok(None);
        };
        let over = || {
            let refusal = Refusal::new(None, fault::INVALID_REQUEST, "Session not found");
            (StatusCode::NOT_FOUND, refusal.with_detail("it is over; `initialize` opens another"))
        };
        sessions.find(id).map(Some).ok_or_else(over)
    }

    /// The answer as our clients are promised it: JSON with its charset, errors as JSON too, large texts in place.
    async fn finish(
        &self,
        response: axum::http::Response<
            http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>,
        >,
        carried: Option<Carried>,
    ) -> Finished {
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
                parts.headers.remove(CONTENT_TYPE);
                parts.headers.remove(CONTENT_LENGTH);
                Finished::Json(status, parts.headers, self.with_room(message).await)
            }
            _ if parts.status.is_client_error() || parts.status.is_server_error() => {
                let Ok(body) = body.collect().await;
                let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                // What is JSON but no message is a bad request, whatever its media type.
                let status = match parts.status {
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
                    status => status,
                };
                Finished::Other(refuse(status, fault::INVALID_REQUEST, &text))
            }
            _ => Finished::Other(Response::from_parts(parts, Body::new(body))),
        }
    }

    /// What is no file's text can be long too, as an id comes back that was: then it waits for its room here.
    async fn with_room(&self, mut message: Outgoing) -> Outgoing {
        if let (None, Some(room)) = (&message.share, self.calls.answers.of(message.holds())) {
            message.share = Some(room.take(message.holds(), Instant::now()).await);
        }
        message
    }
}

/// The session that a client says it is in. Since 2026-07-28 there are none.
fn session_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(SESSION_ID)?.to_str().ok()?;
    (version(headers) != b"2026-07-28").then_some(id)
}

/// Whether the client says that it takes a stream of events.
fn takes_events(headers: &HeaderMap) -> bool {
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
