//! MCP and JSON-RPC on stdio: versions, malformed input, order and concurrency, cancellation, the end.

/// An edit that does not wait for the disk is run by the thread that reads, if it is alone; any other one by one of its own.
const WAYS: [&str; 2] = ["--durability=data", "--durability=none"];

use std::time::{Duration, Instant};

use crate::harness::{Folder, HANG, Server, failure, fault, initialize, log_lines, modern, texts};
use serde_json::{Value, json};

/// The next answer belongs to this very request, so nothing else was answered before it.
fn assert_alive(server: &mut Server) {
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

/// Ends the input: all is well, and no answer is left over.
fn assert_ends_well(server: Server) -> String {
    let (status, rest, stderr) = server.finish();
    assert!(status.success(), "{status}");
    assert_eq!(rest, "");
    stderr
}

mod versions {
    use super::*;

    #[test]
    fn every_version_with_a_handshake_is_echoed() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut server = folder.serve();
            let answer = server.request("initialize", initialize(version));
            assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
            server.notify("notifications/initialized", json!({}));
            let answer = server.request("tools/list", json!({}));
            assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 3);
            for newer in ["resultType", "ttlMs", "cacheScope"] {
                assert!(answer["result"].get(newer).is_none(), "{version}: {newer}");
            }
            let answer = server.tool("read_file", json!({ "name": "a.txt" }));
            assert_eq!(texts(&answer)[0], "File: a.txt (1 lines)\n\none");
            assert!(answer["result"].get("resultType").is_none(), "{version}");
            assert_ends_well(server);
        }
    }

    #[test]
    fn an_unknown_version_is_answered_with_the_newest_that_has_a_handshake() {
        for version in ["2023-01-01", "2026-07-28", "2099-12-31", "", "nonsense"] {
            let folder = Folder::new();
            let mut server = folder.serve();
            let answer = server.request("initialize", initialize(version));
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{version:?}");
            server.notify("notifications/initialized", json!({}));
            // And that is the version spoken from here on.
            let answer = server.request("tools/list", json!({}));
            assert!(answer["result"].get("resultType").is_none(), "{version:?}: {answer}");
            let answer = server.request("ping", json!({}));
            assert_eq!(answer["result"], json!({}), "{version:?}: {answer}");
        }
    }

    #[test]
    fn client_capabilities_are_ignored() {
        let folder = Folder::new();
        for capabilities in
            [json!({}), json!({ "tools": {} }), json!({ "roots": { "listChanged": true } })]
        {
            let mut server = folder.serve();
            let mut params = initialize("2025-06-18");
            params["capabilities"] = capabilities;
            let answer = server.request("initialize", params);
            assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        }
    }

    #[test]
    fn the_version_without_a_handshake_is_served() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve();

        let answer = server.request("server/discover", modern(json!({})));
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{answer}");
        assert_eq!(result["capabilities"], json!({ "prompts": {}, "resources": {}, "tools": {} }));
        let versions = result["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!("2026-07-28")), "{answer}");
        assert!(result["instructions"].as_str().unwrap().contains("`read_file`"));
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "file-editing-server", "{answer}");

        let answer = server.request("tools/list", modern(json!({})));
        let result = &answer["result"];
        assert_eq!(result["tools"].as_array().unwrap().len(), 3);
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].is_u64(), "{answer}");
        assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap()));

        let call = |arguments| modern(json!({ "name": "read_file", "arguments": arguments }));
        let answer = server.request("tools/call", call(json!({ "name": "a.txt" })));
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(texts(&answer)[0], "File: a.txt (1 lines)\n\none");
        let answer = server.request("tools/call", call(json!({ "name": "b.txt" })));
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(failure(&answer, -32001), "Error: File 'b.txt' not found");
        assert_ends_well(server);
    }

    /// Though the newest version gives -32002 another meaning: ours stays what the contract says.
    #[test]
    fn codes_are_the_same_in_every_version() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--read-only", "--tool-errors=jsonrpc"]);
        let call = json!({ "name": "edit_file", "arguments": { "name": "a.txt", "append": "x" } });
        fault(&server.request("tools/call", call.clone()), -32002);
        fault(&server.request("tools/call", modern(call)), -32002);
    }

    #[test]
    fn a_version_nobody_knows_is_refused_per_request() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let mut params = modern(json!({}));
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-12-31".into();
        let answer = server.request("tools/list", params);
        fault(&answer, -32022);
        let supported = answer["error"]["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!("2026-07-28")), "{answer}");
        assert_alive(&mut server);
    }

    #[test]
    fn all_versions_and_plain_methods_mix_on_one_pipe() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve();
        let plain = |server: &mut Server| {
            let answer = server.request("read_file", json!({ "name": "a.txt" }));
            assert_eq!(answer["result"], json!({ "content": "one", "total_lines": 1 }));
        };
        let call = json!({ "name": "read_file", "arguments": { "name": "a.txt" } });
        let check = |server: &mut Server, params: Value, result_type: Option<&str>| {
            let answer = server.request("tools/call", params);
            assert_eq!(texts(&answer)[0], "File: a.txt (1 lines)\n\none");
            assert_eq!(answer["result"]["resultType"].as_str(), result_type, "{answer}");
        };
        plain(&mut server);
        check(&mut server, call.clone(), None);
        check(&mut server, modern(call.clone()), Some("complete"));
        server.request("initialize", initialize("2024-11-05"));
        plain(&mut server);
        check(&mut server, call.clone(), None);
        check(&mut server, modern(call.clone()), Some("complete"));
        server.notify("notifications/initialized", json!({}));
        plain(&mut server);
        check(&mut server, call, None);
        assert_eq!(
            server.request("tools/list", modern(json!({})))["result"]["resultType"],
            "complete"
        );
        assert!(server.request("tools/list", json!({}))["result"].get("resultType").is_none());
        assert_ends_well(server);
    }
}

