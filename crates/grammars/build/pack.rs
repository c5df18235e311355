//! Packing: what `src/unpack.rs` reads.
//!
//! Most rows of a table are much like an earlier one, often thousands of rows before. So repetitions are looked for
//! without a limit to how far back, in numbers of 16 bits, as tables consist of; what is left is compressed with
//! LZMA, each kind of it by itself. That takes half of what deflated tables take.

use lzma_rust2::{EncodeMode, LzmaOptions, LzmaWriter, MfType, Write as _};

use crate::unpack::{
    FAR_DISTANCE, LC, LP, Layout, PB, RECENT_DISTANCES, REPETITION_MIN, ROW_DISTANCE, STREAMS,
    window_size,
};

/// Most earlier places that are tried.
const PLACES_TRIED_MAX: usize = 512;
/// A repetition of this length is taken without a look at others.
const LONG_REPETITION: usize = 1024;
/// Approximate cost of a literal, in the unit of [`price`].
const LITERAL_COST: usize = 8;
/// Bits of the hash that a place is found by.
const HASH_BITS: u32 = 18;
/// Numbers that are hashed.
const HASHED_WORDS: usize = 3;
const NOWHERE: u32 = u32::MAX;

/// Tables that lie like this, and texts, packed.
pub fn pack(layout: &Layout, words: &[u16], texts: &[u8]) -> Vec<u8> {
    let mut words = words.to_vec();
    for (number, word) in (0..).zip(&mut words[layout.counted.clone()]) {
        *word = word.wrapping_sub(number);
    }
    words[layout.starts.clone()].fill(0);
    let mut streams = Packer::new(&words, layout.width).streams();
    streams[STREAMS - 1] = texts.to_vec();
    let compressed: Vec<_> = streams.iter().map(|stream| compress(stream)).collect();
    let number = |length: usize| u32::try_from(length).expect("a few megabytes").to_le_bytes();
    let lengths = streams.iter().zip(&compressed);
    let mut packed: Vec<u8> = lengths
        .flat_map(|(stream, compressed)| [number(stream.len()), number(compressed.len())])
        .flatten()
        .collect();
    packed.extend(compressed.concat());
    packed
}

/// Compresses one stream as raw LZMA, without a header or an end marker.
fn compress(stream: &[u8]) -> Vec<u8> {
    let options = LzmaOptions {
        dict_size: window_size(stream.len()),
        lc: LC,
        lp: LP,
        pb: PB,
        mode: EncodeMode::Normal,
        nice_len: LzmaOptions::NICE_LEN_MAX,
        mf: MfType::Bt4,
        depth_limit: 1000,
        preset_dict: None,
    };
    let mut writer =
        LzmaWriter::new_no_header(Vec::new(), &options, false).expect("options of LZMA");
    writer.write_all(stream).expect("a vector takes all");
    writer.finish().expect("a vector takes all")
}

/// A stretch that was there before.
#[derive(Clone, Copy, Default)]
struct Repetition {
    length: usize,
    distance: usize,
    /// Saving against literals.
    gain: usize,
}

struct Packer<'a> {
    words: &'a [u16],
    width: usize,
    streams: [Vec<u8>; STREAMS],
    /// The distances used last, the last one first.
    recent: [usize; RECENT_DISTANCES],
    /// Last place of numbers with this hash, and the place before each place.
    last: Vec<u32>,
    before: Vec<u32>,
}

impl<'a> Packer<'a> {
    fn new(words: &'a [u16], width: usize) -> Self {
        Self {
            words,
            width,
            streams: Default::default(),
            recent: [1, 2, 3, 4],
            last: vec![NOWHERE; 1 << HASH_BITS],
            before: vec![NOWHERE; words.len()],
        }
    }

