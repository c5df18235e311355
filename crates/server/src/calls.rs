//! One call, from its arrival to its answer: its place in the file's queue, its thread, its line in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use files::{Access, Call, Cancel, Hash, LineCounts, Root, Sandbox, Store, StoreError};
use rmcp::model::RequestId;
use serde_json::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tools::{Block, Context, Dialect, Effect, Entry, Failure, Kind, Limits, Prepared, Reply};

use crate::fault;
use crate::log::{Level, Log};
use crate::queue::{Place, Queue};
use crate::wire::Refusal;

/// The longest wait for a lock, whatever the timeout.
const LONGEST_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Together no more than the runtime's threads for files.
const EDITS_ON_THREADS: usize = 32;
const READS_ON_THREADS: usize = 8;
/// Bytes of files that reads may hold at once, from reading to the end of writing; more wait.
const ANSWERS_HOLD: u64 = 64 << 20;

/// How long one of many clients waits because others do not take their answers.
const BRIEFLY: Duration = Duration::from_millis(20);

/// A start that takes longer is worth a warning.
const STARTUP_TARGET: Duration = Duration::from_millis(100);

const FLAT_INSTRUCTIONS: &str = "Text files of one folder, addressed by name alone. `list_files` shows them, `read_file` reads one, whole or by lines, `edit_file` replaces, inserts, deletes and appends lines or creates a file. Line numbers are 0-based and inclusive; in `edit_file` they all mean the file before the call. A call's edits are applied all or none; after an error nothing was written and the second text says what would work. Pass the last `hash` as `expected_hash` to be refused instead of overwriting someone's change.";

const TEXT_INSTRUCTIONS: &str = "Text files below one folder, by absolute path; lines count from 1. `read_text_file` reads, `multi_edit_text_file` replaces exact strings, all edits or none, `write_text_file` creates a file or replaces all of it. After an error nothing was written, and the second text says what would work. Pass the last `hash` as `expected_hash` to be refused instead of overwriting someone's change.";

/// How a tool's failure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrors {
    /// As a result with `isError: true`, which models see.
    Result,
    /// As a JSON-RPC error.
    JsonRpc,
}

/// Whether answers carry `structuredContent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    On,
    Off,
}

/// What a server serves, and how.
pub struct Options {
    /// The tools of `tools/list`, in order.
    pub tools: Vec<&'static Entry>,
    /// The plain methods.
    pub methods: Vec<&'static Entry>,
    /// Refuse whatever is not a read.
    pub access: Access,
    pub tool_errors: ToolErrors,
    pub structured: Structured,
    pub clients: Clients,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// One, who keeps nobody waiting but itself.
    One,
    /// Several, of whom one that does not take its answers must not keep the others waiting.
    Many,
}

impl Options {
    /// The tools an agent is offered.
    pub fn offered(&self) -> impl Iterator<Item = &'static Entry> {
        let access = self.access;
        self.tools
            .iter()
            .copied()
            .filter(move |entry| access == Access::ReadWrite || entry.effect == Effect::Reads)
    }
}

/// Everything calls share.
pub struct Calls {
    root: Arc<Root>,
    store: Box<dyn Store>,
    line_counts: LineCounts,
    pub limits: Limits,
    pub options: Options,
    pub log: Log,
    queue: Queue,
    /// Edits that may have a thread: each may be waiting there for a lock.
    edits_on_threads: Semaphore,
    /// Reads that may have one: they never wait, so a few keep the disk busy.
    reads_on_threads: Semaphore,
    /// Kilobytes of text that answers may hold.
    reading: Arc<Semaphore>,
    stop: Recall,
    activity: Activity,
}

/// How busy the server is.
#[derive(Default)]
struct Activity {
    stirs: AtomicU64,
    at_work: AtomicUsize,
    stirred: Notify,
}

/// A wish to be done: seen by a thread at work and by a task that waits.
#[derive(Clone, Default)]
pub struct Recall {
    flag: Cancel,
    token: CancellationToken,
}

impl Recall {
    pub fn ring(&self) {
        self.flag.set();
        self.token.cancel();
    }

    pub async fn rung(&self) {
        self.token.cancelled().await;
    }
}

