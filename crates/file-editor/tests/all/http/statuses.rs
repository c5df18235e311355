//! Which status and which error a request is answered with.

use super::*;

#[test]
fn other_methods_are_not_allowed() {
    let folder = Folder::new();
    let server = folder.http();
    for path in CALLS {
        for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            for request in [
                Request::new(method, path),
                Request::new(method, path)
                    .with("Origin", "http://localhost:3000")
                    .with("Access-Control-Request-Method", "POST"),
                Request::new(method, path).with("Accept", "text/event-stream"),
            ] {
                let response = server.send(&request);
                assert_eq!(refused(&response, 405, -32601), "Method not allowed");
                assert_eq!(response.header("Allow"), Some("POST"), "{method} {path}");
            }
        }
        let response = server.send(&Request::new("HEAD", path));
        assert_eq!(response.status, 405, "{path}");
        assert_eq!(response.header("Allow"), Some("POST"), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let response = server.send(&Request::new(method, "/health"));
        assert_eq!(refused(&response, 405, -32601), "Method not allowed");
        let allow = response.header("Allow").unwrap();
        let mut allowed: Vec<_> = allow.split(',').map(str::trim).collect();
        allowed.sort_unstable();
        assert_eq!(allowed, ["GET", "HEAD"], "{method}");
    }
}

#[test]
fn other_paths_are_not_found() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let server = folder.http();
    let paths = [
        "/a.txt",
        "/mcp/",
        "//mcp",
        "/MCP",
        "/Read_File",
        "/read_file/a.txt",
        "/write_file",
        "/health/x",
        "/sse",
        "/.well-known/oauth-protected-resource",
        "/%6dcp",
        "/..%2f..%2fetc%2fpasswd",
        "/../../etc/passwd",
    ];
    for path in paths {
        for request in [Request::new("GET", path), Request::post(path, "{}")] {
            assert_eq!(refused(&server.send(&request), 404, -32601), "Not found", "{path}");
        }
    }
    // A query is no part of the path.
    assert_eq!(server.send(&proper("/list_files").to("/list_files?a=b")).status, 200);
}

#[test]
fn health() {
    let folder = Folder::new();
    let server = folder.http();
    let mut client = server.connect();
    let response = client.send(&Request::new("GET", "/health"));
    assert_eq!((response.status, response.json()), (200, json!({ "status": "ok" })));
    let length = response.body.len().to_string();
    let response = client.send(&Request::new("HEAD", "/health"));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("Content-Type"), Some("application/json; charset=utf-8"));
    assert_eq!(response.header("Content-Length"), Some(length.as_str()));
    // It had no body: the next answer begins where it ended.
    assert_eq!(client.send(&Request::new("GET", "/health")).status, 200);
}

#[test]
fn the_media_type_must_be_json() {
    let folder = Folder::new();
    let server = folder.http();
    let wrong = [
        "text/plain",
        "text/json",
        "application/json5",
        "application/jsonl",
        "application/json-rpc",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/json; charset=\"iso-8859-1\"",
        "application/json; charset=",
        "application/json, text/plain",
        "",
        "json",
    ];
    let right = [
        "application/json",
        "application/json;charset=utf-8",
        "application/json; charset=utf-8",
        "application/json; charset=UTF-8",
        "application/json; charset=\"utf-8\"",
        "Application/JSON ; Charset=Utf-8",
        "application/json; profile=x",
    ];
    for path in CALLS {
        let message = "Content-Type must be application/json";
        for kind in wrong {
            let response = server.send(&proper(path).with("Content-Type", kind));
            assert_eq!(refused(&response, 400, -32600), message, "{path} {kind:?}");
        }
        let response = server.send(&proper(path).without("Content-Type"));
        assert_eq!(refused(&response, 400, -32600), message, "{path}");
        for kind in right {
            let response = server.send(&proper(path).with("Content-Type", kind));
            assert_eq!(response.status, 200, "{path} {kind:?}: {response}");
            response.json();
        }
    }
}

