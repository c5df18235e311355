//! Our transport for stdio: one line in, one line out.
//!
//! One thread reads lines and makes calls of them, one writes answers; between them `rmcp` keeps the protocol.
//! It stands behind our own reader because its line reader drops what it cannot parse, and because a large
//! text must not be copied through its types.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout_at;
use tools::Entry;

use crate::aside::{Aside, Questions};
use crate::at_once::AtOnce;
use crate::calls::{Answered, Arrived, Calls};
use crate::flights::{Flights, Working};
use crate::mcp::{Mcp, Parked};
use crate::reader::{Incoming, Reader};
use crate::signal::Signals;
use crate::wire::{Outgoing, Refusal, plain_object};
use crate::writer::Answers;
use crate::{fault, memory, watch};

/// How long calls may go on after the end of input before those that wait for a lock are refused.
const DRAIN: Duration = Duration::from_millis(1300);
/// When even those that could not be refused are left.
const LEFT: Duration = Duration::from_millis(1500);
/// When the process is gone, though somebody has not read all answers.
const GONE: Duration = Duration::from_millis(1800);

async fn sleep_until(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time.into()).await;
    }
}

/// Serves stdin and stdout until the input ends or a signal comes.
pub async fn serve(calls: Arc<Calls>, mut signals: Signals) -> io::Result<()> {
    let flights = Arc::new(Flights::default());
    let written = Arc::new(Notify::new());
    let answers = Arc::new(Answers::new(Arc::clone(&calls), Arc::clone(&written)));
    let questions = Arc::new(Questions::default());
    let way = Arc::downgrade(&answers);
    let say = move |message: Value, share| {
        if let Some(answers) = way.upgrade() {
            let parked = Parked { share, ..Parked::default() };
            let _ = answers.send(Outgoing::with_parked(&message, parked), None);
        }
    };
    let aside = Aside::new(say, Some(questions));
    let mcp = Mcp::new(Arc::clone(&calls));
    let way = Arc::downgrade(&answers);
    let at_once = Arc::new(AtOnce::new(mcp.clone(), Arc::clone(&calls), Arc::clone(&flights), way));
    let (reader, messages) =
        Reader::new(Arc::clone(&calls), Arc::clone(&flights), aside, Arc::clone(&at_once));
    tokio::spawn(watch::watch(Arc::clone(&calls)));
    tokio::spawn(memory::give_back_when_idle(Arc::clone(&calls)));
    let leaving_since = Arc::new(OnceLock::new());
    let transport = Stdio {
        calls: Arc::clone(&calls),
        messages,
        answers,
        flights,
        leaving_since: Arc::clone(&leaving_since),
    };
    let server = serve_directly::<RoleServer, _, _, _, _>(mcp, transport, None);
    at_once.meet(server.peer().clone());
    reader.start()?;
    let until_gone = async {
        signals.stop().await;
        leaving_since.get_or_init(Instant::now);
        calls.stop();
        tokio::time::sleep(GONE).await;
    };
    tokio::select! {
        _ = server.waiting() => {}
        () = until_gone => {}
    }
    // What is answered is written, as long as there is time.
    let since = *leaving_since.get_or_init(Instant::now);
    let _ = timeout_at((since + GONE).into(), written.notified()).await;
    Ok(())
}

struct Stdio {
    calls: Arc<Calls>,
    messages: mpsc::Receiver<Incoming>,
    answers: Arc<Answers>,
    flights: Arc<Flights>,
    /// Set once the input has ended or a stop was asked for.
    leaving_since: Arc<OnceLock<Instant>>,
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let landed = self.flights.land(&message);
        std::future::ready(landed.map_or(Ok(()), |(answer, room)| self.answers.send(answer, room)))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // First what is under way may finish; then what still waits for a lock is refused.
        let patience_ends = |since: &OnceLock<Instant>| since.get().map(|since| *since + DRAIN);
        loop {
            let patience_ends = patience_ends(&self.leaving_since);
            let incoming = tokio::select! {
                incoming = self.messages.recv() => incoming,
                () = self.calls.stopped(), if !self.messages.is_closed() => {
                    // What was read already is still answered.
                    self.messages.close();
                    continue;
                }
                () = sleep_until(patience_ends), if patience_ends.is_some() => {
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
                Some(Incoming::Plain(working, arrived)) => self.answer_plain(working, *arrived),
                Some(Incoming::Refused(refusal, room)) => {
                    let _ = self.answers.send(refusal.answer(), room);
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
        if timeout_at((since + DRAIN).into(), self.flights.none()).await.is_err() {
            self.calls.stop();
            let _ = timeout_at((since + LEFT).into(), self.flights.none()).await;
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stdio {
    fn answer_plain(&self, working: Working, arrived: Arrived) {
        let entry = arrived.entry();
        let (calls, flights) = (Arc::clone(&self.calls), Arc::clone(&self.flights));
        let answers = Arc::clone(&self.answers);
        tokio::spawn(async move {
            let answered = calls.answer(arrived).await;
            let id = working.id.clone();
            drop(working);
            if let Some(flight) = flights.end(&id) {
                let _ = answers.send(plain_answer(entry, id, answered), flight.room);
            }
        });
    }
}

/// The answer to a plain method.
pub fn plain_answer(
    entry: &'static Entry,
    id: RequestId,
    Answered { outcome, share }: Answered,
) -> Outgoing {
    match outcome {
        Ok(reply) => {
            let (result, blocks) = plain_object(reply);
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            Outgoing::with_parked(&message, Parked { blocks, share })
        }
        Err(failure) => {
            let (code, message, data) = fault::json_rpc(entry, &failure);
            Refusal::new(Some(id), code, message).with_data(data).answer()
        }
    }
}
