//! Whether an answer is what the model says.

use serde_json::Value;

use super::fleet::{Observed, Refused, Seen};
use super::lines;
use super::tools::{Done, Expected, Refusal, Tool};
use super::world::{World, decode, hash};

/// What is not as it should be.
pub fn difference(
    world: &World,
    tool: Tool,
    expected: &Expected,
    observed: &Observed,
) -> Option<String> {
    match (expected, observed) {
        (Err(expected), Err(observed)) => refusals(tool, expected, observed),
        (Ok(done), Ok(seen)) => answers(world, tool, done, seen),
        (Ok(_), Err(refused)) => Some(format!("refused: {} {}", refused.code, refused.message)),
        (Err(refusal), Ok(seen)) => Some(format!("done, not refused with {refusal:?}: {seen:?}")),
    }
}

fn refusals(tool: Tool, expected: &Refusal, observed: &Refused) -> Option<String> {
    let is_code_tool =
        matches!(tool, Tool::AiEditCode | Tool::SearchFiles | Tool::AiGetCodeContext);
    let name = match expected.code {
        -32001 => "FILE_NOT_FOUND",
        -32002 => "PERMISSION_DENIED",
        -32013 => "EDIT_CONFLICT",
        _ => "INVALID_INPUT",
    };
    let is_right = match observed.code.as_i64() {
        Some(code) => code == expected.code,
        None => is_code_tool && observed.code == name,
    };
    let has_words = expected.message.as_ref().is_none_or(|message| *message == observed.message);
    (!is_right || !has_words).then(|| format!("refused with {observed:?}, not {expected:?}"))
}

fn answers(world: &World, tool: Tool, done: &Done, seen: &Seen) -> Option<String> {
    let mut data = seen.data.clone();
    let diff = data.as_object_mut().and_then(|data| data.remove("diff"));
    let diff = diff.as_ref().and_then(Value::as_str).unwrap_or_default();
    if let Some((before, after)) = &done.diff
        && let Some(why) = wrong_diff(before, after, diff)
    {
        return Some(format!("the diff from {before:?} to {after:?} {why}: {diff}"));
    }
    if let Some(expected) = &done.text
        && seen.texts.first() != Some(expected)
    {
        return Some(format!("the text is {:?}, not {expected:?}", seen.texts.first()));
    }
    if let Some(expected) = &done.second {
        let whole =
            if diff.is_empty() { expected.clone() } else { format!("{expected}\n\n{diff}") };
        if seen.texts.get(1) != Some(&whole) {
            return Some(format!("the second text is {:?}, not {whole:?}", seen.texts.get(1)));
        }
    }
    if let Some(expected) = &done.data {
        drop_unknown(tool, &mut data, expected);
        if data != *expected {
            return Some(format!("the data is {data}, not {expected}"));
        }
    }
    if let Some(expected) = &done.meta {
        let is_there = |(name, value): (&String, &Value)| seen.meta.get(name) == Some(value);
        let mut names = expected.as_object().into_iter().flatten();
        if !names.all(is_there) {
            return Some(format!("`_meta` is {}, not {expected}", seen.meta));
        }
    }
    if let (Some(tag), Some(expected)) = (&seen.tag, &done.hash)
        && tag != expected
    {
        return Some(format!("the ETag is {tag}, not {expected}"));
    }
    if done.is_context { wrong_context(world, &seen.data) } else { None }
}

/// Takes out what the model does not know.
fn drop_unknown(tool: Tool, data: &mut Value, expected: &Value) {
    if tool == Tool::SearchFiles && data["files"].is_array() {
        complete_cut_lines(data, expected);
    }
    let Some(object) = data.as_object_mut() else { return };
    match tool {
        Tool::MultiEditTextFile => {
            object.remove("notes");
            let is_alone = expected["applied_count"] == 1;
            let ranges = object.get_mut("line_ranges").and_then(Value::as_array_mut);
            for range in ranges.into_iter().flatten().filter(|_| !is_alone) {
                if let Some(range) = range.as_object_mut() {
                    range.retain(|name, _| !name.starts_with("final"));
                }
            }
        }
        Tool::AiEditCode => {
            object.remove("syntax_warnings");
            object.remove("more_syntax_warnings");
        }
        Tool::SearchFiles => {
            object.remove("skipped");
            object.remove("next_cursor");
            object.remove("cut_files");
        }
        _ => {}
    }
}

