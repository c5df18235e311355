//! The code tools as their contract has them, beside the cases of `cases/code`.

use crate::harness::{Folder, listed_tools};
use serde_json::{Value, json};

const CODE: &[&str] = &["--tools=code"];

fn tool(name: &str) -> Value {
    listed_tools("code").into_iter().find(|tool| tool["name"] == name).unwrap()
}

#[test]
fn every_parameter_of_the_contract_is_there() {
    let schema = tool("ai_edit_code")["inputSchema"].take();
    assert_eq!(schema["required"], json!(["target_file", "edit_instruction"]));
    let types = [
        ("target_file", "string"),
        ("edit_instruction", "string"),
        ("start_line", "integer"),
        ("end_line", "integer"),
        ("code_block", "string"),
        ("edit_type", "string"),
    ];
    for (name, expected) in types {
        let property = &schema["properties"][name];
        assert_eq!(property["type"], expected, "{name}: {property}");
        assert!(property["description"].is_string(), "{name}: {property}");
    }
    let kinds = &schema["properties"]["edit_type"]["enum"];
    assert_eq!(kinds, &json!(["insert", "replace", "delete"]));
}

#[test]
fn every_field_of_the_answer_is_there() {
    let schema = tool("ai_edit_code")["outputSchema"].take();
    for name in ["status", "file_path", "message", "diff", "code", "error"] {
        assert_eq!(schema["properties"][name]["type"], "string", "{name}: {schema}");
    }
    assert_eq!(schema["properties"]["status"]["enum"], json!(["success", "failure"]));
}

/// `git apply` takes the diff, from the folder.
#[test]
fn the_diff_names_the_file_by_its_path() {
    let folder = Folder::new();
    std::fs::create_dir(folder.file("src")).unwrap();
    folder.write("src/a.rs", "one\ntwo\n");
    let arguments = json!({
        "target_file": "src/a.rs", "edit_instruction": "2", "start_line": 2, "code_block": "2",
    });
    let answer = folder.serve_with(CODE).tool("ai_edit_code", arguments);
    let diff = answer["result"]["structuredContent"]["diff"].as_str().unwrap();
    assert_eq!(diff, "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
}

/// Pages together are all that matches, each line once.
#[test]
fn pages_of_a_search_follow_each_other() {
    let folder = Folder::new();
    for number in 0..30 {
        folder.write(&format!("{number:02}.txt"), "a line\nanother\n".repeat(number));
    }
    let mut server = folder.serve_with(CODE);
    let (mut cursor, mut found) = (None::<String>, Vec::new());
    loop {
        let mut arguments = json!({ "pattern": "another", "max_results": 7 });
        if let Some(cursor) = &cursor {
            arguments["cursor"] = json!(cursor);
        }
        let answer = server.tool("search_files", arguments);
        let data = &answer["result"]["structuredContent"];
        assert_eq!(data["matching_lines"], 29 * 30 / 2, "{answer}");
        for file in data["files"].as_array().unwrap() {
            for line in file["lines"].as_array().unwrap() {
                found.push((file["path"].as_str().unwrap().to_owned(), line["line"].as_u64()));
            }
        }
        cursor = data.get("next_cursor").and_then(Value::as_str).map(String::from);
        if cursor.is_none() {
            break;
        }
    }
    let lines = |number| (1..=number).map(move |line| (format!("{number:02}.txt"), Some(2 * line)));
    let expected: Vec<_> = (1..30).flat_map(lines).collect();
    assert_eq!(found, expected);
}

/// Agents name what they were shown, with the link or without it.
#[cfg(unix)]
#[test]
fn a_folder_may_be_named_by_either_path_of_a_linked_root() {
    let place = Folder::new();
    std::fs::create_dir_all(place.file("real/src")).unwrap();
    place.write("real/src/a.rs", "one\n");
    place.write("real/b.rs", "one\n");
    std::os::unix::fs::symlink(place.file("real"), place.file("link")).unwrap();
    let mut server = crate::harness::Server::start(&place.file("link"), CODE, &[]);
    for (folder, found) in [("", 2), ("/src", 1)] {
        for root in ["link", "real"] {
            let path = format!("{}{folder}", place.file(root).display());
            let answer = server.tool("search_files", json!({ "pattern": "one", "path": path }));
            let files = &answer["result"]["structuredContent"]["files"];
            assert_eq!(files.as_array().map(Vec::len), Some(found), "{path}: {answer}");
        }
    }
    let path = place.path().display().to_string();
    let answer = server.tool("search_files", json!({ "pattern": "one", "path": path }));
    assert_eq!(answer["result"]["structuredContent"]["code"], "PERMISSION_DENIED", "{answer}");
}
