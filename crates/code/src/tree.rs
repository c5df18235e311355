//! Parsing, within bounds.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter};
use tree_sitter::{ParseOptions, Parser, Tree};

use crate::language::Language;

/// Texts over this are not parsed. What is larger was seldom written by hand, and a tree takes 250 times its text when
/// there is a node for each byte.
pub const LARGEST_PARSED: usize = 512 << 10;

/// To parse a text, or to look through its tree, may take so long. Ten times what the largest text takes.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// A text that was parsed.
pub(crate) struct Parsed<'a> {
    pub tree: Tree,
    /// The text as the grammar read it, byte for byte in the same places.
    pub source: Cow<'a, [u8]>,
}

/// The tree of `text`. `None` when it is too large or too deep, is not text, takes too much work, or `stop` says so.
pub(crate) fn parse<'a>(
    language: &dyn Language,
    text: &'a str,
    stop: &dyn Fn() -> bool,
) -> Option<Parsed<'a>> {
    if text.len() > LARGEST_PARSED || memchr(0, text.as_bytes()).is_some() || stop() {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(language.grammar()).ok()?;
    let source = language.readable(with_line_feeds(text.as_bytes()));
    if !language.can_nest(&source) {
        return None;
    }
    let mut work = Work::of(text, stop);
    let tree = parser.parse_with_options(
        &mut |at, _| source.get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut |_| work.go_on())),
    )?;
    Some(Parsed { tree, source })
}

/// Grammars do not know that a lone carriage return ends a line; with line feeds every byte stays where it is.
fn with_line_feeds(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_lone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let mut lone = memchr_iter(b'\r', bytes).filter(is_lone).peekable();
    if lone.peek().is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut source = bytes.to_vec();
    lone.for_each(|at| source[at] = b'\n');
    Cow::Owned(source)
}

/// How much may still be done, in steps of the library: a hundred of its own each.
///
/// Real files take up to three of its own for a byte. Where a text does not parse, the library follows several readings
/// of it at a time, which takes much more, and memory too; and a query looks from each bracket at all that follow.
pub(crate) struct Work<'a> {
    left: usize,
    until: Instant,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Work<'a> {
    pub(crate) fn of(text: &str, stop: &'a dyn Fn() -> bool) -> Self {
        Self { left: 2_000 + text.len() / 4, until: Instant::now() + PATIENCE, stop }
    }

    pub(crate) fn go_on(&mut self) -> ControlFlow<()> {
        match self.left.checked_sub(1) {
            Some(left) if !(self.stop)() && Instant::now() < self.until => {
                self.left = left;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }
}
