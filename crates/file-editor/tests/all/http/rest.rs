//! The plain methods, each at a path of its own.

use super::*;

fn post(path: &str, body: Value) -> Request {
    Request::post(path, body.to_string())
}

#[test]
fn the_answers_are_the_contracts_to_the_letter() {
    let folder = Folder::new();
    let lines: Vec<_> = (1..=100).map(|line| format!("line {line}")).collect();
    folder.write("example.txt", lines.join("\n") + "\n");
    let server = folder.http();
    // The contract's own example, 004 §3.2.
    let read = json!({ "name": "example.txt", "start_line": 5, "end_line": 10 });
    assert_eq!(
        server.rest("read_file", read),
        json!({
            "content": "line 5\nline 6\nline 7\nline 8\nline 9\nline 10",
            "total_lines": 100,
            "range_requested": { "start_line": 5, "end_line": 10 },
        })
    );
    let edit = json!({ "line": 1, "operation": "replace", "content": "new" });
    assert_eq!(
        server.rest("edit_file", json!({ "name": "example.txt", "edits": [edit] })),
        json!({ "success": true, "lines_modified": 1, "file_created": false, "new_total_lines": 100 })
    );
    let listed = server.rest("list_files", json!({}));
    let modified = listed["files"][0]["modified"].as_str().unwrap();
    assert_eq!(modified.len(), "2025-06-04T10:30:00Z".len());
    assert_eq!(
        listed,
        json!({
            "files": [{ "name": "example.txt", "modified": modified, "lines": 100 }],
            "total_count": 1,
            "directory": folder.path().display().to_string(),
        })
    );
}

#[test]
fn failures_are_answers() {
    let folder = Folder::new();
    let server = folder.http();
    let answer = server.rest("read_file", json!({ "name": "missing.txt" }));
    assert_eq!(answer["isError"], true);
    let text = "Error: File 'missing.txt' not found";
    assert_eq!(answer["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!(answer["error"]["code"], -32001);
    assert_eq!(answer["error"]["message"], "File 'missing.txt' not found");
    // Not made by the way: `create_if_missing` is false here.
    let answer = server.rest("edit_file", json!({ "name": "missing.txt", "append": "x" }));
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    for (path, body, named) in [
        ("read_file", json!({}), "name"),
        ("read_file", json!({ "name": "a.txt", "start_line": 0 }), "start_line"),
        ("read_file", json!({ "name": "a.txt", "Start_Line": 1 }), "Start_Line"),
        ("read_file", json!({ "name": "a.txt", "line_numbers": true }), "line_numbers"),
        (
            "edit_file",
            json!({ "name": "a.txt", "append": "x", "expected_hash": "0" }),
            "expected_hash",
        ),
        ("edit_file", json!({ "name": "a.txt", "append": "x", "dry_run": true }), "dry_run"),
        ("list_files", json!({ "path": "." }), "path"),
    ] {
        let answer = server.rest(path, body);
        assert_eq!(answer["isError"], true, "{answer}");
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["message"], "Invalid params", "{answer}");
        assert_eq!(answer["error"]["data"]["tool"], path, "{answer}");
        let faults = answer["error"]["data"]["validation_errors"].as_array().unwrap();
        let named = format!("`{named}`");
        assert!(faults.iter().any(|fault| fault.as_str().unwrap().contains(&named)), "{answer}");
    }
    let names = ["../a.txt", "/etc/passwd", "a/b", "..", ".", "a\n", "a b", "", "nul\0", "a\\b"];
    for name in names {
        let answer = server.rest("read_file", json!({ "name": name }));
        assert_eq!(answer["error"]["code"], -32602, "{name:?}: {answer}");
    }
    assert_eq!(folder.names(), [""; 0]);
}

fn tag(response: &Response) -> String {
    let tag = response.header("ETag").unwrap_or_else(|| panic!("{response}")).to_owned();
    let hash = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).expect("a strong tag");
    assert_eq!(hash.len(), 16, "{tag}");
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{tag}");
    tag
}