mod malformed {
    use super::*;

    #[test]
    fn a_broken_line_is_told_and_survived() {
        let folder = Folder::new();
        let mut server = folder.serve();
        for line in
            ["{", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, "}", "\u{feff}x", "'a'"]
        {
            let answer = server.exchange(line);
            assert_eq!(fault(&answer, -32700), "Parse error", "{line}");
            assert_eq!(answer["id"], Value::Null, "{line}");
            assert_alive(&mut server);
        }
        server.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}\n");
        fault(&server.receive(), -32700);
        server.send_bytes(b"\0\0\0\n");
        fault(&server.receive(), -32700);
        let deep = "[".repeat(100_000);
        server.send_line(&deep);
        assert!(server.receive()["error"]["code"].is_i64());
        assert_alive(&mut server);
        assert_ends_well(server);
    }

    #[test]
    fn what_is_json_but_no_message_is_an_invalid_request() {
        let folder = Folder::new();
        let mut server = folder.serve();
        for (line, id) in crate::harness::invalid_requests() {
            let answer = server.exchange(line);
            assert_eq!(fault(&answer, -32600), "Invalid Request", "{line}");
            assert_eq!(answer["id"], id, "{line}");
        }
        assert_alive(&mut server);
        assert_ends_well(server);
    }

    #[test]
    fn parameters_that_do_not_fit_are_named_with_the_id() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let deep = format!(
            r#"{{"name":"read_file","arguments":{}}}"#,
            "[".repeat(5000) + &"]".repeat(5000)
        );
        let requests = [
            ("tools/call", "{}"),
            ("tools/call", "[]"),
            ("tools/call", "7"),
            ("tools/call", r#"{"name":7}"#),
            ("tools/call", r#"{"name":"read_file","arguments":"a.txt"}"#),
            ("tools/call", r#"{"name":"read_file","arguments":["a.txt"]}"#),
            ("tools/call", r#"{"name":"nope","arguments":{}}"#),
            ("tools/call", r#"{"name":"Read_File","arguments":{}}"#),
            ("tools/call", &deep),
            ("read_file", "[]"),
            ("read_file", r#""a.txt""#),
            ("initialize", "{}"),
            ("initialize", "7"),
        ];
        for (method, params) in requests {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{params}}}"#);
            let answer = server.exchange(&line);
            fault(&answer, -32602);
            assert_eq!(answer["id"], "x", "{line}");
        }
        let answer = server.tool("nope", json!({}));
        assert_eq!(fault(&answer, -32602), "Unknown tool: nope");
        assert_alive(&mut server);
        assert_ends_well(server);
    }

    /// Some clients ask whether there is anything or not, and take an error for a broken server.
    #[test]
    fn what_there_is_nothing_of_is_empty() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let complete = json!({ "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "a", "value": "b" } });
        for params in [json!({}), modern(json!({}))] {
            assert_eq!(server.request("prompts/list", params)["result"]["prompts"], json!([]));
        }
        let completed = server.request("completion/complete", complete);
        assert_eq!(completed["result"]["completion"]["values"], json!([]), "{completed}");
        let level = json!({ "level": "debug" });
        assert_eq!(server.request("logging/setLevel", level.clone())["result"], json!({}));
        fault(&server.request("logging/setLevel", modern(level)), -32601);
        let prompt = server.request("prompts/get", json!({ "name": "a" }));
        assert_eq!(fault(&prompt, -32602), "Unknown prompt: a");
        fault(&server.request("prompts/list", json!({ "cursor": "a" })), -32602);
    }

    #[test]
    fn methods_that_are_not_there() {
        let folder = Folder::new();
        let mut server = folder.serve();
        let uri = json!({ "uri": "file:///a" });
        let methods = [
            ("nope", json!({})),
            ("", json!({})),
            ("tools", json!({})),
            ("write_file", json!({})),
            ("resources/subscribe", uri.clone()),
            ("resources/unsubscribe", uri),
            ("tasks/list", json!({})),
        ];
        for after_handshake in [false, true] {
            if after_handshake {
                server.request("initialize", initialize("2025-11-25"));
                server.notify("notifications/initialized", json!({}));
            }
            for (method, params) in &methods {
                let answer = server.request(method, params.clone());
                assert_eq!(fault(&answer, -32601), "Method not found", "{method}");
                let answer = server.request(method, modern(params.clone()));
                fault(&answer, -32601);
            }
        }
        assert_ends_well(server);
    }

    #[test]
    fn notifications_are_never_answered() {
        let folder = Folder::new();
        let mut server = folder.serve();
        // Before any request, which would end a server that insists on its handshake.
        server.notify("notifications/initialized", json!({}));
        server.notify("notifications/nobody/knows", json!({ "a": 1 }));
        server.notify("notifications/cancelled", json!({ "requestId": 99, "reason": "none such" }));
        server.notify("notifications/cancelled", json!({}));
        server.notify("notifications/cancelled", json!("nonsense"));
        server.notify("notifications/progress", json!({ "progressToken": 1, "progress": 1 }));
        server.notify("notifications/roots/list_changed", json!({}));
        server.notify("edit_file", json!({ "name": "a.txt", "append": "x" }));
        server.notify(
            "tools/call",
            json!({ "name": "edit_file", "arguments": { "name": "a.txt", "append": "x" } }),
        );
        assert_alive(&mut server);
        server.request("initialize", initialize("2025-11-25"));
        server.notify("notifications/nobody/knows", json!({}));
        assert_alive(&mut server);
        assert_ends_well(server);
        assert_eq!(folder.names(), [""; 0]);
    }
}

mod oversize {
    use super::*;

    /// The most memory the process ever had, in bytes.
    #[cfg(target_os = "linux")]
    fn peak_memory(server: &Server) -> u64 {
        crate::harness::memory_kib(server.pid(), "VmHWM") << 10
    }

    #[test]
    fn a_line_too_long_is_refused_with_its_id() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--max-size=1"]);
        let long = "x".repeat(3 << 20);
        let call = format!(r#""method":"edit_file","params":{{"name":"a.txt","append":"{long}"}}"#);
        let spaced =
            format!(r#""method": "edit_file", "params": {{"name": "a.txt", "append": "{long}"}}"#);
        let wide = "é漢😀".repeat(1 << 18);
        let lines = [
            (format!(r#"{{"jsonrpc":"2.0","id":7,{call}}}"#), json!(7)),
            (format!(r#"{{"id":"head",{call},"jsonrpc":"2.0"}}"#), json!("head")),
            (format!(r#"{{"jsonrpc": "2.0", "id": 8, {spaced}}}"#), json!(8)),
            (format!(r#"{{{call},"jsonrpc":"2.0","id":9}}"#), json!(9)),
            (format!(r#"{{{call},"id":10,"jsonrpc":"2.0"}}"#), json!(10)),
            (format!(r#"{{"jsonrpc": "2.0", {spaced}, "id": 11}}"#), json!(11)),
            (format!(r#"{{"jsonrpc":"2.0",{call},"id":"tail"}}"#), json!("tail")),
            (format!(r#"{{"params":{{"a":"{wide}"}},"id":12}}"#), json!(12)),
            // An id that is somebody else's is worse than none.
            (format!(r#"{{"jsonrpc":"2.0","params":{{"append":"{long}","id":13}}}}"#), json!(null)),
            (format!(r#"{{"params":{{"id":14}},"a":"{long}"}}"#), json!(null)),
            (long, json!(null)),
        ];
        for (line, id) in lines {
            let answer = server.exchange(&line);
            assert_eq!(fault(&answer, -32600), "Request too large", "{id}");
            assert_eq!(answer["id"], id, "{answer}");
            assert_alive(&mut server);
        }
        assert_ends_well(server);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_line_too_long_is_not_kept() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--max-size=1"]);
        assert_alive(&mut server);
        let before = peak_memory(&server);
        server.send_bytes(
            br#"{"jsonrpc":"2.0","id":"big","method":"edit_file","params":{"append":""#,
        );
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            server.send_bytes(&megabyte);
        }
        server.send_line(r#""}}"#);
        let answer = server.receive();
        assert_eq!(answer["id"], "big", "{answer}");
        let grown = peak_memory(&server) - before;
        assert!(grown < 8 << 20, "40 MB went by and {grown} bytes stayed");
        server.text("edit_file", json!({ "name": "a.txt", "append": "next" }));
        assert_ends_well(server);
    }
}

mod ids {
    use super::*;

    #[test]
    fn an_id_in_flight_is_refused_and_free_again_afterwards() {
        for way in WAYS {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server = folder.serve_with(&["--timeout=300", way]);
            let call = r#"{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"edit_file","arguments":{"name":"a.txt","append":"two"}}}"#;
            let plain =
                r#"{"jsonrpc":"2.0","id":"same","method":"read_file","params":{"name":"a.txt"}}"#;
            let ping = r#"{"jsonrpc":"2.0","id":"same","method":"ping"}"#;
            let held = folder.lock("a.txt");
            server.send_line(call);
            for again in [call, plain, ping] {
                let answer = server.exchange(again);
                assert_eq!(fault(&answer, -32600), "Invalid Request");
                assert_eq!(answer["id"], "same");
            }
            drop(held);
            let answer = server.receive();
            assert_eq!(answer["id"], "same");
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            assert_eq!(server.exchange(plain)["result"]["content"], "one\ntwo");
            assert_eq!(server.exchange(ping)["result"], json!({}));
            assert_ends_well(server);
        }
    }

    #[test]
    fn a_number_and_a_string_are_two_ids() {
        for way in WAYS {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server = folder.serve_with(&["--timeout=300", way]);
            let held = folder.lock("a.txt");
            let edit = |id: Value, text: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "edit_file", "params": { "name": "a.txt", "append": text } });
            server.send_line(&edit(json!(5), "two").to_string());
            server.send_line(&edit(json!("5"), "three").to_string());
            drop(held);
            let answers = [server.receive(), server.receive()];
            assert!(
                answers.iter().all(|answer| answer["result"]["success"] == true),
                "{answers:?}"
            );
            // Edits are made in the order they came; their answers may come in any.
            for id in [json!(5), json!("5")] {
                assert!(answers.iter().any(|answer| answer["id"] == id), "{answers:?}");
            }
            assert_eq!(folder.read("a.txt"), "one\ntwo\nthree\n");
            assert_ends_well(server);
        }
    }

    #[test]
    fn progress_tokens_are_tolerated() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve();
        for token in [json!(1), json!("token")] {
            let mut params = json!({ "name": "read_file", "arguments": { "name": "a.txt" } });
            params["_meta"] = json!({ "progressToken": token });
            let answer = server.request("tools/call", params.clone());
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            let mut params = modern(params);
            params["_meta"]["progressToken"] = token.clone();
            let answer = server.request("tools/call", params);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            let list = json!({ "_meta": { "progressToken": token } });
            assert!(server.request("tools/list", list)["result"]["tools"].is_array());
        }
        assert_ends_well(server);
    }
}

mod concurrency {
    use super::*;

    #[test]
    fn a_read_is_answered_while_an_edit_waits() {
        for way in WAYS {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server = folder.serve_with(&["--timeout=300", way]);
            let held = folder.lock("a.txt");
            let edit = server.send_tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
            let plain = server.send("edit_file", json!({ "name": "a.txt", "append": "three" }));
            // The next answers are to what comes after.
            assert_eq!(
                server.text("read_file", json!({ "name": "a.txt" })),
                "File: a.txt (1 lines)\n\none"
            );
            assert_eq!(
                server.request("read_file", json!({ "name": "a.txt" }))["result"]["content"],
                "one"
            );
            assert_eq!(
                server.request("tools/list", json!({}))["result"]["tools"][0]["name"],
                "list_files"
            );
            server.text("edit_file", json!({ "name": "b.txt", "append": "x" }));
            assert_alive(&mut server);
            drop(held);
            server.receive_all(&[edit, plain]);
            assert_eq!(folder.read("a.txt"), "one\ntwo\nthree\n");
            assert_ends_well(server);
        }
    }

    /// A call that is alone is run by the thread that reads. When it takes long another one reads on, each time.
    #[test]
    fn a_call_that_takes_long_keeps_nobody_from_being_heard() {
        for durability in ["none", "data"] {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server =
                folder.serve_with(&["--timeout=300", &format!("--durability={durability}")]);
            // It shows that this disk is quick. Only then are edits with `data` run by the thread that reads.
            server.text("edit_file", json!({ "name": "b.txt", "append": "x" }));
            let tool = |server: &mut Server, edit| server.send_tool("edit_file", edit);
            let plain = |server: &mut Server, edit| server.send("edit_file", edit);
            for send in [tool, plain, tool] {
                assert_alive(&mut server);
                let held = folder.lock("a.txt");
                let given_up = send(&mut server, json!({ "name": "a.txt", "append": "given up" }));
                std::thread::sleep(Duration::from_millis(50));
                assert_alive(&mut server);
                let kept = send(&mut server, json!({ "name": "a.txt", "append": "kept" }));
                server.notify("notifications/cancelled", json!({ "requestId": given_up }));
                assert_alive(&mut server);
                drop(held);
                assert_eq!(server.receive()["id"], kept);
            }
            assert_eq!(folder.read("a.txt"), "one\nkept\nkept\nkept\n");
            assert_ends_well(server);
        }
    }

    #[test]
    fn edits_of_one_file_are_made_in_order_of_arrival() {
        let folder = Folder::new();
        folder.write("a.txt", "start\n");
        let mut server = folder.serve_with(&["--timeout=300", "--durability=none"]);
        let held = folder.lock("a.txt");
        let ids: Vec<_> = (0..200)
            .map(|number| {
                let edit = json!({ "name": "a.txt", "append": format!("{number}") });
                match number % 3 {
                    0 => server.send("edit_file", edit),
                    1 => server.send_tool("edit_file", edit),
                    _ => server.send(
                        "tools/call",
                        modern(json!({ "name": "edit_file", "arguments": edit })),
                    ),
                }
            })
            .collect();
        drop(held);
        server.receive_all(&ids);
        let expected: Vec<_> = (0..200).map(|number| number.to_string()).collect();
        assert_eq!(folder.read("a.txt").lines().skip(1).collect::<Vec<_>>(), expected);
        assert_ends_well(server);
    }

    #[test]
    fn a_client_that_never_reads_stderr_does_not_stall_the_server() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--log=debug"]);
        // Far more lines than the pipe and every buffer hold.
        for _ in 0..40 {
            let ids: Vec<_> =
                (0..100).map(|_| server.send("read_file", json!({ "name": "a" }))).collect();
            for answer in server.receive_all(&ids) {
                fault(&answer, -32001);
            }
        }
        let stderr = assert_ends_well(server);
        // Every line is whole, and what was dropped is counted.
        let lines = log_lines(&stderr);
        let count = |line: &Value| 1 + line["lines_dropped_before"].as_u64().unwrap_or(0);
        let calls: u64 = lines.iter().skip(1).map(count).sum();
        assert!(lines.len() < 4001, "nothing was dropped: the test proves nothing");
        assert!(calls <= 4000, "{calls}");
    }
}

mod cancellation {
    use super::*;

    /// Cancels a call that waits for the lock, at the head of the file's queue or behind it.
    fn check(send: &dyn Fn(&mut Server, &str) -> i64) {
        for way in WAYS {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server = folder.serve_with(&["--timeout=300", way]);
            let held = folder.lock("a.txt");
            let first = send(&mut server, "head");
            let kept = send(&mut server, "kept");
            let second = send(&mut server, "behind");
            // All three have arrived when this is answered.
            server.text("read_file", json!({ "name": "a.txt" }));
            for id in [second, first] {
                server.notify(
                    "notifications/cancelled",
                    json!({ "requestId": id, "reason": "changed my mind" }),
                );
            }
            assert_alive(&mut server);
            assert_eq!(folder.read("a.txt"), "one\n");
            drop(held);
            let answer = server.receive();
            assert_eq!(answer["id"], kept, "{answer}");
            server.text("edit_file", json!({ "name": "a.txt", "append": "next" }));
            assert_eq!(folder.read("a.txt"), "one\nkept\nnext\n");
            // Cancelling what is answered already does nothing, and a cancelled id is free again after a moment.
            server.notify("notifications/cancelled", json!({ "requestId": kept }));
            let line = json!({ "jsonrpc": "2.0", "id": first, "method": "ping" }).to_string();
            let until = Instant::now() + HANG;
            let mut answer = server.exchange(&line);
            while answer["error"]["code"] == -32600 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
                answer = server.exchange(&line);
            }
            assert_eq!(answer["result"], json!({}), "{answer}");
            let stderr = assert_ends_well(server);
            let message = |line: &&Value| line["message"] == "cancelled";
            assert_eq!(log_lines(&stderr).iter().filter(message).count(), 2, "{stderr}");
        }
    }

    #[test]
    fn a_waiting_tool_call_is_taken_back() {
        check(&|server, text| {
            server.send_tool("edit_file", json!({ "name": "a.txt", "append": text }))
        });
    }

    #[test]
    fn a_waiting_call_without_handshake_is_taken_back() {
        check(&|server, text| {
            let call =
                json!({ "name": "edit_file", "arguments": { "name": "a.txt", "append": text } });
            server.send("tools/call", modern(call))
        });
    }

    #[test]
    fn a_waiting_plain_method_is_taken_back() {
        check(&|server, text| server.send("edit_file", json!({ "name": "a.txt", "append": text })));
    }
}

mod ending {
    use super::*;

    #[test]
    fn a_last_line_without_a_line_break_is_answered() {
        let folder = Folder::new();
        for method in ["ping", "list_files", "tools/list"] {
            let mut server = folder.serve();
            let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            server.send_bytes(line.to_string().as_bytes());
            server.close_input();
            assert_eq!(server.receive()["id"], 1, "{method}");
            assert_ends_well(server);
        }
        let mut server = folder.serve();
        server.send_bytes(b"{");
        server.close_input();
        fault(&server.receive(), -32700);
        assert_ends_well(server);
    }

    #[test]
    fn no_input_at_all_is_a_good_end() {
        let folder = Folder::new();
        assert_ends_well(folder.serve());
    }

    #[test]
    fn pending_calls_are_answered_after_the_end_of_input() {
        let folder = Folder::new();
        let mut server = folder.serve_with(&["--durability=none"]);
        let ids: Vec<_> = (0..100)
            .map(|number| {
                let edit = json!({ "name": "a.txt", "append": format!("{number}"), "create_if_missing": true });
                match number % 2 {
                    0 => server.send("edit_file", edit),
                    _ => server.send_tool("edit_file", edit),
                }
            })
            .collect();
        server.close_input();
        for answer in server.receive_all(&ids) {
            assert!(answer["result"].is_object(), "{answer}");
        }
        assert_ends_well(server);
        assert_eq!(folder.read("a.txt").lines().count(), 100);
    }

    /// A call that waits for a lock when the server has to go is refused, and nothing is written later.
    fn check_refused(leave: &dyn Fn(&mut Server)) {
        for way in WAYS {
            let folder = Folder::new();
            folder.write("a.txt", "one\n");
            let mut server = folder.serve_with(&["--timeout=300", way]);
            let held = folder.lock("a.txt");
            let first = server.send_tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
            let second = server.send("edit_file", json!({ "name": "a.txt", "append": "three" }));
            assert_alive(&mut server);
            leave(&mut server);
            let answers = server.receive_all(&[first, second]);
            let message = "The server is stopping; nothing was written";
            assert_eq!(failure(&answers[0], -32014), format!("Error: {message}"));
            assert_eq!(fault(&answers[1], -32014), message);
            let (status, rest, _) = server.wait();
            assert!(status.success(), "{status}");
            assert_eq!(rest, "");
            drop(held);
            assert_eq!(folder.read("a.txt"), "one\n");
            assert_eq!(folder.names(), ["a.txt"]);
        }
    }

    #[test]
    fn at_the_end_of_input_calls_that_wait_are_refused() {
        check_refused(&Server::close_input);
    }

    #[test]
    #[cfg(unix)]
    fn at_sigterm_calls_that_wait_are_refused() {
        check_refused(&|server| server.signal(rustix::process::Signal::TERM));
    }

    #[test]
    #[cfg(unix)]
    fn at_sigint_calls_that_wait_are_refused() {
        check_refused(&|server| server.signal(rustix::process::Signal::INT));
    }

    #[test]
    #[cfg(unix)]
    fn a_signal_ends_an_idle_server_whose_input_stays_open() {
        use rustix::process::Signal;
        for signal in [Signal::TERM, Signal::INT] {
            let folder = Folder::new();
            let mut server = folder.serve();
            assert_alive(&mut server);
            server.signal(signal);
            let (status, rest, _) = server.wait();
            assert!(status.success(), "{signal:?} {status}");
            assert_eq!(rest, "");
        }
    }
}

#[test]
fn a_lock_that_stays_taken_times_out() {
    for way in WAYS {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve_with(&["--timeout=1", way]);
        let held = folder.lock("a.txt");
        let first = server.send_tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
        let second = server.send("edit_file", json!({ "name": "a.txt", "append": "three" }));
        let answers = server.receive_all(&[first, second]);
        let message = "Failed to acquire file lock within timeout";
        assert_eq!(failure(&answers[0], -32014), format!("Error: {message}"));
        assert!(texts(&answers[0])[1].contains("nothing was written"), "{}", answers[0]);
        // Whose turn comes when its time is up has timed out one way or the other.
        fault(&answers[1], -32014);
        drop(held);
        server.text("edit_file", json!({ "name": "a.txt", "append": "four" }));
        assert_eq!(folder.read("a.txt"), "one\nfour\n");
        assert_ends_well(server);
    }
}
