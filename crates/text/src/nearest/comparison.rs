//! The result of comparing a place with a needle: the kinds of differences, the number of places that differ, and the
//! first of them.

use super::Reason;

/// Most spots compared closely, and most kinds of differences kept; so many are enough to report.
const SPOTS: usize = 4096;
const KINDS: usize = 32;

/// Differences between a place and a needle, as far as they were compared.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) reasons: Vec<Reason>,
    /// Number of places where something differs.
    pub(super) spots: usize,
    /// Offset of the first difference in the text.
    pub(super) first: Option<usize>,
}

impl Comparison {
    /// Keeps a kind of difference, once.
    pub(super) fn note(&mut self, reason: Reason) {
        // Blank lines are counted together.
        if let Reason::BlankLines { side, by } = reason {
            let known = self.reasons.iter_mut().find_map(|known| match known {
                Reason::BlankLines { side: same, by } if *same == side => Some(by),
                _ => None,
            });
            if let Some(known) = known {
                *known += by;
                return;
            }
        }
        if self.reasons.len() < KINDS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Counts a place that differs. True if it should be compared closely.
    pub(super) fn spot(&mut self, at: usize) -> bool {
        self.spots += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.spots <= SPOTS
    }
}
