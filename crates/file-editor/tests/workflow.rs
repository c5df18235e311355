//! The contract's own end-to-end test, line by line: `test_complete_mcp_workflow` of 004 §6.4.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::Folder;
use serde_json::{Value, json};

#[test]
fn complete_mcp_workflow() {
    // Setup
    let folder = Folder::new();
    let mut server = folder.serve();

    // Test MCP initialization sequence
    let init = server.request(
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

    // Send initialized notification
    server.notify("notifications/initialized", json!({}));

    // Test tools listing with annotations
    let listed = server.request("tools/list", json!({}));
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
    let list = server.text("list_files", json!({}));
    assert!(list.contains("Total files: 0"), "{list}");

    let created = server.text(
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

    let list = server.text("list_files", json!({}));
    assert!(list.contains("Total files: 1"), "{list}");
    assert!(list.contains("name: test.txt"), "{list}");

    let read = server.text("read_file", json!({ "name": "test.txt" }));
    assert!(read.contains("line1"), "{read}");
    assert!(read.contains("line5"), "{read}");

    let edit = json!({ "line": 2, "content": "modified line 3", "operation": "replace" });
    server.text("edit_file", json!({ "name": "test.txt", "edits": [edit] }));

    let range = json!({ "name": "test.txt", "start_line": 2, "end_line": 2 });
    let verified = server.text("read_file", range);
    assert!(verified.contains("modified line 3"), "{verified}");
    assert_eq!(folder.read("test.txt"), "line1\nline2\nmodified line 3\nline4\nline5\n");

    // Test error handling through tool results
    let error = server.error("read_file", json!({ "name": "missing.txt" }));
    assert!(error.contains("Error: File 'missing.txt' not found"), "{error}");

    // Cleanup
    let (status, rest, _) = server.finish();
    assert!(status.success());
    assert_eq!(rest, "");
    assert_eq!(folder.names(), ["test.txt"]);
}

fn assert_success(answer: &Value) {
    assert!(answer.get("error").is_none(), "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
}
