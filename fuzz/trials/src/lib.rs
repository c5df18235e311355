//! What must be true of the product whatever bytes it is given.
//!
//! A trial takes bytes, makes a case of them, and panics if the product does what it must not. The fuzzer looks for such
//! bytes (`cargo xtask fuzz`); `cargo test` tries those again that are kept in `fuzz/corpus`.
//!
//! - `parts`: how bytes become the texts and numbers of a case
//! - [`decode`], [`line_edits`], [`string_edits`], [`near_misses`], [`diffs`]: `text`, against its simplest models
//! - [`outlines`]: `code`, in every language
//! - [`line_protocol`], [`http_bodies`]: `server`, with all its tools, in a folder of its own

mod decode;
mod diffs;
mod http_bodies;
mod line_edits;
#[cfg(target_os = "linux")]
mod line_protocol;
mod near_misses;
mod outlines;
mod parts;
mod patch;
mod scratch;
mod serving;
mod string_edits;

pub use decode::decode;
pub use diffs::{diffs, diffs_by_git};
pub use http_bodies::http_bodies;
pub use line_edits::line_edits;
#[cfg(target_os = "linux")]
pub use line_protocol::line_protocol;
pub use near_misses::near_misses;
pub use outlines::outlines;
pub use string_edits::string_edits;

// The model of line edits is a module of `text`, and looks for it there.
use text::EditError;
