//! Source code: its outlines, its syntax, where something is in it.
//!
//! - [`language`]: which language a file is in; [`tags`]: what a part is in it, by `patterns`; [`tree`]: parsing, within bounds
//! - [`outline`]: the named parts of a source file; [`references`]: where a name is used
//! - [`syntax`]: where a file does not parse
//! - [`search`]: lines that match
//! - [`words`], [`rank`]: which files a question is about
//! - [`context`]: all of these together: what should be seen of a tree before it is changed
//!
//! Everything is answered from the files as they are now: there is no index. Lines count from 0.

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

pub use language::give_back;
