//! MCP over HTTP for programs that we start ourselves: a port of this machine alone, and a token for each guest.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::calls::Calls;
use crate::mcp::lock;
use crate::{door, http, random};

/// MCP over HTTP on a loopback port of our own choosing, for programs that we start ourselves: each guest by its token.
/// It is closed when this is dropped.
pub struct Hosted {
    address: SocketAddr,
    guests: Arc<Guests>,
    #[expect(dead_code, reason = "held, not read")]
    open: DropGuard,
}

#[derive(Default)]
struct Guests(Mutex<Vec<Guest>>);

struct Guest {
    token: String,
    calls: Arc<Calls>,
    service: TowerToHyperService<Router>,
}

impl Hosted {
    /// Binds a free port of 127.0.0.1 and serves it. Needs a runtime.
    pub fn open() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (guests, stop) = (Arc::<Guests>::default(), CancellationToken::new());
        let open = stop.clone().drop_guard();
        let known = Arc::clone(&guests);
        let answer = move |request: hyper::Request<_>| {
            let service = known.find(request.headers());
            async move {
                match service {
                    Some(service) => service.call(request).await,
                    None => Ok(door::unauthorized("A bearer token is required")),
                }
            }
        };
        tokio::spawn(async move {
            http::serve_connections(vec![listener], answer, || {}, stop.cancelled()).await
        });
        Ok(Arc::new(Self { address, guests, open }))
    }

    /// Where guests are served: `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// From now on whoever bears this token is served by `calls`.
    pub fn admit(&self, calls: Arc<Calls>) -> String {
        let token = random::hex::<32>();
        let router = http::router(&calls, Vec::new(), Some(token.clone()));
        let service = TowerToHyperService::new(router);
        lock(&self.guests.0).push(Guest { token: token.clone(), calls, service });
        token
    }

    /// The token means nothing any more. The calls that it stood for are stopped for good: those that have not begun to
    /// write are refused.
    pub fn dismiss(&self, token: &str) {
        lock(&self.guests.0).retain(|guest| {
            let stays = guest.token != token;
            if !stays {
                guest.calls.stop();
            }
            stays
        });
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        for guest in lock(&self.guests.0).drain(..) {
            guest.calls.stop();
        }
    }
}

impl Guests {
    /// What serves the guest that says this of itself.
    fn find(&self, headers: &HeaderMap) -> Option<TowerToHyperService<Router>> {
        let guests = lock(&self.0);
        let guest = guests.iter().find(|guest| door::bears(headers, &guest.token));
        guest.map(|guest| guest.service.clone())
    }
}
