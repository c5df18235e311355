//! Request bodies: how large they may be, of what type, and how much memory they may take together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tools::FailureKind;

use crate::call::Calls;
use crate::memory_budget::{
    BYTES_PER_SECOND_MIN, MemoryBudget, MemoryBudgets, Permit, TransferRate, UNCOUNTED_MAX,
    WAITER_CHECK,
};
use crate::{error_codes, message};

use super::responses::refuse;

/// How long the beginning of a body may take, and what a large one may take longer than its size says.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Receives bodies, within their memory budgets.
pub struct Bodies {
    calls: Arc<Calls>,
    body_max: u64,
    budgets: MemoryBudgets,
}

/// A body's permit, from its arrival until its answer is made.
pub type BodyPermit = Option<Permit>;

impl Bodies {
    pub fn new(calls: Arc<Calls>) -> Self {
        let body_max = calls.limits.max_size + message::OVERHEAD_MAX;
        Self { calls, body_max, budgets: MemoryBudgets::new(body_max) }
    }

    /// Reads a JSON body; what is too large is refused without being read.
    pub async fn receive(
        &self,
        parts: &Parts,
        body: Body,
    ) -> Result<(Bytes, BodyPermit), Response> {
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced: Option<u64> = announced.and_then(|value| value.parse().ok());
        if announced.is_some_and(|bytes| bytes > self.body_max) {
            return Err(too_large());
        }
        if !is_json(&parts.headers) {
            let message = "Content-Type must be application/json";
            return Err(refuse(StatusCode::BAD_REQUEST, error_codes::INVALID_REQUEST, message));
        }
        if !is_plain(&parts.headers) {
            let message = "Transfer-Encoding must be chunked or absent";
            return Err(refuse(StatusCode::BAD_REQUEST, error_codes::INVALID_REQUEST, message));
        }
        self.collect(body, announced.unwrap_or(self.body_max)).await
    }

    /// Reads a body. A large one waits for all the memory that it may need at once, so that bodies never wait for each other.
    /// One that then does not come fast enough is given up, sooner if others wait. A small one has no permit.
    async fn collect(&self, body: Body, size: u64) -> Result<(Bytes, BodyPermit), Response> {
        let (came, mut bytes) = (Instant::now(), Vec::new());
        let mut arriving = PartialBody::new(body);
        while let Some(data) = arriving.next().await? {
            let pending = bytes.len() + data.len();
            if pending as u64 > self.body_max {
                return Err(too_large());
            }
            if pending > UNCOUNTED_MAX && arriving.permit.is_none() {
                let needed = usize::try_from(size).unwrap_or(usize::MAX).max(pending);
                if let Some(budget) = self.budgets.of(needed) {
                    arriving.permit = Some(self.wait_for(budget, needed, came).await?);
                }
                // The time so far was not the client's.
                let timeout = BODY_TIMEOUT + Duration::from_secs(size / BYTES_PER_SECOND_MIN);
                arriving.until = Instant::now() + timeout;
            }
            bytes.extend_from_slice(&data);
        }
        let mut permit = arriving.permit;
        if let Some(permit) = &mut permit {
            permit.shrink_to(bytes.capacity());
        }
        Ok((bytes.into(), permit))
    }

    /// Waits for memory. A body that gets none is refused when a call would have timed out.
    async fn wait_for(
        &self,
        budget: &Arc<MemoryBudget>,
        bytes: usize,
        came: Instant,
    ) -> Result<Permit, Response> {
        let why = tokio::select! {
            biased;
            permit = budget.acquire(bytes, came) => return Ok(permit),
            () = self.calls.stopped() => "The server is stopping; nothing was written",
            () = tokio::time::sleep(self.calls.limits.timeout) => {
                "The server is busy; nothing was written, try again"
            }
        };
        let code = error_codes::code(FailureKind::TimedOut).number;
        Err(refuse(StatusCode::REQUEST_TIMEOUT, code, why))
    }
}

/// A body that is being received.
struct PartialBody {
    body: Body,
    until: Instant,
    rate: TransferRate,
    permit: Option<Permit>,
}

impl PartialBody {
    fn new(body: Body) -> Self {
        let until = Instant::now() + BODY_TIMEOUT;
        Self { body, until, rate: TransferRate::default(), permit: None }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Response> {
        let missing = || {
            let message = "The request body did not arrive in time";
            refuse(StatusCode::BAD_REQUEST, error_codes::INVALID_REQUEST, message)
        };
        loop {
            let now = Instant::now();
            self.rate.wait(now);
            let waited_for =
                self.permit.as_ref().is_some_and(|permit| permit.budget().has_waiters());
            if now >= self.until || (waited_for && self.rate.is_too_slow(now)) {
                return Err(missing());
            }
            let look =
                if self.permit.is_some() { self.until.min(now + WAITER_CHECK) } else { self.until };
            match tokio::time::timeout_at(look.into(), self.body.frame()).await {
                Err(_) => {}
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => {
                    let data = frame.map_err(|_| missing())?.into_data().unwrap_or_default();
                    self.rate.add(data.len() as u64, Instant::now());
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn too_large() -> Response {
    refuse(StatusCode::PAYLOAD_TOO_LARGE, error_codes::INVALID_REQUEST, "Request too large")
}

/// `application/json`, without a charset or with that of JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}

/// True if the body has no coding besides chunks: compressed bodies are not supported.
fn is_plain(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}
