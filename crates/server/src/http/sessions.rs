//! Sessions over HTTP: they match a client's answer to its question, and a cancellation to its call.
//!
//! There are none unless persons are asked (`--confirm`), and only for clients that can ask them. Every other request is
//! complete in itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue};
use rmcp::model::RequestId;

use crate::cancel::CancelSignal;
use crate::client_channel::{ClientChannel, Questions};
use crate::lock::lock;
use crate::random;

pub const SESSION_ID: &str = "mcp-session-id";

/// Sessions that are kept. The one that was idle longest gives way, and none is idle for ever.
const SESSIONS_MAX: usize = 1024;
const IDLE_MAX: Duration = Duration::from_hours(8);

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, SessionEntry>>);

/// A session, and when it was used last.
struct SessionEntry {
    session: Arc<Session>,
    used: Instant,
}

pub struct Session {
    pub questions: Arc<Questions>,
    /// Its running calls, to be cancelled by their id.
    calls: Mutex<HashMap<RequestId, CancelSignal>>,
}

impl Session {
    /// Lists a running call. `None` if there is one of this id already: they could not be told apart.
    pub fn start(self: Arc<Self>, id: RequestId, cancel: CancelSignal) -> Option<RunningCall> {
        match lock(&self.calls).entry(id.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(cancel),
        };
        Some(RunningCall { session: self, id })
    }

    pub fn cancel(&self, id: &RequestId) {
        if let Some(cancel) = lock(&self.calls).get(id) {
            cancel.cancel();
        }
    }
}

/// A call that is listed in its session until this is dropped.
pub struct RunningCall {
    session: Arc<Session>,
    id: RequestId,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        lock(&self.session.calls).remove(&self.id);
    }
}

/// Nobody can answer its questions any more.
impl Drop for SessionEntry {
    fn drop(&mut self) {
        self.session.questions.close();
    }
}

impl Sessions {
    /// Opens a session for a client with these questions. Returns its id, which nobody can guess.
    fn open(&self, questions: Arc<Questions>) -> String {
        let id = random::hex::<16>();
        let (session, used) = (Session { questions, calls: Mutex::default() }, Instant::now());
        let mut known = lock(&self.0);
        known.retain(|_, known| known.used.elapsed() < IDLE_MAX);
        if known.len() >= SESSIONS_MAX {
            let oldest = known.iter().min_by_key(|(_, known)| known.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(id.clone(), SessionEntry { session: Arc::new(session), used });
        id
    }

    /// Opens a session for a client that can be asked.
    pub fn open_for(&self, client: ClientChannel, headers: &mut HeaderMap) {
        let id = client.questions.map(|questions| self.open(questions));
        if let Some(Ok(id)) = id.map(|id| HeaderValue::from_str(&id)) {
            headers.insert(SESSION_ID, id);
        }
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut known = lock(&self.0);
        let known = known.get_mut(id).filter(|known| known.used.elapsed() < IDLE_MAX)?;
        known.used = Instant::now();
        Some(Arc::clone(&known.session))
    }

    /// Ends a session and its questions. False if there is none.
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
        let ids: Vec<String> = (0..SESSIONS_MAX).map(|_| open()).collect();
        assert!(sessions.find(&ids[0]).is_some(), "and is silent no more");
        let last = open();
        assert!(sessions.find(&ids[0]).is_some() && sessions.find(&last).is_some());
        assert!(sessions.find(&ids[1]).is_none());
        assert_eq!(lock(&sessions.0).len(), SESSIONS_MAX);
        assert!(sessions.close(&last) && !sessions.close(&last));
        assert!(sessions.find(&last).is_none());
    }
}
