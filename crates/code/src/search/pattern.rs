//! Patterns that are searched for, and the lines of a text that match.

use std::{ops::Range, sync::Arc};

use files::Call;
use grep_matcher::{LineMatchKind, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use memchr::memrchr2;
use regex_syntax::{
    ParserBuilder, ast,
    hir::{Hir, Look},
};
use text::{Line, lines::lines};

use super::long_text::LongTextSearch;

/// Longest pattern in bytes: an error message shows the pattern.
pub const PATTERN_MAX: usize = 4096;

/// Largest compiled pattern in bytes: at worst a search takes time in proportion to it.
const COMPILED_BYTES_MAX: usize = 5 << 20;

/// Most bytes of each thread's cache for a pattern.
const CACHE_MAX: usize = 2 << 20;

/// Bytes between two checks of the deadline.
const PIECE_BYTES: usize = 64 * 1024;

/// Most bytes of a line in which an expression is searched for, and of a text if a match may span several lines.
const LINE_SEARCHED_MAX: usize = 256 * 1024;
const TEXT_SEARCHED_MAX: usize = 1 << 20;

/// Case sensitivity of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaseSensitivity {
    /// Sensitive if the pattern has an upper case letter.
    #[default]
    Smart,
    Sensitive,
    Insensitive,
}

/// Options of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternOptions {
    pub case: CaseSensitivity,
    /// True if the pattern is searched for letter by letter, and is not a regular expression.
    pub is_literal: bool,
    /// True if a match must not have a letter, digit or `_` before or after it.
    pub whole_word: bool,
    /// True if a match may span several lines. `\n` matches just that: lines that end with `\r\n` need `\r?\n`.
    pub multi_line: bool,
}

/// Error in a pattern, in the words of the regex crate if it found it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// A compiled pattern. Every thread has a clone: they share the compiled pattern, but not the caches of their searches.
#[derive(Clone, Debug)]
pub struct Pattern {
    matcher: RegexMatcher,
    /// True if no match extends beyond its line, and none asks for the beginning or the end of the text.
    is_by_line: bool,
    /// True if it is searched for letter by letter.
    is_plain: bool,
    /// Search in texts for which the matcher may take too long. `None` if it takes no more time than reading the text.
    long: Option<Arc<LongTextSearch>>,
}

/// A part of a text that is searched at once.
pub(super) struct Piece {
    pub bytes: Range<usize>,
    /// True if some text after it is not searched at all.
    pub is_cut: bool,
}

impl Pattern {
    pub fn new(pattern: &str, options: PatternOptions) -> Result<Self, PatternError> {
        if pattern.len() > PATTERN_MAX {
            let length = pattern.len();
            let why = format!("a pattern has at most {PATTERN_MAX} bytes, this one has {length}");
            return Err(PatternError(why));
        }
        let case = effective_case(pattern, options);
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(case == CaseSensitivity::Insensitive)
            .fixed_strings(options.is_literal)
            .word(options.whole_word)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(CACHE_MAX)
            // `$` matches before `\r\n` and before a lone `\r`, and no class contains either.
            .crlf(true);
        if options.multi_line {
            builder.line_terminator(None);
        }
        let matcher = builder.build(pattern).map_err(|error| PatternError(error.to_string()))?;
        let is_by_line = matcher.line_terminator().is_some();
        let is_plain = options.is_literal || !pattern.contains(is_special);
        if is_plain && case == CaseSensitivity::Sensitive {
            return Ok(Self { matcher, is_by_line, is_plain, long: None });
        }
        let failed = || PatternError("it is too large".into());
        let expression = parse(pattern, options, case).ok_or_else(failed)?;
        let long = LongTextSearch::new(&expression, COMPILED_BYTES_MAX).ok_or_else(failed)?;
        Ok(Self { matcher, is_by_line, is_plain, long: Some(Arc::new(long)) })
    }

    /// Most bytes that are searched between two checks of the deadline.
    fn at_once(&self) -> usize {
        self.long.as_ref().map_or(usize::MAX, |long| long.at_once)
    }

    /// Finds the first match that begins at `at` or after it. Also returns true if only a part of the text was
    /// searched.
    fn find(&self, text: &[u8], at: usize) -> (Option<Range<usize>>, bool) {
        let mut searched = text;
        if let Some(long) = self.long.as_ref().filter(|long| text.len() - at > long.at_once) {
            if let Ok(found) = long.find(text, at) {
                return (found, false);
            }
            searched = &text[..at + long.at_once];
        }
        // The matcher cannot fail.
        let found = self.matcher.find_at(searched, at).ok().flatten();
        (found.map(|found| found.start()..found.end()), searched.len() < text.len())
    }

