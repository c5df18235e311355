//! A tool call, from its arrival to its result: checked, queued behind other edits of its file, run on a thread, logged.
//!
//! - `pending_call`: what came in, and how far it has got
//! - `queue`: edits of one file, in the order in which they arrived
//! - `folders`: the folders that are served, and which of them a call is about
//! - `progress`: the phase that a call is in, for the client
//! - `confirmations`: what is kept while a person is asked
//! - `log_lines`: what the log says of calls

pub mod confirmations;
mod folders;
mod log_lines;
pub mod pending_call;
pub mod progress;
mod queue;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use files::{Access, Call, Cancel, Hash, Root, Store, StoreError};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tools::{
    ChangeDigest, Context, Dialect, Effect, Failure, FileChange, Limits, Prepared, Rehearsal,
    ToolOutput, ToolSpec,
};

use crate::activity::Activity;
use crate::cancel::CancelSignal;
use crate::log::Log;
use crate::memory_budget::{MemoryBudgets, Permit, UNCOUNTED_MAX};
use crate::observer::{self, CallInfo, CallObserver, ObservedCall};
use crate::options::{Confirm, Options};
use confirmations::PendingConfirmations;
use folders::{Folder, Folders};
use pending_call::{
    CallControl, CallLimits, CallRequest, CallResult, Parts, PendingCall, RunOn, Work,
    internal_error,
};
use progress::Phase;
use queue::{Queue, QueueSlot};

/// Edits and reads that run at a time: together no more than the runtime's threads for files.
const EDITS_ON_THREADS: usize = 32;
const READS_ON_THREADS: usize = 8;
/// Calls for which a model generates code at a time. More wait, for no longer than a model may take.
const GENERATIONS: usize = 4;

/// State shared by all calls.
pub struct Calls {
    folders: Folders,
    pub limits: Limits,
    pub options: Options,
    pub log: Log,
    queue: Queue,
    /// Edits that may have a thread: each may be waiting there for a lock.
    edits_on_threads: Arc<Semaphore>,
    /// Reads that may have one: they never wait, so a few keep the disk busy.
    reads_on_threads: Arc<Semaphore>,
    pub generations: Arc<Semaphore>,
    /// Memory that answers hold, from when they are made until they are written.
    pub answer_memory: MemoryBudgets,
    pub confirmations: PendingConfirmations,
    stop: CancelSignal,
    pub activity: Activity,
}

/// The outcome of a read: a reply, or its size if there is no memory for it now.
enum ReadOutcome {
    ToolOutput(ToolOutput),
    NeedsMemory(Prepared, usize),
}

impl Calls {
    pub fn new(
        root: Arc<Root>,
        store: Box<dyn Store>,
        limits: Limits,
        options: Options,
        log: Log,
    ) -> Arc<Self> {
        Self::with_more(root, store, Vec::new(), limits, options, log)
    }

    /// Serves `more` folders. A call runs in the innermost folder of its path; file names and resources are of the first.
    pub fn with_more(
        root: Arc<Root>,
        store: Box<dyn Store>,
        more: Vec<(Arc<Root>, Box<dyn Store>)>,
        limits: Limits,
        options: Options,
        log: Log,
    ) -> Arc<Self> {
        Arc::new(Self {
            edits_on_threads: Arc::new(Semaphore::new(EDITS_ON_THREADS)),
            reads_on_threads: Arc::new(Semaphore::new(READS_ON_THREADS)),
            generations: Arc::new(Semaphore::new(GENERATIONS)),
            answer_memory: MemoryBudgets::new(limits.max_size),
            confirmations: PendingConfirmations::new(limits.max_size),
            folders: Folders::new([(root, store)].into_iter().chain(more)),
            limits,
            options,
            log,
            queue: Queue::default(),
            stop: CancelSignal::default(),
            activity: Activity::default(),
        })
    }

    /// The folder that is served, or the first of them.
    pub fn root(&self) -> &Root {
        &self.folders.at(0).root
    }

