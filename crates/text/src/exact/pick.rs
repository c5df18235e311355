//! Picks the match that an edit means, or reports why there is no single one.

use std::ops::Range;

use super::{LineSpan, Pick, StringEdit, StringError};

/// Most matches named when an edit is refused.
pub(super) const NAMED_MAX: usize = 10;

/// The reason why matches do not say what is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambiguity {
    /// There is more than one.
    Several,
    /// There is more than one, and they overlap.
    Overlapping,
    /// There is more than one with whitespace ignored, where only one is allowed.
    SeveralIgnoringWhitespace,
    /// There are not as many as expected.
    Count,
    /// Several are equally near.
    Tie,
}

/// Returns the one of several places that the edit means; `several` is the error if there are more. `span` is called
/// for them in order, and only where it matters.
pub(super) fn pick(
    edit: StringEdit<'_>,
    index: usize,
    several: Ambiguity,
    places: impl Iterator<Item = Range<usize>>,
    mut span: impl FnMut(&Range<usize>) -> LineSpan,
) -> Result<Range<usize>, StringError> {
    let (mut count, mut named, mut tied) = (0, Vec::new(), Vec::new());
    let mut nearest: Option<(usize, Range<usize>)> = None;
    let (mut end, mut overlap) = (0, false);
    for place in places {
        count += 1;
        overlap |= place.start < end;
        end = place.end;
        let (distance, lines) = match edit.pick {
            Pick::Near(line) => {
                let lines = span(&place);
                (lines.first.saturating_sub(line).max(line.saturating_sub(lines.last)), lines)
            }
            Pick::Only | Pick::All if count <= NAMED_MAX => (0, span(&place)),
            Pick::Only | Pick::All => continue,
        };
        if count <= NAMED_MAX {
            named.push(lines);
        }
        let best = nearest.as_ref().map_or(usize::MAX, |(best, _)| *best);
        if distance < best {
            tied = vec![lines];
            nearest = Some((distance, place));
        } else if distance == best && tied.len() < NAMED_MAX {
            tied.push(lines);
        }
    }
    let (named, reason) = match edit.pick {
        _ if edit.count.is_some_and(|wanted| wanted != count) => (named, Ambiguity::Count),
        Pick::Near(_) => (tied, Ambiguity::Tie),
        Pick::Only | Pick::All if overlap && several == Ambiguity::Several => {
            (named, Ambiguity::Overlapping)
        }
        Pick::Only | Pick::All => (named, several),
    };
    match nearest {
        Some((_, place)) if named.len() == 1 && reason != Ambiguity::Count => Ok(place),
        _ => Err(StringError::Ambiguous { edit: index, count, named, reason }),
    }
}
