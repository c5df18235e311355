//! Requests in flight: those that are not answered yet, and those that were cancelled and still run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::cancel::CancelSignal;
use crate::lock::lock;
use crate::outgoing::{Outgoing, SharedLargeTexts};

/// A request's semaphore permit for the bytes that may be in flight.
pub type RequestPermit = Option<OwnedSemaphorePermit>;

#[derive(Default)]
pub struct InFlightRequests {
    open: Mutex<HashMap<RequestId, InFlightRequest>>,
    changed: Notify,
}

pub struct InFlightRequest {
    /// Held until its answer is written.
    pub permit: RequestPermit,
    pub cancel: CancelSignal,
    pub large_texts: SharedLargeTexts,
    pub state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A call runs.
    Running,
    /// The call is over, or there was none. The answer is on its way.
    Answering,
    /// Cancelled, and the call still runs. There will be no answer, and the id is taken until it ends.
    Cancelled,
    /// Cancelled, and the call is over. `rmcp` may still have an answer to it, which a new request of that id would get.
    Over,
}

/// How long an id stays taken after a cancelled call of it is over.
const LINGER: Duration = Duration::from_secs(1);

impl InFlightRequests {
    /// False if a request of this id is in flight already: their answers could not be told apart.
    pub fn insert(&self, id: RequestId, request: InFlightRequest) -> bool {
        match lock(&self.open).entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(request);
                true
            }
        }
    }

    /// Cancels a request: from now on it is not answered.
    pub fn cancel(&self, id: &RequestId) {
        let mut open = lock(&self.open);
        let Some(request) = open.get_mut(id) else { return };
        request.cancel.cancel();
        match request.state {
            State::Running => request.state = State::Cancelled,
            State::Answering => drop(open.remove(id)),
            State::Cancelled | State::Over => {}
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// Notes that the call is over.
    fn finish(self: &Arc<Self>, id: &RequestId) {
        let mut open = lock(&self.open);
        let Some(request) = open.get_mut(id) else { return };
        match request.state {
            State::Running | State::Answering => request.state = State::Answering,
            State::Cancelled => {
                request.state = State::Over;
                request.permit = None;
                self.free_later(id.clone());
            }
            State::Over => {}
        }
        drop(open);
        self.changed.notify_waiters();
    }

    fn free_later(self: &Arc<Self>, id: RequestId) {
        let in_flight = Arc::clone(self);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                lock(&in_flight.open).remove(&id);
            });
        }
    }

    /// Removes a request that is to be answered. `None` for one that was cancelled.
    pub fn remove(&self, id: &RequestId) -> Option<InFlightRequest> {
        let mut open = lock(&self.open);
        if matches!(open.get(id)?.state, State::Cancelled | State::Over) {
            return None;
        }
        let request = open.remove(id);
        drop(open);
        self.changed.notify_waiters();
        request
    }

    /// Removes the request that a message answers. Returns what is to be written; `None` if the request was cancelled.
    pub fn complete(&self, message: &ServerJsonRpcMessage) -> Option<(Outgoing, RequestPermit)> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let Some(id) = id else { return Some((Outgoing::new(message), None)) };
        let InFlightRequest { permit, large_texts, .. } = self.remove(id)?;
        let large_texts = std::mem::take(&mut *lock(&large_texts));
        Some((Outgoing::with_large_texts(message, large_texts), permit))
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    fn are_over(&self) -> bool {
        lock(&self.open).values().all(|request| request.state == State::Over)
    }

    /// Waits until no request is left that runs or is to be answered.
    pub async fn wait_until_none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.are_over() {
                return;
            }
            changed.await;
        }
    }
}

/// Held while the call of a request runs.
pub struct WorkGuard {
    pub id: RequestId,
    pub in_flight: Arc<InFlightRequests>,
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.in_flight.finish(&self.id);
    }
}
