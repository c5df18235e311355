//! A queue for each file: its edits wait in the order in which they arrived, without a thread. An edit of several files
//! waits in the queues of all of them.
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

/// The slot of a call: a place in the lane of each of its files. Dropping it, at the head or waiting, gives the next ones
/// their turns.
pub struct QueueSlot {
    places: Vec<(Key, LanePlace)>,
    lanes: Arc<Lanes>,
}

/// A place in one lane.
enum LanePlace {
    Waiting(Acquiring),
    Head(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit),
    Left,
}

impl Queue {
    /// Takes the last slot for the files of `keys`. The order of these calls is the order of the turns.
    pub fn join(&self, mut keys: Vec<Key>) -> QueueSlot {
        keys.sort_unstable();
        keys.dedup();
        // All lanes are joined under one lock, so every lane has its calls in the same order: a call waits only for calls
        // that joined before it, and no two wait for each other.
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let join = |key: Key| {
            let lane = lanes.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1)));
            (key, LanePlace::last_in(lane))
        };
        let places = keys.into_iter().map(join).collect();
        QueueSlot { places, lanes: Arc::clone(&self.lanes) }
    }
}

impl LanePlace {
    fn last_in(lane: &Arc<Semaphore>) -> Self {
        let mut acquiring: Acquiring = Box::pin(Arc::clone(lane).acquire_owned());
        // A semaphore queues its waiters when they are polled: this first poll takes the place.
        match acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(permit)) => Self::Head(permit),
            Poll::Ready(Err(_)) | Poll::Pending => Self::Waiting(acquiring),
        }
    }
}

impl QueueSlot {
    /// Waits until this slot is at the head of all its lanes.
    pub async fn wait_for_head(&mut self) {
        for (_, place) in &mut self.places {
            if let LanePlace::Waiting(acquiring) = place
                && let Ok(permit) = acquiring.await
            {
                *place = LanePlace::Head(permit);
            }
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        for (_, place) in &mut self.places {
            *place = LanePlace::Left; // gives the next one its turn, before we look who is left
        }
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, _) in &self.places {
            // Everyone in a lane, waiting or at its head, holds a handle of it; the map's own is the last.
            if lanes.get(key).is_some_and(|lane| Arc::strong_count(lane) == 1) {
                lanes.remove(key);
            }
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
        let head = queue.join(vec![at("a")]);
        let mut waiting: Vec<_> = (0..50).map(|_| queue.join(vec![at("a")])).collect();
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
        queue.join(vec![at("b")]).wait_for_head().await;
        queue.join(vec![(1, at("a").1)]).wait_for_head().await;
        assert!(order.lock().expect("no panic").is_empty());
        drop(given_up);
        drop(head);
        for task in tasks {
            task.await.expect("no panic");
        }
        assert_eq!(*order.lock().expect("no panic"), (0..49).collect::<Vec<_>>());
        assert!(queue.lanes.lock().expect("no panic").is_empty(), "idle lanes are gone");
    }
    /// True if the slot has its turn already.
    fn is_head(slot: &mut QueueSlot) -> bool {
        let turn = std::pin::pin!(slot.wait_for_head());
        turn.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_call_waits_for_all_its_files() {
        let queue = Queue::default();
        let join = |names: &[&str]| queue.join(names.iter().map(|name| at(name)).collect());
        let (one, other) = (join(&["a"]), join(&["b"]));
        let mut both = join(&["b", "a", "b"]);
        let mut behind = join(&["a"]);
        assert!(!is_head(&mut both));
        drop(one);
        assert!(!is_head(&mut both) && !is_head(&mut behind));
        drop(other);
        assert!(is_head(&mut both) && !is_head(&mut behind));
        drop(both);
        assert!(is_head(&mut behind));
        drop(behind);
        assert!(queue.lanes.lock().expect("no panic").is_empty(), "idle lanes are gone");
    }

    #[tokio::test]
    async fn calls_that_name_files_in_other_orders_do_not_wait_for_each_other() {
        let queue = Arc::new(Queue::default());
        let tasks = (0..100).map(|number| {
            let mut keys: Vec<_> = ["a", "b", "c"].map(at).into();
            keys.rotate_left(number % 3);
            keys.truncate(1 + number % 2);
            let mut slot = queue.join(keys);
            tokio::spawn(async move {
                slot.wait_for_head().await;
                tokio::task::yield_now().await;
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        assert!(queue.lanes.lock().expect("no panic").is_empty(), "idle lanes are gone");
    }
}
