//! Asking before a call writes: a person through the client (`--confirm`), or the observer of an embedding program.
//!
//! A call that would write is rehearsed, the change is shown, and then the call writes exactly that or nothing (an edit by
//! exact strings that an observer allowed may also be made on what is there then). While
//! somebody is asked, the call holds no lock and no slot in a queue, and the time does not count.
//!
//! Clients of older protocol versions are sent a request, and the call waits. Since 2026-07-28 the call is answered with the
//! question, and the client calls again with the reply; what was shown comes back sealed. Code that a model generated is
//! kept here meanwhile: the model would write something else the next time.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use files::StoreError;
use rmcp::ErrorData;
use rmcp::model::InputRequiredResult;
use serde_json::{Value, json};
use tools::rehearsal;
use tools::{ChangeDigest, Effect, FileChange, ToolSpec};

use crate::call::Calls;
use crate::call::confirmations::{
    Confirmed, GeneratedCall, declined, nobody_to_ask, too_many, unanswered,
};
use crate::call::pending_call::{CallResult, PendingCall, internal_error};
use crate::call::progress::Phase;
use crate::client_channel::ClientChannel;
use crate::generation;
use crate::observer::{ObservedCall, Permission, Verdict};
use crate::options::Confirm;

/// The name of the one question of a call.
const QUESTION: &str = "confirm";

/// How a person can be asked about a call.
pub enum AskMethod {
    /// Not at all.
    Nobody,
    /// By a request to the client, while the call waits.
    Request(ClientChannel),
    /// By the answer to the call.
    Response,
    /// It was asked before, and this is the reply.
    Replied(PersonReply),
}

/// A person's reply to a question that was the answer to an earlier call.
pub enum PersonReply {
    Yes(Confirmed),
    No,
}

/// The answer to a call: its result, or a question that the client is to call again with.
pub enum CallResponse {
    Result(CallResult),
    Question(InputRequiredResult),
}

/// The outcome of asking: run the call, or answer with a question.
#[expect(clippy::large_enum_variant, reason = "one at a time, mostly a call")]
enum Decision {
    Run(PendingCall),
    Ask(InputRequiredResult),
}

/// Runs a call to its end: code is generated, whoever has to be asked is asked, and the tool runs.
///
/// Boxed here and never inlined: a future is compiled again in each crate that polls it by its own type, and this one has
/// 60 KB of code.
#[inline(never)]
pub fn answer(
    calls: &Arc<Calls>,
    pending: PendingCall,
    ask_method: AskMethod,
) -> Pin<Box<dyn Future<Output = CallResponse> + Send + '_>> {
    Box::pin(answer_in_order(calls, pending, ask_method))
}

async fn answer_in_order(
    calls: &Arc<Calls>,
    mut pending: PendingCall,
    mut ask_method: AskMethod,
) -> CallResponse {
    let observed = pending.control.observed.clone();
    let asks_client = observed.is_none() && calls.options.asks(pending.tool());
    if asks_client {
        pending = before_generation(calls, pending, &mut ask_method);
    }
    if pending.needs_generation() {
        pending = generation::generate(calls, pending).await;
    }
    let decision = match observed {
        Some(observed) => Decision::Run(ask_observer(calls, pending, &observed).await),
        None if asks_client => ask_client(calls, pending, ask_method).await,
        None => Decision::Run(pending),
    };
    match decision {
        Decision::Run(pending) => CallResponse::Result(Arc::clone(calls).run(pending).await),
        Decision::Ask(question) => CallResponse::Question(question),
    }
}

/// Runs a call about which no client can be asked.
pub async fn answer_unasked(calls: &Arc<Calls>, pending: PendingCall) -> CallResult {
    match answer(calls, pending, AskMethod::Nobody).await {
        CallResponse::Result(result) => result,
        CallResponse::Question(_) => CallResult { outcome: Err(internal_error()), permit: None },
    }
}

/// Before a model is asked: refuses a call that could not write afterwards, and takes over what was generated when a person
/// agreed to it.
fn before_generation(
    calls: &Calls,
    pending: PendingCall,
    ask_method: &mut AskMethod,
) -> PendingCall {
    if !pending.needs_generation() {
        return pending;
    }
    match ask_method {
        AskMethod::Nobody if calls.options.confirm == Confirm::Always => {
            pending.refuse(nobody_to_ask())
        }
        AskMethod::Replied(PersonReply::No) => pending.refuse(declined()),
        AskMethod::Replied(PersonReply::Yes(confirmed)) => match confirmed.generated.take() {
            Some(generated) => calls.rejoin_queue(pending.with_kept(*generated)),
            None => pending.refuse(internal_error()),
        },
        AskMethod::Nobody | AskMethod::Request(_) | AskMethod::Response => pending,
    }
}

