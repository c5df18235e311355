//! Items with text: messages, thoughts and notices.

use serde_json::{Value, json};

use super::DisplayCapabilities;
use super::json::{list, text};

/// Text of a message or thought.
#[derive(Debug)]
pub struct ItemText {
    chunk: &'static str,
    text: String,
    /// The full text of a thought, besides its summary.
    pub details: String,
}

impl ItemText {
    /// Returns the text that is shown: for a thought the summary, if there is one.
    pub fn shown(&self) -> &str {
        if self.text.is_empty() { &self.details } else { &self.text }
    }
}

/// Returns the text of an item, if it has any. Not for `exitedReviewMode`, since a message with the same text follows.
pub fn item_text(item: &Value) -> Option<ItemText> {
    const MESSAGE: &str = "agent_message_chunk";
    const THOUGHT: &str = "agent_thought_chunk";
    let member = |key| text(item, key).unwrap_or_default().to_owned();
    let parts = |key| {
        let parts: Vec<_> = list(item, key).iter().filter_map(Value::as_str).collect();
        parts.join("\n\n")
    };
    let (chunk, text, details) = match text(item, "type")? {
        "agentMessage" | "plan" => (MESSAGE, member("text"), String::new()),
        "reasoning" => (THOUGHT, parts("summary"), parts("content")),
        "enteredReviewMode" => {
            (THOUGHT, format!("Review: {}\n\n", member("review")), String::new())
        }
        "hookPrompt" => {
            let fragments = list(item, "fragments").iter();
            let fragments: Vec<_> = fragments.filter_map(|hook| text(hook, "text")).collect();
            (THOUGHT, fragments.join("\n\n"), String::new())
        }
        _ => return None,
    };
    Some(ItemText { chunk, text, details })
}

/// Returns the update with a piece of such an item. Empty pieces are not sent.
pub fn chunk(text_item: &ItemText, id: &str, piece: &str) -> Option<Value> {
    (!piece.is_empty())
        .then(|| chunk_of(text_item.chunk, id, json!({"type": "text", "text": piece})))
}

/// Returns the update with a piece of the message or thought of this id.
pub fn chunk_of(kind: &str, id: &str, content: Value) -> Value {
    let mut chunk = json!({"sessionUpdate": kind});
    if !id.is_empty() {
        chunk["messageId"] = id.into();
    }
    chunk["content"] = content;
    chunk
}

/// Returns the updates of a message that the user sent earlier.
pub fn user_message(item: &Value) -> Vec<Value> {
    let id = text(item, "id").unwrap_or_default();
    let contents = list(item, "content").iter().filter_map(|input| {
        let named = |sign: &str| text(input, "name").map(|name| plain(&format!("{sign}{name}")));
        match text(input, "type")? {
            "text" => text(input, "text").map(plain),
            "image" => text(input, "url").map(image),
            "localImage" => text(input, "path").map(|path| link(path, &format!("file://{path}"))),
            "skill" => named("$"),
            "mention" => named("@"),
            _ => None,
        }
    });
    contents.map(|content| chunk_of("user_message_chunk", id, content)).collect()
}

fn plain(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn link(name: &str, uri: &str) -> Value {
    json!({"type": "resource_link", "name": name, "uri": uri})
}

/// Converts an image URL: a `data:` URL to an image, any other to a link.
pub fn image(url: &str) -> Value {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((mime, data)) => json!({"type": "image", "data": data, "mimeType": mime}),
        None => link("image", url),
    }
}

/// Returns the update of a compaction of the context.
pub fn compaction(item: &Value, status: &str, display: DisplayCapabilities) -> Option<Value> {
    let id = text(item, "id")?;
    if display.compaction {
        return Some(
            json!({"sessionUpdate": "compaction_update", "compactionId": id, "status": status}),
        );
    }
    (status == "completed").then(|| notice("info", "The context was compacted", None, display))
}

/// Returns a notice. Editors without notices get a thought, since a message would be mixed with the answer.
pub fn notice(
    severity: &str,
    title: &str,
    description: Option<&str>,
    display: DisplayCapabilities,
) -> Value {
    if !display.notices {
        let more = description.map(|more| format!(": {more}")).unwrap_or_default();
        return chunk_of("agent_thought_chunk", "", plain(&format!("{title}{more}\n\n")));
    }
    let mut notice = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
    if let Some(description) = description {
        notice["description"] = description.into();
    }
    notice
}
