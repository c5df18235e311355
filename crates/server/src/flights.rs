//! Requests under way: which there are, how to take one back, when none is left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::calls::Recall;
use crate::mcp::{Parked, lock};

/// The requests that are not answered yet, and those taken back that are still at work.
#[derive(Default)]
pub struct Flights {
    open: Mutex<HashMap<RequestId, Flight>>,
    changed: Notify,
}

pub struct Flight {
    /// Its share of what may be in flight, held until its answer is written.
    #[expect(dead_code, reason = "held, not read")]
    pub permit: OwnedSemaphorePermit,
    pub recall: Recall,
    pub parked: Parked,
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
}

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
            State::Recalled => {}
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// The work is done.
    fn finish(&self, id: &RequestId) {
        let mut open = lock(&self.open);
        let Some(flight) = open.get_mut(id) else { return };
        match flight.state {
            State::Recalled => drop(open.remove(id)),
            State::Working | State::Answering => flight.state = State::Answering,
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// Ends a flight by its answer; `None` for one that was taken back: there is nobody to answer.
    pub fn end(&self, id: &RequestId) -> Option<Flight> {
        let mut open = lock(&self.open);
        if open.get(id)?.state == State::Recalled {
            return None;
        }
        let flight = open.remove(id);
        drop(open);
        self.changed.notify_waiters();
        flight
    }

    fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Comes back when none is left.
    pub async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_empty() {
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
