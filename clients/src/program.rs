//! Programs under watch: they answer in time or are ended, and what they complained of is shown when something is wrong.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::{Outcome, Trouble};

/// How long a client may take, all in all. Far more than any needs: it is there for one that hangs.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// How long the last words of a program that was ended are waited for: what it started may keep its pipes open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The command for a client, which finds a server on this machine whatever proxy there is to the rest of the world.
pub fn client(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command
}

/// Ended when it is dropped.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<String>,
    complained: Receiver<String>,
    until: Instant,
}

/// What is left of a program that has ended by itself.
pub struct Ended {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub said: String,
    pub complained: String,
}

impl Ended {
    /// Itself, if it ended with that exit code.
    pub fn expect(self, code: i32) -> Outcome<Self> {
        if self.code == Some(code) {
            return Ok(self);
        }
        let Self { code: found, said, complained } = self;
        let why = format!("it ended with {found:?}, not {code}\n{said}{complained}");
        Err(Trouble::Wrong(why.trim_end().into()))
    }
}

impl Program {
    pub fn start(command: &mut Command, until: Instant) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|e| Trouble::NotRun(format!("{command:?}: {e}")))?;
        let stdin = child.stdin.take();
        let said = lines(child.stdout.take());
        let complained = lines(child.stderr.take());
        Ok(Self { child, stdin, said, complained, until })
    }

    pub fn say(&mut self, line: &str) -> Outcome<()> {
        let written = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.wrong("it takes no more input")),
        }
    }

    /// The next line it says.
    pub fn hear(&mut self) -> Outcome<String> {
        match self.said.recv_timeout(self.left()) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(self.wrong("it hangs, and was ended")),
            Err(RecvTimeoutError::Disconnected) => Err(self.wrong("it ended without an answer")),
        }
    }

    /// Has it end, by the end of its input.
    pub fn finish(mut self) -> Outcome<Ended> {
        self.stdin = None;
        let mut said = String::new();
        loop {
            match self.said.recv_timeout(self.left()) {
                Ok(line) => said = said + &line + "\n",
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.wrong("it hangs, and was ended")),
            }
        }
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if !self.left().is_zero() => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return Err(self.wrong("it does not end, and was ended")),
            }
        };
        Ok(Ended { code: status.code(), said, complained: self.complaints(self.until) })
    }

    /// Ends it, and says what is wrong with it.
    pub fn wrong(&mut self, what: &str) -> Trouble {
        self.end();
        let complaints = self.complaints(Instant::now() + LAST_WORDS);
        let complaints = complaints.trim();
        let and = if complaints.is_empty() { "" } else { "\n" };
        Trouble::Wrong(format!("{what}{and}{complaints}"))
    }

    fn complaints(&self, until: Instant) -> String {
        let next = || self.complained.recv_timeout(until.saturating_duration_since(Instant::now()));
        let mut complaints = String::new();
        while let Ok(line) = next() {
            complaints = complaints + &line + "\n";
        }
        complaints
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// The lines of a pipe as they come.
fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}
