//! The outline of a file that has a tree.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use grammars::Tree;
use tree_sitter::Node;

use super::{DEEPEST_SCOPE, Doc, Kind, MOST_PARTS, Part, plain, words};
use crate::language::{Comments, Language};
use crate::line_starts::LineStarts;
use crate::syntax;
use crate::tags::{Role, Tags};
use crate::tree::{self, Work};

/// Of what stands above a part so many comments and attributes are looked at.
const MOST_ABOVE: usize = 200;

/// The parts, and whether there are more. `None` when the text is not parsed.
pub(super) fn outline(
    language: &dyn Language,
    text: &str,
    stop: &dyn Fn() -> bool,
) -> Option<(Vec<Part>, bool)> {
    let parsed = tree::parse(language, text, stop)?;
    let tags = parsed.loaded.tags();
    let mut found = Found::look(tags, &parsed.tree, text, stop)?;
    let mut parts = found.parts(text, language.comments());
    let broken = broken(&parsed.tree);
    if tags.has_functions() && !broken.is_empty() {
        parts.extend(found.guessed(text, &parts, &broken, stop));
        parts.sort_by_key(|part| (part.bytes.start, Reverse(part.bytes.end)));
    }
    Some((parts, found.cut))
}

/// Where the grammar lost its way for longer than a line or two: what is there may be no longer what it seems.
fn broken(tree: &Tree) -> Vec<Range<usize>> {
    const LONG: usize = 100;
    let mut broken: Vec<Range<usize>> = Vec::new();
    syntax::visit_errors(tree, |node| {
        let bytes = node.byte_range();
        let is_inside = broken.last().is_some_and(|last| bytes.end <= last.end);
        if node.is_error() && bytes.len() > LONG && !is_inside {
            broken.push(bytes);
        }
        broken.len() < syntax::MOST_ERRORS
    });
    broken
}

/// What a query found.
#[derive(Default)]
struct Found {
    definitions: Vec<Definition>,
    /// Comments and attributes, in order.
    above: Vec<Above>,
    /// What a node is inside of, by its identity, when the two are one.
    outer: HashMap<usize, (usize, Range<usize>)>,
    cut: bool,
}

struct Definition {
    node: usize,
    /// `None`: only its name is of interest, for those inside.
    kind: Option<Kind>,
    bytes: Range<usize>,
    name: Range<usize>,
    head_end: Option<usize>,
    receiver: Option<Range<usize>>,
    doc: Option<Range<usize>>,
    /// Which pattern of the query it was.
    pattern: usize,
}

struct Above {
    bytes: Range<usize>,
    is_comment: bool,
}

impl Found {
    fn look(tags: &Tags, tree: &Tree, text: &str, stop: &dyn Fn() -> bool) -> Option<Self> {
        let mut found = Self::default();
        let mut work = Work::of(text, stop);
        let flow = tags.patterns.look(
            tree,
            text.as_bytes(),
            &mut || work.go_on(),
            &mut |captured, pattern| {
                if found.definitions.len() >= MOST_PARTS {
                    found.cut = true;
                    return ControlFlow::Break(());
                }
                found.add(
                    captured.iter().map(|(capture, node)| (tags.role(*capture), *node)),
                    pattern,
                );
                ControlFlow::Continue(())
            },
        );
        flow.is_continue().then_some(found)
    }

