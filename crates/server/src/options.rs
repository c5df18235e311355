//! Options of a server: its tools, how it answers, and the instructions for the agent.

use std::sync::Arc;

use files::Access;
use tools::flat::Flat;
use tools::{Dialect, Effect, ToolSpec, Toolset as _};

use crate::observer::CallObserver;

const FLAT_INSTRUCTIONS: &str = "Text files of one folder, addressed by name alone. `list_files` shows them, `read_file` reads one, whole or by lines, `edit_file` replaces, inserts, deletes and appends lines or creates a file. Line numbers are 0-based and inclusive; in `edit_file` they all mean the file before the call. A call's edits are applied all or none; after an error nothing was written and its hint says what would work. Pass the last `hash` as `expected_hash` to be refused instead of overwriting someone's change.";

const TEXT_INSTRUCTIONS: &str = "by absolute path; lines count from 1. `read_text_file` reads, `multi_edit_text_file` replaces exact strings, all edits or none, `write_text_file` creates a file or replaces all of it. After an error nothing was written, and its hint says what would work. Pass the last `hash` as `expected_hash` to be refused instead of overwriting someone's change.";

const CODE_INSTRUCTIONS: &str = "Source code below one folder, by its path from there; lines count from 1. `ai_get_code_context` tells what to look at, `search_files` finds lines, `ai_edit_code` inserts, replaces and deletes them. After an error nothing was written, and its hint says what would work. Pass the hash of the file or of the lines as `expected_hash` to be refused instead of overwriting someone's change.";

/// When a person is asked before a call writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    Never,
    /// If the client can ask one.
    Auto,
    /// Always: what cannot be asked about is refused.
    Always,
}

/// How the failure of a tool is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrors {
    /// As a result with `isError: true`, which models see.
    Result,
    /// As a JSON-RPC error.
    JsonRpc,
}

/// `structuredContent` in answers: on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    On,
    Off,
}

pub struct Options {
    /// The tools of `tools/list`, in order.
    pub tools: Vec<&'static ToolSpec>,
    /// Refuse whatever is not a read.
    pub access: Access,
    pub tool_errors: ToolErrors,
    pub structured: Structured,
    /// When a person is asked before anything is written.
    pub confirm: Confirm,
    /// Hears of the calls, and is asked in place of that person.
    pub observer: Option<Arc<dyn CallObserver>>,
    /// The language model that generates code.
    pub model: Option<Arc<model::Settings>>,
    /// Instructions for the agent, in place of ours.
    pub instructions: Option<String>,
}

impl Options {
    /// True if a person may have to be asked about such a call. A plain method has no way to ask.
    pub fn asks(&self, tool: &ToolSpec) -> bool {
        let (writes, is_plain) = (tool.effect != Effect::Reads, tool.dialect == Dialect::Plain);
        self.confirm != Confirm::Never && writes && !is_plain && self.observer.is_none()
    }

    /// The tools an agent is offered.
    pub fn offered(&self) -> impl Iterator<Item = &'static ToolSpec> {
        let access = self.access;
        self.tools
            .iter()
            .copied()
            .filter(move |tool| access == Access::ReadWrite || tool.effect == Effect::Reads)
    }

    /// The plain methods (bare JSON-RPC, REST): those of the flat tools that are offered.
    pub fn methods(&self) -> impl Iterator<Item = &'static ToolSpec> {
        tools::PLAIN.iter().filter(|method| self.serves(method))
    }

    /// The plain method of that name, if it is served.
    pub fn method(&self, name: &str) -> Option<&'static ToolSpec> {
        plain_method(name).filter(|method| self.serves(method))
    }

    /// True if the flat tool of the same name is offered.
    fn serves(&self, method: &ToolSpec) -> bool {
        self.offered().any(|tool| is_flat(tool, method.name))
    }

    /// Why a plain method is not served. `None` if there is none of that name.
    pub fn unserved_reason(&self, name: &str) -> Option<&'static str> {
        plain_method(name).map(|_| {
            if self.tools.iter().any(|tool| is_flat(tool, name)) {
                "the server was started with --read-only"
            } else {
                "the server was started without --tools=flat"
            }
        })
    }

    /// Instructions for the agent. Some clients show only the first 512 characters.
    pub fn instructions(&self, folders: &[String]) -> String {
        if let Some(instructions) = &self.instructions {
            return instructions.clone();
        }
        let serves = |dialect| self.offered().any(|tool| tool.dialect == dialect);
        let flat = serves(Dialect::Flat).then(|| FLAT_INSTRUCTIONS.to_owned());
        let (below, named) = match folders.len() {
            1 => ("one folder", "folder is"),
            _ => ("some folders", "folders are"),
        };
        let text = serves(Dialect::Text).then(|| {
            let paths = folders.join(", ");
            format!("Text files below {below}, {TEXT_INSTRUCTIONS} The {named} {paths}")
        });
        let code = serves(Dialect::Code).then(|| CODE_INSTRUCTIONS.to_owned());
        flat.into_iter().chain(text).chain(code).collect::<Vec<_>>().join("\n\n")
    }
}

/// Not by `tools::find`, which knows all tools: a program that serves few of them would link them all, with the client of a
/// language model and its TLS.
fn plain_method(name: &str) -> Option<&'static ToolSpec> {
    tools::PLAIN.iter().find(|method| method.name == name)
}

fn is_flat(tool: &ToolSpec, name: &str) -> bool {
    tool.key() == (Flat::NAME, name)
}
