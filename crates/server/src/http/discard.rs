//! Reads the rest of a request's body after an answer that came before its end.
//!
//! Many clients send all of a request before they read the answer. If the connection were closed meanwhile, the system
//! would tell them of a broken pipe and drop the answer (a 413, for instance) before they could read it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;

use crate::lock::lock;

/// A client that sends more than this after its answer is cut off.
const BYTES_MAX: u64 = 256 << 20;
const TIME_MAX: Duration = Duration::from_secs(10);
/// A client that sends nothing for so long is taken to have read its answer.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The body of a request, as its handler reads it.
pub struct RequestBody(Arc<Mutex<SharedBody>>);

/// The part of a body that the handler has not read.
struct SharedBody {
    body: Incoming,
    /// The client sends the body. One that asked whether it should has to be told so first.
    is_sent: bool,
}

/// The part of a body that is left once the request is answered.
pub struct UnreadBody(Arc<Mutex<SharedBody>>);

pub fn split(request: hyper::Request<Incoming>) -> (hyper::Request<RequestBody>, UnreadBody) {
    let is_sent = !request.headers().contains_key(EXPECT);
    let (parts, body) = request.into_parts();
    let unread = Arc::new(Mutex::new(SharedBody { body, is_sent }));
    let received = RequestBody(Arc::clone(&unread));
    (hyper::Request::from_parts(parts, received), UnreadBody(unread))
}

impl UnreadBody {
    /// Reads it in the background, within bounds, and throws it away.
    pub fn discard(self) {
        let is_over = {
            let unread = lock(&self.0);
            !unread.is_sent || unread.body.is_end_stream()
        };
        if !is_over {
            tokio::spawn(read_on(RequestBody(self.0)));
        }
    }
}

async fn read_on(mut body: RequestBody) {
    let (until, mut bytes) = (Instant::now() + TIME_MAX, 0);
    while bytes <= BYTES_MAX {
        let limit = until.min(Instant::now() + PAUSE_MAX);
        let Ok(Some(Ok(frame))) = tokio::time::timeout_at(limit.into(), body.frame()).await else {
            return;
        };
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let unread = &mut *lock(&self.0);
        unread.is_sent = true;
        Pin::new(&mut unread.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).body.size_hint()
    }
}
