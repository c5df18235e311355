//! Many files, large files, long lines, many edits: complete, and byte for byte.

use crate::harness::{Folder, Server, failure, fault, texts};
use serde_json::{Value, json};

/// Compares without printing megabytes when it fails.
fn assert_same(found: &str, expected: &str, what: &str) {
    let differs =
        found.bytes().zip(expected.bytes()).position(|(found, expected)| found != expected);
    let lengths = (found.len(), expected.len());
    assert!(found == expected, "{what}: lengths {lengths:?}, first difference at {differs:?}");
}

fn content(server: &mut Server, arguments: Value) -> String {
    let answer = server.request("read_file", arguments);
    answer["result"]["content"].as_str().unwrap_or_else(|| panic!("{}", answer["error"])).to_owned()
}

#[test]
fn ten_thousand_files_are_listed() {
    let folder = Folder::new();
    for number in 0..10_000 {
        folder.write(&format!("f{number:05}.txt"), "line\n".repeat(number % 4));
    }
    let mut server = folder.serve_with(&["--timeout=300"]);
    let answer = server.tool("list_files", json!({}));
    let data = &answer["result"]["structuredContent"];
    assert_eq!(data["total_count"], 10_000);
    for (number, file) in data["files"].as_array().unwrap().iter().enumerate() {
        assert_eq!(file["name"], format!("f{number:05}.txt"));
        assert_eq!(file["lines"], number % 4);
    }
    let text = texts(&answer)[0];
    assert_eq!(text.lines().count(), 10_000 + 4);
    assert!(text.starts_with("Files in directory:\n\nname: f00000.txt, modified: "));
    assert!(text.ends_with(", lines: 3\n\nTotal files: 10000"));
    let plain = server.request("list_files", json!({}));
    assert_eq!(plain["result"]["files"], data["files"]);
}

#[test]
fn ten_megabytes_are_read_whole_and_by_lines() {
    let folder = Folder::new();
    let lines: Vec<String> = (0..(10 << 20) / 64).map(|number| format!("{number:063}")).collect();
    let text = lines.join("\n") + "\n";
    assert_eq!(text.len(), 10 << 20);
    folder.write("large.txt", &text);
    let mut server = folder.serve();

    let whole = text.strip_suffix('\n').unwrap();
    let answer = server.text("read_file", json!({ "name": "large.txt" }));
    let (head, body) = answer.split_once("\n\n").unwrap();
    assert_eq!(head, format!("File: large.txt ({} lines)", lines.len()));
    assert_same(body, whole, "as a tool");
    assert_same(&content(&mut server, json!({ "name": "large.txt" })), whole, "as a method");

    let last = lines.len() - 1;
    for (start, end) in [(0, 0), (1, 99_999), (70_000, 80_000), (last, last), (last - 1, last)] {
        let expected = lines[start..=end].join("\n");
        let range = json!({ "name": "large.txt", "start_line": start, "end_line": end });
        let answer = server.text("read_file", range);
        assert_same(answer.split_once("\n\n").unwrap().1, &expected, "lines of a tool");
        let range = json!({ "name": "large.txt", "start_line": start + 1, "end_line": end + 1 });
        assert_same(&content(&mut server, range), &expected, "lines of a method");
    }
    // It is full: an edit that keeps its size is fine, one that adds a byte is not.
    let replace = |content: String| json!({ "name": "large.txt", "edits": [{ "line": 5, "operation": "replace", "content": content }] });
    server.text("edit_file", replace("x".repeat(63)));
    assert_eq!(folder.read("large.txt").len(), 10 << 20);
    let answer = server.tool("edit_file", replace("x".repeat(64)));
    assert_eq!(failure(&answer, -32001), "Error: File size 10.01MB exceeds maximum limit 10MB");
}

