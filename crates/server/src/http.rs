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
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tools::Kind;

use crate::calls::Calls;
use crate::discard::{self, Received};
use crate::door::{self, AllowedHost, Door};
use crate::endpoint::Endpoint;
use crate::room::{LOOK, Pace, Room, Rooms, SLOWEST, Share, UNCOUNTED};
use crate::signal::Signals;
use crate::unstalled::{Kept, Taker, Unstalled};
use crate::wire::Outgoing;
use crate::{fault, memory, rest, watch};

/// A client that does not finish its headers, or says nothing for so long, is not waited for.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 64;
/// Bytes of headers, or of a body that is being read, that a connection may hold.
const MAX_BUFFER: usize = 16 * 1024;
/// Bytes that the system may hold for a client that does not take them. Small enough to see soon that it does not.
const SEND_BUFFER: usize = 256 * 1024;
/// What a body may be longer than the largest file, for everything around the text.
pub(crate) const ENVELOPE: u64 = 64 * 1024;
/// How long the beginning of a body may take, and what a large one may take longer than its size says.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// A connection that takes nothing of its answer for so long is closed, whoever waits.
const ANSWER_STALL: Duration = Duration::from_secs(30);
/// What a chunk of an answer usually takes, escapes and all.
const CHUNK: usize = 128 * 1024;
/// Connections that may wait in the kernel until they are taken, if it lets them.
const BACKLOG: i32 = 4096;
/// Descriptors that connections leave for files.
const FOR_FILES: u64 = 128;
/// How long a stop waits for those who are being answered.
const DRAIN: Duration = Duration::from_millis(1600);
/// A pause before the next connection is taken, when the process can open no more.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Where to listen, and whom to let in.
pub struct Options {
    pub listeners: Vec<StdListener>,
    pub hosts: Vec<AllowedHost>,
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
    let left = Arc::clone(&calls);
    // Calls that wait for a lock are refused, those under way are answered.
    let stop = async {
        signals.stop().await;
        calls.stop();
    };
    let answer = move |request| service.call(request);
    serve_connections(options.listeners, answer, move || left.stir(), stop).await
}

/// Serves every connection, until `stop` is done; `left` is told of each that has ended.
pub async fn serve_connections<A>(
    listeners: Vec<StdListener>,
    answer: impl Fn(hyper::Request<Received>) -> A + Clone + Send + 'static,
    left: impl Fn() + Clone + Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    A: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_BUFFER);

    let (connections, mut accepted) = tokio::sync::mpsc::channel(64);
    let places = Arc::new(Semaphore::new(connections_at_most()));
    for listener in listeners {
        listener.set_nonblocking(true)?;
        // The standard library asks for few, and whoever finds no place has to try again a second later.
        let _ = socket2::SockRef::from(&listener).listen(BACKLOG);
        let listener = TcpListener::from_std(listener)?;
        tokio::spawn(accept(listener, Arc::clone(&places), connections.clone()));
    }
    drop(connections);
    let mut stop = pin!(stop);
    loop {
        let (stream, place): Accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accepted.recv() => match accepted {
                Some(accepted) => accepted,
                None => break,
            },
        };
        let _ = stream.set_nodelay(true);
        let _ = socket2::SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
        let taker = Taker::default();
        let stream = TokioIo::new(Unstalled::new(stream, taker.clone(), ANSWER_STALL));
        let answer = answer.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(taker.clone());
            let (request, rest) = discard::split(request);
            let answer = answer(request);
            async move {
                let answer = answer.await;
                rest.discard();
                answer
            }
        });
        let connection = graceful.watch(http.serve_connection(stream, service));
        let left = left.clone();
        tokio::spawn(async move {
            let _ = connection.await;
            drop(place);
            left();
        });
    }
    // The port is free at once.
    drop(accepted);
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

