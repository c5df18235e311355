//! The public surface, byte for byte: what `tools/list` says, and what goes over the wire in each protocol version.
//!
//! `UPDATE_EXPECT=1 cargo test -p file-editor wire` records anew; the diff is then what clients will notice.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::harness::{Folder, Server, listed_tools, modern};
use expect_test::{ExpectFile, expect_file};
use serde_json::{Value, json};

#[test]
fn golden_tools_list() {
    let pretty = |set| serde_json::to_string_pretty(&listed_tools(set)).unwrap() + "\n";
    expect_file!["../golden/tools_list.json"].assert_eq(&pretty("flat"));
    expect_file!["../golden/tools_list-text.json"].assert_eq(&pretty("text"));
}

/// What goes over the wire: a request (`>`), its answer (`<`), each line as it is. The list of tools stands
/// in `tools_list.json`; here a `$TOOLS` stands for its bytes, a `$DIR` for the folder and a `$TIME` for each time.
struct Recording {
    server: Server,
    tools: String,
    root: String,
    lines: String,
}

/// `2026-07-28T10:30:00Z` is another one each time.
fn without_times(answer: &str) -> String {
    const BEFORE: &str = r#""lastModified":""#;
    let mut pieces = answer.split(BEFORE);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces
        .fold(first, |text, piece| text + BEFORE + "$TIME" + &piece["2026-07-28T10:30:00Z".len()..])
}

impl Recording {
    fn new(folder: &Folder) -> Self {
        Self {
            server: folder.serve(),
            tools: json!(listed_tools("flat")).to_string(),
            root: folder.path().to_str().unwrap().to_owned(),
            lines: String::new(),
        }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.lines, "> {}", line.replace(&self.root, "$DIR")).unwrap();
        self.server.send_line(line);
    }

    fn exchange(&mut self, line: &str) {
        self.send(line);
        let answer = self.server.receive_line();
        let answer = answer.replace(&self.tools, "$TOOLS").replace(&self.root, "$DIR");
        writeln!(self.lines, "< {}", without_times(&answer)).unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.exchange(&line.to_string());
    }

    fn finish(self, golden: &ExpectFile) {
        let (status, rest, _) = self.server.finish();
        assert!(status.success(), "{status}");
        assert_eq!(rest, "");
        golden.assert_eq(&self.lines);
    }
}

/// One of each: a listing, a success with text alone, one with data, a failure, each kind of protocol error.
/// `around` puts a version's own things into the parameters.
fn exchange_all(recording: &mut Recording, around: fn(Value) -> Value) {
    let call =
        |name: &str, arguments: Value| around(json!({ "name": name, "arguments": arguments }));
    let edits = json!([
        { "line": 1, "operation": "replace", "content": "zwei" },
        { "line": 2, "operation": "insert", "content": "drei \"quoted\"" },
    ]);
    let range = json!({ "name": "a.txt", "start_line": 0, "end_line": 0 });
    let conflict =
        json!([{ "line": 0, "operation": "delete" }, { "line": 0, "operation": "delete" }]);
    recording.request(2, "tools/list", around(json!({})));
    recording.request(3, "tools/call", call("read_file", range));
    recording.request(
        4,
        "tools/call",
        call("edit_file", json!({ "name": "a.txt", "edits": edits })),
    );
    recording.request(
        5,
        "tools/call",
        call("edit_file", json!({ "name": "new.txt", "append": "é\n" })),
    );
    recording.request(6, "tools/call", call("read_file", json!({ "name": "missing.txt" })));
    recording.request(
        7,
        "tools/call",
        call("read_file", json!({ "name": "a.txt", "start_line": 9 })),
    );
    recording.request(
        8,
        "tools/call",
        call("edit_file", json!({ "name": "a.txt", "edits": conflict })),
    );
    recording.request(9, "tools/call", call("no_such_tool", json!({})));
    recording.request(10, "no/such/method", around(json!({})));
    recording.exchange(r#"{"jsonrpc":"2.0","id":11}"#);
    recording.exchange(r#"{"jsonrpc":"2.0","id":12,"method":}"#);
    recording.request(14, "resources/list", around(json!({})));
    recording.request(15, "resources/templates/list", around(json!({})));
    for (id, name) in [(16, "a.txt"), (17, "missing.txt")] {
        let uri = format!("file://{}/{name}", recording.root);
        recording.request(id, "resources/read", around(json!({ "uri": uri })));
    }
    recording.request(18, "resources/read", around(json!({ "uri": "file:///nowhere/a.txt" })));
    recording.request(19, "resources/list", around(json!({ "cursor": "?" })));
}

fn check_handshake(version: &str, golden: &ExpectFile) {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    let mut recording = Recording::new(&folder);
    recording.request(
        1,
        "initialize",
        json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test-client", "version": "1.0.0" },
        }),
    );
    recording.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    exchange_all(&mut recording, |params| params);
    recording.request(13, "ping", json!({}));
    recording.finish(golden);
}

#[test]
fn wire_2024_11_05() {
    check_handshake("2024-11-05", &expect_file!["../golden/wire-2024-11-05.txt"]);
}

#[test]
fn wire_2025_03_26() {
    check_handshake("2025-03-26", &expect_file!["../golden/wire-2025-03-26.txt"]);
}

#[test]
fn wire_2025_06_18() {
    check_handshake("2025-06-18", &expect_file!["../golden/wire-2025-06-18.txt"]);
}

#[test]
fn wire_2025_11_25() {
    check_handshake("2025-11-25", &expect_file!["../golden/wire-2025-11-25.txt"]);
}

#[test]
fn wire_2026_07_28() {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    let mut recording = Recording::new(&folder);
    recording.request(1, "server/discover", modern(json!({})));
    exchange_all(&mut recording, modern);
    recording.finish(&expect_file!["../golden/wire-2026-07-28.txt"]);
}

