//! Tells C++ headers from C headers.
//!
//! The name of a header does not tell its language. It is C unless it plainly has syntax that only C++ has, outside of
//! comments, strings and directives: most of the keywords that only C++ has may be names in C.

/// True if `text` has syntax that only C++ has.
pub(crate) fn is_cpp(text: &str) -> bool {
    let mut tokens = Tokens { rest: text, begins_line: true };
    let mut before = Token { text: "", begins_line: true };
    let mut in_attribute = false;
    while let Some(token) = tokens.next() {
        match token.text {
            // Attributes of C may have such names too: `[[gnu::packed]]`.
            "[" if before.text == "[" => in_attribute = true,
            "]" => in_attribute = false,
            _ if in_attribute => {}
            _ if is_only_cpp(&before, &token, &tokens) => return true,
            _ => {}
        }
        before = token;
    }
    false
}

/// True if `token`, which is between `before` and `behind`, is there only in C++.
fn is_only_cpp(before: &Token<'_>, token: &Token<'_>, behind: &Tokens<'_>) -> bool {
    let mut behind = behind.clone();
    let mut next = || behind.next().map_or("", |token| token.text);
    let is_tag = matches!(before.text, "struct" | "union");
    match token.text {
        ":" => next() == ":" && is_word(next()),
        "template" | "static_cast" => next() == "<",
        "namespace" => match next() {
            "{" => true,
            name => is_word(name) && matches!(next(), "{" | ":" | "="),
        },
        "using" => match next() {
            "namespace" => true,
            name => is_word(name) && matches!(next(), "=" | ":"),
        },
        "public" | "private" | "protected" => token.begins_line && next() == ":",
        "virtual" => !is_tag && matches!(next(), name if name == "~" || is_word(name)),
        "operator" => begins_operator(&mut next),
        "class" if before.text == "enum" => is_word(next()) && matches!(next(), "{" | ":"),
        "class" => !is_tag && is_class(&mut next),
        _ => false,
    }
}

/// True for `Name {`, `Name;`, `Name : public Other`, also after a macro that exports it.
fn is_class<'a>(next: &mut impl FnMut() -> &'a str) -> bool {
    if !is_word(next()) {
        return false;
    }
    let behind = next();
    let behind = if is_word(behind) && behind != "final" { next() } else { behind };
    matches!(behind, "{" | ";" | ":" | "<" | "final")
}

/// True for `==(`, `()(`, `[](`, `bool(`.
fn begins_operator<'a>(next: &mut impl FnMut() -> &'a str) -> bool {
    const OPERATOR_TOKENS_MAX: usize = 3;
    let first = next();
    if first == "(" {
        return next() == ")" && next() == "(";
    }
    if is_word(first) {
        return next() == "(";
    }
    let is_mark = |mark: &str| mark.starts_with(|c| "=<>!+-*/%&|^~[],".contains(c));
    is_mark(first) && {
        let mut others = (0..OPERATOR_TOKENS_MAX).map(|_| next());
        others.find(|mark| !is_mark(mark)) == Some("(")
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(is_word_char)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Token<'a> {
    /// A word, a string or a mark.
    text: &'a str,
    begins_line: bool,
}

/// Tokens of the rest of a text.
#[derive(Clone)]
struct Tokens<'a> {
    rest: &'a str,
    /// True if the line had only whitespace so far.
    begins_line: bool,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let first = self.rest.chars().next()?;
            let length = match first {
                '\n' | '\r' => {
                    self.begins_line = true;
                    self.rest = &self.rest[1..];
                    continue;
                }
                _ if first.is_whitespace() => {
                    self.rest = &self.rest[first.len_utf8()..];
                    continue;
                }
                '/' if self.rest.starts_with("//") => {
                    self.rest = behind_line(self.rest);
                    continue;
                }
                '/' if self.rest.starts_with("/*") => {
                    self.rest = self.rest[2..].split_once("*/").map_or("", |(_, rest)| rest);
                    continue;
                }
                '#' if self.begins_line => {
                    self.rest = behind_line(self.rest);
                    continue;
                }
                '"' | '\'' => quoted(self.rest, first),
                _ if is_word_char(first) => {
                    self.rest.find(|c| !is_word_char(c)).unwrap_or(self.rest.len())
                }
                _ => first.len_utf8(),
            };
            let (text, rest) = self.rest.split_at(length);
            self.rest = rest;
            return Some(Token {
                text,
                begins_line: std::mem::replace(&mut self.begins_line, false),
            });
        }
    }
}

/// Returns the text from the end of its first line on; a backslash continues the line. A directive ends before a
/// comment that may be longer than the line.
fn behind_line(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_directive = text.starts_with('#');
    let ends = |at: usize| match bytes[at] {
        b'\n' => !bytes[..at].ends_with(b"\\") && !bytes[..at].ends_with(b"\\\r"),
        b'\r' => !bytes[..at].ends_with(b"\\") && bytes.get(at + 1) != Some(&b'\n'),
        b'/' => is_directive && bytes.get(at + 1) == Some(&b'*'),
        _ => false,
    };
    (0..bytes.len()).find(|at| ends(*at)).map_or("", |end| &text[end..])
}

/// Length of the string that `text` begins with. It ends with its line at the latest.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' | '\r' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
