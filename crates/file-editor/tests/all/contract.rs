//! The test cases that 004 §6.4 names, by these names, each through the binary.

use std::fmt::Write as _;

use crate::harness::{Folder, Server, failure, fault, initialize, texts};
use serde_json::{Value, json};

/// An edit in the words of the wire.
fn edit(line: u64, operation: &str, content: &str) -> Value {
    match operation {
        "delete" => json!({ "line": line, "operation": operation }),
        _ => json!({ "line": line, "operation": operation, "content": content }),
    }
}

/// What a read shows after its head.
fn body(text: &str) -> &str {
    text.split_once("\n\n").unwrap().1
}

mod input_validation {
    use super::*;

    #[test]
    fn valid_filename_acceptance() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let longest = "n".repeat(255);
        let names = [
            "a",
            "A9",
            "test.txt",
            ".hidden",
            "...",
            "..a",
            "a..",
            "-",
            "--dir",
            "_",
            "a.b-c_d.E",
            "CamelCase.RS",
            "0",
            "no_extension",
            ".fe",
            ".fe-1.tmp",
            &longest,
        ];
        for name in names {
            let created = server.tool("edit_file", json!({ "name": name, "append": name }));
            assert_eq!(created["result"]["isError"], false, "{name}: {created}");
            assert_eq!(folder.read(name), format!("{name}\n"));
            let read = server.text("read_file", json!({ "name": name }));
            assert_eq!(body(&read), name);
            let read = server.request("read_file", json!({ "name": name }));
            assert_eq!(read["result"]["content"], name, "{read}");
        }
        assert_eq!(folder.names().len(), names.len());
    }

    #[test]
    fn invalid_filename_rejection() {
        let parent = Folder::new();
        let root = parent.file("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(parent.file("outside.txt"), "secret\n").unwrap();
        std::fs::write(root.join("sub/inside.txt"), "secret\n").unwrap();
        let mut server = Server::start(&root, &[], &[]);
        let (outside, too_long) = (parent.file("outside.txt"), "n".repeat(256));
        let names = [
            "",
            ".",
            "..",
            "/",
            "../outside.txt",
            "..\\outside.txt",
            "sub/inside.txt",
            "./a",
            "a/",
            outside.to_str().unwrap(),
            "a b",
            " a",
            "a ",
            "a\n",
            "\na",
            "a\r",
            "a\tb",
            "a\u{0}",
            "a\u{0}b",
            "é",
            "ａ",
            "a\u{200d}",
            "a:b",
            "a*",
            "a?",
            "~",
            "$HOME",
            "%2e%2e",
            "a;b",
            "a,b",
            "'a'",
            "\"a\"",
            "`a`",
            &too_long,
            ".fe-1-0123456789abcdef.tmp",
        ];
        for name in names {
            let calls = [
                ("read_file", json!({ "name": name })),
                ("edit_file", json!({ "name": name, "append": "x" })),
            ];
            for (tool, arguments) in calls {
                let answer = server.tool(tool, arguments.clone());
                assert_eq!(failure(&answer, -32602), "Error: Invalid filename format", "{name:?}");
                let answer = server.request(tool, arguments);
                assert_eq!(fault(&answer, -32602), "Invalid params", "{name:?}");
                let errors = json!(["Invalid filename format"]);
                assert_eq!(answer["error"]["data"]["validation_errors"], errors, "{name:?}");
            }
        }
        for name in [json!(5), json!(null), json!(["a"]), json!({ "a": 1 }), json!(true)] {
            failure(&server.tool("read_file", json!({ "name": name })), -32602);
            fault(&server.request("read_file", json!({ "name": name })), -32602);
        }
        failure(&server.tool("read_file", json!({})), -32602);
        fault(&server.request("read_file", json!({})), -32602);
        assert_eq!(parent.names(), ["outside.txt", "root"]);
        assert_eq!(std::fs::read_dir(root).unwrap().count(), 1);
        assert_eq!(parent.read("outside.txt"), "secret\n");
    }

    #[test]
    fn line_number_validation() {
        let folder = Folder::new();
        folder.write("a.txt", "zero\none\ntwo\n");
        let mut server = folder.serve();

        // Never below the base.
        let negative = "Error: Line numbers must be non-negative integers";
        for arguments in [json!({ "start_line": -1 }), json!({ "end_line": -1 })] {
            let mut arguments = arguments;
            arguments["name"] = "a.txt".into();
            assert_eq!(failure(&server.tool("read_file", arguments), -32602), negative);
        }
        let delete = |line: Value| json!({ "name": "a.txt", "edits": [{ "line": line, "operation": "delete" }] });
        assert_eq!(failure(&server.tool("edit_file", delete(json!(-1))), -32602), negative);
        fault(&server.request("read_file", json!({ "name": "a.txt", "start_line": 0 })), -32602);
        fault(&server.request("edit_file", delete(json!(0))), -32602);
        fault(&server.request("edit_file", delete(json!(-1))), -32602);

        // Integers and nothing that looks like one.
        for line in [json!("1"), json!(true), json!(1.5), json!([1]), json!({}), json!("")] {
            let answer = server.tool("read_file", json!({ "name": "a.txt", "start_line": line }));
            assert!(failure(&answer, -32602).contains("`start_line`"), "{answer}");
            let answer = server.tool("edit_file", delete(line));
            assert!(failure(&answer, -32602).contains("`edits[0].line`"), "{answer}");
        }
        let float = json!({ "name": "a.txt", "start_line": 1.0, "end_line": 1e0 });
        assert_eq!(body(&server.text("read_file", float)), "one");
        let null = json!({ "name": "a.txt", "start_line": null, "end_line": null });
        assert_eq!(body(&server.text("read_file", null)), "zero\none\ntwo");

        // Never past the end, however far.
        for line in [json!(3), json!(u64::MAX), json!(1e300), json!(i64::MAX)] {
            let answer = server.tool("read_file", json!({ "name": "a.txt", "start_line": line }));
            assert!(failure(&answer, -32602).contains("exceeds file length 3"), "{answer}");
            assert!(texts(&answer)[1].contains("0..2"), "{answer}");
            let answer = server.tool("edit_file", delete(line));
            assert!(
                failure(&answer, -32602).ends_with("out of range for delete operation"),
                "{answer}"
            );
        }
        let end = json!({ "name": "a.txt", "start_line": 2, "end_line": u64::MAX });
        assert_eq!(body(&server.text("read_file", end)), "two");

        // In this order.
        let crossed = json!({ "name": "a.txt", "start_line": 5, "end_line": 3 });
        let message = "Error: Invalid line range: start 5 > end 3";
        assert_eq!(failure(&server.tool("read_file", crossed.clone()), -32602), message);
        fault(&server.request("read_file", crossed), -32602);
        assert_eq!(folder.read("a.txt"), "zero\none\ntwo\n");
    }

    #[test]
    fn request_size_limits() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--max-size=1"]);
        let line_limit = (1 << 20) + (64 << 10);
        let padded = |id: i64, size: usize| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{}}}}"#);
            line.clone() + &" ".repeat(size - line.len())
        };
        let answer = server.exchange(&padded(1, line_limit));
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        let answer = server.exchange(&padded(2, line_limit + 1));
        assert_eq!(fault(&answer, -32600), "Request too large");
        assert_eq!(answer["id"], 2);

        // What is written counts as decoded: a text of exactly the limit fits, one byte more does not.
        let full = "x".repeat((1 << 20) - 1);
        server.text("edit_file", json!({ "name": "full.txt", "append": full }));
        assert_eq!(folder.read("full.txt").len(), 1 << 20);
        let answer = server.tool("edit_file", json!({ "name": "over.txt", "append": full + "x" }));
        let message = "Error: File size 1.01MB exceeds maximum limit 1MB";
        assert_eq!(failure(&answer, -32001), message);
        let answer = server.tool("edit_file", json!({ "name": "full.txt", "append": "x" }));
        assert_eq!(failure(&answer, -32001), message);

        // So does what is read.
        server.text("read_file", json!({ "name": "full.txt" }));
        folder.write("large.txt", "x".repeat((1 << 20) + 1));
        let answer = server.tool("read_file", json!({ "name": "large.txt" }));
        assert_eq!(failure(&answer, -32001), message);
        let answer = server.request("read_file", json!({ "name": "large.txt" }));
        assert_eq!(fault(&answer, -32001), message.strip_prefix("Error: ").unwrap());
        assert_eq!(folder.names(), ["full.txt", "large.txt"]);
        assert_eq!(folder.read("full.txt").len(), 1 << 20);
    }

    #[test]
    fn utf8_encoding_validation() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let broken: [&[u8]; 7] = [
            b"\xff\xfe",                 // UTF-16
            b"caf\xe9\n",                // Latin-1
            b"\xc0\xaf",                 // overlong
            b"\xed\xa0\x80",             // a surrogate
            b"\xf4\x90\x80\x80",         // past the last character
            b"text then a cut \xe2\x82", // cut off
            b"\x80",
        ];
        for bytes in broken {
            folder.write("a.txt", bytes);
            let message = "Error: File contains invalid UTF-8 encoding";
            let answer = server.tool("read_file", json!({ "name": "a.txt" }));
            assert_eq!(failure(&answer, -32004), message);
            let answer = server.tool("edit_file", json!({ "name": "a.txt", "append": "x" }));
            assert_eq!(failure(&answer, -32004), message);
            fault(&server.request("read_file", json!({ "name": "a.txt" })), -32004);
            assert!(server.text("list_files", json!({})).contains("lines: -1"));
            assert_eq!(std::fs::read(folder.file("a.txt")).unwrap(), bytes);
        }
        folder.write("a.txt", b"nul \0 byte\n");
        let answer = server.tool("read_file", json!({ "name": "a.txt" }));
        assert_eq!(failure(&answer, -32004), "Error: Cannot read binary file");
        let answer = server.tool("edit_file", json!({ "name": "b.txt", "append": "a\u{0}b" }));
        assert!(failure(&answer, -32602).contains("NUL"), "{answer}");

        let fine = "é 漢字 😀 \u{feff} \u{2028} \u{fffd} \u{10ffff} \u{7f} \u{1}";
        server.text("edit_file", json!({ "name": "c.txt", "append": fine }));
        assert_eq!(folder.read("c.txt"), format!("{fine}\n"));
        assert_eq!(body(&server.text("read_file", json!({ "name": "c.txt" }))), fine);
        assert_eq!(folder.names(), ["a.txt", "c.txt"]);
    }

    #[test]
    fn mcp_request_structure_validation() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve();
        let check = |server: &mut Server, line: &str, code, id: Value| {
            let answer = server.exchange(line);
            fault(&answer, code);
            assert_eq!(answer["id"], id, "{line} {answer}");
            assert_eq!(answer["jsonrpc"], "2.0");
        };
        // Envelopes
        check(&mut server, r#"{"jsonrpc":"2.0","id":1,"method":"#, -32700, json!(null));
        check(&mut server, r#"{"id":1,"method":"ping"}"#, -32600, json!(1));
        check(&mut server, r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1));
        check(&mut server, r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600, json!(1));
        check(&mut server, r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, -32601, json!(1));
        // Parameters of `tools/call`
        for params in [
            "null",
            "5",
            "[]",
            "{}",
            r#"{"name":5}"#,
            r#"{"name":null}"#,
            r#"{"arguments":{}}"#,
            r#"{"name":"no_such_tool"}"#,
            r#"{"name":"read_file","arguments":5}"#,
            r#"{"name":"read_file","arguments":[]}"#,
            r#"{"name":"read_file","arguments":"{}"}"#,
        ] {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
            check(&mut server, &line, -32602, json!(7));
        }
        check(&mut server, r#"{"jsonrpc":"2.0","id":8,"method":"tools/call"}"#, -32602, json!(8));
        // Arguments: strict, and every fault at once
        let answer = server.tool("read_file", json!({ "nome": "a.txt", "start_line": "x" }));
        let message = failure(&answer, -32602);
        for named in ["`nome`", "`name`", "`start_line`"] {
            assert!(message.contains(named), "{message}");
        }
        let edit = json!({ "line": 0, "operation": "replace", "content": "x", "extra": 1 });
        let answer = server.tool("edit_file", json!({ "name": "a.txt", "edits": [edit] }));
        assert!(failure(&answer, -32602).contains("extra"), "{answer}");
        failure(&server.tool("list_files", json!({ "path": "." })), -32602);
        let answer = server.request("read_file", json!({ "name": "a.txt", "line_numbers": true }));
        assert_eq!(fault(&answer, -32602), "Invalid params");
        assert_eq!(answer["error"]["data"]["tool"], "read_file");
        fault(
            &server
                .request("edit_file", json!({ "name": "a.txt", "append": "x", "dry_run": true })),
            -32602,
        );
        // It lives on, and nothing was written
        assert_eq!(body(&server.text("read_file", json!({ "name": "a.txt" }))), "one");
        assert_eq!(folder.read("a.txt"), "one\n");
    }
}

