//! Bytes as text, as lines and as JSON has them.

use std::sync::Arc;

use text::lines::{self, LineRange};
use text::{NotText, Text};

/// Any bytes come back as they are or are refused for a reason that is true; their lines are those that one finds going
/// through them byte by byte; and JSON has the text as `serde_json` does.
pub fn decode(bytes: &[u8]) {
    match Text::decode(Arc::new(bytes.to_vec())) {
        Ok(text) => {
            assert_eq!(text.whole().as_bytes(), bytes);
            let seen = text.whole().strip_prefix('\u{feff}');
            assert_eq!(text.has_bom(), seen.is_some());
            assert_eq!(text.as_str(), seen.unwrap_or(text.whole()));
            check_lines(text.as_str());
            check_json(text.as_str());
        }
        Err(NotText::InvalidUtf8 { at }) => {
            assert_eq!(std::str::from_utf8(bytes).map_err(|error| error.valid_up_to()), Err(at));
        }
        Err(NotText::Nul { at }) => {
            assert!(std::str::from_utf8(bytes).is_ok());
            assert_eq!(bytes.iter().position(|byte| *byte == 0), Some(at));
        }
    }
    check_escapes(bytes);
}

fn check_lines(text: &str) {
    let split = split(text);
    assert_eq!(lines::count(text), split.len());
    assert!(lines::lines(text).map(|line| &text[line.start..line.next]).eq(split.iter().copied()));
    // Some of all ranges, the ones near either end among them.
    let total = split.len();
    for first in [0, 1, total / 2, total.saturating_sub(1), total] {
        for last in [0, first, first + 1, total / 2 + 1, total, usize::MAX] {
            let found = lines::select(text, LineRange { first, last });
            let part = split.get(first..=last.min(total.saturating_sub(1)));
            let part = part.filter(|part| !part.is_empty() && first <= last);
            assert_eq!(
                found.as_ref().map(|found| &text[found.bytes.clone()]),
                part.map(<[&str]>::concat).as_deref()
            );
            if let Some(found) = found {
                assert_eq!((found.first, found.total), (first, total));
                assert_eq!(found.last, last.min(total - 1));
            }
        }
    }
}

/// Lines with their ends, found byte by byte.
pub fn split(text: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, byte) in text.bytes().enumerate() {
        let ends = byte == b'\n' || byte == b'\r' && text.as_bytes().get(at + 1) != Some(&b'\n');
        if ends {
            found.push(&text[start..=at]);
            start = at + 1;
        }
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

fn check_json(text: &str) {
    let mut escaped = Vec::new();
    text::escape(text, &mut escaped);
    let written = serde_json::to_string(text).expect("a string can be written");
    assert_eq!(escaped, &written.as_bytes()[1..written.len() - 1]);
    let escaped = std::str::from_utf8(&escaped).expect("what is escaped is text");
    assert_eq!(text::unescape(escaped).as_deref(), Some(text));
    assert_eq!(text::end_of_text(&written.as_bytes()[1..]), Some(escaped.len()));
}

/// The bytes taken for what JSON has between quotes. Whoever asks what it stands for has seen that there is nothing in it
/// that must be escaped, so such bytes are no case.
fn check_escapes(bytes: &[u8]) {
    let end = text::end_of_text(bytes);
    let mut is_escaped = false;
    let expected = bytes.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    assert_eq!(end, expected);
    let inside = &bytes[..end.unwrap_or(bytes.len())];
    let Ok(inside) = std::str::from_utf8(inside) else { return };
    if inside.bytes().any(|byte| byte < b' ') {
        return;
    }
    let expected = serde_json::from_str::<String>(&format!("\"{inside}\"")).ok();
    assert_eq!(text::unescape(inside), expected);
}