#[test]
fn one_line_of_a_megabyte() {
    let folder = Folder::new();
    let mut line = "x".repeat((1 << 20) - 6);
    line.push_str("é\"\\\t");
    folder.write("line.txt", format!("{line}\nsecond\n"));
    let mut server = folder.serve();
    let answer =
        server.text("read_file", json!({ "name": "line.txt", "start_line": 0, "end_line": 0 }));
    assert_same(answer.split_once("\n\n").unwrap().1, &line, "read");
    let edited = line.replace('x', "y");
    let replace = json!({ "line": 0, "operation": "replace", "content": edited });
    let answer = server.tool("edit_file", json!({ "name": "line.txt", "edits": [replace] }));
    assert_eq!(answer["result"]["isError"], false);
    assert_same(&folder.read("line.txt"), &format!("{edited}\nsecond\n"), "edited");
}

#[test]
fn a_thousand_edits_in_a_call_and_not_one_more() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let before = (0..2000).map(|line| line.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    // Every other line, from the last to the first, in all three ways.
    let edits = |count: usize, base: usize| -> Vec<Value> {
        let edit = |number: usize| match number % 3 {
            0 => json!({ "line": number * 2 + base, "operation": "replace", "content": "new" }),
            1 => json!({ "line": number * 2 + base, "operation": "insert", "content": "new" }),
            _ => json!({ "line": number * 2 + base, "operation": "delete" }),
        };
        (0..count).rev().map(edit).collect()
    };
    let after: String = (0..2000)
        .map(|line| match (line % 2, line / 2 % 3) {
            (1, _) => format!("{line}\n"),
            (_, 0) => "new\n".into(),
            (_, 1) => format!("new\n{line}\n"),
            _ => String::new(),
        })
        .collect();

    folder.write("a.txt", &before);
    let answer = server.tool("edit_file", json!({ "name": "a.txt", "edits": edits(1000, 0) }));
    assert_eq!(answer["result"]["structuredContent"]["lines_modified"], 1000, "{answer}");
    assert_same(&folder.read("a.txt"), &after, "as a tool");
    folder.write("a.txt", &before);
    let answer = server.request("edit_file", json!({ "name": "a.txt", "edits": edits(1000, 1) }));
    assert_eq!(answer["result"]["lines_modified"], 1000, "{answer}");
    assert_same(&folder.read("a.txt"), &after, "as a method");

    folder.write("a.txt", &before);
    let answer = server.tool("edit_file", json!({ "name": "a.txt", "edits": edits(1001, 0) }));
    assert!(failure(&answer, -32602).contains("1000"), "{answer}");
    let answer = server.request("edit_file", json!({ "name": "a.txt", "edits": edits(1001, 1) }));
    fault(&answer, -32602);
    assert!(
        answer["error"]["data"]["validation_errors"][0].as_str().unwrap().contains("1000"),
        "{answer}"
    );
    assert_same(&folder.read("a.txt"), &before, "after a refusal");
}

/// Large texts leave in pieces; every character must survive at every border between them.
#[test]
fn odd_characters_survive_at_every_border() {
    let folder = Folder::new();
    let odd = "plain \"quoted\" back\\slash /\t\u{1}\u{8}\u{c}\u{1b}\u{1f}\u{7f}\u{80}é\u{2028}漢\u{fffd}😀\u{10ffff} é";
    let line = odd.repeat(40);
    let mut server = folder.serve();
    for shift in 0..16 {
        // Past several pieces of 64 KiB, moved byte by byte.
        let mut text = "<".repeat(shift);
        while text.len() < 300 << 10 {
            text.push_str(&line);
            text.push_str(["\n", "\r\n", "\r"][text.len() % 3]);
        }
        text.push_str("end");
        let name = format!("{shift}.txt");
        folder.write(&name, &text);
        let shown = text.replace("\r\n", "\n").replace('\r', "\n");
        let answer = server.text("read_file", json!({ "name": name }));
        assert_same(answer.split_once("\n\n").unwrap().1, &shown, "as a tool");
        assert_same(&content(&mut server, json!({ "name": name })), &shown, "as a method");

        // And on the way in: the same text as one edit of a new file.
        let copy = format!("copy-{shift}.txt");
        server.text("edit_file", json!({ "name": copy, "append": shown }));
        assert_same(&folder.read(&copy), &(shown + "\n"), "written");
    }
}