mod mcp_tools {
    use super::*;

    #[test]
    fn successful_file_listing() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let empty = "Files in directory:\n\nTotal files: 0";
        assert_eq!(server.text("list_files", json!({})), empty);

        folder.write("b.txt", "1\n2\n3");
        folder.write("a.txt", "");
        folder.write("B.txt", "1\r\n2\r\n");
        folder.write("a-b", "\r\r\r");
        folder.write("data.bin", b"\0\xff");
        folder.write(".hidden", "never listed\n");
        folder.write("my file.txt", "not addressable\n");
        std::fs::create_dir(folder.file("subdir")).unwrap();
        folder.write("subdir/c.txt", "not ours\n");

        let answer = server.tool("list_files", json!({}));
        let data = &answer["result"]["structuredContent"];
        let row = |row: &Value| {
            (row["name"].as_str().unwrap().to_owned(), row["lines"].as_i64().unwrap())
        };
        let rows: Vec<_> = data["files"].as_array().unwrap().iter().map(row).collect();
        let expected = [("B.txt", 2), ("a-b", 3), ("a.txt", 0), ("b.txt", 3), ("data.bin", -1)];
        assert_eq!(rows, expected.map(|(name, lines)| (name.to_owned(), lines)));
        assert_eq!(data["total_count"], 5);
        assert_eq!(data["skipped"], 1);
        assert_eq!(data["directory"], folder.path().to_str().unwrap());

