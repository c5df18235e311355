//! The named parts of a source file.
//!
//! - `parsed`: by the tree of a language that has a grammar
//! - `plain`: line by line, by the words that definitions begin with in most languages
//! - `words`: heads and comments, as they are shown

mod parsed;
mod plain;
mod words;

use std::ops::Range;

use text::LineRange;

use crate::language;

pub use crate::part_kind::Kind;
pub use words::{LONGEST_DOC, LONGEST_NAME, LONGEST_SIGNATURE};

/// An outline has no more parts than this.
pub const MOST_PARTS: usize = 50_000;
/// Of the names around a part so many are known, the innermost ones.
pub const DEEPEST_SCOPE: usize = 8;

/// How an outline was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From a tree: names and ranges are those of the language.
    Parsed,
    /// From what lines begin with: a good guess.
    Guessed,
}

/// The named parts of a file, in the order in which they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// `None` when the language is not known.
    pub language: Option<&'static str>,
    pub source: Source,
    pub parts: Vec<Part>,
    /// There are more than [`MOST_PARTS`], or it was stopped before the end.
    pub cut: bool,
}

/// Something that has a name. Lines count from 0 and are those of [`text::lines`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Cut at [`LONGEST_NAME`] characters.
    pub name: String,
    pub kind: Kind,
    /// The names around it, the outermost first.
    pub scope: Vec<String>,
    /// From its first attribute to its end, without the comment above.
    pub bytes: Range<usize>,
    pub lines: LineRange,
    pub name_bytes: Range<usize>,
    pub name_line: usize,
    /// Its head: all before the body, in one line, cut at [`LONGEST_SIGNATURE`] characters.
    pub signature: String,
    pub doc: Option<Doc>,
}

/// What documents a part: the comment above, or what the language has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc {
    pub bytes: Range<usize>,
    pub lines: LineRange,
    /// Without what makes it a comment, in one line, cut at [`LONGEST_DOC`] characters.
    pub text: String,
}

impl Part {
    /// Its name with those around it: `Type/method`.
    pub fn path(&self) -> String {
        let mut path = self.scope.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&self.name);
        path
    }

    /// The lines of the part and of what documents it.
    pub fn all_lines(&self) -> LineRange {
        let LineRange { first, last } = self.lines;
        match &self.doc {
            Some(doc) => LineRange { first: first.min(doc.lines.first), last },
            None => self.lines,
        }
    }

    /// Something inside another part that is seldom worth being shown alone.
    pub(crate) fn is_detail(&self) -> bool {
        match self.kind {
            Kind::Field => true,
            Kind::Constant => !self.scope.is_empty(),
            _ => false,
        }
    }
}

/// The named parts of `text`, which is the file at `path`.
///
/// What has no grammar, is larger than [`crate::tree::LARGEST_PARSED`], or was stopped while it was parsed, is guessed
/// line by line.
pub fn outline(path: &str, text: &str, stop: &dyn Fn() -> bool) -> Outline {
    let language = language::of(path, text);
    let parsed = language.and_then(|language| parsed::outline(language, text, stop));
    let source = if parsed.is_some() { Source::Parsed } else { Source::Guessed };
    let (parts, cut) = parsed.unwrap_or_else(|| plain::outline(text, stop));
    Outline { language: language.map(language::Language::name), source, parts, cut }
}

/// The same in little time: what is larger than `largest` is guessed.
pub(crate) fn quick_outline(
    path: &str,
    text: &str,
    largest: usize,
    stop: &dyn Fn() -> bool,
) -> Outline {
    if text.len() <= largest {
        return outline(path, text, stop);
    }
    let (parts, cut) = plain::outline(text, stop);
    let language = language::of(path, text).map(language::Language::name);
    Outline { language, source: Source::Guessed, parts, cut }
}

/// The smallest part around `line`, with what documents it. A field is one only where nothing else is around.
pub fn block_at(outline: &Outline, line: usize) -> Option<&Part> {
    let around = outline.parts.iter().filter(|part| {
        let LineRange { first, last } = part.all_lines();
        (first..=last).contains(&line)
    });
    around.min_by_key(|part| (part.is_detail(), part.bytes.len()))
}
