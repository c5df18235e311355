//! Patterns of syntax trees: a subset of the query language of tree-sitter, with a matcher of our own.
//!
//! `tree_sitter::Query` takes 56 ms to compile for a language, since it reads all tables of the grammar first. Here
//! only the pattern is read.
//!
//! - `(kind …)`, `(_ …)`: a named node with these children, in this order, with others in between; `"text"`: a node of
//!   this text; `_`: any node
//! - `field: …`, `[… …]` (one of these), `…?`, `…*` (as many as follow), `@capture`
//! - `.`: no named node may be skipped here
//! - `((kind …) (#eq? @capture "text"))`; `#any-of?` with several texts, `#begins?` with a prefix of the text
//!
//! Every way in which a pattern matches is found.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::sync::Arc;

use grammars::{Grammar, Tree};
use tree_sitter::Node;

/// Nodes that are visited between two calls of `go_on`.
const STEPS_BETWEEN_CHECKS: usize = 100;

/// Patterns for one grammar.
#[derive(Debug)]
pub(crate) struct TreePatterns {
    all: Vec<TreePattern>,
    /// Patterns that begin with a kind of node.
    by_kind: HashMap<u16, Vec<usize>>,
    captures: Vec<String>,
}

#[derive(Debug)]
struct TreePattern {
    root: NodePattern,
    conditions: Vec<TextCondition>,
}

/// A node that a pattern requires.
#[derive(Debug)]
struct NodePattern {
    test: NodeTest,
    field: Option<NonZeroU16>,
    captures: Vec<usize>,
    quantifier: Quantifier,
    /// True if no other named node may be before it.
    is_next: bool,
    /// True if no named node may be after it.
    is_last: bool,
}

#[derive(Debug)]
enum NodeTest {
    Any,
    Named(Vec<NodePattern>),
    Kind(u16, Vec<NodePattern>),
    OneOf(Vec<NodePattern>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    One,
    Optional,
    ZeroOrMore,
}

/// Condition on the text of a node.
#[derive(Debug)]
struct TextCondition {
    capture: usize,
    test: TextTest,
    texts: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum TextTest {
    Equals,
    StartsWith,
}

impl TextCondition {
    fn holds(&self, found: &[(usize, Node<'_>)], source: &[u8]) -> bool {
        let captured = found.iter().find(|(capture, _)| *capture == self.capture);
        let text = captured.and_then(|(_, node)| source.get(node.byte_range()));
        text.is_some_and(|text| {
            self.texts.iter().any(|one| match self.test {
                TextTest::Equals => text == one.as_bytes(),
                TextTest::StartsWith => text.starts_with(one.as_bytes()),
            })
        })
    }
}

/// A child node, and its field in the parent.
struct ChildNode<'tree> {
    node: Node<'tree>,
    field: Option<NonZeroU16>,
}

/// Choice to read the fields of children, which takes long in wide nodes.
#[derive(Clone, Copy)]
enum Fields {
    Read,
    Skipped,
}

impl Fields {
    fn needed_by(steps: &[NodePattern]) -> Self {
        if steps.iter().any(NodePattern::names_a_field) { Self::Read } else { Self::Skipped }
    }
}

impl NodePattern {
    fn names_a_field(&self) -> bool {
        let inside = match &self.test {
            NodeTest::OneOf(steps) => steps.iter().any(Self::names_a_field),
            _ => false,
        };
        inside || self.field.is_some()
    }

