//! Escapes text for a JSON string.

#![expect(clippy::inline_always, reason = "this is most of the time that a large read takes")]

use crate::block::{self, SpecialBytes, WINDOW, windows};

const WORD: usize = 8;
/// Largest size of an escaped window, and one window more, since whole ones are written.
const ESCAPED_WINDOW_MAX: usize = 6 * WINDOW + WINDOW;
/// Bytes of text for which space is reserved at a time.
const PIECE_BYTES: usize = 64 * WINDOW;

/// The bytes that have to be escaped.
const ESCAPES: SpecialBytes = SpecialBytes { bytes: *b"\"\\", up_to: Some(0x1f) };
/// A window with more of them is escaped byte by byte.
const FEW_ESCAPES_MAX: u32 = 12;

/// Appends `text` as `serde_json` would write it, without the quotes.
#[inline(never)]
pub fn escape(text: &str, out: &mut Vec<u8>) {
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        let mut at = out.len();
        // Usually not all of this is needed, and rarely more.
        out.resize(at + piece.len() + piece.len() / 4 + ESCAPED_WINDOW_MAX, 0);
        for (start, window) in windows(piece) {
            let (rest, place) = (&piece[start..], reserve_window(out, at));
            let length = rest.len().min(WINDOW);
            let special = block::find(&window, ESCAPES);
            at += if special.count_ones() > FEW_ESCAPES_MAX {
                escape_bytes(&rest[..length], place)
            } else {
                escape_few(rest, length, special, place)
            };
        }
        out.truncate(at);
    }
}

/// Escapes the first `length` bytes, of which `special` are special, and returns how many bytes were written.
#[inline(always)]
fn escape_few(bytes: &[u8], length: usize, mut special: u64, place: &mut [u8]) -> usize {
    let (mut seen, mut at) = (0, 0);
    while special != 0 {
        let next = special.trailing_zeros() as usize;
        block::copy(&bytes[seen..], next - seen, &mut place[at..]);
        at += next - seen;
        at += escape_bytes(&bytes[next..=next], &mut place[at..]);
        seen = next + 1;
        special &= special - 1;
    }
    block::copy(&bytes[seen..], length - seen, &mut place[at..]);
    at + length - seen
}

/// Returns the space for the next window, growing `out` if needed.
#[inline(always)]
fn reserve_window(out: &mut Vec<u8>, at: usize) -> &mut [u8] {
    if out.len() < at + ESCAPED_WINDOW_MAX {
        out.resize(at + PIECE_BYTES + ESCAPED_WINDOW_MAX, 0);
    }
    &mut out[at..at + ESCAPED_WINDOW_MAX]
}

/// Escapes byte by byte, and returns how many bytes were written.
#[inline(always)]
fn escape_bytes(bytes: &[u8], place: &mut [u8]) -> usize {
    bytes.iter().fold(0, |at, byte| {
        let (escaped, length) = &ESCAPED[usize::from(*byte)];
        // A copy of fixed size is one store, which the compiler would not make of a slice.
        if let Some(place) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = *escaped;
        }
        at + length
    })
}

/// The escape of each byte, and its length.
static ESCAPED: [([u8; WORD], usize); 256] = {
    let mut table = [([0; WORD], 1); 256];
    let mut byte = 0;
    while byte < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "it counts to 255")]
        let plain = byte as u8;
        let hex = b"0123456789abcdef";
        table[byte] = match plain {
            b'"' => (*b"\\\"      ", 2),
            b'\\' => (*b"\\\\      ", 2),
            b'\n' => (*b"\\n      ", 2),
            b'\r' => (*b"\\r      ", 2),
            b'\t' => (*b"\\t      ", 2),
            0x08 => (*b"\\b      ", 2),
            0x0c => (*b"\\f      ", 2),
            0..0x20 => ([b'\\', b'u', b'0', b'0', hex[byte >> 4], hex[byte & 15], 0, 0], 6),
            _ => ([plain, 0, 0, 0, 0, 0, 0, 0], 1),
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) {
        let mut out = b"kept".to_vec();
        escape(text, &mut out);
        let expected = serde_json::to_string(text).unwrap();
        let expected = format!("kept{}", &expected[1..expected.len() - 1]);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_character_in_every_place() {
        for code in (0..0x300).chain([0x7ff, 0x800, 0xfffd, 0x1_f600]) {
            let Some(character) = char::from_u32(code) else { continue };
            for length in 0..40 {
                let filler = "x".repeat(length);
                check(&format!("{filler}{character}{filler}{character}{character}"));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text(text in "(?s)[\\x00-\\x22\\\\a-fäß\u{2028}\u{10ffff}]{0,200}") {
            check(&text);
        }

        #[test]
        fn any_text_with_little_to_escape(text in "(?s)([a-z ]{0,90}[\"\\\\\n\r\t\\x00\\x7f])*") {
            check(&text);
        }
    }
}