    fn streams(mut self) -> [Vec<u8>; STREAMS] {
        let (mut at, mut literals) = (0, 0);
        while at < self.words.len() {
            let found = self.best(at);
            self.remember(at);
            // A longer one may begin with the next number.
            let is_worse =
                || found.length < 64 && self.best(at + 1).gain > found.gain + LITERAL_COST;
            if found.gain == 0 || is_worse() {
                literals += 1;
                at += 1;
                continue;
            }
            self.write_literals(at, literals);
            self.write(found);
            literals = 0;
            (at + 1..at + found.length).for_each(|at| self.remember(at));
            at += found.length;
        }
        self.write_literals(at, literals);
        self.streams
    }

    fn best(&self, at: usize) -> Repetition {
        let mut best = Repetition::default();
        for distance in self.recent {
            if distance <= at {
                self.keep_better(&mut best, at, distance);
            }
        }
        let Some(slot) = self.slot(at) else { return best };
        let mut place = self.last[slot];
        for _ in 0..PLACES_TRIED_MAX {
            if place == NOWHERE || best.length > LONG_REPETITION {
                break;
            }
            self.keep_better(&mut best, at, at - place as usize);
            place = self.before[place as usize];
        }
        best
    }

    fn keep_better(&self, best: &mut Repetition, at: usize, distance: usize) {
        let Some(price) = self.price(distance) else { return };
        let pairs = self.words[at..].iter().zip(&self.words[at - distance..]);
        let length = pairs.take_while(|(new, old)| new == old).count();
        let gain = (length * LITERAL_COST).saturating_sub(price);
        if length >= REPETITION_MIN && gain > best.gain {
            *best = Repetition { length, distance, gain };
        }
    }

    /// Approximate cost of naming a distance; `None` if it cannot be named.
    fn price(&self, distance: usize) -> Option<usize> {
        if let Some(kept) = self.recent.iter().position(|kept| *kept == distance) {
            return Some(6 + kept);
        }
        match distance {
            _ if distance.is_multiple_of(self.width) && distance / self.width <= 0xffff => Some(14),
            0..=0xff => Some(14),
            0x100..=0xffff => Some(22),
            0x1_0000.. if distance >> 16 <= usize::from(u8::MAX - FAR_DISTANCE) => Some(28),
            _ => None,
        }
    }

    fn slot(&self, at: usize) -> Option<usize> {
        let look = self.words.get(at..at + HASHED_WORDS)?;
        let number = look.iter().fold(0, |number, word| number << 16 | u64::from(*word));
        usize::try_from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)).ok()
    }

    fn remember(&mut self, at: usize) {
        if let Some(slot) = self.slot(at) {
            let place = u32::try_from(at).expect("a few megabytes");
            self.before[at] = std::mem::replace(&mut self.last[slot], place);
        }
    }

    fn write_literals(&mut self, end: usize, count: usize) {
        write_number(&mut self.streams[0], count);
        for word in &self.words[end - count..end] {
            let [low, high] = word.to_le_bytes();
            self.streams[5].push(low);
            self.streams[6].push(high);
        }
    }

    fn write(&mut self, Repetition { length, distance, .. }: Repetition) {
        write_number(&mut self.streams[1], length - REPETITION_MIN);
        if let Some(kept) = self.recent.iter().position(|kept| *kept == distance) {
            self.streams[2].push(u8::try_from(kept).expect("four of them"));
            self.recent[..=kept].rotate_right(1);
            return;
        }
        let (code, number) = match distance / self.width {
            rows @ 0..=0xffff if distance.is_multiple_of(self.width) => (ROW_DISTANCE, rows),
            _ => (FAR_DISTANCE + low_byte(distance >> 16), distance & 0xffff),
        };
        self.streams[2].push(code);
        self.streams[3].push(low_byte(number));
        self.streams[4].push(low_byte(number >> 8));
        self.recent.rotate_right(1);
        self.recent[0] = distance;
    }
}

/// Seven bits at a time, the lowest first; the eighth says that there are more.
fn write_number(stream: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        stream.push(low_byte(number) | 0x80);
        number >>= 7;
    }
    stream.push(low_byte(number));
}

fn low_byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}
