//! The answer of a successful call, and the memory that it takes.

use files::Hash;
use serde_json::{Map, Value};

use crate::Block;

/// The answer of a successful call.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// Texts, in order. The first is the contract's.
    pub blocks: Vec<Block>,
    /// The facts of the answer as an object.
    pub data: Option<Map<String, Value>>,
    /// The facts as an object that is JSON already, for a tool that has very many of them and no `data`.
    pub written: Option<String>,
    /// The file's hash after the call.
    pub hash: Option<Hash>,
    /// Facts about the answer that stand beside it, for a program rather than a model.
    pub meta: Option<Map<String, Value>>,
}

impl ToolOutput {
    /// Returns the approximate size of the reply in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory_bytes).sum();
        let objects = self.data.iter().chain(&self.meta);
        let written = self.written.as_ref().map_or(0, String::capacity);
        blocks + objects.map(members_memory).sum::<usize>() + written
    }

    /// Drops files of which the reply shows only a small part.
    #[must_use]
    pub fn compact(self) -> Self {
        let blocks = self.blocks.into_iter().map(Block::compact).collect();
        Self { blocks, ..self }
    }
}

/// Bytes that a map takes whatever is in it, and bytes for each of its members.
const MAP: usize = 256;
const MEMBER: usize = 96;

/// Returns the approximate size of arguments in memory, in bytes.
pub fn arguments_memory(arguments: &Value) -> usize {
    value_memory(arguments)
}

fn members_memory(members: &Map<String, Value>) -> usize {
    let each = |(name, value): (&String, &Value)| MEMBER + name.len() + value_memory(value);
    MAP + members.iter().map(each).sum::<usize>()
}

fn value_memory(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => size_of::<Value>() + text.capacity(),
        Value::Array(items) => size_of::<Value>() + items.iter().map(value_memory).sum::<usize>(),
        Value::Object(members) => members_memory(members),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::ops::Range;
    use std::sync::Arc;

    use serde_json::json;
    use text::Text;

    fn block(range: Range<usize>) -> Block {
        let text = Text::decode(Arc::new("a\r\n".repeat(1000).into_bytes())).expect("text");
        Block::of_lines("head\n".into(), text, range)
    }

    #[test]
    fn what_a_reply_holds_is_more_than_what_it_says() {
        let rows = vec![json!({ "name": "a.txt", "lines": 3 }); 100];
        let Value::Object(data) = json!({ "files": rows }) else { unreachable!() };
        let said = Value::Object(data.clone()).to_string().len();
        let reply =
            ToolOutput { blocks: vec![block(0..3)], data: Some(data), ..ToolOutput::default() };
        assert!(reply.memory_bytes() > 3000 + said);
    }

    #[test]
    fn what_is_held_is_counted_with_what_it_is_held_in() {
        let value = size_of::<Value>();
        let arguments = json!({ "ab": [true, "xyz"], "c": {} });
        let members = MEMBER + 2 + (value + value + (value + 3)) + MEMBER + 1 + MAP;
        assert_eq!(arguments_memory(&arguments), MAP + members);
        let Value::Object(data) = arguments else { unreachable!() };
        let written = Some(String::with_capacity(1000));
        let of_parts = |reply: ToolOutput| reply.memory_bytes();
        let [blocks, data, written] = [
            ToolOutput { blocks: vec![block(0..3)], ..ToolOutput::default() },
            ToolOutput { data: Some(data), ..ToolOutput::default() },
            ToolOutput { written, ..ToolOutput::default() },
        ];
        let all = ToolOutput {
            blocks: blocks.blocks.clone(),
            data: data.data.clone(),
            meta: data.data.clone(),
            written: Some(String::with_capacity(1000)),
            ..ToolOutput::default()
        };
        let [blocks, data, written] = [blocks, data, written].map(of_parts);
        assert_eq!((data, written), (MAP + members, 1000));
        assert_eq!(all.memory_bytes(), blocks + 2 * data + written);
    }

    #[test]
    fn a_reply_without_the_rest_of_its_files_says_the_same() {
        let Value::Object(data) = json!({ "a": 1 }) else { unreachable!() };
        let hash = Some(Hash::of(b"a"));
        let (blocks, data) = (vec![block(0..3)], Some(data));
        let reply =
            ToolOutput { blocks, data: data.clone(), hash, ..ToolOutput::default() }.compact();
        assert_eq!(reply.blocks[0].to_string(), block(0..3).to_string());
        assert_eq!((reply.data, reply.hash), (data, hash));
    }
}
