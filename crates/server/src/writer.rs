//! The thread that owns stdout: answers are written here, one after another.

use std::io;
use std::sync::{Arc, mpsc};

use tokio::sync::Notify;

use crate::calls::Calls;
use crate::lines::pipe;
use crate::reader::Room;
use crate::wire::Outgoing;

/// What the writer keeps of its buffer between answers.
const KEPT_BUFFER: usize = 128 * 1024;

/// The way to the writer. An answer's room is given up once it is written.
#[derive(Clone)]
pub struct Answers(mpsc::Sender<(Outgoing, Room)>);

impl Answers {
    pub fn send(&self, answer: Outgoing, room: Room) -> io::Result<()> {
        self.0.send((answer, room)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Starts the thread that owns stdout; notified when the last answer is out.
pub fn start_writer(calls: Arc<Calls>) -> io::Result<(Answers, Arc<Notify>)> {
    let (sender, answers) = mpsc::channel::<(Outgoing, Room)>();
    let done = Arc::new(Notify::new());
    let finished = Arc::clone(&done);
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        #[cfg(unix)]
        let mut out = pipe::Stdout;
        #[cfg(not(unix))]
        let mut out: pipe::Stdout = io::stdout();
        let mut buffer = Vec::new();
        for (answer, room) in answers {
            if let Err(error) = answer.write_line(&mut out, &mut buffer) {
                // Nobody reads any more: an edit that cannot be acknowledged is better not made.
                calls.log_end(&error);
                calls.stop();
                break;
            }
            drop(room);
            buffer.shrink_to(KEPT_BUFFER);
        }
        finished.notify_one();
    })?;
    Ok((Answers(sender), done))
}
