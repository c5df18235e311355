//! Stdin: lines become calls here, in the order they came.

use std::io;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest,
    GetExtensions as _, JsonRpcMessage, RequestId,
};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::aside::Aside;
use crate::at_once::{AtOnce, Short};
use crate::calls::{Arrived, Calls, Recall};
use crate::fault;
use crate::flights::{Flight, Flights, State, Working};
use crate::lines::{Line, Lines, pipe};
use crate::mcp::{self, Carried, SharedParked, Small, ToolCall, lock};
use crate::resources;
use crate::wire::{self, Envelope, Refusal, Said};

/// What a line may be longer than the largest file, for everything around the text.
const ENVELOPE: usize = 64 * 1024;
/// Bytes of requests in flight. More wait in the pipe.
const IN_FLIGHT: usize = 64 << 20;
/// What a request counts for at least: 4,096 small ones may be in flight.
const SMALLEST: usize = 16 * 1024;

/// A request's share of what may be in flight. What cannot wait has none.
pub type Room = Option<OwnedSemaphorePermit>;

/// What the reader makes of a line.
pub enum Incoming {
    Message(Box<ClientJsonRpcMessage>),
    /// A plain method, answered without `rmcp`.
    Plain(Working, Box<Arrived>),
    /// Nothing to call.
    Refused(Refusal, Room),
    Cancel(RequestId),
    /// The end of input; what still waits for room may follow.
    End,
}

impl Incoming {
    /// The request's, if it is in flight.
    fn id(&self) -> Option<RequestId> {
        match self {
            Self::Message(message) => match message.as_ref() {
                JsonRpcMessage::Request(request) => Some(request.id.clone()),
                _ => None,
            },
            Self::Plain(working, _) => Some(working.id.clone()),
            Self::Refused(..) | Self::Cancel(_) | Self::End => None,
        }
    }
}

/// Makes calls of lines. One thread at a time reads them.
pub struct Reader {
    calls: Arc<Calls>,
    flights: Arc<Flights>,
    aside: Aside,
    at_once: Arc<AtOnce>,
    room: Arc<Semaphore>,
    messages: mpsc::Sender<Incoming>,
    /// Bytes of a line, at most.
    longest: usize,
    input: Mutex<Input>,
    runtime: Handle,
}

struct Input {
    lines: Lines,
    /// A request that found no room waits here, beside the reader, so that cancellations behind it are still seen; the
    /// next request waits for it.
    waiting: Option<JoinHandle<()>>,
}

/// What a line is to whoever read it.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Taken {
    PassOn(Incoming),
    /// For the one who read it to run.
    Run(Short),
}

impl Reader {
    /// What it makes of lines that it does not run itself comes out at the other end.
    pub fn new(
        calls: Arc<Calls>,
        flights: Arc<Flights>,
        aside: Aside,
        at_once: Arc<AtOnce>,
    ) -> (Arc<Self>, mpsc::Receiver<Incoming>) {
        let (messages, receiver) = mpsc::channel(64);
        let max_size = usize::try_from(calls.limits.max_size).unwrap_or(usize::MAX >> 5);
        let longest = max_size + ENVELOPE;
        let room = Arc::new(Semaphore::new(IN_FLIGHT.max(2 * longest)));
        let input = Mutex::new(Input { lines: Lines::default(), waiting: None });
        let runtime = Handle::current();
        let reader =
            Self { calls, flights, aside, at_once, room, messages, longest, input, runtime };
        (Arc::new(reader), receiver)
    }

    /// Starts the thread that reads stdin, and another one whenever that is kept from reading.
    pub fn start(self: Arc<Self>) -> io::Result<()> {
        let (at_once, reader) = (Arc::clone(&self.at_once), Arc::downgrade(&self));
        start_thread(move || self.read())?;
        tokio::spawn(async move {
            // Only a thread that is there takes over: until then the other one reads on when it is done.
            let relieve = |turn| {
                let Some(reader) = reader.upgrade() else { return };
                let _ = start_thread(move || {
                    if reader.at_once.is_mine(turn) {
                        reader.read();
                    }
                });
            };
            at_once.look_after(relieve).await;
        });
        Ok(())
    }

