//! Cancellation of a call, seen by the thread that runs it and by a task that waits.

use files::Cancel;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Default)]
pub struct CancelSignal {
    flag: Cancel,
    token: CancellationToken,
}

impl CancelSignal {
    pub fn cancel(&self) {
        self.flag.set();
        self.token.cancel();
    }

    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// The flag that a thread polls while it runs the call.
    pub fn flag(&self) -> Cancel {
        self.flag.clone()
    }
}