#[test]
fn wire_plain_methods() {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    let mut recording = Recording::new(&folder);
    let edits = json!([{ "line": 2, "operation": "replace", "content": "zwei" }]);
    recording.request(1, "read_file", json!({ "name": "a.txt", "start_line": 2, "end_line": 5 }));
    recording.request(2, "edit_file", json!({ "name": "a.txt", "edits": edits }));
    recording.request(
        3,
        "edit_file",
        json!({ "name": "b.txt", "append": "x", "create_if_missing": true }),
    );
    recording.request(4, "read_file", json!({ "name": ".health_check_file" }));
    recording.request(5, "read_file", json!({ "name": "../a.txt", "start_line": 0 }));
    recording.finish(&expect_file!["../golden/wire-plain.txt"]);
}

/// Every object schema within, with where it stands.
fn walk<'a>(schema: &'a Value, at: String, found: &mut Vec<(String, &'a Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, format!("{at}.{name}"), found);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], format!("{at}[]"), found);
    }
    found.push((at, schema));
}

#[test]
fn names_are_unique_and_fit_every_model_api() {
    let tools = listed_tools("all");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    for name in names {
        // ^[a-zA-Z0-9_-]{1,64}$
        assert!((1..=64).contains(&name.len()), "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name}"
        );
    }
}

#[test]
fn everything_is_described() {
    for tool in listed_tools("all") {
        let name = tool["name"].as_str().unwrap();
        for text in ["title", "description"] {
            assert!(!tool[text].as_str().unwrap().is_empty(), "{name} {text}");
        }
        // Clients cut long descriptions; ours stay well below.
        assert!(tool["description"].as_str().unwrap().len() <= 1024, "{name}");
        // What comes back explains itself.
        let mut found = Vec::new();
        walk(&tool["inputSchema"], name.to_owned(), &mut found);
        for (at, schema) in found {
            for (property, about) in schema["properties"].as_object().into_iter().flatten() {
                let about = about["description"].as_str().unwrap_or_default();
                assert!(!about.is_empty(), "{at}.{property} is not described");
            }
        }
    }
}

/// A model pays for the list of tools at every turn.
#[test]
fn the_list_of_tools_is_short() {
    for (set, most) in [("flat", 4000), ("text", 5000)] {
        let folder = Folder::new();
        let flag = format!("--tools={set}");
        for params in [json!({}), modern(json!({}))] {
            let mut server = folder.serve_with(&[&flag]);
            server.send("tools/list", params);
            let line = server.receive_line();
            assert!(line.len() < most, "{set}: {} bytes", line.len());
            crate::harness::measured(&format!("tools/list of {set}: {} bytes", line.len()));
        }
    }
}

#[test]
fn line_numbers_say_their_base() {
    let sets = [("flat", 0, "0-based", "0-based"), ("text", 1, "1-indexed", "Lines count from 1")];
    for (set, base, of_number, of_tool) in sets {
        for tool in listed_tools(set) {
            let mut found = Vec::new();
            walk(&tool["inputSchema"], tool["name"].as_str().unwrap().to_owned(), &mut found);
            for (at, schema) in found.iter().filter(|(at, _)| at.ends_with("line")) {
                assert!(schema["description"].as_str().unwrap().contains(of_number), "{at}");
                assert_eq!(schema["minimum"], base, "{at}");
                assert!(tool["description"].as_str().unwrap().contains(of_tool), "{at}");
            }
        }
    }
}

#[test]
fn schemas_are_plain() {
    for tool in listed_tools("all") {
        let name = tool["name"].as_str().unwrap();
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object", "{name}");
        assert!(input["properties"].is_object(), "{name}");
        for schema in [input, &tool["outputSchema"]] {
            let mut found = Vec::new();
            walk(schema, name.to_owned(), &mut found);
            for (at, schema) in found {
                for keyword in
                    ["$ref", "anyOf", "oneOf", "allOf", "not", "$defs", "definitions", "format"]
                {
                    assert!(schema.get(keyword).is_none(), "{at} has {keyword}");
                }
                if !schema.is_null() {
                    assert!(schema["type"].is_string(), "{at} has no single type");
                }
            }
        }
        let mut found = Vec::new();
        walk(input, name.to_owned(), &mut found);
        for (at, schema) in found.iter().filter(|(_, schema)| schema["type"] == "object") {
            assert_eq!(schema["additionalProperties"], false, "{at}");
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for property in required {
                assert!(
                    schema["properties"].get(property.as_str().unwrap()).is_some(),
                    "{at} {property}"
                );
            }
        }
        // A failure carries `error` alone, and some clients check that against the schema too.
        let output = &tool["outputSchema"];
        assert!(output.is_null() || output["properties"]["error"].is_object(), "{name}");
        assert!(output.get("required").is_none(), "{name}");
        assert!(output.get("additionalProperties").is_none_or(|value| value != false), "{name}");
    }
}

#[test]
fn the_beginning_of_the_instructions_is_enough() {
    for (set, base) in [("flat", "0-based"), ("text", "count from 1")] {
        let folder = Folder::new();
        let client = json!({ "name": "c", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let flag = format!("--tools={set}");
        let answer = folder.serve_with(&[&flag]).request("initialize", params);
        let instructions = answer["result"]["instructions"].as_str().unwrap();
        let beginning: String = instructions.chars().take(512).collect();
        let names = listed_tools(set)
            .into_iter()
            .map(|tool| format!("`{}`", tool["name"].as_str().unwrap()));
        let words = [base, "or none", "`expected_hash`"].map(String::from);
        for word in names.chain(words) {
            assert!(beginning.contains(&word), "{word} is not in: {beginning}");
        }
    }
}