/// What a call has when its turn has come.
struct Turn<'a> {
    place: Option<Place>,
    thread: Option<SemaphorePermit<'a>>,
    share: Option<Share>,
}

/// A call's outcome, and its share of what answers may hold until they are written.
pub struct Answered {
    pub outcome: Result<Reply, Failure>,
    pub share: Option<Share>,
}

pub type Share = OwnedSemaphorePermit;

/// A call that has its place in the queue and waits to be answered.
pub struct Arrived {
    entry: &'static Entry,
    prepared: Result<Prepared, Failure>,
    place: Option<Place>,
    expected: Option<Hash>,
    recall: Recall,
    since: Instant,
    request_id: String,
}

impl Arrived {
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// What the file must be, when that was said beside the arguments.
    pub fn expecting(self, expected: Option<Hash>) -> Self {
        Self { expected, ..self }
    }

    /// Rung when the caller takes the call back.
    pub fn recall(&self) -> &Recall {
        &self.recall
    }
}

impl Calls {
    pub fn new(
        root: Arc<Root>,
        store: Box<dyn Store>,
        limits: Limits,
        options: Options,
        log: Log,
    ) -> Arc<Self> {
        let held = ANSWERS_HOLD.max(2 * limits.max_size) / 1024;
        Arc::new(Self {
            edits_on_threads: Semaphore::new(EDITS_ON_THREADS),
            reads_on_threads: Semaphore::new(READS_ON_THREADS),
            reading: Arc::new(Semaphore::new(usize::try_from(held).unwrap_or(usize::MAX >> 4))),
            root,
            store,
            line_counts: LineCounts::default(),
            limits,
            options,
            log,
            queue: Queue::default(),
            stop: Recall::default(),
            activity: Activity::default(),
        })
    }

    /// What an agent needs to know first. Some clients show only the first 512 characters.
    pub fn instructions(&self) -> String {
        let serves = |dialect| self.options.offered().any(|entry| entry.dialect == dialect);
        let flat = serves(Dialect::Flat).then(|| FLAT_INSTRUCTIONS.to_owned());
        let text = serves(Dialect::Text)
            .then(|| format!("{TEXT_INSTRUCTIONS} The folder is {}", self.root.path().display()));
        flat.into_iter().chain(text).collect::<Vec<_>>().join("\n\n")
    }

    /// Takes a call in. The order of these calls is the order in which edits of one file are made.
    pub fn arrive(&self, entry: &'static Entry, arguments: Value, request_id: String) -> Arrived {
        let since = Instant::now();
        self.stir();
        let prepared = entry.prepare(arguments).and_then(|prepared| {
            let allowed = self.options.access == Access::ReadWrite || entry.effect == Effect::Reads;
            let denied =
                StoreError::Denied { reason: Some("the server was started with --read-only") };
            if allowed { Ok(prepared) } else { Err(prepared.refused(&denied, &self.limits)) }
        });
        let place = match &prepared {
            Ok(prepared) if entry.effect != Effect::Reads => {
                prepared.path(&self.root).map(|path| self.queue.join(path))
            }
            _ => None,
        };
        let recall = Recall::default();
        Arrived { entry, prepared, place, expected: None, recall, since, request_id }
    }

    /// Runs the call when its turn has come. A call that publishes is always waited for, recalled or not.
    pub async fn answer(self: Arc<Self>, arrived: Arrived) -> Answered {
        let Arrived { entry, prepared, place, expected, recall, since, request_id } = arrived;
        let target = prepared.as_ref().ok().and_then(|prepared| prepared.target.clone());
        let deadline = since + self.limits.timeout;
        let call = Arc::new(Call::new(deadline, recall.flag.clone(), self.stop.flag.clone()));
        self.activity.at_work.fetch_add(1, Ordering::Relaxed);
        let mut share = None;
        let outcome = match prepared {
            Ok(prepared) => {
                // What a listing holds is small, and what a file holds is not known before it is read.
                let holds = if prepared.target.is_some() { self.limits.max_size } else { 0 };
                match self.turn(place, holds, &call, &recall).await {
                    Ok(turn) => {
                        let (outcome, kept) = self.run(prepared, turn, expected, &call).await;
                        share = kept;
                        outcome
                    }
                    Err(error) => Err(prepared.refused(&error, &self.limits)),
                }
            }
            Err(failure) => Err(failure),
        };
        self.activity.at_work.fetch_sub(1, Ordering::Relaxed);
        self.log_call(entry, target, &request_id, since, call.lock_wait(), &outcome);
        Answered { outcome, share }
    }

