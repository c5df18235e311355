//! A `tools/call` on its way through `rmcp`: the call itself stays here, and `rmcp` sees only the small rest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, InputRequiredResult, RequestId, RequestMetaObject};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::{Dialect, Failure, FailureKind, ToolOutput, ToolSpec};

use crate::call::Calls;
use crate::call::pending_call::PendingCall;
use crate::cancel::CancelSignal;
use crate::client_channel::{ClientChannel, shows_forms};
use crate::confirm::{self, AskMethod, CallResponse, SecondCall};
use crate::lock::lock;
use crate::memory_budget::Permit;
use crate::message::{self, ErrorResponse};
use crate::outgoing::SharedLargeTexts;
use crate::{error_codes, json_arguments};

use super::methods::{is_modern, shortened};

/// A call that a transport has accepted, attached to the request that it gives to `rmcp`: the call has its slot in the
/// queue already. Besides, how to reach the client meanwhile, and where to leave large texts.
#[derive(Clone)]
pub struct CallHandle {
    pub tool: &'static ToolSpec,
    /// The file as asked for, for failures of the code tools.
    pub(super) target: Option<String>,
    pending: Arc<Mutex<Option<PendingCall>>>,
    channel: Option<ClientChannel>,
    second_call: SecondCall,
    pub large_texts: SharedLargeTexts,
    crashed: Arc<AtomicBool>,
    /// Dropped when the call is over.
    #[expect(dead_code, reason = "held, not read")]
    guard: Option<Arc<dyn Send + Sync>>,
}

/// The answer that `rmcp` is to give.
pub enum CallOutcome {
    Outcome(Result<ToolOutput, Failure>),
    /// A person has to be asked first.
    Question(InputRequiredResult),
}

/// The parameters of `tools/call`.
pub struct ToolCall<'a> {
    pub name: String,
    arguments: Option<&'a str>,
    pub meta: Option<Small<RequestMetaObject>>,
    request_state: Option<String>,
    input_responses: Option<Small<HashMap<String, Value>>>,
}

/// A value with no more names and values than a message may have besides the arguments.
#[derive(Clone)]
pub struct Small<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Small<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        if json_arguments::count(json.as_bytes()) > message::VALUES_MAX {
            return Err(D::Error::custom("too many names and values"));
        }
        serde_json::from_str(json).map(Self).map_err(D::Error::custom)
    }
}

impl<'a> ToolCall<'a> {
    /// True if the client wants progress notifications.
    pub fn wants_progress(&self) -> bool {
        self.meta.as_ref().is_some_and(|Small(meta)| meta.get_progress_token().is_some())
    }

    /// The members that are read.
    pub const MEMBERS: [&'static str; 5] =
        ["name", "arguments", "_meta", "requestState", "inputResponses"];

    pub fn parse(id: &RequestId, params: Option<&'a RawValue>) -> Result<Self, ErrorResponse> {
        let call = params.and_then(|params| Self::read(params.get()));
        call.ok_or_else(|| {
            message::invalid_params(
                id,
                "`params` must have `name`, a string; `_meta` and `inputResponses` must be objects of at most 256 names and values",
            )
        })
    }

    /// Reads each member at most once, and skips all others.
    fn read(params: &'a str) -> Option<Self> {
        let mut found = [None; Self::MEMBERS.len()];
        for (member, value) in json_arguments::members(params) {
            let member: Cow<str> = serde_json::from_str(member).ok()?;
            let index = Self::MEMBERS.iter().position(|name| *name == member);
            if index.is_some_and(|index| found[index].replace(value).is_some()) {
                return None;
            }
        }
        let [name, arguments, meta, request_state, input_responses] = found;
        Some(Self {
            name: serde_json::from_str(name?).ok()?,
            arguments: arguments.filter(|arguments| *arguments != "null"),
            meta: serde_json::from_str(meta.unwrap_or("null")).ok()?,
            request_state: serde_json::from_str(request_state.unwrap_or("null")).ok()?,
            input_responses: serde_json::from_str(input_responses.unwrap_or("null")).ok()?,
        })
    }
}

impl CallHandle {
    /// Accepts the call of a `tools/call`. `Mcp::call_tool` finds the handle in the request.
    pub fn accept(
        calls: &Calls,
        id: &RequestId,
        call: &ToolCall,
        channel: Option<ClientChannel>,
    ) -> Result<Self, ErrorResponse> {
        let tool = find_tool(calls, &call.name).map_err(|error| {
            let response = ErrorResponse::new(Some(id.clone()), error.code.0, error.message);
            response.with_data(error.data.unwrap_or_default())
        })?;
        let arguments = message::arguments(id, call.arguments)?;
        let target = (tool.dialect == Dialect::Code)
            .then(|| error_codes::target(&arguments).map(String::from));
        let call_id = call.meta.as_ref().and_then(|Small(meta)| meta.get("callId")?.as_str());
        let pending = calls.accept(tool, arguments, id.to_string(), call_id);
        let answers = call.input_responses.clone().map(|Small(answers)| answers);
        let second_call = SecondCall::new(call.request_state.clone(), answers);
        Ok(Self { second_call, target: target.flatten(), ..Self::new(pending, channel) })
    }

