//! One call, from its arrival to its answer: its place in the file's queue, its thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use files::{Access, Call, Cancel, Hash, Root, Store, StoreError};
use serde_json::Value;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tools::{
    Changed, Context, Dialect, Effect, Entry, Failure, Kind, Limits, Prepared, Rehearsed, Reply,
    Seen,
};

use crate::aside::{Doing, Stage};
use crate::confirm::{self, Confirm};
use crate::desk::{Desk, Draft};
use crate::drafts;
use crate::folders::{Folder, Folders};
use crate::log::Log;
use crate::options::Options;
use crate::queue::{Place, Queue};
use crate::room::{Rooms, Share, UNCOUNTED};
use crate::witness::{self, Begun, Witnessed};

/// The longest wait for a lock, whatever the timeout.
const LONGEST_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Together no more than the runtime's threads for files.
const EDITS_ON_THREADS: usize = 32;
const READS_ON_THREADS: usize = 8;

/// Everything calls share.
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
    /// Calls for which a model may write at once.
    pub drafts: Arc<Semaphore>,
    /// Room for what answers hold, from when they are made until they are written.
    pub answers: Rooms,
    /// What persons are asked about.
    pub desk: Desk,
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

    /// For a thread at work.
    pub fn flag(&self) -> Cancel {
        self.flag.clone()
    }
}

/// A call's outcome, and its share of what answers may hold until they are written.
pub struct Answered {
    pub outcome: Result<Reply, Failure>,
    pub share: Option<Share>,
}

/// A call that has its place in the queue and waits to be answered.
pub struct Arrived {
    entry: &'static Entry,
    /// The file as asked for, and the number of the folder that it is in.
    target: Option<String>,
    folder: usize,
    prepared: Result<Prepared, Failure>,
    /// Of the arguments, if a model has to write by them what somebody may be asked about.
    described: Option<Hash>,
    work: Work,
    expected: Option<Hash>,
    /// The same once more, if a person may have to be asked, and about how many bytes of memory that takes.
    rehearsal: Option<Box<Prepared>>,
    pub takes: usize,
    /// Its share of what arguments may take.
    #[expect(dead_code, reason = "held, not read")]
    held: Option<Share>,
    /// What a person agreed to.
    seen: Option<Arc<Seen>>,
    witnessed: Option<Witnessed>,
    doing: Doing,
    recall: Recall,
    /// It is run by the thread that took it in, and by no other.
    at_once: bool,
    since: Instant,
    /// How much of the time since then was not ours.
    elsewhere: Duration,
    request_id: String,
}

/// What a call does when its turn has come.
enum Work {
    /// Reads, and reads again if there was no room for what it found: so its arguments are kept.
    Read(Value),
    /// Edits, once, when it is at the head of its file's queue.
    Edit(Option<Place>),
}

/// What a read found: what was asked for, or only that there is no room for it now.
enum Found {
    Reply(Reply),
    Size(Prepared, usize),
}

/// What a call has to keep to while it is at work.
pub(crate) struct Terms {
    since: Instant,
    pub call: Arc<Call>,
    recall: Recall,
    folder: usize,
    expected: Option<Hash>,
    seen: Option<Arc<Seen>>,
    witnessed: Option<Witnessed>,
    doing: Doing,
    at_once: bool,
}

impl Arrived {
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// What the file must be, when that was said beside the arguments.
    pub fn expecting(self, expected: Option<Hash>) -> Self {
        Self { expected, ..self }
    }

    /// Keeps this share, and no other, until the call is over.
    pub fn holding(self, held: Option<Share>) -> Self {
        Self { held, ..self }
    }

    /// Rung when the caller takes the call back.
    pub fn recall(&self) -> &Recall {
        &self.recall
    }

    pub fn doing(&self) -> &Doing {
        &self.doing
    }

