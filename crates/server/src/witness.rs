//! Somebody in our own process who sees the calls: told of each, and asked before one writes.
//!
//! For a program that serves tools to another that it started itself (`hosted`): there the person sits in front of the
//! program, not of the client, and whether they have to be asked may change from call to call.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use files::StoreError;
use serde_json::Value;
pub use tools::Changed;
use tools::{Effect, Failure, Kind, Reply};

use crate::aside::Stage;
use crate::calls::{Arrived, Calls};
use crate::confirm;

/// Somebody in our own process who is told of every call of a tool, and asked before one writes. Resources are not tools.
///
/// None of this may wait, but for the future of [`Witness::ask`].
pub trait Witness: Send + Sync {
    /// A call has arrived. These come in the order of arrival. The arguments are as they came, sound or not.
    fn begin(&self, call: &Begun, arguments: &Value);

    /// Waits until there is room for what another call has to tell. No call is run before, and the time is not its own.
    /// The future is dropped when the call is taken back.
    fn ready<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }

    /// What stands between a call that would write and the file. It is asked when the call has its turn, and once more
    /// after somebody said yes: that may be long after.
    fn leave(&self, call: &Begun) -> Leave;

    /// Asks about a change. After a yes an edit by exact strings is made on what is there then, if it still fits; what
    /// replaces a whole file is written as it was shown, or not at all. The call holds no lock and no place in the queue meanwhile, and the time is not its own. The
    /// future is dropped when the call is taken back.
    fn ask<'a>(
        &'a self,
        call: &'a Begun,
        change: &'a Changed,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

    /// The call is over, and wrote this: once for each [`Witness::begin`], whatever became of the call.
    fn end(&self, call: &Begun, outcome: Result<&Reply, &Failure>, change: Option<&Changed>);
}

/// A call as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Tells the call from every other of this process.
    pub number: u64,
    /// `_meta.callId` of the request, if it is a string.
    pub id: Option<String>,
    pub tool: &'static str,
    pub effect: Effect,
    /// The file as asked for.
    pub path: Option<String>,
}

/// Whether a call may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Given,
    /// [`Witness::ask`] is to decide, by what it would write.
    Asked,
    /// It is refused, for this reason.
    Refused(&'static str),
}

/// What was said to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    Unanswered,
}

/// The number of the next call.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A call that is seen, to its end: that of the last who holds on to it, if nobody said another.
#[derive(Clone)]
pub(crate) struct Witnessed(Arc<Call>);

struct Call {
    witness: Arc<dyn Witness>,
    begun: Begun,
    is_over: AtomicBool,
}

impl Witnessed {
    pub fn begin(witness: &Arc<dyn Witness>, begun: Begun, arguments: &Value) -> Self {
        witness.begin(&begun, arguments);
        let (witness, is_over) = (Arc::clone(witness), AtomicBool::default());
        Self(Arc::new(Call { witness, begun, is_over }))
    }

    /// The first end counts.
    pub fn end(&self, outcome: Result<&Reply, &Failure>, change: Option<&Changed>) {
        self.0.end(outcome, change);
    }
}

impl Call {
    fn end(&self, outcome: Result<&Reply, &Failure>, change: Option<&Changed>) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.witness.end(&self.begun, outcome, change);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let cancelled =
            Failure::new(Kind::Cancelled, "The call was cancelled; nothing was written");
        self.end(Err(&cancelled), None);
    }
}

/// Whether a call may write, as its witness has it: what comes back is to be run, and may be refused by then.
pub(crate) async fn settle(calls: &Arc<Calls>, arrived: Arrived) -> Arrived {
    let Some(Witnessed(call)) = arrived.witnessed().cloned() else { return arrived };
    let (arrival, recall) = (Instant::now(), arrived.recall().clone());
    tokio::select! {
        biased;
        () = call.witness.ready() => {}
        () = recall.rung() => {}
        () = calls.stopped() => {}
    }
    let arrived = arrived.after(arrival.elapsed());
    if call.begun.effect == Effect::Reads {
        return arrived;
    }
    let refuse = |arrived: Arrived, reason: &'static str| {
        let denied = StoreError::Denied { reason: Some(reason.into()) };
        arrived.refuse_by(&denied, &calls.limits)
    };
    let arrived = calls.take_turn(arrived).await;
    if arrived.is_refused() {
        return arrived;
    }
    match call.witness.leave(&call.begun) {
        Leave::Given => return arrived,
        Leave::Asked => {}
        Leave::Refused(reason) => return refuse(arrived, reason),
    }
    let (arrived, rehearsed) = calls.rehearse(arrived, |_, _, changed| changed).await;
    let Some((seen, changed)) = rehearsed else { return arrived };
    let Some(changed) = changed else { return calls.come_again(arrived).bound_to(seen) };
    let holds = changed.after.len() + changed.before.as_ref().map_or(0, |bytes| bytes.len());
    let Some(held) = calls.desk.hold(arrived.takes + holds) else {
        return arrived.refuse(confirm::too_many());
    };
    let arrived = arrived.holding(Some(held));
    arrived.doing().set(Stage::Asking);
    let asked = Instant::now();
    let verdict = tokio::select! {
        verdict = call.witness.ask(&call.begun, &changed) => Ok(verdict),
        () = recall.rung() => Err(StoreError::Cancelled),
        () = calls.stopped() => Err(StoreError::Stopping),
    };
    let arrived = arrived.after(asked.elapsed());
    match verdict {
        Ok(Verdict::Yes) => {
            let arrived = calls.take_turn(calls.come_again(arrived).bound_to(seen)).await;
            match call.witness.leave(&call.begun) {
                Leave::Refused(reason) => refuse(arrived, reason),
                Leave::Given | Leave::Asked => arrived,
            }
        }
        Ok(Verdict::No) => arrived.refuse(confirm::declined()),
        Ok(Verdict::Unanswered) => arrived.refuse(confirm::unanswered()),
        Err(error) => arrived.refuse_by(&error, &calls.limits),
    }
}