/// What is behind each path, for those whom the door lets in.
pub fn router(calls: &Arc<Calls>, hosts: Vec<AllowedHost>, token: Option<String>) -> Router {
    let bodies = Arc::new(Bodies::new(Arc::clone(calls)));
    let endpoint = Arc::new(Endpoint::new(Arc::clone(calls), Arc::clone(&bodies)));
    let sessions = Arc::clone(&endpoint);
    let mcp = post(move |request: Request| Arc::clone(&endpoint).answer(request))
        .delete(move |headers: HeaderMap| async move { sessions.end(&headers) })
        .fallback(|| async { method_not_allowed("POST") });
    let mut router = Router::new().route("/", mcp.clone()).route("/mcp", mcp);
    for entry in calls.options.methods() {
        let (calls, bodies) = (Arc::clone(calls), Arc::clone(&bodies));
        let method = post(move |request: Request| {
            let (calls, bodies) = (Arc::clone(&calls), Arc::clone(&bodies));
            async move { rest::answer(entry, calls, &bodies, request).await }
        });
        let method = method.fallback(|| async { method_not_allowed("POST") });
        router = router.route(&format!("/{}", entry.name), method);
    }
    let door = Door::new(hosts, token, Arc::clone(calls));
    let unknown = Arc::clone(calls);
    let health =
        get(|| async { answer(StatusCode::OK, Outgoing::new(&json!({ "status": "ok" }))) })
            .fallback(|| async { method_not_allowed("GET, HEAD") });
    router
        .route("/health", health)
        .fallback(move |uri: Uri| async move { not_found(&unknown, uri.path()) })
        .layer(axum::middleware::from_fn_with_state(Arc::new(door), door::guard))
}

fn not_found(calls: &Calls, path: &str) -> Response {
    let reason = path.strip_prefix('/').and_then(|name| calls.options.unserved_reason(name));
    let message = reason.map_or("Not found".into(), |reason| format!("Not found: {reason}"));
    refuse(StatusCode::NOT_FOUND, fault::METHOD_NOT_FOUND, &message)
}

