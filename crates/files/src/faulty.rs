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

type Fault<S> = Box<dyn FnOnce(&S) -> Result<(), StoreError> + Send>;

struct Planned<S> {
    step: Step,
    /// Number of times that the step still succeeds.
    after: usize,
    fault: Fault<S>,
}

/// A store with planned faults, for tests.
pub struct Faulty<S> {
    inner: S,
    plan: Mutex<Vec<Planned<S>>>,
}

impl<S: Store> Faulty<S> {
    pub fn new(inner: S) -> Faulty<S> {
        Faulty { inner, plan: Mutex::default() }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Fails `step` with `error` once, after it succeeded `after` times.
    pub fn fail(&self, step: Step, after: usize, error: StoreError) {
        self.plan(step, after, Box::new(|_| Err(error)));
    }

    /// Runs `hook` once at `step`, after it succeeded `after` times: simulates another program that uses the store
    /// beneath.
    pub fn meddle(&self, step: Step, after: usize, hook: impl FnOnce(&S) + Send + 'static) {
        self.plan(
            step,
            after,
            Box::new(|inner| {
                hook(inner);
                Ok(())
            }),
        );
    }

    fn plan(&self, step: Step, after: usize, fault: Fault<S>) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).push(Planned {
            step,
            after,
            fault,
        });
    }

    fn pass(&self, step: Step) -> Result<(), StoreError> {
        let mut due = Vec::new();
        {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            for planned in std::mem::take(&mut *plan) {
                match planned {
                    Planned { step: at, after: 0, fault } if at == step => due.push(fault),
                    Planned { step: at, after, fault } if at == step => {
                        plan.push(Planned { step, after: after - 1, fault });
                    }
                    other => plan.push(other),
                }
            }
        }
        // Run outside the lock, since a hook may use this store.
        due.into_iter().try_for_each(|fault| fault(&self.inner))
    }
}

impl<S> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

impl<S: Store> Store for Faulty<S> {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        self.pass(Step::Read)?;
        self.inner.read(at, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.pass(Step::List)?;
        self.inner.list(at, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.pass(Step::List)?;
        self.inner.walk(after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.pass(Step::Update)?;
        let mut planned = None;
        let saved = self.inner.update(at, call, &mut |versions| {
            let changes = change(versions)?;
            self.pass(Step::Publish).map_err(|error| {
                planned = Some(error);
                Stop
            })?;
            Ok(changes)
        });
        match (saved, planned) {
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
