//! A call between its arrival and its answer: what came in, and how far it has got.

use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{Call, Cancel, Hash, StoreError};
use serde_json::Value;
use tools::{ChangeDigest, Failure, FailureKind, Limits, Prepared, ToolOutput, ToolSpec};

use crate::call::confirmations::GeneratedCall;
use crate::call::progress::CallProgress;
use crate::call::queue::QueueSlot;
use crate::cancel::CancelSignal;
use crate::memory_budget::Permit;
use crate::observer::ObservedCall;

/// The request behind a call. It does not change.
pub struct CallRequest {
    pub tool: &'static ToolSpec,
    /// The files as asked for.
    pub targets: Vec<String>,
    /// The number of the folder that the files are in.
    pub folder: usize,
    /// Digest of the arguments, if a model must generate code by them that a person may be asked about.
    pub digest: Option<Hash>,
    /// Size of the arguments in memory, if a person may be asked about the call.
    pub memory_bytes: usize,
    pub id: String,
    pub since: Instant,
}

/// Handles by which a call is watched and cancelled while it runs.
#[derive(Clone, Default)]
pub struct CallControl {
    pub(crate) observed: Option<ObservedCall>,
    pub progress: CallProgress,
    /// Set when the client cancels the call.
    pub cancel: CancelSignal,
}

/// Conditions on the file under which the call may write.
#[derive(Clone, Default)]
pub struct Preconditions {
    /// The hash that was given beside the arguments.
    pub expected: Option<Hash>,
    /// The change that was approved: that is written, or nothing.
    pub approved: Option<Arc<ChangeDigest>>,
}

/// The thread that runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOn {
    /// One of the runtime's threads for files.
    BlockingThread,
    /// The thread that answers the call.
    ThisThread,
}

/// A call that waits to be answered.
pub struct PendingCall {
    pub request: CallRequest,
    pub control: CallControl,
    prepared: Result<Prepared, Failure>,
    work: Work,
    preconditions: Preconditions,
    /// Its permit of what arguments may take.
    held: Option<Permit>,
    run_on: RunOn,
    /// Time since it came in that does not count: a person or a model took it.
    uncounted: Duration,
}

/// The work of a call once its turn has come.
pub enum Work {
    /// Reads, and reads again if the answer found no memory. So its arguments are kept.
    Read(Value),
    /// Edits, once, when it is at the head of its file's queue.
    Edit {
        slot: Option<QueueSlot>,
        /// A copy of the call for the rehearsal, if a person may be asked about it.
        rehearsal: Option<Box<Prepared>>,
    },
}

impl Work {
    const NONE: Self = Self::Edit { slot: None, rehearsal: None };
}

/// The outcome of a call, and its permit of what answers may hold until they are written.
pub struct CallResult {
    pub outcome: Result<ToolOutput, Failure>,
    pub permit: Option<Permit>,
}

/// The limits of a running call: deadline, cancellation, preconditions.
pub(crate) struct CallLimits {
    pub since: Instant,
    pub call: Arc<Call>,
    pub folder: usize,
    pub control: CallControl,
    pub preconditions: Preconditions,
    pub run_on: RunOn,
}

impl PendingCall {
    pub fn new(
        request: CallRequest,
        control: CallControl,
        prepared: Result<Prepared, Failure>,
        work: Work,
    ) -> Self {
        Self {
            request,
            control,
            prepared,
            work,
            preconditions: Preconditions::default(),
            held: None,
            run_on: RunOn::BlockingThread,
            uncounted: Duration::ZERO,
        }
    }

