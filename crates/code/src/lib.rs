//! Source code: its outlines, its syntax, where something is in it.
//!
//! - [`language`]: which language a file is in
//! - [`outline`]: the named parts of a source file
//! - [`syntax`]: where a file does not parse
//! - [`search`]: lines that match
//! - [`words`], [`rank`]: which files a question is about
//!
//! Everything is answered from the files as they are now: there is no index. Lines count from 0.

pub mod language;
pub mod outline;
pub mod rank;
pub mod search;
pub mod syntax;
pub mod words;