    /// Waits until the call may have a thread: an edit for its place, a read for what it may hold, in bytes.
    async fn turn(
        self: &Arc<Self>,
        mut place: Option<Place>,
        holds: u64,
        call: &Call,
        recall: &Recall,
    ) -> Result<Turn<'_>, StoreError> {
        let since = Instant::now();
        let patience = call.deadline.min(since + LONGEST_LOCK_WAIT);
        let too_late = if place.is_some() { StoreError::LockTimeout } else { StoreError::TimedOut };
        let waits = async {
            let Some(place) = &mut place else {
                let share = u32::try_from(holds / 1024).unwrap_or(u32::MAX);
                let share = Arc::clone(&self.reading).acquire_many_owned(share);
                let share = match self.options.clients {
                    Clients::One => share.await.ok(),
                    Clients::Many => {
                        let share = tokio::time::timeout(BRIEFLY, share).await;
                        share.ok().and_then(Result::ok)
                    }
                };
                return (self.reads_on_threads.acquire().await.ok(), share);
            };
            place.turn().await;
            (self.edits_on_threads.acquire().await.ok(), None)
        };
        let outcome = tokio::select! {
            biased;
            (thread, share) = waits => Ok((thread, share)),
            () = recall.rung() => Err(StoreError::Cancelled),
            () = self.stop.rung() => Err(StoreError::Stopping),
            () = tokio::time::sleep_until(patience.into()) => Err(too_late),
        };
        if place.is_some() {
            call.add_lock_wait(since.elapsed());
        }
        let (thread, share) = outcome?;
        Ok(Turn { place, thread, share })
    }

    /// Runs the call on a thread of its own.
    async fn run(
        self: &Arc<Self>,
        prepared: Prepared,
        Turn { place, thread, share }: Turn<'_>,
        expected: Option<Hash>,
        call: &Arc<Call>,
    ) -> (Result<Reply, Failure>, Option<Share>) {
        let (calls, call) = (Arc::clone(self), Arc::clone(call));
        let work = tokio::task::spawn_blocking(move || {
            // The place goes with the work: the next edit waits for it, whatever becomes of this task.
            let _place = place;
            #[cfg(debug_assertions)]
            panic_if_asked(prepared.target.as_deref());
            let cx = Context {
                root: &calls.root,
                store: calls.store.as_ref(),
                line_counts: &calls.line_counts,
                limits: &calls.limits,
                call: &call,
                expected,
            };
            prepared.run(&cx)
        });
        let internal = |_panicked| Err(Failure::new(Kind::Internal, "Internal error"));
        let outcome = work.await.unwrap_or_else(internal);
        drop(thread);
        // Of the share, what the answer truly holds is kept until it is written.
        let held = outcome.as_ref().map_or(0, |reply| reply.blocks.iter().map(Block::len).sum());
        let share = share.and_then(|mut share| share.split((held / 1024).min(share.num_permits())));
        (outcome, share)
    }

    /// What was refused before it became a call.
    pub fn log_refusal(&self, refusal: &Refusal) {
        let mut line = Map::new();
        line.insert("request_id".into(), refusal.id.as_ref().map(short).into());
        line.insert("outcome".into(), "error".into());
        line.insert("code".into(), refusal.code.into());
        line.insert("category".into(), "client".into());
        self.log.write(Level::Warn, "refused", line);
    }

    /// Somebody who may not come in.
    pub fn log_turned_away(&self, status: u16) {
        let mut line = Map::new();
        line.insert("outcome".into(), "error".into());
        line.insert("status".into(), status.into());
        line.insert("category".into(), "client".into());
        self.log.write(Level::Warn, "turned away", line);
    }

    /// A request that calls no tool.
    pub fn log_request(&self, method: &str, id: &RequestId) {
        let mut line = Map::new();
        line.insert("operation".into(), method.into());
        line.insert("request_id".into(), short(id).into());
        self.log.write(Level::Debug, "request", line);
    }

    /// The client has gone away.
    pub fn log_end(&self, error: &std::io::Error) {
        let mut line = Map::new();
        line.insert("message".into(), error.to_string().into());
        self.log.write(Level::Warn, "answers cannot be written", line);
    }

    /// The first line of the log: what serves, behind which walls, and how long it took to get there.
    pub fn announce(&self, transport: &str, sandbox: &Sandbox, started: Instant) {
        let took = started.elapsed();
        let mut line = Map::new();
        line.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        line.insert("transport".into(), transport.into());
        let tools: Vec<_> = self.options.offered().map(|entry| entry.name).collect();
        line.insert("tools".into(), tools.into());
        line.insert("sandbox".into(), sandbox.to_string().into());
        line.insert("startup_ms".into(), millis(took));
        self.log.write(Level::Info, "ready", line);
        if let Sandbox::Failed(reason) = sandbox {
            let mut line = Map::new();
            line.insert("message".into(), reason.as_str().into());
            self.log.write(Level::Warn, "the sandbox could not be entered", line);
        }
        if took > STARTUP_TARGET {
            let mut line = Map::new();
            line.insert("startup_ms".into(), millis(took));
            self.log.write(Level::Warn, "startup time exceeded target", line);
        }
    }

    /// From now on a panic is a line of the log that says where, and nothing of what was being worked on.
    pub fn log_panics(self: &Arc<Self>) {
        let calls = Arc::clone(self);
        std::panic::set_hook(Box::new(move |panic| {
            let mut line = Map::new();
            line.insert("at".into(), panic.location().map(ToString::to_string).into());
            calls.log.write(Level::Error, "panic", line);
        }));
    }

    /// Something happens that takes memory, or leaves some behind.
    pub fn stir(&self) {
        self.activity.stirs.fetch_add(1, Ordering::Relaxed);
        self.activity.stirred.notify_one();
    }

    /// Comes back when something has happened.
    pub async fn stirred(&self) {
        self.activity.stirred.notified().await;
    }

    /// How much has happened so far.
    pub fn stirs(&self) -> u64 {
        self.activity.stirs.load(Ordering::Relaxed)
    }

    /// How many are not answered yet.
    pub fn at_work(&self) -> usize {
        self.activity.at_work.load(Ordering::Relaxed)
    }

    /// Refuses every call that waits for a lock; those that have it finish.
    pub fn stop(&self) {
        self.stop.ring();
    }

    pub async fn stopped(&self) {
        self.stop.rung().await;
    }

    fn log_call(
        &self,
        entry: &Entry,
        target: Option<String>,
        request_id: &str,
        since: Instant,
        lock_wait: Duration,
        outcome: &Result<Reply, Failure>,
    ) {
        let level = match outcome {
            Ok(_) => Level::Info,
            Err(failure) if fault::code(failure.kind).category == "server" => Level::Error,
            Err(_) => Level::Warn,
        };
        if !self.log.enabled(level) {
            return;
        }
        let mut line = Map::new();
        line.insert("operation".into(), entry.name.into());
        line.insert("file".into(), target.into());
        line.insert("request_id".into(), short(&request_id).into());
        line.insert("duration_ms".into(), millis(since.elapsed()));
        line.insert("lock_wait_ms".into(), millis(lock_wait));
        match outcome {
            Ok(_) => drop(line.insert("outcome".into(), "ok".into())),
            Err(failure) => {
                let code = fault::code(failure.kind);
                line.insert("outcome".into(), "error".into());
                line.insert("code".into(), code.number.into());
                line.insert("category".into(), code.category.into());
                line.insert("message".into(), code.about.into());
            }
        }
        self.log.write(level, "call", line);
    }
}

/// What the log says of an id, which may be any text a client likes.
fn short(id: &impl ToString) -> String {
    id.to_string().chars().take(80).collect()
}

fn millis(time: Duration) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a duration in a log")]
    let millis = time.as_micros() as f64 / 1000.0;
    millis.into()
}

/// A test hook of development builds: a call about this file panics.
#[cfg(debug_assertions)]
fn panic_if_asked(target: Option<&str>) {
    let asked = std::env::var("FILE_EDITOR_TEST_PANIC").ok();
    assert!(asked.is_none() || asked.as_deref() != target, "asked to panic");
}
