//! Renders the hint that an agent reads.

use std::fmt::Write as _;
use std::ops::Range;

use super::bounds::{common_start, line_at, line_start, lines_around};
use super::words::{QUOTE, QUOTE_BEFORE, named, quoted};
use super::{HINT_BYTES, Near, PLACES, Reason};
use crate::blanks;
use crate::lines::{Ending, lines};

/// Bytes reserved for the first and the last line of a hint.
const RESERVED: usize = 200;
/// Most reasons named for one place.
const REASONS: usize = 5;
/// Most runs of lines named that have the same ending.
const RUNS: usize = 3;
/// Bytes of its start by which a line is found.
const START: usize = 16;
/// Lines shown before the first difference of a place that is cut.
const LINES_BEFORE: usize = 2;
/// Most bytes shown of a place that is cut, and the size of the tags around them.
const CUT_BYTES: usize = 600;
const TAGS: usize = "<file_text cut to part of line 1234567890>\n\n</file_text>\n".len();
const CUT: &str = "\n(the hint was cut)";

pub(super) fn hint(text: &str, needle: &str, places: &[Near]) -> String {
    let mut hint = match places {
        [] if needle.is_empty() => "old_string is empty".into(),
        [] if needle.trim().is_empty() => "old_string is only blanks, and they are not in the file like this; include a line that has text".into(),
        [] if text.is_empty() => "the file is empty".into(),
        [] => "nothing in the file is near enough to name; read the file again and copy the text from it".into(),
        places => found(text, needle, places),
    };
    if hint.len() > HINT_BYTES {
        hint.truncate(hint.floor_char_boundary(HINT_BYTES - CUT.len()));
        hint.push_str(CUT);
    }
    hint
}

fn found(text: &str, needle: &str, places: &[Near]) -> String {
    let mut hint = match places.len() {
        1 => String::new(),
        count @ ..=PLACES => format!("{count} places are equally near\n"),
        _ => format!("more than {PLACES} places are equally near; the first are\n"),
    };
    let places = &places[..places.len().min(PLACES)];
    let share = (HINT_BYTES - RESERVED) / places.len();
    let mut whole = true;
    for near in places {
        let until = hint.len() + share;
        let _ = write!(hint, "nearest: {}: ", named(&near.lines));
        reasons(&mut hint, text, near);
        hint.push('\n');
        quotes(&mut hint, text, needle, near);
        let room = until.saturating_sub(hint.len());
        whole &= excerpt(&mut hint, text, near, room);
    }
    hint.push_str(&advice(text, needle, places, whole));
    hint
}

/// Returns the advice on what to do next.
fn advice(text: &str, needle: &str, places: &[Near], whole: bool) -> String {
    let elided = |reason: &Reason| matches!(reason, Reason::Elided { .. });
    if places.iter().any(|near| near.reasons.iter().any(elided)) {
        return "write out the lines the dots stand for, or make an edit for each part".into();
    }
    let copy = if whole {
        "copy the text from the file exactly"
    } else {
        "read these lines and copy their text exactly"
    };
    match places {
        [_] if blanks::fits_once(text, needle) => {
            format!("{copy}, or use match: \"ignore_whitespace\"")
        }
        [_] => copy.into(),
        _ => format!("{copy}, with enough lines around it to tell the places apart"),
    }
}

fn reasons(hint: &mut String, text: &str, near: &Near) {
    if near.reasons.is_empty() {
        hint.push_str("nothing differs");
    }
    for (at, reason) in near.reasons.iter().take(REASONS).enumerate() {
        hint.push_str(if at == 0 { "" } else { "; " });
        hint.push_str(&reason.words());
        if let Reason::LineEnds { file, .. } = reason {
            line_ends(hint, text, near, *file);
        }
    }
    if near.reasons.len() > REASONS {
        let _ = write!(hint, "; and {} more differences", near.reasons.len() - REASONS);
    }
    let first = line_at(text, near.first_difference);
    let named = |reason: &Reason| matches!(reason, Reason::Lines { .. } | Reason::Elided { .. });
    if first > near.lines.start && !near.reasons.iter().any(named) {
        let _ = write!(hint, "; first at line {}", first + 1);
    }
}

