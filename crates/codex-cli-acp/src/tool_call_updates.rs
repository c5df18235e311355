//! Session updates about a call of this program's own tools: its start and its end, in the shape of ACP or of the
//! tools' contracts. Pure functions.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use server::error_codes;
use server::observer::{CallInfo, FileChange};
use tools::{Effect, Failure, ToolOutput};

use crate::cli::EventFormat;

/// Bytes of a text in `rawInput` before it is cut.
const INPUT_TEXT_BYTES_MAX: usize = 10 * 1024;
/// Bytes of a file, old and new together, up to which a diff shows it whole. Of a larger file only the changed part is
/// shown.
const WHOLE_DIFF_BYTES_MAX: usize = 256 * 1024;
/// Lines of context around the changed part of a large file.
const CONTEXT_LINES: usize = 3;

/// Fields of each tool's answer that the contracts name.
const READ_FIELDS: [&str; 4] = ["total_lines", "returned_lines", "has_more", "next_line"];
const WRITTEN_FIELDS: [&str; 3] = ["success", "bytes_written", "created"];
const EDITED_FIELDS: [&str; 4] = ["success", "diff", "applied_count", "line_ranges"];
const RANGE_FIELDS: [&str; 3] = ["edit_index", "start", "end"];

impl EventFormat {
    /// Returns the update that announces a call.
    pub fn started(self, id: &str, tool: &str, arguments: &Value) -> Value {
        let mut fields = json!({
            "kind": self.kind(tool),
            "status": "pending",
            "title": title(tool, arguments),
            "locations": self.locations(arguments),
            "rawInput": shortened(arguments),
        });
        self.add_names(&mut fields, "toolCall", "tool_call", id);
        fields
    }

    /// Returns the update for the end of a call.
    pub fn ended(
        self,
        id: &str,
        call: &CallInfo,
        outcome: Result<&ToolOutput, &Failure>,
        changes: &[FileChange],
    ) -> Value {
        self.end_update(id, acp_fields(outcome, changes), contract_fields(call, outcome))
    }

    /// Returns the update for the end of a call whose outcome is not known.
    pub fn abandoned(self, id: &str, reason: &str) -> Value {
        let contract =
            json!({ "status": "failed", "rawOutput": { "error": { "message": reason } } });
        let mut acp = contract.clone();
        acp["content"] = json!([text_content(reason)]);
        self.end_update(id, acp, contract)
    }

    /// Returns the update for the end of a call in a loaded thread, for which Codex kept only what the model was told.
    pub fn replayed(self, id: &str, item: &Value) -> Value {
        let status = if item["status"] == "completed" { "completed" } else { "failed" };
        let told = item["result"]["content"].as_array().into_iter().flatten();
        let told: Vec<Value> =
            told.filter_map(|block| block["text"].as_str()).map(text_content).collect();
        self.end_update(
            id,
            json!({ "status": status, "content": told }),
            json!({ "status": status }),
        )
    }

    /// Returns the tool kind. ACP has none for writing but `edit`.
    fn kind(self, tool: &str) -> &'static str {
        match (tool, self) {
            ("read_text_file", _) => "read",
            ("write_text_file", Self::Contract | Self::Both) => "write",
            _ => "edit",
        }
    }

    /// Returns the locations. Those of the contracts are paths alone.
    fn locations(self, arguments: &Value) -> Value {
        let Some(path) = arguments["path"].as_str() else { return json!([]) };
        match arguments["line"].as_u64() {
            Some(line) if self != Self::Contract => json!([{ "path": path, "line": line }]),
            _ => json!([{ "path": path }]),
        }
    }

    /// Builds an end in the configured shape: the fields at the top level, or below `fields`.
    fn end_update(self, id: &str, acp: Value, contract: Value) -> Value {
        let mut update = if self == Self::Contract { json!({}) } else { acp };
        self.add_names(&mut update, "toolCallUpdate", "tool_call_update", id);
        if self != Self::Acp {
            update["fields"] = contract;
        }
        update
    }

    /// Adds the type of the update and the id of the call, before all other fields.
    fn add_names(self, update: &mut Value, contract: &str, acp: &str, id: &str) {
        let mut named = Map::new();
        if self != Self::Contract {
            named.insert("sessionUpdate".into(), acp.into());
            named.insert("toolCallId".into(), id.into());
        }
        if self != Self::Acp {
            named.insert("type".into(), contract.into());
            named.insert("id".into(), id.into());
        }
        if let Value::Object(fields) = update {
            named.append(fields);
        }
        *update = Value::Object(named);
    }
}