    pub fn new(pending: PendingCall, channel: Option<ClientChannel>) -> Self {
        Self {
            tool: pending.tool(),
            target: None,
            pending: Arc::new(Mutex::new(Some(pending))),
            channel,
            second_call: SecondCall::default(),
            large_texts: SharedLargeTexts::default(),
            crashed: Arc::default(),
            guard: None,
        }
    }

    /// The handle that the transport attached to a request.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let over_http = || context.extensions.get::<Parts>()?.extensions.get::<Self>();
        context.extensions.get::<Self>().or_else(over_http).cloned()
    }

    /// Runs the call, unless a person has to be asked first. The permit for the answer is left for the transport.
    pub async fn answer(
        &self,
        calls: &Arc<Calls>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallOutcome, ErrorData> {
        let Some(pending) = lock(&self.pending).take() else {
            return Err(ErrorData::internal_error("Internal error", None));
        };
        let ask_method = self.ask_method(calls, context, &pending)?;
        let control = pending.control.clone();
        let answer = confirm::answer(calls, pending, ask_method);
        let reports = async {
            match (&self.channel, context.meta.get_progress_token()) {
                (Some(channel), Some(token)) => channel.report(token, &control.progress).await,
                _ => std::future::pending().await,
            }
        };
        tokio::pin!(answer);
        let answer = tokio::select! {
            answer = &mut answer => answer,
            () = reports => answer.await,
            () = context.ct.cancelled() => {
                control.cancel.cancel();
                answer.await
            }
        };
        let result = match answer {
            CallResponse::Result(result) => result,
            CallResponse::Question(question) => return Ok(CallOutcome::Question(question)),
        };
        if matches!(result.outcome, Err(Failure { kind: FailureKind::Internal, .. })) {
            self.crashed.store(true, Ordering::Relaxed);
        }
        lock(&self.large_texts).permit = result.permit;
        Ok(CallOutcome::Outcome(result.outcome))
    }

    /// How a person can be asked about the call.
    fn ask_method(
        &self,
        calls: &Calls,
        context: &RequestContext<RoleServer>,
        pending: &PendingCall,
    ) -> Result<AskMethod, ErrorData> {
        if !calls.options.asks(pending.tool()) {
            return Ok(AskMethod::Nobody);
        }
        // Since 2026-07-28 every request says what its client can do.
        if is_modern(&context.meta) {
            let capabilities = context.meta.client_capabilities().unwrap_or_default();
            return Ok(match self.second_call.reply(calls, pending)? {
                Some(reply) => AskMethod::Replied(reply),
                None if shows_forms(&capabilities) => AskMethod::Response,
                None => AskMethod::Nobody,
            });
        }
        Ok(match self.channel.as_ref().filter(|channel| channel.can_ask()) {
            Some(channel) => AskMethod::Request(channel.clone()),
            None => AskMethod::Nobody,
        })
    }

    /// Keeps `guard` until the call is over.
    pub fn with_guard(self, guard: impl Send + Sync + 'static) -> Self {
        Self { guard: Some(Arc::new(guard)), ..self }
    }

    /// The call runs on the thread that answers it.
    pub fn on_this_thread(self) -> Self {
        self.change(PendingCall::on_this_thread);
        self
    }

    /// The call keeps this permit until it is over.
    pub fn hold(&self, held: Option<Permit>) {
        self.change(|pending| pending.holding(held));
    }

    fn change(&self, change: impl FnOnce(PendingCall) -> PendingCall) {
        let mut pending = lock(&self.pending);
        *pending = pending.take().map(change);
    }

    pub fn cancel_signal(&self) -> CancelSignal {
        let pending = lock(&self.pending);
        pending.as_ref().map(|pending| pending.control.cancel.clone()).unwrap_or_default()
    }

    /// True if the call ended by a defect of ours.
    pub fn has_crashed(&self) -> bool {
        self.crashed.load(Ordering::Relaxed)
    }
}

/// The tool of that name, among all of this server: one that is not offered is refused later, with the reason.
pub fn find_tool(calls: &Calls, name: &str) -> Result<&'static ToolSpec, ErrorData> {
    let unknown = || {
        let known: Vec<_> = calls.options.offered().map(|tool| tool.name).collect();
        let data = json!({ "known_tools": known });
        ErrorData::new(
            ErrorCode::INVALID_PARAMS,
            format!("Unknown tool: {}", shortened(name)),
            Some(data),
        )
    };
    // A server is not given two tools of one name.
    calls.options.tools.iter().copied().find(|tool| tool.has_name(name)).ok_or_else(unknown)
}
