//! Sessions over HTTP, by which a client's answer finds the question it was asked.
//!
//! There are none unless persons are asked (`--confirm`), and only for clients that can ask them: every other request
//! is complete in itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue};

use crate::aside::{Aside, Questions};
use crate::endpoint::SESSION_ID;
use crate::mcp::lock;
use crate::random;

/// Sessions that are remembered: the one that was silent longest gives way, and silence has an end.
const MOST: usize = 1024;
const IDLE: Duration = Duration::from_hours(8);

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Session>>);

struct Session {
    questions: Arc<Questions>,
    used: Instant,
}

impl Sessions {
    /// Opens a session for a client with these questions; its id, which nobody can guess.
    fn open(&self, questions: Arc<Questions>) -> String {
        let id =
            random::bytes::<16>().iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
        let used = Instant::now();
        let mut sessions = lock(&self.0);
        sessions.retain(|_, session| session.used.elapsed() < IDLE);
        if sessions.len() >= MOST {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|oldest| sessions.remove(&oldest));
        }
        sessions.insert(id.clone(), Session { questions, used });
        id
    }

    /// Gives a client that can be asked a session of its own.
    pub fn welcome(&self, newcomer: Aside, headers: &mut HeaderMap) {
        let id = newcomer.questions.map(|questions| self.open(questions));
        if let Some(Ok(id)) = id.map(|id| HeaderValue::from_str(&id)) {
            headers.insert(SESSION_ID, id);
        }
    }

    pub fn find(&self, id: &str) -> Option<Arc<Questions>> {
        let mut sessions = lock(&self.0);
        let session = sessions.get_mut(id).filter(|session| session.used.elapsed() < IDLE)?;
        session.used = Instant::now();
        Some(Arc::clone(&session.questions))
    }

    /// `false`: there is none.
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
