//! The server: transports, protocols, and the life of a call.
//!
//! `stdio` and `http` accept messages. `mcp` and `plain` know what they mean. `call` runs a tool: its turn, its thread, its
//! memory, its log line. `confirm` asks a person or an observer first, `generation` a language model. `rmcp` is used here
//! and in no other crate.

mod activity;
mod call;
mod cancel;
mod client_channel;
mod confirm;
pub mod error_codes;
mod generation;
pub mod http;
pub mod idle_memory;
pub mod in_process;
mod json_arguments;
mod lock;
mod log;
mod mcp;
mod memory_budget;
mod message;
pub mod observer;
mod options;
mod outgoing;
mod plain;
mod random;
pub mod signal;
pub mod stdio;
pub mod terminal;
mod usage_watch;

pub use call::Calls;
pub use http::access::AllowedHost;
pub use http::loopback::LoopbackServer;
pub use log::{Level, Log};
pub use options::{Confirm, Options, Structured, ToolErrors};