    /// Reads to the end, or until somebody else does.
    fn read(self: &Arc<Self>) {
        loop {
            let mut input = lock(&self.input);
            let Ok(Some(line)) = input.lines.next(self.longest, pipe::read) else { break };
            let goes_on = match self.hear(&mut input, line) {
                None => true,
                Some(Taken::PassOn(incoming)) => self.pass_on(incoming),
                Some(Taken::Run(call)) => {
                    drop(input);
                    self.at_once.run(call, &self.runtime)
                }
            };
            if !goes_on {
                return;
            }
        }
        self.aside.hear_no_more();
        self.pass_on(Incoming::End);
    }

    /// Makes of a line what it is, in the order of the lines.
    fn hear(self: &Arc<Self>, input: &mut Input, line: Line) -> Option<Taken> {
        if input.waiting.is_some() && is_urgent(&line) {
            return self.take(&line, None, false);
        }
        if let Some(waiting) = input.waiting.take() {
            let _ = self.runtime.block_on(waiting);
        }
        let weight = u32::try_from(line.len().max(SMALLEST)).unwrap_or(u32::MAX);
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(weight) {
            // Those who say several things at once want them done at once.
            let is_alone = input.lines.is_empty();
            return self.take(&line, Some(room), is_alone);
        }
        let reader = Arc::clone(self);
        input.waiting = Some(self.runtime.spawn(async move {
            let room = Arc::clone(&reader.room).acquire_many_owned(weight).await.ok();
            if let Some(Taken::PassOn(incoming)) = reader.take(&line, room, false)
                && let Err(late) = reader.messages.send(incoming).await
            {
                reader.forget(late.0);
            }
        }));
        None
    }

    /// `false` when the server is stopping.
    fn pass_on(&self, incoming: Incoming) -> bool {
        let sent = self.messages.blocking_send(incoming);
        sent.map_err(|late| self.forget(late.0)).is_ok()
    }

    /// What comes too late will not be answered, so nobody need wait for it.
    fn forget(&self, late: Incoming) {
        let id = late.id();
        drop(late);
        id.and_then(|id| self.flights.end(&id));
    }

    /// `is_alone`: nothing else has been said.
    fn take(&self, line: &Line, room: Room, is_alone: bool) -> Option<Taken> {
        let line = match line {
            Line::Whole(line) => line.trim_ascii(),
            Line::TooLong { head, tail } => {
                let id = wire::id_of_cut_line(head, tail);
                let detail = format!(
                    "a line may have {} bytes; raise --max-size for larger texts",
                    self.longest
                );
                let refusal = Refusal::new(id, fault::INVALID_REQUEST, "Request too large");
                return Some(self.refuse(refusal.with_detail(detail), room));
            }
        };
        if line.is_empty() {
            return None;
        }
        let envelope = match Said::parse(line) {
            Ok(Said::Message(envelope)) => envelope,
            Ok(Said::Answer(id, result)) => {
                self.aside.answer(&id, result);
                return None;
            }
            Err(refusal) => return Some(self.refuse(refusal, room)),
        };
        let Some(id) = envelope.id.clone() else {
            return self.notified(&envelope).map(Taken::PassOn);
        };
        let method = envelope.method.as_ref();
        let plain = self.calls.options.method(method);
        let mut room = Some(room);
        let outcome = if let Some(entry) = plain {
            self.call_plain(entry, &id, envelope.params, &mut room, is_alone)
        } else if method == "tools/call" {
            self.call_tool(&id, envelope.params, &mut room, is_alone)
        } else {
            self.request(&id, method, line, &mut room, is_alone)
        };
        Some(outcome.unwrap_or_else(|refusal| self.refuse(refusal, room.flatten())))
    }

    fn refuse(&self, refusal: Refusal, room: Room) -> Taken {
        self.calls.log_refusal(&refusal);
        Taken::PassOn(Incoming::Refused(refusal, room))
    }

    /// Of notifications only a cancellation concerns us.
    fn notified(&self, envelope: &Envelope) -> Option<Incoming> {
        let request_id = envelope.cancelled()?;
        self.flights.recall(&request_id);
        Some(Incoming::Cancel(request_id))
    }

