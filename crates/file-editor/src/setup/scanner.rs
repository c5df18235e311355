//! A position in a text that is scanned from its beginning: the common part of the JSON and TOML scanners.

use super::entry::ParseError;

/// Limit of the nesting, deeper than any real configuration.
const DEPTH_MAX: usize = 100;

pub struct Scanner<'t> {
    pub text: &'t str,
    pub at: usize,
    depth: usize,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    pub fn error(&self, message: &str) -> ParseError {
        ParseError::at(self.text, self.at, message)
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips the mark if it is there.
    pub fn take(&mut self, mark: &str) -> bool {
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len() } else { 0 };
        is_there
    }

    /// Skips and returns all characters of a kind.
    pub fn take_all(&mut self, is_part: fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let all = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        self.at += all.len();
        all
    }

    /// Skips an opening bracket.
    pub fn enter(&mut self) -> Result<(), ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Skips `"…"` and returns its value, if it can be decoded. Half of a surrogate pair is no character, but
    /// JavaScript writes one where a text was cut, and TOML has escapes that JSON has not; `setup` writes neither.
    pub fn take_quoted(&mut self) -> Result<Option<String>, ParseError> {
        let inside = &self.rest()[1..];
        let end = text::end_of_text(inside.as_bytes());
        let raw = self.take_string(end.map(|end| &inside[..end]))?;
        let text = text::unescape(raw);
        if text.is_none() && !is_escaped_well(raw) {
            return Err(self.error("invalid escape in a string"));
        }
        Ok(text)
    }

    /// Skips a string, which must be on one line.
    pub fn take_string(&mut self, inside: Option<&'t str>) -> Result<&'t str, ParseError> {
        let inside = inside.filter(|inside| !inside.contains('\n'));
        let inside = inside.ok_or_else(|| self.error("unterminated string"))?;
        self.at += inside.len() + 2;
        Ok(inside)
    }
}

/// True if every escape is one of JSON or TOML.
fn is_escaped_well(raw: &str) -> bool {
    let mut escapes = raw.split('\\').skip(1);
    while let Some(behind) = escapes.next() {
        let (digits, count) = match behind.as_bytes() {
            // An escaped backslash.
            [] => (&[][..], usize::from(escapes.next().is_none())),
            [b'x', digits @ ..] => (digits, 2),
            [b'u', digits @ ..] => (digits, 4),
            [b'U', digits @ ..] => (digits, 8),
            [first, ..] => (&[][..], usize::from(!b"\"/bfnrte".contains(first))),
        };
        if !digits.get(..count).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return false;
        }
    }
    true
}

/// Returns the first line, without its line break.
pub fn first_line(text: &str) -> &str {
    match text.split_once('\n') {
        Some((line, _)) => line.strip_suffix('\r').unwrap_or(line),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let check = |raw: &str, expected: Result<Option<&str>, &str>| {
            let quoted = format!("\"{raw}\" rest");
            let mut scanner = Scanner::new(&quoted);
            let found = scanner.take_quoted();
            let found =
                found.as_ref().map(Option::as_deref).map_err(|error| error.message.as_str());
            assert_eq!(found, expected, "{raw}");
            assert!(found.is_err() || scanner.rest() == " rest", "{raw}");
        };
        check("", Ok(Some("")));
        check(r#"a\"b\\c\/d\n\u00e4\ud83d\ude00"#, Ok(Some("a\"b\\c/d\nä😀")));
        for unknown in [r"cut \ud83d", r"\udc00", r"\ud800\u0041", r"\\\U0001f600", r"\x41\e"] {
            check(unknown, Ok(None));
        }
        for bad in [r"\q", r"\u12", r"\ud83d\q", r"\x4", r"\U0001f60"] {
            check(bad, Err("invalid escape in a string"));
        }
        check("a\nb", Err("unterminated string"));
    }
}
