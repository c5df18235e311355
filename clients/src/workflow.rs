//! The work that every client does: list, read, edit, run into somebody else's change, be told what was wrong.
//!
//! It is told once, as questions and what must come back. Between the questions the disk is looked at, and changed
//! behind the client's back. `play` does it.

use serde_json::{Value, json};

/// In all values `$DIR` is the folder, `$HASH` the hash of the notes on the disk, and `$SEEN` the hash that the client
/// was last told.
pub enum Step {
    /// The client asks, and must be answered so: see `pattern`.
    Ask { method: &'static str, params: Value, answer: Value },
    /// The client asks, a person is shown this and says that, and then it must be answered so.
    AskFirst { shown: &'static str, said: &'static str, params: Value, answer: Value },
    /// Somebody else writes, without a word to anybody.
    Elsewhere { file: &'static str, text: &'static str },
    /// What a file must hold now.
    Holds { file: &'static str, text: &'static str },
}

use Step::{Ask, AskFirst, Elsewhere, Holds};

pub const NO_TOOL: &str = "no_such_tool";
pub const NOTES: &str = "notes.txt";
pub const WRITTEN: &str = "alpha\nbeta – ß 😀\ngamma\n";
const EDITED: &str = "alpha\nBETA – ß 😀\ngamma\n";
const EDITED_TWICE: &str = "first\nalpha\nBETA – ß 😀\ngamma\n";
const CHANGED: &str = "first\nalpha\nBETA – ß 😀\ngamma\ndelta\n";
const EDITED_AFTER_ALL: &str = "first\nalpha\nBETA – ß 😀\nGAMMA\ndelta\n";
const CHANGED_AGAIN: &str = "only this\n";

/// What a client must learn of the server when it opens it.
pub fn opened(protocol: &str) -> Value {
    json!({
        "protocolVersion": protocol,
        "serverInfo": { "name": "file-editing-server", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "completions": null, "logging": null },
    })
}

pub fn listing() -> Vec<Step> {
    let any = json!({ "type": "object" });
    let tool = |name: &str, output: &Value| json!({ "name": name, "description": "…", "inputSchema": any, "outputSchema": output });
    // Reads answer in texts alone.
    let tools = [
        tool("list_files", &any),
        tool("read_file", &Value::Null),
        tool("edit_file", &any),
        tool("read_text_file", &Value::Null),
        tool("write_text_file", &any),
        tool("multi_edit_text_file", &any),
        tool("ai_edit_code", &any),
        tool("ai_get_code_context", &any),
        tool("search_files", &any),
    ];
    let files = json!([{ "name": NOTES, "lines": 3 }]);
    let text = "Files in directory:\n\nname: notes.txt, …, lines: 3\n\nTotal files: 1";
    vec![
        ask("tools/list", json!({}), json!({ "result": { "tools": tools } })),
        call(
            "list_files",
            &json!({}),
            done(&[text], &json!({ "files": files, "total_count": 1, "directory": "$DIR" })),
        ),
    ]
}

pub fn reading() -> Vec<Step> {
    let text = "File: notes.txt (3 lines)\n\nalpha\nbeta – ß 😀\ngamma";
    let flat = done(&[text, "lines 0-2 of 3, hash $HASH"], &Value::Null);
    let mut whole = done(&[WRITTEN, "lines 1-3 of 3, hash $HASH"], &Value::Null);
    whole["result"]["_meta"] =
        json!({ "total_lines": 3, "returned_lines": 3, "has_more": false, "hash": "$HASH" });
    vec![
        call("read_file", &json!({ "name": NOTES }), flat),
        call("read_text_file", &json!({ "path": "$DIR/notes.txt" }), whole),
    ]
}

/// Of what was read: the hash goes along.
pub fn editing() -> Vec<Step> {
    vec![
        call(
            "multi_edit_text_file",
            &json!({
                "path": "$DIR/notes.txt",
                "expected_hash": "$SEEN",
                "edits": [{ "old_string": "beta", "new_string": "BETA" }],
            }),
            done(
                &["…\n-beta – ß 😀\n+BETA – ß 😀\n…", "1 edit applied\nhash $HASH"],
                &json!({ "success": true, "applied_count": 1, "hash": "$HASH", "error": null }),
            ),
        ),
        Holds { file: NOTES, text: EDITED },
        call(
            "edit_file",
            &json!({
                "name": NOTES,
                "expected_hash": "$SEEN",
                "edits": [{ "line": 0, "operation": "insert", "content": "first" }],
            }),
            done(
                &["File edited successfully: notes.txt\n…", "hash $HASH\n\n…\n+first\n…"],
                &json!({ "success": true, "new_total_lines": 4, "hash": "$HASH", "error": null }),
            ),
        ),
        Holds { file: NOTES, text: EDITED_TWICE },
        call(
            "write_text_file",
            &json!({ "path": "$DIR/more.txt", "content": "more – ß 😀\r\n" }),
            done(
                &["Wrote 18 bytes to $DIR/more.txt, a new file", "hash …"],
                &json!({ "success": true, "bytes_written": 18, "created": true, "error": null }),
            ),
        ),
        Holds { file: "more.txt", text: "more – ß 😀\r\n" },
    ]
}

/// Each refusal tells the hash of the file as it is now, which the next change makes an old one again.
pub fn conflicts() -> Vec<Step> {
    let edit = json!({
        "path": "$DIR/notes.txt",
        "expected_hash": "$SEEN",
        "edits": [{ "old_string": "gamma", "new_string": "GAMMA" }],
    });
    let line_edit = json!({
        "name": NOTES,
        "expected_hash": "$SEEN",
        "edits": [{ "line": 0, "operation": "delete" }],
    });
    let write =
        json!({ "path": "$DIR/notes.txt", "expected_hash": "$SEEN", "content": "all is lost\n" });
    vec![
        call("read_text_file", &json!({ "path": "$DIR/notes.txt" }), json!({ "result": {} })),
        Elsewhere { file: NOTES, text: CHANGED },
        call("edit_file", &line_edit, stale("Error: ", NOTES)),
        Holds { file: NOTES, text: CHANGED },
        Elsewhere { file: NOTES, text: CHANGED_AGAIN },
        call("write_text_file", &write, stale("", "$DIR/notes.txt")),
        Holds { file: NOTES, text: CHANGED_AGAIN },
        Elsewhere { file: NOTES, text: CHANGED },
        call("multi_edit_text_file", &edit, stale("", "$DIR/notes.txt")),
        Holds { file: NOTES, text: CHANGED },
        // With the hash of the refusal it goes through.
        call("multi_edit_text_file", &edit, json!({ "result": { "isError": false } })),
        Holds { file: NOTES, text: EDITED_AFTER_ALL },
    ]
}

pub fn errors() -> Vec<Step> {
    let misses = json!([
        { "old_string": "first", "new_string": "FIRST" },
        { "old_string": "Delta", "new_string": "DELTA" },
    ]);
    vec![
        call(
            "multi_edit_text_file",
            &json!({ "path": "$DIR/notes.txt", "edits": misses }),
            refused(
                -32010,
                "Edit 1: String not found: Delta",
                Some("nearest: line 5: upper and lower case differ\n…\ndelta\n…"),
            ),
        ),
        call(
            "read_text_file",
            &json!({ "path": "$DIR/note.txt" }),
            refused(-32001, "File not found: $DIR/note.txt", Some("…`notes.txt`")),
        ),
        call(
            "multi_edit_text_file",
            &json!({ "path": "$DIR/notes.txt", "colour": "red" }),
            refused(-32602, "`edits` is required; unknown property `colour`: known are …", None),
        ),
        call(
            NO_TOOL,
            &json!({}),
            json!({ "error": { "code": -32602, "message": "…Unknown tool: no_such_tool" } }),
        ),
        ask(
            "no/such/method",
            json!({}),
            json!({ "error": { "code": -32601, "message": "…Method not found" } }),
        ),
        Holds { file: NOTES, text: EDITED_AFTER_ALL },
    ]
}

/// A person is asked before anything is written.
pub fn asking_first() -> Vec<Step> {
    let edit = json!({
        "name": "multi_edit_text_file",
        "arguments": {
            "path": "$DIR/notes.txt",
            "edits": [{ "old_string": "beta", "new_string": "BETA" }],
        },
    });
    let shown = "Allow multi_edit_text_file to change $DIR/notes.txt?\n\n--- notes.txt\n+++ notes.txt\n\
                 @@ -1,3 +1,3 @@\n alpha\n-beta – ß 😀\n+BETA – ß 😀\n gamma";
    let ask_first = |said, answer| AskFirst { shown, said, params: edit.clone(), answer };
    let not = || refused(-32002, "Not confirmed; nothing was written", Some("…"));
    vec![
        ask_first("decline", not()),
        ask_first("cancel", not()),
        Holds { file: NOTES, text: WRITTEN },
        ask_first(
            "accept",
            done(&["…+BETA – ß 😀\n…", "…hash $HASH"], &json!({ "hash": "$HASH" })),
        ),
        Holds { file: NOTES, text: EDITED },
        // Nobody is asked about what would change nothing.
        call("read_text_file", &json!({ "path": "$DIR/notes.txt" }), json!({ "result": {} })),
    ]
}

/// The same files as resources.
pub fn resources(protocol: &str) -> Vec<Step> {
    let read = |name: &str, answer: Value| {
        ask("resources/read", json!({ "uri": format!("file://$DIR/{name}") }), answer)
    };
    let contents = |text: &str| {
        let uri = "file://$DIR/notes.txt";
        json!({ "result": { "contents": [{ "uri": uri, "text": text }] } })
    };
    let code = if protocol < "2026-07-28" { -32002 } else { -32602 };
    let templates = json!([{ "uriTemplate": "file://$DIR/{+path}" }]);
    let files = json!([
        { "uri": "file://$DIR/more.txt", "name": "more.txt" },
        { "uri": "file://$DIR/notes.txt", "name": NOTES },
    ]);
    vec![
        ask(
            "resources/templates/list",
            json!({}),
            json!({ "result": { "resourceTemplates": templates } }),
        ),
        ask("resources/list", json!({}), json!({ "result": { "resources": files } })),
        read(NOTES, contents(EDITED_AFTER_ALL)),
        // Clients keep what they have read as long as they are told to: that must not be at all.
        Elsewhere { file: NOTES, text: CHANGED_AGAIN },
        read(NOTES, contents(CHANGED_AGAIN)),
        read("none.txt", json!({ "error": { "code": code, "message": "…File not found: …" } })),
        read("../none.txt", json!({ "error": { "message": "…Permission denied: …" } })),
    ]
}

fn ask(method: &'static str, params: Value, answer: Value) -> Step {
    Ask { method, params, answer }
}

fn call(tool: &'static str, arguments: &Value, answer: Value) -> Step {
    ask("tools/call", json!({ "name": tool, "arguments": arguments }), answer)
}

fn done(said: &[&str], structured: &Value) -> Value {
    let content = texts(said);
    json!({ "result": { "isError": false, "content": content, "structuredContent": structured } })
}

/// Refused with a code and a message, and told what would work: in texts, and again for those who show the data alone.
fn refused(code: i32, message: &str, hint: Option<&str>) -> Value {
    let said: Vec<_> = [message].into_iter().chain(hint).collect();
    let (content, error) =
        (texts(&said), json!({ "code": code, "message": message, "hint": hint }));
    json!({ "result": { "isError": true, "content": content, "structuredContent": { "error": error } } })
}

/// Refused for a change by somebody else.
fn stale(prefix: &str, path: &str) -> Value {
    let message = format!("File changed since it was read: {path}");
    let mut refused = refused(-32013, &message, Some("its hash is $HASH now; …"));
    refused["result"]["content"][0]["text"] = format!("{prefix}{message}").into();
    refused["result"]["structuredContent"]["error"]["hash"] = "$HASH".into();
    refused
}

fn texts(texts: &[&str]) -> Value {
    texts.iter().map(|text| json!({ "type": "text", "text": text })).collect()
}