/// Returns the tool call for a permission request.
pub fn permission_request(id: &str, changes: &[FileChange]) -> Value {
    let titles: Vec<_> = changes.iter().map(described).collect();
    json!({
        "toolCallId": id,
        "title": titles.join(", "),
        "kind": "edit",
        "status": "pending",
        "locations": changes.iter().map(location).collect::<Value>(),
        "content": changes.iter().map(diff).collect::<Value>(),
    })
}

fn described(FileChange { path, before, after }: &FileChange) -> String {
    let verb = match (before, after) {
        (_, None) => "Delete",
        (Some(_), Some(_)) => "Edit",
        (None, Some(_)) => "Create",
    };
    format!("{verb} {path}")
}

fn title(tool: &str, arguments: &Value) -> String {
    match arguments["edits"].as_array().map(Vec::len) {
        Some(1) if tool == "multi_edit_text_file" => format!("{tool} (1 edit)"),
        Some(count) if tool == "multi_edit_text_file" => format!("{tool} ({count} edits)"),
        _ => tool.to_owned(),
    }
}

/// Returns the arguments with every long text cut.
fn shortened(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) if text.len() > INPUT_TEXT_BYTES_MAX => {
            let mut cut = text[..text.floor_char_boundary(INPUT_TEXT_BYTES_MAX)].to_owned();
            let _ = write!(cut, "... ({} bytes in all)", text.len());
            cut.into()
        }
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}

/// Returns the end of a call in the shape of ACP: the whole answer of the tool, and the change.
fn acp_fields(outcome: Result<&ToolOutput, &Failure>, changes: &[FileChange]) -> Value {
    let reply = match outcome {
        Ok(reply) => reply,
        Err(failure) => {
            let hint = failure.hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            let text = format!("{}{hint}", failure.message);
            return json!({ "status": "failed", "rawOutput": error(failure), "content": [text_content(&text)] });
        }
    };
    let output = match &reply.data {
        Some(data) => json!(data),
        None => json!({ "content": text(reply), "_meta": reply.meta }),
    };
    let mut fields = json!({ "status": "completed", "rawOutput": output });
    if !changes.is_empty() {
        fields["content"] = changes.iter().map(diff).collect();
        fields["locations"] = changes.iter().map(location).collect();
    }
    fields
}

