//! Edits by line number, against the model that `text` has for its own tests.

#[expect(clippy::unwrap_used, reason = "it is a test's")]
#[path = "../../../crates/text/src/by_line/model.rs"]
mod model;

use text::diff::unified;
use text::{ComposedSplices, DiffNames, LineEdit, LineOp, by_line, lines, splice};

use crate::parts::Parts;
use crate::patch::patch;

/// A case has no more of them.
const MOST_EDITS: usize = 24;

/// The edits do what the model does, or are refused for its reason; the plan counts lines as they are; and a diff of it
/// leads from one text to the other.
pub fn line_edits(bytes: &[u8]) {
    let mut parts = Parts::of(bytes);
    let (before, append) = (parts.text(), parts.text());
    let append = (!append.is_empty()).then_some(append);
    let total = lines::count(&before);
    let mut edits = Vec::new();
    while !parts.are_over() && edits.len() < MOST_EDITS {
        let op = parts.byte();
        // A few lines more than there are: some have to be refused.
        let line = parts.number(total + 4);
        let op = match op % 3 {
            0 => LineOp::Insert(parts.text()),
            1 => LineOp::Replace(parts.text()),
            _ => LineOp::Delete,
        };
        edits.push(LineEdit { line, op });
    }
    let expected = model::model(&before, &edits, append.as_deref());
    let plan = match (by_line::plan(&before, &edits, append.as_deref()), &expected) {
        (Ok(plan), Ok(_)) => plan,
        (planned, expected) => {
            assert_eq!(planned.err().as_ref(), expected.as_ref().err());
            return;
        }
    };
    let after = splice::apply(&before, &plan.splices);
    assert_eq!(Ok(&after), expected.as_ref());
    assert_eq!(plan.total_lines, lines::count(&after));
    assert!(plan.lines_modified >= plan.total_lines.abs_diff(total));
    let changed = ComposedSplices::from_splices(&plan.splices);
    let diff = unified(&before, &after, &changed, DiffNames { old: "f", new: "f" });
    assert_eq!(patch(&before, &diff), after);
}