    fn fits(&self, child: &ChildNode<'_>) -> bool {
        let is_there = self.field.is_none() || self.field == child.field;
        is_there
            && match &self.test {
                NodeTest::Any => true,
                NodeTest::Named(_) => child.node.is_named(),
                NodeTest::Kind(kind, _) => child.node.kind_id() == *kind,
                NodeTest::OneOf(steps) => steps.iter().any(|step| step.fits(child)),
            }
    }
}

/// Captures of a match: the number of each, and its node.
pub(crate) type CaptureSlice<'tree> = [(usize, Node<'tree>)];

impl TreePatterns {
    pub(crate) fn read(grammar: &Arc<Grammar>, text: &str) -> Result<Self, String> {
        let mut reader = PatternParser { grammar, rest: text, captures: Vec::new() };
        let mut patterns: Vec<TreePattern> = Vec::new();
        while reader.skip_whitespace() {
            patterns.push(reader.match_pattern()?);
        }
        let mut by_kind: HashMap<u16, Vec<usize>> = HashMap::new();
        for (at, pattern) in patterns.iter().enumerate() {
            let NodeTest::Kind(kind, _) = pattern.root.test else {
                return Err("a pattern begins with a kind of node".into());
            };
            by_kind.entry(kind).or_default().push(at);
        }
        Ok(Self { all: patterns, by_kind, captures: reader.captures })
    }

    /// Names of the captures, by their numbers.
    pub(crate) fn captures(&self) -> &[String] {
        &self.captures
    }

    /// Calls `each` with every match of a pattern, and the number of the pattern, until it breaks. Breaks only if
    /// `go_on` did.
    pub(crate) fn for_each_match<'tree>(
        &self,
        tree: &'tree Tree,
        source: &[u8],
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
        each: &mut dyn FnMut(&CaptureSlice<'tree>, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut look = PatternMatcher {
            source,
            go_on,
            left: STEPS_BETWEEN_CHECKS,
            stopped: ControlFlow::Continue(()),
        };
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            let mut flow = look.count();
            for at in self.by_kind.get(&node.kind_id()).into_iter().flatten() {
                if flow.is_continue() {
                    flow = look.match_pattern(&self.all[*at], node, &mut |found| each(found, *at));
                }
            }
            if flow.is_break() {
                return look.stopped;
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return look.stopped;
                }
            }
        }
    }
}

/// Continuation of a match, called when everything before it matches.
type Continuation<'a, 'b, 'tree> =
    dyn FnMut(&mut PatternMatcher<'a>, &mut Vec<(usize, Node<'tree>)>) -> ControlFlow<()> + 'b;

struct PatternMatcher<'a> {
    source: &'a [u8],
    go_on: &'a mut dyn FnMut() -> ControlFlow<()>,
    /// Nodes left to visit before `go_on` is called again.
    left: usize,
    stopped: ControlFlow<()>,
}

