//! Every version of MCP, with a handshake and without one.

use super::*;

#[test]
fn every_version_with_a_handshake_is_echoed() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    for path in MCP {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut client = server.connect();
            let request = Request::mcp("initialize", initialize(version)).to(path);
            let response = client.send(&request);
            assert_eq!(response.status, 200, "{response}");
            let answer = response.json();
            assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
            assert_eq!(answer["result"]["serverInfo"]["name"], "file-editing-server");
            assert_eq!(
                answer["result"]["capabilities"],
                json!({ "prompts": {}, "resources": {}, "tools": {} })
            );

            // With the header, as newer clients send it, and without.
            let list = Request::mcp("tools/list", json!({})).to(path);
            let call = Request::tool("read_file", json!({ "name": "a.txt" })).to(path);
            for (list, call) in [
                (list.clone(), call.clone()),
                (
                    list.with("MCP-Protocol-Version", version),
                    call.with("MCP-Protocol-Version", version),
                ),
            ] {
                let response = client.send(&list);
                assert_eq!(response.status, 200, "{version}: {response}");
                let answer = response.json();
                assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 3);
                for newer in ["resultType", "ttlMs", "cacheScope"] {
                    assert!(answer["result"].get(newer).is_none(), "{version}: {newer}");
                }
                let answer = client.send(&call).json();
                assert_eq!(texts(&answer)[0], "File: a.txt (1 lines)\n\none");
                assert!(answer["result"].get("resultType").is_none(), "{version}");
            }
            let response = client.send(&Request::mcp("ping", json!({})));
            assert_eq!(response.json()["result"], json!({}));
        }
    }
}

#[test]
fn an_unknown_version_is_answered_with_the_newest_that_has_a_handshake() {
    let folder = Folder::new();
    let server = folder.http();
    for version in ["2023-01-01", "2026-07-28", "2099-12-31", "", "nonsense"] {
        let response = server.send(&Request::mcp("initialize", initialize(version)));
        assert_eq!(response.status, 200, "{version:?}: {response}");
        let answer = response.json();
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{version:?}: {answer}");
    }
}

#[test]
fn the_version_without_a_handshake_is_served() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let mut client = server.connect();
    for path in MCP {
        let response = client.send(&Request::modern("server/discover", json!({})).to(path));
        assert_eq!(response.status, 200, "{response}");
        let answer = response.json();
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{answer}");
        let versions = result["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!("2026-07-28")), "{answer}");

        let response = client.send(&Request::modern("tools/list", json!({})).to(path));
        let answer = response.json();
        let result = &answer["result"];
        assert_eq!(result["tools"].as_array().unwrap().len(), 3);
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].is_u64(), "{answer}");
        assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap()));

        let call = |name: &str| json!({ "name": "read_file", "arguments": { "name": name } });
        let answer = client.send(&Request::modern("tools/call", call("a.txt")).to(path)).json();
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(texts(&answer)[0], "File: a.txt (1 lines)\n\none");
        let answer = client.send(&Request::modern("tools/call", call("b.txt")).to(path)).json();
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(failure(&answer, -32001), "Error: File 'b.txt' not found");
    }
}

/// Headers that differ from the body: the request is refused, and nothing is done.
#[test]
fn headers_that_contradict_the_body_are_refused() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let arguments = json!({ "name": "a.txt", "append": "x" });
    let call = || {
        let call = json!({ "name": "edit_file", "arguments": arguments });
        Request::modern("tools/call", call)
    };
    let wrong = [
        call().with("Mcp-Method", "tools/list"),
        call().with("Mcp-Method", "TOOLS/CALL"),
        call().with("Mcp-Method", ""),
        call().without("Mcp-Method"),
        call().with("Mcp-Name", "read_file"),
        call().with("Mcp-Name", "Edit_File"),
        call().without("Mcp-Name"),
        call().with("MCP-Protocol-Version", "2025-11-25"),
        call().without("MCP-Protocol-Version"),
        Request::modern("tools/list", json!({})).with("Mcp-Method", "tools/call"),
        Request::modern("tools/list", json!({})).without("Mcp-Method"),
        // Before it is said that there is no such thing.
        Request::modern("no/such", json!({})).with("Mcp-Method", "tools/list"),
        Request::modern("tools/call", json!({ "name": "no_such" })).with("Mcp-Method", "ping"),
        Request::modern("tools/call", json!({ "name": "no_such" })).with("Mcp-Name", "other"),
    ];
    for (number, request) in wrong.iter().enumerate() {
        let response = server.send(request);
        response.refusal(400, -32020);
        assert_eq!(response.json()["id"], 1, "{number}: {response}");
    }
    assert_eq!(folder.read("a.txt"), "one\n");
    // Nobody waits behind what was refused.
    assert_eq!(server.send(&call()).json()["result"]["isError"], false);
    assert_eq!(folder.read("a.txt"), "one\nx\n");
}