/// Appends which lines have this ending, unless it is the usual line feed.
fn line_ends(hint: &mut String, text: &str, near: &Near, ending: Ending) {
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
    let shown: Vec<String> = runs.iter().take(RUNS).map(named).collect();
    if ending != Ending::Lf && all > 0 {
        let more = if runs.len() > RUNS { " and others" } else { "" };
        let end = if all == 1 { "ends" } else { "end" };
        let ending = ending.as_str().escape_debug();
        let _ = write!(hint, " ({}{more} {end} with `{ending}`)", shown.join(", "));
    }
}

/// Appends the first lines that differ, one of each side.
fn quotes(hint: &mut String, text: &str, needle: &str, near: &Near) {
    let differing = near.reasons.iter().find_map(|reason| match reason {
        Reason::Lines { file, needle } => Some((file, needle)),
        _ => None,
    });
    let Some((ours, theirs)) = differing else { return };
    // Only the place itself is quoted of a long line.
    let all = lines_around(text, &near.bytes);
    let place = all.start.max(near.bytes.start)..all.end.min(near.bytes.end).max(near.bytes.start);
    let place = if near.lines.len() == 1 && all.len() > QUOTE { place } else { all };
    let ours = contents(&text[place], ours.start.saturating_sub(near.lines.start), ours.len());
    let theirs = contents(needle, theirs.start, theirs.len());
    let pairs = ours.len().min(theirs.len());
    let at = (0..pairs).find(|&at| ours[at] != theirs[at]).unwrap_or(0);
    let (file, needle) = (ours.get(at).copied(), theirs.get(at).copied());
    let (file, needle) = match (file, needle) {
        (Some(file), Some(needle)) => {
            // A place in a long line need not start where the needle does.
            let (file, needle) = (from_start_of(file, needle), from_start_of(needle, file));
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
fn from_start_of<'a>(line: &'a str, part: &str) -> &'a str {
    let start = &part[..part.floor_char_boundary(START)];
    let known = start.len() < part.len() && line.len() > QUOTE;
    line.find(start).filter(|_| known).map_or(line, |at| &line[at..])
}

/// Returns some lines without the whitespace around them, which other reasons report.
fn contents(text: &str, first: usize, count: usize) -> Vec<&str> {
    let content = |line: crate::Line| text[line.start..line.end].trim();
    lines(text).skip(first).take(count).map(content).collect()
}

/// Appends the lines of the place; the place alone if they are more than `room`; or else the lines around the first
/// difference. True if all of the place is shown.
fn excerpt(hint: &mut String, text: &str, near: &Near, room: usize) -> bool {
    let all = lines_around(text, &near.bytes);
    let room = room.saturating_sub(TAGS);
    let whole = near.bytes.len().min(all.len()) <= room;
    let (which, shown) = if all.len() <= room {
        (String::new(), &text[all])
    } else if whole {
        (format!(" part of {}", named(&near.lines)), &text[near.bytes.clone()])
    } else {
        around_difference(text, near, &all, room.min(CUT_BYTES))
    };
    let _ = write!(hint, "<file_text{which}>\n{shown}\n</file_text>\n");
    whole
}

/// Returns those of the lines `all` around the first difference that fit, or part of the line it is in, with a label.
fn around_difference<'a>(
    text: &'a str,
    near: &Near,
    all: &Range<usize>,
    room: usize,
) -> (String, &'a str) {
    let difference = near.first_difference.clamp(all.start, all.end) - all.start;
    let block: Vec<_> = lines(&text[all.clone()]).collect();
    let text = &text[all.clone()];
    let differing = block.partition_point(|line| line.next <= difference);
    let Some(line) = block.get(differing) else { return (" cut".into(), "") };
    let mut firsts = differing.saturating_sub(LINES_BEFORE)..=differing;
    if let Some(first) = firsts.find(|first| line.end - block[*first].start <= room) {
        let start = block[first].start;
        let shown = block[first..].iter().take_while(|line| line.end - start <= room).count();
        let lines = near.lines.start + first..near.lines.start + first + shown;
        let end = block[first + shown - 1].end;
        return (format!(" cut to {}", named(&lines)), &text[start..end]);
    }
    let start = text.floor_char_boundary(difference.saturating_sub(QUOTE_BEFORE)).max(line.start);
    let shown = &text[start..text.floor_char_boundary(start + room).min(line.end)];
    (format!(" cut to part of line {}", near.lines.start + differing + 1), shown)
}
