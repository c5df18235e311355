//! Calls that are run by the thread that read them.
//!
//! To hand a short call from thread to thread costs more than the call itself. So the thread that reads stdin runs it and
//! writes its answer, if nothing else is under way. Should it take longer after all, somebody else goes on reading: what
//! the client says meanwhile, a cancellation above all, is heard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage, JsonRpcRequest,
};
use rmcp::service::{Peer, RequestContext, RoleServer, Service as _};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::calls::{Arrived, Calls};
use crate::flights::{Flights, Working};
use crate::mcp::Mcp;
use crate::stdio::plain_answer;
use crate::writer::Answers;

/// How often is looked whether the reader is stuck in a call: after two such times at the latest somebody else reads.
const LOOK: Duration = Duration::from_millis(10);
/// So often nothing was found to be under way, and it is looked no more until the next call.
const ENOUGH: u32 = 100;

/// A request, ready to be run.
pub enum Short {
    Request(JsonRpcRequest<ClientRequest>),
    Plain(Working, Arrived),
}

pub struct AtOnce {
    calls: Arc<Calls>,
    mcp: Mcp,
    peer: OnceLock<Peer<RoleServer>>,
    flights: Arc<Flights>,
    /// Whoever reads outlives the server when the input does not end: it must not keep the writer from ending.
    answers: Weak<Answers>,
    /// Odd while the reader runs a call. Whoever makes it even decides who reads on.
    turn: AtomicU64,
    began: Notify,
}

impl AtOnce {
    pub fn new(mcp: Mcp, calls: Arc<Calls>, flights: Arc<Flights>, answers: Weak<Answers>) -> Self {
        let (peer, turn, began) = (OnceLock::new(), AtomicU64::new(0), Notify::new());
        Self { calls, mcp, peer, flights, answers, turn, began }
    }

    /// Who is at the other end: calls can be run from now on.
    pub fn meet(&self, peer: Peer<RoleServer>) {
        let _ = self.peer.set(peer);
    }

    /// Whether a request may be answered now: nothing else is under way, and so nothing has to come before it.
    pub fn may_run(&self) -> bool {
        self.peer.get().is_some() && self.flights.are_none()
    }

    /// Whether such a call may.
    pub fn may_call(&self, entry: &tools::Entry) -> bool {
        self.calls.is_short(entry) && self.may_run()
    }

    /// Runs a call and answers it; `false` if somebody else reads by now.
    pub fn run(&self, call: Short, runtime: &Handle) -> bool {
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        self.began.notify_one();
        // What ends with the call may have something left for the runtime to do.
        let _entered = runtime.enter();
        match call {
            Short::Request(request) => self.run_request(request, runtime),
            Short::Plain(working, arrived) => self.run_plain(working, arrived, runtime),
        }
        self.is_mine(turn)
    }

    /// Ends a turn, unless somebody did already: whoever does so reads on.
    pub fn is_mine(&self, turn: u64) -> bool {
        self.turn.compare_exchange(turn, turn + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// As `rmcp` does it, but here.
    fn run_request(&self, request: JsonRpcRequest<ClientRequest>, runtime: &Handle) {
        let Some(peer) = self.peer.get() else { return };
        let JsonRpcRequest { id, mut request, .. } = request;
        let mut context = RequestContext::new(id.clone(), peer.clone());
        std::mem::swap(&mut context.meta, request.get_meta_mut());
        std::mem::swap(&mut context.extensions, request.extensions_mut());
        let answered = || wait(self.mcp.handle_request(request, context), runtime);
        let answered = catch_unwind(AssertUnwindSafe(answered))
            .unwrap_or_else(|_panicked| Err(ErrorData::internal_error("Internal error", None)));
        let message = match answered {
            Ok(result) => JsonRpcMessage::response(result, id),
            Err(error) => JsonRpcMessage::error(error, Some(id)),
        };
        // Before the flight ends: whoever waits for the last one then waits for what is to be written.
        let answers = self.answers.upgrade();
        if let (Some((answer, room)), Some(answers)) = (self.flights.land(&message), answers) {
            let _ = answers.write(answer, room);
        }
    }

    fn run_plain(&self, working: Working, arrived: Arrived, runtime: &Handle) {
        let (entry, id) = (arrived.entry(), working.id.clone());
        let answered = wait(Arc::clone(&self.calls).answer(arrived), runtime);
        drop(working);
        let answers = self.answers.upgrade();
        if let (Some(flight), Some(answers)) = (self.flights.end(&id), answers) {
            let _ = answers.write(plain_answer(entry, id, answered), flight.room);
        }
    }

    /// Looks after the reader, as long as the server runs: when it is stuck in a turn, `relieve` starts another one.
    pub async fn look_after(&self, relieve: impl Fn(u64)) {
        loop {
            self.began.notified().await;
            let (mut last, mut quiet) = (0, 0);
            while quiet < ENOUGH {
                tokio::time::sleep(LOOK).await;
                let turn = self.turn.load(Ordering::Acquire);
                let is_at_work = turn % 2 == 1;
                if is_at_work && turn == last {
                    relieve(turn);
                }
                quiet = if turn == last && !is_at_work { quiet + 1 } else { 0 };
                last = turn;
            }
        }
    }
}

/// Waits for what hardly ever makes one wait: it is asked once where it stands, before anything is made ready to wait.
fn wait<T>(what: impl Future<Output = T>, runtime: &Handle) -> T {
    let mut what = pin!(what);
    let _entered = runtime.enter();
    match what.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => runtime.block_on(what),
    }
}
