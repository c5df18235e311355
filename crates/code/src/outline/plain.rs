//! Outlines of any text, guessed line by line.
//!
//! A part begins where a line begins as definitions do in most languages, and ends before the next line that is not
//! indented further.

use std::ops::Range;

use text::LineRange;
use text::lines::{Line, lines};

use super::{DEEPEST_SCOPE, Doc, MOST_PARTS, Part, PartKind, words};

/// Most bytes examined of a line, and of the text after a name.
const LOOKED_AT: usize = 400;
/// Most line breaks in parameters.
const MOST_PARAMETER_LINES: usize = 12;

/// Returns the parts, and true if there are more.
pub(super) fn outline(text: &str, stop: &dyn Fn() -> bool) -> (Vec<Part>, bool) {
    let mut guess = Guess { text, parts: Vec::new(), open: Vec::new(), above: None, last: None };
    for (number, line) in lines(text).enumerate() {
        if guess.parts.len() >= MOST_PARTS || (number % 1024 == 0 && stop()) {
            guess.close_all();
            return (guess.parts, true);
        }
        guess.take(number, line);
    }
    guess.close_all();
    (guess.parts, false)
}

struct Guess<'a> {
    text: &'a str,
    parts: Vec<Part>,
    /// Parts that have not ended yet, each indented further than the one before.
    open: Vec<Open>,
    /// The comment that ends directly above.
    above: Option<(Range<usize>, LineRange)>,
    /// The last line that is not blank: its number and its end.
    last: Option<(usize, usize)>,
}

struct Open {
    part: usize,
    indent: usize,
    /// True for a namespace, whose contents are often not indented further. It ends with a brace.
    braced: bool,
}

