//! A queue for each file: its edits wait in the order in which they arrived, without a thread.
//!
//! The lock of `files` excludes other processes. The queue is for order and fairness within this one: only its head gets
//! a thread, so that a thousand edits of one file do not keep others from being read.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use files::FilePath;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

type Acquiring =
    Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + Sync>>;
type Lanes = Mutex<HashMap<Key, Arc<Semaphore>>>;

/// A folder by its number, and a file in it.
pub type Key = (usize, FilePath);

/// One lane for each file that has edits.
#[derive(Default)]
pub struct Queue {
    lanes: Arc<Lanes>,
}

/// A slot in a file's lane. Dropping it, at the head or waiting, gives the next one its turn.
pub struct QueueSlot {
    key: Key,
    lanes: Arc<Lanes>,
    state: State,
}

enum State {
    Waiting(Acquiring),
    Head(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit),
    Left,
}

impl Queue {
    /// Takes the last slot for `key`. The order of these calls is the order of the turns.
    pub fn join(&self, key: Key) -> QueueSlot {
        let lane = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            let one = || Arc::new(Semaphore::new(1));
            Arc::clone(lanes.entry(key.clone()).or_insert_with(one))
        };
        let mut acquiring: Acquiring = Box::pin(lane.acquire_owned());
        // A semaphore queues its waiters when they are polled: this first poll takes the slot.
        let state = match acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(permit)) => State::Head(permit),
            Poll::Ready(Err(_)) | Poll::Pending => State::Waiting(acquiring),
        };
        QueueSlot { key, lanes: Arc::clone(&self.lanes), state }
    }
}

impl QueueSlot {
    /// Waits until this slot is at the head.
    pub async fn wait_for_head(&mut self) {
        if let State::Waiting(acquiring) = &mut self.state
            && let Ok(permit) = acquiring.await
        {
            self.state = State::Head(permit);
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.state = State::Left; // gives the next one its turn, before we look who is left
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // Everyone in a lane, waiting or at its head, holds a handle of it; the map's own is the last.
        if lanes.get(&self.key).is_some_and(|lane| Arc::strong_count(lane) == 1) {
            lanes.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Key {
        (0, FilePath::flat(name).expect("a name"))
    }

    #[tokio::test]
    async fn turns_come_in_order_of_arrival_and_lanes_are_independent() {
        let queue = Queue::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let head = queue.join(at("a"));
        let mut waiting: Vec<_> = (0..50).map(|_| queue.join(at("a"))).collect();
        let given_up = waiting.remove(20);
        let mut tasks = Vec::new();
        for (number, mut slot) in waiting.into_iter().enumerate().rev() {
            let order = Arc::clone(&order);
            tasks.push(tokio::spawn(async move {
                slot.wait_for_head().await;
                order.lock().expect("no panic").push(number);
                tokio::task::yield_now().await;
            }));
        }
        queue.join(at("b")).wait_for_head().await;
        queue.join((1, at("a").1)).wait_for_head().await;
        assert!(order.lock().expect("no panic").is_empty());
        drop(given_up);
        drop(head);
        for task in tasks {
            task.await.expect("no panic");
        }
        assert_eq!(*order.lock().expect("no panic"), (0..49).collect::<Vec<_>>());
        assert!(queue.lanes.lock().expect("no panic").is_empty(), "idle lanes are gone");
    }
}
