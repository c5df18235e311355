//! Our transport for stdio: one line in, one line out.
//!
//! One thread reads lines and makes calls of them, one writes answers; between them `rmcp` keeps the protocol.
//! It stands behind our own reader because its line reader drops what it cannot parse, and because a large
//! text must not be copied through its types.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, JsonRpcMessage,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde_json::{Map, json};
use tokio::sync::Notify;
use tokio::time::timeout_at;
use tools::Reply;

use crate::calls::{Arrived, Calls};
use crate::flights::{Flight, Flights, Working};
use crate::mcp::{Mcp, lock};
use crate::reader::{Incoming, start_reader};
use crate::wire::{self, Outgoing};
use crate::{fault, memory, signal, watch};

/// How long calls may go on after the end of input before those that wait for a lock are refused.
const DRAIN: Duration = Duration::from_millis(1300);
/// When the process is gone, whatever happens.
const GONE: Duration = Duration::from_millis(1600);
/// What the writer keeps of its buffer between answers.
const KEPT_BUFFER: usize = 128 * 1024;

/// Serves stdin and stdout until the input ends or a signal comes.
pub async fn serve(calls: Arc<Calls>) -> io::Result<()> {
    let flights = Arc::new(Flights::default());
    let (answers, writer) = start_writer()?;
    let messages = start_reader(Arc::clone(&calls), Arc::clone(&flights))?;
    tokio::spawn(watch::watch(Arc::clone(&calls)));
    tokio::spawn(memory::give_back_when_idle(Arc::clone(&calls)));
    let transport = Stdio {
        calls: Arc::clone(&calls),
        messages,
        answers: answers.clone(),
        flights,
        leave_at: None,
    };
    let server =
        serve_directly::<RoleServer, _, _, _, _>(Mcp::new(Arc::clone(&calls)), transport, None);
    let until_gone = async {
        signal::stop().await;
        calls.stop();
        tokio::time::sleep(GONE).await;
    };
    tokio::select! {
        _ = server.waiting() => {}
        () = until_gone => {}
    }
    drop(answers);
    // The last answers are still being written; a client that does not read them is not waited for.
    let _ =
        timeout_at((Instant::now() + Duration::from_millis(100)).into(), writer.notified()).await;
    Ok(())
}

struct Stdio {
    calls: Arc<Calls>,
    messages: tokio::sync::mpsc::Receiver<Incoming>,
    answers: Answers,
    flights: Arc<Flights>,
    /// Set once the input has ended or a stop was asked for.
    leave_at: Option<Instant>,
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
        let blocks = flight.as_ref().map(|flight| std::mem::take(&mut *lock(&flight.parked)));
        let answer = Outgoing::with_blocks(&message, blocks.unwrap_or_default());
        std::future::ready(self.answers.send(answer, flight))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while self.leave_at.is_none() {
            let incoming = tokio::select! {
                incoming = self.messages.recv() => incoming,
                () = self.calls.stopped(), if !self.messages.is_closed() => {
                    // What was read already is still answered.
                    self.messages.close();
                    continue;
                }
            };
            match incoming {
                Some(Incoming::Message(message)) => return Some(*message),
                Some(Incoming::Plain(working, arrived)) => self.answer_plain(working, arrived),
                Some(Incoming::Answer(answer)) => drop(self.answers.send(answer, None)),
                Some(Incoming::Cancel(id)) => {
                    let params = CancelledNotificationParam::new(Some(id), None);
                    let cancelled = CancelledNotification::new(params);
                    return Some(ClientJsonRpcMessage::notification(cancelled.into()));
                }
                None => self.leave_at = Some(Instant::now()),
            }
        }
        // First what is under way may finish; then what still waits for a lock is refused.
        let since = self.leave_at.unwrap_or_else(Instant::now);
        if timeout_at((since + DRAIN).into(), self.flights.none()).await.is_err() {
            self.calls.stop();
            let _ = timeout_at((since + GONE).into(), self.flights.none()).await;
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
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let outcome = calls.answer(arrived).await;
            let id = working.id.clone();
            drop(working);
            let Some(flight) = flights.end(&id) else { return };
            let answer = match outcome {
                Ok(Reply { blocks, data, .. }) => {
                    let mut result = Map::new();
                    if !blocks.is_empty() {
                        result.insert("content".into(), wire::marker(0).into());
                    }
                    result.extend(data.unwrap_or_default());
                    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                    Outgoing::with_blocks(&message, blocks)
                }
                Err(failure) => {
                    let (code, message, data) = fault::json_rpc(entry, &failure);
                    wire::error(Some(&id), code, &message, Some(data))
                }
            };
            let _ = answers.send(answer, Some(flight));
        });
    }
}

/// The way to the writer. An answer's flight, and with it its share of what may be in flight, ends once it is
/// written.
#[derive(Clone)]
struct Answers(mpsc::Sender<(Outgoing, Option<Flight>)>);

impl Answers {
    fn send(&self, answer: Outgoing, flight: Option<Flight>) -> io::Result<()> {
        self.0.send((answer, flight)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Starts the thread that owns stdout; notified when the last answer is out.
fn start_writer() -> io::Result<(Answers, Arc<Notify>)> {
    let (sender, answers) = mpsc::channel::<(Outgoing, Option<Flight>)>();
    let done = Arc::new(Notify::new());
    let finished = Arc::clone(&done);
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        let mut buffer = Vec::new();
        // Unbuffered: an answer is written in large pieces already.
        let mut out = raw_stdout();
        for (answer, flight) in answers {
            if answer.write_line(&mut out, &mut buffer).is_err() {
                break; // nobody reads any more
            }
            drop(flight);
            buffer.shrink_to(KEPT_BUFFER);
        }
        finished.notify_one();
    })?;
    Ok((Answers(sender), done))
}

/// Stdout without the line buffering of `std::io::Stdout`, which would write a large answer line by line.
#[cfg(unix)]
fn raw_stdout() -> impl io::Write {
    struct Raw;
    impl io::Write for Raw {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    Raw
}

#[cfg(windows)]
fn raw_stdout() -> impl io::Write {
    io::stdout()
}
