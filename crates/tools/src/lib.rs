//! The tools, one file each. They do not know how they were called: no MCP, HTTP or ACP types here.
//!
//! A tool is a struct of arguments that can run. Its doc comment is the description that an agent reads, its fields'
//! doc comments describe the parameters, and its schema is what a call is checked against. A new tool needs its file,
//! one row below and its cases.

mod aliases;
mod answer;
pub mod code;
mod dialect;
pub mod failure;
pub mod flat;
pub mod iso8601;
mod line_number;
pub mod rehearsal;
pub mod resource;
pub mod schema;
mod syntax;
pub mod text_file;
pub mod tool;

pub use dialect::Dialect;
pub use failure::{Failure, Kind};
pub use rehearsal::{Changed, Rehearsed, Seen};
pub use tool::{
    Author, Block, Complaint, Context, Effect, Entry, Limits, Prepared, Reply, Tool, Toolset,
};

/// `list_files`, `read_file` and `edit_file` as MCP tools: file names only, lines from 0.
pub static FLAT: [Entry; 3] =
    [Entry::of::<flat::ListFiles>(), Entry::of::<flat::ReadFile>(), Entry::of::<flat::EditFile>()];

/// Text files by absolute path: lines from 1, edits by exact strings.
pub static TEXT: [Entry; 3] = [
    Entry::of::<text_file::ReadTextFile>(),
    Entry::of::<text_file::WriteTextFile>(),
    Entry::of::<text_file::MultiEditTextFile>(),
];

/// Source code by its path from the folder: lines from 1.
pub static CODE: [Entry; 3] = [
    Entry::of::<code::AiEditCode>(),
    Entry::of::<code::AiGetCodeContext>(),
    Entry::of::<code::SearchFiles>(),
];

/// `list_files`, `read_file` and `edit_file` as plain methods (bare JSON-RPC, REST): lines from 1, no extra keys in or
/// out.
pub static PLAIN: [Entry; 3] = [
    Entry::of::<flat::plain::ListFiles>(),
    Entry::of::<flat::plain::ReadFile>(),
    Entry::of::<flat::plain::EditFile>(),
];

/// Text files by their URIs: a list of all of them, and the whole of one.
pub static RESOURCES: [Entry; 2] =
    [Entry::of::<resource::ListResources>(), Entry::of::<resource::ReadResource>()];
