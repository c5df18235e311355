//! Confirmations that a person has not given yet, and what is kept for them: memory for what is asked about, and the state
//! of questions that were the answer to a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, SealOptions};
use tools::{ChangeDigest, Failure, FailureKind, Prepared};

use crate::lock::lock;
use crate::memory_budget::{MemoryBudget, Permit};
use crate::random;

/// How long a question can be answered.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Questions that clients may come back with at a time.
const SEALED_MAX: usize = 1024;
/// Those of them that are about generated code.
const GENERATED_MAX: usize = 64;
/// Bytes of arguments that may be held for questions, and what a call counts for at least. On stdio that is half of what
/// may be in flight, so that there is always memory for the rest.
const HELD: usize = 32 << 20;
const BYTES_MIN: usize = 64 << 10;

/// A confirmed change, and the code that a model generated for it, if one did.
pub struct Confirmed {
    pub change: ChangeDigest,
    pub generated: Option<Box<GeneratedCall>>,
}

/// A call with generated code, kept until a person agrees to it.
pub struct GeneratedCall {
    pub prepared: Prepared,
    pub held: Permit,
}

type Nonce = [u8; 16];

/// A question that was given to a client.
struct Question {
    until: Instant,
    generated: Option<Box<GeneratedCall>>,
}

impl Question {
    fn has_generated(&self) -> bool {
        self.generated.is_some()
    }
}

/// The open questions of all calls.
pub struct PendingConfirmations {
    codec: RequestStateCodec,
    /// The questions that were given to a client and can still be answered, each once.
    sealed: Mutex<HashMap<Nonce, Question>>,
    held: Arc<MemoryBudget>,
    pub timeout: Duration,
}

impl PendingConfirmations {
    pub fn new(max_size: u64) -> Self {
        let held = HELD.max(usize::try_from(max_size).unwrap_or(HELD));
        Self {
            codec: RequestStateCodec::try_new(random::bytes::<32>())
                .expect("the key is long enough"),
            sealed: Mutex::default(),
            held: MemoryBudget::new(held),
            timeout: TIMEOUT,
        }
    }

    /// Memory for what is held while somebody is asked about it. If there is none, questions about generated code are
    /// dropped, the oldest first: their clients may never come back.
    pub fn hold(&self, bytes: usize) -> Option<Permit> {
        let bytes = bytes.max(BYTES_MIN);
        loop {
            let held = self.held.try_acquire(bytes);
            if held.is_some() || !self.held.fits_with(bytes, self.generated_bytes()) {
                return held;
            }
            if !forget_oldest(&mut lock(&self.sealed), Question::has_generated) {
                return None;
            }
        }
    }

    fn generated_bytes(&self) -> usize {
        let sealed = lock(&self.sealed);
        let generated = sealed.values().filter_map(|question| question.generated.as_ref());
        generated.map(|generated| generated.held.bytes()).sum()
    }

    /// Seals the state that a client is to come back with.
    pub fn seal(
        &self,
        about: &[u8],
        change: &ChangeDigest,
        generated: Option<GeneratedCall>,
    ) -> String {
        let nonce = random::bytes::<16>();
        let until = Instant::now() + self.timeout;
        let question = Question { until, generated: generated.map(Box::new) };
        self.forget_expired();
        let mut sealed = lock(&self.sealed);
        if sealed.len() >= SEALED_MAX {
            forget_oldest(&mut sealed, |_| true);
        }
        let generated = sealed.values().filter(|question| question.has_generated()).count();
        if question.has_generated() && generated >= GENERATED_MAX {
            forget_oldest(&mut sealed, Question::has_generated);
        }
        sealed.insert(nonce, question);
        drop(sealed);
        let payload = [&nonce[..], &change.to_bytes()].concat();
        let options = SealOptions::new().associated_data(about).ttl(self.timeout);
        self.codec.seal_with(&payload, &options)
    }

    /// Opens the state that came back; only the first time.
    pub fn open(&self, about: &[u8], state: &str) -> Option<Confirmed> {
        let payload = self.codec.open_with(state, about).ok()?;
        let (nonce, change) = payload.split_first_chunk::<16>()?;
        let Question { until, generated } = lock(&self.sealed).remove(nonce)?;
        let change = ChangeDigest::from_bytes(change).filter(|_| until > Instant::now())?;
        Some(Confirmed { change, generated })
    }

    pub fn forget_expired(&self) {
        let now = Instant::now();
        lock(&self.sealed).retain(|_, question| question.until > now);
    }
}

/// Drops the question that was asked first; true if there was one.
fn forget_oldest(sealed: &mut HashMap<Nonce, Question>, which: impl Fn(&Question) -> bool) -> bool {
    let those = sealed.iter().filter(|(_, question)| which(question));
    let oldest = those.min_by_key(|(_, question)| question.until).map(|(nonce, _)| *nonce);
    oldest.and_then(|oldest| sealed.remove(&oldest)).is_some()
}

pub fn nobody_to_ask() -> Failure {
    not_confirmed(
        "the server asks a person before every edit (--confirm=always), but this client does not support form elicitation",
    )
}

