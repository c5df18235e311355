//! Stdin: a thread turns lines into calls, in their order.

use std::io;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest,
    GetExtensions as _, JsonRpcMessage, RequestId,
};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tools::Effect;

use crate::call::Calls;
use crate::call::pending_call::PendingCall;
use crate::cancel::CancelSignal;
use crate::client_channel::ClientChannel;
use crate::error_codes;
use crate::lock::lock;
use crate::mcp::call_handle::{CallHandle, Small, ToolCall};
use crate::mcp::{methods, resources};
use crate::message::{self, ClientMessage, Envelope, ErrorResponse};
use crate::outgoing::SharedLargeTexts;

use super::in_flight::{InFlightRequest, InFlightRequests, RequestPermit, State, WorkGuard};
use super::inline::{InlineCall, InlineRunner};
use super::lines::{Line, Lines, pipe};

/// Bytes of requests in flight. More wait in the pipe.
const IN_FLIGHT_MAX: usize = 64 << 20;
/// Bytes that a request counts for at least, so that 4,096 small ones may be in flight.
const BYTES_MIN: usize = 16 * 1024;
/// Bytes of pings that are answered while a request waits for its permit, each counted with at least `PING_BYTES_MIN`.
const PINGS_MAX: usize = 1 << 20;
const PING_BYTES_MIN: usize = 1024;

/// An event for the transport.
pub enum Incoming {
    Message(Box<ClientJsonRpcMessage>),
    /// A plain method, answered without `rmcp`.
    Plain(WorkGuard, Box<PendingCall>),
    Refused(ErrorResponse, RequestPermit),
    Cancel(RequestId),
    /// The end of input. Requests that still wait for their permit may follow.
    End,
}

impl Incoming {
    /// The id of a request that is in flight.
    fn id(&self) -> Option<RequestId> {
        match self {
            Self::Message(message) => match message.as_ref() {
                JsonRpcMessage::Request(request) => Some(request.id.clone()),
                _ => None,
            },
            Self::Plain(guard, _) => Some(guard.id.clone()),
            Self::Refused(..) | Self::Cancel(_) | Self::End => None,
        }
    }
}

/// Turns lines into calls. One thread at a time reads them.
pub struct Reader {
    calls: Arc<Calls>,
    in_flight: Arc<InFlightRequests>,
    channel: ClientChannel,
    inline: Arc<InlineRunner>,
    /// A permit for each byte of the requests in flight.
    permits: Arc<Semaphore>,
    ping_permits: Arc<Semaphore>,
    messages: mpsc::Sender<Incoming>,
    line_max: usize,
    input: Mutex<Input>,
    runtime: Handle,
}

struct Input {
    lines: Lines,
    /// A request that waits for its permit, so that cancellations behind it are still seen. The next request waits for it.
    waiting: Option<JoinHandle<()>>,
}

/// The next step for a line.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Next {
    PassOn(Incoming),
    /// Run it on the thread that read it.
    Run(InlineCall),
}

/// Input that has been read behind a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// Something, or that is not known. A client that sends several requests at once wants them to run at once.
    Something,
}

impl Reader {
    /// The reader, and the other end of what it does not run itself.
    pub fn new(
        calls: Arc<Calls>,
        in_flight: Arc<InFlightRequests>,
        channel: ClientChannel,
        inline: Arc<InlineRunner>,
    ) -> (Arc<Self>, mpsc::Receiver<Incoming>) {
        let (messages, receiver) = mpsc::channel(64);
        let longest = calls.limits.max_size + message::OVERHEAD_MAX;
        let line_max = usize::try_from(longest).unwrap_or(usize::MAX >> 4);
        let permits = Arc::new(Semaphore::new(IN_FLIGHT_MAX.max(2 * line_max)));
        let input = Mutex::new(Input { lines: Lines::default(), waiting: None });
        let reader = Self {
            calls,
            in_flight,
            channel,
            inline,
            permits,
            ping_permits: Arc::new(Semaphore::new(PINGS_MAX)),
            messages,
            line_max,
            input,
            runtime: Handle::current(),
        };
        (Arc::new(reader), receiver)
    }

    /// Starts the thread that reads stdin, and another one whenever that is stuck in a call.
    pub fn start(self: Arc<Self>) -> io::Result<()> {
        let (inline, reader) = (Arc::clone(&self.inline), Arc::downgrade(&self));
        start_thread(move || self.read())?;
        tokio::spawn(async move {
            // Only a thread that has started takes over: until then the other one reads on when it is done.
            let relieve = |run| {
                let Some(reader) = reader.upgrade() else { return };
                let _ = start_thread(move || {
                    if reader.inline.end_run(run) {
                        reader.read();
                    }
                });
            };
            inline.watch(relieve).await;
        });
        Ok(())
    }

