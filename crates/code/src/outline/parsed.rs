//! Outlines of files that have a syntax tree.

mod c_family;

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use grammars::Tree;
use tree_sitter::Node;

use super::{Doc, PARTS_MAX, Part, PartKind, SCOPE_DEPTH_MAX, display, guessed};
use crate::language::{CommentSyntax, Language};
use crate::line_starts::LineStarts;
use crate::syntax;
use crate::tags::{CaptureRole, Tags};
use crate::tree::{self, WorkLimit};
use c_family::{DeclaredName, Surroundings, declared_name, is_doubtful, kind_of_function};

/// Most comments and attributes above a part that are considered.
const LEADING_NODES_MAX: usize = 200;

/// Returns the parts, and true if there are more. `None` if the text is not parsed.
pub(super) fn outline(
    language: &dyn Language,
    text: &str,
    stop: &dyn Fn() -> bool,
) -> Option<(Vec<Part>, bool)> {
    let parsed = tree::parse(language, text, stop)?;
    let tags = parsed.loaded.tags();
    let mut found = Captures::find(tags, &parsed.tree, text, stop)?;
    let broken = error_ranges(&parsed.tree);
    let mut parts = found.parts(text, language, &broken);
    if tags.has_functions() && !broken.is_empty() {
        let guess = GuessFilter { text, broken: &broken, only_keywords: has_keywords(language) };
        parts.extend(found.guessed(&guess, &parts, stop));
        text::sort_by_numbers(&mut parts, |part| outer_first(&part.bytes));
    }
    Some((parts, found.cut))
}

/// Sort key: by the start, and at the same start the part that contains the others first.
fn outer_first(bytes: &Range<usize>) -> (usize, usize) {
    (bytes.start, usize::MAX - bytes.end)
}

/// Length in bytes of an error range of a line or two. In a longer one the text may be no longer what it seems, so all
/// guessed definitions count; in a shorter one only those that begin with a keyword do.
const LONG_ERROR_BYTES: usize = 100;

/// Error ranges: bytes that the grammar could not parse.
fn error_ranges(tree: &Tree) -> Vec<Range<usize>> {
    let mut broken: Vec<Range<usize>> = Vec::new();
    syntax::visit_errors(tree, |node| {
        let bytes = node.byte_range();
        let is_inside = broken.last().is_some_and(|last| bytes.end <= last.end);
        if node.is_error() && !bytes.is_empty() && !is_inside {
            broken.push(bytes);
        }
        broken.len() < syntax::ERRORS_MAX
    });
    broken
}

/// Captures that the patterns found.
#[derive(Default)]
struct Captures {
    definitions: Vec<Definition>,
    /// Comments and attributes, in order.
    above: Vec<LeadingNode>,
    /// Outer node and its bytes, by the id of an inner node, if the two are one definition.
    outer: HashMap<usize, (usize, Range<usize>)>,
    /// Blocks, whose declarations are not global: the outermost ones, in order.
    blocks: Vec<Range<usize>>,
    /// Ids of nodes that only look like blocks.
    open: HashSet<usize>,
    cut: bool,
}

struct Definition {
    node: usize,
    /// `None` for a scope: only its name matters, for the parts inside.
    kind: Option<PartKind>,
    bytes: Range<usize>,
    name: Range<usize>,
    head_end: Option<usize>,
    receiver: Option<Range<usize>>,
    doc: Option<Range<usize>>,
    /// True for a part that is one only outside of every block.
    is_global: bool,
    /// True if all of it parses.
    is_whole: bool,
    /// Number of the pattern that matched.
    pattern: usize,
}

struct LeadingNode {
    bytes: Range<usize>,
    is_comment: bool,
}

