//! What the operating system tells the process to do.

use std::io;

/// Signals that are waited for. From its making on, none of them kills the process.
#[cfg(unix)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // Past a file size limit a write shall fail, not kill us: a handler, though it does nothing, sees to that.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Comes back when the process shall stop.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(windows)]
pub struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    pub fn catch() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// Comes back when the process shall stop.
    pub async fn stop(&mut self) {
        self.0.recv().await;
    }
}
