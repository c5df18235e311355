//! Requests under way: which there are, how to take one back, when none is left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::calls::Recall;
use crate::mcp::{SharedParked, lock};
use crate::reader::Room;
use crate::wire::Outgoing;

/// The requests that are not answered yet, and those taken back that are still at work.
#[derive(Default)]
pub struct Flights {
    open: Mutex<HashMap<RequestId, Flight>>,
    changed: Notify,
}

pub struct Flight {
    /// Its share of what may be in flight, held until its answer is written.
    pub room: Room,
    pub recall: Recall,
    pub parked: SharedParked,
    pub state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A call is at work.
    Working,
    /// The work is done, or was none; the answer is on its way.
    Answering,
    /// Taken back, and still at work: there will be no answer, and until the work ends the id is taken.
    Recalled,
    /// Taken back and over. `rmcp` may still hold an answer to it, which a new request of that id would get.
    Over,
}

/// How long an id stays taken after a recalled call of it is over.
const LINGER: Duration = Duration::from_secs(1);

impl Flights {
    /// `false`: an id that is in flight already; its answers could not be told apart.
    pub fn start(&self, id: RequestId, flight: Flight) -> bool {
        match lock(&self.open).entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(flight);
                true
            }
        }
    }

    /// Takes a request back: from now on it is not answered.
    pub fn recall(&self, id: &RequestId) {
        let mut open = lock(&self.open);
        let Some(flight) = open.get_mut(id) else { return };
        flight.recall.ring();
        match flight.state {
            State::Working => flight.state = State::Recalled,
            State::Answering => drop(open.remove(id)),
            State::Recalled | State::Over => {}
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// The work is done.
    fn finish(self: &Arc<Self>, id: &RequestId) {
        let mut open = lock(&self.open);
        let Some(flight) = open.get_mut(id) else { return };
        match flight.state {
            State::Working | State::Answering => flight.state = State::Answering,
            State::Recalled => {
                flight.state = State::Over;
                flight.room = None;
                self.free_later(id.clone());
            }
            State::Over => {}
        }
        drop(open);
        self.changed.notify_waiters();
    }

    fn free_later(self: &Arc<Self>, id: RequestId) {
        let flights = Arc::clone(self);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                lock(&flights.open).remove(&id);
            });
        }
    }

    /// Ends a flight by its answer; `None` for one that was taken back: there is nobody to answer.
    pub fn end(&self, id: &RequestId) -> Option<Flight> {
        let mut open = lock(&self.open);
        if matches!(open.get(id)?.state, State::Recalled | State::Over) {
            return None;
        }
        let flight = open.remove(id);
        drop(open);
        self.changed.notify_waiters();
        flight
    }

    /// Ends the flight that a message answers: what is to be written, and the room it takes until then. `None` if it was
    /// taken back.
    pub fn land(&self, message: &ServerJsonRpcMessage) -> Option<(Outgoing, Room)> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let Some(id) = id else { return Some((Outgoing::new(message), None)) };
        let Flight { room, parked, .. } = self.end(id)?;
        let parked = std::mem::take(&mut *lock(&parked));
        Some((Outgoing::with_parked(message, parked), room))
    }

    /// Whether nothing is under way.
    pub fn are_none(&self) -> bool {
        lock(&self.open).is_empty()
    }

    fn are_over(&self) -> bool {
        lock(&self.open).values().all(|flight| flight.state == State::Over)
    }

    /// Comes back when none is left.
    pub async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.are_over() {
                return;
            }
            changed.await;
        }
    }
}

/// Held by whoever does the work of a flight, to its end.
pub struct Working {
    pub id: RequestId,
    pub flights: Arc<Flights>,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.flights.finish(&self.id);
    }
}
