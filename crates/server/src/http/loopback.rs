//! MCP over HTTP for programs that this process starts: a loopback port, and a token for each client.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::Calls;
use crate::lock::lock;
use crate::{http, random};

use super::access;

/// A server on a loopback port of its own choosing. Its clients are told apart by their tokens. Closed when this is dropped.
pub struct LoopbackServer {
    address: SocketAddr,
    clients: Arc<Clients>,
    #[expect(dead_code, reason = "held, not read")]
    open: DropGuard,
}

#[derive(Default)]
struct Clients(Mutex<Vec<Client>>);

struct Client {
    token: String,
    calls: Arc<Calls>,
    service: TowerToHyperService<Router>,
}

impl LoopbackServer {
    /// Binds a free port of 127.0.0.1 and serves it. Needs a runtime.
    pub fn open() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (clients, stop) = (Arc::<Clients>::default(), CancellationToken::new());
        let open = stop.clone().drop_guard();
        let known = Arc::clone(&clients);
        let answer = move |request: hyper::Request<_>| {
            let service = known.find(request.headers());
            async move {
                match service {
                    Some(service) => service.call(request).await,
                    None => Ok(access::unauthorized("A bearer token is required")),
                }
            }
        };
        tokio::spawn(async move {
            http::serve_connections(vec![listener], answer, || {}, stop.cancelled()).await
        });
        Ok(Arc::new(Self { address, clients, open }))
    }

    /// `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Adds a client, whose requests are served by `calls`. Returns its token.
    pub fn admit(&self, calls: Arc<Calls>) -> String {
        let token = random::hex::<32>();
        let router = http::router(&calls, Vec::new(), Some(token.clone()));
        let service = TowerToHyperService::new(router);
        lock(&self.clients.0).push(Client { token: token.clone(), calls, service });
        token
    }

    /// Removes the client of a token. Its calls are stopped for good: those that have not begun to write are refused.
    pub fn dismiss(&self, token: &str) {
        lock(&self.clients.0).retain(|client| {
            let stays = client.token != token;
            if !stays {
                client.calls.stop();
            }
            stays
        });
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        for client in lock(&self.clients.0).drain(..) {
            client.calls.stop();
        }
    }
}

impl Clients {
    /// The service of the client that has the token in these headers.
    fn find(&self, headers: &HeaderMap) -> Option<TowerToHyperService<Router>> {
        let clients = lock(&self.0);
        let client = clients.iter().find(|client| access::has_token(headers, &client.token));
        client.map(|client| client.service.clone())
    }
}