    /// Reads to the end, or until another thread reads.
    fn read(self: &Arc<Self>) {
        loop {
            let mut input = lock(&self.input);
            let Ok(Some(line)) = input.lines.next(self.line_max, pipe::read) else { break };
            let goes_on = match self.handle_line(&mut input, line) {
                None => true,
                Some(Next::PassOn(incoming)) => self.pass_on(incoming),
                Some(Next::Run(call)) => {
                    drop(input);
                    self.inline.run(call, &self.runtime)
                }
            };
            if !goes_on {
                return;
            }
        }
        self.channel.close();
        self.pass_on(Incoming::End);
    }

    /// Acquires the permit of a line and accepts it, in the order of the lines.
    fn handle_line(self: &Arc<Self>, input: &mut Input, line: Line) -> Option<Next> {
        if input.waiting.is_some() {
            match Urgency::of(&line) {
                Urgency::None => {}
                Urgency::Unanswered => return self.accept(&line, None, Ahead::Something),
                Urgency::Ping => {
                    let permits = Arc::clone(&self.ping_permits);
                    let bytes = u32::try_from(line.len().max(PING_BYTES_MIN)).unwrap_or(u32::MAX);
                    // A client that reads none of the answers has to read some first.
                    let permit = self.runtime.block_on(permits.acquire_many_owned(bytes)).ok();
                    return self.accept(&line, permit, Ahead::Something);
                }
            }
        }
        if let Some(waiting) = input.waiting.take() {
            let _ = self.runtime.block_on(waiting);
        }
        let bytes = u32::try_from(line.len().max(BYTES_MIN)).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_many_owned(bytes) {
            let ahead = if input.lines.is_empty() { Ahead::Nothing } else { Ahead::Something };
            return self.accept(&line, Some(permit), ahead);
        }
        let reader = Arc::clone(self);
        input.waiting = Some(self.runtime.spawn(async move {
            let permit = Arc::clone(&reader.permits).acquire_many_owned(bytes).await.ok();
            if let Some(Next::PassOn(incoming)) = reader.accept(&line, permit, Ahead::Something)
                && let Err(late) = reader.messages.send(incoming).await
            {
                reader.forget(late.0);
            }
        }));
        None
    }

    /// False when the server is stopping.
    fn pass_on(&self, incoming: Incoming) -> bool {
        let sent = self.messages.blocking_send(incoming);
        sent.map_err(|late| self.forget(late.0)).is_ok()
    }

    /// Forgets a request that came too late to be answered.
    fn forget(&self, late: Incoming) {
        let id = late.id();
        drop(late);
        id.and_then(|id| self.in_flight.remove(&id));
    }

    /// Parses a line and accepts its call.
    fn accept(&self, line: &Line, permit: RequestPermit, ahead: Ahead) -> Option<Next> {
        let line = match line {
            Line::Whole(line) => line.trim_ascii(),
            Line::TooLong { head, tail } => {
                let id = message::id_of_cut_line(head, tail);
                let detail = format!(
                    "a line may have {} bytes; raise --max-size for larger texts",
                    self.line_max
                );
                let code = error_codes::INVALID_REQUEST;
                let response = ErrorResponse::new(id, code, "Request too large");
                return Some(self.refuse(response.with_detail(detail), permit));
            }
        };
        if line.is_empty() {
            return None;
        }
        let envelope = match ClientMessage::parse(line) {
            Ok(ClientMessage::Request(envelope)) => envelope,
            Ok(ClientMessage::Response(id, result)) => {
                self.channel.answer(&id, result);
                return None;
            }
            Err(response) => return Some(self.refuse(response, permit)),
        };
        let Some(id) = envelope.id.clone() else {
            return self.accept_notification(&envelope).map(Next::PassOn);
        };
        let method = envelope.method.as_ref();
        let plain = self.calls.options.method(method);
        let mut permit = Some(permit);
        let next = if let Some(tool) = plain {
            self.accept_plain(tool, &id, envelope.params, &mut permit, ahead)
        } else if method == "tools/call" {
            self.accept_tool_call(&id, envelope.params, &mut permit, ahead)
        } else {
            self.accept_request(&id, method, line, &mut permit, ahead)
        };
        Some(next.unwrap_or_else(|response| self.refuse(response, permit.flatten())))
    }

    fn refuse(&self, response: ErrorResponse, permit: RequestPermit) -> Next {
        self.calls.log_refusal(&response);
        Next::PassOn(Incoming::Refused(response, permit))
    }

    /// Accepts a cancellation. Other notifications are ignored.
    fn accept_notification(&self, envelope: &Envelope) -> Option<Incoming> {
        let request_id = envelope.cancelled()?;
        self.in_flight.cancel(&request_id);
        Some(Incoming::Cancel(request_id))
    }

    fn accept_plain(
        &self,
        tool: &'static tools::ToolSpec,
        id: &RequestId,
        params: Option<&RawValue>,
        permit: &mut Option<RequestPermit>,
        ahead: Ahead,
    ) -> Result<Next, ErrorResponse> {
        let arguments = message::arguments(id, params.map(RawValue::get))?;
        let pending = self.calls.accept(tool, arguments, id.to_string(), None);
        let cancel = pending.control.cancel.clone();
        let runs = ahead == Ahead::Nothing && self.inline.may_call(tool);
        let guard = self.start_call(id, permit, cancel, SharedLargeTexts::default())?;
        Ok(if runs {
            Next::Run(InlineCall::Plain(guard, pending.on_this_thread()))
        } else {
            Next::PassOn(Incoming::Plain(guard, Box::new(pending)))
        })
    }

