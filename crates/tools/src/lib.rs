//! The tools, one file each. They do not know how they were called: no MCP, HTTP or ACP types here.
//!
//! A tool is a struct of arguments that can run. Its doc comment is the description that an agent reads, its fields'
//! doc comments describe the parameters, and its schema is what a call is checked against. A new tool needs its file,
//! one row below and its cases.

mod aliases;
mod answer;
mod block;
pub mod code;
mod dialect;
pub mod failure;
pub mod flat;
pub mod iso8601;
mod line_number;
mod output;
pub mod rehearsal;
pub mod resource;
pub mod schema;
mod spec;
mod store_error;
mod syntax;
pub mod text_file;
mod tool;

pub use answer::hard_links_note;
pub use block::Block;
pub use dialect::Dialect;
pub use failure::{Failure, FailureKind};
pub use output::{ToolOutput, arguments_memory};
pub use rehearsal::{ChangeDigest, FileChange, Rehearsal};
pub use spec::{Prepared, ToolSpec};
pub use tool::{ArgumentError, Context, Effect, Generator, Limits, Tool, Toolset};

/// `list_files`, `read_file` and `edit_file` as MCP tools: file names only, lines from 0.
pub static FLAT: [ToolSpec; 3] = [
    ToolSpec::of::<flat::ListFiles>(),
    ToolSpec::of::<flat::ReadFile>(),
    ToolSpec::of::<flat::EditFile>(),
];

/// Text files by absolute path: lines from 1, edits by exact strings.
pub static TEXT: [ToolSpec; 3] = [
    ToolSpec::of::<text_file::ReadTextFile>(),
    ToolSpec::of::<text_file::WriteTextFile>(),
    ToolSpec::of::<text_file::MultiEditTextFile>(),
];

/// Source code by its path from the folder: lines from 1.
pub static CODE: [ToolSpec; 3] = [
    ToolSpec::of::<code::AiEditCode>(),
    ToolSpec::of::<code::AiGetCodeContext>(),
    ToolSpec::of::<code::SearchFiles>(),
];

/// `list_files`, `read_file` and `edit_file` as plain methods (bare JSON-RPC, REST): lines from 1, no extra keys in or
/// out.
pub static PLAIN: [ToolSpec; 3] = [
    ToolSpec::of::<flat::plain::ListFiles>(),
    ToolSpec::of::<flat::plain::ReadFile>(),
    ToolSpec::of::<flat::plain::EditFile>(),
];

/// Text files by their URIs: a list of all of them, and the whole of one.
pub static RESOURCES: [ToolSpec; 2] =
    [ToolSpec::of::<resource::ListResources>(), ToolSpec::of::<resource::ReadResource>()];

/// The toolsets that an agent can be offered, by name. Flags, help and docs derive their lists of tools from this one.
pub static TOOLSETS: [(&str, &[ToolSpec]); 3] =
    [(flat::Flat::NAME, &FLAT), (text_file::TextFiles::NAME, &TEXT), (code::Code::NAME, &CODE)];

/// Toolsets that are served beside those, to programs.
pub static PROGRAM_TOOLSETS: [(&str, &[ToolSpec]); 2] =
    [(flat::plain::PlainMethods::NAME, &PLAIN), (resource::Resources::NAME, &RESOURCES)];

/// Returns the tools that an agent can be offered, in the order of their toolsets.
pub fn agent_tools() -> impl Iterator<Item = &'static ToolSpec> + Clone {
    TOOLSETS.iter().flat_map(|(_, tools)| *tools)
}

/// Returns every tool, in the order of their toolsets.
pub fn all_tools() -> impl Iterator<Item = &'static ToolSpec> + Clone {
    agent_tools().chain(PROGRAM_TOOLSETS.iter().flat_map(|(_, tools)| *tools))
}

/// Returns the tool of that toolset and name.
pub fn find(toolset: &str, name: &str) -> Option<&'static ToolSpec> {
    all_tools().find(|tool| tool.key() == (toolset, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_its_toolset_and_its_name() {
        for (toolset, tools) in TOOLSETS.iter().chain(&PROGRAM_TOOLSETS) {
            for tool in *tools {
                assert_eq!(tool.toolset, *toolset);
                let found = find(toolset, tool.name).expect("it is there");
                assert!(std::ptr::eq(found, tool), "{toolset} {}", tool.name);
            }
        }
        let [flat, plain] = ["flat", "plain"].map(|toolset| find(toolset, "read_file"));
        assert_eq!(flat.expect("a tool").dialect, Dialect::Flat);
        assert_eq!(plain.expect("a tool").dialect, Dialect::Plain);
        assert!(find("text", "read_file").is_none());
    }
}