    /// Instructions for the agent.
    pub fn instructions(&self) -> String {
        self.options.instructions(&self.folders.paths().collect::<Vec<_>>())
    }

    /// Accepts a call. Edits of one file are made in the order in which they are accepted.
    pub fn accept(
        &self,
        tool: &'static ToolSpec,
        arguments: Value,
        request_id: String,
        call_id: Option<&str>,
    ) -> PendingCall {
        let since = Instant::now();
        self.activity.note();
        let reads = tool.effect == Effect::Reads;
        let observer = self.observer_of(tool);
        let asks = self.asks(tool);
        let memory_bytes = if asks { tools::arguments_memory(&arguments) } else { 0 };
        let copy = (reads || asks).then(|| arguments.clone());
        let prepared = tool.prepare(arguments).and_then(|prepared| self.check(prepared));

        let targets =
            prepared.as_ref().map_or_else(|_| Vec::new(), |prepared| prepared.targets.clone());
        let needs_generation = prepared.as_ref().is_ok_and(Prepared::needs_generation);
        let digested = copy.as_ref().filter(|_| asks && needs_generation);
        let digest = digested.map(|arguments| Hash::of(in_order(arguments).to_string().as_bytes()));
        let observed_call = observer.zip(copy.as_ref()).map(|(observer, arguments)| {
            let named = || arguments.get("path")?.as_str().map(String::from);
            let path = targets.first().cloned().or_else(named);
            let (id, tool, effect) = (call_id.map(String::from), tool.name, tool.effect);
            let number = observer::next_number();
            ObservedCall::begin(observer, CallInfo { number, id, tool, effect, path }, arguments)
        });
        let folder = prepared.as_ref().map_or(0, |prepared| self.folders.of(prepared));
        let work = match copy {
            Some(arguments) if reads => Work::Read(arguments),
            copy => {
                // Nobody is asked about what is refused already.
                let copy = copy.filter(|_| prepared.is_ok());
                let rehearsal = copy.and_then(|arguments| tool.prepare(arguments).ok());
                let slot = self.join_queue(folder, prepared.as_ref());
                Work::Edit { slot, rehearsal: rehearsal.map(Box::new) }
            }
        };
        let request =
            CallRequest { tool, targets, folder, digest, memory_bytes, id: request_id, since };
        let control = CallControl { observed: observed_call, ..CallControl::default() };
        PendingCall::new(request, control, prepared, work)
    }

    /// The observer that hears of such a call. Resources are not tools.
    fn observer_of(&self, tool: &ToolSpec) -> Option<&Arc<dyn CallObserver>> {
        self.options.observer.as_ref().filter(|_| tool.dialect != Dialect::Resource)
    }

    /// True if a person or the observer may have to be asked about such a call.
    fn asks(&self, tool: &ToolSpec) -> bool {
        let writes = tool.effect != Effect::Reads;
        self.options.asks(tool) || (writes && self.observer_of(tool).is_some())
    }

    /// Refuses a call that this server does not make, whatever is in its files.
    fn check(&self, prepared: Prepared) -> Result<Prepared, Failure> {
        let reads = prepared.tool.effect == Effect::Reads;
        if !reads && self.options.access != Access::ReadWrite {
            let denied = StoreError::Denied {
                reason: Some("the server was started with --read-only".into()),
            };
            return Err(prepared.refused(&denied, &self.limits));
        }
        if !reads && !self.asks(prepared.tool) && self.options.confirm == Confirm::Always {
            return Err(confirmations::nobody_to_ask());
        }
        match self.folders.refusal(&prepared) {
            Some(refusal) => Err(prepared.refused(&refusal, &self.limits)),
            None => Ok(prepared),
        }
    }

    /// True if the thread that accepts such a call may as well run it: that takes hardly longer than to hand it over, and
    /// nobody is asked.
    pub fn is_short(&self, tool: &ToolSpec) -> bool {
        let works = || !self.folders.at(0).store.waits_for_disk();
        let asks = self.options.asks(tool) || self.options.observer.is_some();
        !asks && (tool.effect == Effect::Reads || works())
    }

