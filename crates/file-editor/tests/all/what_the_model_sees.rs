//! What reaches a model, in hosts that show it only a part of an answer: each part must say everything that matters.
//!
//! Some hosts show the texts alone; others, where there is one, the structured object alone, and on a failure the texts.
//! `UPDATE_EXPECT=1 cargo test -p file-editor what_the_model_sees` records anew.

use std::fmt::Write as _;

use crate::harness::{Folder, texts};
use expect_test::expect_file;
use serde_json::{Value, json};

/// What a host makes of the result of a call.
type Host = fn(&Value) -> String;

fn texts_alone(answer: &Value) -> String {
    texts(answer).join("\n\n")
}

fn object_alone(answer: &Value) -> String {
    match answer["result"].get("structuredContent") {
        Some(object) => serde_json::to_string_pretty(object).unwrap(),
        None => texts_alone(answer),
    }
}

const SOURCE: &str = "\
fn area(width: u32, height: u32) -> u32 {
\twidth * height
}

fn main() {
\tlet width = 3;
\tlet height = 4;
\tprintln!(\"{}\", area(width, height));
}
";

fn record(host: Host, flags: &[&str]) -> String {
    let folder = Folder::new();
    folder.write("main.rs", SOURCE);
    folder.write("dos.txt", "one\r\ntwo\r\n");
    folder.write("image.png", b"\x89PNG\r\n\x1a\n\0");
    let dir = folder.path().display().to_string();
    let mut server = folder.serve_with(flags);
    let mut seen = String::new();
    let mut call = |what: &str, tool: &str, name: &str, mut arguments: Value| {
        arguments["path"] = json!(format!("{dir}/{name}"));
        let answer = server.tool(tool, arguments);
        let shown = host(&answer).replace(&dir, "$DIR").replace('\r', "␍");
        writeln!(seen, "### {what}\n\n{}\n", shown.trim_end()).unwrap();
    };
    let edits = |edits: Value| json!({ "edits": edits });
    let one = |old: &str, new: &str| json!({ "edits": [{ "old_string": old, "new_string": new }] });
    let (read, write, edit) = ("read_text_file", "write_text_file", "multi_edit_text_file");
    call("A page is read", read, "main.rs", json!({ "line": 5, "limit": 2 }));
    call("An edit lands", edit, "main.rs", one("let height = 4;", "let height = 5;"));
    call("An edit of a file with CRLF lands", edit, "dos.txt", one("one\ntwo", "three\nfour"));
    call(
        "A file is created",
        write,
        "new/a.txt",
        json!({ "content": "hello\n", "create_dirs": true }),
    );
    call("Nothing changes", edit, "main.rs", one("main", "main"));
    call(
        "Spaces where the file has a tab",
        edit,
        "main.rs",
        one("{\n    width * height\n}", "{ 0 }"),
    );
    call("The string is there more than once", edit, "main.rs", one("width", "breadth"));
    call("The string is nowhere", edit, "main.rs", one("impl Iterator for Pages {", ""));
    let conflict = json!([
        { "old_string": "width: u32, height", "new_string": "w: u32, h" },
        { "old_string": "height: u32)", "new_string": "h: u32)" },
    ]);
    call("An edit takes what another needs", edit, "main.rs", edits(conflict));
    let stale = json!({ "content": "", "expected_hash": "0123456789abcdef" });
    call("The file has changed", write, "main.rs", stale);
    call("There is no such file", read, "man.rs", json!({}));
    call("The file is not text", read, "image.png", json!({}));
    call(
        "Arguments are called differently",
        edit,
        "main.rs",
        json!({ "old_str": "a", "new_str": "b" }),
    );
    seen
}

#[test]
fn in_a_host_that_shows_texts() {
    let seen = record(texts_alone, &["--tools=text"]);
    expect_file!["../golden/model-texts.md"].assert_eq(&seen);
    assert_eq!(seen, record(texts_alone, &["--tools=text", "--structured=off"]));
}

#[test]
fn in_a_host_that_shows_the_object() {
    expect_file!["../golden/model-object.md"].assert_eq(&record(object_alone, &["--tools=text"]));
}
