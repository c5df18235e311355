//! Lines of stdin. Of one that is too long only head and tail are kept.

use std::io;

/// Bytes that are kept of the head and of the tail of a line that is too long.
const KEPT: usize = 512;

pub enum Line {
    Whole(Vec<u8>),
    /// Too long to keep.
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

/// Bytes that a pipe mostly holds.
const PIECE: usize = 64 * 1024;

/// Splits input into lines.
#[derive(Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// How many of these bytes were returned as lines.
    given: usize,
}

impl Lines {
    /// True if nothing was read beyond the lines that were returned.
    pub fn is_empty(&self) -> bool {
        self.given == self.bytes.len()
    }

    /// The next line, with its end; the last one may have none. `None` at the end of input. `read` appends input, and waits if
    /// there is none.
    pub fn next(
        &mut self,
        longest: usize,
        mut read: impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
    ) -> io::Result<Option<Line>> {
        let mut seen = 0;
        loop {
            let line = &self.bytes[self.given..];
            let end = memchr::memchr(b'\n', &line[seen..]).map(|end| seen + end);
            seen = line.len();
            if end.unwrap_or(seen) > longest {
                return self.skip(read).map(Some);
            }
            if let Some(end) = end {
                return Ok(Some(Line::Whole(self.give(end + 1))));
            }
            if self.read(&mut read)? == 0 {
                return Ok((seen > 0).then(|| Line::Whole(self.give(seen))));
            }
        }
    }

    /// Skips a line that is too long.
    fn skip(
        &mut self,
        mut read: impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
    ) -> io::Result<Line> {
        let head = self.bytes[self.given..].iter().take(KEPT).copied().collect();
        loop {
            let line = &self.bytes[self.given..];
            let (length, end) = (line.len(), memchr::memchr(b'\n', line));
            let is_over = end.is_some() || {
                self.given += length.saturating_sub(KEPT);
                self.read(&mut read)? == 0
            };
            if is_over {
                let tail = self.give(end.map_or(length.min(KEPT), |end| end + 1));
                let tail = tail.strip_suffix(b"\n").unwrap_or(&tail);
                let tail = tail[tail.len().saturating_sub(KEPT)..].to_vec();
                return Ok(Line::TooLong { head, tail });
            }
        }
    }

    fn read(
        &mut self,
        read: &mut impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.bytes.drain(..self.given);
        self.given = 0;
        if self.bytes.is_empty() {
            self.bytes.shrink_to(PIECE);
        }
        self.bytes.reserve(PIECE);
        read(&mut self.bytes)
    }

    fn give(&mut self, length: usize) -> Vec<u8> {
        let end = self.given + length;
        // A long line is mostly alone, and need not be copied.
        if length >= PIECE / 2 && self.given == 0 && end == self.bytes.len() {
            return std::mem::take(&mut self.bytes);
        }
        let line = self.bytes[self.given..end].to_vec();
        self.given = end;
        line
    }
}

/// Unbuffered stdin and stdout. Waits if they are non-blocking.
#[cfg(unix)]
pub mod pipe {
    use std::io::{self, Write};
    use std::os::fd::BorrowedFd;

    use rustix::buffer::spare_capacity;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;

    pub struct Stdout;

    /// Appends from stdin, up to the capacity.
    pub fn read(bytes: &mut Vec<u8>) -> io::Result<usize> {
        let fd = rustix::stdio::stdin();
        patiently(fd, PollFlags::IN, || rustix::io::read(fd, spare_capacity(bytes)))
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
    use std::io::{self, Read as _};

    pub use std::io::Stdout;

    /// Appends from stdin, up to the capacity.
    pub fn read(bytes: &mut Vec<u8>) -> io::Result<usize> {
        let before = bytes.len();
        bytes.resize(bytes.capacity(), 0);
        let read = io::stdin().read(&mut bytes[before..]);
        bytes.truncate(before + read.as_ref().map_or(0, |read| *read));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: usize = 2000;

    /// Reads all lines of what comes in pieces.
    fn read(mut pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut next = || {
            let read = |bytes: &mut Vec<u8>| {
                let piece = pieces.next().unwrap_or_default();
                bytes.extend_from_slice(&piece);
                Ok(piece.len())
            };
            lines.next(LONGEST, read).expect("nothing fails here")
        };
        let all = std::iter::from_fn(&mut next).collect();
        assert!(next().is_none() && lines.is_empty());
        all
    }

    fn check(text: &str, piece: usize) {
        let lines = read(text.as_bytes().chunks(piece).map(<[u8]>::to_vec));
        assert_eq!(lines.len(), text.split_inclusive('\n').count());
        for (line, expected) in lines.iter().zip(text.split_inclusive('\n')) {
            let bare = expected.trim_end_matches('\n');
            match line {
                Line::Whole(line) => {
                    assert_eq!(line, expected.as_bytes());
                    assert!(bare.len() <= LONGEST);
                }
                Line::TooLong { head, tail } => {
                    assert!(bare.len() > LONGEST);
                    assert_eq!((head.len(), tail.len()), (KEPT, KEPT));
                    assert!(bare.as_bytes().starts_with(head) && bare.as_bytes().ends_with(tail));
                }
            }
        }
    }

    #[test]
    fn a_line_may_have_so_many_bytes_and_no_more() {
        for length in [LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST] {
            let line = "0123456789".repeat(LONGEST)[..length].to_owned();
            for piece in [1, 7, LONGEST, 20 * LONGEST] {
                check(&line, piece);
                check(&format!("a\n{line}\n{line}\n\nb\n{line}"), piece);
            }
        }
    }

    proptest! {
        #[test]
        fn lines_are_found_whatever_the_pieces(
            text in "([a-z]{0,9}\n|[0-9]{500}|[0-9]{1900}){0,9}",
            piece in 1_usize..3000,
        ) {
            check(&text, piece);
        }
    }
}
