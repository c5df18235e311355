//! Stdout: answers are written one after another, by a thread of their own or by whoever has one and finds nobody writing.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use tokio::sync::Notify;

use crate::calls::Calls;
use crate::lines::pipe;
use crate::mcp::lock;
use crate::reader::Room;
use crate::wire::Outgoing;

/// What is kept of the buffer between answers.
const KEPT_BUFFER: usize = 128 * 1024;

type Queue = mpsc::Sender<(Outgoing, Room)>;

/// The way out. An answer's room is given up once it is written.
pub struct Answers {
    /// To the thread that writes, once there was something for it; `None` if there can be none.
    queue: OnceLock<Option<Queue>>,
    out: Arc<Out>,
}

struct Out {
    calls: Arc<Calls>,
    /// The buffer of whoever writes; `None` once nobody reads any more.
    buffer: Mutex<Option<Vec<u8>>>,
    /// Answers in the queue or on their way from it.
    queued: AtomicUsize,
    /// Notified when the last answer is out.
    done: Arc<Notify>,
}

impl Answers {
    pub fn new(calls: Arc<Calls>, done: Arc<Notify>) -> Self {
        let (buffer, queued) = (Mutex::new(Some(Vec::new())), AtomicUsize::new(0));
        Self { queue: OnceLock::new(), out: Arc::new(Out { calls, buffer, queued, done }) }
    }

    /// Leaves an answer to the thread that writes.
    pub fn send(&self, answer: Outgoing, room: Room) -> io::Result<()> {
        let Some(queue) = self.queue.get_or_init(|| start_writer(&self.out).ok()) else {
            return self.out.write(answer, &mut lock(&self.out.buffer));
        };
        self.out.queued.fetch_add(1, Ordering::Relaxed);
        queue.send((answer, room)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Writes an answer here and now, if nobody else has something to write.
    pub fn write(&self, answer: Outgoing, room: Room) -> io::Result<()> {
        if self.out.queued.load(Ordering::Relaxed) == 0
            && let Ok(mut buffer) = self.out.buffer.try_lock()
        {
            return self.out.write(answer, &mut buffer);
        }
        self.send(answer, room)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        // Otherwise the thread says so.
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
            // Nobody reads any more: an edit that cannot be acknowledged is better not made.
            *buffer = None;
            self.calls.log_end(error);
            self.calls.stop();
        }
        written
    }
}

fn start_writer(out: &Arc<Out>) -> io::Result<Queue> {
    let (queue, answers) = mpsc::channel::<(Outgoing, Room)>();
    let out = Arc::clone(out);
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        for (answer, room) in answers {
            let written = out.write(answer, &mut lock(&out.buffer));
            out.queued.fetch_sub(1, Ordering::Relaxed);
            if written.is_err() {
                break;
            }
            drop(room);
        }
        out.done.notify_one();
    })?;
    Ok(queue)
}
