//! Our transport for stdio: one line in, one line out.
//!
//! One thread reads lines and makes calls of them, one writes answers; between them `rmcp` keeps the protocol.
//! It stands behind our own reader because its line reader drops what it cannot parse, and because a large
//! text must not be copied through its types.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, RequestMetaObject,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tools::Reply;

use crate::calls::{Arrived, Calls, Recall};
use crate::fault;
use crate::mcp::{self, Carried, Mcp, Parked, lock};
use crate::wire::{self, Envelope, Outgoing};
use crate::{memory, watch};

/// How long calls may go on after the end of input before those that wait for a lock are refused.
const DRAIN: Duration = Duration::from_millis(1500);
/// When the process is gone, whatever happens.
const GONE: Duration = Duration::from_millis(1900);
/// What a line may be longer than the largest file, for everything around the text.
const ENVELOPE: u64 = 64 * 1024;
/// Bytes of requests in flight. More wait in the pipe.
const IN_FLIGHT: u64 = 64 << 20;
/// What a request counts for at least: 4,096 small ones may be in flight.
const SMALLEST: u64 = 16 * 1024;
/// Idle for so long, memory is given back.
const IDLE: Duration = Duration::from_secs(1);

/// Serves stdin and stdout until the input ends or a signal comes.
pub async fn serve(calls: Arc<Calls>) -> io::Result<()> {
    let flights = Arc::new(Flights::default());
    let (answers, writer) = start_writer()?;
    let messages = start_reader(Arc::clone(&calls), Arc::clone(&flights))?;
    tokio::spawn(watch::watch(Arc::clone(&calls)));
    tokio::spawn(give_back_when_idle(Arc::clone(&flights)));
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
        signal().await;
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

/// A request to stop.
#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    // Past a file size limit a write shall fail, not kill us: a handler, though it does nothing, sees to that.
    let _size_limit = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

#[cfg(windows)]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The requests that are not answered yet.
#[derive(Default)]
struct Flights {
    open: Mutex<HashMap<RequestId, Flight>>,
    changed: Notify,
    ended: AtomicU64,
}

struct Flight {
    /// Its share of what may be in flight, held until its answer is written.
    #[expect(dead_code, reason = "held, not read")]
    permit: OwnedSemaphorePermit,
    recall: Recall,
    parked: Parked,
}

impl Flights {
    /// `false`: an id that is in flight already; its answers could not be told apart.
    fn start(&self, id: RequestId, flight: Flight) -> bool {
        let mut open = lock(&self.open);
        if open.contains_key(&id) {
            return false;
        }
        open.insert(id, flight);
        true
    }

    fn end(&self, id: &RequestId) -> Option<Flight> {
        let flight = lock(&self.open).remove(id);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
        flight
    }

    /// How many have ended so far.
    fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if lock(&self.open).is_empty() {
                return;
            }
            changed.await;
        }
    }
}

