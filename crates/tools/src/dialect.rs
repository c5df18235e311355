//! The wordings of answers and failures, one for each toolset.

/// The wording of a toolset's answers and failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The MCP tools of the flat folder: texts begin with `Error: `.
    Flat,
    /// The text tools: texts are the message alone.
    Text,
    /// The code tools: codes are words.
    Code,
    /// The plain methods of the flat folder: JSON-RPC errors.
    Plain,
    /// Files by their URIs: JSON-RPC errors too, in the words of the text tools.
    Resource,
}