async fn ask_client(calls: &Arc<Calls>, pending: PendingCall, ask_method: AskMethod) -> Decision {
    let channel = match ask_method {
        AskMethod::Nobody if calls.options.confirm == Confirm::Auto => {
            return Decision::Run(pending);
        }
        AskMethod::Nobody => return Decision::Run(pending.refuse(nobody_to_ask())),
        AskMethod::Replied(PersonReply::Yes(confirmed)) => {
            return Decision::Run(pending.with_approved(confirmed.change));
        }
        AskMethod::Replied(PersonReply::No) => return Decision::Run(pending.refuse(declined())),
        AskMethod::Request(channel) => Some(channel),
        AskMethod::Response => None,
    };
    let show = |tool: &ToolSpec, changes| rehearsal::question(tool.name, changes);
    let (pending, change, question) = match rehearse(calls, pending, show).await {
        Ok(rehearsed) => rehearsed,
        Err(pending) => return Decision::Run(pending),
    };
    let Some(channel) = channel else { return ask_by_answer(calls, pending, &change, &question) };
    let Some(questions) = channel.questions.clone() else {
        return Decision::Run(pending.refuse(nobody_to_ask()));
    };
    let ask = async {
        let answer = questions.ask(&channel, "elicitation/create", form(&question));
        let answer = tokio::time::timeout(calls.confirmations.timeout, answer).await;
        match answer.ok().flatten().as_ref().and_then(is_accepted) {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::Unanswered,
        }
    };
    let memory_bytes = pending.request.memory_bytes;
    Decision::Run(decide(calls, pending, change, memory_bytes, ask).await)
}

/// Asks the observer whether the call may run, and about its change if the observer wants that.
async fn ask_observer(
    calls: &Arc<Calls>,
    pending: PendingCall,
    call: &ObservedCall,
) -> PendingCall {
    let (since, cancel) = (Instant::now(), pending.control.cancel.clone());
    let (observer, info) = (call.observer(), call.info());
    tokio::select! {
        biased;
        () = observer.ready() => {}
        () = cancel.cancelled() => {}
        () = calls.stopped() => {}
    }
    let pending = pending.with_uncounted(since.elapsed());
    if info.effect == Effect::Reads {
        return pending;
    }
    let refuse = |pending: PendingCall, reason: &'static str| {
        let denied = StoreError::Denied { reason: Some(reason.into()) };
        pending.refuse_by(&denied, &calls.limits)
    };
    let pending = calls.wait_in_queue(pending).await;
    if pending.is_refused() {
        return pending;
    }
    match observer.permission(info) {
        Permission::Granted => return pending,
        Permission::Ask => {}
        Permission::Refused(reason) => return refuse(pending, reason),
    }
    let show = |_: &ToolSpec, changes: Vec<FileChange>| changes;
    let (pending, change, changes) = match rehearse(calls, pending, show).await {
        Ok(rehearsed) => rehearsed,
        Err(pending) => return pending,
    };
    let size: usize = changes.iter().map(FileChange::memory_bytes).sum();
    let memory_bytes = pending.request.memory_bytes + size;
    let ask = observer.ask(info, &changes);
    let pending = decide(calls, pending, change, memory_bytes, ask).await;
    if pending.is_refused() {
        return pending;
    }
    // That may be long after.
    let pending = calls.wait_in_queue(pending).await;
    match observer.permission(info) {
        Permission::Refused(reason) => refuse(pending, reason),
        Permission::Granted | Permission::Ask => pending,
    }
}

/// Finds out what the call would write, and what is to be shown of that. Nobody needs to be asked about a call that is
/// refused or would write nothing: it is the error.
async fn rehearse<T: Send + 'static>(
    calls: &Arc<Calls>,
    pending: PendingCall,
    show: impl FnOnce(&ToolSpec, Vec<FileChange>) -> T + Send + 'static,
) -> Result<(PendingCall, ChangeDigest, T), PendingCall> {
    match calls.rehearse(pending, show).await {
        (pending, None) => Err(pending),
        (pending, Some((change, None))) => Err(calls.rejoin_queue(pending).with_approved(change)),
        (pending, Some((change, Some(shown)))) => Ok((pending, change, shown)),
    }
}

