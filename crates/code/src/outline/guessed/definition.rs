//! Guesses what a line defines, by the forms that definitions have in most languages: a keyword, an assignment of a
//! function, or parameters with a body.

use std::ops::Range;

use crate::part_kind::PartKind;

/// Most bytes examined of a line, and of the text after a name.
pub(super) const EXAMINED_BYTES_MAX: usize = 400;
/// Most line breaks in parameters.
const PARAMETER_LINES_MAX: usize = 12;

/// Returns as much of the start of `text` as fits in `most` bytes.
pub(super) fn start_of(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns the kind of what a line defines, and the range of its name. `rest` is the text from the same place on.
pub(super) fn definition(content: &str, rest: &str) -> Option<(PartKind, Range<usize>)> {
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
pub(in crate::outline) fn begins_with_keyword(text: &str) -> bool {
    let line = start_of(text, EXAMINED_BYTES_MAX).split(['\n', '\r']).next().unwrap_or_default();
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
    for byte in start_of(from_parameters, 2 * EXAMINED_BYTES_MAX).bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'\n' | b'\r' if lines == PARAMETER_LINES_MAX => return false,
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
