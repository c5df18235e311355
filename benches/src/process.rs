//! A server's process: what it takes of the machine, and one that is spoken to by lines.

use std::fs;
use std::io::{Error, Read as _, Result, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A process that does not outlive its use.
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Result<Self> {
        command.spawn().map(Self)
    }

    pub fn is_running(&mut self) -> Result<bool> {
        self.0.try_wait().map(|status| status.is_none())
    }

    /// A figure of `/proc/<pid>/status`, in bytes.
    pub fn memory(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| Error::other("no such figure"))
    }

    /// From now on the peak is that of what comes.
    pub fn forget_peak(&self) -> Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.0.id()), "5")
    }

    /// What it has had of the processor until now, all of its threads, those that are gone too.
    pub fn cpu(&self) -> Result<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // How Linux makes the clock of another process of its number.
        let clock = (!libc::clockid_t::try_from(self.0.id()).map_err(Error::other)? << 3) | 2;
        #[expect(unsafe_code, reason = "no crate knows the clocks of other processes")]
        // SAFETY: the kernel writes one `timespec`, and this is one.
        let outcome = unsafe { libc::clock_gettime(clock, &raw mut time) };
        if outcome != 0 {
            return Err(Error::last_os_error());
        }
        let nanoseconds = u32::try_from(time.tv_nsec).map_err(Error::other)?;
        Ok(Duration::new(u64::try_from(time.tv_sec).map_err(Error::other)?, nanoseconds))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a server is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    OfInput,
    BySignal,
}

/// A server on stdio.
pub struct OnStdio {
    pub process: Process,
    input: ChildStdin,
    output: ChildStdout,
    /// The last answer, and room for a larger one.
    answer: Vec<u8>,
    length: usize,
    /// How long it took until its first answer.
    pub started: Duration,
}

impl OnStdio {
    pub fn start(command: &mut Command) -> Result<Self> {
        let client = json!({ "name": "benches", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let mut server = Self::greet(command, &params)?;
        server.tell(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(server)
    }

    /// One that is not greeted.
    pub fn open(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::start(command)?;
        let (Some(input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(Error::other("no pipes"));
        };
        let (answer, length, started) = (vec![0; 256 * 1024], 0, Duration::ZERO);
        Ok(Self { process, input, output, answer, length, started })
    }

    pub fn greet(command: &mut Command, params: &Value) -> Result<Self> {
        let since = Instant::now();
        let mut server = Self::open(command)?;
        server.call(&message(1, "initialize", params))?;
        server.started = since.elapsed();
        server.check()?;
        Ok(server)
    }

    pub fn tell(&mut self, line: &[u8]) -> Result<()> {
        self.input.write_all(line)
    }

    /// Sends a line and waits for one. What it says is looked at later: [`Self::check`].
    pub fn call(&mut self, line: &[u8]) -> Result<Duration> {
        let since = Instant::now();
        self.tell(line)?;
        self.listen()?;
        Ok(since.elapsed())
    }

    /// Waits for the next line. Nothing is under way but one call: so the line ends where nothing more comes.
    pub fn listen(&mut self) -> Result<()> {
        self.length = 0;
        loop {
            if self.length == self.answer.len() {
                self.answer.resize(2 * self.length, 0);
            }
            let count = self.output.read(&mut self.answer[self.length..])?;
            if count == 0 {
                return Err(Error::other("the server is gone"));
            }
            self.length += count;
            if self.answer[self.length - 1] == b'\n' {
                return Ok(());
            }
        }
    }

    /// Tells it to end, and waits until it is gone: how long that took, and what it still said.
    pub fn leave(mut self, how: End) -> Result<(Duration, Vec<u8>)> {
        let since = Instant::now();
        let input = match how {
            End::OfInput => {
                drop(self.input);
                None
            }
            End::BySignal => {
                let id = rustix::process::Pid::from_child(&self.process.0);
                rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
                Some(self.input)
            }
        };
        let mut said = Vec::new();
        self.output.read_to_end(&mut said)?;
        let status = self.process.0.wait()?;
        drop(input);
        let wrong = || Error::other(format!("the server ended with {status}"));
        if status.success() { Ok((since.elapsed(), said)) } else { Err(wrong()) }
    }

    pub fn answer(&self) -> &[u8] {
        &self.answer[..self.length]
    }

    /// Whether the last call succeeded.
    pub fn check(&self) -> Result<()> {
        let answer = self.answer();
        let said = |words: &str| memchr::memmem::find(answer, words.as_bytes()).is_some();
        let shown = &answer[..answer.len().min(1000)];
        if said("\"result\"")
            && !said("\"isError\":true")
            && memchr::memrchr(b'\n', &answer[..answer.len() - 1]).is_none()
        {
            return Ok(());
        }
        Err(Error::other(String::from_utf8_lossy(shown).into_owned()))
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.call(&message(2, method, params))?;
        self.check()?;
        serde_json::from_slice(self.answer()).map_err(Error::other)
    }
}

/// A request, as a line.
pub fn message(id: usize, method: &str, params: &Value) -> Vec<u8> {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}
