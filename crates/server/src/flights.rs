//! Requests under way: which there are, how to take one back, when none is left.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::calls::Recall;
use crate::mcp::{Parked, lock};

/// The requests that are not answered yet.
#[derive(Default)]
pub struct Flights {
    open: Mutex<HashMap<RequestId, Flight>>,
    pub changed: Notify,
    ended: AtomicU64,
}

pub struct Flight {
    /// Its share of what may be in flight, held until its answer is written.
    #[expect(dead_code, reason = "held, not read")]
    pub permit: OwnedSemaphorePermit,
    pub recall: Recall,
    pub parked: Parked,
}

impl Flights {
    /// `false`: an id that is in flight already; its answers could not be told apart.
    pub fn start(&self, id: RequestId, flight: Flight) -> bool {
        let mut open = lock(&self.open);
        if open.contains_key(&id) {
            return false;
        }
        open.insert(id, flight);
        true
    }

    pub fn end(&self, id: &RequestId) -> Option<Flight> {
        let flight = lock(&self.open).remove(id);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
        flight
    }

    /// How many have ended so far.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Rings for a call at once, even while the loop that will end its flight is busy.
    pub fn recall(&self, id: &RequestId) {
        if let Some(flight) = lock(&self.open).get(id) {
            flight.recall.ring();
        }
    }

    /// Comes back when all are answered.
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
