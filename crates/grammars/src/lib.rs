//! The parsers of twenty languages, with their tables packed until they are needed.
//!
//! A parser consists mostly of tables: the twenty here have 26 MB of them. The build script takes the tables out of the
//! parsers' sources, turns the functions that find tokens into tables as well, and packs all of them; a little code is
//! left. [`PackedGrammar::unpack`] makes a [`Grammar`] of both on the heap, tables included, which is freed when its
//! last `Arc` is dropped.
//!
//! tree-sitter does not know of languages that are freed: it expects them to live for ever. So everything made with a
//! grammar is only returned together with an `Arc` of it, or borrowed from something that has one. Only `language()`,
//! of a node or of anything else, would bypass that: `clippy.toml` disallows it.

mod grammar;
mod lex;
mod memory;
mod unpack;

use grammar::MakeLanguage;
pub use grammar::{Grammar, Tree};
pub use languages::*;
use unpack::Layout;

/// A parser as the program contains it: its tables are packed.
#[derive(Debug)]
pub struct PackedGrammar {
    name: &'static str,
    layout: Layout,
    /// Number of names of symbols and fields.
    names: usize,
    bytes: &'static [u8],
    make: MakeLanguage,
}

impl PackedGrammar {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Size of the packed tables in bytes.
    pub fn packed_size(&self) -> usize {
        self.bytes.len()
    }
}

#[expect(unsafe_code, reason = "what makes each of them is C")]
#[expect(clippy::unreadable_literal, reason = "the build script wrote it")]
mod languages {
    use std::ffi::{c_char, c_void};

    use crate::PackedGrammar;
    use crate::lex::LexFn;
    use crate::unpack::{Automaton, Layout, Tokens};

    include!(concat!(env!("OUT_DIR"), "/languages.rs"));
}
