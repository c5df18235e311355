//! A request over HTTP, from its head on: all that is behind the socket.

use std::collections::HashSet;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use server::Confirm;
use server::http::router;

use crate::serving::{HANG, Serving, check_message, runtime};

/// Whoever is let in gets an answer of ours, in time: JSON, and never that something broke.
pub fn http_bodies(bytes: &[u8]) {
    let serving = Serving::new(Confirm::Never);
    let Some(request) = request(&serving.addressed(bytes)) else { return };
    let is_head = request.method() == "HEAD";
    let runtime = runtime();
    let service = TowerToHyperService::new(router(&serving.calls, Vec::new(), None));
    let answer = runtime.block_on(async {
        let answered = async {
            let Ok(response) = service.call(request).await;
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("an answer comes whole").to_bytes();
            Response::from_parts(head, body)
        };
        tokio::time::timeout(HANG, answered).await.expect("an answer comes in time")
    });
    runtime.shutdown_timeout(HANG);
    assert!(!answer.status().is_server_error(), "{answer:?}");
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    match kind.unwrap_or_default() {
        kind if kind.starts_with("application/json") => {
            if !is_head {
                check_message(answer.body());
            }
        }
        "text/event-stream" => {
            let events = answer.body().split(|byte| *byte == b'\n');
            events.filter_map(|line| line.strip_prefix(b"data: ")).for_each(|event| {
                check_message(event);
            });
        }
        _ => check_plain(&answer),
    }
}

/// The few answers that have no words of ours.
fn check_plain(answer: &Response<hyper::body::Bytes>) {
    let known = HashSet::from([StatusCode::ACCEPTED, StatusCode::NO_CONTENT]);
    let is_refused = answer.status().is_client_error();
    assert!(is_refused || known.contains(&answer.status()), "{answer:?}");
}

/// A request as one would write it: its method and path, headers, a blank line, the body. `None` for what is refused
/// before it gets here.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let mut rest = bytes;
    let mut next = || {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = std::str::from_utf8(&rest[..end]).ok();
        rest = rest.get(end + 1..).unwrap_or_default();
        line
    };
    let (method, path) = next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    loop {
        let line = next()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request.body(Body::from(rest.to_vec())).ok()
}
