//! Calls for which a language model has to write something first.
//!
//! That may take minutes. Meanwhile the call has no place in its file's queue, no lock, and its time does not count; what
//! the file was then is looked at again, under the lock, before anything is written.

use std::sync::Arc;
use std::time::Instant;

use files::Call;
use tools::{Author, Context, Failure, Kind};

use crate::aside::Stage;
use crate::calls::{Arrived, Calls};

/// So many may be written at once. More wait, for no longer than a model may take.
pub const AT_ONCE: usize = 4;

/// The call with what was missing, or refused.
pub async fn settle(calls: &Arc<Calls>, mut arrived: Arrived) -> Arrived {
    let Some(unwritten) = arrived.take_unwritten() else { return arrived };
    let Some(model) = calls.options.model.clone() else {
        return arrived.written(Err(Failure::unwritten()));
    };
    let begun = Instant::now();
    // The model has its own patience; what it does twice at most takes no longer than that.
    let patience = 3 * model.timeout();
    let terms = arrived.terms(calls);
    let turn = Arc::clone(&calls.drafts).acquire_owned();
    let turn = match calls.wait_for(turn, begun + patience, &terms).await {
        Ok(turn) => turn,
        Err(error) => {
            let failure = unwritten.refused(&error, &calls.limits);
            return arrived.written(Err(failure));
        }
    };
    let doing = arrived.doing().clone();
    let call = Call::new(Instant::now() + patience, arrived.recall().flag(), calls.stop_flag());
    let (shared, folder) = (Arc::clone(calls), arrived.folder());
    let work = move || {
        let _turn = turn;
        let progress = |word: &str| doing.set(Stage::Writing(word.to_owned()));
        let author = Author { model: &model, progress: &progress };
        shared.with_context(folder, &call, |cx: &Context| unwritten.written(cx, &author))
    };
    let written = tokio::task::spawn_blocking(work).await;
    let internal = || Failure::new(Kind::Internal, "Internal error");
    let written = written.unwrap_or_else(|_panicked| Err(internal()));
    calls.come_again(arrived.after(begun.elapsed()).written(written))
}
