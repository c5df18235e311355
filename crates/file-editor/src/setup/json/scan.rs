//! Scanner of JSON with comments and trailing commas, which records the range of each part.

use std::ops::Range;

use super::super::entry::ParseError;
use super::super::scanner::{Scanner, first_line};

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value with its range.
#[derive(Debug)]
pub struct Node {
    pub range: Range<usize>,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub enum NodeKind {
    Object(Vec<Member>),
    /// A list of texts only.
    Texts(Vec<String>),
    Text(String),
    Other,
}

#[derive(Debug)]
pub struct Member {
    pub key: String,
    /// Start of the key.
    pub start: usize,
    /// Gap before the key: it starts after a brace, a comma or a comment.
    pub gap: Gap,
    pub value: Node,
    /// Position of the comma after the value.
    pub comma: Option<usize>,
}

/// Blanks and line breaks before a token.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub start: usize,
    /// True if a line comment is before it, which would go on without the line break.
    pub follows_line_comment: bool,
}

impl Node {
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            NodeKind::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns the member of that name. A repeated name is an error, since parsers may use either.
    pub fn member(&self, text: &str, key: &str) -> Result<Option<&Member>, ParseError> {
        let mut found = self.members().iter().filter(|member| member.key == key);
        match (found.next(), found.next()) {
            (_, Some(twice)) => {
                Err(ParseError::at(text, twice.start, &format!("`{key}` occurs twice")))
            }
            (member, None) => Ok(member),
        }
    }

    /// Returns the member of that name, if any, which then must be an object.
    pub fn object(&self, text: &str, key: &str) -> Result<Option<&Self>, ParseError> {
        match self.member(text, key)? {
            Some(Member { value, .. }) if matches!(value.kind, NodeKind::Object(_)) => {
                Ok(Some(value))
            }
            Some(member) => Err(ParseError::at(
                text,
                member.start,
                &format!("`{key}` is not an object (`{{ … }}`)"),
            )),
            None => Ok(None),
        }
    }
}

/// Scans the one value of a text; `None` if there is nothing but blanks.
pub fn scan(text: &str) -> Result<Option<Node>, ParseError> {
    if text.trim_matches(BLANKS).is_empty() {
        return Ok(None);
    }
    let mut scanner = Scanner::new(text);
    skip(&mut scanner)?;
    let root = value(&mut scanner)?;
    skip(&mut scanner)?;
    if scanner.at < text.len() {
        return Err(scanner.error("unexpected text after the end"));
    }
    if !matches!(root.kind, NodeKind::Object(_)) {
        return Err(ParseError::at(text, root.range.start, "not an object (`{ … }`)"));
    }
    Ok(Some(root))
}

/// Returns the gap after the comments that belong to what ends at `at`: those on the rest of its line.
pub fn end_of_comments(text: &str, at: usize) -> Gap {
    let mut gap = Gap { start: at, follows_line_comment: false };
    loop {
        let blanks =
            text[gap.start..].len() - text[gap.start..].trim_start_matches([' ', '\t']).len();
        match comment(text, gap.start + blanks) {
            Some(Comment::Line(end)) => return Gap { start: end, follows_line_comment: true },
            Some(Comment::Block(end)) if !text[gap.start..end].contains('\n') => gap.start = end,
            _ => return gap,
        }
    }
}

/// A comment, with its end.
enum Comment {
    /// Ends before the line break.
    Line(usize),
    Block(usize),
    Endless,
}

/// Returns the comment that begins here.
fn comment(text: &str, at: usize) -> Option<Comment> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return Some(Comment::Line(at + first_line(rest).len()));
    }
    let inside = rest.strip_prefix("/*")?;
    Some(inside.find("*/").map_or(Comment::Endless, |end| Comment::Block(at + 2 + end + 2)))
}

/// Skips blanks and comments.
fn skip(scanner: &mut Scanner<'_>) -> Result<Gap, ParseError> {
    let mut gap = Gap { start: scanner.at, follows_line_comment: false };
    loop {
        scanner.take_all(|c| BLANKS.contains(&c));
        gap = match comment(scanner.text, scanner.at) {
            None => return Ok(gap),
            Some(Comment::Endless) => return Err(scanner.error("unterminated comment")),
            Some(Comment::Line(end)) => Gap { start: end, follows_line_comment: true },
            Some(Comment::Block(end)) => Gap { start: end, follows_line_comment: false },
        };
        scanner.at = gap.start;
    }
}

fn value(scanner: &mut Scanner<'_>) -> Result<Node, ParseError> {
    let start = scanner.at;
    let kind = match scanner.rest().bytes().next() {
        Some(b'{') => object(scanner)?,
        Some(b'[') => list(scanner)?,
        Some(b'"') => scanner.take_quoted()?.map_or(NodeKind::Other, NodeKind::Text),
        Some(_) => word(scanner)?,
        None => return Err(scanner.error("unexpected end of file")),
    };
    Ok(Node { range: start..scanner.at, kind })
}

fn object(scanner: &mut Scanner<'_>) -> Result<NodeKind, ParseError> {
    scanner.enter()?;
    let mut members: Vec<Member> = Vec::new();
    loop {
        let gap = skip(scanner)?;
        if scanner.take("}") {
            scanner.leave();
            return Ok(NodeKind::Object(members));
        }
        if members.last().is_some_and(|last| last.comma.is_none()) {
            return Err(scanner.error("expected `,` or `}`"));
        }
        let start = scanner.at;
        if !scanner.rest().starts_with('"') {
            return Err(scanner.error("expected a name in quotes"));
        }
        // A name that cannot be decoded is none that is looked for.
        let key = scanner.take_quoted()?.unwrap_or_default();
        skip(scanner)?;
        if !scanner.take(":") {
            return Err(scanner.error("expected `:`"));
        }
        skip(scanner)?;
        let value = value(scanner)?;
        let comma = comma(scanner)?;
        members.push(Member { key, start, gap, value, comma });
    }
}

fn list(scanner: &mut Scanner<'_>) -> Result<NodeKind, ParseError> {
    scanner.enter()?;
    let (mut texts, mut has_others, mut is_open) = (Vec::new(), false, true);
    loop {
        skip(scanner)?;
        if scanner.take("]") {
            scanner.leave();
            return Ok(if has_others { NodeKind::Other } else { NodeKind::Texts(texts) });
        }
        if !is_open {
            return Err(scanner.error("expected `,` or `]`"));
        }
        match value(scanner)?.kind {
            NodeKind::Text(text) => texts.push(text),
            _ => has_others = true,
        }
        is_open = comma(scanner)?.is_some();
    }
}

/// Returns the position of the next comma, if it comes next.
fn comma(scanner: &mut Scanner<'_>) -> Result<Option<usize>, ParseError> {
    let before = scanner.at;
    skip(scanner)?;
    let at = scanner.at;
    if scanner.take(",") {
        return Ok(Some(at));
    }
    scanner.at = before;
    Ok(None)
}

fn word(scanner: &mut Scanner<'_>) -> Result<NodeKind, ParseError> {
    let word = scanner.take_all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // Other words that Rust parses as numbers, such as `inf`, begin with a letter.
    let is_number = || {
        let begins = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        begins && word.parse::<f64>().is_ok()
    };
    if matches!(word, "true" | "false" | "null") || is_number() {
        return Ok(NodeKind::Other);
    }
    Err(scanner.error("expected a value"))
}
