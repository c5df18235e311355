//! Short calls that run inline, on the thread that reads stdin.
//!
//! To hand a short call from thread to thread costs more than the call itself. So the reader runs it and writes its answer,
//! if nothing else is in flight. If it takes longer after all, another thread goes on reading, so that a cancellation is
//! heard.

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

use crate::call::Calls;
use crate::call::pending_call::PendingCall;
use crate::mcp::Mcp;
use crate::{confirm, plain};

use super::in_flight::{InFlightRequests, WorkGuard};
use super::writer::ResponseWriter;

/// Interval of the check whether the reader is stuck in a call. After two of them at the latest another thread reads.
const INTERVAL: Duration = Duration::from_millis(10);
/// Checks without a call after which checking pauses until the next call.
const IDLE_LOOKS: u32 = 100;

/// A request, ready to be run.
pub enum InlineCall {
    Request(JsonRpcRequest<ClientRequest>),
    Plain(WorkGuard, PendingCall),
}

pub struct InlineRunner {
    calls: Arc<Calls>,
    mcp: Mcp,
    peer: OnceLock<Peer<RoleServer>>,
    in_flight: Arc<InFlightRequests>,
    /// Weak, because the reader outlives the server when the input does not end. It must not keep the writer alive.
    writer: Weak<ResponseWriter>,
    /// Odd while the reader runs a call. The thread that increments it to an even number becomes the reader.
    run: AtomicU64,
    began: Notify,
}

impl InlineRunner {
    pub fn new(
        mcp: Mcp,
        calls: Arc<Calls>,
        in_flight: Arc<InFlightRequests>,
        writer: Weak<ResponseWriter>,
    ) -> Self {
        let (peer, run, began) = (OnceLock::new(), AtomicU64::new(0), Notify::new());
        Self { calls, mcp, peer, in_flight, writer, run, began }
    }

    /// Sets the peer. From then on calls can run.
    pub fn set_peer(&self, peer: Peer<RoleServer>) {
        let _ = self.peer.set(peer);
    }

    /// True if a request may be answered now: nothing else is in flight, so nothing has to come before it.
    pub fn may_run(&self) -> bool {
        self.peer.get().is_some() && self.in_flight.is_empty()
    }

    /// True if such a call may run now.
    pub fn may_call(&self, tool: &tools::ToolSpec) -> bool {
        self.calls.is_short(tool) && self.may_run()
    }

    /// Runs a call and answers it. False if another thread reads by now.
    pub fn run(&self, call: InlineCall, runtime: &Handle) -> bool {
        let run = self.run.fetch_add(1, Ordering::AcqRel) + 1;
        self.began.notify_one();
        // What is dropped with the call may need the runtime.
        let _entered = runtime.enter();
        match call {
            InlineCall::Request(request) => self.run_request(request, runtime),
            InlineCall::Plain(guard, pending) => self.run_plain(guard, pending, runtime),
        }
        self.end_run(run)
    }

    /// Ends a run. False if another thread did already, and reads on.
    pub fn end_run(&self, run: u64) -> bool {
        self.run.compare_exchange(run, run + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Handles a request as `rmcp` does, but on this thread.
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
        // Before the request is removed: who waits for the last one also waits for the writer.
        let writer = self.writer.upgrade();
        if let (Some((answer, permit)), Some(writer)) = (self.in_flight.complete(&message), writer)
        {
            let _ = writer.write(answer, permit);
        }
    }

    fn run_plain(&self, guard: WorkGuard, pending: PendingCall, runtime: &Handle) {
        let (tool, id) = (pending.tool(), guard.id.clone());
        let result = wait(confirm::answer_unasked(&self.calls, pending), runtime);
        drop(guard);
        let writer = self.writer.upgrade();
        if let (Some(request), Some(writer)) = (self.in_flight.remove(&id), writer) {
            let _ = writer.write(plain::response(tool, id, result), request.permit);
        }
    }

    /// Watches the reader for as long as the server runs. When it is stuck in a run, `relieve` starts another one.
    pub async fn watch(&self, relieve: impl Fn(u64)) {
        loop {
            self.began.notified().await;
            let (mut last, mut quiet) = (0, 0);
            while quiet < IDLE_LOOKS {
                tokio::time::sleep(INTERVAL).await;
                let run = self.run.load(Ordering::Acquire);
                let is_at_work = run % 2 == 1;
                if is_at_work && run == last {
                    relieve(run);
                }
                quiet = if run == last && !is_at_work { quiet + 1 } else { 0 };
                last = run;
            }
        }
    }
}

/// Waits for a future that is mostly ready: it is polled once before anything is set up to wait.
fn wait<T>(what: impl Future<Output = T>, runtime: &Handle) -> T {
    let mut what = pin!(what);
    let _entered = runtime.enter();
    match what.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => runtime.block_on(what),
    }
}
