//! Questions that are open, and what is held for them: room for what a person is asked about, and what comes sealed with
//! a client that was given its question as an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, SealOptions};
use tools::{Prepared, Seen};

use crate::mcp::lock;
use crate::random;
use crate::room::{Room, Share};

/// How long a question stays open.
const PATIENCE: Duration = Duration::from_mins(10);
/// Questions that may be open at once, when clients come again with the answer.
const MOST_SEALED: usize = 1024;
/// Those of them that are about what a model wrote.
const MOST_DRAFTS: usize = 64;
/// Bytes of arguments that may be held for those who are asked about them, and what a call counts for at least. On stdio
/// that is half of what may be in flight: there is always room for the rest.
const HELD: usize = 32 << 20;
const SMALLEST: usize = 64 << 10;

/// What a person was shown, and what a model wrote for it, if it was one that did.
pub struct Agreed {
    pub seen: Seen,
    pub draft: Option<Box<Draft>>,
}

/// A call for which a model has written, kept until a person has agreed to it.
pub struct Draft {
    pub prepared: Prepared,
    pub held: Share,
}

type Nonce = [u8; 16];

/// A question that was given to a client.
struct Open {
    until: Instant,
    draft: Option<Box<Draft>>,
}

impl Open {
    fn is_draft(&self) -> bool {
        self.draft.is_some()
    }
}

/// What all questions share.
pub struct Desk {
    codec: RequestStateCodec,
    /// The questions that were given to a client and can still be answered, each once.
    sealed: Mutex<HashMap<Nonce, Open>>,
    held: Arc<Room>,
    /// How long a question stays open.
    pub patience: Duration,
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

    /// Room for what is held while somebody is asked about it. If there is none, drafts make some, the oldest first:
    /// whoever was asked about one may never come again.
    pub fn hold(&self, bytes: usize) -> Option<Share> {
        let bytes = bytes.max(SMALLEST);
        loop {
            let held = self.held.take_now(bytes);
            if held.is_some() || !self.held.fits_with(bytes, self.drafts_hold()) {
                return held;
            }
            if !forget_oldest(&mut lock(&self.sealed), Open::is_draft) {
                return None;
            }
        }
    }

    fn drafts_hold(&self) -> usize {
        let sealed = lock(&self.sealed);
        sealed.values().filter_map(|open| open.draft.as_ref()).map(|draft| draft.held.bytes()).sum()
    }

    /// A question is given to a client, and what it is to come again with.
    pub fn seal(&self, about: &[u8], seen: &Seen, draft: Option<Draft>) -> String {
        let nonce = random::bytes::<16>();
        let open = Open { until: Instant::now() + self.patience, draft: draft.map(Box::new) };
        self.forget_expired();
        let mut sealed = lock(&self.sealed);
        if sealed.len() >= MOST_SEALED {
            forget_oldest(&mut sealed, |_| true);
        }
        let drafts = sealed.values().filter(|open| open.is_draft()).count();
        if open.is_draft() && drafts >= MOST_DRAFTS {
            forget_oldest(&mut sealed, Open::is_draft);
        }
        sealed.insert(nonce, open);
        drop(sealed);
        let payload = [&nonce[..], &seen.to_bytes()].concat();
        let options = SealOptions::new().associated_data(about).ttl(self.patience);
        self.codec.seal_with(&payload, &options)
    }

    /// What was seen, by the state that came back; only the first time.
    pub fn open(&self, about: &[u8], state: &str) -> Option<Agreed> {
        let payload = self.codec.open_with(state, about).ok()?;
        let (nonce, seen) = payload.split_first_chunk::<16>()?;
        let Open { until, draft } = lock(&self.sealed).remove(nonce)?;
        let seen = Seen::from_bytes(seen).filter(|_| until > Instant::now())?;
        Some(Agreed { seen, draft })
    }

    pub fn forget_expired(&self) {
        let now = Instant::now();
        lock(&self.sealed).retain(|_, open| open.until > now);
    }
}

