//! Where workers rest together.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Over,
}

pub struct Gate {
    /// And how many wait.
    state: Mutex<(State, usize)>,
    changed: Condvar,
}

impl Gate {
    pub fn new() -> Self {
        Self { state: Mutex::new((State::Open, 0)), changed: Condvar::new() }
    }

    /// Waits while it is closed; false when all is over.
    pub fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        while state.0 == State::Closed {
            state = self.changed.wait(state).unwrap();
        }
        state.1 -= 1;
        state.0 == State::Open
    }

    /// Comes back when so many wait, or when it has waited too long for the others: how many are missing.
    pub fn close(&self, workers: usize, patience: Duration) -> usize {
        let mut state = self.state.lock().unwrap();
        state.0 = State::Closed;
        let is_missing = |state: &mut (State, usize)| state.1 < workers;
        let (state, _) = self.changed.wait_timeout_while(state, patience, is_missing).unwrap();
        workers.saturating_sub(state.1)
    }

    pub fn open(&self) {
        self.set(State::Open);
    }

    /// All is over when this is dropped, by a panic too: nobody is left at a closed gate.
    pub fn over_at_last(&self) -> OverAtLast<'_> {
        OverAtLast(self)
    }

    fn set(&self, to: State) {
        self.state.lock().unwrap().0 = to;
        self.changed.notify_all();
    }
}

pub struct OverAtLast<'a>(&'a Gate);

impl Drop for OverAtLast<'_> {
    fn drop(&mut self) {
        self.0.set(State::Over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_ever() {
        let gate = Gate::new();
        assert_eq!(gate.close(1, Duration::from_millis(1)), 1);
        std::thread::scope(|threads| {
            let worker = threads.spawn(|| gate.pass());
            assert_eq!(gate.close(1, Duration::from_mins(1)), 0);
            drop(gate.over_at_last());
            assert!(!worker.join().unwrap());
        });
    }
}
