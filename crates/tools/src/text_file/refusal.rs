//! Failures of string edits that do not apply, with hints on what would.

use std::fmt::Write as _;

use files::{Hash, StoreError};
use text::exact::{Ambiguity, Pick, StagedText};
use text::{LineSpan, StringEdit, StringError, lines, nearest};

use super::cut;
use crate::store_error::FileAction;
use crate::{Context, Failure, FailureKind};

/// Most characters of a string that a message repeats.
const STRING_SHOWN: usize = 200;
/// Most characters of a line that a hint shows.
const LINE_SHOWN: usize = 80;
/// Largest hint, in bytes.
const HINT_BYTES: usize = nearest::HINT_BYTES_MAX;

/// Makes the failure for an edit that does not apply to what the edits before it left.
pub(super) fn of(
    error: &StringError,
    edit: StringEdit<'_>,
    staged: &StagedText<'_>,
    path: &str,
    cx: &Context,
) -> Failure {
    let kind = FailureKind::from(error);
    let shown = cut(edit.old, STRING_SHOWN);
    let text = staged.text();
    let (message, hint) = match error {
        StringError::EmptyString { edit } => (
            format!("Edit {edit}: old_string cannot be empty"),
            "give the text to replace; an empty one is allowed only for an empty file, and `write_text_file` replaces a whole file".into(),
        ),
        StringError::NoMatch { edit: index } => (
            format!("Edit {index}: String not found: {shown}"),
            missed(staged, edit.old),
        ),
        StringError::UnevenIndent { edit: index, lines } => (
            format!("Edit {index}: String not found: {shown}"),
            format!(
                "apart from whitespace it matches {}, but the difference in indentation is not the same on all lines, so new_string cannot be indented; copy the text from there exactly:\n{}",
                named(*lines),
                passage(text, *lines),
            ),
        ),
        StringError::IndentTooShallow { edit: index, lines } => (
            format!("Edit {index}: String not found: {shown}"),
            format!(
                "apart from whitespace it matches {}, which is indented less than old_string; new_string cannot be unindented by as much; indent both as in the file:\n{}",
                named(*lines),
                passage(text, *lines),
            ),
        ),
        StringError::Ambiguous { edit: index, count, named: places, reason } => (
            format!("Edit {index}: String appears {count} times: {shown}"),
            several(text, places, *count, *reason, edit),
        ),
        StringError::Conflict { edit, prior, now } => (
            format!("Edit {edit} conflicts with edit {prior}"),
            format!(
                "edit {prior} changed part of what edit {edit} was to replace; combine both in one edit, or write old_string as the text is now, at {}:\n{}",
                named(*now),
                passage(text, *now),
            ),
        ),
        StringError::TooLong { size, .. } => {
            let error = StoreError::TooLarge { size: *size as u64, max: cx.limits.max_size };
            return super::refused(path, &error, cx.limits, FileAction::Edit)
                .with_hint("the file would become that large; the limit is set by --max-size");
        }
    };
    Failure::new(kind, message).with_hint(within(hint))
}

/// Makes the failure for edits that applied to the file as it was a moment ago and no longer do.
pub(super) fn no_longer_fits(failure: &Failure, path: &str, current: Option<Hash>) -> Failure {
    let why = format!(
        "another program changed the file during the call, and the edits no longer apply: {}",
        failure.message
    );
    Failure::stale(&super::short(path), current).with_hint(within(why))
}

fn missed(staged: &StagedText<'_>, old: &str) -> String {
    const IN_ORDER: &str = "edits are applied in order, each to the result of those before it";
    if let Some(prior) = staged.replaced_by(old) {
        return format!("edit {prior} of this call has replaced it: {IN_ORDER}");
    }
    let nearest = nearest::explain(staged.text(), old);
    if staged.was_in_original(old) {
        return format!("the edits before this one have changed it: {IN_ORDER}\n{nearest}");
    }
    nearest
}

fn several(
    text: &str,
    places: &[LineSpan],
    count: usize,
    reason: Ambiguity,
    edit: StringEdit<'_>,
) -> String {
    let wanted = edit.count.unwrap_or_default();
    let mut hint = match reason {
        Ambiguity::Several => "make old_string longer, so that it matches one place, or choose with near_line, replace_all or expected_count".to_owned(),
        Ambiguity::Overlapping => "its matches overlap; make old_string longer, so that it matches one place, or set replace_all to replace them from left to right".to_owned(),
        Ambiguity::SeveralIgnoringWhitespace => "with whitespace ignored only one place can be replaced; make old_string longer, or choose with near_line".to_owned(),
        Ambiguity::Tie => "these matches are equally near; make old_string longer, or give another near_line".to_owned(),
        Ambiguity::Count if edit.pick == Pick::All => {
            format!("expected_count is {wanted}; matches are counted from left to right, without overlap")
        }
        Ambiguity::Count => format!("expected_count is {wanted}"),
    };
    hint.push_str("; it is at");
    for on_line in places.chunk_by(|one, other| one == other) {
        let (place, times) = (on_line[0], on_line.len());
        let line = line(text, place.first);
        let _ = write!(hint, "\n{}", named(place));
        if times > 1 {
            let _ = write!(hint, ", {times} times");
        }
        let _ = write!(hint, ": `{}`", cut(line.trim(), LINE_SHOWN));
        let above = (0..place.first).rev().map(|index| self::line(text, index).trim());
        if let Some(above) = above.take(3).find(|above| !above.is_empty()) {
            let _ = write!(hint, " below `{}`", cut(above, LINE_SHOWN));
        }
    }
    if places.len() < count && reason != Ambiguity::Tie {
        let _ = write!(hint, "\n... and {} more", count - places.len());
    }
    hint
}

/// Names lines as a caller counts them.
fn named(LineSpan { first, last }: LineSpan) -> String {
    if first == last {
        format!("line {}", first + 1)
    } else {
        format!("lines {}-{}", first + 1, last + 1)
    }
}

fn line(text: &str, index: usize) -> &str {
    lines::lines(text).nth(index).map_or("", |line| &text[line.start..line.end])
}

/// Returns the text of some lines, between tags.
fn passage(text: &str, LineSpan { first, last }: LineSpan) -> String {
    let found = lines::select(text, lines::LineRange { first, last });
    let lines = found.map_or("", |found| &text[found.bytes]).trim_end_matches(['\n', '\r']);
    format!("<file_text>\n{lines}\n</file_text>")
}

fn within(mut hint: String) -> String {
    const CUT: &str = "\n... (cut)";
    if hint.len() > HINT_BYTES {
        hint.truncate(hint.floor_char_boundary(HINT_BYTES - CUT.len()));
        hint.push_str(CUT);
    }
    hint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_cut_at_a_character_and_says_so() {
        for (character, count) in [("x", HINT_BYTES), ("é", HINT_BYTES / 2)] {
            let hint = character.repeat(count);
            assert_eq!(within(hint.clone()), hint);
            let cut = within(hint + "x");
            assert!(cut.len() <= HINT_BYTES && cut.len() + character.len() > HINT_BYTES);
            let kept = cut.strip_suffix("\n... (cut)").expect("it says so");
            assert!(kept.chars().all(|kept| character.starts_with(kept)));
        }
    }
}
