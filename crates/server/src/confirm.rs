//! Asking a person before anything is written: `--confirm`.
//!
//! A call that would write is rehearsed, the person is shown what it would change, and then it writes exactly that or
//! nothing. Nobody is asked under a lock or in a file's queue, and the time a person takes is not the call's.
//!
//! Clients of the older protocol are sent a request, and the call waits. Since 2026-07-28 the call is answered with the
//! question, and the client calls again with what was said; what it was shown comes back sealed. What a model wrote stays
//! here meanwhile: asked again, it would write something else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use files::StoreError;
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequiredResult};
use serde_json::{Value, json};
use tools::rehearsal;
use tools::{Entry, Failure, Kind, Seen};

use crate::aside::{Aside, Stage};
use crate::calls::{Arrived, Calls};
use crate::desk::{Agreed, Draft};

/// When a person is asked before a call writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    Never,
    /// When there is a way to.
    Auto,
    /// Always: what cannot be asked about is refused.
    Always,
}

/// The name of the one question of a call.
const QUESTION: &str = "confirm";

/// How a person can be asked about a call.
pub enum Way {
    /// Not at all.
    None,
    /// By a request to the client.
    Request(Aside),
    /// By the answer to the call.
    Answer,
    /// It was asked about before.
    Said(Said),
}

pub enum Said {
    Yes(Agreed),
    No,
}

/// What becomes of a call.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is a call as a rule")]
pub enum Settled {
    Run(Arrived),
    Ask(InputRequiredResult),
}

/// A question as the answer to a call, which is asked again with this state.
fn as_answer(question: &str, state: String) -> InputRequiredResult {
    let mut params = form(question);
    params["mode"] = "form".into();
    let request = json!({ "method": "elicitation/create", "params": params });
    let requests = serde_json::from_value(json!({ QUESTION: request })).ok();
    InputRequiredResult::new(requests, Some(state))
}

/// Yes and no are the client's own buttons: the form is empty.
fn form(question: &str) -> Value {
    json!({ "message": question, "requestedSchema": { "type": "object", "properties": {} } })
}

/// Whether a client that says this of itself shows forms. Before there were two kinds of questions, forms were all.
pub fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let kinds = capabilities.elicitation.as_ref();
    kinds.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// What a client says when it comes again.
#[derive(Clone, Default)]
pub struct Again {
    state: Option<String>,
    answer: Option<Value>,
}

impl Again {
    pub fn new(state: Option<String>, answers: Option<HashMap<String, Value>>) -> Self {
        Self { state, answer: answers.and_then(|mut answers| answers.remove(QUESTION)) }
    }

    /// What was said; `None` if nothing was, and it has to be asked.
    pub fn said(&self, calls: &Calls, arrived: &Arrived) -> Result<Option<Said>, ErrorData> {
        let (Some(state), Some(answer)) = (&self.state, &self.answer) else { return Ok(None) };
        let invalid = |detail: &str| {
            ErrorData::invalid_params("Invalid params", Some(json!({ "detail": detail })))
        };
        let accepted = is_accepted(answer)
            .ok_or_else(|| invalid("`inputResponses.confirm` must hold `action`"))?;
        let agreed = calls.desk.open(&about(arrived), state).ok_or_else(|| {
            invalid(
                "`requestState` is none that was given for such a call, was used before, gave way to newer ones or \
                 is older than ten minutes; nothing was written, call again without it to be asked again",
            )
        })?;
        Ok(Some(if accepted { Said::Yes(agreed) } else { Said::No }))
    }
}

/// What a sealed question is about: this tool, this file, and what a model was told to write.
fn about(arrived: &Arrived) -> Vec<u8> {
    let described = arrived.described().map(|hash| hash.to_string()).unwrap_or_default();
    let target = arrived.target().unwrap_or_default();
    [arrived.entry().name, "\0", &described, "\0", target].concat().into_bytes()
}

/// `None`: that is no answer to a form.
fn is_accepted(answer: &Value) -> Option<bool> {
    match answer.get("action")?.as_str()? {
        "accept" => Some(true),
        "decline" | "cancel" => Some(false),
        _ => None,
    }
}

/// Before a model is asked to write for the call: it is refused if nothing could be written then, and it has what was
/// written if a person agreed to that.
pub fn before_writing(calls: &Calls, arrived: Arrived, way: &mut Way) -> Arrived {
    if !arrived.is_unwritten() || !calls.options.asks(arrived.entry()) {
        return arrived;
    }
    match way {
        Way::None if calls.options.confirm == Confirm::Always => arrived.refuse(nobody_to_ask()),
        Way::Said(Said::No) => arrived.refuse(declined()),
        Way::Said(Said::Yes(agreed)) => match agreed.draft.take() {
            Some(draft) => calls.come_again(arrived.with_draft(*draft)),
            None => arrived.refuse(Failure::new(Kind::Internal, "Internal error")),
        },
        Way::None | Way::Request(_) | Way::Answer => arrived,
    }
}