impl<'a> PatternMatcher<'a> {
    fn count(&mut self) -> ControlFlow<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = STEPS_BETWEEN_CHECKS;
            self.stopped = (self.go_on)();
        }
        self.stopped
    }

    fn match_pattern<'tree>(
        &mut self,
        pattern: &TreePattern,
        node: Node<'tree>,
        each: &mut dyn FnMut(&CaptureSlice<'tree>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut then = |look: &mut Self, found: &mut Vec<_>| {
            let holds = |one: &TextCondition| one.holds(found, look.source);
            if pattern.conditions.iter().all(holds) {
                each(found)
            } else {
                ControlFlow::Continue(())
            }
        };
        self.match_node(&pattern.root, &ChildNode { node, field: None }, &mut Vec::new(), &mut then)
    }

    /// Calls `then` for every way in which the children of `child`, which fits `step`, match.
    fn match_node<'tree>(
        &mut self,
        step: &NodePattern,
        child: &ChildNode<'tree>,
        found: &mut Vec<(usize, Node<'tree>)>,
        then: &mut Continuation<'a, '_, 'tree>,
    ) -> ControlFlow<()> {
        let before = found.len();
        found.extend(step.captures.iter().map(|capture| (*capture, child.node)));
        let flow = match &step.test {
            NodeTest::Named(steps) | NodeTest::Kind(_, steps) if !steps.is_empty() => {
                let children = self.children(child.node, Fields::needed_by(steps))?;
                self.match_children(steps, &children, 0, found, then)
            }
            NodeTest::OneOf(steps) => {
                let mut fitting = steps.iter().filter(|step| step.fits(child));
                fitting.try_for_each(|step| self.match_node(step, child, found, then))
            }
            _ => then(self, found),
        };
        found.truncate(before);
        flow
    }

    /// Returns the children of a node. Reading the field of a child takes as long as tree-sitter's own lists of
    /// children are deep.
    fn children<'tree>(
        &mut self,
        node: Node<'tree>,
        fields: Fields,
    ) -> ControlFlow<(), Vec<ChildNode<'tree>>> {
        let mut children = Vec::new();
        let mut cursor = node.walk();
        let mut is_there = cursor.goto_first_child();
        while is_there {
            self.count()?;
            let field = match fields {
                Fields::Read => cursor.field_id(),
                Fields::Skipped => None,
            };
            children.push(ChildNode { node: cursor.node(), field });
            is_there = cursor.goto_next_sibling();
        }
        ControlFlow::Continue(children)
    }

    /// Calls `then` for every way in which `steps` match `children` from the index `from` on.
    fn match_children<'tree>(
        &mut self,
        steps: &[NodePattern],
        children: &[ChildNode<'tree>],
        from: usize,
        found: &mut Vec<(usize, Node<'tree>)>,
        then: &mut Continuation<'a, '_, 'tree>,
    ) -> ControlFlow<()> {
        let Some((step, rest)) = steps.split_first() else { return then(self, found) };
        if step.quantifier == Quantifier::ZeroOrMore {
            let is_over = |child: &ChildNode<'_>| child.node.is_named() && !step.fits(child);
            let over = children[from..].iter().position(is_over);
            let from = over.map_or(children.len(), |over| from + over);
            return self.match_children(rest, children, from, found, then);
        }
        let mut is_there = false;
        for (at, child) in children.iter().enumerate().skip(from) {
            self.count()?;
            let is_named = |other: &ChildNode<'_>| other.node.is_named();
            if step.fits(child) && !(step.is_last && children[at + 1..].iter().any(is_named)) {
                is_there = true;
                self.match_node(step, child, found, &mut |look, found| {
                    look.match_children(rest, children, at + 1, found, then)
                })?;
            }
            if step.is_next && is_named(child) {
                break;
            }
        }
        if step.quantifier == Quantifier::Optional && !is_there {
            return self.match_children(rest, children, from, found, then);
        }
        ControlFlow::Continue(())
    }
}

/// Parser of patterns.
struct PatternParser<'a> {
    grammar: &'a Arc<Grammar>,
    rest: &'a str,
    captures: Vec<String>,
}