#[test]
fn tags_go_round() {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    let server = folder.http();
    let mut client = server.connect();
    let read = || post("/read_file", json!({ "name": "a.txt" }));
    let append = |text: &str| post("/edit_file", json!({ "name": "a.txt", "append": text }));

    let first = tag(&client.send(&read()));
    // Of the whole file, whatever was asked for.
    let line = post("/read_file", json!({ "name": "a.txt", "start_line": 2 }));
    assert_eq!(tag(&client.send(&line)), first);
    let response = client.send(&append("three").with("If-Match", &first));
    assert_eq!(response.json()["success"], true, "{response}");
    let second = tag(&response);
    assert_ne!(second, first);
    assert_eq!(tag(&client.send(&read())), second);
    // It is what the tools call `hash`.
    let hash = second.trim_matches('"');
    let mut mcp = server.mcp();
    let edit = json!({ "name": "a.txt", "append": "four", "expected_hash": hash });
    let answer = mcp.tool("edit_file", edit);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let third = format!("{}", answer["result"]["structuredContent"]["hash"]);
    assert_eq!(tag(&client.send(&read())), third);
    let response = client.send(&append("five").with("If-Match", &third));
    assert_eq!(response.json()["success"], true, "{response}");
    assert_eq!(folder.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    // There is nothing to tag in a list or a failure.
    assert_eq!(client.send(&proper("/list_files")).header("ETag"), None);
    assert_eq!(client.send(&proper("/read_file")).header("ETag"), None);
}

#[test]
fn a_stale_tag_is_refused() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let mut client = server.connect();
    let first = tag(&client.send(&post("/read_file", json!({ "name": "a.txt" }))));
    folder.write("a.txt", "someone else's\n");
    let now = tag(&client.send(&post("/read_file", json!({ "name": "a.txt" }))));
    let edit = json!({ "name": "a.txt", "append": "x", "create_if_missing": true });
    for stale in [&first, "\"0000000000000000\""] {
        let response = client.send(&post("/edit_file", edit.clone()).with("If-Match", stale));
        assert_eq!(response.status, 200, "{response}");
        let answer = response.json();
        assert_eq!(answer["isError"], true, "{answer}");
        assert_eq!(answer["error"]["code"], -32013, "{answer}");
        assert_eq!(answer["error"]["message"], "File changed since it was read: a.txt");
        assert_eq!(answer["error"]["data"]["hash"], now.trim_matches('"'), "{answer}");
        assert_eq!(response.header("ETag"), None);
    }
    assert_eq!(folder.read("a.txt"), "someone else's\n");
    // Whoever has seen a file does not mean to make it.
    let edit = json!({ "name": "gone.txt", "append": "x", "create_if_missing": true });
    let response = client.send(&post("/edit_file", edit).with("If-Match", &now));
    assert_eq!((response.status, &response.json()["isError"]), (200, &json!(true)), "{response}");
    assert_eq!(folder.names(), ["a.txt"]);
}

#[test]
fn a_tag_that_is_none_is_refused() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let mut client = server.connect();
    let tag = tag(&client.send(&post("/read_file", json!({ "name": "a.txt" }))));
    let hash = tag.trim_matches('"');
    let malformed = [
        hash.to_owned(),
        format!("W/{tag}"),
        format!("{tag}, {tag}"),
        format!("\"{hash}"),
        format!("\"{hash}0\""),
        format!("\"{}\"", &hash[1..]),
        "\"zzzzzzzzzzzzzzzz\"".into(),
        "\"\"".into(),
        "*".into(),
        String::new(),
    ];
    for malformed in malformed {
        let edit = post("/edit_file", json!({ "name": "a.txt", "append": "x" }));
        let response = client.send(&edit.with("If-Match", &malformed));
        assert_eq!(response.status, 200, "{malformed}: {response}");
        let answer = response.json();
        assert_eq!(answer["isError"], true, "{malformed}: {answer}");
        assert_eq!(answer["error"]["code"], -32602, "{malformed}: {answer}");
        let faults = answer["error"]["data"]["validation_errors"].to_string();
        assert!(faults.contains("If-Match"), "{malformed}: {answer}");
    }
    // One that fits beside one that does not.
    let edit = post("/edit_file", json!({ "name": "a.txt", "append": "x" }));
    let edit = edit.and("If-Match", &tag).and("If-Match", "\"0000000000000000\"");
    assert_eq!(client.send(&edit).json()["isError"], true);
    assert_eq!(folder.read("a.txt"), "one\n");
}

#[test]
fn a_lock_that_stays_taken_times_out() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http_with(&["--timeout=1"]);
    let held = folder.lock("a.txt");
    let edit = json!({ "name": "a.txt", "append": "two" });
    let answer = server.rest("edit_file", edit.clone());
    assert_eq!(answer["error"]["code"], -32014, "{answer}");
    assert_eq!(answer["error"]["message"], "Failed to acquire file lock within timeout");
    failure(&server.mcp().tool("edit_file", edit), -32014);
    // Reads do not wait.
    assert_eq!(server.rest("read_file", json!({ "name": "a.txt" }))["content"], "one");
    drop(held);
    assert_eq!(folder.read("a.txt"), "one\n");
}
