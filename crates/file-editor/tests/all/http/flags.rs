//! Flags of the command line that change what HTTP clients see.

use super::*;

#[test]
fn read_only_refuses_every_edit() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http_with(&["--read-only"]);
    let edit = json!({ "name": "a.txt", "append": "x" });
    for mut mcp in [server.mcp(), server.modern()] {
        let listed = mcp.request("tools/list", json!({}));
        let names: Vec<_> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["list_files", "read_file"]);
        let answer = mcp.tool("edit_file", edit.clone());
        assert!(failure(&answer, -32002).contains("Permission denied"), "{answer}");
        assert!(answer["result"]["content"][1].to_string().contains("--read-only"), "{answer}");
        mcp.text("read_file", json!({ "name": "a.txt" }));
    }
    let message = server.send(&Request::post("/edit_file", edit.to_string())).refusal(404, -32601);
    assert_eq!(message, "Not found: the server was started with --read-only");
    assert_eq!(server.rest("read_file", json!({ "name": "a.txt" }))["content"], "one");
    assert_eq!(folder.read("a.txt"), "one\n");
}

#[test]
fn a_plain_method_is_served_only_with_the_flat_tools() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http_with(&["--tools=text,code"]);
    for (method, arguments) in [
        ("list_files", json!({})),
        ("read_file", json!({ "name": "a.txt" })),
        ("edit_file", json!({ "name": "a.txt", "append": "x" })),
    ] {
        let message = server
            .send(&Request::post(&format!("/{method}"), arguments.to_string()))
            .refusal(404, -32601);
        assert_eq!(message, "Not found: the server was started without --tools=flat");
    }
    assert_eq!(server.send(&Request::post("/other", "{}")).refusal(404, -32601), "Not found");
    assert_eq!(folder.read("a.txt"), "one\n");
}

#[test]
fn failing_tools_can_answer_as_json_rpc() {
    let folder = Folder::new();
    let server = folder.http_with(&["--tool-errors=jsonrpc"]);
    for mut mcp in [server.mcp(), server.modern()] {
        let answer = mcp.tool("read_file", json!({ "name": "missing.txt" }));
        assert_eq!(fault(&answer, -32001), "File 'missing.txt' not found");
        let answer = mcp.tool("read_file", json!({ "nam": "missing.txt" }));
        assert_eq!(fault(&answer, -32602), "Invalid params");
        assert_eq!(answer["error"]["data"]["tool"], "read_file");
        assert!(answer["error"]["data"]["validation_errors"].is_array(), "{answer}");
    }
    // Dialect B stays as it is.
    let answer = server.rest("read_file", json!({ "name": "missing.txt" }));
    assert_eq!((&answer["isError"], &answer["error"]["code"]), (&json!(true), &json!(-32001)));
}

#[test]
fn structured_content_can_be_left_out() {
    let folder = Folder::new();
    let server = folder.http_with(&["--structured=off"]);
    let answer = server.mcp().tool("edit_file", json!({ "name": "a.txt", "append": "x" }));
    assert_eq!(answer["result"]["isError"], false);
    assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
    assert_eq!(server.rest("list_files", json!({}))["total_count"], 1);
}

#[test]
#[cfg(unix)]
fn the_log_cuts_long_ids() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http_with(&["--log=debug"]);
    let id = "an id ".repeat(5000);
    let send = |method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = server.send(&Request::post("/mcp", message.to_string()));
        assert_eq!(response.json()["id"], id);
    };
    send("tools/call", json!({ "name": "read_file", "arguments": { "name": "a.txt" } }));
    send("tools/call", json!({ "name": "nope" }));
    send("nope", json!({}));
    let lines = log_lines(&server.stop());
    let ids: Vec<_> = lines.iter().filter_map(|line| line["request_id"].as_str()).collect();
    assert_eq!(ids, [&id[..80]; 3]);
}

#[test]
#[cfg(unix)]
fn every_call_has_its_line_in_the_log() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let mut client = server.connect();
    client.rest("read_file", json!({ "name": "a.txt" }));
    client.rest("edit_file", json!({ "name": "a.txt", "append": "two" }));
    client.rest("read_file", json!({ "name": "missing.txt" }));
    client.send(&Request::tool("list_files", json!({})));
    client.send(&Request::modern("tools/call", json!({ "name": "list_files" })));
    drop(client);
    let lines = log_lines(&server.stop());
    assert_eq!((&lines[0]["event"], &lines[0]["transport"]), (&json!("ready"), &json!("http")));
    let facts = ["operation", "file", "outcome", "code"];
    let calls = lines.iter().filter(|line| line["event"] == "call");
    let found: Vec<Value> = calls.map(|line| json!(facts.map(|fact| &line[fact]))).collect();
    let expected = [
        json!(["read_file", "a.txt", "ok", null]),
        json!(["edit_file", "a.txt", "ok", null]),
        json!(["read_file", "missing.txt", "error", -32001]),
        json!(["list_files", null, "ok", null]),
        json!(["list_files", null, "ok", null]),
    ];
    assert_eq!(found, expected);
}