    /// The file as asked for.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    pub(crate) fn witnessed(&self) -> Option<&Witnessed> {
        self.witnessed.as_ref()
    }

    pub fn folder(&self) -> usize {
        self.folder
    }

    /// Whether a model has to write something before it can be run.
    pub fn is_unwritten(&self) -> bool {
        self.prepared.as_ref().is_ok_and(Prepared::is_unwritten)
    }

    /// The call, if a model has to write something before it can be run.
    pub fn take_unwritten(&mut self) -> Option<Prepared> {
        let internal = Failure::new(Kind::Internal, "Internal error");
        match std::mem::replace(&mut self.prepared, Err(internal)) {
            Ok(prepared) if prepared.is_unwritten() => Some(prepared),
            prepared => {
                self.prepared = prepared;
                None
            }
        }
    }

    /// What became of it.
    pub fn written(self, outcome: Result<[Prepared; 2], Failure>) -> Self {
        let (prepared, rehearsal) = match outcome {
            Ok([prepared, rehearsal]) => (Ok(prepared), Some(Box::new(rehearsal))),
            Err(failure) => (Err(failure), None),
        };
        let takes = self.takes + prepared.as_ref().map_or(0, |prepared| prepared.holds);
        let rehearsal = self.rehearsal.and(rehearsal);
        Self { prepared, rehearsal, takes, ..self }
    }

    /// What tells a call by which a model has to write from others, if somebody may be asked about what it writes.
    pub fn described(&self) -> Option<Hash> {
        self.described
    }

    /// What would have been run, and is kept instead.
    pub fn take_prepared(&mut self) -> Option<Prepared> {
        let internal = Failure::new(Kind::Internal, "Internal error");
        std::mem::replace(&mut self.prepared, Err(internal)).ok()
    }

    /// With what a model wrote when it was asked for this before.
    pub fn with_draft(self, Draft { prepared, held }: Draft) -> Self {
        Self { prepared: Ok(prepared), held: Some(held), ..self }
    }

    pub fn is_refused(&self) -> bool {
        self.prepared.is_err()
    }

    /// It is not run, for this reason.
    pub fn refuse(self, failure: Failure) -> Self {
        Self { prepared: self.prepared.and(Err(failure)), work: Work::Edit(None), ..self }
    }

    /// The same, in the tool's own words.
    pub fn refuse_by(self, error: &StoreError, limits: &Limits) -> Self {
        let failure = self.prepared.as_ref().map(|prepared| prepared.refused(error, limits));
        match failure {
            Ok(failure) => self.refuse(failure),
            Err(_) => self,
        }
    }

    /// It writes what was seen, or nothing.
    pub fn bound_to(self, seen: Seen) -> Self {
        Self { seen: Some(Arc::new(seen)), ..self }
    }

    /// It is run by the thread that answers it.
    pub fn at_once(self) -> Self {
        Self { at_once: true, ..self }
    }

    /// So much of its time was not ours.
    pub fn after(self, elsewhere: Duration) -> Self {
        Self { elsewhere: self.elsewhere + elsewhere, ..self }
    }

    pub(crate) fn terms(&self, calls: &Calls) -> Terms {
        let deadline = self.since + calls.limits.timeout + self.elsewhere;
        let call = Call::new(deadline, self.recall.flag.clone(), calls.stop.flag.clone());
        Terms {
            since: self.since,
            call: Arc::new(call),
            recall: self.recall.clone(),
            folder: self.folder,
            expected: self.expected,
            seen: self.seen.clone(),
            witnessed: self.witnessed.clone(),
            doing: self.doing.clone(),
            at_once: self.at_once,
        }
    }
}

impl Terms {
    /// Until when to wait for a lock.
    fn patience(&self) -> Instant {
        self.call.deadline.min(Instant::now() + LONGEST_LOCK_WAIT)
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
        Self::with_more(root, store, Vec::new(), limits, options, log)
    }

