//! The async runtime of the server and of `call`.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Builds the runtime: one thread for the protocol; file work is done on blocking threads, which end when idle.
pub fn build() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(1))
        // Stack sizes are address space until used; the C library then caches fewer stacks of ended threads.
        .thread_stack_size(8 << 20)
        .build()
}
