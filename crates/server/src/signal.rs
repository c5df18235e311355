//! What the operating system tells the process to do.

/// A request to stop.
#[cfg(unix)]
pub async fn stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    // Past a file size limit a write shall fail, not kill us: a handler, though it does nothing, sees to that.
    let _size_limit = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

#[cfg(windows)]
pub async fn stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
