//! Outlines: the named parts of a source file.
//!
//! - `parsed`: by the syntax tree of a language that has a grammar
//! - `guessed`: line by line, by the words that definitions begin with in most languages
//! - `display`: signatures, names and comments, as they are shown

mod display;
mod guessed;
mod parsed;

use std::ops::Range;

use text::LineRange;

use crate::language;

pub use crate::part_kind::PartKind;
pub use display::{DOC_CHARS_MAX, NAME_CHARS_MAX, SIGNATURE_CHARS_MAX};

/// Most parts of an outline.
pub const PARTS_MAX: usize = 50_000;
/// Most names around a part that are kept, the innermost ones.
pub const SCOPE_DEPTH_MAX: usize = 8;

/// Origin of an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineOrigin {
    /// From a syntax tree: names and ranges are those of the language.
    Parsed,
    /// From the words that lines begin with: a good guess.
    Guessed,
}

/// The named parts of a file, in the order in which they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// `None` when the language is not known.
    pub language: Option<&'static str>,
    pub origin: OutlineOrigin,
    pub parts: Vec<Part>,
    /// True if there are more than [`PARTS_MAX`], or it was stopped before the end.
    pub cut: bool,
}

/// A named part of a source file. Lines count from 0 and are those of [`text::lines`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Cut at [`NAME_CHARS_MAX`] characters.
    pub name: String,
    pub kind: PartKind,
    /// The names around it, the outermost first.
    pub scope: Vec<String>,
    /// Bytes from its first attribute to its end, without the comment above.
    pub bytes: Range<usize>,
    pub lines: LineRange,
    pub name_bytes: Range<usize>,
    pub name_line: usize,
    /// All text before the body, in one line, cut at [`SIGNATURE_CHARS_MAX`] characters.
    pub signature: String,
    pub doc: Option<Doc>,
}

/// Documentation of a part: the comment above, or what the language has in place of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc {
    pub bytes: Range<usize>,
    pub lines: LineRange,
    /// Text without the marks of a comment, in one line, cut at [`DOC_CHARS_MAX`] characters.
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

    /// Lines of the part and of its documentation.
    pub fn all_lines(&self) -> LineRange {
        let LineRange { first, last } = self.lines;
        match &self.doc {
            Some(doc) => LineRange { first: first.min(doc.lines.first), last },
            None => self.lines,
        }
    }

    /// True for a part inside another part that is seldom worth being shown alone.
    pub(crate) fn is_detail(&self) -> bool {
        match self.kind {
            PartKind::Field => true,
            PartKind::Constant => !self.scope.is_empty(),
            _ => false,
        }
    }
}

/// Returns the outline of `text`, which is the file at `path`.
///
/// The parts are guessed line by line if there is no grammar, the text is larger than
/// [`crate::tree::PARSED_BYTES_MAX`], or parsing was stopped.
pub fn outline(path: &str, text: &str, stop: &dyn Fn() -> bool) -> Outline {
    let language = language::of(path, text);
    let parsed = language.and_then(|language| parsed::outline(language, text, stop));
    let origin = if parsed.is_some() { OutlineOrigin::Parsed } else { OutlineOrigin::Guessed };
    let (parts, cut) = parsed.unwrap_or_else(|| guessed::outline(text, stop));
    Outline { language: language.map(language::Language::name), origin, parts, cut }
}

/// Returns the outline in little time: that of a text larger than `largest` is guessed.
pub(crate) fn quick_outline(
    path: &str,
    text: &str,
    largest: usize,
    stop: &dyn Fn() -> bool,
) -> Outline {
    if text.len() <= largest {
        return outline(path, text, stop);
    }
    let (parts, cut) = guessed::outline(text, stop);
    let language = language::of(path, text).map(language::Language::name);
    Outline { language, origin: OutlineOrigin::Guessed, parts, cut }
}

/// Returns the smallest part around `line`, with its documentation. A field is returned only if no other part is
/// around.
pub fn part_at(outline: &Outline, line: usize) -> Option<&Part> {
    let around = outline.parts.iter().filter(|part| {
        let LineRange { first, last } = part.all_lines();
        (first..=last).contains(&line)
    });
    around.min_by_key(|part| (part.is_detail(), part.bytes.len()))
}
