//! HTTP: the listener, the connections and the router. What is behind a path is in `endpoint` (MCP) and `rest`.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::calls::Calls;
use crate::door::{self, Door};
use crate::endpoint::Endpoint;
use crate::signal::Signals;
use crate::unstalled::Unstalled;
use crate::wire::Outgoing;
use crate::{fault, memory, rest, watch};

/// A client that does not finish its headers, or says nothing for so long, is not waited for.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 64;
/// Bytes of headers, or of a body that is being read, that a connection may hold.
const MAX_BUFFER: usize = 64 * 1024;
/// What a body may be longer than the largest file, for everything around the text.
const ENVELOPE: u64 = 64 * 1024;
/// Bytes of large bodies held at once; more wait. A body is large from `ENVELOPE` on.
const LARGE_BODIES: u64 = 64 << 20;
/// How long the beginning of a body may take, and what a large one may take longer than its size says.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a large body that must come in a second.
const SLOWEST: u64 = 1 << 20;
/// A connection that takes nothing of its answer for so long is closed.
pub const ANSWER_STALL: Duration = Duration::from_secs(30);
/// Descriptors that connections leave for files.
const FOR_FILES: u64 = 128;
/// How long a stop waits for those who are being answered.
const DRAIN: Duration = Duration::from_millis(1600);
/// A pause before the next connection is taken, when the process can open no more.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Where to listen, and whom to let in.
pub struct Options {
    pub listeners: Vec<StdListener>,
    /// Names besides loopback that `Host` may say.
    pub hosts: Vec<String>,
    pub token: Option<String>,
}

/// Binds what `--host` and `--port` name: `localhost` is both loopback addresses.
pub fn bind(host: &str, port: u16) -> io::Result<Vec<StdListener>> {
    let addresses: Vec<SocketAddr> = if host == "localhost" {
        ["127.0.0.1", "::1"]
            .iter()
            .filter_map(|ip| ip.parse().ok())
            .map(|ip: IpAddr| (ip, port).into())
            .collect()
    } else {
        (host, port).to_socket_addrs()?.collect()
    };
    let mut listeners = Vec::new();
    for address in &addresses {
        match StdListener::bind(address) {
            Ok(listener) => listeners.push(listener),
            // A machine without IPv6 still has its other loopback address.
            Err(error)
                if host == "localhost"
                    && address.is_ipv6()
                    && error.kind() != io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

/// Whether everything is bound to addresses that only this machine reaches.
pub fn is_loopback(listeners: &[StdListener]) -> bool {
    let local =
        |listener: &StdListener| listener.local_addr().is_ok_and(|at| at.ip().is_loopback());
    listeners.iter().all(local)
}

/// A listening socket that whoever started us has opened, by the `LISTEN_FDS` convention.
#[cfg(unix)]
pub fn inherited() -> Option<StdListener> {
    use std::os::fd::FromRawFd as _;
    const FIRST: i32 = 3;
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) || number("LISTEN_FDS")? == 0 {
        return None;
    }
    #[expect(unsafe_code, reason = "the convention is a bare number")]
    // SAFETY: whoever set LISTEN_PID to our own id left this descriptor open for us, and nobody else here uses it.
    let listener = unsafe { StdListener::from_raw_fd(FIRST) };
    listener.local_addr().is_ok().then_some(listener)
}

#[cfg(not(unix))]
pub fn inherited() -> Option<StdListener> {
    None
}

/// Connections are limited only by what the process may open: ask for as much as it may.
#[cfg(unix)]
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(not(unix))]
pub fn raise_descriptor_limit() {}

/// Serves until a signal comes.
pub async fn serve(calls: Arc<Calls>, options: Options, mut signals: Signals) -> io::Result<()> {
    let service = TowerToHyperService::new(router(&calls, options.hosts, options.token));
    tokio::spawn(watch::watch(Arc::clone(&calls)));
    tokio::spawn(memory::give_back_when_idle(Arc::clone(&calls)));
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_BUFFER);

    let (connections, mut accepted) = tokio::sync::mpsc::channel(64);
    let places = Arc::new(Semaphore::new(connections_at_most()));
    for listener in options.listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        tokio::spawn(accept(listener, Arc::clone(&places), connections.clone()));
    }
    drop(connections);
    let mut stop = pin!(signals.stop());
    loop {
        let (stream, place): Accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accepted.recv() => match accepted {
                Some(accepted) => accepted,
                None => break,
            },
        };
        let _ = stream.set_nodelay(true);
        let connection =
            http.serve_connection(TokioIo::new(Unstalled::new(stream)), service.clone());
        let (connection, calls) = (graceful.watch(connection), Arc::clone(&calls));
        tokio::spawn(async move {
            let _ = connection.await;
            drop(place);
            calls.stir();
        });
    }
    // The port is free at once, calls that wait for a lock are refused, those under way are answered.
    drop(accepted);
    calls.stop();
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    Ok(())
}

/// A connection and its place among those that may be open.
type Accepted = (TcpStream, Option<OwnedSemaphorePermit>);

/// Takes connections until nobody wants them; more than there are places for wait in the kernel.
async fn accept(
    listener: TcpListener,
    places: Arc<Semaphore>,
    connections: tokio::sync::mpsc::Sender<Accepted>,
) {
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.ok();
            listener.accept().await.map(|(stream, _)| (stream, place))
        };
        tokio::select! {
            () = connections.closed() => return,
            accepted = accepted => match accepted {
                Ok(accepted) => if connections.send(accepted).await.is_err() { return },
                // Out of descriptors, mostly: those that are open go on, and some will end.
                Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
            },
        }
    }
}

