//! The patterns that find the named parts in a language's trees, and what its captures mean.
//!
//! - `@function`, `@struct` and every other [`Kind`]: a part; `@name` is its name
//! - `@scope`: what is no part itself, but whose `@name` is around those inside
//! - `@receiver`: the type that a method belongs to, when the method does not stand inside it
//! - `@body`: where the head of a part ends, when that is not its field `body`; `@head`: what it ends with
//! - `@doc`: what documents the part, when it is not the comment above
//! - `@comment`, `@attribute`: what may stand above a part and belong to it
//! - `@outer`, `@inner`: what is about the inner one is about all of the outer one
//! - `@global`: a part only outside of every `@block`, since what is declared inside is of no interest elsewhere;
//!   `@open`: no block, although it looks like one
//!
//! Nothing asks a node for its parent or its sibling: that takes as long as the file is wide.

use std::sync::Arc;

use grammars::Grammar;

use crate::part_kind::Kind;
use crate::patterns::Patterns;

/// What a capture is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Part(Kind),
    Scope,
    Name,
    Receiver,
    Body,
    Head,
    Doc,
    Comment,
    Attribute,
    Outer,
    Inner,
    Global,
    Block,
    Open,
    /// For a condition.
    Other,
}

/// The patterns of a language.
#[derive(Debug)]
pub struct Tags {
    pub(crate) patterns: Patterns,
    /// By the number of a capture.
    roles: Vec<Role>,
}

impl Tags {
    /// What is wrong with `patterns`, in words, if anything is.
    pub fn new(grammar: &Arc<Grammar>, patterns: &str) -> Result<Self, String> {
        let patterns = Patterns::read(grammar, patterns)?;
        let roles = patterns.captures().iter().map(|name| role(name)).collect();
        Ok(Self { patterns, roles })
    }

    /// Whether the language has functions: whether it is code.
    pub(crate) fn has_functions(&self) -> bool {
        self.roles.contains(&Role::Part(Kind::Function))
            || self.roles.contains(&Role::Part(Kind::Method))
    }

    pub(crate) fn role(&self, capture: usize) -> Role {
        self.roles.get(capture).copied().unwrap_or(Role::Other)
    }
}

fn role(capture: &str) -> Role {
    match capture {
        "scope" => Role::Scope,
        "name" => Role::Name,
        "receiver" => Role::Receiver,
        "body" => Role::Body,
        "head" => Role::Head,
        "doc" => Role::Doc,
        "comment" => Role::Comment,
        "attribute" => Role::Attribute,
        "outer" => Role::Outer,
        "inner" => Role::Inner,
        "global" => Role::Global,
        "block" => Role::Block,
        "open" => Role::Open,
        kind => Kind::of(kind).map_or(Role::Other, Role::Part),
    }
}