pub fn declined() -> Failure {
    not_confirmed("a person declined the edit; ask them what they want instead")
}

pub fn unanswered() -> Failure {
    not_confirmed("nobody answered the question in time")
}

pub fn too_many() -> Failure {
    not_confirmed("too many confirmations are pending; try again later")
}

fn not_confirmed(hint: &str) -> Failure {
    Failure::new(FailureKind::Declined, "Not confirmed; nothing was written").with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> ChangeDigest {
        ChangeDigest::from_bytes(&[[6; 32].as_slice(), &[1], &[7; 32], &[1], &[8; 32]].concat())
            .expect("as written")
    }

    fn open(
        confirmations: &PendingConfirmations,
        about: &[u8],
        state: &str,
    ) -> Option<ChangeDigest> {
        confirmations.open(about, state).map(|confirmed| confirmed.change)
    }

    fn state(confirmations: &PendingConfirmations) -> String {
        confirmations.seal(b"about", &change(), None)
    }

    #[test]
    fn a_question_is_answered_once() {
        let confirmations = PendingConfirmations::new(1);
        let (one, other) = (state(&confirmations), state(&confirmations));
        assert_eq!(open(&confirmations, b"something else", &one), None);
        assert_eq!(open(&confirmations, b"about", &one), Some(change()));
        assert_eq!(open(&confirmations, b"about", &one), None);
        assert_eq!(open(&confirmations, b"about", &other), Some(change()));
        assert_eq!(
            open(&PendingConfirmations::new(1), b"about", &state(&confirmations)),
            None,
            "another server"
        );
    }

    #[test]
    fn a_question_does_not_stay_open() {
        let confirmations = PendingConfirmations {
            timeout: Duration::from_millis(1),
            ..PendingConfirmations::new(1)
        };
        let state = state(&confirmations);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(open(&confirmations, b"about", &state), None);
        // The seal alone is enough.
        let sealed = confirmations.codec.open_with(&state, b"about");
        assert!(sealed.is_err(), "{sealed:?}");
    }

    /// As if a model had written so many bytes for it; its state.
    fn generated(confirmations: &PendingConfirmations, bytes: usize) -> Option<String> {
        let list = tools::find("flat", "list_files").expect("a tool");
        let prepared = list.prepare(serde_json::json!({})).expect("sound");
        let held = confirmations.hold(bytes)?;
        Some(confirmations.seal(b"about", &change(), Some(GeneratedCall { prepared, held })))
    }

    /// True if generated code is kept for that state.
    fn is_kept(confirmations: &PendingConfirmations, state: &str) -> bool {
        confirmations.open(b"about", state).is_some_and(|confirmed| confirmed.generated.is_some())
    }

    #[test]
    fn a_draft_is_kept_for_one_answer() {
        let confirmations = PendingConfirmations::new(1);
        let state = generated(&confirmations, 1).expect("there is memory");
        assert!(is_kept(&confirmations, &state));
        assert!(!is_kept(&confirmations, &state));
        let confirmations =
            PendingConfirmations { timeout: Duration::from_millis(1), ..confirmations };
        let state = generated(&confirmations, HELD).expect("its memory is free again");
        std::thread::sleep(Duration::from_millis(5));
        confirmations.forget_expired();
        assert_eq!((is_kept(&confirmations, &state), confirmations.generated_bytes()), (false, 0));
        assert!(confirmations.hold(HELD).is_some());
    }

    #[test]
    fn drafts_make_room_the_oldest_first() {
        let confirmations = PendingConfirmations::new(1);
        let states: Vec<_> = (0..4).filter_map(|_| generated(&confirmations, HELD / 4)).collect();
        let _person = confirmations.hold(HELD / 2).expect("there is memory");
        // More than there would be without any draft: none of them has to go for that.
        assert!(confirmations.hold(HELD / 2 + 1).is_none());
        let kept: Vec<bool> = states.iter().map(|state| is_kept(&confirmations, state)).collect();
        assert_eq!(kept, [false, false, true, true]);
    }

    #[test]
    fn only_so_many_drafts_are_kept() {
        let confirmations = PendingConfirmations::new(1);
        let question = state(&confirmations);
        let states: Vec<_> =
            (0..=GENERATED_MAX).filter_map(|_| generated(&confirmations, 1)).collect();
        let kept = states.iter().map(|state| is_kept(&confirmations, state));
        assert_eq!(kept.collect::<Vec<_>>(), [vec![false], vec![true; GENERATED_MAX]].concat());
        assert_eq!(open(&confirmations, b"about", &question), Some(change()));
    }

    #[test]
    fn only_so_many_questions_are_open() {
        let confirmations = PendingConfirmations::new(1);
        let first = state(&confirmations);
        let rest: Vec<String> = (0..SEALED_MAX).map(|_| state(&confirmations)).collect();
        assert_eq!(lock(&confirmations.sealed).len(), SEALED_MAX);
        assert_eq!(open(&confirmations, b"about", &first), None);
        assert_eq!(open(&confirmations, b"about", &rest[SEALED_MAX - 1]), Some(change()));
    }
}