/// As many as the process may open, less what files need.
fn connections_at_most() -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let limit = None::<u64>;
    let most = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit.saturating_sub(FOR_FILES).max(FOR_FILES / 8)).unwrap_or(usize::MAX)
    });
    most.min(Semaphore::MAX_PERMITS)
}

fn router(calls: &Arc<Calls>, hosts: Vec<String>, token: Option<String>) -> Router {
    let bodies = Arc::new(Bodies::new(calls.limits.max_size));
    let endpoint = Arc::new(Endpoint::new(Arc::clone(calls), Arc::clone(&bodies)));
    let mcp = post(move |request: Request| {
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.answer(request).await }
    })
    .fallback(|| async { method_not_allowed("POST") });
    let mut router = Router::new().route("/", mcp.clone()).route("/mcp", mcp);
    for entry in &calls.options.methods {
        let (entry, calls, bodies) = (*entry, Arc::clone(calls), Arc::clone(&bodies));
        let method = post(move |request: Request| {
            let (calls, bodies) = (Arc::clone(&calls), Arc::clone(&bodies));
            async move { rest::answer(entry, calls, &bodies, request).await }
        });
        let method = method.fallback(|| async { method_not_allowed("POST") });
        router = router.route(&format!("/{}", entry.name), method);
    }
    let door = Door::new(hosts, token, Arc::clone(calls));
    let health =
        get(|| async { answer(StatusCode::OK, Outgoing::new(&json!({ "status": "ok" }))) })
            .fallback(|| async { method_not_allowed("GET, HEAD") });
    router
        .route("/health", health)
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, fault::METHOD_NOT_FOUND, "Not found") })
        .layer(axum::middleware::from_fn_with_state(Arc::new(door), door::guard))
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let mut refusal =
        refuse(StatusCode::METHOD_NOT_ALLOWED, fault::METHOD_NOT_FOUND, "Method not allowed");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

/// Bodies on their way in: how large, of what type, and how many bytes of them at once.
pub struct Bodies {
    longest: u64,
    large: Arc<Semaphore>,
}

/// A body's share of what large bodies may hold, from its arrival until its call is answered.
pub type Held = Option<OwnedSemaphorePermit>;

impl Bodies {
    fn new(max_size: u64) -> Self {
        let longest = max_size + ENVELOPE;
        let budget = LARGE_BODIES.max(2 * longest);
        let large = Semaphore::new(usize::try_from(budget).unwrap_or(usize::MAX >> 4));
        Self { longest, large: Arc::new(large) }
    }

    /// Reads a JSON body; what is too large is refused without being read.
    pub async fn receive(&self, parts: &Parts, body: Body) -> Result<(Bytes, Held), Response> {
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced: Option<u64> = announced.and_then(|value| value.parse().ok());
        if announced.is_some_and(|bytes| bytes > self.longest) {
            return Err(too_large());
        }
        if !is_json(&parts.headers) {
            let message = "Content-Type must be application/json";
            return Err(refuse(StatusCode::BAD_REQUEST, fault::INVALID_REQUEST, message));
        }
        self.collect(body, announced.unwrap_or(self.longest)).await
    }

    /// A large body waits for all it may need at once, so that bodies never wait for each other; one that then does not
    /// come fast enough is given up, and one of which little has come holds nothing.
    async fn collect(&self, mut body: Body, size: u64) -> Result<(Bytes, Held), Response> {
        let mut bytes = Vec::new();
        let mut held: Held = None;
        let mut until = Instant::now() + BODY_PATIENCE;
        loop {
            let missing = || {
                let message = "The request's body did not arrive";
                refuse(StatusCode::BAD_REQUEST, fault::INVALID_REQUEST, message)
            };
            let frame = tokio::time::timeout_at(until.into(), body.frame()).await;
            let data = match frame.map_err(|_| missing())? {
                None => return Ok((bytes.into(), held)),
                Some(frame) => frame.map_err(|_| missing())?.into_data().unwrap_or_default(),
            };
            let arrived = (bytes.len() + data.len()) as u64;
            if arrived > self.longest {
                return Err(too_large());
            }
            if arrived > ENVELOPE && held.is_none() {
                let share = u32::try_from(size).unwrap_or(u32::MAX);
                held = Arc::clone(&self.large).acquire_many_owned(share).await.ok();
                until = Instant::now() + BODY_PATIENCE + Duration::from_secs(size / SLOWEST);
            }
            bytes.extend_from_slice(&data);
        }
    }
}

fn too_large() -> Response {
    refuse(StatusCode::PAYLOAD_TOO_LARGE, fault::INVALID_REQUEST, "Request too large")
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

pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A JSON answer; a large one is streamed.
pub fn answer(status: StatusCode, message: Outgoing) -> Response {
    let mut response = Response::new(Body::new(Streamed::new(message)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// What is wrong, and nothing else.
pub fn refuse(status: StatusCode, code: i32, message: &str) -> Response {
    answer(status, Outgoing::new(&json!({ "error": { "code": code, "message": message } })))
}

/// An answer as a body: made chunk by chunk, as fast as the client takes it.
struct Streamed {
    first: Option<Bytes>,
    /// What is left.
    rest: Option<Outgoing>,
}

impl Streamed {
    /// The first chunk is made at once: most answers have no other, and their length is known.
    fn new(mut message: Outgoing) -> Self {
        let mut buffer = Vec::new();
        let more = message.fill(&mut buffer);
        Self { first: Some(buffer.into()), rest: more.then_some(message) }
    }
}

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let chunk = if let Some(first) = self.first.take() {
            first
        } else if let Some(rest) = &mut self.rest {
            let mut buffer = Vec::with_capacity(2 * MAX_BUFFER);
            if !rest.fill(&mut buffer) {
                self.rest = None;
            }
            buffer.into()
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
