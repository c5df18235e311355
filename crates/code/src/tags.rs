//! Patterns that find the named parts in the syntax trees of a language, and the roles of their captures.
//!
//! - `@function`, `@struct` and every other [`PartKind`]: a part; `@name` is its name
//! - `@scope`: a node that is no part itself, but whose `@name` is around the parts inside
//! - `@receiver`: the type that a method belongs to, when the method is not inside it
//! - `@body`: the signature of a part ends before this, when that is not its field `body`; `@head`: it ends with this
//! - `@doc`: the documentation of the part, when it is not the comment above
//! - `@comment`, `@attribute`: nodes that may be above a part and belong to it
//! - `@outer`, `@inner`: a definition of the inner node is widened to all of the outer node
//! - `@global`: a part only outside of every `@block`, since declarations inside one are of no interest elsewhere;
//!   `@open`: a node that is no block, although it looks like one
//!
//! No code asks a node for its parent or its sibling: that takes time in proportion to the width of the file.

use std::sync::Arc;

use grammars::Grammar;

use crate::part_kind::PartKind;
use crate::patterns::TreePatterns;

/// Role of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureRole {
    Part(PartKind),
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
    /// Used only in a condition.
    Other,
}

/// The patterns of a language.
#[derive(Debug)]
pub struct Tags {
    pub(crate) patterns: TreePatterns,
    /// Roles by the number of a capture.
    roles: Vec<CaptureRole>,
}

impl Tags {
    /// Reads `patterns`. An error says in words what is wrong with them.
    pub fn new(grammar: &Arc<Grammar>, patterns: &str) -> Result<Self, String> {
        let patterns = TreePatterns::read(grammar, patterns)?;
        let roles = patterns.captures().iter().map(|name| role_of(name)).collect();
        Ok(Self { patterns, roles })
    }

    /// True if the language has functions, that is, if it is code.
    pub(crate) fn has_functions(&self) -> bool {
        self.roles.contains(&CaptureRole::Part(PartKind::Function))
            || self.roles.contains(&CaptureRole::Part(PartKind::Method))
    }

    pub(crate) fn role(&self, capture: usize) -> CaptureRole {
        self.roles.get(capture).copied().unwrap_or(CaptureRole::Other)
    }
}

fn role_of(capture: &str) -> CaptureRole {
    match capture {
        "scope" => CaptureRole::Scope,
        "name" => CaptureRole::Name,
        "receiver" => CaptureRole::Receiver,
        "body" => CaptureRole::Body,
        "head" => CaptureRole::Head,
        "doc" => CaptureRole::Doc,
        "comment" => CaptureRole::Comment,
        "attribute" => CaptureRole::Attribute,
        "outer" => CaptureRole::Outer,
        "inner" => CaptureRole::Inner,
        "global" => CaptureRole::Global,
        "block" => CaptureRole::Block,
        "open" => CaptureRole::Open,
        kind => PartKind::of(kind).map_or(CaptureRole::Other, CaptureRole::Part),
    }
}
