//! Waits for a lock that another process may hold: tries, sleeps a little and tries again, so that a waiting call can
//! be cancelled and leaves no thread behind. The lock itself is specific to each OS (`os::FileLock`). There is no queue
//! here: calls of one process are queued before they get here.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{Call, StoreError, temp_name};

/// Longest time that a call waits for one lock, even if its deadline is later.
const WAIT_MAX: Duration = Duration::from_secs(30);

const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(4);

/// Pauses that double from 0.2 to 4 ms, each shortened at random so that waiters do not retry in step.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Self {
        Self(PAUSE_MIN)
    }

    /// Sleeps for the next pause, but not past `limit`.
    pub fn pause(&mut self, limit: Instant) {
        let pause = self.next(temp_name::random());
        thread::sleep(pause.min(limit.saturating_duration_since(Instant::now())));
    }

    /// Returns the next pause: half of the current length, and a random share of the other half.
    fn next(&mut self, chance: u64) -> Duration {
        let half = self.0 / 2;
        let share = u32::try_from(chance % 1024).unwrap_or_default();
        self.0 = (self.0 * 2).min(PAUSE_MAX);
        half + half * share / 1024
    }
}

/// Calls `try_lock` until it returns true. Fails at the deadline, or when the call is cancelled or stopped.
pub fn wait(
    call: &Call,
    mut try_lock: impl FnMut() -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    if try_lock()? {
        return Ok(());
    }
    let began = Instant::now();
    let limit = call.deadline.min(began + WAIT_MAX);
    let mut backoff = Backoff::new();
    call.begin_wait();
    let outcome = loop {
        if call.cancel.is_set() {
            break Err(StoreError::Cancelled);
        }
        if call.stop.is_set() {
            break Err(StoreError::Stopping);
        }
        if Instant::now() >= limit {
            break Err(StoreError::LockTimeout { holder: None });
        }
        backoff.pause(limit);
        match try_lock() {
            Ok(false) => {}
            outcome => break outcome.map(drop),
        }
    };
    call.end_wait();
    call.add_lock_wait(began.elapsed());
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(millis: u64) -> Call {
        Call::until(Instant::now() + Duration::from_millis(millis))
    }

    #[test]
    fn pauses_double_and_chance_shortens_them() {
        let mut backoff = Backoff::new();
        let mut next = |chance| backoff.next(chance).as_micros();
        assert_eq!([next(0), next(512), next(1024 + 768)], [100, 300, 700]);
        assert_eq!([next(0), next(0), next(0), next(0)], [800, 1600, 2000, 2000]);
        assert_eq!(next(1023), 3998);
    }

    #[test]
    fn a_free_lock_costs_no_wait() {
        let call = call(1000);
        wait(&call, || Ok(true)).unwrap();
        assert_eq!(call.lock_wait(), Duration::ZERO);
    }

    #[test]
    fn the_wait_is_recorded() {
        let call = call(10_000);
        let mut tries = 0;
        wait(&call, || {
            assert_eq!(call.is_waiting(), tries > 0);
            tries += 1;
            Ok(tries > 4)
        })
        .unwrap();
        assert!(!call.is_waiting());
        assert!(
            call.lock_wait() >= Duration::from_micros(100 + 200 + 400 + 800),
            "{:?}",
            call.lock_wait()
        );
    }

    #[test]
    fn it_ends_at_the_deadline_or_when_switched_off() {
        let late = call(10);
        assert!(matches!(wait(&late, || Ok(false)), Err(StoreError::LockTimeout { holder: None })));
        assert!(late.lock_wait() >= Duration::from_millis(9));

        let cancelled = call(10_000);
        cancelled.cancel.set();
        assert!(matches!(wait(&cancelled, || Ok(false)), Err(StoreError::Cancelled)));

        let stopping = call(10_000);
        stopping.stop.set();
        assert!(matches!(wait(&stopping, || Ok(false)), Err(StoreError::Stopping)));
        wait(&stopping, || Ok(true)).unwrap();
    }
}
