//! A connection that is closed when its client stops reading: otherwise its answer would stay in memory for ever.
//!
//! A slow client may take its time while nobody waits for the memory of its answer. When somebody does, it has to read at a
//! minimum rate.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::lock::lock;
use crate::memory_budget::{MemoryBudget, Permit, TransferRate, WAITER_CHECK};

/// How fast a client reads an answer. Shared by the connection and the answer.
#[derive(Clone, Default)]
pub struct TransferMonitor(Arc<Mutex<Option<Transfer>>>);

/// An answer that holds memory, and how fast it is read.
struct Transfer {
    budget: Arc<MemoryBudget>,
    rate: TransferRate,
}

/// A permit that is held until its answer is read.
pub struct MonitoredPermit {
    monitor: TransferMonitor,
    #[expect(dead_code, reason = "held, not read")]
    permit: Permit,
}

impl TransferMonitor {
    pub fn hold(&self, permit: Permit) -> MonitoredPermit {
        let budget = Arc::clone(permit.budget());
        *lock(&self.0) = Some(Transfer { budget, rate: TransferRate::default() });
        MonitoredPermit { monitor: self.clone(), permit }
    }

    fn read(&self, bytes: usize) {
        if let Some(transfer) = &mut *lock(&self.0) {
            transfer.rate.add(bytes as u64, Instant::now());
        }
    }

    /// Called while the client reads nothing. True if others must not wait for it any longer.
    fn is_too_slow(&self) -> bool {
        lock(&self.0).as_mut().is_some_and(|transfer| {
            let now = Instant::now();
            transfer.rate.wait(now);
            transfer.rate.is_too_slow(now) && transfer.budget.has_waiters()
        })
    }
}

impl Drop for MonitoredPermit {
    fn drop(&mut self) {
        *lock(&self.monitor.0) = None;
    }
}

pub struct StallTimeout {
    stream: TcpStream,
    monitor: TransferMonitor,
    /// How long a write may wait, whether others wait or not.
    timeout: Duration,
    /// When the write began to wait.
    since: Option<Instant>,
    /// Runs while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl StallTimeout {
    pub fn new(stream: TcpStream, monitor: TransferMonitor, timeout: Duration) -> Self {
        Self { stream, monitor, timeout, since: None, timer: None }
    }

    fn watch(
        &mut self,
        cx: &mut Context,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = outcome {
            (self.since, self.timer) = (None, None);
            self.monitor.read(*outcome.as_ref().unwrap_or(&0));
            return Poll::Ready(outcome);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        while since.elapsed() < self.timeout && !self.monitor.is_too_slow() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(WAITER_CHECK)));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        // The system drops what it still holds for the client.
        let _ = self.stream.set_zero_linger();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for StallTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        pieces: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// A socket has nothing to flush.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A test that waits longer than this has hung.
    const HANG: Duration = Duration::from_mins(1);

    /// Both ends of a connection, of which the first is ours.
    async fn connect(monitor: &TransferMonitor, patience: Duration) -> (StallTimeout, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.expect("a connection");
        (StallTimeout::new(stream, monitor.clone(), patience), client.expect("a connection"))
    }

    /// Writes as long as it can.
    async fn write_on(mut stream: StallTimeout) -> io::ErrorKind {
        let bytes = vec![0; 65536];
        let writes = async {
            loop {
                let mut stream = Pin::new(&mut stream);
                let write = std::future::poll_fn(|cx| stream.as_mut().poll_write(cx, &bytes));
                if let Err(error) = write.await {
                    return error.kind();
                }
            }
        };
        tokio::time::timeout(HANG, writes).await.expect("it ends")
    }

    #[tokio::test]
    async fn a_connection_ends_when_nothing_is_taken() {
        let (stream, client) =
            connect(&TransferMonitor::default(), Duration::from_millis(300)).await;
        assert_eq!(write_on(stream).await, io::ErrorKind::TimedOut);
        // What has not arrived yet never will, and that is no end of an answer.
        let client = client.into_std().expect("a socket");
        client.set_nonblocking(false).expect("a socket");
        let error = io::copy(&mut &client, &mut io::sink()).expect_err("it breaks off");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn it_ends_sooner_when_somebody_waits_for_its_memory() {
        let (budget, monitor) = (MemoryBudget::new(1), TransferMonitor::default());
        let (stream, _client) = connect(&monitor, 2 * HANG).await;
        let kept = monitor.hold(budget.try_acquire(1).expect("there is budget"));
        let ended = async {
            let error = write_on(stream).await;
            drop(kept);
            error
        };
        let (error, permit) = tokio::join!(ended, budget.acquire(1, Instant::now()));
        assert_eq!((error, permit.bytes()), (io::ErrorKind::TimedOut, 1));
    }

    /// The permit goes with the answer. What is written after it has none.
    #[tokio::test]
    async fn only_an_answer_that_holds_memory_is_hurried() {
        let (budget, monitor) = (MemoryBudget::new(1), TransferMonitor::default());
        drop(monitor.hold(budget.try_acquire(1).expect("there is budget")));
        let patience = Duration::from_secs(2);
        let (stream, _client) = connect(&monitor, patience).await;
        let inside = budget.try_acquire(1).expect("it was given back");
        let since = Instant::now();
        let ended = async {
            let error = write_on(stream).await;
            drop(inside);
            error
        };
        let (error, _permit) = tokio::join!(ended, budget.acquire(1, Instant::now()));
        assert_eq!(error, io::ErrorKind::TimedOut);
        assert!(since.elapsed() >= patience, "not before its time");
    }
}