/// Asks about a change, and applies the verdict to the call.
async fn decide(
    calls: &Arc<Calls>,
    pending: PendingCall,
    change: ChangeDigest,
    memory_bytes: usize,
    ask: impl Future<Output = Verdict>,
) -> PendingCall {
    let Some(held) = calls.confirmations.hold(memory_bytes) else {
        return pending.refuse(too_many());
    };
    // In place of the permit that its body had: a person may take long, and bodies must not wait for that.
    let pending = pending.holding(Some(held));
    pending.control.progress.set(Phase::Asking);
    let (since, cancel) = (Instant::now(), pending.control.cancel.clone());
    let verdict = tokio::select! {
        verdict = ask => Ok(verdict),
        () = cancel.cancelled() => Err(StoreError::Cancelled),
        () = calls.stopped() => Err(StoreError::Stopping),
    };
    let pending = pending.with_uncounted(since.elapsed());
    match verdict {
        Ok(Verdict::Yes) => calls.rejoin_queue(pending).with_approved(change),
        Ok(Verdict::No) => pending.refuse(declined()),
        Ok(Verdict::Unanswered) => pending.refuse(unanswered()),
        Err(error) => pending.refuse_by(&error, &calls.limits),
    }
}

/// Answers the call with the question, and keeps what a model generated for it.
fn ask_by_answer(
    calls: &Arc<Calls>,
    mut pending: PendingCall,
    change: &ChangeDigest,
    question: &str,
) -> Decision {
    let mut generated = None;
    if pending.request.digest.is_some() {
        let Some(held) = calls.confirmations.hold(pending.request.memory_bytes) else {
            return Decision::Run(pending.refuse(too_many()));
        };
        generated = pending.take_prepared().map(|prepared| GeneratedCall { prepared, held });
    }
    let is_kept = generated.is_some();
    let state = calls.confirmations.seal(&sealed_subject(&pending), change, generated);
    if is_kept {
        forget_in_time(calls);
    }
    Decision::Ask(question_as_answer(question, state))
}

/// Drops what was kept once it has expired: the client may never call again.
fn forget_in_time(calls: &Arc<Calls>) {
    let (calls, timeout) = (Arc::downgrade(calls), calls.confirmations.timeout);
    tokio::spawn(async move {
        tokio::time::sleep(timeout).await;
        if let Some(calls) = calls.upgrade() {
            calls.confirmations.forget_expired();
        }
    });
}

/// A question as the answer to a call, which is to be made again with this state.
fn question_as_answer(question: &str, state: String) -> InputRequiredResult {
    let mut params = form(question);
    params["mode"] = "form".into();
    let request = json!({ "method": "elicitation/create", "params": params });
    let requests = serde_json::from_value(json!({ QUESTION: request })).ok();
    InputRequiredResult::new(requests, Some(state))
}

/// An empty form: yes and no are the client's own buttons.
fn form(question: &str) -> Value {
    json!({ "message": question, "requestedSchema": { "type": "object", "properties": {} } })
}

/// True for yes. `None` if it is no answer to a form.
fn is_accepted(answer: &Value) -> Option<bool> {
    match answer.get("action")?.as_str()? {
        "accept" => Some(true),
        "decline" | "cancel" => Some(false),
        _ => None,
    }
}

/// The subject of a sealed question: toolset, tool, files, and the digest of what a model was told to write.
fn sealed_subject(pending: &PendingCall) -> Vec<u8> {
    let request = &pending.request;
    let digest = request.digest.map(|digest| digest.to_string()).unwrap_or_default();
    let (toolset, tool) = request.tool.key();
    [toolset, tool, &digest, &request.targets.join("\0")].join("\0").into_bytes()
}

/// The state and the reply that a client calls again with.
#[derive(Clone, Default)]
pub struct SecondCall {
    state: Option<String>,
    answer: Option<Value>,
}

impl SecondCall {
    pub fn new(state: Option<String>, answers: Option<HashMap<String, Value>>) -> Self {
        Self { state, answer: answers.and_then(|mut answers| answers.remove(QUESTION)) }
    }

    /// The reply. `None` if there is none, so that somebody has to be asked.
    pub fn reply(
        &self,
        calls: &Calls,
        pending: &PendingCall,
    ) -> Result<Option<PersonReply>, ErrorData> {
        let (Some(state), Some(answer)) = (&self.state, &self.answer) else { return Ok(None) };
        let invalid = |detail: &str| {
            ErrorData::invalid_params("Invalid params", Some(json!({ "detail": detail })))
        };
        let accepted = is_accepted(answer)
            .ok_or_else(|| invalid("`inputResponses.confirm` must have `action`"))?;
        let confirmed = calls.confirmations.open(&sealed_subject(pending), state).ok_or_else(|| {
            invalid(
                "`requestState` is unknown, already used, replaced by newer ones or older than ten minutes; nothing was written; call again without it for a new question",
            )
        })?;
        Ok(Some(if accepted { PersonReply::Yes(confirmed) } else { PersonReply::No }))
    }
}
