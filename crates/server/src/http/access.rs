//! Access over HTTP: the checks of `Host`, `Origin` and the bearer token. No handler runs before them.
//!
//! A web page that a user visits can send requests to this machine, and by DNS rebinding even under a name of its
//! own; but it cannot choose what `Host` and `Origin` say.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{self, HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::call::Calls;
use crate::error_codes::INVALID_REQUEST;

use super::responses::refuse;

/// Loopback names.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// A host besides loopback that `Host` and `Origin` may name: at any port, or at one alone.
#[derive(Clone, Debug)]
pub struct AllowedHost {
    name: String,
    port: Option<u16>,
}

impl AllowedHost {
    /// Reads `name`, `name:port`, `[address]:port` or an address.
    pub fn parse(text: &str) -> Option<Self> {
        let is_address = text.parse::<Ipv6Addr>().is_ok();
        let Authority { name, port } =
            if is_address { Authority { name: text, port: None } } else { Authority::parse(text)? };
        let can_be_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        name.bytes().all(can_be_named).then(|| Self { name: name.to_owned(), port })
    }

    /// `defaults`: the ports that are meant if none is named.
    fn is(&self, named: &Authority, defaults: &[u16]) -> bool {
        let port = |port| named.port.map_or(defaults.contains(&port), |named| named == port);
        self.name.eq_ignore_ascii_case(named.name) && self.port.is_none_or(port)
    }
}

/// `name:port`, `[::1]:port` or either without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Authority<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(v6) => v6.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest {
            "" | ":" => None,
            rest => {
                let digits = rest.strip_prefix(':')?;
                // No sign.
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                Some(digits.parse().ok().filter(|_| is_number)?)
            }
        };
        (!name.is_empty()).then_some(Self { name, port })
    }
}

pub struct AccessCheck {
    hosts: Vec<AllowedHost>,
    token: Option<String>,
    calls: Arc<Calls>,
}

impl AccessCheck {
    pub fn new(hosts: Vec<AllowedHost>, token: Option<String>, calls: Arc<Calls>) -> Self {
        Self { hosts, token, calls }
    }

    /// `defaults`: the ports that are meant if none is named.
    fn allows(&self, authority: Option<&str>, defaults: &[u16]) -> bool {
        authority.and_then(Authority::parse).is_some_and(|named| {
            LOOPBACK.iter().any(|own| own.eq_ignore_ascii_case(named.name))
                || self.hosts.iter().any(|host| host.is(&named, defaults))
        })
    }

    /// True if the origin of a request is a page of an allowed host.
    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        let parts = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        parts.is_some_and(|(scheme, authority)| {
            let default = if scheme == "http" { HTTP } else { HTTPS };
            self.allows(Some(authority), &[default])
        })
    }

    fn verify(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response>> {
        // Exactly one, and what the request's target names besides must be one of ours too.
        let mut hosts = headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, _) => uri.authority().map(http::uri::Authority::as_str),
            (Some(_), Some(_)) => None,
        };
        let target = uri.authority().map(http::uri::Authority::as_str);
        // A proxy may have spoken HTTPS to the client.
        let allows = |authority| self.allows(authority, &[HTTP, HTTPS]);
        if target.is_some_and(|target| !allows(Some(target))) || !allows(named) {
            let refused = target.filter(|target| !allows(Some(target))).or(named).unwrap_or("");
            return Err(not_allowed("Host", refused, refused).into());
        }
        for origin in headers.get_all(ORIGIN) {
            if !self.allows_origin(origin) {
                let origin = origin.to_str().unwrap_or_default();
                let host = origin.split_once("://").map_or("", |(_, host)| host);
                return Err(not_allowed("Origin", origin, host).into());
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        // `/health` tells nobody anything, and those who ask it rarely carry tokens.
        if uri.path() == "/health" || has_token(headers, token) {
            return Ok(());
        }
        let message = "A bearer token is required: Authorization: Bearer <FILE_EDITOR_TOKEN>";
        Err(unauthorized(message).into())
    }
}

/// The answer to a request whose header names a foreign host, with the flag that would allow it.
fn not_allowed(header: &str, value: &str, host: &str) -> Response {
    let message = match AllowedHost::parse(host) {
        Some(_) => format!("{header} `{value}` is not allowed; add `--allow-host={host}`"),
        None => format!("{header} `{value}` is not allowed"),
    };
    refuse(StatusCode::FORBIDDEN, INVALID_REQUEST, &message)
}

/// The answer to a request without a known token.
pub fn unauthorized(message: &str) -> Response {
    let mut refusal = refuse(StatusCode::UNAUTHORIZED, INVALID_REQUEST, message);
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refusal
}

pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(given), None) = (given.next(), given.next()) else { return false };
    let given = given.as_bytes();
    let scheme = given.get(..7).unwrap_or_default();
    let given = given.get(7..).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"bearer ") && same(given, token.as_bytes())
}

/// Compares in a time that does not depend on where the difference is, so that a token cannot be guessed byte by byte.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    std::hint::black_box(differs) == 0 && one.len() == other.len()
}

/// Middleware that runs the check before any handler.
pub async fn check(
    State(access): State<Arc<AccessCheck>>,
    request: Request,
    next: Next,
) -> Response {
    match access.verify(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            access.calls.log_denied_access(refusal.status().as_u16());
            *refusal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_ports() {
        let check = |text, expected: Option<(&str, Option<u16>)>| {
            let expected = expected.map(|(name, port)| Authority { name, port });
            assert_eq!(Authority::parse(text), expected, "{text}");
        };
        check("localhost", Some(("localhost", None)));
        check("localhost:", Some(("localhost", None)));
        check("localhost:8080", Some(("localhost", Some(8080))));
        check("[::1]:8080", Some(("::1", Some(8080))));
        check("[::1]", Some(("::1", None)));
        check("127.0.0.1:1", Some(("127.0.0.1", Some(1))));
        for odd in
            ["localhost:80@evil.com", "a:x", "a:+1", "a:65536", "", ":80", "[::1", "[::1]8", "[]"]
        {
            check(odd, None);
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same(b"secret", b"secret"));
        for wrong in [&b""[..], b"secre", b"secrets", b"Secret", b"secreT"] {
            assert!(!same(wrong, b"secret"));
        }
    }
}