    /// A slot in the queues of the files that a call would edit.
    fn join_queue(
        &self,
        folder: usize,
        prepared: Result<&Prepared, &Failure>,
    ) -> Option<QueueSlot> {
        let prepared = prepared.ok().filter(|prepared| !prepared.needs_generation())?;
        let keys = self.folders.keys(folder, prepared);
        (!keys.is_empty()).then(|| self.queue.join(keys))
    }

    /// Gives a call that left its file's queue the last slot there.
    pub fn rejoin_queue(&self, pending: PendingCall) -> PendingCall {
        let slot = self.join_queue(pending.request.folder, pending.prepared());
        pending.with_slot(slot)
    }

    /// Waits until an edit is at the head of its file's queue. If that takes too long it is refused.
    pub async fn wait_in_queue(&self, mut pending: PendingCall) -> PendingCall {
        let limits = self.limits_of(&pending);
        let Some(slot) = pending.slot() else { return pending };
        match self.wait_for(slot.wait_for_head(), limits.lock_deadline(), &limits).await {
            Ok(()) => pending,
            Err(error) => pending.refuse_by(&lock_timeout(error), &self.limits),
        }
    }

    /// Finds out what an edit would write, when its turn comes, and leaves the queue. `show` makes of it, on a thread,
    /// what is to be shown; nothing if nothing would be written. `None`: the call is refused.
    pub async fn rehearse<T: Send + 'static>(
        self: &Arc<Self>,
        mut pending: PendingCall,
        show: impl FnOnce(&ToolSpec, Vec<FileChange>) -> T + Send + 'static,
    ) -> (PendingCall, Option<(ChangeDigest, Option<T>)>) {
        let Some((prepared, mut slot)) = pending.take_rehearsal() else {
            // It is refused already, with its reason.
            return (pending.refuse(internal_error()), None);
        };
        let limits = self.limits_of(&pending);
        let turn = async {
            if let Some(slot) = &mut slot {
                slot.wait_for_head().await;
            }
            Arc::clone(&self.reads_on_threads).acquire_owned().await
        };
        let thread = match self.wait_for(turn, limits.call.deadline, &limits).await {
            Ok(thread) => thread.ok(),
            Err(error) => return (pending.refuse_by(&error, &self.limits), None),
        };
        let work = move |cx: &Context, _: &Self| {
            let tool = prepared.tool;
            let Rehearsal { digest, changes } = prepared.rehearse(cx)?;
            Ok((digest, (!changes.is_empty()).then(|| show(tool, changes))))
        };
        match self.on_thread(thread, &limits, work).await {
            Ok((rehearsed, _)) => (pending, Some(rehearsed)),
            Err(failure) => (pending.refuse(failure), None),
        }
    }

    /// Runs a call when its turn has come. A call that publishes is always waited for, cancelled or not.
    pub async fn run(self: Arc<Self>, pending: PendingCall) -> CallResult {
        let limits = self.limits_of(&pending);
        let Parts { request, prepared, work, held: _held } = pending.into_parts();
        let running = self.activity.run();
        let done = match (prepared, work) {
            (Ok(prepared), Work::Read(arguments)) => self.read(prepared, &arguments, &limits).await,
            (Ok(prepared), Work::Edit { slot, .. }) => self.edit(prepared, slot, &limits).await,
            (Err(failure), _) => Err(failure),
        };
        drop(running);
        let (outcome, permit) = match done {
            Ok((reply, permit)) => (Ok(reply), permit),
            Err(failure) => (Err(failure), None),
        };
        if let Some(observed) = &limits.control.observed {
            observed.end(outcome.as_ref(), &[]);
        }
        self.log_call(&request, limits.call.lock_wait(), &outcome);
        CallResult { outcome, permit }
    }

    /// Runs a read. How much memory its answer takes is known only once it is read. If there is none for it then, the answer
    /// is dropped, and read again when there is. So answers without a permit are never more than the threads have at hand,
    /// and small reads do not wait for large ones.
    async fn read(
        self: &Arc<Self>,
        mut prepared: Prepared,
        arguments: &Value,
        limits: &CallLimits,
    ) -> Result<(ToolOutput, Option<Permit>), Failure> {
        let tool = prepared.tool;
        let mut permit: Option<Permit> = None;
        loop {
            let thread = Arc::clone(&self.reads_on_threads).acquire_owned();
            let thread = match self.wait_for(thread, limits.call.deadline, limits).await {
                Ok(thread) => thread.ok(),
                Err(error) => return Err(prepared.refused(&error, &self.limits)),
            };
            let has_permit = permit.is_some();
            let work = move |cx: &Context, calls: &Self| match calls.must_wait(&prepared, cx) {
                Some(bytes) if !has_permit => Ok(ReadOutcome::NeedsMemory(prepared, bytes)),
                _ => prepared.run(cx).map(|reply| ReadOutcome::ToolOutput(reply.compact())),
            };
            let (outcome, thread) = self.on_thread(thread, limits, work).await?;
            let bytes = match outcome {
                ReadOutcome::NeedsMemory(unread, bytes) => {
                    prepared = unread;
                    bytes
                }
                ReadOutcome::ToolOutput(reply) => {
                    let bytes = reply.memory_bytes();
                    let Some(budget) = self.answer_memory.of(bytes) else {
                        return Ok((reply, None));
                    };
                    let enough = permit.take().filter(|permit| permit.bytes() >= bytes);
                    if let Some(mut permit) = enough.or_else(|| budget.try_acquire(bytes)) {
                        permit.shrink_to(bytes);
                        return Ok((reply, Some(permit)));
                    }
                    prepared = tool.prepare(arguments.clone())?;
                    bytes
                }
            };
            drop(thread);
            let Some(budget) = self.answer_memory.of(bytes) else { continue };
            let acquired = budget.acquire(bytes, limits.since);
            match self.wait_for(acquired, limits.call.deadline, limits).await {
                Ok(acquired) => permit = Some(acquired),
                Err(error) => return Err(prepared.refused(&error, &self.limits)),
            }
        }
    }

    /// About the memory that a read would take, if others wait for as much: then it must wait, too, and need not read to
    /// find that out.
    fn must_wait(&self, prepared: &Prepared, cx: &Context) -> Option<usize> {
        if !self.answer_memory.have_waiters() {
            return None;
        }
        let sizes = prepared.paths(cx.root).into_iter().map(|path| cx.store.size(&path));
        let size = sizes.collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, size| sum + size)?;
        let size = usize::try_from(size).ok().filter(|_| size <= self.limits.max_size)?;
        // Beside the file's text an answer has little.
        self.answer_memory.of(size)?.has_waiters().then_some(size + UNCOUNTED_MAX)
    }

    /// Runs an edit. One that was made must be answered: if there is no memory for the answer, it keeps its thread until
    /// there is, or until it is cancelled or the server stops.
    async fn edit(
        self: &Arc<Self>,
        prepared: Prepared,
        mut slot: Option<QueueSlot>,
        limits: &CallLimits,
    ) -> Result<(ToolOutput, Option<Permit>), Failure> {
        let since = Instant::now();
        let turn = async {
            if let Some(slot) = &mut slot {
                slot.wait_for_head().await;
            }
            Arc::clone(&self.edits_on_threads).acquire_owned().await
        };
        let turn = self.wait_for(turn, limits.lock_deadline(), limits).await;
        limits.call.add_lock_wait(since.elapsed());
        let thread = turn.map_err(|error| prepared.refused(&lock_timeout(error), &self.limits))?;
        // The slot goes with the work: the next edit waits for it, whatever becomes of this task.
        let approved = limits.preconditions.approved.clone();
        let observed = limits.control.observed.clone();
        let work = move |cx: &Context, _: &Self| {
            let _slot = slot;
            match (observed, approved) {
                // And so does its end.
                (Some(observed), approved) => {
                    let (outcome, changes) = prepared.run_recorded(cx, approved.as_deref());
                    observed.end(outcome.as_ref(), &changes);
                    outcome
                }
                (None, Some(approved)) => prepared.run_approved(cx, &approved),
                (None, None) => prepared.run(cx),
            }
        };
        let (reply, _thread) = self.on_thread(thread.ok(), limits, work).await?;
        let bytes = reply.memory_bytes();
        let permit = match self.answer_memory.of(bytes) {
            None => None,
            Some(budget) => tokio::select! {
                biased;
                permit = budget.acquire(bytes, limits.since) => Some(permit),
                () = limits.control.cancel.cancelled() => None,
                () = self.stop.cancelled() => None,
            },
        };
        Ok((reply, permit))
    }

    /// Waits for what a call needs, but no longer than the call may.
    pub(crate) async fn wait_for<T>(
        &self,
        what: impl Future<Output = T>,
        until: Instant,
        limits: &CallLimits,
    ) -> Result<T, StoreError> {
        limits.control.progress.set(Phase::Waiting);
        tokio::select! {
            biased;
            what = what => Ok(what),
            () = limits.control.cancel.cancelled() => Err(StoreError::Cancelled),
            () = self.stop.cancelled() => Err(StoreError::Stopping),
            () = tokio::time::sleep_until(until.into()) => Err(StoreError::TimedOut),
        }
    }

    pub(crate) fn limits_of(&self, pending: &PendingCall) -> CallLimits {
        pending.limits(self.limits.timeout, self.stop_flag())
    }

    /// Runs `work` in one of the folders.
    pub fn with_context<T>(
        &self,
        folder: usize,
        call: &Call,
        work: impl FnOnce(&Context) -> T,
    ) -> T {
        let Folder { root, store, line_counts } = self.folders.at(folder);
        let store = store.as_ref();
        work(&Context { root, store, line_counts, limits: &self.limits, call, expected: None })
    }

    /// Runs `work` on a thread for files, or on this one. The thread's permit comes back with the outcome.
    async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        thread: Option<OwnedSemaphorePermit>,
        limits: &CallLimits,
        work: impl FnOnce(&Context, &Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, Option<OwnedSemaphorePermit>), Failure> {
        limits.control.progress.set(Phase::Working(Arc::clone(&limits.call)));
        let (calls, call) = (Arc::clone(self), Arc::clone(&limits.call));
        let (folder, expected) = (limits.folder, limits.preconditions.expected);
        let work = move || {
            let work = |cx: &Context| work(&Context { expected, ..*cx }, &calls);
            calls.with_context(folder, &call, work).map(|outcome| (outcome, thread))
        };
        let internal = || Err(internal_error());
        match limits.run_on {
            RunOn::BlockingThread => {
                tokio::task::spawn_blocking(work).await.unwrap_or_else(|_panicked| internal())
            }
            // A panic leaves behind what it would leave on a thread of its own.
            RunOn::ThisThread => {
                catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panicked| internal())
            }
        }
    }

    /// Refuses every call that has to wait: for its turn, a thread, memory, a lock, a person or a model. Others finish.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// The flag that a thread polls while it runs a call.
    pub fn stop_flag(&self) -> Cancel {
        self.stop.flag()
    }

    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}

/// A turn that did not come is a lock that was not free.
fn lock_timeout(error: StoreError) -> StoreError {
    match error {
        StoreError::TimedOut => StoreError::LockTimeout { holder: None },
        error => error,
    }
}

/// Sorts the members of every object: a client may send them in another order the next time.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            members.into_iter().map(|(name, value)| (name.clone(), in_order(value))).collect()
        }
        Value::Array(items) => items.iter().map(in_order).collect(),
        other => other.clone(),
    }
}
