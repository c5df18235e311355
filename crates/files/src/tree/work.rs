//! The tasks of a walk that its threads share, and the signal that it is over.

use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use cap_std::fs::ReadDir;

use super::rules::Rules;
use crate::{StoreError, resolve::OpenFolder};

/// Maximum number of batches of files that wait for a thread. Each keeps its folder open.
const BATCHES_MAX: usize = 16;

/// A task of a walk. Paths of folders are empty, or end with `/`.
pub(super) enum Task<'w> {
    /// A folder that is not open yet: its parent, with its rules, and its name, which is empty for the first one.
    Folder {
        parent: Arc<str>,
        name: Box<str>,
        rules: Option<Arc<Rules>>,
    },
    Rest(Rest<'w>),
    Files {
        folder: Arc<OpenFolder<'w>>,
        path: Box<str>,
        names: Vec<String>,
    },
}

/// An open folder, with the entries that were not read yet.
pub(super) struct Rest<'w> {
    pub folder: Arc<OpenFolder<'w>>,
    pub path: Arc<str>,
    pub entries: ReadDir,
    pub rules: Option<Arc<Rules>>,
}

#[derive(Default)]
pub(super) struct Work<'w> {
    state: Mutex<State<'w>>,
    changed: Condvar,
    is_stopped: AtomicBool,
}

#[derive(Default)]
struct State<'w> {
    /// Folders to read. The last one is read first, so that a walk reaches deep folders early, and few folders wait.
    folders: Vec<Task<'w>>,
    files: Vec<Task<'w>>,
    workers: usize,
    idle: usize,
    failure: Option<StoreError>,
}

impl<'w> Work<'w> {
    /// Adds folders; the last one is read first.
    pub fn add(&self, folders: impl IntoIterator<Item = Task<'w>>) {
        let mut state = self.state();
        let before = state.folders.len();
        state.folders.extend(folders);
        match state.folders.len() - before {
            0 => {}
            1 => self.tell(&state),
            _ => self.changed.notify_all(),
        }
    }

    /// Offers files to the next idle thread. Returns them if enough of them wait already.
    pub fn offer(&self, files: Task<'w>) -> Option<Task<'w>> {
        let mut state = self.state();
        if state.files.len() == BATCHES_MAX {
            return Some(files);
        }
        state.files.push(files);
        self.tell(&state);
        None
    }

    /// Ends the walk for all threads; the first failure counts.
    pub fn stop(&self, failure: Option<StoreError>) {
        let mut state = self.state();
        self.is_stopped.store(true, Ordering::Relaxed);
        if state.failure.is_none() {
            state.failure = failure;
        }
        self.changed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns the failure of the walk, if any. Called once all threads are done.
    pub fn outcome(&self) -> Result<(), StoreError> {
        self.state().failure.take().map_or(Ok(()), Err)
    }

    /// Registers one more thread.
    pub fn enter(&self) -> Place<'_, 'w> {
        self.state().workers += 1;
        Place(self)
    }

    fn tell(&self, state: &State<'_>) {
        if state.idle > 0 {
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<'w>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a thread with the walk.
pub(super) struct Place<'p, 'w>(&'p Work<'w>);

impl<'w> Place<'_, 'w> {
    /// Waits for a task; `None` once there will be no more.
    pub fn next(&self) -> Option<Task<'w>> {
        let work = self.0;
        let mut state = work.state();
        loop {
            if work.is_stopped() {
                return None;
            }
            if let Some(task) = state.files.pop().or_else(|| state.folders.pop()) {
                return Some(task);
            }
            // No other thread is left that could find more.
            if state.idle + 1 == state.workers {
                work.is_stopped.store(true, Ordering::Relaxed);
                work.changed.notify_all();
                return None;
            }
            state.idle += 1;
            state = work.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl Drop for Place<'_, '_> {
    /// Stops the walk if the thread panicked: it handles no more tasks, and the others must not wait for it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread, time::Duration};

    fn folder(path: &str) -> Task<'static> {
        Task::Folder { parent: path.into(), name: "".into(), rules: None }
    }

    #[test]
    fn whoever_waits_is_told_while_others_are_at_work() {
        let work = Work::default();
        let (done, told) = mpsc::channel();
        let (busy, waiting) = (work.enter(), work.enter());
        thread::scope(|scope| {
            scope.spawn(move || {
                while let Some(Task::Folder { parent, .. }) = waiting.next() {
                    done.send(parent).unwrap();
                }
            });
            // If this thread fails, dropping `busy` ends the other one as well.
            let busy = busy;
            for path in ["one", "two"] {
                while work.state().idle == 0 && !work.is_stopped() {
                    thread::yield_now();
                }
                work.add([folder(path)]);
                let told = told.recv_timeout(Duration::from_secs(20));
                assert_eq!(told.as_deref(), Ok(path));
            }
            assert!(busy.next().is_none());
        });
    }

    #[test]
    fn no_more_files_wait_than_may() {
        let work = Work::default();
        let _busy = work.enter();
        assert!((0..BATCHES_MAX).all(|_| work.offer(folder("a")).is_none()));
        assert!(work.offer(folder("b")).is_some());
    }
}
