//! What the model is to do: calls, made with what was seen before, and what they lead to.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Outcome, Trouble};

/// Calls from one state of the folder to another.
pub struct Tour {
    pub what: &'static str,
    pub given: &'static [(&'static str, &'static str)],
    pub calls: &'static [Call],
    /// What the model saw of it, with `$DIR` for the folder, and hashes numbered as they come.
    pub seen: &'static str,
    pub left: &'static [(&'static str, &'static str)],
}

pub struct Call {
    pub tool: &'static str,
    /// Its arguments; whatever somebody else does meanwhile, happens here.
    pub prepare: fn(&Seen) -> Outcome<Value>,
}

/// What the model knows when it makes a call.
pub struct Seen {
    pub folder: PathBuf,
    pub answers: Vec<String>,
}

impl Seen {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The hash that the answer to call `number` (counted from 1) ends with.
    fn hash(&self, number: usize) -> Outcome<&str> {
        let answer = self.answers.get(number - 1).map_or("", String::as_str);
        hashes(answer).last().ok_or_else(|| Trouble::Wrong(format!("no hash: {answer}")))
    }

    /// The text of the file that the refusal of call `number` shows.
    fn shown(&self, number: usize) -> Outcome<String> {
        let answer = self.answers.get(number - 1).map_or("", String::as_str);
        let object: Value = serde_json::from_str(answer).unwrap_or_default();
        let hint = object["error"]["hint"].as_str().unwrap_or(answer);
        let shown = hint
            .split_once("<file_text>\n")
            .and_then(|(_, after)| after.split_once("\n</file_text>"));
        let shown = shown.ok_or_else(|| Trouble::Wrong(format!("no text is shown: {answer}")))?;
        Ok(shown.0.to_owned())
    }
}

/// The hashes in a text: words of 16 hex digits.
pub fn hashes(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit()))
}

const COUNT: &str = "fn count(words: &[&str]) -> usize {
\tlet mut total = 0;
\tfor word in words {
\t\ttotal += word.len();
\t}
\ttotal
}
";

const NOTES: &str = "count letters\nuse no loop\n";

const OVERWRITE: Call = Call {
    tool: "write_text_file",
    prepare: |seen| Ok(json!({ "path": seen.path("notes.txt"), "content": "done\n" })),
};

/// Read, edit, be overtaken by somebody, read again, miss, edit as the refusal says, write.
pub const TEXT: Tour = Tour {
    what: "read, edit, conflict, read again, miss, edit as the hint says, overwrite",
    given: &[("count.rs", COUNT), ("notes.txt", NOTES)],
    calls: &[
        Call {
            tool: "read_text_file",
            prepare: |seen| Ok(json!({ "path": seen.path("count.rs") })),
        },
        Call {
            tool: "multi_edit_text_file",
            prepare: |seen| {
                let edit =
                    json!({ "old_string": "word.len()", "new_string": "word.chars().count()" });
                Ok(json!({
                    "path": seen.path("count.rs"), "edits": [edit], "expected_hash": seen.hash(1)?,
                }))
            },
        },
        Call {
            tool: "multi_edit_text_file",
            prepare: |seen| {
                let path = seen.path("count.rs");
                let text = fs::read_to_string(&path).unwrap_or_default();
                let saved = fs::write(&path, format!("// Counts letters.\n{text}"));
                saved.map_err(|e| Trouble::Wrong(e.to_string()))?;
                let edit =
                    json!({ "old_string": "total", "new_string": "sum", "replace_all": true });
                Ok(json!({ "path": path, "edits": [edit], "expected_hash": seen.hash(2)? }))
            },
        },
        Call {
            tool: "read_text_file",
            prepare: |seen| Ok(json!({ "path": seen.path("count.rs"), "limit": 2 })),
        },
        Call {
            tool: "multi_edit_text_file",
            prepare: |seen| {
                let old = "    for word in words {\n        total += word.chars().count();\n    }";
                let edit = json!({ "old_string": old, "new_string": "" });
                Ok(json!({ "path": seen.path("count.rs"), "edits": [edit] }))
            },
        },
        Call {
            tool: "multi_edit_text_file",
            prepare: |seen| {
                let new =
                    "\ttotal += words.iter().map(|word| word.chars().count()).sum::<usize>();";
                let edit = json!({ "old_string": seen.shown(5)?, "new_string": new });
                Ok(json!({
                    "path": seen.path("count.rs"), "edits": [edit], "expected_hash": seen.hash(4)?,
                }))
            },
        },
        OVERWRITE,
    ],
    seen: include_str!("text.seen"),
    left: &[
        (
            "count.rs",
            "// Counts letters.
fn count(words: &[&str]) -> usize {
\tlet mut total = 0;
\ttotal += words.iter().map(|word| word.chars().count()).sum::<usize>();
\ttotal
}
",
        ),
        ("notes.txt", "done\n"),
    ],
};

/// The same where answers are texts only.
pub const PLAIN: Tour = Tour { seen: include_str!("plain.seen"), ..TEXT };

/// The same in short for the flat tools, and a look at the file by another tool in the end.
pub const FLAT: Tour = Tour {
    what: "list, read, edit, conflict, error, read as text",
    given: &[("notes.txt", NOTES)],
    calls: &[
        Call { tool: "list_files", prepare: |_| Ok(json!({})) },
        Call { tool: "read_file", prepare: |_| Ok(json!({ "name": "notes.txt" })) },
        Call {
            tool: "edit_file",
            prepare: |seen| {
                let edit = json!({ "line": 1, "operation": "replace", "content": "use a loop" });
                Ok(json!({ "name": "notes.txt", "edits": [edit], "expected_hash": seen.hash(2)? }))
            },
        },
        Call {
            tool: "edit_file",
            prepare: |seen| {
                let edit = json!({ "line": 1, "operation": "delete" });
                Ok(json!({ "name": "notes.txt", "edits": [edit], "expected_hash": seen.hash(2)? }))
            },
        },
        Call {
            tool: "edit_file",
            prepare: |_| {
                let edit = json!({ "line": 9, "operation": "delete" });
                Ok(json!({ "name": "notes.txt", "edits": [edit] }))
            },
        },
        Call {
            tool: "read_text_file",
            prepare: |seen| Ok(json!({ "path": seen.path("notes.txt"), "line": 2 })),
        },
    ],
    seen: include_str!("flat.seen"),
    left: &[("notes.txt", "count letters\nuse a loop\n")],
};

/// What nobody allowed: a file is not overwritten, but edited, which can be taken back.
pub const UNASKED: Tour = Tour {
    what: "overwriting without approval refused by Codex, editing not",
    given: &[("notes.txt", NOTES)],
    calls: &[
        OVERWRITE,
        Call {
            tool: "multi_edit_text_file",
            prepare: |seen| {
                let edit = json!({ "old_string": "no loop", "new_string": "a loop" });
                Ok(json!({ "path": seen.path("notes.txt"), "edits": [edit] }))
            },
        },
    ],
    seen: include_str!("unasked.seen"),
    left: &[("notes.txt", "count letters\nuse a loop\n")],
};