    fn call_plain(
        &self,
        entry: &'static tools::Entry,
        id: &RequestId,
        params: Option<&RawValue>,
        room: &mut Option<Room>,
        is_alone: bool,
    ) -> Result<Taken, Refusal> {
        let arguments = wire::arguments(id, params.map(RawValue::get))?;
        let arrived = self.calls.arrive(entry, arguments, id.to_string(), None);
        let recall = arrived.recall().clone();
        let runs = is_alone && self.at_once.may_call(entry);
        let working = self.start_work(id, room, recall, SharedParked::default())?;
        Ok(if runs {
            Taken::Run(Short::Plain(working, arrived.at_once()))
        } else {
            Taken::PassOn(Incoming::Plain(working, Box::new(arrived)))
        })
    }

    fn call_tool(
        &self,
        id: &RequestId,
        params: Option<&RawValue>,
        room: &mut Option<Room>,
        is_alone: bool,
    ) -> Result<Taken, Refusal> {
        let call = ToolCall::parse(id, params)?;
        let carried = Carried::take(&self.calls, id, &call, Some(self.aside.clone()))?;
        let runs = is_alone && self.at_once.may_call(carried.entry);
        let carried = if runs { carried.at_once() } else { carried };
        let working = self.start_work(id, room, carried.recall(), Arc::clone(&carried.parked))?;

        let mut request = CallToolRequest::new(CallToolRequestParams::new(call.name));
        request.extensions.insert(carried.holding(working));
        if let Some(Small(meta)) = call.meta {
            request.extensions.insert(meta);
        }
        let request = ClientRequest::CallToolRequest(request);
        Ok(match ClientJsonRpcMessage::request(request, id.clone()) {
            JsonRpcMessage::Request(request) if runs => Taken::Run(Short::Request(request)),
            message => Taken::PassOn(Incoming::Message(Box::new(message))),
        })
    }

    /// Everything else is `rmcp`'s, as far as we ask it for.
    fn request(
        &self,
        id: &RequestId,
        method: &str,
        line: &[u8],
        room: &mut Option<Room>,
        is_alone: bool,
    ) -> Result<Taken, Refusal> {
        if !mcp::SERVED.contains(&method) {
            let reason = self.calls.options.unserved_reason(method);
            return Err(mcp::method_not_found(id, method, reason));
        }
        let mut message = mcp::request(id, method, line)?;
        self.aside.meet(&message);
        if let Some(carried) = resources::take(&self.calls, &message, Some(self.aside.clone()))
            && let JsonRpcMessage::Request(request) = &mut message
        {
            let parked = Arc::clone(&carried.parked);
            let working = self.start_work(id, room, carried.recall(), parked)?;
            request.request.extensions_mut().insert(carried.holding(working));
            return Ok(Taken::PassOn(Incoming::Message(Box::new(message))));
        }
        let runs = is_alone && self.at_once.may_run();
        self.calls.log_request(method, id);
        let flight = Flight {
            room: room.take().flatten(),
            recall: Recall::default(),
            parked: SharedParked::default(),
            state: State::Answering,
        };
        self.take_off(id, flight)?;
        Ok(match message {
            JsonRpcMessage::Request(request) if runs => Taken::Run(Short::Request(request)),
            message => Taken::PassOn(Incoming::Message(Box::new(message))),
        })
    }

    fn start_work(
        &self,
        id: &RequestId,
        room: &mut Option<Room>,
        recall: Recall,
        parked: SharedParked,
    ) -> Result<Working, Refusal> {
        let room = room.take().flatten();
        self.take_off(id, Flight { room, recall, parked, state: State::Working })?;
        Ok(Working { id: id.clone(), flights: Arc::clone(&self.flights) })
    }

    fn take_off(&self, id: &RequestId, flight: Flight) -> Result<(), Refusal> {
        if self.flights.start(id.clone(), flight) {
            return Ok(());
        }
        Err(Refusal::new(Some(id.clone()), fault::INVALID_REQUEST, "Invalid Request")
            .with_detail("a request with this `id` is not answered yet"))
    }
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("stdin".into()).spawn(work).map(drop)
}

/// What must not wait behind a request that finds no room: it may be what makes room.
fn is_urgent(line: &Line) -> bool {
    let Line::Whole(line) = line else { return false };
    line.len() < SMALLEST
        && Said::parse(line.trim_ascii()).is_ok_and(|said| match said {
            Said::Message(envelope) => envelope.id.is_none() || envelope.method == "ping",
            Said::Answer(..) => true,
        })
}
