//! Texts without what editors change on their own when they load or save.

use std::borrow::Cow;

/// Removes the byte order mark, and makes every line break `\n`.
pub(super) fn normalized(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if !text.contains(&b'\r') {
        return Cow::Borrowed(text);
    }
    let mut normalized = Vec::with_capacity(text.len());
    let mut parts = text.split(|&byte| byte == b'\r');
    normalized.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        normalized.push(b'\n');
        normalized.extend_from_slice(part.strip_prefix(b"\n").unwrap_or(part));
    }
    Cow::Owned(normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_become_line_feeds() {
        for (given, expected) in [
            ("", ""),
            ("a\nb", "a\nb"),
            ("\u{feff}a\r\nb\r\n", "a\nb\n"),
            ("\r\ra\r\n\n\rb\r", "\n\na\n\n\nb\n"),
            ("a\u{feff}", "a\u{feff}"),
            ("\u{feff}\u{feff}", "\u{feff}"),
        ] {
            assert_eq!(normalized(given.as_bytes()), expected.as_bytes(), "{given:?}");
        }
    }
}
