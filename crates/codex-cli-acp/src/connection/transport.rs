//! The stdio transport of ACP: a thread reads lines of a bounded length, another writes lines and counts the bytes that
//! the editor has not read. The transport of the crate `agent-client-protocol` has no bounds and no counts.

use std::io::{self, BufRead, Read as _};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use agent_client_protocol::{Channel, Error, TransportFrame};
use server::terminal::{self, Stream};
use tokio::sync::oneshot;

use super::EditorConnection;

/// Limit of the bytes of a line from the editor.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Time for the editor to read more of the output, once its input has ended.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The writing side of the transport after the connection has ended: lines that are not written yet.
pub struct UnwrittenOutput {
    connection: Arc<EditorConnection>,
    written: oneshot::Receiver<()>,
}

/// Starts the threads. Returns the connection's end of the transport first.
pub fn open(editor: &Arc<EditorConnection>) -> (Channel, UnwrittenOutput) {
    let (ours, theirs) = Channel::duplex();
    let (mut outgoing, incoming) = theirs.into_parts();
    thread::spawn(move || {
        read_lines(io::stdin().lock(), |frame| incoming.unbounded_send(frame).is_ok());
    });
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
    (ours, UnwrittenOutput { connection: Arc::clone(editor), written })
}

impl UnwrittenOutput {
    /// Waits until all lines are written, but not for an editor that has stopped reading.
    pub async fn finish(self) {
        let mut unwritten = self.connection.unwritten.subscribe();
        let progress = async {
            while tokio::time::timeout(READ_TIMEOUT, unwritten.changed()).await.is_ok() {}
        };
        tokio::select! {
            _ = self.written => {}
            () = progress => {}
        }
    }
}

/// Reads lines until the input ends or `take` returns false.
fn read_lines(mut stdin: impl BufRead, take: impl Fn(TransportFrame) -> bool) {
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(LINE_BYTES_MAX / 64);
        match (&mut stdin).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line) {
            Err(_) | Ok(0) => return,
            Ok(_) => {}
        }
        let is_whole = line.ends_with(b"\n") || line.len() < LINE_BYTES_MAX;
        if !is_whole && stdin.skip_until(b'\n').is_err() {
            return;
        }
        let frame = if is_whole { parse(&line) } else { too_long() };
        if !take(frame) {
            return;
        }
    }
}

fn parse(line: &[u8]) -> TransportFrame {
    TransportFrame::parse_json(String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']))
}

fn too_long() -> TransportFrame {
    let message = format!("a message of more than {} MB cannot be taken", LINE_BYTES_MAX >> 20);
    TransportFrame::Malformed { raw: String::new(), error: Error::new(-32600, message) }
}