    /// Serves `more` folders: a call is run in the innermost that its path is in. Names and resources are of the first.
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
            drafts: Arc::new(Semaphore::new(drafts::AT_ONCE)),
            answers: Rooms::new(limits.max_size),
            desk: Desk::new(limits.max_size),
            folders: Folders::new([(root, store)].into_iter().chain(more)),
            limits,
            options,
            log,
            queue: Queue::default(),
            stop: Recall::default(),
            activity: Activity::default(),
        })
    }

    /// The folder that is served, or the first of them.
    pub fn root(&self) -> &Root {
        &self.folders.at(0).root
    }

    /// What an agent needs to know first.
    pub fn instructions(&self) -> String {
        self.options.instructions(&self.folders.paths().collect::<Vec<_>>())
    }

    /// Takes a call in. The order of these calls is the order in which edits of one file are made.
    pub fn arrive(
        &self,
        entry: &'static Entry,
        arguments: Value,
        request_id: String,
        call_id: Option<&str>,
    ) -> Arrived {
        let since = Instant::now();
        self.stir();
        let (reads, confirm) = (entry.effect == Effect::Reads, self.options.confirm);
        let is_tool = entry.dialect != Dialect::Resource;
        let witness = self.options.witness.as_ref().filter(|_| is_tool);
        let asks = self.options.asks(entry) || (!reads && witness.is_some());
        let takes = if asks { tools::tool::arguments_hold(&arguments) } else { 0 };
        let once_more = (reads || asks).then(|| arguments.clone());
        let prepared = entry.prepare(arguments).and_then(|prepared| {
            let denied = StoreError::Denied {
                reason: Some("the server was started with --read-only".into()),
            };
            if !reads && self.options.access != Access::ReadWrite {
                return Err(prepared.refused(&denied, &self.limits));
            }
            if !reads && !asks && confirm == Confirm::Always {
                return Err(confirm::nobody_to_ask());
            }
            if let Some(refusal) = self.folders.refusal(&prepared) {
                return Err(prepared.refused(&refusal, &self.limits));
            }
            Ok(prepared)
        });
        let target = prepared.as_ref().ok().and_then(|prepared| prepared.target.clone());
        let is_unwritten = prepared.as_ref().is_ok_and(Prepared::is_unwritten);
        let described = once_more.as_ref().filter(|_| asks && is_unwritten);
        let described =
            described.map(|arguments| Hash::of(in_order(arguments).to_string().as_bytes()));
        let witnessed = witness.zip(once_more.as_ref()).map(|(witness, arguments)| {
            let named = || arguments.get("path")?.as_str().map(String::from);
            let path = target.clone().or_else(named);
            let (id, tool, effect) = (call_id.map(String::from), entry.name, entry.effect);
            let number = witness::next_number();
            Witnessed::begin(witness, Begun { number, id, tool, effect, path }, arguments)
        });
        let folder = prepared.as_ref().map_or(0, |prepared| self.folders.of(prepared));
        let (work, rehearsal) = match once_more {
            Some(arguments) if reads => (Work::Read(arguments), None),
            once_more => {
                // Nobody is asked about what is refused already.
                let once_more = once_more.filter(|_| prepared.is_ok());
                let rehearsal = once_more.and_then(|arguments| entry.prepare(arguments).ok());
                (Work::Edit(self.join(folder, &prepared)), rehearsal.map(Box::new))
            }
        };
        Arrived {
            entry,
            target,
            folder,
            prepared,
            described,
            work,
            expected: None,
            rehearsal,
            takes,
            held: None,
            seen: None,
            witnessed,
            doing: Doing::default(),
            recall: Recall::default(),
            at_once: false,
            since,
            elsewhere: Duration::ZERO,
            request_id,
        }
    }

    /// Whether the thread that takes such a call in may as well run it: it takes no longer than to hand it over, or not
    /// much, and asks nobody.
    pub fn is_short(&self, entry: &Entry) -> bool {
        let works = || !self.folders.at(0).store.waits_for_disk();
        let asks = self.options.asks(entry) || self.options.witness.is_some();
        !asks && (entry.effect == Effect::Reads || works())
    }

    /// A place in the queue of the file that a call would edit.
    fn join(&self, folder: usize, prepared: &Result<Prepared, Failure>) -> Option<Place> {
        let prepared = prepared.as_ref().ok().filter(|prepared| !prepared.is_unwritten())?;
        self.folders.key(folder, prepared).map(|key| self.queue.join(key))
    }

    /// A call that left its file's queue takes the last place there.
    pub fn come_again(&self, arrived: Arrived) -> Arrived {
        let place = self.join(arrived.folder, &arrived.prepared);
        Arrived { work: Work::Edit(place), ..arrived }
    }

    /// Waits until an edit is at the head of its file's queue. If that takes too long it is refused.
    pub async fn take_turn(&self, mut arrived: Arrived) -> Arrived {
        let terms = arrived.terms(self);
        let Work::Edit(Some(place)) = &mut arrived.work else { return arrived };
        match self.wait_for(place.turn(), terms.patience(), &terms).await {
            Ok(()) => arrived,
            Err(error) => arrived.refuse_by(&lock_timeout(error), &self.limits),
        }
    }

    /// Finds out what an edit would write, when its turn comes, and leaves the queue. `show` makes of it, on a thread,
    /// what somebody is to see; nothing if nothing would be written. `None`: it is refused.
    pub async fn rehearse<T: Send + 'static>(
        self: &Arc<Self>,
        mut arrived: Arrived,
        show: impl FnOnce(&Entry, &str, Changed) -> T + Send + 'static,
    ) -> (Arrived, Option<(Seen, Option<T>)>) {
        let Some(prepared) = arrived.rehearsal.take() else {
            // It is refused already, and told why.
            return (arrived.refuse(Failure::new(Kind::Internal, "Internal error")), None);
        };
        let terms = arrived.terms(self);
        let mut place = match &mut arrived.work {
            Work::Edit(place) => place.take(),
            Work::Read(_) => None,
        };
        let turn = async {
            if let Some(place) = &mut place {
                place.turn().await;
            }
            Arc::clone(&self.reads_on_threads).acquire_owned().await
        };
        let thread = match self.wait_for(turn, terms.call.deadline, &terms).await {
            Ok(thread) => thread.ok(),
            Err(error) => return (arrived.refuse_by(&error, &self.limits), None),
        };
        let target = arrived.target.clone().unwrap_or_default();
        let work = move |cx: &Context, _: &Self| {
            let entry = prepared.entry;
            let Rehearsed { seen, changed } = prepared.rehearse(cx)?;
            Ok((seen, changed.map(|changed| show(entry, &target, changed))))
        };
        match self.on_thread(thread, &terms, work).await {
            Ok((rehearsed, _)) => (arrived, Some(rehearsed)),
            Err(failure) => (arrived.refuse(failure), None),
        }
    }

    /// Runs the call when its turn has come. A call that publishes is always waited for, recalled or not.
    pub async fn answer(self: Arc<Self>, arrived: Arrived) -> Answered {
        let arrived = witness::settle(&self, arrived).await;
        let terms = arrived.terms(&self);
        let Arrived { entry, target, prepared, work, since, request_id, .. } = arrived;
        self.activity.at_work.fetch_add(1, Ordering::Relaxed);
        let answered = match (prepared, work) {
            (Ok(prepared), Work::Read(arguments)) => self.read(prepared, &arguments, &terms).await,
            (Ok(prepared), Work::Edit(place)) => self.edit(prepared, place, &terms).await,
            (Err(failure), _) => Err(failure),
        };
        self.activity.at_work.fetch_sub(1, Ordering::Relaxed);
        let (outcome, share) = match answered {
            Ok((reply, share)) => (Ok(reply), share),
            Err(failure) => (Err(failure), None),
        };
        if let Some(witnessed) = &terms.witnessed {
            witnessed.end(outcome.as_ref(), None);
        }
        self.log_call(entry, target, &request_id, since, terms.call.lock_wait(), &outcome);
        Answered { outcome, share }
    }

    /// What a read holds is not known before it is read. If there is no room for it then, it is let go of, and read again
    /// when there is: so no more than the threads have in hand is ever held without room, and nobody who reads little
    /// waits for those who read much.
    async fn read(
        self: &Arc<Self>,
        mut prepared: Prepared,
        arguments: &Value,
        terms: &Terms,
    ) -> Result<(Reply, Option<Share>), Failure> {
        let entry = prepared.entry;
        let mut share: Option<Share> = None;
        loop {
            let thread = Arc::clone(&self.reads_on_threads).acquire_owned();
            let thread = match self.wait_for(thread, terms.call.deadline, terms).await {
                Ok(thread) => thread.ok(),
                Err(error) => return Err(prepared.refused(&error, &self.limits)),
            };
            let has_room = share.is_some();
            let work = move |cx: &Context, calls: &Self| match calls.must_wait(&prepared, cx) {
                Some(size) if !has_room => Ok(Found::Size(prepared, size)),
                _ => run(prepared, cx).map(|reply| Found::Reply(reply.compact())),
            };
            let (found, thread) = self.on_thread(thread, terms, work).await?;
            let holds = match found {
                Found::Size(unread, size) => {
                    prepared = unread;
                    size
                }
                Found::Reply(reply) => {
                    let holds = reply.holds();
                    let Some(room) = self.answers.of(holds) else { return Ok((reply, None)) };
                    let enough = share.take().filter(|share| share.bytes() >= holds);
                    if let Some(mut share) = enough.or_else(|| room.take_now(holds)) {
                        share.shrink_to(holds);
                        return Ok((reply, Some(share)));
                    }
                    prepared = entry.prepare(arguments.clone())?;
                    holds
                }
            };
            drop(thread);
            let Some(room) = self.answers.of(holds) else { continue };
            match self.wait_for(room.take(holds, terms.since), terms.call.deadline, terms).await {
                Ok(taken) => share = Some(taken),
                Err(error) => return Err(prepared.refused(&error, &self.limits)),
            }
        }
    }

    /// About what a read would hold, if others wait for room for as much: then it need not be read to know that it must
    /// wait.
    fn must_wait(&self, prepared: &Prepared, cx: &Context) -> Option<usize> {
        if !self.answers.are_waited_for() {
            return None;
        }
        let size = cx.store.size(&prepared.path(cx.root)?)?;
        let size = usize::try_from(size).ok().filter(|_| size <= self.limits.max_size)?;
        // Beside the file's text an answer has little.
        self.answers.of(size)?.is_waited_for().then_some(size + UNCOUNTED)
    }

    /// An edit that was made must be answered: if there is no room for what the answer holds, it keeps its thread until
    /// there is.
    async fn edit(
        self: &Arc<Self>,
        prepared: Prepared,
        mut place: Option<Place>,
        terms: &Terms,
    ) -> Result<(Reply, Option<Share>), Failure> {
        let since = Instant::now();
        let turn = async {
            if let Some(place) = &mut place {
                place.turn().await;
            }
            Arc::clone(&self.edits_on_threads).acquire_owned().await
        };
        let turn = self.wait_for(turn, terms.patience(), terms).await;
        terms.call.add_lock_wait(since.elapsed());
        let thread = turn.map_err(|error| prepared.refused(&lock_timeout(error), &self.limits))?;
        // The place goes with the work: the next edit waits for it, whatever becomes of this task.
        let (seen, witnessed) = (terms.seen.clone(), terms.witnessed.clone());
        let work = move |cx: &Context, _: &Self| {
            let _place = place;
            match (witnessed, seen) {
                // And so does its end.
                (Some(witnessed), seen) => {
                    let (outcome, changed) = prepared.run_recorded(cx, seen.as_deref());
                    witnessed.end(outcome.as_ref(), changed.as_ref());
                    outcome
                }
                (None, Some(seen)) => prepared.run_as_seen(cx, &seen),
                (None, None) => run(prepared, cx),
            }
        };
        let (reply, _thread) = self.on_thread(thread.ok(), terms, work).await?;
        let holds = reply.holds();
        let share = match self.answers.of(holds) {
            None => None,
            Some(room) => tokio::select! {
                biased;
                share = room.take(holds, terms.since) => Some(share),
                () = terms.recall.rung() => None,
                () = self.stop.rung() => None,
            },
        };
        Ok((reply, share))
    }

    /// Waits for what a call needs, but no longer than the call may.
    pub(crate) async fn wait_for<T>(
        &self,
        what: impl Future<Output = T>,
        patience: Instant,
        terms: &Terms,
    ) -> Result<T, StoreError> {
        terms.doing.set(Stage::Waiting);
        tokio::select! {
            biased;
            what = what => Ok(what),
            () = terms.recall.rung() => Err(StoreError::Cancelled),
            () = self.stop.rung() => Err(StoreError::Stopping),
            () = tokio::time::sleep_until(patience.into()) => Err(StoreError::TimedOut),
        }
    }

    /// Works in one of the folders.
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

    /// Works on a thread, or on this one; whoever gets the outcome decides when the next may have it.
    async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        thread: Option<OwnedSemaphorePermit>,
        terms: &Terms,
        work: impl FnOnce(&Context, &Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, Option<OwnedSemaphorePermit>), Failure> {
        terms.doing.set(Stage::Working(Arc::clone(&terms.call)));
        let (calls, call, expected) = (Arc::clone(self), Arc::clone(&terms.call), terms.expected);
        let folder = terms.folder;
        let work = move || {
            let work = |cx: &Context| work(&Context { expected, ..*cx }, &calls);
            calls.with_context(folder, &call, work).map(|outcome| (outcome, thread))
        };
        let internal = || Err(Failure::new(Kind::Internal, "Internal error"));
        if terms.at_once {
            // What it leaves behind is what a thread would leave that panicked.
            return catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panicked| internal());
        }
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_panicked| internal())
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

    /// For a thread at work.
    pub fn stop_flag(&self) -> Cancel {
        self.stop.flag()
    }

    pub async fn stopped(&self) {
        self.stop.rung().await;
    }
}

/// Whoever waited for their turn waited for a lock.
fn lock_timeout(error: StoreError) -> StoreError {
    match error {
        StoreError::TimedOut => StoreError::LockTimeout { holder: None },
        error => error,
    }
}

fn run(prepared: Prepared, cx: &Context) -> Result<Reply, Failure> {
    #[cfg(debug_assertions)]
    panic_if_asked(prepared.target.as_deref());
    prepared.run(cx)
}

/// A test hook of development builds: a call about this file panics.
#[cfg(debug_assertions)]
fn panic_if_asked(target: Option<&str>) {
    let asked = std::env::var("FILE_EDITOR_TEST_PANIC").ok();
    assert!(asked.is_none() || asked.as_deref() != target, "asked to panic");
}

/// The same value, the members of every object by name: a client may say them in another order the next time.
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
