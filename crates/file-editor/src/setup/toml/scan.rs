//! Scanner of TOML, which records the headers and pairs with their ranges.

use std::ops::Range;

use super::super::entry::ParseError;
use super::super::scanner::{Scanner, first_line};

/// A header, or a pair of a key and a value.
pub struct Item {
    /// Range of all its lines, with the last line break.
    pub range: Range<usize>,
    /// Names of a header or key.
    pub path: Vec<String>,
    pub kind: ItemKind,
}

pub enum ItemKind {
    Table,
    /// `[[…]]`
    Tables,
    Pair {
        value: TomlValue,
        at: Range<usize>,
    },
}

#[derive(PartialEq, Eq)]
pub enum TomlValue {
    Text(String),
    /// A list of texts only.
    Texts(Vec<String>),
    Other,
}

impl Item {
    pub fn is_pair(&self) -> bool {
        matches!(self.kind, ItemKind::Pair { .. })
    }
}

pub fn scan(text: &str) -> Result<Vec<Item>, ParseError> {
    let mut scanner = Scanner::new(text);
    let mut items = Vec::new();
    loop {
        skip_lines(&mut scanner)?;
        if scanner.at == text.len() {
            return Ok(items);
        }
        let start = text[..scanner.at].rfind('\n').map_or(0, |before| before + 1);
        let is_header = scanner.rest().starts_with('[');
        let (path, kind) = if is_header { header(&mut scanner)? } else { pair(&mut scanner)? };
        skip_blanks(&mut scanner);
        skip_comment(&mut scanner)?;
        if !take_line_break(&mut scanner) && scanner.at < text.len() {
            return Err(scanner.error("unexpected text on the same line"));
        }
        items.push(Item { range: start..scanner.at, path, kind });
    }
}

fn skip_blanks(scanner: &mut Scanner<'_>) {
    scanner.take_all(|c| matches!(c, ' ' | '\t'));
}

fn skip_comment(scanner: &mut Scanner<'_>) -> Result<(), ParseError> {
    if !scanner.rest().starts_with('#') {
        return Ok(());
    }
    let line = first_line(scanner.rest());
    if line.contains('\r') {
        return Err(scanner.error("carriage return without a line feed"));
    }
    scanner.at += line.len();
    Ok(())
}

fn take_line_break(scanner: &mut Scanner<'_>) -> bool {
    scanner.take("\n") || scanner.take("\r\n")
}

/// Skips blanks, comments and line breaks.
fn skip_lines(scanner: &mut Scanner<'_>) -> Result<(), ParseError> {
    loop {
        skip_blanks(scanner);
        skip_comment(scanner)?;
        if !take_line_break(scanner) {
            return Ok(());
        }
    }
}

fn header(scanner: &mut Scanner<'_>) -> Result<(Vec<String>, ItemKind), ParseError> {
    let (close, kind) = if scanner.take("[[") {
        ("]]", ItemKind::Tables)
    } else {
        scanner.take("[");
        ("]", ItemKind::Table)
    };
    let path = key(scanner)?;
    if scanner.take(close) { Ok((path, kind)) } else { Err(scanner.error("expected `]`")) }
}

fn pair(scanner: &mut Scanner<'_>) -> Result<(Vec<String>, ItemKind), ParseError> {
    let path = key(scanner)?;
    if !scanner.take("=") {
        return Err(scanner.error("expected `=`"));
    }
    skip_blanks(scanner);
    let start = scanner.at;
    let value = value(scanner)?;
    Ok((path, ItemKind::Pair { value, at: start..scanner.at }))
}

/// Parses names with dots between them, and blanks around.
fn key(scanner: &mut Scanner<'_>) -> Result<Vec<String>, ParseError> {
    let mut names = Vec::new();
    loop {
        skip_blanks(scanner);
        let name = match scanner.rest().bytes().next() {
            Some(b'"') => scanner
                .take_quoted()?
                .ok_or_else(|| scanner.error("unsupported escape in a name"))?,
            Some(b'\'') => literal(scanner)?,
            _ => bare(scanner)?,
        };
        names.push(name);
        skip_blanks(scanner);
        if !scanner.take(".") {
            return Ok(names);
        }
    }
}