        // The text says the same, line for line.
        let mut expected = String::from("Files in directory:\n\n");
        for file in data["files"].as_array().unwrap() {
            let (name, modified) =
                (file["name"].as_str().unwrap(), file["modified"].as_str().unwrap());
            let lines = &file["lines"];
            writeln!(expected, "name: {name}, modified: {modified}, lines: {lines}").unwrap();
        }
        assert_eq!(texts(&answer)[0], expected + "\nTotal files: 5");

        // The plain method answers the contract's object and nothing more.
        let plain = server.request("list_files", json!({}));
        let keys: Vec<_> = plain["result"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["files", "total_count", "directory"]);
        assert_eq!(plain["result"]["files"], data["files"]);
    }

    #[test]
    fn successful_file_reading() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let check = |server: &mut Server, bytes: &str, shown: &str, lines: usize| {
            folder.write("test.txt", bytes);
            let read = server.text("read_file", json!({ "name": "test.txt" }));
            assert_eq!(read, format!("File: test.txt ({lines} lines)\n\n{shown}"));
            let read = server.request("read_file", json!({ "name": "test.txt" }));
            assert_eq!(read["result"], json!({ "content": shown, "total_lines": lines }));
            assert_eq!(folder.read("test.txt"), bytes);
        };
        check(&mut server, "line1\nline2\nline3", "line1\nline2\nline3", 3);
        check(&mut server, "line1\nline2\n", "line1\nline2", 2);
        check(&mut server, "a\r\nb\rc\nd\r\n", "a\nb\nc\nd", 4);
        check(&mut server, "", "", 0);
        check(&mut server, "\n", "", 1);
        check(&mut server, "\n\n", "\n", 2);
        check(&mut server, "\u{feff}marked\n", "marked", 1);
        check(&mut server, "\u{feff}", "", 0);
        check(&mut server, "tab\t\"quoted\" \\ back 漢 😀\n", "tab\t\"quoted\" \\ back 漢 😀", 1);
        check(
            &mut server,
            "\u{b}\u{c}\u{85}\u{2028}\u{2029}\n",
            "\u{b}\u{c}\u{85}\u{2028}\u{2029}",
            1,
        );
    }

    #[test]
    fn line_range_processing() {
        let folder = Folder::new();
        let lines: Vec<String> = (1..=42).map(|number| format!("line {number}")).collect();
        folder.write("example.txt", lines.join("\n") + "\n");
        let mut server = folder.serve();
        // (start, end) as given; first and last line answered, counted from 0.
        let ranges = [
            (Some(5), Some(10), 5, 10),
            (Some(0), Some(0), 0, 0),
            (Some(41), Some(41), 41, 41),
            (Some(40), Some(500), 40, 41),
            (Some(39), None, 39, 41),
            (None, Some(2), 0, 2),
            (None, Some(500), 0, 41),
        ];
        for (start, end, first, last) in ranges {
            let shown = lines[first..=last].join("\n");
            let asked = json!({ "name": "example.txt", "start_line": start, "end_line": end });
            let answer = server.tool("read_file", asked);
            let head = format!("File: example.txt (lines {first}-{last} of 42 total)");
            assert_eq!(texts(&answer)[0], format!("{head}\n\n{shown}"));
            // The second text says where to go on, as long as there is more.
            let next = format!("next_line {}", last + 1);
            assert_eq!(texts(&answer)[1].contains(&next), last < 41, "{answer}");

            // The same lines, counted from 1, echoed as given.
            let mut asked = json!({ "name": "example.txt" });
            let mut echo = json!({});
            for (key, line) in [("start_line", start), ("end_line", end)] {
                if let Some(line) = line {
                    asked[key] = json!(line + 1);
                    echo[key] = json!(line + 1);
                }
            }
            let answer = server.request("read_file", asked);
            let expected = json!({ "content": shown, "total_lines": 42, "range_requested": echo });
            assert_eq!(answer["result"], expected);
        }
        let numbered =
            json!({ "name": "example.txt", "start_line": 9, "end_line": 10, "line_numbers": true });
        assert_eq!(body(&server.text("read_file", numbered)), "9\tline 10\n10\tline 11");
    }

    #[test]
    fn edit_operation_types() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let mut check = |edits: Value, append: Option<&str>, after: &str, modified: u64| {
            for base in [0, 1] {
                folder.write("a.txt", "0\n1\n2\n3\n4\n");
                let mut arguments = json!({ "name": "a.txt", "edits": edits, "append": append });
                for edit in arguments["edits"].as_array_mut().unwrap() {
                    edit["line"] = json!(edit["line"].as_u64().unwrap() + base);
                }
                let lines = after.lines().count();
                if base == 0 {
                    let text = server.text("edit_file", arguments);
                    let head = "File edited successfully: a.txt";
                    let expected = format!(
                        "{head}\nLines modified: {modified}\nTotal lines: {lines}\nFile created: false"
                    );
                    assert_eq!(text, expected);
                } else {
                    let answer = server.request("edit_file", arguments);
                    let expected = json!({
                        "success": true, "lines_modified": modified,
                        "file_created": false, "new_total_lines": lines,
                    });
                    assert_eq!(answer["result"], expected, "{answer}");
                }
                assert_eq!(folder.read("a.txt"), after, "{edits}");
            }
        };
        check(json!([edit(2, "replace", "new line")]), None, "0\n1\nnew line\n3\n4\n", 1);
        check(json!([edit(3, "insert", "inserted")]), None, "0\n1\n2\ninserted\n3\n4\n", 1);
        check(json!([edit(2, "delete", "")]), None, "0\n1\n3\n4\n", 1);
        check(json!([]), Some("5"), "0\n1\n2\n3\n4\n5\n", 1);
        check(
            json!([edit(5, "insert", "5"), edit(6, "insert", "6")]),
            None,
            "0\n1\n2\n3\n4\n5\n6\n",
            2,
        );
        check(json!([edit(1, "replace", "a\nb\n")]), None, "0\na\nb\n2\n3\n4\n", 2);
        check(json!([edit(1, "replace", "")]), None, "0\n\n2\n3\n4\n", 1);
        let all = json!([
            edit(4, "delete", ""),
            edit(0, "insert", "top"),
            edit(1, "replace", "one"),
            edit(1, "insert", "x"),
            edit(1, "insert", "y"),
        ]);
        check(all, Some("end\n"), "top\n0\nx\ny\none\n2\n3\nend\n", 6);
        let every: Vec<_> = (0..5).map(|line| edit(line, "delete", "")).collect();
        check(json!(every), None, "", 5);
    }

    #[test]
    fn atomic_write_behavior() {
        let folder = Folder::new();
        folder.write("a.txt", "zero\none\n");
        let mut server = folder.serve();
        let file = || std::fs::metadata(folder.file("a.txt")).unwrap();

        // All or nothing: the last of three does not fit.
        let edits = json!([edit(0, "replace", "x"), edit(1, "delete", ""), edit(9, "delete", "")]);
        let answer =
            server.tool("edit_file", json!({ "name": "a.txt", "edits": edits, "append": "y" }));
        assert_eq!(failure(&answer, -32602), "Error: Line 9 out of range for delete operation");
        assert_eq!(folder.read("a.txt"), "zero\none\n");
        let edits = json!([edit(0, "replace", "x"), edit(0, "delete", "")]);
        let answer = server.tool("edit_file", json!({ "name": "a.txt", "edits": edits }));
        failure(&answer, -32012);
        assert_eq!(folder.read("a.txt"), "zero\none\n");
        // A file is not even created by edits that do not all apply.
        let edits = json!([edit(0, "insert", "x"), edit(5, "insert", "y")]);
        failure(&server.tool("edit_file", json!({ "name": "new.txt", "edits": edits })), -32602);
        assert_eq!(folder.names(), ["a.txt"]);

        // A new file takes the old one's place: who has the old one open still sees all of it.
        let mut old = std::fs::File::open(folder.file("a.txt")).unwrap();
        let before = file();
        server.text("edit_file", json!({ "name": "a.txt", "edits": [edit(0, "replace", "new")] }));
        assert_eq!(std::io::read_to_string(&mut old).unwrap(), "zero\none\n");
        assert_eq!(folder.read("a.txt"), "new\none\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            assert_ne!(before.ino(), file().ino(), "written in place");
        }
        // An edit that changes nothing, and a dry run, leave the file alone.
        let before = file();
        let same = json!({ "name": "a.txt", "edits": [edit(0, "replace", "new")] });
        assert_eq!(server.tool("edit_file", same)["result"]["structuredContent"]["changed"], false);
        let dry = json!({ "name": "a.txt", "append": "x", "dry_run": true });
        assert_eq!(server.tool("edit_file", dry)["result"]["structuredContent"]["dry_run"], true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let id = |file: &std::fs::Metadata| (file.ino(), file.mtime_nsec(), file.ctime_nsec());
            assert_eq!(id(&before), id(&file()));
        }
        assert_eq!(before.modified().unwrap(), file().modified().unwrap());
        assert_eq!(folder.names(), ["a.txt"], "nothing is left over");
    }

    #[test]
    fn tool_error_handling() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        std::fs::create_dir(folder.file("sub")).unwrap();
        let mut server = folder.serve();
        let edits = |edit: Value| json!({ "name": "a.txt", "edits": [edit] });
        let failures = [
            ("read_file", json!({ "name": "missing.txt" }), -32001, "File 'missing.txt' not found"),
            ("read_file", json!({ "name": "sub" }), -32003, "'sub' is not a regular file"),
            (
                "edit_file",
                json!({ "name": "sub", "append": "x" }),
                -32003,
                "'sub' is not a regular file",
            ),
            (
                "read_file",
                json!({ "name": "a.txt", "start_line": 1 }),
                -32602,
                "Start line 1 exceeds file length 1",
            ),
            (
                "edit_file",
                json!({ "name": "no.txt", "append": "x", "create_if_missing": false }),
                -32001,
                "File 'no.txt' not found",
            ),
            (
                "edit_file",
                json!({ "name": "a.txt" }),
                -32602,
                "No edits or append content provided",
            ),
            (
                "edit_file",
                edits(json!({ "line": 0, "operation": "move", "content": "x" })),
                -32602,
                "Invalid edit operation: move",
            ),
            (
                "edit_file",
                edits(json!({ "line": 0, "operation": "delete", "content": "" })),
                -32602,
                "Delete operation cannot specify content",
            ),
            (
                "edit_file",
                edits(json!({ "line": 0, "operation": "insert" })),
                -32602,
                "Content is required for insert operation",
            ),
            (
                "edit_file",
                edits(json!({ "line": 1, "operation": "replace", "content": "x" })),
                -32602,
                "Line 1 out of range for replace operation",
            ),
            (
                "edit_file",
                edits(json!({ "line": 2, "operation": "insert", "content": "x" })),
                -32602,
                "Line 2 out of range for insert operation",
            ),
            (
                "edit_file",
                json!({ "name": "a.txt", "append": "x", "expected_hash": "0123456789abcdef" }),
                -32013,
                "File changed since it was read: a.txt",
            ),
        ];
        for (tool, arguments, code, message) in &failures {
            // A failed tool is a successful answer that says so, in text and in data.
            let answer = server.tool(tool, arguments.clone());
            assert_eq!(failure(&answer, *code), format!("Error: {message}"));
            assert!(answer.get("error").is_none(), "{answer}");
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["message"], *message);
            assert_eq!(error["hint"].as_str(), texts(&answer).get(1).copied(), "{answer}");
        }
        // Clients written to the letter get JSON-RPC errors, with the same codes.
        let mut literal = folder.serve_with(&["--tool-errors=jsonrpc"]);
        for (tool, arguments, code, message) in &failures {
            let answer = literal.tool(tool, arguments.clone());
            match code {
                -32602 => {
                    assert_eq!(fault(&answer, *code), "Invalid params");
                    assert_eq!(answer["error"]["data"]["validation_errors"], json!([message]));
                }
                _ => assert_eq!(fault(&answer, *code), *message),
            }
            assert_eq!(answer["error"]["data"]["tool"], *tool);
        }
        assert_eq!(folder.read("a.txt"), "one\n");
        assert_eq!(folder.names(), ["a.txt", "sub"]);
    }
}

