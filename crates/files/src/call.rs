//! A call's deadline, its cancellation and the server's stop signal. No I/O here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::StoreError;

/// A cancellation flag that is set once and seen by every clone.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The deadline and the signals of a call. Every operation of a store is given them beside its arguments.
#[derive(Debug)]
pub struct Call {
    /// Deadline. Honoured until publishing begins; after that the true outcome is awaited.
    pub deadline: Instant,
    /// Set when the caller cancels the call. Honoured until publishing begins.
    pub cancel: Cancel,
    /// Set when the server is stopping: a call that waits for a lock is refused, one that has it finishes.
    pub stop: Cancel,
    lock_wait_micros: AtomicU64,
    is_waiting: AtomicBool,
}

impl Call {
    pub fn new(deadline: Instant, cancel: Cancel, stop: Cancel) -> Self {
        Self {
            deadline,
            cancel,
            stop,
            lock_wait_micros: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
        }
    }

    /// Creates a call that has a deadline and is never cancelled or stopped.
    pub fn until(deadline: Instant) -> Self {
        Self::new(deadline, Cancel::new(), Cancel::new())
    }

    /// Fails if the call was cancelled or its deadline has passed.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.cancel.is_set() {
            Err(StoreError::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(StoreError::TimedOut)
        } else {
            Ok(())
        }
    }

    /// True while the call waits for a lock that is held elsewhere.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_wait(&self) {
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.is_waiting.store(false, Ordering::Relaxed);
    }

    /// Total time that this call has waited for locks so far.
    pub fn lock_wait(&self) -> Duration {
        Duration::from_micros(self.lock_wait_micros.load(Ordering::Relaxed))
    }

    /// Adds to the time waited for locks. Waiting in a queue before the lock counts too.
    pub fn add_lock_wait(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.lock_wait_micros.fetch_add(micros, Ordering::Relaxed);
    }
}
