//! The parsers of languages, their tables packed until they are needed.
//!
//! A parser is tables for the most part: the twenty here are 26 MB of them. The build script takes the tables out of the
//! parsers' sources, makes more of the functions that find tokens, and packs them; what is left is a little code.
//! [`Packed::unpack`] makes a [`Grammar`] of both, which is on the heap, tables and all, and goes when nobody has it any
//! more.
//!
//! The library that parses knows nothing of tables that go: for it a language is there for ever. So what is made with
//! a grammar is only given out together with a share of it, or borrowed from what has one. Only `language()`, of a node
//! or of anything else, would lead around that: it is in `clippy.toml`, among what is not to be called.

mod grammar;
mod lex;
mod memory;
mod unpack;

use grammar::Make;
pub use grammar::{Grammar, Tree};
pub use languages::*;
use unpack::Layout;

/// A parser as it is in the program.
#[derive(Debug)]
pub struct Packed {
    name: &'static str,
    layout: Layout,
    /// How many names its symbols and fields have.
    names: usize,
    bytes: &'static [u8],
    make: Make,
}

impl Packed {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How many bytes its tables take in the program.
    pub fn packed_size(&self) -> usize {
        self.bytes.len()
    }
}

#[expect(unsafe_code, reason = "what makes each of them is C")]
#[expect(clippy::unreadable_literal, reason = "the build script wrote it")]
mod languages {
    use std::ffi::{c_char, c_void};

    use crate::Packed;
    use crate::lex::Lex;
    use crate::unpack::{Automaton, Layout, Tokens};

    include!(concat!(env!("OUT_DIR"), "/languages.rs"));
}