#[test]
fn versions_nobody_knows_are_refused() {
    let folder = Folder::new();
    let server = folder.http();
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-12-31".into();
    let request = Request::mcp("tools/list", params)
        .with("MCP-Protocol-Version", "2099-12-31")
        .with("Mcp-Method", "tools/list");
    let response = server.send(&request);
    response.refusal(400, -32022);
    let answer = response.json();
    let supported = answer["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!("2026-07-28")), "{answer}");
    // A header alone, from a client that shook hands.
    for version in ["1999-01-01", "nonsense"] {
        let request = proper("/mcp").with("MCP-Protocol-Version", version);
        let response = server.send(&request);
        assert_eq!(response.status, 400, "{response}");
        assert!(response.json()["error"]["code"].is_i64(), "{response}");
    }
    assert_alive(&server);
}

/// Codes stay what the contract says, though the newest version gives -32002 another meaning.
#[test]
fn codes_are_the_same_in_every_version() {
    let folder = Folder::new();
    let server = folder.http_with(&["--read-only", "--tool-errors=jsonrpc"]);
    let call = json!({ "name": "edit_file", "arguments": { "name": "a.txt", "append": "x" } });
    server.send(&Request::mcp("tools/call", call.clone())).refusal(200, -32002);
    server.send(&Request::modern("tools/call", call)).refusal(200, -32002);
}

#[test]
fn all_eras_and_plain_methods_mix_on_one_connection() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let mut client = server.connect();
    let call = json!({ "name": "read_file", "arguments": { "name": "a.txt" } });
    for _ in 0..3 {
        let read = client.rest("read_file", json!({ "name": "a.txt" }));
        assert_eq!(read["content"], "one");
        let answer = client.send(&Request::mcp("tools/call", call.clone())).json();
        assert_eq!(answer["result"].get("resultType"), None, "{answer}");
        let answer = client.send(&Request::modern("tools/call", call.clone())).json();
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        client.send(&Request::mcp("initialize", initialize("2024-11-05")));
        assert_eq!(client.send(&Request::new("GET", "/health")).status, 200);
    }
}

/// Ids are whatever the client says, and two clients may say the same.
#[test]
fn ids_are_echoed() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http_with(&["--timeout=300"]);
    for id in [json!(0), json!(-1), json!("x"), json!(""), json!(9_007_199_254_740_993_i64)] {
        for method in ["ping", "tools/list", "nope"] {
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
            let response = server.send(&Request::post("/mcp", message.to_string()));
            assert_eq!(response.json()["id"], id, "{method}");
        }
    }
    let held = folder.lock("a.txt");
    let edit = Request::tool("edit_file", json!({ "name": "a.txt", "append": "x" }));
    let mut clients = [server.connect(), server.connect(), server.connect()];
    for client in &mut clients {
        client.write(&edit.bytes()).unwrap();
    }
    server.settle();
    // Nor can one take back what is another's.
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(server.send(&Request::post("/mcp", cancel.to_string())).status, 202);
    drop(held);
    for client in &mut clients {
        let answer = client.receive().unwrap().json();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(false)));
    }
    assert_eq!(folder.read("a.txt"), "one\nx\nx\nx\n");
}
