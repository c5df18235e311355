//! Unescapes JSON strings, and finds the quote that ends one.

use crate::block::{self, SpecialBytes, WINDOW, windows};

const BACKSLASH: SpecialBytes = SpecialBytes::only(b'\\');
const QUOTE: SpecialBytes = SpecialBytes::only(b'"');

/// Returns the offset of the quote that ends a JSON string, given the bytes after its opening quote.
#[inline(never)]
pub fn end_of_text(json: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    windows(json).find_map(|(at, window)| {
        let escaped = escaped_bytes(block::find(&window, BACKSLASH), &mut is_escaped);
        let quotes = block::find(&window, QUOTE) & !escaped;
        (quotes != 0).then(|| at + quotes.trailing_zeros() as usize)
    })
}

/// Returns a mask of those of 64 bytes that are escaped: that follow a backslash which is not escaped itself.
/// `is_first` says if the first byte is escaped, and is set to whether the byte behind the last one is.
///
/// In a run of backslashes every other one is escaped, and so is the byte behind the run if its length is odd. The
/// subtraction finds for all runs at once the backslashes that escape and the bytes behind runs of odd length
/// (`turned`); the odd bits make it work for runs that begin at even and at odd places.
#[inline]
fn escaped_bytes(backslashes: u64, is_first: &mut bool) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let first = u64::from(*is_first);
    let unescaped = backslashes & !first;
    let turned = ((unescaped << 1) | ODD).wrapping_sub(unescaped) ^ ODD;
    *is_first = (turned & backslashes) >> 63 == 1;
    turned ^ (backslashes | first)
}

/// Returns the text that a JSON string stands for, given what is between its quotes. `None` for an invalid escape or
/// half of a surrogate pair.
#[inline(never)]
pub fn unescape(json: &str) -> Option<String> {
    let mut text =
        Unescaper { json: json.as_bytes(), read: 0, out: vec![0; json.len() + WINDOW], at: 0 };
    for (start, window) in windows(text.json) {
        let mut backslashes = block::find(&window, BACKSLASH);
        while backslashes != 0 {
            text.escape_at(start + backslashes.trailing_zeros() as usize)?;
            backslashes &= backslashes - 1;
        }
    }
    text.finish()
}

/// A JSON string that is being unescaped.
struct Unescaper<'a> {
    json: &'a [u8],
    /// Number of bytes of `json` that were read.
    read: usize,
    /// The unescaped text, never longer than the input; a window copied last may reach beyond its end.
    out: Vec<u8>,
    at: usize,
}

impl Unescaper<'_> {
    /// Reads the escape at a backslash, unless it is part of one that was read.
    #[inline]
    fn escape_at(&mut self, at: usize) -> Option<()> {
        if at < self.read {
            return Some(());
        }
        self.copy_until(at);
        let (character, length) = read_escape(&self.json[at..])?;
        self.at += character.encode_utf8(&mut self.out[self.at..]).len();
        self.read = at + length;
        Some(())
    }

    #[inline]
    fn copy_until(&mut self, end: usize) {
        let length = end - self.read;
        block::copy(&self.json[self.read..], length, &mut self.out[self.at..]);
        (self.read, self.at) = (end, self.at + length);
    }

    fn finish(mut self) -> Option<String> {
        self.copy_until(self.json.len());
        self.out.truncate(self.at);
        String::from_utf8(self.out).ok()
    }
}

/// Returns the character that an escape stands for, and the length of the escape in bytes.
#[inline]
fn read_escape(json: &[u8]) -> Option<(char, usize)> {
    let character = match json.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return read_unicode(json),
        itself @ (b'"' | b'\\' | b'/') => char::from(*itself),
        _ => return None,
    };
    Some((character, 2))
}

/// Reads a `\u` escape. A character beyond 0xFFFF takes two of them, neither of which is a character alone.
fn read_unicode(json: &[u8]) -> Option<(char, usize)> {
    let unit = |json: &[u8]| {
        let digits = json.strip_prefix(b"\\u")?.first_chunk::<4>()?;
        let add = |unit, digit: &u8| Some(unit << 4 | char::from(*digit).to_digit(16)?);
        digits.iter().try_fold(0, add)
    };
    let first = unit(json)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = unit(&json[6..])?;
    let ((0xd800..0xdc00), (0xdc00..0xe000)) = (first, second) else { return None };
    char::from_u32(0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff)).map(|both| (both, 12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares the result with that of `serde_json`.
    fn check(json: &str) {
        let quoted = format!("\"{json}\"");
        let expected = serde_json::from_str::<String>(&quoted).ok();
        assert_eq!(unescape(json), expected, "{json}");
        if expected.is_some() {
            let more = format!("{quoted}, \"another\"");
            assert_eq!(end_of_text(&more.as_bytes()[1..]), Some(json.len()), "{json}");
            assert_eq!(end_of_text(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn every_escape_in_every_place() {
        let escapes = [
            r"\n",
            r"\t",
            r"\r",
            r"\b",
            r"\f",
            r"\/",
            r"\\",
            r#"\""#,
            r"\u0000",
            r"\u00e9",
            r"\u00E9n",
            r"\uFFFF",
            r"\ud83d\ude00",
            r"\uD83D\uDE00\n",
            r"\\\\n",
            r"\\u0041",
            "é",
            "😀",
            "x",
        ];
        for escape in escapes {
            for length in 0..40 {
                let filler = "x".repeat(length);
                check(&format!("{filler}{escape}{filler}{escape}{escape}"));
                check(&format!("{filler}{escape}{filler}{escape}\\n{filler}"));
            }
        }
    }

    #[test]
    fn what_is_no_text_is_none() {
        let wrong = [
            r"\ud83d",
            r"\ud83dx",
            r"\ud83d\n",
            r"\ud83d\ud83d",
            r"\ud83d\u0041",
            r"\ude00",
            r"\ude00\ud83d",
            r"\ud83déééé",
            r"\x",
            r"\u12",
            r"\u+123",
            r"\u12é",
            r"\U0041",
        ];
        for wrong in wrong {
            for length in 0..40 {
                let filler = "x".repeat(length);
                check(&format!("{filler}{wrong}{filler}"));
            }
        }
        assert_eq!(unescape("\\"), None);
    }

    proptest! {
        #[test]
        fn any_text(text in "(?s)([a-z ]{0,40}[\\x00-\\x22\\\\äß\u{2028}\u{10ffff}])*") {
            let json = serde_json::to_string(&text).unwrap();
            check(&json[1..json.len() - 1]);
        }

        #[test]
        fn any_backslashes(json in "([a-f]{0,20}\\\\{0,5}[nud8c]{0,3}[0-9]{0,4}){0,9}") {
            check(&json);
        }
    }
}
