//! The HTTP transport: listeners, connections and the router.
//!
//! - `access`: who may connect: Host, Origin, token
//! - `mcp_endpoint`: MCP, with `sessions` and `event_stream` for questions and progress
//! - `rest`: the plain methods
//! - `bodies`, `discard`: request bodies, and what is left of them after an early answer
//! - `responses`, `stall_timeout`: responses, and clients that do not read them
//! - `loopback`: a server for programs that this process starts

pub mod access;
mod bodies;
mod discard;
mod event_stream;
pub mod loopback;
mod mcp_endpoint;
mod responses;
mod rest;
mod sessions;
mod stall_timeout;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::call::Calls;
use crate::outgoing::Outgoing;
use crate::signal::Signals;
use crate::{error_codes, idle_memory, usage_watch};
use access::{AccessCheck, AllowedHost};
use bodies::Bodies;
use discard::RequestBody;
use mcp_endpoint::McpEndpoint;
use responses::{answer, method_not_allowed, refuse};
use stall_timeout::{StallTimeout, TransferMonitor};

/// A client that does not finish its headers, or says nothing for so long, is not waited for.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 64;
/// Bytes of headers, or of a body that is being read, that a connection may hold.
const MAX_BUFFER: usize = 16 * 1024;
/// Bytes that the system may hold for a client that does not take them. Small enough to see soon that it does not.
const SEND_BUFFER: usize = 256 * 1024;
/// A connection that takes nothing of its answer for so long is closed, whoever waits.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections that may wait in the kernel until they are taken, if it lets them.
const BACKLOG: i32 = 4096;
/// Descriptors that connections leave for files.
const FOR_FILES: u64 = 128;
/// How long a stop waits for those who are being answered.
const DRAIN: Duration = Duration::from_millis(1600);
/// A pause before the next connection is taken, when the process can open no more.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Where to listen, and whom to let in.
pub struct ListenOptions {
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

/// True if all listeners are bound to loopback addresses.
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
pub async fn serve(
    calls: Arc<Calls>,
    options: ListenOptions,
    mut signals: Signals,
) -> io::Result<()> {
    let service = TowerToHyperService::new(router(&calls, options.hosts, options.token));
    tokio::spawn(usage_watch::watch(Arc::clone(&calls)));
    tokio::spawn(idle_memory::free_memory_when_idle(Arc::clone(&calls)));
    let shared = Arc::clone(&calls);
    // Calls that wait for a lock are refused, those under way are answered.
    let stop = async {
        signals.stop().await;
        calls.stop();
    };
    let answer = move |request| service.call(request);
    serve_connections(options.listeners, answer, move || shared.activity.note(), stop).await
}

/// Serves every connection, until `stop` is done. `closed` is called for each that has ended.
pub async fn serve_connections<A>(
    listeners: Vec<StdListener>,
    answer: impl Fn(hyper::Request<RequestBody>) -> A + Clone + Send + 'static,
    closed: impl Fn() + Clone + Send + 'static,
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
        let monitor = TransferMonitor::default();
        let stream = TokioIo::new(StallTimeout::new(stream, monitor.clone(), WRITE_TIMEOUT));
        let answer = answer.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(monitor.clone());
            let (request, rest) = discard::split(request);
            let answer = answer(request);
            async move {
                let answer = answer.await;
                rest.discard();
                answer
            }
        });
        let connection = graceful.watch(http.serve_connection(stream, service));
        let closed = closed.clone();
        tokio::spawn(async move {
            let _ = connection.await;
            drop(place);
            closed();
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

/// The handlers of all paths, behind the access check.
pub fn router(calls: &Arc<Calls>, hosts: Vec<AllowedHost>, token: Option<String>) -> Router {
    let bodies = Arc::new(Bodies::new(Arc::clone(calls)));
    let mcp_endpoint = Arc::new(McpEndpoint::new(Arc::clone(calls), Arc::clone(&bodies)));
    let sessions = Arc::clone(&mcp_endpoint);
    let mcp = post(move |request: Request| Arc::clone(&mcp_endpoint).answer(request))
        .delete(move |headers: HeaderMap| async move { sessions.end_session(&headers) })
        .fallback(|| async { method_not_allowed("POST") });
    let mut router = Router::new().route("/", mcp.clone()).route("/mcp", mcp);
    for tool in calls.options.methods() {
        let (calls, bodies) = (Arc::clone(calls), Arc::clone(&bodies));
        let method = post(move |request: Request| {
            let (calls, bodies) = (Arc::clone(&calls), Arc::clone(&bodies));
            async move { rest::answer(tool, calls, &bodies, request).await }
        });
        let method = method.fallback(|| async { method_not_allowed("POST") });
        router = router.route(&format!("/{}", tool.name), method);
    }
    let access = AccessCheck::new(hosts, token, Arc::clone(calls));
    let unknown = Arc::clone(calls);
    let health =
        get(|| async { answer(StatusCode::OK, Outgoing::new(&json!({ "status": "ok" }))) })
            .fallback(|| async { method_not_allowed("GET, HEAD") });
    router
        .route("/health", health)
        .fallback(move |uri: Uri| async move { not_found(&unknown, uri.path()) })
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), access::check))
}

fn not_found(calls: &Calls, path: &str) -> Response {
    let reason = path.strip_prefix('/').and_then(|name| calls.options.unserved_reason(name));
    let message = reason.map_or("Not found".into(), |reason| format!("Not found: {reason}"));
    refuse(StatusCode::NOT_FOUND, error_codes::METHOD_NOT_FOUND, &message)
}