mod concurrency {
    use super::*;

    #[test]
    fn concurrent_tool_calls() {
        let folder = Folder::new();
        folder.write("read.txt", "here\n");
        let mut server = folder.serve_with(&["--durability=none"]);
        let mut ids = Vec::new();
        for number in 0..40 {
            let name = format!("{number:02}.txt");
            ids.push(server.send_tool("edit_file", json!({ "name": name, "append": name })));
            ids.push(server.send_tool("read_file", json!({ "name": "read.txt" })));
            ids.push(server.send(
                "edit_file",
                json!({ "name": "all.txt", "append": name, "create_if_missing": true }),
            ));
            ids.push(server.send_tool("list_files", json!({})));
        }
        for (index, answer) in server.receive_all(&ids).iter().enumerate() {
            match index % 4 {
                1 => assert_eq!(body(texts(answer)[0]), "here"),
                2 => assert_eq!(answer["result"]["success"], true, "{answer}"),
                _ => assert_eq!(answer["result"]["isError"], false, "{answer}"),
            }
        }
        let names: Vec<_> = (0..40).map(|number| format!("{number:02}.txt")).collect();
        assert_eq!(folder.read("all.txt").lines().collect::<Vec<_>>(), names);
        for name in &names {
            assert_eq!(folder.read(name), format!("{name}\n"));
        }
    }

