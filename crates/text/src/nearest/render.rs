//! Renders the hint that an agent reads.

use std::fmt::Write as _;
use std::ops::Range;

use super::boundaries::{common_start, line_at, line_start, lines_around};
use super::describe::{QUOTE_BEFORE_MAX, QUOTE_BYTES_MAX, line_numbers, quoted};
use super::{Difference, HINT_BYTES_MAX, NEAR_MATCHES_MAX, NearMatch};
use crate::lines::{LineEnding, lines};
use crate::whitespace;

/// Bytes reserved for the first and the last line of a hint.
const RESERVED_BYTES: usize = 200;
/// Most reasons named for one place.
const DIFFERENCES_MAX: usize = 5;
/// Most runs of lines named that have the same ending.
const RUNS_MAX: usize = 3;
/// Bytes of its start by which a line is found.
const LINE_START_BYTES: usize = 16;
/// Lines shown before the first difference of a place that is cut.
const LINES_BEFORE_MAX: usize = 2;
/// Most bytes shown of a place that is cut, and the size of the tags around them.
const CUT_BYTES_MAX: usize = 600;
const TAG_BYTES: usize = "<file_text cut to part of line 1234567890>\n\n</file_text>\n".len();
const CUT_NOTE: &str = "\n(the hint was cut)";

pub(super) fn hint(text: &str, needle: &str, places: &[NearMatch]) -> String {
    let mut hint = match places {
        [] if needle.is_empty() => "old_string is empty".into(),
        [] if needle.trim().is_empty() => "old_string is only blanks, and they are not in the file like this; include a line that has text".into(),
        [] if text.is_empty() => "the file is empty".into(),
        [] => "nothing in the file is near enough to name; read the file again and copy the text from it".into(),
        places => near_matches(text, needle, places),
    };
    if hint.len() > HINT_BYTES_MAX {
        hint.truncate(hint.floor_char_boundary(HINT_BYTES_MAX - CUT_NOTE.len()));
        hint.push_str(CUT_NOTE);
    }
    hint
}

fn near_matches(text: &str, needle: &str, places: &[NearMatch]) -> String {
    let mut hint = match places.len() {
        1 => String::new(),
        count @ ..=NEAR_MATCHES_MAX => format!("{count} places are equally near\n"),
        _ => format!("more than {NEAR_MATCHES_MAX} places are equally near; the first are\n"),
    };
    let places = &places[..places.len().min(NEAR_MATCHES_MAX)];
    let share = (HINT_BYTES_MAX - RESERVED_BYTES) / places.len();
    let mut whole = true;
    for near in places {
        let until = hint.len() + share;
        let _ = write!(hint, "nearest: {}: ", line_numbers(&near.lines));
        differences(&mut hint, text, near);
        hint.push('\n');
        different_lines(&mut hint, text, needle, near);
        let room = until.saturating_sub(hint.len());
        whole &= excerpt(&mut hint, text, near, room);
    }
    let copy = if whole {
        "copy the text from the file exactly"
    } else {
        "read these lines and copy their text exactly"
    };
    hint.push_str(&advice(text, needle, places, copy));
    hint
}

/// Returns the advice on what to do next; `copy` says how to get the text.
fn advice(text: &str, needle: &str, places: &[NearMatch], copy: &str) -> String {
    let elided = |difference: &Difference| matches!(difference, Difference::ElidedLines { .. });
    if places.iter().any(|near| near.differences.iter().any(elided)) {
        return "write out the lines the dots stand for, or make an edit for each part".into();
    }
    match places {
        [_] if whitespace::matches_once(text, needle) => {
            format!("{copy}, or use match: \"ignore_whitespace\"")
        }
        [_] => copy.into(),
        _ => format!("{copy}, with enough lines around it to tell the places apart"),
    }
}

fn differences(hint: &mut String, text: &str, near: &NearMatch) {
    if near.differences.is_empty() {
        hint.push_str("nothing differs");
    }
    for (at, difference) in near.differences.iter().take(DIFFERENCES_MAX).enumerate() {
        hint.push_str(if at == 0 { "" } else { "; " });
        hint.push_str(&difference.describe());
        if let Difference::LineEndings { file, .. } = difference {
            line_endings(hint, text, near, *file);
        }
    }
    if near.differences.len() > DIFFERENCES_MAX {
        let _ = write!(hint, "; and {} more differences", near.differences.len() - DIFFERENCES_MAX);
    }
    let first = line_at(text, near.first_difference);
    let named = |difference: &Difference| {
        matches!(difference, Difference::DifferentLines { .. } | Difference::ElidedLines { .. })
    };
    if first > near.lines.start && !near.differences.iter().any(named) {
        let _ = write!(hint, "; first at line {}", first + 1);
    }
}