    fn accept_tool_call(
        &self,
        id: &RequestId,
        params: Option<&RawValue>,
        permit: &mut Option<RequestPermit>,
        ahead: Ahead,
    ) -> Result<Next, ErrorResponse> {
        let call = ToolCall::parse(id, params)?;
        let handle = CallHandle::accept(&self.calls, id, &call, Some(self.channel.clone()))?;
        // An edit may wait for a lock, and could not report that from this thread.
        let reports = handle.tool.effect != Effect::Reads && call.wants_progress();
        let runs = ahead == Ahead::Nothing && !reports && self.inline.may_call(handle.tool);
        let handle = if runs { handle.on_this_thread() } else { handle };
        let large_texts = Arc::clone(&handle.large_texts);
        let guard = self.start_call(id, permit, handle.cancel_signal(), large_texts)?;

        let mut request = CallToolRequest::new(CallToolRequestParams::new(call.name));
        request.extensions.insert(handle.with_guard(guard));
        if let Some(Small(meta)) = call.meta {
            request.extensions.insert(meta);
        }
        let request = ClientRequest::CallToolRequest(request);
        Ok(match ClientJsonRpcMessage::request(request, id.clone()) {
            JsonRpcMessage::Request(request) if runs => Next::Run(InlineCall::Request(request)),
            message => Next::PassOn(Incoming::Message(Box::new(message))),
        })
    }

    /// Any other request. `rmcp` answers it, if it is one of those that it is asked for.
    fn accept_request(
        &self,
        id: &RequestId,
        method: &str,
        line: &[u8],
        permit: &mut Option<RequestPermit>,
        ahead: Ahead,
    ) -> Result<Next, ErrorResponse> {
        if !methods::SERVED.contains(&method) {
            let reason = self.calls.options.unserved_reason(method);
            return Err(methods::not_found(id, method, reason));
        }
        let mut message = methods::request(id, method, line)?;
        self.channel.note_capabilities(&message);
        if let Some(handle) = resources::accept(&self.calls, &message, Some(self.channel.clone()))
            && let JsonRpcMessage::Request(request) = &mut message
        {
            let large_texts = Arc::clone(&handle.large_texts);
            let guard = self.start_call(id, permit, handle.cancel_signal(), large_texts)?;
            request.request.extensions_mut().insert(handle.with_guard(guard));
            return Ok(Next::PassOn(Incoming::Message(Box::new(message))));
        }
        let runs = ahead == Ahead::Nothing && self.inline.may_run();
        self.calls.log_request(method, id);
        let request = InFlightRequest {
            permit: permit.take().flatten(),
            cancel: CancelSignal::default(),
            large_texts: SharedLargeTexts::default(),
            state: State::Answering,
        };
        self.register(id, request)?;
        Ok(match message {
            JsonRpcMessage::Request(request) if runs => Next::Run(InlineCall::Request(request)),
            message => Next::PassOn(Incoming::Message(Box::new(message))),
        })
    }

    fn start_call(
        &self,
        id: &RequestId,
        permit: &mut Option<RequestPermit>,
        cancel: CancelSignal,
        large_texts: SharedLargeTexts,
    ) -> Result<WorkGuard, ErrorResponse> {
        let permit = permit.take().flatten();
        let state = State::Running;
        self.register(id, InFlightRequest { permit, cancel, large_texts, state })?;
        Ok(WorkGuard { id: id.clone(), in_flight: Arc::clone(&self.in_flight) })
    }

    fn register(&self, id: &RequestId, request: InFlightRequest) -> Result<(), ErrorResponse> {
        if self.in_flight.insert(id.clone(), request) {
            return Ok(());
        }
        let code = error_codes::INVALID_REQUEST;
        let response = ErrorResponse::new(Some(id.clone()), code, "Invalid Request");
        Err(response.with_detail("a request with this `id` is not answered yet"))
    }
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("stdin".into()).spawn(work).map(drop)
}

/// Which messages must not wait behind a request without a permit: they may be what frees one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Urgency {
    None,
    Ping,
    /// A notification, or an answer to a request of ours.
    Unanswered,
}

impl Urgency {
    fn of(line: &Line) -> Self {
        match line {
            Line::Whole(line) if line.len() < BYTES_MIN => {
                match ClientMessage::parse(line.trim_ascii()) {
                    Ok(ClientMessage::Response(..)) => Self::Unanswered,
                    Ok(ClientMessage::Request(envelope)) if envelope.id.is_none() => {
                        Self::Unanswered
                    }
                    Ok(ClientMessage::Request(envelope)) if envelope.method == "ping" => Self::Ping,
                    _ => Self::None,
                }
            }
            _ => Self::None,
        }
    }
}
