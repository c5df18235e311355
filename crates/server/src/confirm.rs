//! Asking a person before anything is written: `--confirm`.
//!
//! A call that would write is rehearsed, the person is shown what it would change, and then it writes exactly that or
//! nothing. Nobody is asked under a lock or in a file's queue, and the time a person takes is not the call's.
//!
//! Clients of the older protocol are sent a request, and the call waits. Since 2026-07-28 the call is answered with the
//! question, and the client calls again with what was said; what it was shown comes back sealed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use files::StoreError;
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequiredResult, RequestStateCodec, SealOptions};
use serde_json::{Value, json};
use tools::rehearsal;
use tools::{Entry, Failure, Kind, Seen};

use crate::aside::{Aside, Stage};
use crate::calls::{Arrived, Calls};
use crate::mcp::lock;
use crate::random;
use crate::room::{Room, Share};

/// When a person is asked before a call writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    Never,
    /// When there is a way to.
    Auto,
    /// Always: what cannot be asked about is refused.
    Always,
}

/// How long a question stays open.
const PATIENCE: Duration = Duration::from_mins(10);
/// Questions that may be open at once, when clients come again with the answer.
const MOST_SEALED: usize = 1024;
/// Bytes of arguments that may be held for those who are asked about them, and what a call counts for at least. On stdio
/// that is half of what may be in flight: there is always room for the rest.
const HELD: usize = 32 << 20;
const SMALLEST: usize = 64 << 10;

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
    Yes(Seen),
    No,
}

/// What becomes of a call.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is a call as a rule")]
pub enum Settled {
    Run(Arrived),
    Ask(InputRequiredResult),
}

/// What all questions share.
pub struct Desk {
    codec: RequestStateCodec,
    /// The questions that were given to a client and can still be answered, each once.
    sealed: Mutex<HashMap<[u8; 16], Instant>>,
    held: Arc<Room>,
    /// How long a question stays open.
    patience: Duration,
}

impl Desk {
    pub fn new(max_size: u64) -> Self {
        let held = HELD.max(usize::try_from(max_size).unwrap_or(HELD));
        Self {
            codec: RequestStateCodec::try_new(random::bytes::<32>())
                .expect("the key is long enough"),
            sealed: Mutex::default(),
            held: Room::new(held),
            patience: PATIENCE,
        }
    }

    /// Room for what is held while somebody is asked about it.
    pub fn hold(&self, bytes: usize) -> Option<Share> {
        self.held.take_now(bytes.max(SMALLEST))
    }

    /// A question as the answer to a call.
    fn seal(&self, about: &[u8], seen: &Seen, question: &str) -> InputRequiredResult {
        let nonce = random::bytes::<16>();
        let now = Instant::now();
        let mut sealed = lock(&self.sealed);
        sealed.retain(|_, until| *until > now);
        if sealed.len() >= MOST_SEALED {
            let oldest = sealed.iter().min_by_key(|(_, until)| **until).map(|(nonce, _)| *nonce);
            oldest.and_then(|oldest| sealed.remove(&oldest));
        }
        sealed.insert(nonce, now + self.patience);
        drop(sealed);
        let payload = [&nonce[..], &seen.to_bytes()].concat();
        let options = SealOptions::new().associated_data(about).ttl(self.patience);
        let state = self.codec.seal_with(&payload, &options);
        let mut params = form(question);
        params["mode"] = "form".into();
        let request = json!({ "method": "elicitation/create", "params": params });
        let requests = serde_json::from_value(json!({ QUESTION: request })).ok();
        InputRequiredResult::new(requests, Some(state))
    }

    /// What was seen, by the state that came back; only the first time.
    fn open(&self, about: &[u8], state: &str) -> Option<Seen> {
        let payload = self.codec.open_with(state, about).ok()?;
        let (nonce, seen) = payload.split_first_chunk::<16>()?;
        let until = lock(&self.sealed).remove(nonce)?;
        if until > Instant::now() { Seen::from_bytes(seen) } else { None }
    }
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
        let seen = calls.desk.open(&about(arrived), state).ok_or_else(|| {
            invalid(
                "`requestState` is none that was given for such a call, was used before or is older \
                 than ten minutes; nothing was written, call again without it to be asked again",
            )
        })?;
        Ok(Some(if accepted { Said::Yes(seen) } else { Said::No }))
    }
}

/// What a sealed question is about: this tool, and this file.
fn about(arrived: &Arrived) -> Vec<u8> {
    [arrived.entry().name, "\0", arrived.target().unwrap_or_default()].concat().into_bytes()
}

/// `None`: that is no answer to a form.
fn is_accepted(answer: &Value) -> Option<bool> {
    match answer.get("action")?.as_str()? {
        "accept" => Some(true),
        "decline" | "cancel" => Some(false),
        _ => None,
    }
}

/// Whether a model may be asked to write for the call: not if nothing could be written then.
pub fn may_be_written(calls: &Calls, arrived: &Arrived, way: &Way) -> Result<(), Failure> {
    if !arrived.is_unwritten() || !calls.options.asks(arrived.entry()) {
        return Ok(());
    }
    match way {
        Way::None if calls.options.confirm == Confirm::Always => Err(nobody_to_ask()),
        // When the call comes again, the model would write something else.
        Way::Answer | Way::Said(_) => Err(Failure::new(
            Kind::Declined,
            "Not confirmed; nothing was written",
        )
        .with_hint(
            "what a model writes cannot be shown to a person over this version of MCP; write the code yourself and pass \
             it as `code_block`",
        )),
        Way::None | Way::Request(_) => Ok(()),
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
        Way::Said(Said::Yes(seen)) => return Settled::Run(arrived.bound_to(seen)),
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
    let Some(aside) = aside else {
        return Settled::Ask(calls.desk.seal(&about(&arrived), &seen, &question));
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen::from_bytes(&[[1].as_slice(), &[7; 32], &[1], &[8; 32]].concat()).expect("as written")
    }

    fn state(desk: &Desk) -> String {
        desk.seal(b"about", &seen(), "?").request_state.expect("there is one")
    }

    #[test]
    fn a_question_is_answered_once() {
        let desk = Desk::new(1);
        let (one, other) = (state(&desk), state(&desk));
        assert_eq!(desk.open(b"something else", &one), None);
        assert_eq!(desk.open(b"about", &one), Some(seen()));
        assert_eq!(desk.open(b"about", &one), None);
        assert_eq!(desk.open(b"about", &other), Some(seen()));
        assert_eq!(Desk::new(1).open(b"about", &state(&desk)), None, "another server");
    }

    #[test]
    fn a_question_does_not_stay_open() {
        let desk = Desk { patience: Duration::from_millis(1), ..Desk::new(1) };
        let state = state(&desk);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(desk.open(b"about", &state), None);
        // The seal alone is enough.
        let sealed = desk.codec.open_with(&state, b"about");
        assert!(sealed.is_err(), "{sealed:?}");
    }

    #[test]
    fn only_so_many_questions_are_open() {
        let desk = Desk::new(1);
        let first = state(&desk);
        let rest: Vec<String> = (0..MOST_SEALED).map(|_| state(&desk)).collect();
        assert_eq!(lock(&desk.sealed).len(), MOST_SEALED);
        assert_eq!(desk.open(b"about", &first), None);
        assert_eq!(desk.open(b"about", &rest[MOST_SEALED - 1]), Some(seen()));
    }
}
