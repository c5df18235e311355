//! Calls over HTTP, from so many connections at once, each with one call under way.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::figures::Figures;
use crate::process::Process;

/// A server with a port.
pub struct OnHttp {
    pub process: Process,
    pub port: u16,
}

impl OnHttp {
    /// Starts it on a free port, which `with_port` puts into its command, and waits until it takes connections.
    pub fn start(with_port: impl Fn(u16) -> Command) -> Result<Self> {
        // A free port may be taken before the server has it: then another one is tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let mut command = with_port(port);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = Process::start(&mut command)?;
            while process.is_running()? {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Ok(Self { process, port });
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(Error::other("it does not stay, whatever its port"))
    }
}

/// A request that is sent again and again. Its length is the last thing in its head: the floor relies on it.
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A client that keeps so many connections busy.
pub struct Load {
    connections: Vec<Connection>,
    ready: OwnedFd,
}

impl Load {
    pub fn connect(port: u16, count: usize) -> Result<Self> {
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        let connect = |number: usize| {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll::add(&ready, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
            Ok(Connection {
                stream,
                calls: 0,
                since: Instant::now(),
                answer: Vec::new(),
                end: None,
            })
        };
        let connections = (0..count).map(connect).collect::<Result<_>>()?;
        Ok(Self { connections, ready })
    }

    /// Sends `request` by every connection, and again when it is answered, for so long; then how long it truly was.
    pub fn run(&mut self, request: &[u8], duration: Duration) -> Result<(Figures, Duration)> {
        let begin = Instant::now();
        let next = |_, call| (call == 0 || begin.elapsed() < duration).then_some(request);
        let figures = self.run_each(next)?;
        Ok((figures, begin.elapsed()))
    }

    /// Each connection sends what is next for it, by its number and the number of the call, until there is nothing.
    pub fn run_each<Request: AsRef<[u8]>>(
        &mut self,
        next: impl Fn(usize, usize) -> Option<Request>,
    ) -> Result<Figures> {
        let mut figures = Figures::default();
        let mut under_way = 0;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            connection.calls = 0;
            under_way += usize::from(connection.send(next(number, 0))?);
        }
        let mut events = Vec::with_capacity(256);
        while under_way > 0 {
            events.clear();
            epoll::wait(&self.ready, spare_capacity(&mut events), None)?;
            for event in &events {
                let number = usize::try_from(event.data.u64()).map_err(Error::other)?;
                let connection = &mut self.connections[number];
                if connection.receive()? {
                    figures.add(connection.since.elapsed());
                    let goes_on = connection.send(next(number, connection.calls))?;
                    under_way -= usize::from(!goes_on);
                }
            }
        }
        Ok(figures)
    }
}

struct Connection {
    stream: TcpStream,
    calls: usize,
    since: Instant,
    answer: Vec<u8>,
    /// Where the answer ends, once its head has come.
    end: Option<End>,
}

impl Connection {
    /// Whether there was something to send.
    fn send(&mut self, request: Option<impl AsRef<[u8]>>) -> Result<bool> {
        let Some(request) = request else { return Ok(false) };
        self.answer.clear();
        self.end = None;
        self.calls += 1;
        self.since = Instant::now();
        // A small request fits into the socket.
        self.stream.write_all(request.as_ref()).map(|()| true)
    }

    /// Whether the answer is whole now.
    fn receive(&mut self) -> Result<bool> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Error::other("the server hung up")),
                Ok(count) => self.answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.end.is_none() {
                self.end = End::find(&self.answer)?;
            }
            let is_whole = match self.end {
                None => false,
                Some(End::At(length)) => self.answer.len() >= length,
                Some(End::Chunk) => self.answer.ends_with(b"0\r\n\r\n"),
            };
            if is_whole {
                return Ok(true);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// After so many bytes, head and all.
    At(usize),
    /// With an empty chunk.
    Chunk,
}

impl End {
    /// As the head of an answer says; `None` while that has not come. Any but a success is an error.
    fn find(answer: &[u8]) -> Result<Option<Self>> {
        let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else { return Ok(None) };
        let head = &answer[..end];
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(Error::other(String::from_utf8_lossy(answer)));
        }
        let value = |wanted: &[u8]| {
            head.split(|byte| *byte == b'\n').find_map(|line| {
                let (name, value) = line.split_at_checked(wanted.len())?;
                name.eq_ignore_ascii_case(wanted).then(|| str::from_utf8(value).ok())?
            })
        };
        match value(b"content-length:").map(|length| length.trim().parse::<usize>()) {
            Some(Ok(length)) => Ok(Some(Self::At(end + 4 + length))),
            None if value(b"transfer-encoding:").is_some() => Ok(Some(Self::Chunk)),
            _ => Err(Error::other("an answer without an end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_tells_where_an_answer_ends() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nDate: now\r\n\r\n";
        assert_eq!(End::find(head).expect("a success"), Some(End::At(head.len() + 5)));
        assert_eq!(End::find(&head[..30]).expect("nothing yet"), None);
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
        assert_eq!(End::find(chunked).expect("a success"), Some(End::Chunk));
    }

    #[test]
    fn an_answer_that_is_no_success_is_an_error_not_a_wait() {
        assert!(End::find(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(End::find(b"HTTP/1.1 200 OK\r\nDate: now\r\n\r\n").is_err());
    }
}
