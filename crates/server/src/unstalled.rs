//! A connection that ends when nobody takes what is written to it: otherwise its answer would be held for ever.
//!
//! A client that is slow is waited for as long as nobody else is. When somebody waits for the room that its answer
//! takes, it has to take the answer at a certain pace.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::mcp::lock;
use crate::room::{LOOK, Pace, Room, Share};

/// Whoever takes the answers of one connection: known to the connection and to the answer that is on its way.
#[derive(Clone, Default)]
pub struct Taker(Arc<Mutex<Option<Taking>>>);

/// An answer that holds room, and how fast it is taken.
struct Taking {
    room: Arc<Room>,
    pace: Pace,
}

/// A share that is kept until the answer that has it is taken.
pub struct Kept {
    taker: Taker,
    #[expect(dead_code, reason = "held, not read")]
    share: Share,
}

impl Taker {
    pub fn keep(&self, share: Share) -> Kept {
        let room = Arc::clone(share.room());
        *lock(&self.0) = Some(Taking { room, pace: Pace::default() });
        Kept { taker: self.clone(), share }
    }

    fn took(&self, bytes: usize) {
        if let Some(taking) = &mut *lock(&self.0) {
            taking.pace.move_on(bytes as u64, Instant::now());
        }
    }

    /// Takes nothing at the moment. Whether somebody else must not wait for it any longer.
    fn is_too_slow(&self) -> bool {
        lock(&self.0).as_mut().is_some_and(|taking| {
            let now = Instant::now();
            taking.pace.wait(now);
            taking.pace.is_too_slow(now) && taking.room.is_waited_for()
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        *lock(&self.taker.0) = None;
    }
}

pub struct Unstalled {
    stream: TcpStream,
    taker: Taker,
    /// How long a write may wait, whoever else does.
    patience: Duration,
    /// Since when a write waits.
    since: Option<Instant>,
    /// Runs while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Unstalled {
    pub fn new(stream: TcpStream, taker: Taker, patience: Duration) -> Self {
        Self { stream, taker, patience, since: None, timer: None }
    }

    fn watch(
        &mut self,
        cx: &mut Context,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = outcome {
            (self.since, self.timer) = (None, None);
            self.taker.took(*outcome.as_ref().unwrap_or(&0));
            return Poll::Ready(outcome);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        while since.elapsed() < self.patience && !self.taker.is_too_slow() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(LOOK)));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        // What the system still holds for it goes too.
        let _ = self.stream.set_zero_linger();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Unstalled {
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

    /// What takes longer than this hangs.
    const HANG: Duration = Duration::from_mins(1);

    /// Both ends of a connection, of which the first is ours.
    async fn connect(taker: &Taker, patience: Duration) -> (Unstalled, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.expect("a connection");
        (Unstalled::new(stream, taker.clone(), patience), client.expect("a connection"))
    }

    /// Writes as long as it can.
    async fn write_on(mut stream: Unstalled) -> io::ErrorKind {
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
        let (stream, client) = connect(&Taker::default(), Duration::from_millis(300)).await;
        assert_eq!(write_on(stream).await, io::ErrorKind::TimedOut);
        // What has not arrived yet never will, and that is no end of an answer.
        let client = client.into_std().expect("a socket");
        client.set_nonblocking(false).expect("a socket");
        let error = io::copy(&mut &client, &mut io::sink()).expect_err("it breaks off");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn it_ends_sooner_when_somebody_waits_for_its_room() {
        let (room, taker) = (Room::new(1), Taker::default());
        let (stream, _client) = connect(&taker, 2 * HANG).await;
        let kept = taker.keep(room.take_now(1).expect("there is room"));
        let ended = async {
            let error = write_on(stream).await;
            drop(kept);
            error
        };
        let (error, share) = tokio::join!(ended, room.take(1, Instant::now()));
        assert_eq!((error, share.bytes()), (io::ErrorKind::TimedOut, 1));
    }

    /// Its share is gone with the answer, and what comes after it is no part of it.
    #[tokio::test]
    async fn only_an_answer_that_holds_room_is_hurried() {
        let (room, taker) = (Room::new(1), Taker::default());
        drop(taker.keep(room.take_now(1).expect("there is room")));
        let patience = Duration::from_secs(2);
        let (stream, _client) = connect(&taker, patience).await;
        let inside = room.take_now(1).expect("it was given back");
        let since = Instant::now();
        let ended = async {
            let error = write_on(stream).await;
            drop(inside);
            error
        };
        let (error, _share) = tokio::join!(ended, room.take(1, Instant::now()));
        assert_eq!(error, io::ErrorKind::TimedOut);
        assert!(since.elapsed() >= patience, "not before its time");
    }
}
