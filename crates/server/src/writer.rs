//! Stdout: answers are written one after another, by a thread of their own or by whoever has one and finds nobody writing.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use tokio::sync::Notify;

use crate::calls::Calls;
use crate::lines::pipe;
use crate::mcp::lock;
use crate::reader::Room;
use crate::wire::Outgoing;

/// What is kept of the buffer between answers.
const KEPT_BUFFER: usize = 128 * 1024;

/// The way out. An answer's room is given up once it is written.
pub struct Answers {
    queue: mpsc::Sender<(Outgoing, Room)>,
    out: Arc<Out>,
}

struct Out {
    calls: Arc<Calls>,
    /// The buffer of whoever writes; `None` once nobody reads any more.
    buffer: Mutex<Option<Vec<u8>>>,
    /// Answers in the queue or on their way from it.
    queued: AtomicUsize,
}

impl Answers {
    /// Leaves an answer to the thread that writes.
    pub fn send(&self, answer: Outgoing, room: Room) -> io::Result<()> {
        self.out.queued.fetch_add(1, Ordering::Relaxed);
        self.queue.send((answer, room)).map_err(|_| io::ErrorKind::BrokenPipe.into())
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

/// Starts the thread that writes; notified when the last answer is out.
pub fn start_writer(calls: Arc<Calls>) -> io::Result<(Answers, Arc<Notify>)> {
    let (queue, answers) = mpsc::channel::<(Outgoing, Room)>();
    let out =
        Arc::new(Out { calls, buffer: Mutex::new(Some(Vec::new())), queued: AtomicUsize::new(0) });
    let done = Arc::new(Notify::new());
    let (writing, finished) = (Arc::clone(&out), Arc::clone(&done));
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        for (answer, room) in answers {
            let written = writing.write(answer, &mut lock(&writing.buffer));
            writing.queued.fetch_sub(1, Ordering::Relaxed);
            if written.is_err() {
                break;
            }
            drop(room);
        }
        finished.notify_one();
    })?;
    Ok((Answers { queue, out }, done))
}
