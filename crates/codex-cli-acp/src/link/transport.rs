//! Stdin and stdout of the program, each with a thread of its own: lines of a bounded length from the editor, and lines
//! to it, of which those count that it has not read. The transport of the protocol's library counts and bounds nothing.

use std::io::{self, BufRead, Read as _};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use agent_client_protocol::{Channel, Error, TransportFrame};
use server::terminal::{self, Stream};
use tokio::sync::oneshot;

use super::Link;

/// Bytes of the longest line that is taken from the editor.
const MAX_LINE_BYTES: usize = 64 << 20;
/// How long the editor may take to read more of what it was told, once it says no more itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is left of the transport once the connection is over: lines that are not written.
pub struct Transport {
    link: Arc<Link>,
    written: oneshot::Receiver<()>,
}

/// Starts the threads; the connection's end of the transport comes first.
pub fn open(editor: &Arc<Link>) -> (Channel, Transport) {
    let (ours, theirs) = Channel::duplex();
    let (mut outgoing, incoming) = theirs.into_parts();
    thread::spawn(move || read(io::stdin().lock(), |frame| incoming.unbounded_send(frame).is_ok()));
    let (lines, waiting) = mpsc::channel::<String>();
    let (is_written, written) = oneshot::channel();
    let writer = Arc::clone(editor);
    thread::spawn(move || {
        for line in waiting {
            if terminal::write_json(Stream::Stdout, &line).is_err() {
                return;
            }
            writer.unwritten.send_modify(|bytes| *bytes -= line.len());
        }
        let _ = is_written.send(());
    });
    let counting = Arc::clone(editor);
    tokio::spawn(async move {
        while let Ok(frame) = outgoing.recv().await {
            let Ok(json) = frame.to_json() else { continue };
            let line = json + "\n";
            counting.unwritten.send_modify(|bytes| *bytes += line.len());
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    (ours, Transport { link: Arc::clone(editor), written })
}

impl Transport {
    /// Waits until all is written that was said, but not for an editor that reads no more.
    pub async fn finish(self) {
        let mut unwritten = self.link.unwritten.subscribe();
        let progress =
            async { while tokio::time::timeout(FAREWELL, unwritten.changed()).await.is_ok() {} };
        tokio::select! {
            _ = self.written => {}
            () = progress => {}
        }
    }
}

/// Reads lines until there are none, or nobody takes them.
fn read(mut stdin: impl BufRead, take: impl Fn(TransportFrame) -> bool) {
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(MAX_LINE_BYTES / 64);
        match (&mut stdin).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line) {
            Err(_) | Ok(0) => return,
            Ok(_) => {}
        }
        let is_whole = line.ends_with(b"\n") || line.len() < MAX_LINE_BYTES;
        if !is_whole && stdin.skip_until(b'\n').is_err() {
            return;
        }
        let frame = if is_whole { parsed(&line) } else { too_long() };
        if !take(frame) {
            return;
        }
    }
}

fn parsed(line: &[u8]) -> TransportFrame {
    TransportFrame::parse_json(String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']))
}

fn too_long() -> TransportFrame {
    let message = format!("a message of more than {} MB cannot be taken", MAX_LINE_BYTES >> 20);
    TransportFrame::Malformed { raw: String::new(), error: Error::new(-32600, message) }
}