    pub fn tool(&self) -> &'static ToolSpec {
        self.request.tool
    }

    pub fn is_refused(&self) -> bool {
        self.prepared.is_err()
    }

    /// True if a language model must generate the code before the call can run.
    pub fn needs_generation(&self) -> bool {
        self.prepared.as_ref().is_ok_and(Prepared::needs_generation)
    }

    pub fn prepared(&self) -> Result<&Prepared, &Failure> {
        self.prepared.as_ref()
    }

    /// The tool's own call, to be run uncounted or kept.
    pub fn take_prepared(&mut self) -> Option<Prepared> {
        std::mem::replace(&mut self.prepared, Err(internal_error())).ok()
    }

    /// The tool's own call, if a model must generate the code for it.
    pub fn take_ungenerated(&mut self) -> Option<Prepared> {
        if self.needs_generation() { self.take_prepared() } else { None }
    }

    /// Takes over what a model generated, twice: to be run, and to be rehearsed.
    pub fn with_generated(mut self, outcome: Result<[Prepared; 2], Failure>) -> Self {
        match outcome {
            Ok([prepared, again]) => {
                self.request.memory_bytes += prepared.generated_bytes;
                self.prepared = Ok(prepared);
                if let Work::Edit { rehearsal: Some(rehearsal), .. } = &mut self.work {
                    **rehearsal = again;
                }
            }
            Err(failure) => {
                self.prepared = Err(failure);
                self.work = Work::NONE;
            }
        }
        self
    }

    /// Takes over what a model generated when the same call was made before.
    pub fn with_kept(self, GeneratedCall { prepared, held }: GeneratedCall) -> Self {
        Self { prepared: Ok(prepared), held: Some(held), ..self }
    }

    /// The change that the call would make is to be found out first.
    pub fn take_rehearsal(&mut self) -> Option<(Prepared, Option<QueueSlot>)> {
        match &mut self.work {
            Work::Edit { slot, rehearsal } => Some((*rehearsal.take()?, slot.take())),
            Work::Read(_) => None,
        }
    }

    pub(super) fn slot(&mut self) -> Option<&mut QueueSlot> {
        match &mut self.work {
            Work::Edit { slot, .. } => slot.as_mut(),
            Work::Read(_) => None,
        }
    }

    pub(super) fn with_slot(mut self, new: Option<QueueSlot>) -> Self {
        if let Work::Edit { slot, .. } = &mut self.work {
            *slot = new;
        }
        self
    }

    pub fn expecting(mut self, expected: Option<Hash>) -> Self {
        self.preconditions.expected = expected;
        self
    }

    pub fn with_approved(mut self, approved: ChangeDigest) -> Self {
        self.preconditions.approved = Some(Arc::new(approved));
        self
    }

    /// Holds this permit, and no other, until the call is over.
    pub fn holding(self, held: Option<Permit>) -> Self {
        Self { held, ..self }
    }

    pub fn on_this_thread(self) -> Self {
        Self { run_on: RunOn::ThisThread, ..self }
    }

    /// Adds time that does not count.
    pub fn with_uncounted(self, uncounted: Duration) -> Self {
        Self { uncounted: self.uncounted + uncounted, ..self }
    }

    /// Refuses the call, unless it was refused before.
    pub fn refuse(self, failure: Failure) -> Self {
        Self { prepared: self.prepared.and(Err(failure)), work: Work::NONE, ..self }
    }

    /// Refuses the call, in the tool's own words.
    pub fn refuse_by(self, error: &StoreError, limits: &Limits) -> Self {
        match self.prepared.as_ref().map(|prepared| prepared.refused(error, limits)) {
            Ok(failure) => self.refuse(failure),
            Err(_) => self,
        }
    }

    /// `stop`: set when the server stops.
    pub(crate) fn limits(&self, timeout: Duration, stop: Cancel) -> CallLimits {
        let deadline = self.request.since + timeout + self.uncounted;
        let call = Call::new(deadline, self.control.cancel.flag(), stop);
        CallLimits {
            since: self.request.since,
            call: Arc::new(call),
            folder: self.request.folder,
            control: self.control.clone(),
            preconditions: self.preconditions.clone(),
            run_on: self.run_on,
        }
    }

    pub(super) fn into_parts(self) -> Parts {
        let Self { request, prepared, work, held, .. } = self;
        Parts { request, prepared, work, held }
    }
}

/// The parts of a call that `Calls::run` needs.
pub(super) struct Parts {
    pub request: CallRequest,
    pub prepared: Result<Prepared, Failure>,
    pub work: Work,
    pub held: Option<Permit>,
}

impl CallLimits {
    /// Until when to wait for a lock.
    pub fn lock_deadline(&self) -> Instant {
        /// The longest wait for a lock, whatever the timeout.
        const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);
        self.call.deadline.min(Instant::now() + LOCK_WAIT_MAX)
    }
}

pub fn internal_error() -> Failure {
    Failure::new(FailureKind::Internal, "Internal error")
}
