//! Which of sixteen bytes are special, found at once.

#![expect(clippy::inline_always, reason = "most of the time that a large text takes is spent here")]

/// How many bytes are looked at at once.
pub(crate) const BLOCK: usize = 16;

/// A bit for each of them in a word.
pub(crate) const WINDOW: usize = 64;

/// A bit for each place where `byte` is, the first one lowest.
#[inline(always)]
pub(crate) fn positions(window: &[u8; WINDOW], byte: u8) -> u64 {
    let special = Special { bytes: [byte; 2], up_to: None };
    let (blocks, _) = window.as_chunks();
    blocks.iter().rev().fold(0, |bits, block| bits << BLOCK | u64::from(find(*block, special)))
}

/// What to look for.
#[derive(Clone, Copy)]
pub(crate) struct Special {
    pub bytes: [u8; 2],
    /// And everything up to this one, if anything.
    pub up_to: Option<u8>,
}

/// A bit for each byte that is special, the first one lowest.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn find(block: [u8; BLOCK], special: Special) -> u16 {
    #[expect(unsafe_code, reason = "what every such processor has must still be asked for")]
    // SAFETY: there is no x86-64 without SSE2.
    unsafe {
        find_by_sse2(block, special)
    }
}

/// The compiler makes this of the loop below only where it is asked for speed alone, and that is not of all the program.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn find_by_sse2(block: [u8; BLOCK], Special { bytes, up_to }: Special) -> u16 {
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
pub(crate) fn find(block: [u8; BLOCK], Special { bytes, up_to }: Special) -> u16 {
    let is_special = |byte: &u8| bytes.contains(byte) || up_to.is_some_and(|last| *byte <= last);
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u16::from(is_special(byte)))
}
