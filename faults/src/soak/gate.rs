//! Where workers rest together.

use std::sync::{Condvar, Mutex};

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

    /// Comes back when so many wait.
    pub fn close(&self, workers: usize) {
        let mut state = self.state.lock().unwrap();
        state.0 = State::Closed;
        while state.1 < workers {
            state = self.changed.wait(state).unwrap();
        }
    }

    pub fn open(&self) {
        self.set(State::Open);
    }

    pub fn end(&self) {
        self.set(State::Over);
    }

    fn set(&self, to: State) {
        self.state.lock().unwrap().0 = to;
        self.changed.notify_all();
    }
}