pub fn method_not_allowed(allowed: &'static str) -> Response {
    let mut refusal =
        refuse(StatusCode::METHOD_NOT_ALLOWED, fault::METHOD_NOT_FOUND, "Method not allowed");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

/// Bodies on their way in: how large, of what type, and how many bytes of them at once.
pub struct Bodies {
    calls: Arc<Calls>,
    longest: u64,
    rooms: Rooms,
}

/// A body's share of what bodies may hold, from its arrival until its answer is made.
pub type Held = Option<Share>;

impl Bodies {
    fn new(calls: Arc<Calls>) -> Self {
        let longest = calls.limits.max_size + ENVELOPE;
        Self { calls, longest, rooms: Rooms::new(longest) }
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
        if !is_plain(&parts.headers) {
            let message = "Transfer-Encoding can be nothing but chunked";
            return Err(refuse(StatusCode::BAD_REQUEST, fault::INVALID_REQUEST, message));
        }
        self.collect(body, announced.unwrap_or(self.longest)).await
    }

    /// A large body waits for all it may need at once, so that bodies never wait for each other; one that then does not
    /// come fast enough is given up, sooner if others wait, and one of which little has come holds nothing.
    async fn collect(&self, body: Body, size: u64) -> Result<(Bytes, Held), Response> {
        let (came, mut bytes) = (Instant::now(), Vec::new());
        let mut arriving = Arriving::new(body);
        while let Some(data) = arriving.next().await? {
            let arrived = bytes.len() + data.len();
            if arrived as u64 > self.longest {
                return Err(too_large());
            }
            if arrived > UNCOUNTED && arriving.share.is_none() {
                let needed = usize::try_from(size).unwrap_or(usize::MAX).max(arrived);
                if let Some(room) = self.rooms.of(needed) {
                    arriving.share = Some(self.wait_for(room, needed, came).await?);
                }
                // It was not the client that we waited for.
                let patience = BODY_PATIENCE + Duration::from_secs(size / SLOWEST);
                arriving.until = Instant::now() + patience;
            }
            bytes.extend_from_slice(&data);
        }
        let mut share = arriving.share;
        if let Some(share) = &mut share {
            share.shrink_to(bytes.capacity());
        }
        Ok((bytes.into(), share))
    }

    /// What finds no room is refused when a call would have timed out.
    async fn wait_for(
        &self,
        room: &Arc<Room>,
        bytes: usize,
        came: Instant,
    ) -> Result<Share, Response> {
        let why = tokio::select! {
            biased;
            share = room.take(bytes, came) => return Ok(share),
            () = self.calls.stopped() => "The server is stopping; nothing was written",
            () = tokio::time::sleep(self.calls.limits.timeout) => {
                "The server is busy; nothing was written, try again"
            }
        };
        let code = fault::code(Kind::TimedOut).number;
        Err(refuse(StatusCode::REQUEST_TIMEOUT, code, why))
    }
}

/// A body on its way in.
struct Arriving {
    body: Body,
    until: Instant,
    pace: Pace,
    share: Option<Share>,
}

impl Arriving {
    fn new(body: Body) -> Self {
        let until = Instant::now() + BODY_PATIENCE;
        Self { body, until, pace: Pace::default(), share: None }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Response> {
        let missing = || {
            let message = "The request's body did not arrive";
            refuse(StatusCode::BAD_REQUEST, fault::INVALID_REQUEST, message)
        };
        loop {
            let now = Instant::now();
            self.pace.wait(now);
            let waited_for = self.share.as_ref().is_some_and(|share| share.room().is_waited_for());
            if now >= self.until || (waited_for && self.pace.is_too_slow(now)) {
                return Err(missing());
            }
            let look = if self.share.is_some() { self.until.min(now + LOOK) } else { self.until };
            match tokio::time::timeout_at(look.into(), self.body.frame()).await {
                Err(_) => {}
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => {
                    let data = frame.map_err(|_| missing())?.into_data().unwrap_or_default();
                    self.pace.move_on(data.len() as u64, Instant::now());
                    return Ok(Some(data));
                }
            }
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

/// No coding besides chunks: what is compressed is nothing that we can read.
fn is_plain(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A JSON answer of ours, which is short.
pub fn answer(status: StatusCode, message: Outgoing) -> Response {
    stream(status, message, &Taker::default())
}

/// A JSON answer; a large one is made as it is taken.
pub fn stream(status: StatusCode, message: Outgoing, taker: &Taker) -> Response {
    let mut response = Response::new(Body::new(Streamed::new(message, taker)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// What is wrong, and nothing else.
pub fn refuse(status: StatusCode, code: i32, message: &str) -> Response {
    answer(status, Outgoing::new(&json!({ "error": { "code": code, "message": message } })))
}

/// An answer as a body: made chunk by chunk, as fast as the client takes it.
pub struct Streamed {
    first: Option<Bytes>,
    /// What is left.
    rest: Option<Outgoing>,
    kept: Option<Arc<Kept>>,
}

/// A part of an answer. It has the share too, because it may be the last that is taken.
struct Chunk {
    bytes: Vec<u8>,
    #[expect(dead_code, reason = "held, not read")]
    kept: Arc<Kept>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Streamed {
    /// The first chunk is made at once: most answers have no other, and their length is known.
    pub fn new(mut message: Outgoing, taker: &Taker) -> Self {
        let mut buffer = Vec::new();
        let more = message.fill(&mut buffer);
        let share = message.share.take();
        let rest = more.then_some(message);
        let kept = share.map(|mut share| {
            share.shrink_to(buffer.capacity() + rest.as_ref().map_or(0, Outgoing::holds));
            Arc::new(taker.keep(share))
        });
        Self { first: Some(chunk(buffer, kept.as_ref())), rest, kept }
    }
}

fn chunk(bytes: Vec<u8>, kept: Option<&Arc<Kept>>) -> Bytes {
    match kept {
        Some(kept) => Bytes::from_owner(Chunk { bytes, kept: Arc::clone(kept) }),
        None => bytes.into(),
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
            let mut buffer = Vec::with_capacity(CHUNK);
            if !rest.fill(&mut buffer) {
                self.rest = None;
            }
            chunk(buffer, self.kept.as_ref())
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
