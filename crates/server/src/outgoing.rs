//! Messages on their way out. A large text is streamed from the file's own buffer to the place that a marker keeps for it,
//! so that it is neither copied nor escaped in memory.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use memchr::memmem::Finder;
use tools::Block;

use crate::lock::lock;
use crate::memory_budget::Permit;

/// The large texts of an answer, in the order of their markers, and the permit for its memory. The handler of a request
/// leaves them for the transport.
#[derive(Default)]
pub struct LargeTexts {
    pub blocks: Vec<Block>,
    pub permit: Option<Permit>,
}

pub type SharedLargeTexts = Arc<Mutex<LargeTexts>>;

/// A text for an answer: itself, or its marker if it is large.
pub fn text(block: Block, large_texts: &SharedLargeTexts) -> String {
    if block.len() < LARGE {
        return block.to_string();
    }
    defer(block, large_texts)
}

/// Leaves a block for the transport. Returns its marker.
pub fn defer(block: Block, large_texts: &SharedLargeTexts) -> String {
    let mut large_texts = lock(large_texts);
    large_texts.blocks.push(block);
    marker(large_texts.blocks.len() - 1)
}

/// The marker of the `index`-th large text. Random, and never written.
pub fn marker(index: usize) -> String {
    let index = index.to_string();
    [NONCE.as_str(), ":", &index, ":"].concat()
}

static NONCE: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())
});

/// Finds the beginning of any marker. Making it takes longer than using it.
static MARKERS: LazyLock<Finder> = LazyLock::new(|| Finder::new(NONCE.as_bytes()));

/// The range of the `index`-th marker in `json`.
fn find_marker(json: &[u8], index: usize) -> Option<std::ops::Range<usize>> {
    let marker = marker(index);
    let is_it = |at: &usize| json[*at..].starts_with(marker.as_bytes());
    MARKERS.find_iter(json).find(is_it).map(|at| at..at + marker.len())
}

/// Texts shorter than this are written as they are.
pub const LARGE: usize = 256;

/// A message: JSON with markers, and the large texts that they stand for, in order.
pub struct Outgoing {
    json: Vec<u8>,
    blocks: Vec<Block>,
    /// How far it has been written.
    at: Progress,
    /// For the memory of the message, until it is written.
    pub permit: Option<Permit>,
}

#[derive(Default)]
struct Progress {
    /// Bytes of `json`.
    json: usize,
    /// The block being written, and the bytes of it that were written; `None` until its marker is reached.
    block: usize,
    seen: Option<usize>,
}

/// An answer leaves in chunks of this size, or a little more: small enough for the cache, all that a pipe takes.
const CHUNK: usize = 64 * 1024;

impl Outgoing {
    pub fn new(message: &impl serde::Serialize) -> Self {
        Self::with_large_texts(message, LargeTexts::default())
    }

    pub fn with_large_texts(message: &impl serde::Serialize, large_texts: LargeTexts) -> Self {
        // Our messages are strings, numbers and maps with string keys: that always serializes.
        Self::from_json(serde_json::to_vec(message).unwrap_or_default(), large_texts)
    }

    pub fn from_json(json: Vec<u8>, LargeTexts { blocks, permit }: LargeTexts) -> Self {
        Self { json, blocks, at: Progress::default(), permit }
    }

    /// The message as a server-sent event. Its JSON has no line breaks.
    pub fn into_event(mut self) -> Self {
        self.json.splice(..0, *b"data: ");
        self.json.extend_from_slice(b"\n\n");
        self
    }

    pub fn memory_bytes(&self) -> usize {
        self.json.capacity() + self.blocks.iter().map(Block::memory_bytes).sum::<usize>()
    }

    /// Writes the message and a line break; `buffer` is scratch space.
    pub fn write_line(mut self, out: &mut impl Write, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        while self.fill(buffer) {
            // Not a byte more than an empty pipe takes: for that one we would have to wait.
            out.write_all(&buffer[..CHUNK])?;
            buffer.drain(..CHUNK);
        }
        buffer.push(b'\n');
        out.write_all(buffer)
    }

    /// Adds to `buffer` until it has a chunk, or a little more; `false` if that was the last.
    pub fn fill(&mut self, buffer: &mut Vec<u8>) -> bool {
        while buffer.len() < CHUNK {
            let Some(block) = self.blocks.get(self.at.block) else {
                buffer.extend_from_slice(&self.json[self.at.json..]);
                self.at.json = self.json.len();
                return false;
            };
            let Some(seen) = self.at.seen else {
                let rest = &self.json[self.at.json..];
                match find_marker(rest, self.at.block) {
                    Some(marker) => {
                        // What is JSON already stands for the marker's quotes, too.
                        let quotes = usize::from(block.is_json());
                        buffer.extend_from_slice(&rest[..marker.start - quotes]);
                        self.at.json += marker.end + quotes;
                        self.at.seen = Some(0);
                    }
                    None => self.at.block += 1,
                }
                continue;
            };
            if let Some((chunk, seen)) = block.chunk(seen) {
                self.at.seen = Some(seen);
                if block.is_json() {
                    buffer.extend_from_slice(chunk.as_bytes());
                } else {
                    text::escape(chunk, buffer);
                }
            } else {
                self.at = Progress { json: self.at.json, block: self.at.block + 1, seen: None };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tools::ToolOutput;

    #[test]
    fn what_is_json_already_is_written_as_it_is() {
        let value = json!({ "a": ["\"\n", 1], "long": "é\"".repeat(90_000) });
        let texts = || vec![Block::from("\n".to_owned()), Block::of_json(value.to_string())];
        let message = json!({ "text": marker(0), "value": marker(1), "end": 1 });
        let mut written = Vec::new();
        Outgoing::with_large_texts(&message, LargeTexts { blocks: texts(), permit: None })
            .write_line(&mut written, &mut Vec::new())
            .expect("a vector takes all");
        let expected = json!({ "text": "\n", "value": value, "end": 1 });
        assert!(written == format!("{expected}\n").into_bytes());

        let reply = ToolOutput { written: Some(value.to_string()), ..ToolOutput::default() };
        let (object, blocks) = crate::plain::object(reply);
        written.clear();
        Outgoing::with_large_texts(&object, LargeTexts { blocks, permit: None })
            .write_line(&mut written, &mut Vec::new())
            .expect("a vector takes all");
        assert!(written == format!("{value}\n").into_bytes());
    }

    #[test]
    fn large_texts_are_written_as_serde_would() {
        let odd = "plain \"quoted\" \\ \n\r\t \u{0}\u{1f}\u{7f} é 漢 😀 ";
        for repeat in [0, 1, 2, 3000, 9000] {
            let text = odd.repeat(repeat);
            let blocks = vec![Block::from(text.clone()), Block::from(text.clone())];
            let with = |a: &str, b: &str| json!({ "id": 1, "a": a, "b": [b, "end"] });
            let mut written = Vec::new();
            Outgoing::with_large_texts(
                &with(&marker(0), &marker(1)),
                LargeTexts { blocks, permit: None },
            )
            .write_line(&mut written, &mut Vec::new())
            .expect("a vector takes all");
            assert!(written == format!("{}\n", with(&text, &text)).into_bytes(), "{repeat}");
        }
    }
}