impl<'a> PatternParser<'a> {
    /// Skips whitespace and comments. True if anything is left.
    fn skip_whitespace(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(';') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return !self.rest.is_empty(),
            }
        }
    }

    fn take(&mut self, mark: &str) -> bool {
        self.skip_whitespace();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(self.expected(mark)) }
    }

    fn expected(&self, what: &str) -> String {
        format!("{what} is missing before {:?}", self.rest.lines().next().unwrap_or_default())
    }

    fn word(&mut self) -> Result<&'a str, String> {
        let is_other = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '?');
        let (word, rest) = self.rest.split_at(self.rest.find(is_other).unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(self.expected("a name"));
        }
        self.rest = rest;
        Ok(word)
    }

    /// Reads a text after its opening quote.
    fn text(&mut self) -> Result<&'a str, String> {
        let (text, rest) = self.rest.split_once('"').ok_or_else(|| self.expected("a quote"))?;
        self.rest = rest;
        Ok(text)
    }

    fn match_pattern(&mut self) -> Result<TreePattern, String> {
        let mut conditions = Vec::new();
        let bare = self.rest;
        if self.take("(") && self.take("(") {
            self.rest = &bare[1..];
            let root = self.step()?;
            while self.take("(#") {
                conditions.push(self.condition()?);
            }
            self.need(")")?;
            return Ok(TreePattern { root, conditions });
        }
        self.rest = bare;
        Ok(TreePattern { root: self.step()?, conditions })
    }

    fn condition(&mut self) -> Result<TextCondition, String> {
        let test = match self.word()? {
            "eq?" | "any-of?" => TextTest::Equals,
            "begins?" => TextTest::StartsWith,
            other => return Err(format!("{other} is no test")),
        };
        self.need("@")?;
        let name = self.word()?;
        let capture = self.capture(name);
        let mut texts = Vec::new();
        while self.take("\"") {
            texts.push(self.text()?.to_owned());
        }
        self.need(")")?;
        Ok(TextCondition { capture, test, texts })
    }

    fn capture(&mut self, name: &str) -> usize {
        let known = self.captures.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.captures.push(name.to_owned());
            self.captures.len() - 1
        })
    }

    fn step(&mut self) -> Result<NodePattern, String> {
        self.skip_whitespace();
        let mut field = None;
        if self.rest.starts_with(|c: char| c.is_alphabetic()) {
            let name = self.word()?;
            self.need(":")?;
            let known = self.grammar.field(name).ok_or_else(|| format!("{name} is no field"))?;
            field = Some(known);
        }
        let test = self.node_test()?;
        let quantifier = if self.take("?") {
            Quantifier::Optional
        } else if self.take("*") {
            Quantifier::ZeroOrMore
        } else {
            Quantifier::One
        };
        let mut captures = Vec::new();
        while self.take("@") {
            let name = self.word()?;
            captures.push(self.capture(name));
        }
        Ok(NodePattern { test, field, captures, quantifier, is_next: false, is_last: false })
    }

    fn node_test(&mut self) -> Result<NodeTest, String> {
        if self.take("[") {
            return Ok(NodeTest::OneOf(self.steps("]")?));
        }
        if self.take("\"") {
            let text = self.text()?;
            let kind = self.grammar.unnamed(text).ok_or_else(|| format!("{text:?} is no node"))?;
            return Ok(NodeTest::Kind(kind, Vec::new()));
        }
        if !self.take("(") {
            self.need("_")?;
            return Ok(NodeTest::Any);
        }
        match self.word()? {
            "_" => Ok(NodeTest::Named(self.steps(")")?)),
            name => {
                let kind = self.grammar.named(name).ok_or_else(|| format!("{name} is no node"))?;
                Ok(NodeTest::Kind(kind, self.steps(")")?))
            }
        }
    }

    fn steps(&mut self, end: &str) -> Result<Vec<NodePattern>, String> {
        let mut steps: Vec<NodePattern> = Vec::new();
        loop {
            let is_next = self.take(".");
            if self.take(end) {
                if let Some(last) = steps.last_mut() {
                    last.is_last = is_next;
                }
                return Ok(steps);
            }
            steps.push(NodePattern { is_next, ..self.step()? });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matches of the patterns in `source`: the number of each pattern, and its captures.
    fn found(patterns: &str, source: &str) -> Vec<String> {
        let grammar = grammars::PYTHON.unpack();
        let patterns = TreePatterns::read(&grammar, patterns).expect("patterns");
        let always = &mut || ControlFlow::Continue(());
        let tree = grammar.parse(source.as_bytes(), &mut |_| always()).expect("a tree");
        let mut found = Vec::new();
        let flow =
            patterns.for_each_match(&tree, source.as_bytes(), always, &mut |captured, at| {
                let captures = captured.iter().map(|(capture, node)| {
                    format!(" {}={}", patterns.captures()[*capture], &source[node.byte_range()])
                });
                found.push(at.to_string() + &captures.collect::<String>());
                ControlFlow::Continue(())
            });
        assert!(flow.is_continue());
        found
    }

    #[track_caller]
    fn check(patterns: &str, source: &str, expected: &[&str]) {
        assert_eq!(found(patterns, source), expected, "{patterns}");
    }

    #[test]
    fn each_way_in_which_a_pattern_fits_is_found() {
        check("(list (integer) @a)", "[1, b, 2]", &["0 a=1", "0 a=2"]);
        check("(list (integer) @a (_) @b)", "[1, 2, c]", &["0 a=1 b=2", "0 a=1 b=c", "0 a=2 b=c"]);
        check(
            "(list (_ (integer) @a)) (list _ @b)",
            "[[1]]",
            &["0 a=1", "1 b=[", "1 b=[1]", "1 b=]", "1 b=[", "1 b=1", "1 b=]"],
        );
        check("(assignment left: (_) @a right: (_) @b)", "x = 1", &["0 a=x b=1"]);
        check(
            "(list [(integer) @a (string (string_content) @b)])",
            "[1, 's']",
            &["0 a=1", "0 b=s"],
        );
        check("(list \",\" @a) ; a note\n(integer) @b @c", "[1, d]", &["0 a=,", "1 b=1 c=1"]);
    }

    #[test]
    fn a_point_skips_no_named_node() {
        check("(list . (integer) @a)", "[1, 2]", &["0 a=1"]);
        check("(list . (integer) @a)", "[b, 2]", &[]);
        check("(list (integer) @a .)", "[1, 2]", &["0 a=2"]);
        check("(list (integer) @a . (integer) @b)", "[1, c, 2, 3]", &["0 a=2 b=3"]);
    }

    #[test]
    fn what_may_be_missing_is_taken_when_it_is_there() {
        check("(list (string)? @a (integer) @b)", "['s', 1]", &["0 a='s' b=1"]);
        check("(list (string)? @a (integer) @b)", "[1]", &["0 b=1"]);
        check("(list . (string)* . (integer) @a)", "['s', 't', 1]", &["0 a=1"]);
        check("(list . (string)* . (integer) @a)", "['s', b, 1]", &[]);
    }

    #[test]
    fn conditions_are_about_the_text() {
        check("((list (_) @a) (#eq? @a \"b\"))", "[b, bc]", &["0 a=b"]);
        check("((list (_) @a) (#any-of? @a \"b\" \"c\"))", "[b, c, d]", &["0 a=b", "0 a=c"]);
        check("((list (_) @a) (#begins? @a \"b\"))", "[b, bc, c]", &["0 a=b", "0 a=bc"]);
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let grammar = grammars::PYTHON.unpack();
        for (patterns, expected) in [
            ("(nothing)", "nothing is no node"),
            ("(list none: (_))", "none is no field"),
            ("(list \"nothing\")", "\"nothing\" is no node"),
            ("(list", "_ is missing before \"\""),
            ("(_) @a", "a pattern begins with a kind of node"),
            ("((list) @a (#like? @a \"b\"))", "like? is no test"),
        ] {
            let told = TreePatterns::read(&grammar, patterns).map(|_| ());
            assert_eq!(told, Err(expected.to_owned()), "{patterns}");
        }
    }

    #[test]
    fn it_can_be_stopped() {
        let grammar = grammars::PYTHON.unpack();
        let patterns =
            TreePatterns::read(&grammar, "(list (_) (_) (_) (integer) @a)").expect("patterns");
        let source = format!("[{}]", "b, ".repeat(2_000));
        let tree = grammar.parse(source.as_bytes(), &mut |_| ControlFlow::Continue(()));
        let mut left = 1_000;
        let mut go_on = || {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let flow = patterns.for_each_match(
            &tree.expect("a tree"),
            source.as_bytes(),
            &mut go_on,
            &mut |_, _| ControlFlow::Continue(()),
        );
        assert_eq!((flow, left), (ControlFlow::Break(()), 0));
    }
}