#[test]
fn any_accept_gets_json() {
    let folder = Folder::new();
    let server = folder.http();
    let accepted = [
        "application/json",
        "*/*",
        "text/event-stream",
        "application/json, text/event-stream",
        "text/event-stream, application/json;q=0.1",
        "application/*",
        "text/html",
        "",
    ];
    for path in CALLS {
        assert!(server.send(&proper(path)).json().is_object(), "{path}");
        for accept in accepted {
            let response = server.send(&proper(path).with("Accept", accept));
            assert_eq!(response.status, 200, "{path} {accept:?}: {response}");
            assert!(response.json().is_object(), "{path} {accept:?}");
        }
    }
    for accept in accepted {
        let request = Request::modern("tools/list", json!({})).with("Accept", accept);
        let response = server.send(&request);
        assert_eq!(response.status, 200, "{accept:?}: {response}");
        assert_eq!(response.json()["result"]["tools"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn broken_json_is_a_parse_error() {
    let folder = Folder::new();
    let server = folder.http();
    let broken: [&[u8]; 8] = [
        b"",
        b"{",
        b"nonsense",
        b"{}{}",
        b"{'name':'a.txt'}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}",
        b"\0\0",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
    ];
    for path in CALLS {
        let mut client = server.connect();
        for body in broken {
            let response = client.send(&Request::post(path, body));
            assert_eq!(response.refusal(400, -32700), "Parse error", "{path} {body:?}");
            if MCP.contains(&path) {
                assert_eq!(response.json()["id"], Value::Null, "{response}");
                assert_eq!(response.json()["jsonrpc"], "2.0", "{response}");
            }
        }
        let deep = "[".repeat(100_000);
        let response = client.send(&Request::post(path, deep));
        assert_eq!(response.status, 400, "{path}: {response}");
        response.json();
    }
    assert_alive(&server);
}

#[test]
fn what_is_json_but_no_message_is_an_invalid_request() {
    let folder = Folder::new();
    let server = folder.http();
    for path in MCP {
        for (body, id) in crate::harness::invalid_requests() {
            let response = server.send(&Request::post(path, body));
            assert_eq!(response.refusal(400, -32600), "Invalid Request", "{body}");
            assert_eq!(response.json()["id"], id, "{body}");
        }
    }
    for path in REST {
        for body in ["[]", "5", "null", r#""a.txt""#, "true"] {
            let response = server.send(&Request::post(path, body));
            assert_eq!(refused(&response, 400, -32600), "Invalid Request", "{path} {body}");
        }
    }
    assert_alive(&server);
}

#[test]
fn parameters_that_do_not_fit_are_named_with_the_id() {
    let folder = Folder::new();
    let server = folder.http();
    let requests = [
        ("tools/call", "{}"),
        ("tools/call", "[]"),
        ("tools/call", "7"),
        ("tools/call", r#"{"name":7}"#),
        ("tools/call", r#"{"name":"read_file","arguments":"a.txt"}"#),
        ("tools/call", r#"{"name":"read_file","arguments":["a.txt"]}"#),
        ("tools/call", r#"{"name":"nope","arguments":{}}"#),
        ("tools/call", r#"{"name":"Read_File","arguments":{}}"#),
        ("initialize", "{}"),
        ("initialize", "7"),
    ];
    for (method, params) in requests {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{params}}}"#);
        let response = server.send(&Request::post("/mcp", &body));
        let answer = response.json();
        fault(&answer, -32602);
        assert_eq!(answer["id"], "x", "{body}");
    }
    let response = server.send(&Request::tool("nope", json!({})));
    assert_eq!(response.refusal(200, -32602), "Unknown tool: nope");
    assert_alive(&server);
}

/// Half of a character is JSON, and no text. Where nobody reads it, it does no harm.
#[test]
fn half_of_a_character_is_refused_where_it_is_read() {
    let folder = Folder::new();
    let server = folder.http();
    let call = |more: &str| {
        let params = format!(r#"{{"name":"list_files","arguments":{{}},{more}}}"#);
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        server.send(&Request::post("/mcp", message))
    };
    for more in [r#""_meta":{"a/\ud800":1}"#, r#""requestState":"\ud800""#, r#""\ud800":1"#] {
        assert_eq!(call(more).refusal(200, -32602), "Invalid params", "{more}");
    }
    for more in [r#""other":"\ud800""#, r#""other":{"\ud800":1}"#, r#""_meta":{}"#] {
        assert_eq!(call(more).json()["result"]["isError"], false, "{more}");
    }
}

#[test]
fn methods_that_are_not_there() {
    let folder = Folder::new();
    let server = folder.http();
    let methods = ["nope", "", "tools", "resources/subscribe", "tasks/list"];
    for method in methods {
        let response = server.send(&Request::mcp(method, json!({})));
        assert_eq!(response.refusal(200, -32601), "Method not found", "{method}");
        assert_eq!(response.json()["id"], 1, "{method}");
    }
    // In the newest version HTTP says so too.
    let removed = ["initialize", "ping", "logging/setLevel"];
    for method in ["nope", "resources/subscribe"].into_iter().chain(removed) {
        let response = server.send(&Request::modern(method, json!({})));
        assert_eq!(response.refusal(404, -32601), "Method not found", "{method}");
        assert_eq!(response.json()["id"], 1, "{method}");
    }
}

#[test]
fn notifications_are_accepted_and_not_answered() {
    let folder = Folder::new();
    let server = folder.http();
    let edit = json!({ "name": "a.txt", "append": "x", "create_if_missing": true });
    let messages = [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/nobody/knows", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": "nonsense" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "edit_file", "params": edit }),
        json!({ "jsonrpc": "2.0", "method": "tools/call", "params": { "name": "edit_file", "arguments": edit } }),
        json!({ "jsonrpc": "2.0", "method": "tools/call" }),
    ];
    for path in MCP {
        let mut client = server.connect();
        for message in &messages {
            let request = Request::post(path, message.to_string());
            for request in [request.clone(), request.with("MCP-Protocol-Version", "2025-11-25")] {
                let response = client.send(&request);
                assert_eq!(response.status, 202, "{message}: {response}");
                assert_eq!(response.body, b"", "{message}: {response}");
                response.check_headers();
            }
        }
        // An answer, though nothing was asked.
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        client.send(&Request::post(path, answer.to_string())).refusal(400, -32600);
        // The connection is where it should be.
        let response = client.send(&Request::mcp("ping", json!({})));
        assert_eq!(response.json()["result"], json!({}));
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn what_is_not_http_is_survived() {
    let folder = Folder::new();
    let server = folder.http();
    let long =
        format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(600_000));
    let many =
        format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(1000));
    let lines: [&[u8]; 6] = [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: x\r\n\r\n{}",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in lines {
        let mut client = server.connect();
        let _ = client.write(bytes);
        if let Ok(response) = client.receive() {
            assert!((400..500).contains(&response.status), "{response}");
        }
        client.assert_closed();
    }
    assert_alive(&server);
}
