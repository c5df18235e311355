//! Calls that are refused whatever the files are, and what with.

use serde_json::Value;

use super::tools::{Refusal, Tool};

/// A tool, its arguments (`NAME` and `PATH` stand for a file's), a code, and a message; without one, any will do.
type Row = (Tool, &'static str, i64, &'static str);

const NAME: &str = "Invalid filename format";
const OUTSIDE: &str = "Permission denied: /etc/hostname";

const FLAT: &[Row] = &[
    (Tool::ReadFile, r#"{"name":"../a.txt"}"#, -32602, NAME),
    (Tool::ReadFile, r#"{"name":"a b"}"#, -32602, NAME),
    (Tool::PlainReadFile, r#"{"name":"a.txt\n"}"#, -32602, NAME),
    (Tool::PlainReadFile, r#"{"name":"NAME","start_line":0}"#, -32602, ""),
    (
        Tool::ReadFile,
        r#"{"name":"NAME","start_line":5,"end_line":3}"#,
        -32602,
        "Invalid line range: start 5 > end 3",
    ),
    (
        Tool::ReadFile,
        r#"{"name":"NAME","start_line":-1}"#,
        -32602,
        "Line numbers must be non-negative integers",
    ),
    (Tool::PlainReadFile, r#"{"name":"NAME","start_line":"1"}"#, -32602, ""),
    (Tool::PlainReadFile, r#"{"name":"NAME","line_numbers":true}"#, -32602, ""),
    (Tool::ReadFile, r#"{"name":"NAME","colour":"red"}"#, -32602, ""),
    (Tool::ReadFile, "{}", -32602, ""),
    (Tool::ListFiles, r#"{"path":"."}"#, -32602, ""),
];

const EDITS: &[Row] = &[
    (
        Tool::EditFile,
        r#"{"name":"NAME","edits":[{"line":1,"operation":"delete","content":""}]}"#,
        -32602,
        "Delete operation cannot specify content",
    ),
    (
        Tool::PlainEditFile,
        r#"{"name":"NAME","edits":[{"line":1,"operation":"replace"}]}"#,
        -32602,
        "Content is required for replace operation",
    ),
    (
        Tool::EditFile,
        r#"{"name":"NAME","edits":[{"line":1,"operation":"insert","content":null}]}"#,
        -32602,
        "Content is required for insert operation",
    ),
    (
        Tool::PlainEditFile,
        r#"{"name":"NAME","edits":[{"line":1,"operation":"move","content":"x"}]}"#,
        -32602,
        "Invalid edit operation: move",
    ),
    (
        Tool::EditFile,
        r#"{"name":"NAME","append":"\u0000"}"#,
        -32602,
        "Content contains a NUL character",
    ),
    (Tool::EditFile, r#"{"name":"NAME","edits":[{"line":1.5,"operation":"delete"}]}"#, -32602, ""),
    (
        Tool::PlainEditFile,
        r#"{"name":"NAME","edits":[{"line":true,"operation":"delete"}]}"#,
        -32602,
        "",
    ),
    (
        Tool::PlainEditFile,
        r#"{"name":"NAME","append":"x","expected_hash":"0123456789abcdef"}"#,
        -32602,
        "",
    ),
    (
        Tool::EditFile,
        r#"{"name":"NAME","edits":[{"line":-1,"operation":"delete"}]}"#,
        -32602,
        "Line numbers must be non-negative integers",
    ),
];

const TEXT: &[Row] = &[
    (Tool::ReadTextFile, r#"{"path":"NAME"}"#, -32600, "Path must be absolute: NAME"),
    (Tool::ReadTextFile, r#"{"path":"PATH","line":0}"#, -32600, "Line number must be >= 1: 0"),
    (Tool::ReadTextFile, r#"{"path":"PATH","limit":0}"#, -32600, "Limit must be >= 1: 0"),
    (Tool::ReadTextFile, r#"{"path":"/etc/hostname"}"#, -32002, OUTSIDE),
    (Tool::WriteTextFile, r#"{"path":"/etc/hostname","content":""}"#, -32002, OUTSIDE),
    (Tool::WriteTextFile, r#"{"path":"PATH"}"#, -32602, ""),
    (
        Tool::WriteTextFile,
        r#"{"path":"PATH","content":"\u0000"}"#,
        -32602,
        "`content` contains a NUL character",
    ),
    (
        Tool::WriteTextFile,
        r#"{"path":"PATH","content":"a","expected_hash":"12"}"#,
        -32602,
        "`expected_hash` must be 16 hex digits",
    ),
    (
        Tool::MultiEditTextFile,
        r#"{"path":"PATH","edits":[]}"#,
        -32600,
        "Edits array cannot be empty",
    ),
    (
        Tool::MultiEditTextFile,
        r#"{"path":"NAME","edits":[{"old_string":"a","new_string":"b"}]}"#,
        -32600,
        "Path must be absolute: NAME",
    ),
    (
        Tool::MultiEditTextFile,
        r#"{"path":"PATH","edits":[{"old_string":"a","newString":"b"}]}"#,
        -32602,
        "",
    ),
    (Tool::ReadResource, r#"{"uri":"http://x/y"}"#, -32602, ""),
];

const CODE: &[Row] = &[
    (
        Tool::AiEditCode,
        r#"{"target_file":"../x","edit_instruction":"x","code_block":"x"}"#,
        -32002,
        "Permission denied: ../x",
    ),
    (
        Tool::AiEditCode,
        r#"{"target_file":"NAME","edit_instruction":"x","start_line":3,"end_line":2,"code_block":"x"}"#,
        -32602,
        "`start_line` 3 is after `end_line` 2",
    ),
    (
        Tool::AiEditCode,
        r#"{"target_file":"NAME","edit_instruction":"x","edit_type":"delete"}"#,
        -32602,
        "`delete` needs `start_line`",
    ),
    (Tool::AiEditCode, r#"{"target_file":"NAME","edit_instruction":"x"}"#, -32602, ""),
    (Tool::SearchFiles, r#"{"pattern":""}"#, -32602, "`pattern` is empty"),
    (Tool::SearchFiles, r#"{"pattern":"("}"#, -32602, ""),
    (Tool::SearchFiles, r#"{"pattern":"a","path":"nowhere"}"#, -32001, "Folder not found: nowhere"),
    (Tool::AiGetCodeContext, r#"{"colour":"red"}"#, -32602, ""),
];

pub fn count() -> usize {
    FLAT.len() + EDITS.len() + TEXT.len() + CODE.len()
}

/// One of them, about a file of that name at that path.
pub fn call(which: usize, name: &str, path: &str) -> (Tool, Value, Refusal) {
    let mut rows = [FLAT, EDITS, TEXT, CODE].into_iter().flatten();
    let &(tool, arguments, code, message) = rows.nth(which).expect("one of so many");
    let fill = |text: &str| text.replace("NAME", name).replace("PATH", path);
    let arguments = serde_json::from_str(&fill(arguments)).expect("JSON");
    let message = Some(fill(message)).filter(|message| !message.is_empty());
    (tool, arguments, Refusal { code, message })
}