/// Returns the end of a call in the shape of the contract: only the fields that it names.
fn contract_fields(call: &CallInfo, outcome: Result<&ToolOutput, &Failure>) -> Value {
    let pick = |from: Option<&Map<String, Value>>, names: &[&str]| -> Value {
        let members = from.into_iter().flatten().filter(|(name, _)| names.contains(&name.as_str()));
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let reply = match outcome {
        Ok(reply) => reply,
        Err(failure) => return json!({ "status": "failed", "rawOutput": error(failure) }),
    };
    let (data, meta) = (reply.data.as_ref(), reply.meta.as_ref());
    match call.effect {
        Effect::Reads => {
            let output = json!({ "content": text(reply), "_meta": pick(meta, &READ_FIELDS) });
            json!({ "status": "completed", "rawOutput": output })
        }
        Effect::Overwrites => {
            json!({ "status": "completed", "rawOutput": pick(data, &WRITTEN_FIELDS) })
        }
        Effect::Edits | Effect::Rewrites => {
            let mut output = pick(data, &EDITED_FIELDS);
            for range in output["line_ranges"].as_array_mut().into_iter().flatten() {
                *range = pick(range.as_object(), &RANGE_FIELDS);
            }
            let content = json!([{ "type": "text", "text": output["diff"] }]);
            json!({ "status": "completed", "rawOutput": output, "content": content })
        }
    }
}

fn error(failure: &Failure) -> Value {
    let mut error =
        json!({ "code": error_codes::code(failure.kind).number, "message": failure.message });
    if let Some(hint) = &failure.hint {
        error["hint"] = hint.as_str().into();
    }
    json!({ "error": error })
}

fn text(reply: &ToolOutput) -> String {
    reply.blocks.first().map(ToString::to_string).unwrap_or_default()
}

fn text_content(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

fn location(change: &FileChange) -> Value {
    json!({ "path": change.path, "line": first_line(change) })
}

/// Returns the diff of a file, whole if it is not large. A file that is removed becomes empty: ACP cannot say more.
fn diff(change: &FileChange) -> Value {
    let text = |bytes| String::from_utf8_lossy(bytes);
    let before = change.before.as_deref().map(|bytes| text(bytes));
    let after = change.after.as_deref().map(|bytes| text(bytes)).unwrap_or_default();
    let large = before.as_deref().map_or(0, str::len) + after.len() > WHOLE_DIFF_BYTES_MAX;
    let (old, new) = match before.as_deref() {
        Some(before) if large => {
            let (old, new) = changed_part(before, &after);
            (Some(old), new)
        }
        old => (old, &*after),
    };
    json!({ "type": "diff", "path": change.path, "oldText": old, "newText": new })
}

/// Returns the lines of two texts that differ, with a few lines around them.
fn changed_part<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let same = common(before.bytes(), after.bytes());
    let start = back_lines(before, before.floor_char_boundary(same), CONTEXT_LINES);
    let rest = common(before[start..].bytes().rev(), after[start..].bytes().rev());
    let end =
        |text: &str| forward_lines(text, text.ceil_char_boundary(text.len() - rest), CONTEXT_LINES);
    (&before[start..end(before)], &after[start..end(after)])
}

fn common(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the start of the line that is `lines` lines before the one with `at`.
fn back_lines(text: &str, at: usize, lines: usize) -> usize {
    text[..at].match_indices('\n').rev().nth(lines).map_or(0, |(at, _)| at + 1)
}

/// Returns the end of the line that is `lines` lines after the one with `at`.
fn forward_lines(text: &str, at: usize, lines: usize) -> usize {
    text[at..].match_indices('\n').nth(lines).map_or(text.len(), |(found, _)| at + found + 1)
}

/// Returns the first changed line, counted from 1 in the new file.
fn first_line(change: &FileChange) -> usize {
    let before = change.before.as_deref().map(Vec::as_slice).unwrap_or_default();
    let after = change.after.as_deref().map(Vec::as_slice).unwrap_or_default();
    let same = common(before.iter().copied(), after.iter().copied());
    1 + after[..same].split(|byte| *byte == b'\n').skip(1).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_large_file_the_lines_around_the_change_are_shown() {
        let lines: Vec<String> = (0..50_000).map(|number| format!("line {number}\n")).collect();
        let before = lines.concat();
        let after = before.replace("line 20000\n", "line twenty\nthousand\n");
        let (old, new) = changed_part(&before, &after);
        assert_eq!(old, lines[19_997..=20_003].concat());
        assert_eq!(new, old.replace("line 20000\n", "line twenty\nthousand\n"));
    }

    #[test]
    fn what_repeats_itself_is_not_shown_twice() {
        for (before, after) in
            [("ä\n", "ö\n"), ("aa", "aaa"), ("aaa", "aa"), ("", "x"), ("x\n", "")]
        {
            let (old, new) = changed_part(before, after);
            assert_eq!((old, new), (before, after));
        }
    }

    #[test]
    fn long_texts_are_cut_in_the_input_wherever_they_are() {
        let long = "ä".repeat(10_000);
        let cut =
            shortened(&json!({ "path": "/a", "content": long, "edits": [{ "new_string": long }] }));
        let expected = "ä".repeat(INPUT_TEXT_BYTES_MAX / 2) + "... (20000 bytes in all)";
        assert_eq!(cut["content"], *expected);
        assert_eq!(cut["edits"][0]["new_string"], *expected);
        assert_eq!(cut["path"], "/a");
    }
}
