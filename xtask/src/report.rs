//! `docs/reliability.md`: each long command writes its own part, between two lines that name it.

use crate::{Outcome, root};

pub const PATH: &str = "docs/reliability.md";

/// Puts these figures where the document has those of this part.
pub fn write(part: &str, figures: &str) -> Outcome {
    let path = root().join(PATH);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{PATH}: {e}"))?;
    let new = replaced(&text, part, figures).ok_or(format!("{PATH} has no place for {part}"))?;
    std::fs::write(&path, new).map_err(|e| format!("{PATH}: {e}"))
}

pub fn replaced(text: &str, part: &str, figures: &str) -> Option<String> {
    let begin = text.find(&format!("<!-- {part}: "))?;
    let begin = begin + text[begin..].find('\n')? + 1;
    let end = begin + text[begin..].find(&format!("<!-- end of {part} -->"))?;
    Some(format!("{}\n{}\n\n{}", &text[..begin], figures.trim(), &text[end..]))
}

#[test]
fn a_part_is_replaced_and_nothing_else() {
    let text = "a\n<!-- x: y -->\nold\n<!-- end of x -->\nb\n";
    let new = "a\n<!-- x: y -->\n\nnew\n\n<!-- end of x -->\nb\n";
    assert_eq!(replaced(text, "x", "new\n").as_deref(), Some(new));
    assert_eq!(replaced(new, "x", "new").as_deref(), Some(new));
    assert_eq!(replaced(text, "z", "new"), None);
}