/// Every place that is shown must be in the files as they are.
fn wrong_context(world: &World, data: &Value) -> Option<String> {
    for result in data["results"].as_array().into_iter().flatten() {
        let Some(bytes) = result["path"].as_str().and_then(|path| world.files.get(path)) else {
            return Some(format!("no such file: {result}"));
        };
        if result["file_hash"].as_str().is_some_and(|shown| shown != hash(bytes)) {
            return Some(format!("another hash: {result}"));
        }
        let (Some(start), Some(end), Some(text), true) = (
            result["start_line"].as_u64(),
            result["end_line"].as_u64(),
            result["text"].as_str(),
            result["type"] == "snippet" && result["detail"] == "body",
        ) else {
            continue;
        };
        let Ok(body) = decode(bytes) else { return Some(format!("no text: {result}")) };
        let all = lines::lines(body.body);
        let part = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let part = part.and_then(|(start, end)| all.get(start.checked_sub(1)?..end));
        if !part.is_some_and(|part| shows(part, text)) {
            return Some(format!("other lines: {result}"));
        }
    }
    None
}

/// Whether a text is these lines, long ones up to where they are cut.
fn shows(part: &[lines::Line], text: &str) -> bool {
    let shown: Vec<_> = text.split('\n').collect();
    let is_shown = |(line, shown): (&lines::Line, &&str)| {
        line.text == **shown
            || shown.strip_suffix('…').is_some_and(|start| line.text.starts_with(start))
    };
    part.len() == shown.len() && part.iter().zip(&shown).all(is_shown)
}

/// Lines of a search that were too long to be shown: a part of them is right.
fn complete_cut_lines(data: &mut Value, expected: &Value) {
    let files = data["files"].as_array_mut().into_iter().flatten();
    for (file, known) in files.zip(expected["files"].as_array().into_iter().flatten()) {
        let rows = file.get_mut("lines").and_then(Value::as_array_mut).into_iter().flatten();
        for (row, known) in rows.zip(known["lines"].as_array().into_iter().flatten()) {
            let part = row["text"].as_str().unwrap_or_default().trim_matches('…').to_owned();
            let whole = known["text"].as_str().unwrap_or_default();
            if row["cut"] == true && part.len() < whole.len() && whole.contains(&part) {
                *row = known.clone();
            }
        }
    }
}

/// Applies a unified diff, and says why it does not lead from one text to the other.
fn wrong_diff(before: &str, after: &str, diff: &str) -> Option<String> {
    if before == after || diff.is_empty() {
        let is_right = (before == after) == diff.is_empty();
        return (!is_right).then(|| "is none, or should be none".into());
    }
    // Long ones are cut, and say so.
    if diff.lines().last().is_some_and(|last| last.starts_with("... (")) {
        return None;
    }
    let old: Vec<_> = before.split_inclusive('\n').collect();
    let (mut at, mut new) = (0, String::new());
    let mut rows = diff.split_inclusive('\n').peekable();
    if !rows.next()?.starts_with("--- ") || !rows.next()?.starts_with("+++ ") {
        return Some("has no head".into());
    }
    while let Some(row) = rows.next() {
        let is_unended = rows.peek().is_some_and(|next| next.starts_with('\\'));
        let (sign, mut line) = row.split_at(1);
        if is_unended {
            line = line.strip_suffix('\n').unwrap_or(line);
            rows.next();
        }
        match sign {
            "@" => {
                let place = row.split(['-', ',', ' ']).find_map(|part| part.parse().ok());
                let place: usize = place.unwrap_or(0);
                let is_insertion = row.split(' ').nth(1).is_some_and(|part| part.ends_with(",0"));
                let start = if is_insertion { place } else { place.saturating_sub(1) };
                let Some(kept) = old.get(at..start) else { return Some("goes back".into()) };
                new.push_str(&kept.concat());
                at = start;
            }
            "+" => new.push_str(line),
            _ => {
                if old.get(at) != Some(&line) {
                    return Some(format!("expects {line:?} at line {at}"));
                }
                at += 1;
                new.push_str(if sign == " " { line } else { "" });
            }
        }
    }
    new.push_str(&old.get(at..).unwrap_or_default().concat());
    (new != after).then(|| format!("leads to {new:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, hunks: &str, is_right: bool) {
        let diff = format!("--- a\n+++ a\n{hunks}");
        let why = wrong_diff(before, after, &diff);
        assert_eq!(why.is_none(), is_right, "{why:?}");
    }

    #[test]
    fn a_diff_must_lead_from_one_text_to_the_other() {
        check("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", true);
        check("a\nb\nc\n", "a\nb\nc\nd\n", "@@ -3,0 +4,1 @@\n+d\n", true);
        check("a", "b\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n", true);
        check("", "a\n", "@@ -0,0 +1,1 @@\n+a\n", true);
        check("a\nb\n", "a\n", "@@ -1,1 +1,0 @@\n-b\n", false);
        check("a\nb\n", "a\n", "@@ -2,1 +1,0 @@\n-b\n+c\n", false);
        check("a\n", "b", "@@ -1,1 +1,1 @@\n-a\n+b\n", false);
        assert!(wrong_diff("a", "b", "").is_some());
        assert!(wrong_diff("a", "a", "").is_none());
    }
}
