//! Lines on stdin, and what comes of them on stdout.
//!
//! The server has the real ones, as ever: a case lends it files in their place.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{dup, pread, write};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use serde_json::Value;
use serde_json::value::RawValue;
use server::signal::Signals;
use server::{Confirm, stdio};

use crate::serving::{HANG, Serving, check_message, runtime};

/// A case that begins with this is a server's that asks before it writes.
const ASKS: u8 = b'?';
/// What a message may have.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Each line is answered at most once, what is no object always, and a request by its id; the server ends with its input.
pub fn line_protocol(bytes: &[u8]) {
    let (confirm, bytes) = match bytes.split_first() {
        Some((&ASKS, rest)) => (Confirm::Always, rest),
        _ => (Confirm::Never, bytes),
    };
    let serving = Serving::new(confirm);
    let said = serving.addressed(bytes);
    let answers = answers(&serving, &said);
    let said: Vec<&[u8]> =
        said.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let answers: Vec<Value> = answers
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(check_message)
        // Questions and what is told on the way are not answers.
        .filter(|message| message.get("method").is_none())
        .collect();
    assert!(answers.len() <= said.len(), "{answers:?}");
    for answer in &answers {
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        assert!(answer.get("id").is_some(), "{answer}");
        assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    }
    let nonsense = said.iter().filter(|line| !is_object(line)).count();
    let unnamed = answers.iter().filter(|answer| answer["id"].is_null()).count();
    assert!(nonsense <= unnamed, "{answers:?}");
    if said.iter().any(|line| line.windows(9).any(|part| part == b"cancelled")) {
        return;
    }
    let answered: HashSet<String> = answers.iter().map(|answer| answer["id"].to_string()).collect();
    for id in said.iter().filter_map(|line| id_of_request(line)) {
        assert!(answered.contains(&id), "{id} is not answered: {answers:?}");
    }
}

/// All that a server says to those who say this and no more.
fn answers(serving: &Serving, said: &[u8]) -> Vec<u8> {
    let (input, output) = (file(said), file(b""));
    let lent = Lent::new(&input, &output);
    let runtime = runtime();
    runtime.block_on(async {
        let signals = Signals::catch().expect("signals can be caught");
        let served = stdio::serve(serving.calls.clone(), signals);
        let served = tokio::time::timeout(HANG, served).await.expect("it ends with its input");
        served.expect("it can be served");
    });
    runtime.shutdown_timeout(HANG);
    drop(lent);
    contents(&output)
}

/// Whether it can be a message at all. Bytes that are no text do not count: nobody reads them where nobody looks.
fn is_object(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line.trim_ascii());
    line.starts_with('{') && serde_json::from_str::<&RawValue>(&line).is_ok()
}

/// The id of a request that is beyond doubt.
fn id_of_request(line: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(line.trim_ascii()).ok()?;
    let is_request = message["jsonrpc"] == "2.0" && message["method"].is_string();
    let id = message.get("id").filter(|id| is_request && (id.is_i64() || id.is_string()))?;
    // A member that is there twice is refused, and by escapes a name can be there unseen.
    let text = String::from_utf8_lossy(line);
    let is_once = |name: &&str| text.matches(name).count() < 2;
    let is_plain = MEMBERS.iter().all(is_once) && !text.contains("\\u");
    is_plain.then(|| id.to_string())
}

/// Files in the place of stdin and stdout, until this is dropped.
struct Lent {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl Lent {
    fn new(input: &OwnedFd, output: &OwnedFd) -> Self {
        let kept = "stdin and stdout are open";
        let lent = Self { stdin: dup(stdin()).expect(kept), stdout: dup(stdout()).expect(kept) };
        dup2_stdin(input).expect(kept);
        dup2_stdout(output).expect(kept);
        lent
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = dup2_stdin(&self.stdin);
        let _ = dup2_stdout(&self.stdout);
    }
}

/// A file that is nowhere, to be read from its beginning.
fn file(contents: &[u8]) -> OwnedFd {
    let file = memfd_create("trial", MemfdFlags::CLOEXEC).expect("there is memory");
    let mut rest = contents;
    while !rest.is_empty() {
        rest = &rest[write(&file, rest).expect("there is memory")..];
    }
    seek(&file, SeekFrom::Start(0)).expect("a file has a beginning");
    file
}

fn contents(file: &OwnedFd) -> Vec<u8> {
    let (mut contents, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        match pread(file, &mut buffer[..], contents.len() as u64).expect("it can be read") {
            0 => return contents,
            read => contents.extend_from_slice(&buffer[..read]),
        }
    }
}
