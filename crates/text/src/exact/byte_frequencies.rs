//! Frequencies of bytes in a text, which decide what a string search looks for first.

use memchr::arch::all::packedpair::HeuristicFrequencyRank;

/// The frequency rank of each byte in a text, going by samples of it. A search looks for the two rarest bytes of a
/// string first; a byte that is rare in texts at large may be in every line of this one.
#[derive(Debug)]
pub(super) struct ByteFrequencies([u8; 256]);

impl ByteFrequencies {
    pub fn of(text: &str) -> Self {
        const SAMPLES: usize = 64;
        const SAMPLE: usize = 32;
        let mut ranks = [0_u8; 256];
        for sample in text.as_bytes().chunks((text.len() / SAMPLES).max(SAMPLE)) {
            for byte in sample.iter().take(SAMPLE) {
                let rank = &mut ranks[usize::from(*byte)];
                *rank = rank.saturating_add(1);
            }
        }
        Self(ranks)
    }
}

impl HeuristicFrequencyRank for ByteFrequencies {
    fn rank(&self, byte: u8) -> u8 {
        self.0[usize::from(byte)]
    }
}
