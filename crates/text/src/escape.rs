//! A text as JSON has it between quotes.

/// How many bytes are looked at at once.
const BLOCK: usize = 32;
const WORD: usize = 8;
/// What a block becomes at the most, and a word more, since whole words are written.
const LONGEST: usize = 6 * BLOCK + WORD;
/// Room is made for so many bytes at a time.
const PIECE: usize = 64 * BLOCK;

/// Appends `text` as `serde_json` would write it, without the quotes.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    for piece in text.as_bytes().chunks(PIECE) {
        let (blocks, rest) = piece.as_chunks();
        let mut at = out.len();
        // As a rule not all of it is needed, and seldom more.
        out.resize(at + piece.len() + piece.len() / 2 + LONGEST, 0);
        for block in blocks {
            let place = make_room(out, at);
            if is_plain(block) {
                place[..BLOCK].copy_from_slice(block);
                at += BLOCK;
            } else {
                let words = block.as_chunks().0.iter();
                at += words.fold(0, |length, word| escape_word(*word, place, length));
            }
        }
        let place = make_room(out, at);
        let (words, rest) = rest.as_chunks();
        let length = words.iter().fold(0, |length, word| escape_word(*word, place, length));
        at += escape_bytes(rest, place, length);
        out.truncate(at);
    }
}

/// Where the next block goes.
fn make_room(out: &mut Vec<u8>, at: usize) -> &mut [u8; LONGEST] {
    if out.len() < at + LONGEST {
        out.resize(at + PIECE + LONGEST, 0);
    }
    out[at..].first_chunk_mut().expect("there is room now")
}

/// Written so that the compiler makes a few instructions of it.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let special =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block.iter().fold(0, |sum, byte| sum | special(*byte)) == 0
}

/// Writes a word, escaped, and says where it ends.
fn escape_word(bytes: [u8; WORD], place: &mut [u8; LONGEST], at: usize) -> usize {
    let word = u64::from_le_bytes(bytes);
    let special = special_bytes(word);
    if special & special.wrapping_sub(1) != 0 {
        return escape_bytes(&bytes, place, at);
    }
    put(bytes, place, at);
    if special == 0 {
        return at + WORD;
    }
    // One alone: what stands for it goes over it, and what comes after it behind that.
    let before = special.trailing_zeros() / 8;
    let (escaped, length) = &ESCAPED[usize::from(bytes[before as usize])];
    let after = word.checked_shr(8 * (before + 1)).unwrap_or(0);
    put(*escaped, place, at + before as usize);
    put(after.to_le_bytes(), place, at + before as usize + length);
    at + WORD - 1 + length
}

/// Byte by byte.
fn escape_bytes(bytes: &[u8], place: &mut [u8; LONGEST], at: usize) -> usize {
    bytes.iter().fold(at, |at, byte| {
        let (escaped, length) = &ESCAPED[usize::from(*byte)];
        put(*escaped, place, at);
        at + length
    })
}

/// One store, as the compiler would not make of a slice.
fn put(word: [u8; WORD], place: &mut [u8; LONGEST], at: usize) {
    if let Some(place) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word;
    }
}

/// A bit in each byte of the word that is escaped. The lowest is right; those above it may be set without a reason.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & (ONES << 7);
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
}

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