    /// Takes in what one pattern found.
    fn add<'tree>(&mut self, captures: impl Iterator<Item = (Role, Node<'tree>)>, pattern: usize) {
        let (mut part, mut name, mut head_end, mut receiver, mut doc) =
            (None, None, None, None, None);
        let (mut outer, mut inner) = (None, None);
        for (role, node) in captures {
            match role {
                Role::Part(kind) => part = Some((Some(kind), node)),
                Role::Scope => part = Some((None, node)),
                Role::Name => name = Some(node),
                Role::Body => head_end = Some(node.start_byte()),
                Role::Head => head_end = Some(node.end_byte()),
                Role::Receiver => receiver = Some(node.byte_range()),
                Role::Doc => doc = Some(node.byte_range()),
                Role::Comment | Role::Attribute => self
                    .above
                    .push(Above { bytes: node.byte_range(), is_comment: role == Role::Comment }),
                Role::Outer => outer = Some(node),
                Role::Inner => inner = Some(node),
                Role::Other => {}
            }
        }
        if let (Some(outer), Some(inner)) = (outer, inner) {
            self.outer.insert(inner.id(), (outer.id(), outer.byte_range()));
        }
        if let (Some((kind, node)), Some(name)) = (part, name) {
            let body = || node.child_by_field_name("body").map(|body| body.start_byte());
            let (name, qualifier) = declared(name);
            self.definitions.push(Definition {
                node: node.id(),
                kind,
                bytes: node.byte_range(),
                name: name_of(name),
                head_end: head_end.or_else(body),
                receiver: receiver.or(qualifier),
                doc,
                pattern,
            });
        }
    }

    fn parts(&mut self, text: &str, comments: Comments) -> Vec<Part> {
        let lines = LineStarts::of(text);
        self.above.sort_by_key(|above| above.bytes.start);
        let mut around: Vec<Around> = Vec::new();
        let mut parts = Vec::new();
        for definition in self.definitions_in_order() {
            end_what_is_over(&mut around, &definition.bytes);
            let own_scope = definition.kind.is_none();
            let name = &text[definition.name.clone()];
            let name = if own_scope { words::type_name(name) } else { words::name(name) };
            if name.is_empty() {
                continue;
            }
            let next = Around { name, kind: definition.kind, bytes: definition.bytes.clone() };
            if let Some(kind) = definition.kind {
                let mut part = self.part(text, comments, &lines, &definition, kind);
                part.name.clone_from(&next.name);
                part.kind = match definition.receiver {
                    Some(_) if kind == Kind::Function => Kind::Method,
                    _ => kind_inside(kind, around.last()),
                };
                part.scope = scope(text, &around, definition.receiver.as_ref());
                parts.push(part);
            }
            around.push(next);
        }
        parts
    }

    /// The pieces of `text` between its comments.
    fn without_comments<'a>(
        &self,
        text: &'a str,
        bytes: Range<usize>,
    ) -> impl Iterator<Item = &'a str> {
        let first = self.above.partition_point(|above| above.bytes.start < bytes.start);
        let inside =
            self.above[first..].iter().take_while(move |above| above.bytes.start < bytes.end);
        let comments = inside.filter(|above| above.is_comment).map(|above| above.bytes.clone());
        let mut at = bytes.start;
        comments.chain(std::iter::once(bytes.end..bytes.end)).map(move |comment| {
            let piece = &text[at..comment.start.max(at)];
            at = comment.end.max(at);
            piece
        })
    }

    /// What may be defined where the text is `broken`, beside the `parts` that are known.
    fn guessed(
        &self,
        text: &str,
        parts: &[Part],
        broken: &[Range<usize>],
        stop: &dyn Fn() -> bool,
    ) -> Vec<Part> {
        let known: HashSet<_> = parts.iter().map(|part| part.name_line).collect();
        let is_broken = |at: usize| {
            let behind = broken.partition_point(|range| range.start <= at);
            broken[..behind].last().is_some_and(|range| range.contains(&at))
        };
        let (mut guessed, _) = plain::outline(text, stop);
        guessed.retain(|part| {
            let at = part.name_bytes.start;
            let is_certain = !matches!(part.kind, Kind::Constant | Kind::Module | Kind::Macro);
            is_certain && is_broken(at) && !known.contains(&part.name_line) && !self.is_comment(at)
        });
        guessed.truncate(MOST_PARTS.saturating_sub(parts.len()));
        guessed
    }

    fn is_comment(&self, at: usize) -> bool {
        let behind = self.above.partition_point(|above| above.bytes.start <= at);
        let last = self.above[..behind].last();
        last.is_some_and(|above| above.is_comment && above.bytes.contains(&at))
    }

    /// Each definition once, widened to what is one with it, the outer ones before those inside.
    fn definitions_in_order(&mut self) -> Vec<Definition> {
        let mut definitions = std::mem::take(&mut self.definitions);
        definitions.sort_by_key(|definition| (definition.name.start, definition.pattern));
        definitions.dedup_by_key(|definition| definition.name.start);
        for definition in &mut definitions {
            let mut node = definition.node;
            while let Some((outer, bytes)) = self.outer.get(&node) {
                definition.bytes = bytes.clone();
                node = *outer;
            }
        }
        definitions.sort_by_key(|definition| {
            (definition.bytes.start, Reverse(definition.bytes.end), definition.name.start)
        });
        definitions
    }

    /// A part, as far as its definition tells.
    fn part(
        &self,
        text: &str,
        comments: Comments,
        lines: &LineStarts,
        definition: &Definition,
        kind: Kind,
    ) -> Part {
        let (start, above) = self.above(text, comments, definition.bytes.start);
        let end = definition.bytes.start + text[definition.bytes.clone()].trim_end().len();
        let head_end = definition.head_end.unwrap_or(end).clamp(definition.bytes.start, end);
        let doc = match &definition.doc {
            Some(bytes) => {
                let text = words::doc_string(&text[bytes.clone()]);
                Some(Doc { bytes: bytes.clone(), lines: lines.range(bytes), text })
            }
            None => above.map(|bytes| {
                let text = words::doc(&text[bytes.clone()]);
                Doc { lines: lines.range(&bytes), bytes, text }
            }),
        };
        let bytes = start..end.max(start);
        Part {
            name: String::new(),
            kind,
            scope: Vec::new(),
            lines: lines.range(&bytes),
            bytes,
            name_line: lines.line_of(definition.name.start),
            name_bytes: definition.name.clone(),
            signature: words::signature(
                self.without_comments(text, definition.bytes.start..head_end),
            ),
            doc,
        }
    }

    /// What stands directly above `start` and belongs to it: where its attributes begin, and what documents it.
    fn above(&self, text: &str, comments: Comments, start: usize) -> (usize, Option<Range<usize>>) {
        let (mut first, mut top) = (start, start);
        let mut doc: Option<Range<usize>> = None;
        let behind = self.above.partition_point(|above| above.bytes.start < start);
        for above in self.above[..behind].iter().rev().take(MOST_ABOVE) {
            let end = above.bytes.start + text[above.bytes.clone()].trim_end().len();
            if !touches(text, end, top) {
                break;
            }
            if above.is_comment {
                let comment = &text[above.bytes.start..end];
                let documents = comments.doc.iter().any(|mark| comment.starts_with(mark));
                if !documents || !begins_its_line(text, above.bytes.start) {
                    break;
                }
                let last = doc.map_or(end, |doc| doc.end);
                doc = Some(above.bytes.start..last);
            } else {
                first = above.bytes.start;
            }
            top = above.bytes.start;
        }
        (first, doc)
    }
}

