//! An answer with messages before it, as server-sent events. The last event is the answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Interval, interval_at};

use crate::memory_budget::Permit;
use crate::outgoing::Outgoing;

use super::responses::ResponseBody;
use super::stall_timeout::TransferMonitor;

/// Between two comments that keep proxies from closing the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The answer, once it is made; `None` if there is none.
pub type FinalResponse = Pin<Box<dyn Future<Output = Option<Outgoing>> + Send>>;

/// Streams `messages` before the answer, each when it is sent. If the client stops reading, the answer is dropped.
pub fn stream(
    messages: UnboundedReceiver<(Value, Option<Permit>)>,
    first: &Value,
    answer: FinalResponse,
    monitor: TransferMonitor,
) -> Response {
    let events = Events {
        waiting: VecDeque::from([Outgoing::new(first)]),
        current: None,
        messages,
        answer: Some(answer),
        keep_alive: interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE),
        monitor,
    };
    let mut response = Response::new(Body::new(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

struct Events {
    waiting: VecDeque<Outgoing>,
    /// The event that is being sent.
    current: Option<ResponseBody>,
    messages: UnboundedReceiver<(Value, Option<Permit>)>,
    answer: Option<FinalResponse>,
    keep_alive: Interval,
    monitor: TransferMonitor,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            if let Some(current) = &mut this.current {
                match Pin::new(current).poll_frame(cx) {
                    Poll::Ready(None) => this.current = None,
                    frame => return frame,
                }
            }
            if let Some(next) = this.waiting.pop_front() {
                this.current = Some(ResponseBody::new(next.into_event(), &this.monitor));
                continue;
            }
            let Some(answer) = &mut this.answer else { return Poll::Ready(None) };
            let answered = answer.as_mut().poll(cx);
            // Messages that were sent before the answer was made come before it.
            while let Poll::Ready(Some((message, _))) = this.messages.poll_recv(cx) {
                this.waiting.push_back(Outgoing::new(&message));
            }
            if let Poll::Ready(answer) = answered {
                this.waiting.extend(answer);
                this.answer = None;
            } else if this.waiting.is_empty() {
                let tick = this.keep_alive.poll_tick(cx);
                return tick.map(|_| Some(Ok(Frame::data(Bytes::from_static(b":\n\n")))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;

    #[tokio::test]
    async fn what_was_said_before_the_answer_is_sent_before_it() {
        let (say, messages) = unbounded_channel();
        let speak = move |word: u32| say.send((json!(word), None)).expect("somebody listens");
        speak(2);
        let answer = async move {
            speak(3);
            Some(Outgoing::new(&json!(4)))
        };
        let response = stream(messages, &json!(1), Box::pin(answer), TransferMonitor::default());
        let body = response.into_body().collect().await.expect("it ends").to_bytes();
        assert_eq!(body, "data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n");
    }

    #[tokio::test]
    async fn a_stream_with_nothing_to_say_stays_alive() {
        let (_say, messages) = unbounded_channel();
        let mut events = Events {
            waiting: VecDeque::new(),
            current: None,
            messages,
            answer: Some(Box::pin(std::future::pending())),
            keep_alive: interval_at(Instant::now(), Duration::from_millis(1)),
            monitor: TransferMonitor::default(),
        };
        for _ in 0..2 {
            let frame = events.frame().await.expect("it goes on").expect("it does not fail");
            assert_eq!(frame.into_data().expect("bytes"), ":\n\n");
        }
    }
}
