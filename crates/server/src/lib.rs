//! The transports: what a client says becomes a call of a tool, what the tool answers goes back.
//!
//! `rmcp` lives here and nowhere else. A call passes `stdio` (a line), `wire` (a message), `calls` (its turn, a
//! thread, the log) and comes back through `mcp` (the shape of the answer) and `fault` (the codes).

mod arguments;
mod aside;
mod at_once;
mod calls;
mod confirm;
mod desk;
pub mod direct;
mod discard;
mod door;
mod drafts;
mod endpoint;
mod events;
pub mod fault;
mod flights;
mod folders;
pub mod hosted;
pub mod http;
mod journal;
mod lines;
mod log;
mod mcp;
pub mod memory;
mod options;
mod queue;
mod random;
mod reader;
mod resources;
mod rest;
mod room;
mod sessions;
pub mod signal;
pub mod stdio;
pub mod terminal;
mod unstalled;
mod watch;
mod wire;
pub mod witness;
mod writer;

pub use calls::Calls;
pub use confirm::Confirm;
pub use door::AllowedHost;
pub use hosted::Hosted;
pub use log::{Level, Log};
pub use options::{Options, Structured, ToolErrors};
pub use witness::Witness;
