//! Generation: a language model writes the code that a call only describes.
//!
//! That may take minutes. Meanwhile the call has no slot in its file's queue and no lock, and the time does not count. The
//! file is compared with what it was then, under the lock, before anything is written.

use std::sync::Arc;
use std::time::Instant;

use files::Call;
use tools::{Context, Failure, Generator};

use crate::call::Calls;
use crate::call::pending_call::{PendingCall, internal_error};
use crate::call::progress::Phase;

/// Has the code of a call generated, if that is needed. The call is refused if it cannot be.
pub async fn generate(calls: &Arc<Calls>, mut pending: PendingCall) -> PendingCall {
    let Some(ungenerated) = pending.take_ungenerated() else { return pending };
    let Some(model) = calls.options.model.clone() else {
        return pending.with_generated(Err(Failure::no_model()));
    };
    let since = Instant::now();
    // A model is asked at most twice, each time for no longer than its timeout.
    let timeout = 3 * model.timeout();
    let limits = calls.limits_of(&pending);
    let permit = Arc::clone(&calls.generations).acquire_owned();
    let permit = match calls.wait_for(permit, since + timeout, &limits).await {
        Ok(permit) => permit,
        Err(error) => {
            let failure = ungenerated.refused(&error, &calls.limits);
            return pending.with_generated(Err(failure));
        }
    };
    let control = pending.control.clone();
    let call = Call::new(Instant::now() + timeout, control.cancel.flag(), calls.stop_flag());
    let (shared, folder) = (Arc::clone(calls), pending.request.folder);
    let work = move || {
        let _permit = permit;
        let report = |words: &str| control.progress.set(Phase::Generating(words.to_owned()));
        let generator = Generator { model: &model, progress: &report };
        shared.with_context(folder, &call, |cx: &Context| ungenerated.generate(cx, &generator))
    };
    let generated = tokio::task::spawn_blocking(work).await;
    let generated = generated.unwrap_or_else(|_panicked| Err(internal_error()));
    calls.rejoin_queue(pending.with_uncounted(since.elapsed()).with_generated(generated))
}
