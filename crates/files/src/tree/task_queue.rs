//! The queue of tasks that the threads of a walk share, and the signal that the walk is over.

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
    PartlyRead(PartlyReadFolder<'w>),
    Files {
        folder: Arc<OpenFolder<'w>>,
        path: Box<str>,
        names: Vec<String>,
    },
}

/// An open folder, with the entries that were not read yet.
pub(super) struct PartlyReadFolder<'w> {
    pub folder: Arc<OpenFolder<'w>>,
    pub path: Arc<str>,
    pub entries: ReadDir,
    pub rules: Option<Arc<Rules>>,
}

#[derive(Default)]
pub(super) struct TaskQueue<'w> {
    state: Mutex<QueueState<'w>>,
    changed: Condvar,
    is_stopped: AtomicBool,
}

#[derive(Default)]
struct QueueState<'w> {
    /// Folders to read. The last one is read first, so that a walk reaches deep folders early, and few folders wait.
    folders: Vec<Task<'w>>,
    files: Vec<Task<'w>>,
    threads: usize,
    idle: usize,
    failure: Option<StoreError>,
}

impl<'w> TaskQueue<'w> {
    /// Adds folders; the last one is read first.
    pub fn add(&self, folders: impl IntoIterator<Item = Task<'w>>) {
        let mut state = self.state();
        let before = state.folders.len();
        state.folders.extend(folders);
        match state.folders.len() - before {
            0 => {}
            1 => self.notify_if_idle(&state),
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
        self.notify_if_idle(&state);
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
    pub fn register(&self) -> TaskReceiver<'_, 'w> {
        self.state().threads += 1;
        TaskReceiver(self)
    }

    fn notify_if_idle(&self, state: &QueueState<'_>) {
        if state.idle > 0 {
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<'w>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a thread that takes tasks from the queue.
pub(super) struct TaskReceiver<'p, 'w>(&'p TaskQueue<'w>);

impl<'w> TaskReceiver<'_, 'w> {
    /// Waits for a task; `None` once there will be no more.
    pub fn next(&self) -> Option<Task<'w>> {
        let queue = self.0;
        let mut state = queue.state();
        loop {
            if queue.is_stopped() {
                return None;
            }
            if let Some(task) = state.files.pop().or_else(|| state.folders.pop()) {
                return Some(task);
            }
            // No other thread is left that could find more.
            if state.idle + 1 == state.threads {
                queue.is_stopped.store(true, Ordering::Relaxed);
                queue.changed.notify_all();
                return None;
            }
            state.idle += 1;
            state = queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl Drop for TaskReceiver<'_, '_> {
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
    fn a_thread_that_waits_is_notified_while_others_work() {
        let queue = TaskQueue::default();
        let (sent, received) = mpsc::channel();
        let (busy, waiting) = (queue.register(), queue.register());
        thread::scope(|scope| {
            scope.spawn(move || {
                while let Some(Task::Folder { parent, .. }) = waiting.next() {
                    sent.send(parent).unwrap();
                }
            });
            // If this thread fails, dropping `busy` ends the other one as well.
            let busy = busy;
            for path in ["one", "two"] {
                while queue.state().idle == 0 && !queue.is_stopped() {
                    thread::yield_now();
                }
                queue.add([folder(path)]);
                let path_received = received.recv_timeout(Duration::from_secs(20));
                assert_eq!(path_received.as_deref(), Ok(path));
            }
            assert!(busy.next().is_none());
        });
    }

    #[test]
    fn no_more_files_wait_than_may() {
        let queue = TaskQueue::default();
        let _busy = queue.register();
        assert!((0..BATCHES_MAX).all(|_| queue.offer(folder("a")).is_none()));
        assert!(queue.offer(folder("b")).is_some());
    }
}
