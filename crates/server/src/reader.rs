//! The thread that owns stdin: lines become calls here, in the order they came.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonRpcMessage,
    RequestId,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::calls::{Arrived, Calls, Recall};
use crate::fault;
use crate::flights::{Flight, Flights, State, Working};
use crate::mcp::{self, Carried, Parked, ToolCall};
use crate::wire::{self, Envelope, Outgoing};

/// What a line may be longer than the largest file, for everything around the text.
const ENVELOPE: u64 = 64 * 1024;
/// Bytes of requests in flight. More wait in the pipe.
const IN_FLIGHT: u64 = 64 << 20;
/// What a request counts for at least: 4,096 small ones may be in flight.
const SMALLEST: u64 = 16 * 1024;
/// What is kept of the head and of the tail of a line that is too long.
const KEPT: usize = 512;

/// What the reader makes of a line.
pub enum Incoming {
    Message(Box<ClientJsonRpcMessage>),
    /// A plain method, answered without `rmcp`.
    Plain(Working, Arrived),
    /// Nothing to call: the answer itself.
    Answer(Outgoing),
    Cancel(RequestId),
}

impl Incoming {
    /// The request's, if it is one.
    fn id(&self) -> Option<RequestId> {
        match self {
            Self::Message(message) => match message.as_ref() {
                JsonRpcMessage::Request(request) => Some(request.id.clone()),
                _ => None,
            },
            Self::Plain(working, _) => Some(working.id.clone()),
            Self::Answer(_) | Self::Cancel(_) => None,
        }
    }
}

/// Starts the thread that owns stdin.
pub fn start_reader(
    calls: Arc<Calls>,
    flights: Arc<Flights>,
) -> io::Result<mpsc::Receiver<Incoming>> {
    let (sender, messages) = mpsc::channel(64);
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
                && let Err(mpsc::error::SendError(late)) = sender.blocking_send(incoming)
            {
                // The server is stopping: this one will not be answered, so nobody need wait for it.
                let id = late.id();
                drop(late);
                id.and_then(|id| reader.flights.end(&id));
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
    let mut line = Vec::new();
    input.take(longest + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') || line.len() as u64 <= longest {
        return Ok(Line::Whole(line));
    }
    // The rest goes by without being kept.
    line.truncate(KEPT);
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

impl Reader {
    fn take(&self, line: &[u8]) -> Option<Incoming> {
        let line = line.trim_ascii();
        if line.is_empty() {
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
        } else if mcp::SERVED.contains(&method) {
            self.request(&id, line)
        } else {
            Err(mcp::method_not_found(&id, method))
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
        self.flights.recall(&request_id);
        Some(Incoming::Cancel(request_id))
    }

    fn call_plain(
        &self,
        entry: &'static tools::Entry,
        id: &RequestId,
        params: Option<&RawValue>,
        size: usize,
    ) -> Result<Incoming, Outgoing> {
        let arguments = wire::arguments(id, params)?;
        let permit = self.permit(size);
        let arrived = self.calls.arrive(entry, arguments, id.to_string());
        let working = self.start_work(id, permit, arrived.recall().clone(), Parked::default())?;
        Ok(Incoming::Plain(working, arrived))
    }

    fn call_tool(
        &self,
        id: &RequestId,
        params: Option<&RawValue>,
        size: usize,
    ) -> Result<Incoming, Outgoing> {
        let call = ToolCall::parse(id, params)?;
        let permit = self.permit(size);
        let carried = Carried::take(&self.calls, id, &call)?;
        let working = self.start_work(id, permit, carried.recall(), Arc::clone(&carried.parked))?;

        let mut request = CallToolRequest::new(CallToolRequestParams::new(call.name));
        request.extensions.insert(carried.holding(working));
        if let Some(meta) = call.meta {
            request.extensions.insert(meta);
        }
        let request = ClientRequest::CallToolRequest(request);
        Ok(Incoming::Message(Box::new(ClientJsonRpcMessage::request(request, id.clone()))))
    }

    /// Everything else is `rmcp`'s.
    fn request(&self, id: &RequestId, line: &[u8]) -> Result<Incoming, Outgoing> {
        let message: ClientJsonRpcMessage = serde_json::from_slice(line)
            .map_err(|_| wire::invalid_params(id, "`params` must be an object"))?;
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::CustomRequest(_))
        {
            // A method it knows, with parameters it does not: that is not an unknown method.
            return Err(wire::invalid_params(id, "the parameters do not fit the method"));
        }
        let permit = self.permit(line.len());
        let (recall, parked) = (Recall::default(), Parked::default());
        self.start(id, Flight { permit, recall, parked, state: State::Answering })?;
        Ok(Incoming::Message(Box::new(message)))
    }

    fn start_work(
        &self,
        id: &RequestId,
        permit: OwnedSemaphorePermit,
        recall: Recall,
        parked: Parked,
    ) -> Result<Working, Outgoing> {
        self.start(id, Flight { permit, recall, parked, state: State::Working })?;
        Ok(Working { id: id.clone(), flights: Arc::clone(&self.flights) })
    }

    fn start(&self, id: &RequestId, flight: Flight) -> Result<(), Outgoing> {
        if self.flights.start(id.clone(), flight) {
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
