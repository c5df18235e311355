//! Who may come in over HTTP: by `Host`, by `Origin`, by token. Nothing behind it runs for anyone else.
//!
//! A web page that a user visits can send requests to this machine, and by DNS rebinding even under a name of its
//! own; but it cannot choose what `Host` and `Origin` say.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

use crate::calls::Calls;
use crate::fault::INVALID_REQUEST;
use crate::http::refuse;

/// The names under which this machine is itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub struct Door {
    /// Names besides loopback that `Host` and `Origin` may say.
    hosts: Vec<String>,
    token: Option<String>,
    calls: Arc<Calls>,
}

impl Door {
    pub fn new(hosts: Vec<String>, token: Option<String>, calls: Arc<Calls>) -> Self {
        Self { hosts, token, calls }
    }

    fn admits(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| {
            let is = |host: &str| host.eq_ignore_ascii_case(name);
            LOOPBACK.into_iter().any(is) || self.hosts.iter().any(|host| is(host))
        })
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response>> {
        // Exactly one, and what the request's target names besides must be one of ours too.
        let mut hosts = headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, _) => uri.authority().map(Authority::as_str),
            (Some(_), Some(_)) => None,
        };
        let target = uri.authority().is_none_or(|target| self.admits(host_name(target.as_str())));
        if !target || !self.admits(named.and_then(host_name)) {
            return Err(refuse(StatusCode::FORBIDDEN, INVALID_REQUEST, "Host not allowed").into());
        }
        for origin in headers.get_all(ORIGIN) {
            let name = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            if !self.admits(name.and_then(|(_, rest)| host_name(rest))) {
                return Err(
                    refuse(StatusCode::FORBIDDEN, INVALID_REQUEST, "Origin not allowed").into()
                );
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        // `/health` tells nobody anything, and those who ask it rarely carry tokens.
        if uri.path() == "/health" || bears(headers, token) {
            return Ok(());
        }
        let message = "A bearer token is required: Authorization: Bearer <FILE_EDITOR_TOKEN>";
        Err(unauthorized(message).into())
    }
}

/// Who bears no token that we know.
pub fn unauthorized(message: &str) -> Response {
    let mut refusal = refuse(StatusCode::UNAUTHORIZED, INVALID_REQUEST, message);
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refusal
}

/// `name` of `name:port`, `[::1]:port` or either alone.
fn host_name(authority: &str) -> Option<&str> {
    let (name, rest) = match authority.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    (!name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

pub fn bears(headers: &HeaderMap, token: &str) -> bool {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(given), None) = (given.next(), given.next()) else { return false };
    let given = given.as_bytes();
    let scheme = given.get(..7).unwrap_or_default();
    let given = given.get(7..).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"bearer ") && same(given, token.as_bytes())
}

/// Takes the same time wherever the difference is, so that a token cannot be guessed byte by byte.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    std::hint::black_box(differs) == 0 && one.len() == other.len()
}

pub async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    match door.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            door.calls.log_turned_away(refusal.status().as_u16());
            *refusal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_told_from_ports() {
        let check = |authority, name| assert_eq!(host_name(authority), name, "{authority}");
        check("localhost", Some("localhost"));
        check("localhost:8080", Some("localhost"));
        check("[::1]:8080", Some("::1"));
        check("[::1]", Some("::1"));
        check("127.0.0.1:1", Some("127.0.0.1"));
        check("localhost:80@evil.com", None);
        check("localhost:x", None);
        check("", None);
        check(":80", None);
        check("[::1", None);
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same(b"secret", b"secret"));
        for wrong in [&b""[..], b"secre", b"secrets", b"Secret", b"secreT"] {
            assert!(!same(wrong, b"secret"));
        }
    }
}
