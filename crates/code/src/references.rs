//! References: finds where a name is used in a file.

use std::ops::Range;

use grammars::Tree;
use memchr::memmem;
use tree_sitter::Node;

use crate::language;
use crate::outline::Outline;
use crate::tree;

/// Most references that are returned.
pub const REFERENCES_MAX: usize = 50_000;

/// Returns the uses of `name` in `text`: outside of comments and strings, and not where `outline` says that it is
/// defined.
///
/// Names are compared as they are written, nothing is resolved. In a text that is not parsed, every whole word counts.
pub fn references(
    path: &str,
    text: &str,
    name: &str,
    outline: &Outline,
    stop: &dyn Fn() -> bool,
) -> Vec<Range<usize>> {
    let words: Vec<_> = whole_words(text, name).take(REFERENCES_MAX).collect();
    if words.is_empty() {
        return words;
    }
    let parsed = language::of(path, text).and_then(|language| tree::parse(language, text, stop));
    let mut used = match parsed {
        Some(parsed) => identifiers(&parsed.tree, &words, stop),
        None => words,
    };
    let mut defined: Vec<_> = outline.parts.iter().map(|part| part.name_bytes.start).collect();
    defined.sort_unstable();
    used.retain(|range| defined.binary_search(&range.start).is_err());
    used
}

/// Returns where `name` is a whole word: with nothing beside it that could be part of a name.
fn whole_words<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = Range<usize>> {
    let more = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (starts, ends) = (more(name.chars().next()), more(name.chars().next_back()));
    let needle = if name.is_empty() { &[][..] } else { name.as_bytes() };
    let found = memmem::find_iter(text.as_bytes(), needle).take_while(|_| !name.is_empty());
    found.map(|at| at..at + name.len()).filter(move |range| {
        let before = starts && more(text[..range.start].chars().next_back());
        let behind = ends && more(text[range.end..].chars().next());
        !before && !behind
    })
}

/// Returns those of `words`, which must be in order, that are identifiers. The tree is walked once, and only where
/// words are.
fn identifiers(tree: &Tree, words: &[Range<usize>], stop: &dyn Fn() -> bool) -> Vec<Range<usize>> {
    let mut used = Vec::new();
    let mut next = 0;
    let mut cursor = tree.walk();
    let mut steps = 0_usize;
    loop {
        steps += 1;
        if steps.is_multiple_of(4096) && stop() {
            return used;
        }
        let node = cursor.node();
        next += words[next..].iter().take_while(|word| word.start < node.start_byte()).count();
        let Some(word) = words.get(next) else { return used };
        let holds_one = node.start_byte() <= word.start && word.end <= node.end_byte();
        if holds_one && cursor.goto_first_child() {
            continue;
        }
        if holds_one {
            let inside = words[next..].iter().take_while(|word| word.end <= node.end_byte());
            used.extend(inside.filter(|word| is_use(node, word)).cloned());
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return used;
            }
        }
    }
}

/// True if a node without children uses `word` as a name.
fn is_use(node: Node<'_>, word: &Range<usize>) -> bool {
    let kind = node.kind();
    let mut bytes = node.byte_range();
    // A private name of JavaScript is compared without its mark, and so is a symbol of Ruby.
    let has_mark = matches!(kind, "private_property_identifier" | "simple_symbol");
    bytes.start += usize::from(has_mark);
    // The grammars call a class name of Ruby a constant, and a command of a shell a word.
    let is_name = kind.contains("identifier")
        || kind.ends_with("name")
        || matches!(kind, "bare_key" | "constant" | "simple_symbol" | "hash_key_symbol" | "word");
    // The replacement text of a C macro is not parsed.
    kind == "preproc_arg" || (is_name && bytes == *word)
}
