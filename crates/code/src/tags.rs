//! The query that finds the named parts in a language's trees, and what its captures mean.
//!
//! - `@function`, `@struct` and every other [`Kind`]: a part; `@name` is its name
//! - `@scope`: what is no part itself, but whose `@name` is around those inside
//! - `@receiver`: the type that a method belongs to, when the method does not stand inside it
//! - `@body`: where the head of a part ends, when that is not its field `body`; `@head`: what it ends with
//! - `@doc`: what documents the part, when it is not the comment above
//! - `@comment`, `@attribute`: what may stand above a part and belong to it
//! - `@outer`, `@inner`: what is about the inner one is about all of the outer one
//!
//! Nothing asks a node for its parent or its sibling: that takes as long as the file is wide.

use std::sync::Arc;

use grammars::{Grammar, Query};
use tree_sitter::QueryError;

use crate::outline::Kind;

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
    /// For a predicate of the query.
    Other,
}

/// A compiled query.
#[derive(Debug)]
pub struct Tags {
    pub(crate) query: Query,
    /// By the number of a capture.
    roles: Vec<Role>,
}

impl Tags {
    pub fn new(grammar: &Arc<Grammar>, query: &str) -> Result<Self, QueryError> {
        let query = grammar.query(query)?;
        let roles = query.capture_names().iter().map(|name| role(name)).collect();
        Ok(Self { query, roles })
    }

    /// Whether the language has functions: whether it is code.
    pub(crate) fn has_functions(&self) -> bool {
        self.roles.contains(&Role::Part(Kind::Function))
            || self.roles.contains(&Role::Part(Kind::Method))
    }

    pub(crate) fn role(&self, capture: u32) -> Role {
        usize::try_from(capture)
            .ok()
            .and_then(|at| self.roles.get(at))
            .copied()
            .unwrap_or(Role::Other)
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
        kind => Kind::of(kind).map_or(Role::Other, Role::Part),
    }
}
