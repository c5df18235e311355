//! The stdio transport: one JSON-RPC message a line.
//!
//! - `lines`: lines of stdin, up to a length
//! - `reader`: the thread that turns lines into calls, in their order
//! - `inline`: short calls that this thread runs itself
//! - `in_flight`: requests that are not answered yet
//! - `writer`: responses, written one after another
//!
//! `rmcp` keeps the protocol between reader and writer. Its own line reader drops what it cannot parse, and a large text must
//! not be copied through its types.

mod in_flight;
mod inline;
mod lines;
mod reader;
mod writer;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout_at;

use crate::call::Calls;
use crate::call::pending_call::PendingCall;
use crate::client_channel::{ClientChannel, Questions};
use crate::mcp::Mcp;
use crate::outgoing::{LargeTexts, Outgoing};
use crate::signal::Signals;
use crate::{confirm, idle_memory, plain, usage_watch};
use in_flight::{InFlightRequests, WorkGuard};
use inline::InlineRunner;
use reader::{Incoming, Reader};
use writer::ResponseWriter;

/// Time from the end of input until calls that still wait are refused. A signal refuses them at once.
const REFUSE_AFTER: Duration = Duration::from_millis(1300);
/// Time from the end of input or a signal until calls that could not be refused are abandoned.
const ABANDON_AFTER: Duration = Duration::from_millis(1500);
/// Time from the end of input or a signal until the process ends, even if the client has not read all answers.
const EXIT_AFTER: Duration = Duration::from_millis(1800);

async fn sleep_until(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time.into()).await;
    }
}

/// Serves stdin and stdout until the input ends or a signal comes.
pub async fn serve(calls: Arc<Calls>, mut signals: Signals) -> io::Result<()> {
    let in_flight = Arc::new(InFlightRequests::default());
    let written = Arc::new(Notify::new());
    let writer = Arc::new(ResponseWriter::new(Arc::clone(&calls), Arc::clone(&written)));
    let questions = Arc::new(Questions::default());
    let weak = Arc::downgrade(&writer);
    let send = move |message: Value, permit| {
        if let Some(writer) = weak.upgrade() {
            let large_texts = LargeTexts { permit, ..LargeTexts::default() };
            let _ = writer.send(Outgoing::with_large_texts(&message, large_texts), None);
        }
    };
    let channel = ClientChannel::new(send, Some(questions));
    let mcp = Mcp::new(Arc::clone(&calls));
    let weak = Arc::downgrade(&writer);
    let (shared, requests) = (Arc::clone(&calls), Arc::clone(&in_flight));
    let inline = Arc::new(InlineRunner::new(mcp.clone(), shared, requests, weak));
    let (reader, messages) =
        Reader::new(Arc::clone(&calls), Arc::clone(&in_flight), channel, Arc::clone(&inline));
    tokio::spawn(usage_watch::watch(Arc::clone(&calls)));
    tokio::spawn(idle_memory::free_memory_when_idle(Arc::clone(&calls)));
    let leaving_since = Arc::new(OnceLock::new());
    let transport = Stdio {
        calls: Arc::clone(&calls),
        messages,
        writer,
        in_flight,
        leaving_since: Arc::clone(&leaving_since),
    };
    let server = serve_directly::<RoleServer, _, _, _, _>(mcp, transport, None);
    inline.set_peer(server.peer().clone());
    reader.start()?;
    let until_gone = async {
        signals.stop().await;
        leaving_since.get_or_init(Instant::now);
        calls.stop();
        tokio::time::sleep(EXIT_AFTER).await;
    };
    tokio::select! {
        _ = server.waiting() => {}
        () = until_gone => {}
    }
    // What is answered is written, as long as there is time.
    let since = *leaving_since.get_or_init(Instant::now);
    let _ = timeout_at((since + EXIT_AFTER).into(), written.notified()).await;
    Ok(())
}

struct Stdio {
    calls: Arc<Calls>,
    messages: mpsc::Receiver<Incoming>,
    writer: Arc<ResponseWriter>,
    in_flight: Arc<InFlightRequests>,
    /// Set once the input has ended or a stop was asked for.
    leaving_since: Arc<OnceLock<Instant>>,
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let completed = self.in_flight.complete(&message);
        std::future::ready(
            completed.map_or(Ok(()), |(answer, permit)| self.writer.send(answer, permit)),
        )
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // At first running calls may finish; then those that wait for a lock are refused.
        let refuse_at = |since: &OnceLock<Instant>| since.get().map(|since| *since + REFUSE_AFTER);
        loop {
            let refuse_at = refuse_at(&self.leaving_since);
            let incoming = tokio::select! {
                incoming = self.messages.recv() => incoming,
                () = self.calls.stopped(), if !self.messages.is_closed() => {
                    // What was read already is still answered.
                    self.messages.close();
                    continue;
                }
                () = sleep_until(refuse_at), if refuse_at.is_some() => {
                    self.calls.stop();
                    self.messages.close();
                    continue;
                }
            };
            match incoming {
                Some(Incoming::End) => {
                    self.leaving_since.get_or_init(Instant::now);
                }
                Some(Incoming::Message(message)) => return Some(*message),
                Some(Incoming::Plain(guard, pending)) => self.answer_plain(guard, *pending),
                Some(Incoming::Refused(response, permit)) => {
                    let _ = self.writer.send(response.answer(), permit);
                }
                Some(Incoming::Cancel(id)) => {
                    let params = CancelledNotificationParam::new(Some(id), None);
                    let cancelled = CancelledNotification::new(params);
                    return Some(ClientJsonRpcMessage::notification(cancelled.into()));
                }
                None => break,
            }
        }
        let since = *self.leaving_since.get_or_init(Instant::now);
        if timeout_at((since + REFUSE_AFTER).into(), self.in_flight.wait_until_none())
            .await
            .is_err()
        {
            self.calls.stop();
            let _ =
                timeout_at((since + ABANDON_AFTER).into(), self.in_flight.wait_until_none()).await;
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stdio {
    fn answer_plain(&self, guard: WorkGuard, pending: PendingCall) {
        let tool = pending.tool();
        let (calls, in_flight) = (Arc::clone(&self.calls), Arc::clone(&self.in_flight));
        let writer = Arc::clone(&self.writer);
        tokio::spawn(async move {
            let result = confirm::answer_unasked(&calls, pending).await;
            let id = guard.id.clone();
            drop(guard);
            if let Some(request) = in_flight.remove(&id) {
                let _ = writer.send(plain::response(tool, id, result), request.permit);
            }
        });
    }
}
