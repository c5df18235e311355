//! Our transport for stdio: one line in, one line out.
//!
//! One thread reads lines and makes calls of them, one writes answers; between them `rmcp` keeps the protocol.
//! It stands behind our own reader because its line reader drops what it cannot parse, and because a large
//! text must not be copied through its types.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, JsonRpcMessage,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::aside::{Aside, Questions};
use crate::calls::{Answered, Arrived, Calls};
use crate::flights::{Flights, Working};
use crate::mcp::{Mcp, Parked, lock};
use crate::reader::{Incoming, start_reader};
use crate::signal::Signals;
use crate::wire::{Outgoing, Refusal, plain_object};
use crate::writer::{Answers, start_writer};
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
    let (answers, written) = start_writer(Arc::clone(&calls))?;
    // The reader outlives the server when the input does not end: it must not keep the writer from ending.
    let (answers, questions) = (Arc::new(answers), Arc::new(Questions::default()));
    let way = Arc::downgrade(&answers);
    let say = move |message: Value, share| {
        if let Some(answers) = way.upgrade() {
            let parked = Parked { share, ..Parked::default() };
            let _ = answers.send(Outgoing::with_parked(&message, parked), None);
        }
    };
    let aside = Aside::new(say, Some(questions));
    let messages = start_reader(Arc::clone(&calls), Arc::clone(&flights), aside)?;
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
    let server =
        serve_directly::<RoleServer, _, _, _, _>(Mcp::new(Arc::clone(&calls)), transport, None);
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
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let flight = id.and_then(|id| self.flights.end(id));
        if id.is_some() && flight.is_none() {
            return std::future::ready(Ok(())); // taken back
        }
        let parked = flight.as_ref().map(|flight| std::mem::take(&mut *lock(&flight.parked)));
        let answer = Outgoing::with_parked(&message, parked.unwrap_or_default());
        std::future::ready(self.answers.send(answer, flight.and_then(|flight| flight.room)))
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
            let Answered { outcome, share } = calls.answer(arrived).await;
            let id = working.id.clone();
            drop(working);
            let Some(flight) = flights.end(&id) else { return };
            let answer = match outcome {
                Ok(reply) => {
                    let (result, blocks) = plain_object(reply);
                    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                    Outgoing::with_parked(&message, Parked { blocks, share })
                }
                Err(failure) => {
                    let (code, message, data) = fault::json_rpc(entry, &failure);
                    Refusal::new(Some(id), code, message).with_data(data).answer()
                }
            };
            let _ = answers.send(answer, flight.room);
        });
    }
}
