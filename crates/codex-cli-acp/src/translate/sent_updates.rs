//! Records what the editor was sent about items that have not ended.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use serde_json::{Value, json};

use super::abandoned;
use super::item_text::ItemText;
use super::tool_call::ToolCall;

/// Limit of the messages and thoughts that are sent in pieces at a time. Others are sent whole when they end.
const TEXTS_MAX: usize = 1000;

/// Text and output sent for the items of a turn, so that nothing is sent twice and nothing stays open.
#[derive(Debug, Default)]
pub struct SentUpdates {
    texts: HashMap<String, SentText>,
    /// Open tool calls, in the order in which they began.
    calls: Vec<(String, SentText)>,
    /// Id of the running compaction.
    compaction: Option<String>,
}

/// Length and hash of the text that was sent; not the text, since it may be large.
#[derive(Debug, Default)]
pub struct SentText {
    bytes: usize,
    hash: DefaultHasher,
    /// The last part that was sent, of a text that comes in parts.
    part: Option<ThoughtPart>,
    /// True if the tool call shows a terminal.
    terminal: bool,
}

/// A part of a thought. Summary and full text come in numbered parts, and only one of the two is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThoughtPart {
    pub summary: bool,
    pub index: u64,
}

impl SentText {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    fn is(&self, text: &str) -> bool {
        let mut hash = DefaultHasher::new();
        hash.write(text.as_bytes());
        text.len() == self.bytes && hash.finish() == self.hash.finish()
    }

    /// Returns the missing text before and after the sent part. Both are empty if the sent text is not part of the
    /// whole: then Codex shortened the whole, and the sent text is better.
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

impl SentUpdates {
    /// Records the start of a tool call. True if it had not begun yet.
    pub(super) fn begin(&mut self, call: &ToolCall) -> bool {
        let new = !self.is_open(&call.id);
        if new {
            let terminal = call.meta["terminal_info"].is_object();
            self.calls.push((call.id.clone(), SentText { terminal, ..SentText::default() }));
        }
        new
    }

    /// True if the tool call has begun and not ended.
    pub fn is_open(&self, tool_call_id: &str) -> bool {
        self.calls.iter().any(|(id, _)| id == tool_call_id)
    }

    /// Records output that was sent to a command's terminal. False if it has none.
    pub(super) fn output(&mut self, id: &str, text: &str) -> bool {
        let call = self.calls.iter_mut().find(|(open, sent)| open == id && sent.terminal);
        call.map(|(_, sent)| sent.add(text)).is_some()
    }

    /// Records the running compaction, or its end.
    pub(super) fn set_compaction(&mut self, id: Option<String>) {
        self.compaction = id;
    }

    /// Records the end of a tool call and returns the output that was sent. `None` if it never began.
    pub(super) fn finish_call(&mut self, id: &str) -> Option<SentText> {
        let at = self.calls.iter().position(|(open, _)| open == id)?;
        Some(self.calls.remove(at).1)
    }

    /// Returns the record of a text. `None` if there are too many.
    fn sent(&mut self, id: &str) -> Option<&mut SentText> {
        let is_known = self.texts.contains_key(id) || self.texts.len() < TEXTS_MAX;
        is_known.then(|| self.texts.entry(id.into()).or_default())
    }

    /// Records the next piece of a message and returns it for sending.
    pub(super) fn text(&mut self, id: &str, delta: &str) -> Option<String> {
        self.sent(id)?.add(delta);
        Some(delta.into())
    }

    /// Records the next piece of a thought and returns it for sending, with a blank line between parts.
    pub(super) fn thought(&mut self, id: &str, part: ThoughtPart, delta: &str) -> Option<String> {
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

    /// Records the end of a message or thought and returns the text missing at its end.
    pub(super) fn finish_text<'a>(&mut self, id: &str, text_item: &'a ItemText) -> &'a str {
        let sent = self.texts.remove(id).unwrap_or_default();
        match sent.part {
            Some(part) if !part.summary => sent.missing(&text_item.details).1,
            _ => sent.missing(text_item.shown()).1,
        }
    }

    /// Returns the updates that close everything the turn left open.
    pub fn abandon(&mut self) -> Vec<Value> {
        self.texts.clear();
        let compaction = self.compaction.take().map(|id| {
            json!({
                "sessionUpdate": "compaction_update", "compactionId": id, "status": "cancelled",
            })
        });
        let calls = std::mem::take(&mut self.calls).into_iter();
        let close = |(id, sent): (String, SentText)| {
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