    /// Returns the parts of a text that can be searched one by one: whole lines, except for the end of very long ones.
    pub(super) fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = Piece> + 't {
        let (is_by_line, is_plain) = (self.is_by_line, self.is_plain);
        let piece = PIECE_BYTES.min(self.at_once());
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            if start == text.len() {
                return None;
            }
            if !is_by_line {
                at = text.len();
                let end = if is_plain { at } else { at.min(TEXT_SEARCHED_MAX) };
                let end = if end == at { at } else { line_start(text, end) };
                return Some(Piece { bytes: start..end, is_cut: end < at });
            }
            let last = line_start(text, text.len().min(start + piece).max(start + 1) - 1);
            let line = line_at(text, last);
            if is_plain || line.end - line.start <= LINE_SEARCHED_MAX {
                at = line.next;
                Some(Piece { bytes: start..at, is_cut: false })
            } else if line.start > start {
                at = line.start;
                Some(Piece { bytes: start..at, is_cut: false })
            } else {
                at = line.next;
                let end = text.floor_char_boundary(start + LINE_SEARCHED_MAX);
                Some(Piece { bytes: start..end, is_cut: true })
            }
        })
    }

    /// Returns the lines of a piece that match. Some may be missing if the call is over.
    pub(super) fn line_matches<'p>(
        &'p self,
        text: &'p str,
        piece: &Piece,
        call: &'p Call,
    ) -> LineMatches<'p> {
        let Range { start, end } = piece.bytes;
        let is_cut = piece.is_cut;
        LineMatches {
            pattern: self,
            call,
            text,
            search: start,
            line: start,
            end,
            covered: None,
            is_cut,
        }
    }

    /// Part of a line that is searched.
    fn content<'t>(&self, text: &'t str, line: &Line) -> &'t [u8] {
        let line = &text.as_bytes()[line.start..line.end];
        if self.is_plain { line } else { &line[..line.len().min(LINE_SEARCHED_MAX)] }
    }

    /// Returns the matches in a line, in bytes from its beginning: the first, and all that begin before `end`.
    pub(super) fn matches(&self, text: &str, found: &LineMatch, end: usize) -> Vec<Range<usize>> {
        let LineMatch { line, first } = found;
        if !self.is_by_line {
            // Only the part in the line counts, and the terminator is not in it.
            let column = |at: usize| at.clamp(line.start, line.end) - line.start;
            return std::iter::once(column(first.start)..column(first.end)).collect();
        }
        let mut matches = Vec::new();
        let mut content = self.content(text, line);
        let mut at = 0;
        if content.len() > self.at_once() {
            let Some(first) = self.find(content, 0).0 else { return matches };
            at = first.start;
            let searched = first.end.max(end).saturating_add(self.at_once());
            content = &content[..content.len().min(searched)];
        }
        // The matcher cannot fail.
        let _ = self.matcher.find_iter_at(content, at, |found| {
            let is_shown = found.start() < end || matches.is_empty();
            if is_shown {
                matches.push(found.start()..found.end());
            }
            is_shown
        });
        matches
    }
}

/// A line that matches.
pub(super) struct LineMatch {
    pub line: Line,
    /// A match in it, as far as it is known: it may begin before the line and end after it.
    first: Range<usize>,
}

/// Iterator over the lines that match, made by [`Pattern::line_matches`].
pub(super) struct LineMatches<'p> {
    pattern: &'p Pattern,
    call: &'p Call,
    text: &'p str,
    /// Offset from which matches are searched for.
    search: usize,
    /// Offset of the first line that was not returned yet.
    line: usize,
    end: usize,
    /// A match that extends to lines that were not returned yet.
    covered: Option<Range<usize>>,
    /// True if not all of the piece, or of the text after it, is searched.
    pub is_cut: bool,
}

impl Iterator for LineMatches<'_> {
    type Item = LineMatch;

    fn next(&mut self) -> Option<LineMatch> {
        if self.pattern.is_by_line { self.next_by_line() } else { self.next_in_text() }
    }
}