    #[test]
    fn exclusive_write_locking() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve_with(&["--timeout=300"]);
        let held = folder.lock("a.txt");
        let edit = server.send_tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
        // Readers never lock; other files are not concerned.
        assert_eq!(body(&server.text("read_file", json!({ "name": "a.txt" }))), "one");
        server.text("edit_file", json!({ "name": "b.txt", "append": "x" }));
        assert!(server.text("list_files", json!({})).contains("name: a.txt"));
        assert_eq!(folder.read("a.txt"), "one\n", "written under somebody's lock");
        drop(held);
        assert_eq!(server.receive_all(&[edit])[0]["result"]["isError"], false);
        assert_eq!(folder.read("a.txt"), "one\ntwo\n");
    }

    #[test]
    fn filesystem_lock_behavior() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");

        // It times out, in the contract's words, and nothing is written later.
        let mut hasty = folder.serve_with(&["--timeout=1"]);
        let held = folder.lock("a.txt");
        let answer = hasty.tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
        let message = "Error: Failed to acquire file lock within timeout";
        assert_eq!(failure(&answer, -32014), message);
        drop(held);
        assert_eq!(
            hasty.text("read_file", json!({ "name": "a.txt" })),
            "File: a.txt (1 lines)\n\none"
        );

        // What the lock's holder wrote meanwhile is what gets edited, even through a rename.
        let mut server = folder.serve_with(&["--timeout=300"]);
        let held = folder.lock("a.txt");
        let edit = server.send_tool("edit_file", json!({ "name": "a.txt", "append": "three" }));
        server.text("read_file", json!({ "name": "a.txt" }));
        folder.write("new", "one\ntwo\n");
        std::fs::rename(folder.file("new"), folder.file("a.txt")).unwrap();
        drop(held);
        assert_eq!(server.receive_all(&[edit])[0]["result"]["isError"], false);
        assert_eq!(folder.read("a.txt"), "one\ntwo\nthree\n");

        // A process that dies lets go: the lock is the operating system's.
        let held = folder.lock("a.txt");
        let mut dying = folder.serve_with(&["--timeout=300"]);
        dying.send_tool("edit_file", json!({ "name": "a.txt", "append": "never" }));
        dying.text("read_file", json!({ "name": "a.txt" }));
        dying.kill();
        drop(held);
        server.text("edit_file", json!({ "name": "a.txt", "append": "four" }));
        assert_eq!(folder.read("a.txt"), "one\ntwo\nthree\nfour\n");
        assert_eq!(folder.names(), ["a.txt"]);
    }

    #[test]
    fn multi_instance_coordination() {
        let folder = Folder::new();
        let instances = ["a", "b", "c"];
        let threads: Vec<_> = instances
            .iter()
            .map(|&instance| {
                let mut server = folder.serve_with(&["--durability=none"]);
                std::thread::spawn(move || {
                    for turn in 0..30 {
                        let line = format!("{instance}{turn:02}");
                        server.text("edit_file", json!({ "name": "shared.txt", "append": line }));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let text = folder.read("shared.txt");
        assert_eq!(text.lines().count(), 90);
        for instance in instances {
            let own: Vec<_> = text.lines().filter(|line| line.starts_with(instance)).collect();
            let expected: Vec<_> = (0..30).map(|turn| format!("{instance}{turn:02}")).collect();
            assert_eq!(own, expected, "each in its own order");
        }
        assert_eq!(folder.names(), ["shared.txt"]);
    }
}

mod mcp_protocol {
    use super::*;

    #[test]
    fn mcp_initialization_sequence() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let answer = server.request("initialize", initialize("2024-11-05"));
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], "2024-11-05");
        let capabilities = json!({ "prompts": {}, "resources": {}, "tools": {} });
        assert_eq!(result["capabilities"], capabilities);
        let expected = json!({
            "name": "file-editing-server",
            "title": "file-editor",
            "version": "1.0.0",
            "description": "High-performance file editing server for AI agents",
        });
        assert_eq!(result["serverInfo"], expected);
        assert!(result["instructions"].as_str().unwrap().contains("0-based"));
        server.notify("notifications/initialized", json!({}));
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
        assert_eq!(
            server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(),
            3
        );
    }

    #[test]
    fn tools_list_response() {
        let folder = Folder::new();
        let names = |flags: &[&str]| -> Vec<String> {
            let answer = folder.serve_with(flags).request("tools/list", json!({}));
            let tools = answer["result"]["tools"].as_array().unwrap().clone();
            assert!(answer["result"].get("nextCursor").is_none(), "{answer}");
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let three = ["list_files", "read_file", "edit_file"];
        assert_eq!(names(&[]), three);
        assert_eq!(names(&["--tools=flat"]), three);
        assert_eq!(names(&["--tools=flat,flat"]), three);
        assert_eq!(names(&["--read-only"]), three[..2]);

        let tools = folder.serve().request("tools/list", json!({}))["result"]["tools"].clone();
        let hints = |index: usize| {
            let hint = |name: &str| tools[index]["annotations"][name].as_bool().unwrap();
            ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(hint)
        };
        assert_eq!(hints(0), [true, false, true, false]);
        assert_eq!(hints(1), [true, false, true, false]);
        assert_eq!(hints(2), [false, false, false, false]);
        // A read answers text alone; the others say what their data looks like, until told not to.
        let described = |tools: &Value, index: usize| tools[index].get("outputSchema").is_some();
        assert_eq!([0, 1, 2].map(|index| described(&tools, index)), [true, false, true]);
        let mut plain = folder.serve_with(&["--structured=off"]);
        let tools = plain.request("tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!([0, 1, 2].map(|index| described(&tools, index)), [false; 3]);
        let answer = plain.tool("list_files", json!({}));
        assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
    }

    #[test]
    fn tool_call_execution() {
        let folder = Folder::new();
        let mut server = folder.serve();
        server.request("initialize", initialize("2024-11-05"));
        server.notify("notifications/initialized", json!({}));
        let edits: Vec<_> = (0..5).map(|line| edit(line, "insert", "text")).collect();
        let answer = server.tool("edit_file", json!({ "name": "newfile.txt", "edits": edits }));
        let text = "File edited successfully: newfile.txt\nLines modified: 5\nTotal lines: 5\nFile created: true";
        assert_eq!(texts(&answer)[0], text);
        assert_eq!(answer["result"]["isError"], false);
        assert_eq!(answer["result"]["content"][0]["type"], "text");
        let data = &answer["result"]["structuredContent"];
        assert_eq!(data["success"], true);
        assert_eq!(data["lines_modified"], 5);
        assert_eq!(data["new_total_lines"], 5);
        assert_eq!(data["file_created"], true);
        assert_eq!(
            data["diff"],
            format!("--- newfile.txt\n+++ newfile.txt\n@@ -0,0 +1,5 @@\n{}", "+text\n".repeat(5))
        );

        // What an edit answered opens the next one; what is out of date does not.
        let hash = data["hash"].clone();
        let again = json!({ "name": "newfile.txt", "append": "more", "expected_hash": hash });
        assert_eq!(server.tool("edit_file", again.clone())["result"]["isError"], false);
        let answer = server.tool("edit_file", again);
        failure(&answer, -32013);
        let current =
            answer["result"]["structuredContent"]["error"]["hash"].as_str().unwrap().to_owned();
        let read = server.tool("read_file", json!({ "name": "newfile.txt" }));
        assert!(texts(&read)[1].ends_with(&format!("hash {current}")), "{read}");
        assert!(read["result"].get("structuredContent").is_none(), "{read}");
        // No arguments at all is what a tool without parameters takes.
        let answer = server.request("tools/call", json!({ "name": "list_files" }));
        assert!(texts(&answer)[0].ends_with("Total files: 1"), "{answer}");
    }

    #[test]
    fn error_response_formatting() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let answer = server.tool("read_file", json!({ "name": "example.txt" }));
        let expected = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "content": [
                    { "type": "text", "text": "Error: File 'example.txt' not found" },
                    { "type": "text", "text": "`list_files` shows the files there are" },
                ],
                "structuredContent": { "error": {
                    "code": -32001,
                    "message": "File 'example.txt' not found",
                    "hint": "`list_files` shows the files there are",
                } },
                "isError": true,
            },
        });
        assert_eq!(answer, expected);
        let answer = server.request("read_file", json!({ "name": "a.txt", "start_line": -1 }));
        let expected = json!({
            "jsonrpc": "2.0",
            "id": 2,
            "error": {
                "code": -32602,
                "message": "Invalid params",
                "data": {
                    "tool": "read_file",
                    "validation_errors": ["Line numbers must be non-negative integers"],
                    "hint": "lines count from 1",
                },
            },
        });
        assert_eq!(answer, expected);
        let protocol = [
            ("{", -32700, "Parse error"),
            (r#"{"jsonrpc":"2.0","id":3}"#, -32600, "Invalid Request"),
            (r#"{"jsonrpc":"2.0","id":4,"method":"nope"}"#, -32601, "Method not found"),
            (
                r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"a:b"}}"#,
                -32602,
                "Not a file URI",
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"nope"}}"#,
                -32602,
                "Unknown tool: nope",
            ),
        ];
        for (line, code, message) in protocol {
            assert_eq!(fault(&server.exchange(line), code), message, "{line}");
        }
    }

    #[test]
    fn jsonrpc_compliance() {
        let folder = Folder::new();
        let mut server = folder.serve();
        // Ids come back as they are, of either type.
        for id in ["0", "-1", "9007199254740993", r#""""#, r#""7""#, r#""a \" b""#, r#""é""#] {
            let answer =
                server.exchange(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
            let expected: Value = serde_json::from_str(id).unwrap();
            assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": expected, "result": {} }));
        }
        // Members in any order, blanks anywhere, line ends of either kind.
        for line in [
            r#"{"params":{},"method":"ping","id":1,"jsonrpc":"2.0"}"#,
            " {\t\"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"ping\" } ",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            r#"{"jsonrpc":"2.0","id":1,"method":"\u0070ing"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","unknown":[{}]}"#,
        ] {
            assert_eq!(server.exchange(line)["result"], json!({}), "{line}");
        }
        // A notification is never answered, whatever it says; an answer neither.
        for line in [
            r#"{"jsonrpc":"2.0","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"read_file","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":5}"#,
            r#"{"jsonrpc":"2.0","method":"no/such/notification"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#,
            "",
            "  \t ",
        ] {
            server.send_line(line);
        }
        let answer = server.request("ping", json!({}));
        // Either a result or an error, never both, and nothing else.
        assert_eq!(
            answer.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["jsonrpc", "id", "result"]
        );
        let answer = server.exchange("nonsense");
        assert_eq!(
            answer.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["jsonrpc", "id", "error"]
        );
        assert_eq!(answer["id"], Value::Null);
        let (status, rest, _) = server.finish();
        assert!(status.success());
        assert_eq!(rest, "");
    }
}