impl Guess<'_> {
    fn take(&mut self, number: usize, line: Line) {
        let shown = start_of(&self.text[line.start..line.end], LOOKED_AT);
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
            self.end_what_is_over(indent, content, number, line);
            if let Some((kind, name)) = definition(content, &self.text[at..]) {
                self.begin(kind, at + name.start..at + name.end, indent, number, at..line.end);
            }
            self.above = None;
        }
        self.last = Some((number, line.end));
    }

    /// Ends the parts that a line with this indent is no longer in.
    fn end_what_is_over(&mut self, indent: usize, content: &str, number: usize, line: Line) {
        if self.is_in_directive() {
            let Some((_, end)) = self.last else { return };
            if self.text[..end].ends_with('\\') {
                return;
            }
            if let Some(open) = self.open.pop() {
                self.end(open.part, self.last);
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
            self.end(part, last);
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

    fn end(&mut self, part: usize, last: Option<(usize, usize)>) {
        if let (Some(part), Some((number, end))) = (self.parts.get_mut(part), last)
            && number >= part.lines.first
        {
            part.lines.last = number;
            part.bytes.end = end;
        }
    }

    fn close_all(&mut self) {
        while let Some(open) = self.open.pop() {
            self.end(open.part, self.last);
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
        let skipped = self.open.len().saturating_sub(DEEPEST_SCOPE);
        let names = self.open.iter().skip(skipped).filter_map(|open| self.parts.get(open.part));
        let scope = names.map(|part| part.name.clone()).collect();
        let above = self.above.take().filter(|(bytes, _)| !words::is_licence(self.text, bytes));
        let doc = above.map(|(bytes, lines)| {
            let text = words::doc(&self.text[bytes.clone()]);
            Doc { bytes, lines, text }
        });
        let head = start_of(&self.text[bytes.clone()], LOOKED_AT).trim_end();
        // A preprocessor directive continues only after a backslash.
        let goes_on = if head.starts_with('#') { head.ends_with('\\') } else { true };
        if goes_on && !head.ends_with([';', '}']) {
            let braced = kind == PartKind::Module && head.ends_with('{');
            self.open.push(Open { part: self.parts.len(), indent, braced });
        }
        self.parts.push(Part {
            name: words::name(&self.text[name.clone()]),
            kind: if is_method { PartKind::Method } else { kind },
            scope,
            signature: words::signature(head.split('{').take(1)),
            bytes,
            lines: LineRange { first: number, last: number },
            name_bytes: name,
            name_line: number,
            doc,
        });
    }
}

/// Returns as much of the start of `text` as fits in `most` bytes.
fn start_of(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn width(blanks: &str) -> usize {
    blanks.bytes().map(|blank| if blank == b'\t' { 4 } else { 1 }).sum()
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

/// Returns the kind of what a line defines, and the range of its name. `rest` is the text from the same place on.
fn definition(content: &str, rest: &str) -> Option<(PartKind, Range<usize>)> {
    let found = macro_of(content)
        .or_else(|| by_typedef(content))
        .or_else(|| by_keyword(content))
        .or_else(|| by_assignment(content))
        .or_else(|| by_parameters(content, rest));
    found.map(|(kind, name)| {
        let start = offset(content, name);
        (kind, start..start + name.len())
    })
}

/// Byte offset of `part` in `whole`, of which it must be a slice.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Finds the name in `#define NAME`.
fn macro_of(content: &str) -> Option<(PartKind, &str)> {
    let rest = content.strip_prefix('#')?.trim_start().strip_prefix("define")?;
    let name = word(rest.trim_start());
    (rest.starts_with([' ', '\t']) && !name.is_empty()).then_some((PartKind::Macro, name))
}

/// Finds the name in `typedef some type name;` and `typedef some type (*name)(parameters);`.
fn by_typedef(content: &str) -> Option<(PartKind, &str)> {
    let rest = content.strip_prefix("typedef ")?;
    let declared = rest.split_once(';')?.0;
    let declared = match declared.split_once('(') {
        Some((_, pointer)) => pointer.split_once(')')?.0,
        None => declared.split('[').next().unwrap_or_default(),
    };
    let declared = declared.trim_end();
    let start = declared.rfind(|c| !is_name_char(c)).map_or(0, |at| at + 1);
    let name = declared.get(start..)?;
    (!name.is_empty()).then_some((PartKind::Type, name))
}

/// True if `text` begins with a line in which a keyword begins a definition.
pub(super) fn begins_with_keyword(text: &str) -> bool {
    let line = start_of(text, LOOKED_AT).split(['\n', '\r']).next().unwrap_or_default();
    by_keyword(line).is_some()
}

/// Finds the name in `public static class Name`: modifiers, a keyword for the kind, and the name.
fn by_keyword(content: &str) -> Option<(PartKind, &str)> {
    let mut rest = without_template(content);
    loop {
        let first = word(rest);
        let behind = rest[first.len()..].trim_start_matches('!');
        let is_modifier = first == "const" && keyword(word(behind.trim_start())).is_some();
        if let Some(kind) = keyword(first).filter(|_| !is_modifier) {
            let has_blank = behind.starts_with([' ', '\t']);
            return if has_blank { named(kind, behind.trim_start()) } else { None };
        }
        rest = behind_modifier(first, behind)?;
    }
}

/// Returns the text after `template <class T>`, or all of it if there is none.
fn without_template(content: &str) -> &str {
    let Some(rest) = content.strip_prefix("template") else { return content };
    let mut depth = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b' ' | b'\t' => continue,
            _ => {}
        }
        if depth == 0 {
            return if byte == b'>' { rest[at + 1..].trim_start() } else { content };
        }
    }
    content
}

fn behind_modifier<'a>(first: &str, behind: &'a str) -> Option<&'a str> {
    let behind = match first {
        "pub" if behind.starts_with('(') => behind.split_once(')')?.1,
        "const" => behind,
        "extern" => behind.trim_start().trim_start_matches("\"C\""),
        _ if is_modifier(first) => behind,
        _ => return None,
    };
    behind.starts_with([' ', '\t', '"']).then(|| behind.trim_start())
}

fn is_modifier(word: &str) -> bool {
    matches!(
        word,
        "abstract"
            | "actual"
            | "async"
            | "case"
            | "companion"
            | "constexpr"
            | "data"
            | "declare"
            | "default"
            | "expect"
            | "export"
            | "extern"
            | "file"
            | "fileprivate"
            | "final"
            | "global"
            | "implicit"
            | "infix"
            | "inline"
            | "inner"
            | "internal"
            | "lazy"
            | "local"
            | "native"
            | "new"
            | "open"
            | "operator"
            | "override"
            | "partial"
            | "private"
            | "protected"
            | "pub"
            | "public"
            | "readonly"
            | "sealed"
            | "static"
            | "suspend"
            | "tailrec"
            | "typedef"
            | "unsafe"
            | "value"
            | "virtual"
    )
}

fn keyword(word: &str) -> Option<PartKind> {
    Some(match word {
        "def" | "defn" | "defp" | "fn" | "fun" | "func" | "function" | "proc" | "procedure"
        | "rpc" | "sub" | "subroutine" => PartKind::Function,
        "actor" | "class" | "object" => PartKind::Class,
        "message" | "record" | "struct" | "union" => PartKind::Struct,
        "enum" => PartKind::Enum,
        "interface" | "protocol" | "service" => PartKind::Interface,
        "trait" => PartKind::Trait,
        "type" | "typealias" => PartKind::Type,
        "const" => PartKind::Constant,
        "defmodule" | "mod" | "module" | "namespace" | "package" => PartKind::Module,
        "defmacro" | "macro" | "macro_rules" => PartKind::Macro,
        _ => return None,
    })
}

/// Returns the name after a keyword, if the text after it looks like code and not like a sentence.
fn named(kind: PartKind, rest: &str) -> Option<(PartKind, &str)> {
    let mut rest = rest;
    if kind == PartKind::Enum {
        rest = rest.strip_prefix("class ").or(rest.strip_prefix("struct ")).unwrap_or(rest);
    }
    if kind == PartKind::Function {
        rest = behind_receiver(rest);
    }
    let mut name = qualified(rest);
    let mut behind = rest[name.len()..].trim_start();
    if kind.has_methods() && is_export_mark(name) && !word(behind).is_empty() {
        name = qualified(behind);
        behind = behind[name.len()..].trim_start();
    }
    let is_code = behind.is_empty()
        || behind
            .starts_with(['{', '(', '<', ':', '=', ';', '[', '\\', '&', '|', '!', '/', '#', ','])
        || matches!(
            word(behind),
            "extends" | "implements" | "final" | "is" | "where" | "do" | "as" | "permits"
        );
    // A C function that returns a struct does not define it.
    let is_other = kind.has_methods() && behind.starts_with(['*', '&']);
    let only_declared = kind.has_methods() && behind.starts_with(';');
    let name = last_segment(name);
    (is_code && !is_other && !only_declared && !name.is_empty()).then_some((kind, name))
}

/// Returns the text after a receiver or type parameters: `(receiver Type) name` and `<T> name`.
fn behind_receiver(rest: &str) -> &str {
    let close = match rest.as_bytes().first() {
        Some(b'(') => ')',
        Some(b'<') => '>',
        _ => return rest.trim_start_matches('&'),
    };
    rest.split_once(close).map_or(rest, |(_, behind)| behind.trim_start())
}

/// True for a macro such as `SOME_EXPORT` between a keyword and the name.
fn is_export_mark(name: &str) -> bool {
    name.len() > 1
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// Finds the name in `name = function (…)`.
fn by_assignment(content: &str) -> Option<(PartKind, &str)> {
    let name = qualified(content);
    let value = content[name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let is_function = word(value) == "function";
    let name = last_segment(name);
    (is_function && !name.is_empty()).then_some((PartKind::Function, name))
}

/// Finds the name in `some type name(parameters) {`, as in most languages with braces, and in `name() {`, as in shells.
fn by_parameters<'a>(content: &'a str, rest: &str) -> Option<(PartKind, &'a str)> {
    let content = without_template(content);
    let rest = &rest[offset(rest, content)..];
    let open = content.find('(')?;
    let head = content[..open].trim_end();
    let at = head
        .rfind(|c: char| !is_name_char(c) && !matches!(c, ':' | '~' | '-' | '.'))
        .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
    let (before, name) = head.split_at(at);
    let alone = before.trim().is_empty();
    let in_shell = alone && content[open + 1..].trim_start().starts_with(')');
    if (alone && !in_shell && !name.contains("::")) || !is_type(before) || is_control(name) {
        return None;
    }
    let name = last_segment(name);
    (!name.is_empty() && has_body(&rest[open..])).then_some((PartKind::Function, name))
}

fn is_type(before: &str) -> bool {
    let is_type_char = |c: char| {
        is_name_char(c)
            || matches!(c, ' ' | '\t' | ':' | '<' | '>' | ',' | '*' | '&' | '[' | ']' | '.' | '?')
    };
    before.chars().all(is_type_char) && !before.split_whitespace().any(is_control)
}

fn is_control(word: &str) -> bool {
    matches!(
        word,
        "await"
            | "case"
            | "catch"
            | "co_await"
            | "delete"
            | "do"
            | "else"
            | "elseif"
            | "for"
            | "foreach"
            | "goto"
            | "if"
            | "in"
            | "lock"
            | "match"
            | "new"
            | "not"
            | "return"
            | "sizeof"
            | "switch"
            | "synchronized"
            | "throw"
            | "until"
            | "using"
            | "when"
            | "while"
            | "with"
            | "yield"
    )
}

/// True if a body opens after the parameters, before the statement ends.
fn has_body(from_parameters: &str) -> bool {
    let (mut depth, mut lines) = (0_usize, 0);
    for byte in start_of(from_parameters, 2 * LOOKED_AT).bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'\n' | b'\r' if lines == MOST_PARAMETER_LINES => return false,
            b'\n' | b'\r' => lines += 1,
            b'{' if depth == 0 => return true,
            b';' | b'}' | b'=' if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the name that `text` begins with.
fn word(text: &str) -> &str {
    &text[..text.find(|c| !is_name_char(c)).unwrap_or(text.len())]
}

/// Returns the name that `text` begins with, with the names around it: `A::b`, `a.b`, `A:b`, `valid?`.
fn qualified(text: &str) -> &str {
    let end = text
        .find(|c| !is_name_char(c) && !matches!(c, ':' | '.' | '?' | '!' | '-' | '/' | '\\' | '@'))
        .unwrap_or(text.len());
    text[..end].trim_end_matches([':', '.', '-', '/'])
}

fn last_segment(name: &str) -> &str {
    name.rsplit([':', '.', '/', '\\']).next().unwrap_or_default()
}
