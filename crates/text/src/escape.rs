//! A text as JSON has it between quotes.

#![expect(clippy::inline_always, reason = "this is most of the time that a large read takes")]

use crate::block::{self, BLOCK, Special};

const WORD: usize = 8;
/// What a block becomes at the most, and a block more, since whole ones are written.
const LONGEST: usize = 6 * BLOCK + BLOCK;
/// Room is made for so many bytes at a time.
const PIECE: usize = 256 * BLOCK;

/// Appends `text` as `serde_json` would write it, without the quotes.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    for piece in text.as_bytes().chunks(PIECE) {
        let (mut rest, mut at) = (piece, out.len());
        // As a rule not all of it is needed, and seldom more.
        out.resize(at + piece.len() + piece.len() / 4 + LONGEST, 0);
        while let Some((block, after)) = rest.split_first_chunk() {
            let place = make_room(out, at);
            let special = block::find(*block, ESCAPES);
            if special.count_ones() > FEW {
                at += escape_bytes(block, place);
                rest = after;
                continue;
            }
            place[..BLOCK].copy_from_slice(block);
            if special == 0 {
                at += BLOCK;
                rest = after;
            } else {
                // What stands for the first goes over it, and what comes after it is looked at again.
                let plain = special.trailing_zeros() as usize;
                at += plain + escape_bytes(&rest[plain..=plain], &mut place[plain..]);
                rest = &rest[plain + 1..];
            }
        }
        at += escape_bytes(rest, make_room(out, at));
        out.truncate(at);
    }
}

/// Where the next block goes.
#[inline(always)]
fn make_room(out: &mut Vec<u8>, at: usize) -> &mut [u8] {
    if out.len() < at + LONGEST {
        out.resize(at + PIECE + LONGEST, 0);
    }
    &mut out[at..at + LONGEST]
}

/// Byte by byte; how many it became.
#[inline(always)]
fn escape_bytes(bytes: &[u8], place: &mut [u8]) -> usize {
    bytes.iter().fold(0, |at, byte| {
        let (escaped, length) = &ESCAPED[usize::from(*byte)];
        // One store, as the compiler would not make of a slice.
        if let Some(place) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = *escaped;
        }
        at + length
    })
}

/// If there are more in a block it is gone through byte by byte.
const FEW: u32 = 3;

/// What has to be escaped.
const ESCAPES: Special = Special { bytes: *b"\"\\", up_to: Some(0x1f) };

/// What stands for each byte, and how much of it counts.
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
