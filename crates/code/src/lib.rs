//! Source code: outlines, syntax errors, search, and the lines that a query is about.
//!
//! - [`language`]: the language of a file; [`tags`]: kinds of its parts, by `patterns`; [`tree`]: parsing, within
//!   limits
//! - [`outline`]: the named parts of a source file; [`references`]: uses of a name
//! - [`syntax`]: places of a file that do not parse
//! - [`search`]: lines that match a pattern
//! - [`words`], [`rank`]: files that a query is about
//! - [`context`]: all of these together: what a caller needs to see of a tree before it changes it
//!
//! Everything is computed from the files as they are now: there is no index. Lines count from 0.

pub mod context;
mod header;
mod heredoc;
pub mod language;
mod line_starts;
pub mod outline;
mod part_kind;
mod patterns;
pub mod rank;
pub mod references;
pub mod search;
pub mod syntax;
pub mod tags;
pub mod tree;
pub mod words;

pub use language::free_unused;
