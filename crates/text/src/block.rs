//! Finds the special bytes in a window of 64 bytes at once, as a bit mask.

#![expect(clippy::inline_always, reason = "most of the time that a large text takes is spent here")]

/// Number of bytes searched at once: each is one bit of a `u64`.
pub(crate) const WINDOW: usize = 64;
const BLOCK: usize = 16;

/// The bytes to search for.
#[derive(Clone, Copy)]
pub(crate) struct SpecialBytes {
    pub bytes: [u8; 2],
    /// Also every byte up to and including this one, if it is given.
    pub up_to: Option<u8>,
}

impl SpecialBytes {
    pub const fn only(byte: u8) -> Self {
        Self { bytes: [byte; 2], up_to: None }
    }
}

/// Iterates over all of `bytes` in windows, each with its offset. The last window is padded with spaces.
#[inline(always)]
pub(crate) fn windows(bytes: &[u8]) -> impl Iterator<Item = (usize, [u8; WINDOW])> {
    let (windows, rest) = bytes.as_chunks();
    let mut last = [b' '; WINDOW];
    last[..rest.len()].copy_from_slice(rest);
    let starts = (0..).step_by(WINDOW);
    starts.zip(windows.iter().copied().chain([last]))
}

/// Copies the first `length` bytes. Up to `WINDOW` bytes are copied as one whole window, which is quicker than an exact
/// copy; bytes of `to` behind them may be overwritten.
#[inline(always)]
pub(crate) fn copy(from: &[u8], length: usize, to: &mut [u8]) {
    match (from.first_chunk::<WINDOW>(), to.first_chunk_mut()) {
        (Some(from), Some(to)) if length <= WINDOW => *to = *from,
        _ => to[..length].copy_from_slice(&from[..length]),
    }
}

/// Returns one bit for each byte of the window, set if the byte is special. The first byte is the lowest bit.
#[inline(always)]
pub(crate) fn find(window: &[u8; WINDOW], special: SpecialBytes) -> u64 {
    let (blocks, _) = window.as_chunks();
    let add = |bits, block: &_| bits << BLOCK | u64::from(find_in_block(*block, special));
    blocks.iter().rev().fold(0, add)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn find_in_block(block: [u8; BLOCK], special: SpecialBytes) -> u16 {
    #[expect(unsafe_code, reason = "what every such processor has must still be asked for")]
    // SAFETY: there is no x86-64 without SSE2.
    unsafe {
        find_by_sse2(block, special)
    }
}

/// Written with intrinsics: the compiler makes this of the loop below only when it optimises for speed, and not all of
/// the program is built that way.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn find_by_sse2(block: [u8; BLOCK], SpecialBytes { bytes, up_to }: SpecialBytes) -> u16 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let [low, high] = [0, BLOCK / 2].map(|at| {
        let word = block[at..].first_chunk().copied();
        i64::from_le_bytes(word.unwrap_or_default())
    });
    let block = _mm_set_epi64x(high, low);
    let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
    let [one, other] = bytes.map(|byte| _mm_cmpeq_epi8(block, all(byte)));
    let special = _mm_or_si128(one, other);
    let special = match up_to {
        Some(last) => {
            let is_low = _mm_cmpeq_epi8(_mm_min_epu8(block, all(last)), block);
            _mm_or_si128(special, is_low)
        }
        None => special,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "16 bits are set at most"
    )]
    let bits = _mm_movemask_epi8(special) as u16;
    bits
}

#[cfg(not(target_arch = "x86_64"))]
fn find_in_block(block: [u8; BLOCK], special: SpecialBytes) -> u16 {
    find_by_loop(block, special)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn find_by_loop(block: [u8; BLOCK], SpecialBytes { bytes, up_to }: SpecialBytes) -> u16 {
    let is_special = |byte: &u8| bytes.contains(byte) || up_to.is_some_and(|last| *byte <= last);
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u16::from(is_special(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_where_it_is() {
        let specials = [
            SpecialBytes::only(b'\n'),
            SpecialBytes { bytes: *b"\"\\", up_to: Some(0x1f) },
            SpecialBytes { bytes: [0xff, 0x80], up_to: None },
        ];
        for special in specials {
            for byte in 0..=u8::MAX {
                let is_special =
                    special.bytes.contains(&byte) || special.up_to.is_some_and(|last| byte <= last);
                for at in 0..BLOCK {
                    let mut block = [b'a'; BLOCK];
                    block[at] = byte;
                    let expected = u16::from(is_special) << at;
                    assert_eq!(find_in_block(block, special), expected, "{byte:#x} at {at}");
                    assert_eq!(find_by_loop(block, special), expected, "{byte:#x} at {at}");
                }
            }
        }
    }
}
