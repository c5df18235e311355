//! A store that fails on request, or lets another program interfere at the worst moment. For tests.

use std::{
    fmt,
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

use crate::{Call, Decide, DirPath, Entry, FilePath, Saved, Stop, Store, StoreError, Version};

/// A step of an operation at which a fault can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Read,
    List,
    /// Before an update does anything.
    Update,
    /// After the change was decided, before it is published. Reached again when the change runs again.
    Publish,
}

type FaultHook<S> = Box<dyn FnOnce(&S) -> Result<(), StoreError> + Send>;

struct PlannedFault<S> {
    step: Step,
    /// Number of times that the step still succeeds.
    after: usize,
    fault: FaultHook<S>,
}

/// A store with planned faults, for tests.
pub struct FaultyStore<S> {
    inner: S,
    planned: Mutex<Vec<PlannedFault<S>>>,
}

impl<S: Store> FaultyStore<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, planned: Mutex::default() }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Fails `step` with `error` once, after it succeeded `after` times.
    pub fn fail(&self, step: Step, after: usize, error: StoreError) {
        self.add_fault(step, after, Box::new(|_| Err(error)));
    }

    /// Runs `hook` once at `step`, after it succeeded `after` times: simulates another program that uses the store
    /// beneath.
    pub fn interfere(&self, step: Step, after: usize, hook: impl FnOnce(&S) + Send + 'static) {
        self.add_fault(
            step,
            after,
            Box::new(|inner| {
                hook(inner);
                Ok(())
            }),
        );
    }

    fn add_fault(&self, step: Step, after: usize, fault: FaultHook<S>) {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).push(PlannedFault {
            step,
            after,
            fault,
        });
    }

    fn run_faults(&self, step: Step) -> Result<(), StoreError> {
        let mut due = Vec::new();
        {
            let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
            for fault in std::mem::take(&mut *planned) {
                match fault {
                    PlannedFault { step: at, after: 0, fault } if at == step => due.push(fault),
                    PlannedFault { step: at, after, fault } if at == step => {
                        planned.push(PlannedFault { step, after: after - 1, fault });
                    }
                    other => planned.push(other),
                }
            }
        }
        // Run outside the lock, since a hook may use this store.
        due.into_iter().try_for_each(|fault| fault(&self.inner))
    }
}

impl<S> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").finish_non_exhaustive()
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.run_faults(Step::Read)?;
        self.inner.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.run_faults(Step::List)?;
        self.inner.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.run_faults(Step::List)?;
        self.inner.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.run_faults(Step::Update)?;
        let mut injected = None;
        let saved = self.inner.update(at, call, &mut |versions| {
            let changes = change(versions)?;
            self.run_faults(Step::Publish).map_err(|error| {
                injected = Some(error);
                Stop
            })?;
            Ok(changes)
        });
        match (saved, injected) {
            (Err(StoreError::Stopped), Some(error)) => Err(error),
            (saved, _) => saved,
        }
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        self.inner.make_folders(folder, call)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        self.inner.remove_folders(made);
    }
}