/// Appends which lines have this ending, unless it is the usual line feed.
fn line_endings(hint: &mut String, text: &str, near: &NearMatch, ending: LineEnding) {
    let place = &text[line_start(text, near.bytes.start)..near.bytes.end];
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, line) in (near.lines.start..).zip(lines(place)) {
        match runs.last_mut() {
            _ if &place[line.end..line.next] != ending.as_str() => {}
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    let all = runs.iter().map(ExactSizeIterator::len).sum::<usize>();
    let shown: Vec<String> = runs.iter().take(RUNS_MAX).map(line_numbers).collect();
    if ending != LineEnding::Lf && all > 0 {
        let more = if runs.len() > RUNS_MAX { " and others" } else { "" };
        let end = if all == 1 { "ends" } else { "end" };
        let ending = ending.as_str().escape_debug();
        let _ = write!(hint, " ({}{more} {end} with `{ending}`)", shown.join(", "));
    }
}

/// Appends the first lines that differ, one of each side.
fn different_lines(hint: &mut String, text: &str, needle: &str, near: &NearMatch) {
    let differing = near.differences.iter().find_map(|difference| match difference {
        Difference::DifferentLines { file, needle } => Some((file, needle)),
        _ => None,
    });
    let Some((ours, theirs)) = differing else { return };
    // Only the place itself is quoted of a long line.
    let all = lines_around(text, &near.bytes);
    let place = all.start.max(near.bytes.start)..all.end.min(near.bytes.end).max(near.bytes.start);
    let place = if near.lines.len() == 1 && all.len() > QUOTE_BYTES_MAX { place } else { all };
    let ours = trimmed_lines(&text[place], ours.start.saturating_sub(near.lines.start), ours.len());
    let theirs = trimmed_lines(needle, theirs.start, theirs.len());
    let pairs = ours.len().min(theirs.len());
    let at = (0..pairs).find(|&at| ours[at] != theirs[at]).unwrap_or(0);
    let (file, needle) = (ours.get(at).copied(), theirs.get(at).copied());
    let (file, needle) = match (file, needle) {
        (Some(file), Some(needle)) => {
            // A place in a long line need not start where the needle does.
            let (file, needle) = (from_common_start(file, needle), from_common_start(needle, file));
            let same = common_start(file, needle);
            (Some(quoted(file, same)), Some(quoted(needle, same)))
        }
        (file, needle) => (file.map(|line| quoted(line, 0)), needle.map(|line| quoted(line, 0))),
    };
    for (name, line) in [("the file:   ", file), ("old_string: ", needle)] {
        if let Some(line) = line {
            let _ = writeln!(hint, "  {name}{line}");
        }
    }
}

/// Returns a long `line` from where it has the start of `part`, if it has.
fn from_common_start<'a>(line: &'a str, part: &str) -> &'a str {
    let start = &part[..part.floor_char_boundary(LINE_START_BYTES)];
    let known = start.len() < part.len() && line.len() > QUOTE_BYTES_MAX;
    line.find(start).filter(|_| known).map_or(line, |at| &line[at..])
}

/// Returns some lines without the whitespace around them, which other reasons report.
fn trimmed_lines(text: &str, first: usize, count: usize) -> Vec<&str> {
    let content = |line: crate::Line| text[line.start..line.end].trim();
    lines(text).skip(first).take(count).map(content).collect()
}

/// Appends the lines of the place; the place alone if they are more than `room`; or else the lines around the first
/// difference. True if all of the place is shown.
fn excerpt(hint: &mut String, text: &str, near: &NearMatch, room: usize) -> bool {
    let all = lines_around(text, &near.bytes);
    let room = room.saturating_sub(TAG_BYTES);
    let whole = near.bytes.len().min(all.len()) <= room;
    let (which, shown) = if all.len() <= room {
        (String::new(), &text[all])
    } else if whole {
        (format!(" part of {}", line_numbers(&near.lines)), &text[near.bytes.clone()])
    } else {
        lines_around_difference(text, near, &all, room.min(CUT_BYTES_MAX))
    };
    let _ = write!(hint, "<file_text{which}>\n{shown}\n</file_text>\n");
    whole
}

/// Returns those of the lines `all` around the first difference that fit, or part of the line it is in, with a label.
fn lines_around_difference<'a>(
    text: &'a str,
    near: &NearMatch,
    all: &Range<usize>,
    room: usize,
) -> (String, &'a str) {
    let difference = near.first_difference.clamp(all.start, all.end) - all.start;
    let block: Vec<_> = lines(&text[all.clone()]).collect();
    let text = &text[all.clone()];
    let differing = block.partition_point(|line| line.next <= difference);
    let Some(line) = block.get(differing) else { return (" cut".into(), "") };
    let mut firsts = differing.saturating_sub(LINES_BEFORE_MAX)..=differing;
    if let Some(first) = firsts.find(|first| line.end - block[*first].start <= room) {
        let start = block[first].start;
        let shown = block[first..].iter().take_while(|line| line.end - start <= room).count();
        let lines = near.lines.start + first..near.lines.start + first + shown;
        let end = block[first + shown - 1].end;
        return (format!(" cut to {}", line_numbers(&lines)), &text[start..end]);
    }
    let start =
        text.floor_char_boundary(difference.saturating_sub(QUOTE_BEFORE_MAX)).max(line.start);
    let shown = &text[start..text.floor_char_boundary(start + room).min(line.end)];
    (format!(" cut to part of line {}", near.lines.start + differing + 1), shown)
}
