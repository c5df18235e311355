//! The result of comparing a place with a needle: the kinds of differences, the number of places that differ, and the
//! first of them.

use super::Difference;

/// Most spots compared closely, and most kinds of differences kept; so many are enough to report.
const COMPARED_SPOTS_MAX: usize = 4096;
const KINDS_MAX: usize = 32;

/// Differences between a place and a needle, as far as they were compared.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) differences: Vec<Difference>,
    /// Number of places where something differs.
    pub(super) spots: usize,
    /// Offset of the first difference in the text.
    pub(super) first: Option<usize>,
}

impl Comparison {
    /// Keeps a kind of difference, once.
    pub(super) fn note(&mut self, difference: Difference) {
        // Blank lines are counted together.
        if let Difference::BlankLines { side, by } = difference {
            let known = self.differences.iter_mut().find_map(|known| match known {
                Difference::BlankLines { side: same, by } if *same == side => Some(by),
                _ => None,
            });
            if let Some(known) = known {
                *known += by;
                return;
            }
        }
        if self.differences.len() < KINDS_MAX && !self.differences.contains(&difference) {
            self.differences.push(difference);
        }
    }

    /// Counts a place that differs. True if it should be compared closely.
    pub(super) fn spot(&mut self, at: usize) -> bool {
        self.spots += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.spots <= COMPARED_SPOTS_MAX
    }
}
