//! Signals that end the process: SIGTERM, SIGINT, Ctrl-C.

use std::io;

/// Signals that are waited for. Once this is created none of them kills the process.
#[cfg(unix)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // With a handler a write past a file size limit fails. Without one it would kill the process.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        // The default signal of a broken lease (`files::unix::lease` sets another one), which would kill the process too.
        let _ = signal(SignalKind::io())?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal.
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

    /// Waits for a signal.
    pub async fn stop(&mut self) {
        self.0.recv().await;
    }
}
