//! The contract's own end-to-end test, line by line: `test_complete_mcp_workflow` of 004 §6.4, on stdio and over HTTP,
//! with a handshake and without one.

use crate::harness::Folder;
use serde_json::{Value, json};

/// A request and its answer, whatever carries them.
type Call<'a> = &'a mut dyn FnMut(&str, Value) -> Value;

#[test]
fn complete_mcp_workflow_on_stdio() {
    let folder = Folder::new();
    let mut server = folder.serve();
    shake_hands(&mut |method, params| server.request(method, params));
    server.notify("notifications/initialized", json!({}));
    work(&folder, &mut |method, params| server.request(method, params));
    let (status, rest, _) = server.finish();
    assert!(status.success());
    assert_eq!(rest, "");
    assert_eq!(folder.names(), ["test.txt"]);
}

#[test]
fn complete_mcp_workflow_over_http() {
    let folder = Folder::new();
    let server = folder.http();
    let mut mcp = server.mcp();
    shake_hands(&mut |method, params| mcp.request(method, params));
    mcp.notify("notifications/initialized", json!({}));
    work(&folder, &mut |method, params| mcp.request(method, params));
    server.stop();
    assert_eq!(folder.names(), ["test.txt"]);
}

/// In 2026-07-28 there is no handshake: a server is asked what it is, if at all.
#[test]
fn complete_mcp_workflow_over_http_without_a_handshake() {
    let folder = Folder::new();
    let server = folder.http();
    let mut mcp = server.modern();
    let discovered = mcp.request("server/discover", json!({}));
    assert_success(&discovered);
    assert!(!discovered["result"]["capabilities"]["tools"].is_null());
    let info = &discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "file-editing-server", "{discovered}");
    work(&folder, &mut |method, params| mcp.request(method, params));
    server.stop();
    assert_eq!(folder.names(), ["test.txt"]);
}

fn shake_hands(call: Call) {
    // Test MCP initialization sequence
    let init = call(
        "initialize",
        json!({
            "protocolVersion": "2024-11-05",
            "capabilities": { "tools": {} },
            "clientInfo": { "name": "test-client", "version": "1.0.0" },
        }),
    );
    assert_success(&init);
    assert_eq!(init["result"]["protocolVersion"], "2024-11-05");
    assert!(!init["result"]["capabilities"]["tools"].is_null());
    let info = &init["result"]["serverInfo"];
    assert_eq!(info["name"], "file-editing-server");
    assert_eq!(info["version"], "1.0.0");
    assert_eq!(info["description"], "High-performance file editing server for AI agents");
}

fn work(folder: &Folder, call: Call) {
    // Test tools listing with annotations
    let listed = call("tools/list", json!({}));
    assert_success(&listed);
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for (tool, name) in tools.iter().zip(["list_files", "read_file", "edit_file"]) {
        assert_eq!(tool["name"], name);
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        assert!(tool["annotations"]["destructiveHint"].is_boolean(), "{tool}");
    }

    // Verify tool annotations are correct
    let find = |name| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(find("list_files")["annotations"]["readOnlyHint"], true);
    assert_eq!(find("list_files")["annotations"]["destructiveHint"], false);
    assert_eq!(find("edit_file")["annotations"]["readOnlyHint"], false);
    assert_eq!(find("edit_file")["annotations"]["destructiveHint"], false);

    // Test file operations workflow
    let list = text(call, "list_files", json!({}));
    assert!(list.contains("Total files: 0"), "{list}");

    let created = text(
        call,
        "edit_file",
        json!({
            "name": "test.txt",
            "edits": [
                { "line": 0, "content": "line1", "operation": "insert" },
                { "line": 1, "content": "line2", "operation": "insert" },
                { "line": 2, "content": "line3", "operation": "insert" },
                { "line": 3, "content": "line4", "operation": "insert" },
                { "line": 4, "content": "line5", "operation": "insert" },
            ],
        }),
    );
    assert!(created.contains("File created: true"), "{created}");
    assert_eq!(folder.read("test.txt"), "line1\nline2\nline3\nline4\nline5\n");

    let list = text(call, "list_files", json!({}));
    assert!(list.contains("Total files: 1"), "{list}");
    assert!(list.contains("name: test.txt"), "{list}");

    let read = text(call, "read_file", json!({ "name": "test.txt" }));
    assert!(read.contains("line1"), "{read}");
    assert!(read.contains("line5"), "{read}");

    let edit = json!({ "line": 2, "content": "modified line 3", "operation": "replace" });
    text(call, "edit_file", json!({ "name": "test.txt", "edits": [edit] }));

    let range = json!({ "name": "test.txt", "start_line": 2, "end_line": 2 });
    let verified = text(call, "read_file", range);
    assert!(verified.contains("modified line 3"), "{verified}");
    assert_eq!(folder.read("test.txt"), "line1\nline2\nmodified line 3\nline4\nline5\n");

    // Test error handling through tool results
    let error = error(call, "read_file", json!({ "name": "missing.txt" }));
    assert!(error.contains("Error: File 'missing.txt' not found"), "{error}");
}

/// Calls a tool that must succeed; its first text.
fn text(call: Call, name: &str, arguments: Value) -> String {
    answer(call, name, &arguments, false)
}

/// Calls a tool that must fail; its first text.
fn error(call: Call, name: &str, arguments: Value) -> String {
    answer(call, name, &arguments, true)
}

fn answer(call: Call, name: &str, arguments: &Value, is_error: bool) -> String {
    let answer = call("tools/call", json!({ "name": name, "arguments": arguments }));
    assert_success(&answer);
    assert_eq!(answer["result"]["isError"], is_error, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

fn assert_success(answer: &Value) {
    assert!(answer.get("error").is_none(), "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
}
