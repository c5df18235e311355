//! Whether an answer is what the model says.

use std::fmt::Write as _;
use std::iter;

use serde_json::Value;

use super::fleet::{Observed, Refused, Seen};
use super::lines;
use super::tools::{Done, Expected, INVALID, Refusal, Tool};
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
    let name = match expected.code {
        -32001 => "FILE_NOT_FOUND",
        -32002 => "PERMISSION_DENIED",
        -32013 => "EDIT_CONFLICT",
        _ => "INVALID_INPUT",
    };
    let is_right = match observed.code.as_i64() {
        Some(code) => code == expected.code,
        None => tool.is_for_code() && observed.code == name,
    };
    let Refused { message, text, faults, .. } = observed;
    let fault = faults.as_ref().and_then(|faults| faults.first());
    // An error of JSON-RPC names what is wrong with the arguments in its data, and says in general what it is about.
    let is_general = fault.is_none() || message == "Invalid params";
    let has_faults = expected.code == INVALID && !tool.is_for_code() && !tool.is_resource();
    let is_complete = !has_faults || faults.is_none() || fault.is_some();
    let words = fault.unwrap_or(message);
    let has_words = expected.message.as_ref().is_none_or(|message| message == words);
    let whole = [tool.before_refusals(), words].concat();
    let has_text = text.as_ref().is_none_or(|text| *text == whole);
    let is_same = is_right && is_general && is_complete && has_words && has_text;
    (!is_same).then(|| format!("refused with {observed:?}, not {expected:?}"))
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
    if let Some(expected) = texts(tool, done, seen, diff)
        && seen.texts != expected
    {
        return Some(format!("the texts are {:?}, not {expected:?}", seen.texts));
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
    let tag = done.hash.as_ref().map(|hash| format!("\"{hash}\"")).unwrap_or_default();
    if seen.tag.as_ref().is_some_and(|seen| *seen != tag) {
        return Some(format!("the ETag is {:?}, not {tag:?}", seen.tag));
    }
    if done.is_context { wrong_context(world, &seen.data) } else { None }
}

/// All texts of an answer, where they are known. What the model cannot know is in its data, too, in the same words.
fn texts(tool: Tool, done: &Done, seen: &Seen, diff: &str) -> Option<Vec<String>> {
    let diff = Some(diff).filter(|diff| !diff.is_empty());
    let texts = match (tool, &done.text, &done.second) {
        (Tool::MultiEditTextFile, _, Some(words)) => {
            let notes = seen.data["notes"].as_array().into_iter().flatten();
            let notes = notes.map(|note| format!("\n{}", note.as_str().unwrap_or_default()));
            let words = iter::once(words.clone()).chain(notes).collect();
            vec![diff.unwrap_or_default().into(), words]
        }
        (Tool::AiEditCode, Some(text), _) => {
            let text = [text, &*warnings(&seen.data)].concat();
            iter::once(text).chain(diff.map(String::from)).collect()
        }
        (_, Some(text), Some(words)) => {
            let diff = diff.map(|diff| format!("\n\n{diff}")).unwrap_or_default();
            vec![text.clone(), [&**words, &*diff].concat()]
        }
        (_, Some(text), None) => vec![text.clone()],
        (_, None, _) => return None,
    };
    Some(texts)
}

/// What an answer's text has to say of its own `syntax_warnings`.
fn warnings(data: &Value) -> String {
    let mut words = String::new();
    for warning in data["syntax_warnings"].as_array().into_iter().flatten() {
        let message = warning["message"].as_str().unwrap_or_default();
        let (line, column) = (&warning["line"], &warning["column"]);
        let _ = write!(words, "\nsyntax warning: line {line}, column {column}: {message}");
    }
    if let Some(more) = data["more_syntax_warnings"].as_u64() {
        let _ = write!(words, "\n... and {more} more syntax warnings");
    }
    words
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

    /// Whether -32602 `wrong` is what was expected of `read_file`.
    #[track_caller]
    fn check_refusal(message: &str, text: Option<&str>, faults: Option<&[&str]>, is_right: bool) {
        let owned = |faults: &[&str]| faults.iter().map(|&fault| fault.to_owned()).collect();
        let observed = Refused {
            code: INVALID.into(),
            message: message.into(),
            text: text.map(String::from),
            faults: faults.map(owned),
        };
        let expected = Refusal { code: INVALID, message: Some("wrong".into()) };
        let why = refusals(Tool::ReadFile, &expected, &observed);
        assert_eq!(why.is_none(), is_right, "{why:?}");
    }

    #[test]
    fn a_refusal_has_its_words_wherever_they_belong() {
        check_refusal("wrong", Some("Error: wrong"), None, true);
        check_refusal("wrong", Some("wrong"), None, false);
        check_refusal("other", Some("Error: other"), None, false);
        check_refusal("Invalid params", None, Some(&["wrong"]), true);
        check_refusal("Invalid params", None, Some(&["other"]), false);
        check_refusal("wrong", None, Some(&["wrong"]), false);
        check_refusal("wrong", None, Some(&[]), false);
    }

    #[test]
    fn an_answer_over_http_has_its_tag() {
        let world = World::new(std::path::Path::new("/"));
        let done = Done { hash: Some("12".into()), ..Done::default() };
        let is_right = |done: &Done, tag: Option<&str>| {
            let seen = Seen { tag: tag.map(String::from), ..Seen::default() };
            answers(&world, Tool::PlainReadFile, done, &seen).is_none()
        };
        assert!(is_right(&done, Some("\"12\"")) && is_right(&done, None));
        assert!(!is_right(&done, Some("")) && !is_right(&done, Some("12")));
        assert!(!is_right(&Done::default(), Some("\"12\"")));
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