impl Captures {
    fn find(tags: &Tags, tree: &Tree, text: &str, stop: &dyn Fn() -> bool) -> Option<Self> {
        let mut found = Self::default();
        let mut work = WorkLimit::of(text, stop);
        let flow = tags.patterns.for_each_match(
            tree,
            text.as_bytes(),
            &mut || work.check(),
            &mut |captured, pattern| {
                if found.definitions.len() >= PARTS_MAX {
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

    /// Adds the captures of one match.
    fn add<'tree>(
        &mut self,
        captures: impl Iterator<Item = (CaptureRole, Node<'tree>)>,
        pattern: usize,
    ) {
        let (mut part, mut name, mut head_end, mut receiver, mut doc) =
            (None, None, None, None, None);
        let (mut outer, mut inner, mut is_global) = (None, None, false);
        for (role, node) in captures {
            match role {
                CaptureRole::Part(kind) => part = Some((Some(kind), node)),
                CaptureRole::Scope => part = Some((None, node)),
                CaptureRole::Name => name = Some(node),
                CaptureRole::Body => head_end = Some(node.start_byte()),
                CaptureRole::Head => head_end = Some(node.end_byte()),
                CaptureRole::Receiver => receiver = Some(node.byte_range()),
                CaptureRole::Doc => doc = Some(node.byte_range()),
                CaptureRole::Comment | CaptureRole::Attribute => self.above.push(LeadingNode {
                    bytes: node.byte_range(),
                    is_comment: role == CaptureRole::Comment,
                }),
                CaptureRole::Outer => outer = Some(node),
                CaptureRole::Inner => inner = Some(node),
                CaptureRole::Global => is_global = true,
                CaptureRole::Block => self.add_block(node),
                CaptureRole::Open => {
                    self.open.insert(node.id());
                }
                CaptureRole::Other => {}
            }
        }
        if let (Some(outer), Some(inner)) = (outer, inner) {
            self.outer.insert(inner.id(), (outer.id(), outer.byte_range()));
        }
        if let (Some((kind, node)), Some(name)) = (part, name)
            && !(is_global && self.is_in_block(node.start_byte()))
        {
            let body = || node.child_by_field_name("body").map(|body| body.start_byte());
            let DeclaredName { name, qualifier, is_function } = declared_name(name);
            self.definitions.push(Definition {
                node: node.id(),
                kind: kind.map(|kind| if is_function { kind_of_function(kind) } else { kind }),
                bytes: node.byte_range(),
                name: name_of(name),
                head_end: head_end.or_else(body),
                receiver: receiver.or(qualifier),
                doc,
                is_global,
                is_whole: !node.has_error(),
                pattern,
            });
        }
    }

    /// Adds a block. The tree is walked from the outside in, so that a block is known before what is declared in it.
    fn add_block(&mut self, node: Node<'_>) {
        let bytes = node.byte_range();
        let is_inside = self.blocks.last().is_some_and(|last| bytes.end <= last.end);
        if !is_inside && !self.open.contains(&node.id()) {
            self.blocks.push(bytes);
        }
    }

    fn is_in_block(&self, at: usize) -> bool {
        let behind = self.blocks.partition_point(|block| block.start <= at);
        self.blocks[..behind].last().is_some_and(|block| block.contains(&at))
    }

    /// Returns the parts; `broken` are the ranges that do not parse.
    fn parts(&mut self, text: &str, language: &dyn Language, broken: &[Range<usize>]) -> Vec<Part> {
        let lines = LineStarts::of(text);
        let comments = language.comments();
        let is_c = matches!(language.name(), "c" | "cpp");
        text::sort_by_numbers(&mut self.above, |above| (above.bytes.start, 0));
        let mut around: Vec<EnclosingDefinition> = Vec::new();
        let mut parts = Vec::new();
        for definition in self.definitions_in_order() {
            close_ended(&mut around, &definition);
            let own_scope = definition.kind.is_none();
            let name = &text[definition.name.clone()];
            let name = if own_scope { display::type_name(name) } else { display::name(name) };
            let surroundings = if around.is_empty() && !broken.is_empty() {
                Surroundings::Unknown
            } else {
                Surroundings::Known
            };
            if name.is_empty() || (is_c && is_doubtful(text, &definition, &name, surroundings)) {
                continue;
            }
            let next = EnclosingDefinition {
                qualifier: qualifier(text, &definition),
                name,
                kind: definition.kind,
                bytes: definition.bytes.clone(),
                is_global: definition.is_global,
            };
            if let Some(kind) = definition.kind {
                let mut part = self.part(text, comments, &lines, &definition, kind);
                part.name.clone_from(&next.name);
                part.scope = scope(&around, &next);
                part.kind = match definition.receiver {
                    Some(_) if kind == PartKind::Function => PartKind::Method,
                    _ => kind_inside(kind, &definition, around.last()),
                };
                parts.push(part);
            }
            around.push(next);
        }
        parts
    }

    /// Returns the pieces of `text` in `bytes` between its comments.
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

    /// Returns guessed definitions in error ranges, besides the known `parts`.
    fn guessed(
        &self,
        guess: &GuessFilter<'_>,
        parts: &[Part],
        stop: &dyn Fn() -> bool,
    ) -> Vec<Part> {
        let known: HashSet<_> = parts.iter().map(|part| part.name_line).collect();
        let (mut guessed, _) = guessed::outline(guess.text, stop);
        guessed.retain(|part| {
            let is_new = !known.contains(&part.name_line);
            is_new && guess.accepts(part) && !self.is_comment(part.name_bytes.start)
        });
        guessed.truncate(PARTS_MAX.saturating_sub(parts.len()));
        guessed
    }

    fn is_comment(&self, at: usize) -> bool {
        let behind = self.above.partition_point(|above| above.bytes.start <= at);
        let last = self.above[..behind].last();
        last.is_some_and(|above| above.is_comment && above.bytes.contains(&at))
    }

    /// Returns each definition once, widened to the outer node it is one with, the outer ones before those inside.
    fn definitions_in_order(&mut self) -> Vec<Definition> {
        let mut definitions = std::mem::take(&mut self.definitions);
        text::sort_by_numbers(&mut definitions, |definition| {
            (definition.name.start, definition.pattern)
        });
        definitions.dedup_by_key(|definition| definition.name.start);
        for definition in &mut definitions {
            let mut node = definition.node;
            while let Some((outer, bytes)) = self.outer.get(&node) {
                definition.bytes = bytes.clone();
                node = *outer;
            }
        }
        text::sort_by_numbers(&mut definitions, |definition| outer_first(&definition.bytes));
        definitions
    }

    /// Makes a part of its definition, without its name and the names around it.
    fn part(
        &self,
        text: &str,
        comments: CommentSyntax,
        lines: &LineStarts,
        definition: &Definition,
        kind: PartKind,
    ) -> Part {
        let (start, above) = self.above(text, comments, definition.bytes.start);
        let end = definition.bytes.start + text[definition.bytes.clone()].trim_end().len();
        let head_end = definition.head_end.unwrap_or(end).clamp(definition.bytes.start, end);
        let doc = match &definition.doc {
            Some(bytes) => {
                let text = display::doc_string(&text[bytes.clone()]);
                Some(Doc { bytes: bytes.clone(), lines: lines.range(bytes), text })
            }
            None => above.map(|bytes| {
                let text = display::doc(&text[bytes.clone()]);
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
            signature: display::signature(
                self.without_comments(text, definition.bytes.start..head_end),
            ),
            doc,
        }
    }

    /// Finds the attributes and comments directly above `start` that belong to it. Returns where the attributes begin,
    /// and the documentation.
    fn above(
        &self,
        text: &str,
        comments: CommentSyntax,
        start: usize,
    ) -> (usize, Option<Range<usize>>) {
        let (mut first, mut top) = (start, start);
        let mut doc: Option<Range<usize>> = None;
        let behind = self.above.partition_point(|above| above.bytes.start < start);
        for above in self.above[..behind].iter().rev().take(LEADING_NODES_MAX) {
            let end = above.bytes.start + text[above.bytes.clone()].trim_end().len();
            if !touches(text, end, top) {
                break;
            }
            if above.is_comment {
                let comment = &text[above.bytes.start..end];
                let runs_it = above.bytes.start == 0 && comment.starts_with("#!");
                let documents = comments.doc.iter().any(|mark| comment.starts_with(mark));
                if runs_it || !documents || !begins_its_line(text, above.bytes.start) {
                    break;
                }
                let last = doc.map_or(end, |doc| doc.end);
                doc = Some(above.bytes.start..last);
            } else {
                first = above.bytes.start;
            }
            top = above.bytes.start;
        }
        (first, doc.filter(|doc| !display::is_licence(text, doc)))
    }
}

/// Filter of guessed definitions.
struct GuessFilter<'a> {
    text: &'a str,
    broken: &'a [Range<usize>],
    only_keywords: bool,
}

impl GuessFilter<'_> {
    fn accepts(&self, part: &Part) -> bool {
        let at = part.name_bytes.start;
        let behind = self.broken.partition_point(|range| range.start <= at);
        let Some(range) = self.broken[..behind].last().filter(|range| range.contains(&at)) else {
            return false;
        };
        let is_certain =
            !matches!(part.kind, PartKind::Constant | PartKind::Module | PartKind::Macro);
        let needs_keyword = self.only_keywords || range.len() <= LONG_ERROR_BYTES;
        is_certain
            && (!needs_keyword || guessed::begins_with_keyword(&self.text[part.bytes.start..]))
    }
}

/// True if every definition begins with a keyword: text that looks like one by its parameters alone is a call.
fn has_keywords(language: &dyn Language) -> bool {
    matches!(language.name(), "go" | "kotlin" | "python" | "ruby" | "rust" | "swift")
}

/// A definition that the next one may be inside of.
struct EnclosingDefinition {
    /// Names before its own, as in `module A::B`.
    qualifier: Vec<String>,
    name: String,
    kind: Option<PartKind>,
    bytes: Range<usize>,
    is_global: bool,
}

/// Removes the definitions that the next one is not inside of. Definitions that are written as one, as in `int a, b`,
/// are beside each other, and so is the type in `struct A { … } b`.
fn close_ended(around: &mut Vec<EnclosingDefinition>, next: &Definition) {
    let is_type = next.kind.is_some_and(PartKind::has_methods);
    let is_over = |last: &EnclosingDefinition| {
        last.bytes.end <= next.bytes.start
            || last.bytes == next.bytes
            || (last.is_global && is_type)
    };
    while around.last().is_some_and(is_over) {
        around.pop();
    }
}

/// Kind of a definition inside another one: a function inside a type, or inside an implementation of one, is a method,
/// and a variable is a field.
fn kind_inside(
    kind: PartKind,
    definition: &Definition,
    around: Option<&EnclosingDefinition>,
) -> PartKind {
    let has_methods = around.is_some_and(|around| around.kind.is_none_or(PartKind::has_methods));
    match kind {
        PartKind::Function if has_methods => PartKind::Method,
        PartKind::Constant if has_methods && definition.is_global => PartKind::Field,
        _ => kind,
    }
}

fn scope(around: &[EnclosingDefinition], part: &EnclosingDefinition) -> Vec<String> {
    let outwards = around.iter().rev();
    let outwards =
        outwards.flat_map(|one| [&one.name].into_iter().chain(one.qualifier.iter().rev()));
    let nearest = part.qualifier.iter().rev().chain(outwards).take(SCOPE_DEPTH_MAX);
    let mut names: Vec<_> = nearest.cloned().collect();
    names.reverse();
    names
}

/// Returns the names that a definition is qualified with: all of them for a type, for a function the type it belongs
/// to.
fn qualifier(text: &str, definition: &Definition) -> Vec<String> {
    let Some(bytes) = definition.receiver.clone() else { return Vec::new() };
    let written = &text[bytes];
    let is_type =
        definition.kind.is_some_and(|kind| kind.has_methods() || kind == PartKind::Module);
    if is_type && !written.contains('<') {
        let names = written.split("::").map(display::name);
        return names.filter(|name| !name.is_empty()).collect();
    }
    vec![display::type_name(written)]
}

/// Bytes of a name: a private name of JavaScript and a symbol of Ruby without their mark; a conversion of C++ with its
/// type.
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

/// True if only whitespace with at most one line break is between the two.
fn touches(text: &str, end: usize, start: usize) -> bool {
    if end > start || text[..start].trim_end().len() > end {
        return false;
    }
    text::lines::count_ends(&text.as_bytes()[end..start]) <= 1
}

/// True if a comment is the first in its line. One after something else is about that.
fn begins_its_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', '\r'])
}