/// What the reader makes of a line.
enum Incoming {
    Message(Box<ClientJsonRpcMessage>),
    /// A plain method, answered without `rmcp`.
    Plain(RequestId, Arrived),
    /// Nothing to call: the answer itself.
    Answer(Outgoing),
    Cancel(RequestId),
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
        let blocks = flight.as_ref().map(|flight| std::mem::take(&mut *lock(&flight.parked)));
        let answer = Outgoing::with_blocks(&message, blocks.unwrap_or_default());
        std::future::ready(self.answers.send(answer, flight))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while self.leave_at.is_none() {
            let incoming = tokio::select! {
                incoming = self.messages.recv() => incoming,
                () = self.calls.stopped() => None,
            };
            match incoming {
                Some(Incoming::Message(message)) => return Some(*message),
                Some(Incoming::Plain(id, arrived)) => self.answer_plain(id, arrived),
                Some(Incoming::Answer(answer)) => drop(self.answers.send(answer, None)),
                Some(Incoming::Cancel(id)) => {
                    if let Some(flight) = self.flights.end(&id) {
                        flight.recall.ring();
                    }
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
    fn answer_plain(&self, id: RequestId, arrived: Arrived) {
        let entry = arrived.entry();
        let (calls, flights) = (Arc::clone(&self.calls), Arc::clone(&self.flights));
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let outcome = calls.answer(arrived).await;
            // Cancelled calls are not answered.
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
            if answer.write(&mut out, &mut buffer).is_err() {
                break; // nobody reads any more
            }
            drop((answer, flight));
            buffer.shrink_to(ENVELOPE as usize * 2);
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

/// Starts the thread that owns stdin.
fn start_reader(
    calls: Arc<Calls>,
    flights: Arc<Flights>,
) -> io::Result<tokio::sync::mpsc::Receiver<Incoming>> {
    let (sender, messages) = tokio::sync::mpsc::channel(64);
    let longest = calls.limits.max_size + ENVELOPE;
    let budget = IN_FLIGHT.max(2 * longest);
    let permits = Arc::new(Semaphore::new(usize::try_from(budget).unwrap_or(usize::MAX >> 4)));
    let reader = Reader { calls, flights, runtime: Handle::current(), permits };
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut input = BufReader::with_capacity(64 * 1024, io::stdin());
        loop {
            let incoming = match read_line(&mut input, longest) {
                Ok(Line::Whole(line)) => reader.take(&line),
                Ok(Line::TooLong { head, tail }) => {
                    Some(Incoming::Answer(too_long(&head, &tail, longest)))
                }
                Ok(Line::End) | Err(_) => return,
            };
            if let Some(incoming) = incoming
                && sender.blocking_send(incoming).is_err()
            {
                return;
            }
        }
    })?;
    Ok(messages)
}

fn too_long(head: &[u8], tail: &[u8], longest: u64) -> Outgoing {
    let id = wire::id_of_cut_line(head, tail);
    let detail = format!("a line may have {longest} bytes; raise --max-size for larger texts");
    let data = Some(json!({ "detail": detail }));
    wire::error(id.as_ref(), fault::INVALID_REQUEST, "Request too large", data)
}

enum Line {
    Whole(Vec<u8>),
    /// Too long to keep; what it began and ended with.
    TooLong {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
    End,
}

fn read_line(input: &mut impl BufRead, longest: u64) -> io::Result<Line> {
    const KEPT: usize = 512;
    let mut line = Vec::new();
    input.take(longest + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') || line.len() as u64 <= longest {
        return Ok(Line::Whole(line));
    }
    // The rest goes by without being kept.
    line.truncate(ENVELOPE as usize);
    line.shrink_to_fit();
    let (head, mut tail) = (line, Vec::new());
    loop {
        let available = input.fill_buf()?;
        let end = memchr::memchr(b'\n', available);
        let taken = end.unwrap_or(available.len());
        tail.extend_from_slice(&available[taken.saturating_sub(KEPT)..taken]);
        tail.drain(..tail.len().saturating_sub(KEPT));
        let at_end = available.is_empty();
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() || at_end {
            return Ok(Line::TooLong { head, tail });
        }
    }
}

struct Reader {
    calls: Arc<Calls>,
    flights: Arc<Flights>,
    runtime: Handle,
    permits: Arc<Semaphore>,
}

/// What `tools/call` must be given.
#[derive(Deserialize)]
struct ToolCall<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

impl Reader {
    fn take(&self, line: &[u8]) -> Option<Incoming> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let envelope = match Envelope::parse(line) {
            Ok(envelope) => envelope?,
            Err(malformed) => return Some(Incoming::Answer(malformed.answer())),
        };
        let Some(id) = envelope.id.clone() else { return self.notified(&envelope) };
        let method = envelope.method.as_ref();
        let plain = self.calls.options.methods.iter().copied().find(|entry| entry.name == method);
        let outcome = if let Some(entry) = plain {
            self.call_plain(entry, &id, envelope.params, line.len())
        } else if method == "tools/call" {
            self.call_tool(&id, envelope.params, line.len())
        } else {
            self.request(&id, line)
        };
        Some(outcome.unwrap_or_else(Incoming::Answer))
    }

    /// Of notifications only a cancellation concerns us.
    fn notified(&self, envelope: &Envelope) -> Option<Incoming> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        if envelope.method != "notifications/cancelled" {
            return None;
        }
        let params = envelope.params?.get();
        let Cancelled { request_id } = serde_json::from_str(params).ok()?;
        // Seen at once, even while the loop is busy.
        if let Some(flight) = lock(&self.flights.open).get(&request_id) {
            flight.recall.ring();
        }
        Some(Incoming::Cancel(request_id))
    }

    fn call_plain(
        &self,
        entry: &'static tools::Entry,
        id: &RequestId,
        params: Option<&RawValue>,
        size: usize,
    ) -> Result<Incoming, Outgoing> {
        let arguments = arguments(id, params)?;
        let permit = self.permit(size);
        let arrived = self.calls.arrive(entry, arguments, id.to_string());
        self.start(id, permit, arrived.recall().clone(), Parked::default())?;
        Ok(Incoming::Plain(id.clone(), arrived))
    }

    fn call_tool(
        &self,
        id: &RequestId,
        params: Option<&RawValue>,
        size: usize,
    ) -> Result<Incoming, Outgoing> {
        let params = params.map_or("null", RawValue::get);
        let ToolCall { name, arguments: given, meta } = serde_json::from_str(params)
            .map_err(|_| invalid_params(id, "`params` must hold `name`, a string"))?;
        let entry = mcp::find_tool(&self.calls, &name)
            .map_err(|e| wire::error(Some(id), e.code.0, &e.message, e.data))?;
        let arguments = arguments(id, given)?;
        let permit = self.permit(size);
        let arrived = self.calls.arrive(entry, arguments, id.to_string());
        let parked = Parked::default();
        self.start(id, permit, arrived.recall().clone(), Arc::clone(&parked))?;

        let mut request = CallToolRequest::new(CallToolRequestParams::new(name));
        request.extensions.insert(Carried { arrived: Arc::new(Mutex::new(Some(arrived))), parked });
        if let Some(meta) = meta {
            request.extensions.insert(meta);
        }
        let request = ClientRequest::CallToolRequest(request);
        Ok(Incoming::Message(Box::new(ClientJsonRpcMessage::request(request, id.clone()))))
    }

    /// Everything else is `rmcp`'s.
    fn request(&self, id: &RequestId, line: &[u8]) -> Result<Incoming, Outgoing> {
        let message: ClientJsonRpcMessage = serde_json::from_slice(line)
            .map_err(|_| invalid_params(id, "`params` must be an object"))?;
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::CustomRequest(custom) = &request.request
            && KNOWN_METHODS.contains(&custom.method.as_str())
        {
            // A method it knows, with parameters it does not: that is not an unknown method.
            return Err(invalid_params(id, "the parameters do not fit the method"));
        }
        self.start(id, self.permit(line.len()), Recall::default(), Parked::default())?;
        Ok(Incoming::Message(Box::new(message)))
    }

    fn start(
        &self,
        id: &RequestId,
        permit: OwnedSemaphorePermit,
        recall: Recall,
        parked: Parked,
    ) -> Result<(), Outgoing> {
        if self.flights.start(id.clone(), Flight { permit, recall, parked }) {
            return Ok(());
        }
        let data = Some(json!({ "detail": "a request with this `id` is not answered yet" }));
        Err(wire::error(Some(id), fault::INVALID_REQUEST, "Invalid Request", data))
    }

    /// Waits until there is room for a request of `size` bytes.
    fn permit(&self, size: usize) -> OwnedSemaphorePermit {
        let weight = u32::try_from((size as u64).max(SMALLEST)).unwrap_or(u32::MAX);
        let permits = Arc::clone(&self.permits);
        Arc::clone(&permits).try_acquire_many_owned(weight).unwrap_or_else(|_| {
            self.runtime
                .block_on(permits.acquire_many_owned(weight))
                .unwrap_or_else(|_| unreachable!("the semaphore is never closed"))
        })
    }
}

/// What `rmcp` reads as a custom request when its parameters are wrong.
const KNOWN_METHODS: [&str; 5] =
    ["initialize", "ping", "tools/list", "server/discover", "completion/complete"];

/// The arguments of a call: an object, or nothing.
fn arguments(id: &RequestId, given: Option<&RawValue>) -> Result<Value, Outgoing> {
    let arguments = given.map_or(Ok(Value::Null), |raw| serde_json::from_str(raw.get()));
    match arguments {
        Ok(arguments @ (Value::Object(_) | Value::Null)) => Ok(arguments),
        _ => Err(invalid_params(id, "the arguments must be an object")),
    }
}

fn invalid_params(id: &RequestId, detail: &str) -> Outgoing {
    let data = Some(json!({ "detail": detail }));
    wire::error(Some(id), fault::INVALID_PARAMS, "Invalid params", data)
}

/// Once the last answer is out and none has followed for a while, the allocator's spare memory goes back.
async fn give_back_when_idle(flights: Arc<Flights>) {
    loop {
        flights.changed.notified().await;
        // Looked at once in a while rather than at every answer: under load this must cost nothing.
        let mut seen = flights.ended();
        loop {
            tokio::time::sleep(IDLE).await;
            let now = flights.ended();
            if now == seen && lock(&flights.open).is_empty() {
                break;
            }
            seen = now;
        }
        memory::give_back();
    }
}
