//! What the editor has been sent of items that have not ended.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use serde_json::{Value, json};

use super::abandoned;
use super::message::Told;
use super::tool_call::ToolCall;

/// Messages and thoughts that are sent piece by piece at a time. Of more the whole is sent when they end.
const MAX_TEXTS: usize = 1000;

/// What was sent of the items of a turn, so that nothing is sent twice and nothing stays open.
#[derive(Debug, Default)]
pub struct Streamed {
    texts: HashMap<String, Sent>,
    /// In the order in which they began.
    calls: Vec<(String, Sent)>,
    /// The compaction that is under way.
    compaction: Option<String>,
}

/// How much of a text was sent, and what it was: as a hash, since the text may be large.
#[derive(Debug, Default)]
pub struct Sent {
    bytes: usize,
    hash: DefaultHasher,
    /// The part that was sent last, of a text that comes in parts.
    part: Option<Part>,
    /// The tool call shows a terminal.
    terminal: bool,
}

/// A part of a thought: its summary or its words come by numbered parts, and only one of the two is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub summary: bool,
    pub index: u64,
}

impl Sent {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    fn is(&self, text: &str) -> bool {
        let mut hash = DefaultHasher::new();
        hash.write(text.as_bytes());
        text.len() == self.bytes && hash.finish() == self.hash.finish()
    }

    /// What is missing of the whole, before and after what was sent. Nothing when the two do not fit together: then
    /// the whole was shortened, and what was sent is the better.
    pub fn missing<'a>(&self, whole: &'a str) -> (&'a str, &'a str) {
        let split_at = |at| whole.split_at_checked(at);
        match split_at(self.bytes) {
            Some((sent, after)) if self.is(sent) => return ("", after),
            _ => {}
        }
        match whole.len().checked_sub(self.bytes).and_then(split_at) {
            Some((before, sent)) if self.is(sent) => (before, ""),
            _ => ("", ""),
        }
    }
}

impl Streamed {
    /// Whether the tool call begins just now.
    pub(super) fn begin(&mut self, call: &ToolCall) -> bool {
        let new = !self.is_open(&call.id);
        if new {
            let terminal = call.meta["terminal_info"].is_object();
            self.calls.push((call.id.clone(), Sent { terminal, ..Sent::default() }));
        }
        new
    }

    /// Whether the tool call has begun and not ended.
    pub fn is_open(&self, tool_call_id: &str) -> bool {
        self.calls.iter().any(|(id, _)| id == tool_call_id)
    }

    /// Output of a command went to its terminal. `false`: there is none.
    pub(super) fn output(&mut self, id: &str, text: &str) -> bool {
        let call = self.calls.iter_mut().find(|(open, sent)| open == id && sent.terminal);
        call.map(|(_, sent)| sent.add(text)).is_some()
    }

    /// A compaction that is shown goes on, or is over.
    pub(super) fn compacts(&mut self, id: Option<String>) {
        self.compaction = id;
    }

    /// The tool call ends; what was sent of its output. `None`: it never began.
    pub(super) fn finish_call(&mut self, id: &str) -> Option<Sent> {
        let at = self.calls.iter().position(|(open, _)| open == id)?;
        Some(self.calls.remove(at).1)
    }

    /// What was sent of a text; `None` if it is one too many.
    fn sent(&mut self, id: &str) -> Option<&mut Sent> {
        let is_known = self.texts.contains_key(id) || self.texts.len() < MAX_TEXTS;
        is_known.then(|| self.texts.entry(id.into()).or_default())
    }

    /// The next piece of a message, as it is to be sent.
    pub(super) fn text(&mut self, id: &str, delta: &str) -> Option<String> {
        self.sent(id)?.add(delta);
        Some(delta.into())
    }

    /// The next piece of a thought, as it is to be sent: parts are a blank line apart.
    pub(super) fn thought(&mut self, id: &str, part: Part, delta: &str) -> Option<String> {
        let sent = self.sent(id)?;
        let last = *sent.part.get_or_insert(part);
        if last.summary != part.summary {
            return None;
        }
        let blank = if last == part { "" } else { "\n\n" };
        let piece = format!("{blank}{delta}");
        sent.part = Some(part);
        sent.add(&piece);
        Some(piece)
    }

    /// A message or thought ends; what is missing at its end.
    pub(super) fn finish_text<'a>(&mut self, id: &str, told: &'a Told) -> &'a str {
        let sent = self.texts.remove(id).unwrap_or_default();
        match sent.part {
            Some(part) if !part.summary => sent.missing(&told.details).1,
            _ => sent.missing(told.whole()).1,
        }
    }

    /// The turn is over: closes what it left open.
    pub fn abandon(&mut self) -> Vec<Value> {
        self.texts.clear();
        let compaction = self.compaction.take().map(|id| {
            json!({
                "sessionUpdate": "compaction_update", "compactionId": id, "status": "cancelled",
            })
        });
        let calls = std::mem::take(&mut self.calls).into_iter();
        let close = |(id, sent): (String, Sent)| {
            let mut update = abandoned(&id);
            if sent.terminal {
                update["_meta"] = json!({
                    "terminal_exit": {"terminal_id": id, "exit_code": null, "signal": null}
                });
            }
            update
        };
        calls.map(close).chain(compaction).collect()
    }
}