/// Asks about the call, if that has to be.
pub async fn settle(calls: &Arc<Calls>, arrived: Arrived, way: Way) -> Settled {
    let confirm = calls.options.confirm;
    if !calls.options.asks(arrived.entry()) {
        return Settled::Run(arrived);
    }
    let aside = match way {
        Way::None if confirm == Confirm::Auto => return Settled::Run(arrived),
        Way::None => return Settled::Run(arrived.refuse(nobody_to_ask())),
        Way::Said(Said::Yes(agreed)) => return Settled::Run(arrived.bound_to(agreed.seen)),
        Way::Said(Said::No) => return Settled::Run(arrived.refuse(declined())),
        Way::Request(aside) => Some(aside),
        Way::Answer => None,
    };
    let show =
        |entry: &Entry, target: &str, change| rehearsal::question(entry.name, target, change);
    let (arrived, rehearsed) = calls.rehearse(arrived, show).await;
    let Some((seen, question)) = rehearsed else { return Settled::Run(arrived) };
    let Some(question) = question else {
        return Settled::Run(calls.come_again(arrived).bound_to(seen));
    };
    let Some(aside) = aside else { return ask_by_answer(calls, arrived, &seen, &question) };
    let Some(questions) = aside.questions.clone() else {
        return Settled::Run(arrived.refuse(nobody_to_ask()));
    };
    let Some(held) = calls.desk.hold(arrived.takes) else {
        return Settled::Run(arrived.refuse(too_many()));
    };
    // In place of the one that its body had: a person may take long, and bodies must not wait for that.
    let arrived = arrived.holding(Some(held));
    arrived.doing().set(Stage::Asking);
    let asked = Instant::now();
    let recall = arrived.recall().clone();
    let answer = tokio::select! {
        answer = questions.ask(&aside, "elicitation/create", form(&question)) => {
            Ok(answer.as_ref().and_then(is_accepted))
        }
        () = recall.rung() => Err(StoreError::Cancelled),
        () = calls.stopped() => Err(StoreError::Stopping),
        () = tokio::time::sleep(calls.desk.patience) => Ok(None),
    };
    let arrived = arrived.after(asked.elapsed());
    Settled::Run(match answer {
        Ok(Some(true)) => calls.come_again(arrived).bound_to(seen),
        Ok(Some(false)) => arrived.refuse(declined()),
        Ok(None) => arrived.refuse(unanswered()),
        Err(error) => arrived.refuse_by(&error, &calls.limits),
    })
}

/// Answers the call with the question, and keeps what a model wrote for it.
fn ask_by_answer(calls: &Arc<Calls>, mut arrived: Arrived, seen: &Seen, question: &str) -> Settled {
    let mut draft = None;
    if arrived.described().is_some() {
        let Some(held) = calls.desk.hold(arrived.takes) else {
            return Settled::Run(arrived.refuse(too_many()));
        };
        draft = arrived.take_prepared().map(|prepared| Draft { prepared, held });
    }
    let is_kept = draft.is_some();
    let state = calls.desk.seal(&about(&arrived), seen, draft);
    if is_kept {
        forget_in_time(calls);
    }
    Settled::Ask(as_answer(question, state))
}

/// Nobody may ever come again, and a draft must not stay for that.
fn forget_in_time(calls: &Arc<Calls>) {
    let (calls, patience) = (Arc::downgrade(calls), calls.desk.patience);
    tokio::spawn(async move {
        tokio::time::sleep(patience).await;
        if let Some(calls) = calls.upgrade() {
            calls.desk.forget_expired();
        }
    });
}

pub fn nobody_to_ask() -> Failure {
    Failure::new(Kind::Declined, "Not confirmed; nothing was written").with_hint(
        "the server asks a person before it writes (--confirm=always), and this client cannot ask one: \
         it needs form elicitation",
    )
}

pub fn declined() -> Failure {
    Failure::new(Kind::Declined, "Not confirmed; nothing was written")
        .with_hint("the person who was asked declined; ask them what they want instead")
}

pub fn unanswered() -> Failure {
    Failure::new(Kind::Declined, "Not confirmed; nothing was written")
        .with_hint("nobody answered the question whether to write")
}

pub fn too_many() -> Failure {
    Failure::new(Kind::Declined, "Not confirmed; nothing was written")
        .with_hint("too many questions are open already; try again when some are answered")
}
