//! HTTP responses: short ones, errors, and large ones that are streamed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;

use crate::error_codes;
use crate::outgoing::Outgoing;

use super::stall_timeout::{MonitoredPermit, TransferMonitor};

/// Bytes that a chunk of an answer mostly takes, with its escapes.
const CHUNK: usize = 128 * 1024;

pub fn method_not_allowed(allowed: &'static str) -> Response {
    let mut refusal =
        refuse(StatusCode::METHOD_NOT_ALLOWED, error_codes::METHOD_NOT_FOUND, "Method not allowed");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A short JSON answer.
pub fn answer(status: StatusCode, message: Outgoing) -> Response {
    stream(status, message, &TransferMonitor::default())
}

/// A JSON answer. A large one is made while the client reads it.
pub fn stream(status: StatusCode, message: Outgoing, monitor: &TransferMonitor) -> Response {
    let mut response = Response::new(Body::new(ResponseBody::new(message, monitor)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// An error as a JSON answer.
pub fn refuse(status: StatusCode, code: i32, message: &str) -> Response {
    answer(status, Outgoing::new(&json!({ "error": { "code": code, "message": message } })))
}

/// An answer as a body: made chunk by chunk, as fast as the client reads it.
pub struct ResponseBody {
    first: Option<Bytes>,
    /// The part that is not made yet.
    rest: Option<Outgoing>,
    permit: Option<Arc<MonitoredPermit>>,
}

/// A part of an answer. It has the permit too, because it may be the last that is read.
struct Chunk {
    bytes: Vec<u8>,
    #[expect(dead_code, reason = "held, not read")]
    permit: Arc<MonitoredPermit>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseBody {
    /// Makes the first chunk: most answers have no other, and so a known length.
    pub fn new(mut message: Outgoing, monitor: &TransferMonitor) -> Self {
        let mut buffer = Vec::new();
        let more = message.fill(&mut buffer);
        let permit = message.permit.take();
        let rest = more.then_some(message);
        let permit = permit.map(|mut permit| {
            permit.shrink_to(buffer.capacity() + rest.as_ref().map_or(0, Outgoing::memory_bytes));
            Arc::new(monitor.hold(permit))
        });
        Self { first: Some(chunk(buffer, permit.as_ref())), rest, permit }
    }
}

fn chunk(bytes: Vec<u8>, permit: Option<&Arc<MonitoredPermit>>) -> Bytes {
    match permit {
        Some(permit) => Bytes::from_owner(Chunk { bytes, permit: Arc::clone(permit) }),
        None => bytes.into(),
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let chunk = if let Some(first) = self.first.take() {
            first
        } else if let Some(rest) = &mut self.rest {
            let mut buffer = Vec::with_capacity(CHUNK);
            if !rest.fill(&mut buffer) {
                self.rest = None;
            }
            chunk(buffer, self.permit.as_ref())
        } else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(Ok(http_body::Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match (&self.first, &self.rest) {
            (Some(first), None) => http_body::SizeHint::with_exact(first.len() as u64),
            _ => http_body::SizeHint::default(),
        }
    }
}
