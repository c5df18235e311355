//! Sessions over HTTP, by which a client's answer finds the question it was asked, and its cancellation the call.
//!
//! There are none unless persons are asked (`--confirm`), and only for clients that can ask them: every other request
//! is complete in itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue};
use rmcp::model::RequestId;

use crate::aside::{Aside, Questions};
use crate::calls::Recall;
use crate::endpoint::SESSION_ID;
use crate::mcp::lock;
use crate::random;

/// Sessions that are remembered: the one that was silent longest gives way, and silence has an end.
const MOST: usize = 1024;
const IDLE: Duration = Duration::from_hours(8);

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Known>>);

/// A session, and when it was used last.
struct Known {
    session: Arc<Session>,
    used: Instant,
}

/// What is between the server and one client.
pub struct Session {
    pub questions: Arc<Questions>,
    /// Its calls under way, to be taken back by their id.
    calls: Mutex<HashMap<RequestId, Recall>>,
}

impl Session {
    /// Lists a call under way. `None`: there is one of this id already, and they could not be told apart.
    pub fn start(self: Arc<Self>, id: RequestId, recall: Recall) -> Option<UnderWay> {
        match lock(&self.calls).entry(id.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(recall),
        };
        Some(UnderWay { session: self, id })
    }

    pub fn recall(&self, id: &RequestId) {
        if let Some(recall) = lock(&self.calls).get(id) {
            recall.ring();
        }
    }
}

/// A call that is listed in its session until this is dropped.
pub struct UnderWay {
    session: Arc<Session>,
    id: RequestId,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.session.calls).remove(&self.id);
    }
}

/// Nobody can answer any more.
impl Drop for Known {
    fn drop(&mut self) {
        self.session.questions.close();
    }
}

impl Sessions {
    /// Opens a session for a client with these questions; its id, which nobody can guess.
    fn open(&self, questions: Arc<Questions>) -> String {
        let id = random::hex::<16>();
        let (session, used) = (Session { questions, calls: Mutex::default() }, Instant::now());
        let mut known = lock(&self.0);
        known.retain(|_, known| known.used.elapsed() < IDLE);
        if known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, known)| known.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(id.clone(), Known { session: Arc::new(session), used });
        id
    }

    /// Gives a client that can be asked a session of its own.
    pub fn welcome(&self, newcomer: Aside, headers: &mut HeaderMap) {
        let id = newcomer.questions.map(|questions| self.open(questions));
        if let Some(Ok(id)) = id.map(|id| HeaderValue::from_str(&id)) {
            headers.insert(SESSION_ID, id);
        }
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut known = lock(&self.0);
        let known = known.get_mut(id).filter(|known| known.used.elapsed() < IDLE)?;
        known.used = Instant::now();
        Some(Arc::clone(&known.session))
    }

    /// Ends a session, and its questions with it. `false`: there is none.
    pub fn close(&self, id: &str) -> bool {
        lock(&self.0).remove(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_was_silent_longest_gives_way() {
        let sessions = Sessions::default();
        let open = || sessions.open(Arc::default());
        let ids: Vec<String> = (0..MOST).map(|_| open()).collect();
        assert!(sessions.find(&ids[0]).is_some(), "and is silent no more");
        let last = open();
        assert!(sessions.find(&ids[0]).is_some() && sessions.find(&last).is_some());
        assert!(sessions.find(&ids[1]).is_none());
        assert_eq!(lock(&sessions.0).len(), MOST);
        assert!(sessions.close(&last) && !sessions.close(&last));
        assert!(sessions.find(&last).is_none());
    }
}