/// Of those questions, the one that was asked first cannot be answered any more. Whether there was one.
fn forget_oldest(sealed: &mut HashMap<Nonce, Open>, which: impl Fn(&Open) -> bool) -> bool {
    let those = sealed.iter().filter(|(_, open)| which(open));
    let oldest = those.min_by_key(|(_, open)| open.until).map(|(nonce, _)| *nonce);
    oldest.and_then(|oldest| sealed.remove(&oldest)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen::from_bytes(&[[1].as_slice(), &[7; 32], &[1], &[8; 32]].concat()).expect("as written")
    }

    fn open(desk: &Desk, about: &[u8], state: &str) -> Option<Seen> {
        desk.open(about, state).map(|agreed| agreed.seen)
    }

    fn state(desk: &Desk) -> String {
        desk.seal(b"about", &seen(), None)
    }

    #[test]
    fn a_question_is_answered_once() {
        let desk = Desk::new(1);
        let (one, other) = (state(&desk), state(&desk));
        assert_eq!(open(&desk, b"something else", &one), None);
        assert_eq!(open(&desk, b"about", &one), Some(seen()));
        assert_eq!(open(&desk, b"about", &one), None);
        assert_eq!(open(&desk, b"about", &other), Some(seen()));
        assert_eq!(open(&Desk::new(1), b"about", &state(&desk)), None, "another server");
    }

    #[test]
    fn a_question_does_not_stay_open() {
        let desk = Desk { patience: Duration::from_millis(1), ..Desk::new(1) };
        let state = state(&desk);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(open(&desk, b"about", &state), None);
        // The seal alone is enough.
        let sealed = desk.codec.open_with(&state, b"about");
        assert!(sealed.is_err(), "{sealed:?}");
    }

    /// As if a model had written so many bytes for it; its state.
    fn draft(desk: &Desk, bytes: usize) -> Option<String> {
        let list = tools::FLAT.iter().find(|tool| tool.name == "list_files").expect("a tool");
        let prepared = list.prepare(serde_json::json!({})).expect("sound");
        let held = desk.hold(bytes)?;
        Some(desk.seal(b"about", &seen(), Some(Draft { prepared, held })))
    }

    /// Whether there is something to be written by that state.
    fn is_kept(desk: &Desk, state: &str) -> bool {
        desk.open(b"about", state).is_some_and(|agreed| agreed.draft.is_some())
    }

    #[test]
    fn a_draft_is_kept_for_one_answer() {
        let desk = Desk::new(1);
        let state = draft(&desk, 1).expect("there is room");
        assert!(is_kept(&desk, &state));
        assert!(!is_kept(&desk, &state));
        let desk = Desk { patience: Duration::from_millis(1), ..desk };
        let state = draft(&desk, HELD).expect("its room is free again");
        std::thread::sleep(Duration::from_millis(5));
        desk.forget_expired();
        assert_eq!((is_kept(&desk, &state), desk.drafts_hold()), (false, 0));
        assert!(desk.hold(HELD).is_some());
    }

    #[test]
    fn drafts_make_room_the_oldest_first() {
        let desk = Desk::new(1);
        let states: Vec<_> = (0..4).filter_map(|_| draft(&desk, HELD / 4)).collect();
        let _person = desk.hold(HELD / 2).expect("there is room");
        // More than there would be without any draft: none of them has to go for that.
        assert!(desk.hold(HELD / 2 + 1).is_none());
        let kept: Vec<bool> = states.iter().map(|state| is_kept(&desk, state)).collect();
        assert_eq!(kept, [false, false, true, true]);
    }

    #[test]
    fn only_so_many_drafts_are_kept() {
        let desk = Desk::new(1);
        let question = state(&desk);
        let states: Vec<_> = (0..=MOST_DRAFTS).filter_map(|_| draft(&desk, 1)).collect();
        let kept = states.iter().map(|state| is_kept(&desk, state));
        assert_eq!(kept.collect::<Vec<_>>(), [vec![false], vec![true; MOST_DRAFTS]].concat());
        assert_eq!(open(&desk, b"about", &question), Some(seen()));
    }

    #[test]
    fn only_so_many_questions_are_open() {
        let desk = Desk::new(1);
        let first = state(&desk);
        let rest: Vec<String> = (0..MOST_SEALED).map(|_| state(&desk)).collect();
        assert_eq!(lock(&desk.sealed).len(), MOST_SEALED);
        assert_eq!(open(&desk, b"about", &first), None);
        assert_eq!(open(&desk, b"about", &rest[MOST_SEALED - 1]), Some(seen()));
    }
}
