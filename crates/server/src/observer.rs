//! An in-process observer of calls, which may veto a write.
//!
//! For a program that serves the tools to another program that it started itself (`http::loopback`). There the person sits
//! in front of the embedding program, not of the client, and whether to ask them may change from call to call.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
pub use tools::FileChange;
use tools::{Effect, Failure, FailureKind, ToolOutput};

/// Hears of every call of a tool, and is asked before one writes. Resources are not tools.
///
/// None of its functions may block, but for the futures of [`CallObserver::ready`] and [`CallObserver::ask`].
pub trait CallObserver: Send + Sync {
    /// A call has arrived. Called in order of arrival. The arguments are as they came, valid or not.
    fn begin(&self, call: &CallInfo, arguments: &Value);

    /// Waits until the observer can take another call. No call runs before that, and the time does not count. The future is
    /// dropped when the call is cancelled.
    fn ready<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }

    /// Decides whether a call may write. Called when the call has its turn, and once more after [`CallObserver::ask`] said yes: that
    /// may be long after.
    fn permission(&self, call: &CallInfo) -> Permission;

    /// Asks about the changes of a call, at least one. After a yes an edit by exact strings is made on what is there then,
    /// if it still fits; what replaces a whole file is written as it was shown, or not at all. Meanwhile the call holds no
    /// lock and no slot in a queue, and the time does not count. The future is dropped when the call is cancelled.
    fn ask<'a>(
        &'a self,
        call: &'a CallInfo,
        changes: &'a [FileChange],
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

    /// The call is over. `changes` are those that it made. Called once for each [`CallObserver::begin`].
    fn end(&self, call: &CallInfo, outcome: Result<&ToolOutput, &Failure>, changes: &[FileChange]);
}

/// A call as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// Unique in this process.
    pub number: u64,
    /// `_meta.callId` of the request, if it is a string.
    pub id: Option<String>,
    pub tool: &'static str,
    pub effect: Effect,
    /// The first of the files as asked for.
    pub path: Option<String>,
}

/// An observer's decision on whether a call may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Granted,
    /// [`CallObserver::ask`] decides, by the change.
    Ask,
    /// The reason.
    Refused(&'static str),
}

/// The reply to a question about a change.
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

/// A call that an observer was told of. Its end is told when the last clone is dropped, if it was not before.
#[derive(Clone)]
pub(crate) struct ObservedCall(Arc<Observed>);

struct Observed {
    observer: Arc<dyn CallObserver>,
    info: CallInfo,
    is_over: AtomicBool,
}

impl ObservedCall {
    pub fn begin(observer: &Arc<dyn CallObserver>, info: CallInfo, arguments: &Value) -> Self {
        observer.begin(&info, arguments);
        let (observer, is_over) = (Arc::clone(observer), AtomicBool::default());
        Self(Arc::new(Observed { observer, info, is_over }))
    }

    pub fn observer(&self) -> &dyn CallObserver {
        self.0.observer.as_ref()
    }

    pub fn info(&self) -> &CallInfo {
        &self.0.info
    }

    /// Tells the observer of the end. Only the first end counts.
    pub fn end(&self, outcome: Result<&ToolOutput, &Failure>, changes: &[FileChange]) {
        self.0.end(outcome, changes);
    }
}

impl Observed {
    fn end(&self, outcome: Result<&ToolOutput, &Failure>, changes: &[FileChange]) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.observer.end(&self.info, outcome, changes);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let cancelled =
            Failure::new(FailureKind::Cancelled, "The call was cancelled; nothing was written");
        self.end(Err(&cancelled), &[]);
    }
}
