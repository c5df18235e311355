//! Lines of stdin: whole, or told to be too long without being kept.

use std::io::{self, BufRead, Read};

/// What is kept of the head and of the tail of a line that is too long.
const KEPT: usize = 512;

pub enum Line {
    Whole(Vec<u8>),
    /// Too long to keep; what it began and ended with.
    TooLong {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

impl Line {
    /// Bytes held.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(line) => line.len(),
            Self::TooLong { head, tail } => head.len() + tail.len(),
        }
    }
}

/// The next line; the last one need not be ended. `None` at the end of input.
pub fn read_line(input: &mut impl BufRead, longest: u64) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    input.take(longest + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || line.len() as u64 <= longest {
        return Ok(Some(Line::Whole(line)));
    }
    // The rest goes by without being kept.
    line.truncate(KEPT);
    line.shrink_to_fit();
    let (head, mut tail) = (line, Vec::new());
    loop {
        let available = input.fill_buf()?;
        let end = memchr::memchr(b'\n', available);
        let taken = end.unwrap_or(available.len());
        tail.extend_from_slice(&available[taken.saturating_sub(KEPT)..taken]);
        tail.drain(..tail.len().saturating_sub(KEPT));
        let at_end = available.is_empty();
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() || at_end {
            return Ok(Some(Line::TooLong { head, tail }));
        }
    }
}

/// Stdin and stdout as they come: unbuffered, and patient where whoever opened them made them non-blocking.
#[cfg(unix)]
pub mod pipe {
    use std::io::{self, Read, Write};
    use std::os::fd::BorrowedFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;

    pub struct Stdin;
    pub struct Stdout;

    impl Read for Stdin {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let fd = rustix::stdio::stdin();
            patiently(fd, PollFlags::IN, || rustix::io::read(fd, &mut *buffer))
        }
    }

    impl Write for Stdout {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fd = rustix::stdio::stdout();
            patiently(fd, PollFlags::OUT, || rustix::io::write(fd, bytes))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn patiently(
        fd: BorrowedFd,
        until: PollFlags,
        mut attempt: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match attempt() {
                Err(Errno::AGAIN) => {
                    let _ = poll(&mut [PollFd::from_borrowed_fd(fd, until)], None);
                }
                Err(Errno::INTR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }
}

#[cfg(not(unix))]
pub mod pipe {
    pub use std::io::{Stdin, Stdout};
}