/// What the next definition may be inside of.
struct Around {
    name: String,
    kind: Option<Kind>,
    bytes: Range<usize>,
}

/// What is written as one, as in `int a, b`, is beside each other and not inside.
fn end_what_is_over(around: &mut Vec<Around>, next: &Range<usize>) {
    while around.last().is_some_and(|last| last.bytes.end <= next.start || last.bytes == *next) {
        around.pop();
    }
}

/// A function inside a type, or inside what implements one, is a method of it.
fn kind_inside(kind: Kind, around: Option<&Around>) -> Kind {
    let has_methods = around.is_some_and(|around| around.kind.is_none_or(Kind::has_methods));
    if kind == Kind::Function && has_methods { Kind::Method } else { kind }
}

fn scope(text: &str, around: &[Around], receiver: Option<&Range<usize>>) -> Vec<String> {
    let receiver = receiver.map(|bytes| words::type_name(&text[bytes.clone()]));
    let names = around.iter().map(|around| &around.name).chain(&receiver);
    let deeper = (around.len() + usize::from(receiver.is_some())).saturating_sub(DEEPEST_SCOPE);
    names.skip(deeper).cloned().collect()
}

/// A private name of JavaScript, and a symbol of Ruby, is known without its mark; a conversion of C++ by its type.
fn name_of(node: Node<'_>) -> Range<usize> {
    let Range { start, end } = node.byte_range();
    match node.kind() {
        "private_property_identifier" | "simple_symbol" => (start + 1).min(end)..end,
        "operator_cast" => {
            start..node.child_by_field_name("type").map_or(end, |converted| converted.end_byte())
        }
        _ => start..end,
    }
}

/// What a declarator of C or C++ declares: the name is inside pointers, arrays, parameters and parentheses. Before it,
/// the type that it belongs to may be named.
fn declared(name: Node<'_>) -> (Node<'_>, Option<Range<usize>>) {
    let (mut node, mut qualifier) = (name, None::<Range<usize>>);
    loop {
        let kind = node.kind();
        if kind == "operator_cast" {
            return (node, qualifier);
        }
        let inside = node.child_by_field_name("declarator").or_else(|| match kind {
            // `(MACRO name)`: what is not understood is the name.
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
            None => return (node, qualifier),
        }
    }
}

/// Nothing but blanks and one line break is between the two.
fn touches(text: &str, end: usize, start: usize) -> bool {
    if end > start || text[..start].trim_end().len() > end {
        return false;
    }
    text::lines::count_ends(&text.as_bytes()[end..start]) <= 1
}

/// A comment behind something else is about that.
fn begins_its_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', '\r'])
}
