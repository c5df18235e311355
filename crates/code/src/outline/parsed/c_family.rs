//! Definitions in C and C++: a declarator has its name deep inside, and macros may look like definitions.

use std::ops::Range;

use tree_sitter::Node;

use super::{Definition, PartKind, display};

/// Knowledge of the text around a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Surroundings {
    Known,
    /// No definition is around it, in a text with errors: its real surroundings may not have been parsed.
    Unknown,
}

/// True if a seeming definition in C or C++ may be part of something that does not parse: macros, or statements of a
/// function whose head does not parse.
pub(super) fn is_doubtful(
    text: &str,
    definition: &Definition,
    name: &str,
    surroundings: Surroundings,
) -> bool {
    const EXAMINED_BYTES_MAX: usize = 2_000;
    let is_macro = definition.kind == Some(PartKind::Macro);
    // A name in C may be a keyword of C++, as long as all of it parses.
    let is_word = match name {
        "class" | "friend" | "template" | "typename" | "using" => !definition.is_whole,
        _ => display::is_c_keyword(name) && !(is_macro && definition.is_whole),
    };
    if is_word {
        return true;
    }
    if !definition.is_global {
        return false;
    }
    let Range { start, end } = definition.bytes;
    let is_function = definition.kind == Some(PartKind::Function);
    let written = &text[start..if is_function { end } else { definition.name.start }];
    let written = written.trim_end_matches(';');
    let is_several = written[..written.floor_char_boundary(EXAMINED_BYTES_MAX)].contains(';');
    let seems_macro = !name.contains(|c: char| c.is_lowercase());
    let is_indented = text[..start].ends_with([' ', '\t']);
    (!definition.is_whole && (is_several || (seems_macro && !is_function)))
        || (!is_function && surroundings == Surroundings::Unknown && is_indented)
}

/// Kind of a function declaration in C or C++, which looks like the declaration of a variable.
pub(super) fn kind_of_function(kind: PartKind) -> PartKind {
    match kind {
        PartKind::Constant => PartKind::Function,
        PartKind::Field => PartKind::Method,
        _ => kind,
    }
}

/// Declaration in a declarator of C or C++.
pub(super) struct DeclaredName<'tree> {
    pub name: Node<'tree>,
    /// Type that it belongs to, if that is named before it.
    pub qualifier: Option<Range<usize>>,
    pub is_function: bool,
}

/// Finds the name inside pointers, arrays, parameters and parentheses. The node directly around it tells what it is:
/// `*a()` is a function, `(*a)()` is a pointer.
pub(super) fn declared_name(name: Node<'_>) -> DeclaredName<'_> {
    let (mut node, mut qualifier) = (name, None::<Range<usize>>);
    let mut is_function = false;
    loop {
        let kind = node.kind();
        match kind {
            "operator_cast" => return DeclaredName { name: node, qualifier, is_function },
            "function_declarator" => is_function = true,
            "pointer_declarator" | "reference_declarator" | "array_declarator" => {
                is_function = false;
            }
            _ => {}
        }
        let inside = node.child_by_field_name("declarator").or_else(|| match kind {
            // In `(MACRO name)` the node that does not parse is the name.
            "parenthesized_declarator" => (0..2).rev().find_map(|at| node.named_child(at)),
            "ERROR" | "attributed_declarator" | "reference_declarator" => node.named_child(0),
            "template_function" | "template_method" | "template_type" => {
                node.child_by_field_name("name")
            }
            "qualified_identifier" => {
                let scope = node.child_by_field_name("scope").map(|scope| scope.byte_range());
                let start = qualifier.as_ref().map(|outer| outer.start);
                qualifier = scope.map(|scope| start.unwrap_or(scope.start)..scope.end);
                node.child_by_field_name("name")
            }
            _ => None,
        });
        match inside {
            Some(inside) => node = inside,
            None => return DeclaredName { name: node, qualifier, is_function },
        }
    }
}
