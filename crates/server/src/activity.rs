//! How busy the server is: how often something happened, and how many calls run.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Default)]
pub struct Activity {
    count: AtomicU64,
    running: AtomicUsize,
    changed: Notify,
}

impl Activity {
    /// Notes that something happened that takes memory, or frees some.
    pub fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Waits for the next [`Activity::note`].
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How often [`Activity::note`] was called.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a call as running until the guard is dropped.
    pub fn run(&self) -> RunningGuard<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningGuard(self)
    }

    /// Calls that run now.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

pub struct RunningGuard<'a>(&'a Activity);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