impl LineMatches<'_> {
    /// Returns the next line. The matcher may have a quick way to find lines that perhaps match.
    fn next_by_line(&mut self) -> Option<LineMatch> {
        while self.line < self.end {
            if self.end - self.line > self.pattern.at_once() {
                return self.next_in_long_line();
            }
            let rest = &self.text.as_bytes()[self.line..self.end];
            let matcher = &self.pattern.matcher;
            let (at, is_certain) = match matcher.find_candidate_line(rest) {
                Ok(Some(LineMatchKind::Confirmed(at))) => (self.line + at, true),
                Ok(Some(LineMatchKind::Candidate(at))) => (self.line + at, false),
                Ok(None) | Err(_) => break,
            };
            // A match after the last line is in no line.
            let start = line_start(self.text, at);
            if start >= self.end {
                break;
            }
            let line = line_at(self.text, start);
            self.line = line.next;
            let content = self.pattern.content(self.text, &line);
            // A match between `\r` and `\n` is not in the line.
            if (is_certain && at <= line.end) || matches!(matcher.is_match(content), Ok(true)) {
                return Some(LineMatch { line, first: at..at });
            }
        }
        self.line = self.end;
        None
    }

    /// Searches the line, which must be the only one of its piece.
    fn next_in_long_line(&mut self) -> Option<LineMatch> {
        let line = line_at(self.text, self.line);
        self.line = self.end;
        let (found, is_cut) = self.pattern.find(self.pattern.content(self.text, &line), 0);
        self.is_cut |= is_cut;
        found.map(|first| LineMatch { line, first })
    }

    fn next_in_text(&mut self) -> Option<LineMatch> {
        loop {
            if let Some(first) = self.covered.clone() {
                let line = line_at(self.text, self.line);
                self.line = line.next;
                if self.line >= first.end || self.line >= self.end {
                    self.covered = None;
                }
                return Some(LineMatch { line, first });
            }
            // Each match may take a search of all text after it.
            if self.search > self.end || self.call.check().is_err() {
                return None;
            }
            let text = &self.text.as_bytes()[..self.end];
            let (found, is_cut) = self.pattern.find(text, self.search);
            self.is_cut |= is_cut;
            let found = found?;
            let start = line_start(self.text, found.start);
            // A match after the last line is in no line.
            if start >= self.end {
                return None;
            }
            if start >= self.line {
                self.line = start;
                self.covered = Some(found.clone());
            } else if found.end > self.line {
                self.covered = Some(found.clone());
            }
            self.search = found.end.max(found.start + 1);
        }
    }
}

/// Parses the expression that the matcher searches for.
fn parse(pattern: &str, options: PatternOptions, case: CaseSensitivity) -> Option<Hir> {
    let escaped = options.is_literal.then(|| regex_syntax::escape(pattern));
    let expression = ParserBuilder::new()
        .multi_line(true)
        .crlf(true)
        .case_insensitive(case == CaseSensitivity::Insensitive)
        .utf8(false)
        .build()
        .parse(escaped.as_deref().unwrap_or(pattern))
        .ok()?;
    if !options.whole_word {
        return Some(expression);
    }
    let (start, end) = (Look::WordStartHalfUnicode, Look::WordEndHalfUnicode);
    Some(Hir::concat(vec![Hir::look(start), expression, Hir::look(end)]))
}

/// Returns the case sensitivity that the options ask for: sensitive or insensitive.
fn effective_case(pattern: &str, options: PatternOptions) -> CaseSensitivity {
    match options.case {
        CaseSensitivity::Smart if has_upper_case(pattern, options) => CaseSensitivity::Sensitive,
        CaseSensitivity::Smart => CaseSensitivity::Insensitive,
        given => given,
    }
}

/// True if an upper case letter stands for itself in a pattern.
fn has_upper_case(pattern: &str, options: PatternOptions) -> bool {
    struct UpperCaseFinder(bool);

    impl ast::Visitor for UpperCaseFinder {
        type Output = bool;
        type Err = ();

        fn finish(self) -> Result<bool, ()> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, part: &ast::Ast) -> Result<(), ()> {
            if let ast::Ast::Literal(literal) = part {
                self.0 |= literal.c.is_uppercase();
            }
            Ok(())
        }

        fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), ()> {
            self.0 |= match item {
                ast::ClassSetItem::Literal(literal) => literal.c.is_uppercase(),
                ast::ClassSetItem::Range(range) => {
                    range.start.c.is_uppercase() || range.end.c.is_uppercase()
                }
                _ => false,
            };
            Ok(())
        }
    }

    let in_expression = || {
        let parsed = ast::parse::Parser::new().parse(pattern).ok()?;
        ast::visit(&parsed, UpperCaseFinder(false)).ok()
    };
    if options.is_literal {
        pattern.chars().any(char::is_uppercase)
    } else {
        // A pattern that is no expression is refused when it is compiled.
        in_expression().unwrap_or(false)
    }
}

/// True if a character may have a meaning of its own in an expression.
fn is_special(character: char) -> bool {
    r"\.+*?()|[]{}^$".contains(character)
}

/// Returns the line that begins at `start`.
fn line_at(text: &str, start: usize) -> Line {
    let line = lines(&text[start..]).next().unwrap_or(Line { start: 0, end: 0, next: 0 });
    Line { start: start + line.start, end: start + line.end, next: start + line.next }
}

/// Start of the line that contains the byte `at`, or that ends there.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let is_within_end = at > 0 && bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n');
    let at = if is_within_end { at - 1 } else { at };
    memrchr2(b'\n', b'\r', &bytes[..at]).map_or(0, |end| end + 1)
}