fn bare(scanner: &mut Scanner<'_>) -> Result<String, ParseError> {
    let name = scanner.take_all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if name.is_empty() { Err(scanner.error("expected a name")) } else { Ok(name.into()) }
}

fn value(scanner: &mut Scanner<'_>) -> Result<TomlValue, ParseError> {
    let rest = scanner.rest();
    if rest.starts_with("\"\"\"") || rest.starts_with("'''") {
        return several_lines(scanner);
    }
    match rest.bytes().next() {
        Some(b'"') => Ok(scanner.take_quoted()?.map_or(TomlValue::Other, TomlValue::Text)),
        Some(b'\'') => literal(scanner).map(TomlValue::Text),
        Some(b'[') => list(scanner),
        Some(b'{') => table(scanner),
        _ => word(scanner),
    }
}

fn list(scanner: &mut Scanner<'_>) -> Result<TomlValue, ParseError> {
    scanner.enter()?;
    let (mut texts, mut has_others, mut is_open) = (Vec::new(), false, true);
    loop {
        skip_lines(scanner)?;
        if scanner.take("]") {
            scanner.leave();
            return Ok(if has_others { TomlValue::Other } else { TomlValue::Texts(texts) });
        }
        if !is_open {
            return Err(scanner.error("expected `,` or `]`"));
        }
        match value(scanner)? {
            TomlValue::Text(text) => texts.push(text),
            _ => has_others = true,
        }
        skip_lines(scanner)?;
        is_open = scanner.take(",");
    }
}

fn table(scanner: &mut Scanner<'_>) -> Result<TomlValue, ParseError> {
    scanner.enter()?;
    let mut is_open = true;
    loop {
        skip_lines(scanner)?;
        if scanner.take("}") {
            scanner.leave();
            return Ok(TomlValue::Other);
        }
        if !is_open {
            return Err(scanner.error("expected `,` or `}`"));
        }
        pair(scanner)?;
        skip_lines(scanner)?;
        is_open = scanner.take(",");
    }
}

/// Parses `'…'`.
fn literal(scanner: &mut Scanner<'_>) -> Result<String, ParseError> {
    let inside = &scanner.rest()[1..];
    scanner.take_string(inside.split_once('\'').map(|(inside, _)| inside)).map(String::from)
}

/// Skips `"""…"""` or `'''…'''`, which may end with up to five quotes.
fn several_lines(scanner: &mut Scanner<'_>) -> Result<TomlValue, ParseError> {
    let (quotes, has_escapes) =
        if scanner.rest().starts_with('"') { ("\"\"\"", true) } else { ("'''", false) };
    let mut at = scanner.at + quotes.len();
    loop {
        let rest = &scanner.text[at..];
        if let Some(behind) = rest.strip_prefix(quotes) {
            let more = behind.len() - behind.trim_start_matches(&quotes[..1]).len();
            scanner.at = at + quotes.len() + more.min(2);
            return Ok(TomlValue::Other);
        }
        let next = rest.chars().next().ok_or_else(|| scanner.error("unterminated string"))?;
        at += next.len_utf8();
        if has_escapes && next == '\\' {
            at += scanner.text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
}

/// Skips a number, a date, `true` or `false`.
fn word(scanner: &mut Scanner<'_>) -> Result<TomlValue, ParseError> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._:".contains(c);
    let word = scanner.take_all(is_part);
    if word.is_empty() {
        return Err(scanner.error("expected a value"));
    }
    // A date may have a blank before its time.
    let has_time = scanner.rest().starts_with(' ')
        && scanner.rest()[1..].starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit());
    if has_time {
        scanner.at += 1;
        scanner.take_all(is_part);
    }
    Ok(TomlValue::Other)
}
