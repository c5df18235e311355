//! Outlines of any text, guessed line by line.
//!
//! A part begins where a line begins as definitions do in most languages, and ends before the next line that is not
//! indented further.

mod definition;

use std::ops::Range;

use text::LineRange;
use text::lines::{Line, lines};

use super::{Doc, PARTS_MAX, Part, PartKind, SCOPE_DEPTH_MAX, display};
use definition::{EXAMINED_BYTES_MAX, definition, start_of};

pub(super) use definition::begins_with_keyword;

/// Returns the parts, and true if there are more.
pub(super) fn outline(text: &str, stop: &dyn Fn() -> bool) -> (Vec<Part>, bool) {
    let mut guess =
        LineOutliner { text, parts: Vec::new(), open: Vec::new(), above: None, last: None };
    for (number, line) in lines(text).enumerate() {
        if guess.parts.len() >= PARTS_MAX || (number % 1024 == 0 && stop()) {
            guess.close_all();
            return (guess.parts, true);
        }
        guess.read_line(number, line);
    }
    guess.close_all();
    (guess.parts, false)
}

struct LineOutliner<'a> {
    text: &'a str,
    parts: Vec<Part>,
    /// Parts that have not ended yet, each indented further than the one before.
    open: Vec<OpenPart>,
    /// The comment that ends directly above.
    above: Option<(Range<usize>, LineRange)>,
    /// The last line that is not blank: its number and its end.
    last: Option<(usize, usize)>,
}

struct OpenPart {
    part: usize,
    indent: usize,
    /// True for a namespace, whose contents are often not indented further. It ends with a brace.
    braced: bool,
}

impl LineOutliner<'_> {
    fn read_line(&mut self, number: usize, line: Line) {
        let shown = start_of(&self.text[line.start..line.end], EXAMINED_BYTES_MAX);
        let content = shown.trim_start();
        if content.trim_end().is_empty() {
            self.above = None;
            return;
        }
        let indent = width(&shown[..shown.len() - content.len()]);
        let at = line.start + shown.len() - content.len();
        if is_comment(content) {
            let (bytes, lines) = self
                .above
                .take()
                .unwrap_or((at..line.end, LineRange { first: number, last: number }));
            self.above =
                Some((bytes.start..line.end, LineRange { first: lines.first, last: number }));
        } else {
            self.close_ended(indent, content, number, line);
            if let Some((kind, name)) = definition(content, &self.text[at..]) {
                self.begin(kind, at + name.start..at + name.end, indent, number, at..line.end);
            }
            self.above = None;
        }
        self.last = Some((number, line.end));
    }

    /// Ends the parts that a line with this indent is no longer in.
    fn close_ended(&mut self, indent: usize, content: &str, number: usize, line: Line) {
        if self.is_in_directive() {
            let Some((_, end)) = self.last else { return };
            if self.text[..end].ends_with('\\') {
                return;
            }
            if let Some(open) = self.open.pop() {
                self.end_part(open.part, self.last);
            }
        }
        if is_label(content) {
            return;
        }
        while let Some(open) = self.open.last().filter(|open| open.indent >= indent) {
            let part = open.part;
            let closes = open.indent == indent && is_closing(content);
            let goes_on = content.starts_with('{') || (open.braced && !closes);
            if open.indent == indent && goes_on {
                return;
            }
            let last = if closes { Some((number, line.end)) } else { self.last };
            self.end_part(part, last);
            self.open.pop();
            if closes {
                return;
            }
        }
    }

    /// True if the innermost part is a preprocessor directive.
    fn is_in_directive(&self) -> bool {
        let part = self.open.last().and_then(|open| self.parts.get(open.part));
        part.is_some_and(|part| self.text[part.bytes.start..].starts_with('#'))
    }

    fn end_part(&mut self, part: usize, last: Option<(usize, usize)>) {
        if let (Some(part), Some((number, end))) = (self.parts.get_mut(part), last)
            && number >= part.lines.first
        {
            part.lines.last = number;
            part.bytes.end = end;
        }
    }

    fn close_all(&mut self) {
        while let Some(open) = self.open.pop() {
            self.end_part(open.part, self.last);
        }
    }

    fn begin(
        &mut self,
        kind: PartKind,
        name: Range<usize>,
        indent: usize,
        number: usize,
        bytes: Range<usize>,
    ) {
        let around = self.open.last().and_then(|open| self.parts.get(open.part));
        let is_method =
            kind == PartKind::Function && around.is_some_and(|part| part.kind.has_methods());
        let skipped = self.open.len().saturating_sub(SCOPE_DEPTH_MAX);
        let names = self.open.iter().skip(skipped).filter_map(|open| self.parts.get(open.part));
        let scope = names.map(|part| part.name.clone()).collect();
        let above = self.above.take().filter(|(bytes, _)| !display::is_licence(self.text, bytes));
        let doc = above.map(|(bytes, lines)| {
            let text = display::doc(&self.text[bytes.clone()]);
            Doc { bytes, lines, text }
        });
        let head = start_of(&self.text[bytes.clone()], EXAMINED_BYTES_MAX).trim_end();
        // A preprocessor directive continues only after a backslash.
        let goes_on = if head.starts_with('#') { head.ends_with('\\') } else { true };
        if goes_on && !head.ends_with([';', '}']) {
            let braced = kind == PartKind::Module && head.ends_with('{');
            self.open.push(OpenPart { part: self.parts.len(), indent, braced });
        }
        self.parts.push(Part {
            name: display::name(&self.text[name.clone()]),
            kind: if is_method { PartKind::Method } else { kind },
            scope,
            signature: display::signature(head.split('{').take(1)),
            bytes,
            lines: LineRange { first: number, last: number },
            name_bytes: name,
            name_line: number,
            doc,
        });
    }
}

fn width(indent: &str) -> usize {
    indent.bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum()
}

fn is_comment(content: &str) -> bool {
    let hash = content.strip_prefix('#').is_some_and(|rest| rest.starts_with([' ', '#']));
    let defines = content.trim_start_matches(['#', ' ', '\t']).starts_with("define ");
    (hash && !defines)
        || ["//", "/*", "* ", "*/", "--", ";;", "%"].iter().any(|mark| content.starts_with(mark))
}

/// True for a line that ends a part and is indented like its beginning.
fn is_closing(content: &str) -> bool {
    let word = content.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    content.starts_with(['}', ')', ']']) || matches!(word, "end" | "fi" | "done" | "esac")
}

/// True for a line in the middle of a part that may be indented like its beginning: `public:`, a preprocessor
/// directive.
fn is_label(content: &str) -> bool {
    let access = ["public", "private", "protected", "signals"];
    content.starts_with('#')
        || access.iter().any(|word| {
            content.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
}
