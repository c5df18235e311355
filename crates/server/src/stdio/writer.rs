//! Stdout: responses are written one after another, by a thread of their own, or by any thread while no other one writes.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use tokio::sync::Notify;

use crate::call::Calls;
use crate::lock::lock;
use crate::outgoing::Outgoing;

use super::in_flight::RequestPermit;
use super::lines::pipe;

/// Bytes of the buffer that are kept between responses.
const KEPT_BUFFER: usize = 128 * 1024;

type Queue = mpsc::Sender<(Outgoing, RequestPermit)>;

/// Writes responses. The permit of one is dropped once it is written.
pub struct ResponseWriter {
    /// To the thread that writes, once there was something for it. `None` if it cannot be started.
    queue: OnceLock<Option<Queue>>,
    out: Arc<Out>,
}

struct Out {
    calls: Arc<Calls>,
    /// The buffer of the thread that writes. `None` once the client does not read any more.
    buffer: Mutex<Option<Vec<u8>>>,
    /// Responses in the queue, or taken from it and not written yet.
    queued: AtomicUsize,
    /// Notified when the last response is written.
    done: Arc<Notify>,
}

impl ResponseWriter {
    pub fn new(calls: Arc<Calls>, done: Arc<Notify>) -> Self {
        let (buffer, queued) = (Mutex::new(Some(Vec::new())), AtomicUsize::new(0));
        Self { queue: OnceLock::new(), out: Arc::new(Out { calls, buffer, queued, done }) }
    }

    /// Leaves a response to the thread that writes.
    pub fn send(&self, answer: Outgoing, permit: RequestPermit) -> io::Result<()> {
        let Some(queue) = self.queue.get_or_init(|| start_writer(&self.out).ok()) else {
            return self.out.write(answer, &mut lock(&self.out.buffer));
        };
        self.out.queued.fetch_add(1, Ordering::Relaxed);
        queue.send((answer, permit)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Writes a response on this thread, if no other one has something to write.
    pub fn write(&self, answer: Outgoing, permit: RequestPermit) -> io::Result<()> {
        if self.out.queued.load(Ordering::Relaxed) == 0
            && let Ok(mut buffer) = self.out.buffer.try_lock()
        {
            return self.out.write(answer, &mut buffer);
        }
        self.send(answer, permit)
    }
}

impl Drop for ResponseWriter {
    fn drop(&mut self) {
        // Otherwise the thread notifies.
        if self.queue.get().is_none_or(Option::is_none) {
            self.out.done.notify_one();
        }
    }
}

impl Out {
    fn write(&self, answer: Outgoing, buffer: &mut Option<Vec<u8>>) -> io::Result<()> {
        let Some(scratch) = buffer else { return Err(io::ErrorKind::BrokenPipe.into()) };
        #[cfg(unix)]
        let mut out = pipe::Stdout;
        #[cfg(not(unix))]
        let mut out: pipe::Stdout = io::stdout();
        let written = answer.write_line(&mut out, scratch);
        scratch.shrink_to(KEPT_BUFFER);
        if let Err(error) = &written {
            // The client does not read any more: an edit that cannot be acknowledged is better not made.
            *buffer = None;
            self.calls.log_end(error);
            self.calls.stop();
        }
        written
    }
}

fn start_writer(out: &Arc<Out>) -> io::Result<Queue> {
    let (queue, writer) = mpsc::channel::<(Outgoing, RequestPermit)>();
    let out = Arc::clone(out);
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        for (answer, permit) in writer {
            let written = out.write(answer, &mut lock(&out.buffer));
            out.queued.fetch_sub(1, Ordering::Relaxed);
            if written.is_err() {
                break;
            }
            drop(permit);
        }
        out.done.notify_one();
    })?;
    Ok(queue)
}
