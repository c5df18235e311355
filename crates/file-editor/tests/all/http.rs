//! HTTP: every status and its body, who is let in, both protocol eras, the plain methods, large texts both ways.

use crate::harness::http::{Client, HttpServer, Request, Response};
use crate::harness::{Folder, failure, fault, log_lines, modern, texts};
use serde_json::{Value, json};

/// Every path that takes calls.
const CALLS: [&str; 5] = ["/", "/mcp", "/list_files", "/read_file", "/edit_file"];
const MCP: [&str; 2] = ["/", "/mcp"];
const REST: [&str; 3] = ["/list_files", "/read_file", "/edit_file"];

/// A request that this path answers with 200.
fn proper(path: &str) -> Request {
    match path {
        "/" | "/mcp" => Request::mcp("tools/list", json!({})).to(path),
        "/list_files" => Request::post(path, "{}"),
        _ => Request::post(path, r#"{"name":"missing.txt"}"#),
    }
}

fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "test-client", "version": "1.0.0" },
    })
}

fn assert_alive(server: &HttpServer) {
    let response = server.send(&Request::mcp("ping", json!({})));
    assert_eq!((response.status, &response.json()["result"]), (200, &json!({})), "{response}");
}

/// That it is a refusal of the transport: an error and nothing else.
fn refused(response: &Response, status: u16, code: i64) -> String {
    let message = response.refusal(status, code);
    let expected = json!({ "error": { "code": code, "message": message } });
    assert_eq!(response.json(), expected, "{response}");
    message
}

/// Compares without printing megabytes when it fails.
fn assert_same(found: &str, expected: &str, what: &str) {
    let differs =
        found.bytes().zip(expected.bytes()).position(|(found, expected)| found != expected);
    let lengths = (found.len(), expected.len());
    assert!(found == expected, "{what}: lengths {lengths:?}, first difference at {differs:?}");
}

mod statuses {
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
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
        let bodies = [
            (batch, json!(null)),
            ("[]", json!(null)),
            ("5", json!(null)),
            ("null", json!(null)),
            (r#""ping""#, json!(null)),
            ("{}", json!(null)),
            (r#"{"id":1,"method":"ping"}"#, json!(1)),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a")),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, json!(null)),
        ];
        for path in MCP {
            for (body, id) in &bodies {
                let response = server.send(&Request::post(path, body));
                assert_eq!(response.refusal(400, -32600), "Invalid Request", "{body}");
                assert_eq!(response.json()["id"], *id, "{body}");
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
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{params}}}"#);
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
                for request in [request.clone(), request.with("MCP-Protocol-Version", "2025-11-25")]
                {
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
        let long = format!(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
            "x".repeat(600_000)
        );
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
}

mod sizes {
    use super::*;

    const ENVELOPE: usize = 64 << 10;

    /// A call that fits into exactly `size` bytes: blanks are no part of it.
    fn padded(request: &str, size: usize) -> String {
        format!("{}{request}", " ".repeat(size - request.len()))
    }

    fn calls() -> [(&'static str, String); 3] {
        let arguments = json!({ "name": "missing.txt" });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "read_file", "arguments": arguments } });
        [
            ("/mcp", message.to_string()),
            ("/", message.to_string()),
            ("/read_file", arguments.to_string()),
        ]
    }

    #[test]
    fn a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        let folder = Folder::new();
        for megabytes in [1, 10] {
            let server = folder.http_with(&[&format!("--max-size={megabytes}")]);
            let limit = (megabytes << 20) + ENVELOPE;
            for (path, call) in calls() {
                let whole = Request::post(path, padded(&call, limit));
                for request in [whole.clone(), whole.chunked()] {
                    let response = server.send(&request);
                    assert_eq!(response.status, 200, "{path}: {response}");
                    let text = response.json().to_string();
                    assert!(text.contains("File 'missing.txt' not found"), "{path}: {text}");
                }
                let whole = Request::post(path, padded(&call, limit + 1));
                for request in [whole.clone(), whole.chunked()] {
                    let response = server.send(&request);
                    assert_eq!(refused(&response, 413, -32600), "Request too large", "{path}");
                }
            }
            assert_alive(&server);
        }
    }

    #[test]
    fn a_length_that_is_too_large_is_refused_before_anything_is_read() {
        let folder = Folder::new();
        let server = folder.http();
        for path in CALLS {
            for length in [(10 << 20) + ENVELOPE + 1, 100 << 20, usize::MAX >> 1] {
                for request in [proper(path), proper(path).with("Expect", "100-continue")] {
                    let mut client = server.connect();
                    client.write(&request.head(Some(length))).unwrap();
                    // Not one byte of it was sent.
                    let response = client.receive().unwrap();
                    assert_eq!(refused(&response, 413, -32600), "Request too large", "{path}");
                }
            }
        }
        // The contract looks at the size before it looks at the type.
        let mut client = server.connect();
        let request = proper("/mcp").with("Content-Type", "text/plain");
        client.write(&request.head(Some(100 << 20))).unwrap();
        assert_eq!(refused(&client.receive().unwrap(), 413, -32600), "Request too large");
        assert_alive(&server);
    }

    #[test]
    fn a_body_that_is_waited_for_is_asked_for() {
        let folder = Folder::new();
        let server = folder.http();
        for path in CALLS {
            let mut client = server.connect();
            let request = proper(path).with("Expect", "100-continue");
            let bytes = request.bytes();
            let split = bytes.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
            client.write(&bytes[..split]).unwrap();
            assert_eq!(client.receive().unwrap().status, 100, "{path}");
            client.write(&bytes[split..]).unwrap();
            let response = client.receive().unwrap();
            assert_eq!(response.status, 200, "{path}: {response}");
        }
    }

    #[test]
    fn a_body_that_grows_too_large_is_refused_on_the_way() {
        let folder = Folder::new();
        let server = folder.http_with(&["--max-size=1"]);
        for path in CALLS {
            let mut client = server.connect();
            client.write(&proper(path).and("Transfer-Encoding", "chunked").head(None)).unwrap();
            let chunk = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
            // It never ends, so an answer is given before it does.
            let _ = client.write(&chunk).and_then(|()| client.write(&chunk));
            let response = client.receive().unwrap();
            assert_eq!(refused(&response, 413, -32600), "Request too large", "{path}");
            client.assert_closed();
        }
        assert_alive(&server);
    }

    /// As most clients do: they read no answer before all is sent. Larger than what the system holds on both sides.
    #[test]
    fn a_client_that_sends_on_reads_why_it_was_refused() {
        let folder = Folder::new();
        let env = [("FILE_EDITOR_TOKEN", "secret")];
        let server = HttpServer::start(folder.path(), &["--max-size=1"], &env);
        let body = vec![b' '; 48 << 20];
        let to = |path| Request::post(path, &body).and("Authorization", "Bearer secret");
        for (request, status) in [
            (to("/mcp"), 413),
            (to("/mcp").chunked(), 413),
            (to("/mcp").with("Content-Type", "text/plain"), 413),
            (to("/mcp").with("Host", "evil.com"), 403),
            (to("/mcp").with("Authorization", "Bearer wrong"), 401),
            (to("/nowhere"), 404),
            (to("/health"), 405),
        ] {
            let mut client = server.connect();
            client.write(&request.bytes()).unwrap_or_else(|error| panic!("{status}: {error}"));
            assert_eq!(client.receive().unwrap().status, status);
        }
    }

    /// The text itself is measured exactly, whatever stands around it.
    #[test]
    fn a_text_of_exactly_the_limit_is_written() {
        let folder = Folder::new();
        let server = folder.http_with(&["--max-size=1"]);
        let text = |size: usize| "x".repeat(size - 1);
        let edit = |name: &str, size| json!({ "name": name, "append": text(size), "create_if_missing": true });
        let mut mcp = server.mcp();
        mcp.text("edit_file", edit("mcp.txt", 1 << 20));
        let answer = server.rest("edit_file", edit("rest.txt", 1 << 20));
        assert_eq!(answer["success"], true);
        for name in ["mcp.txt", "rest.txt"] {
            assert_eq!(folder.read(name).len(), 1 << 20);
        }
        failure(&mcp.tool("edit_file", edit("more.txt", (1 << 20) + 1)), -32001);
        let answer = server.rest("edit_file", edit("more.txt", (1 << 20) + 1));
        assert_eq!((&answer["isError"], &answer["error"]["code"]), (&json!(true), &json!(-32001)));
        assert_eq!(folder.names(), ["mcp.txt", "rest.txt"]);
    }

    /// Read back as it was written, over both, in pieces of every length.
    fn check_both_ways(megabytes: usize, line: &str, ends: &[&str]) {
        let folder = Folder::new();
        let flag = format!("--max-size={}", megabytes.max(10));
        let server = folder.http_with(&[&flag, "--timeout=300"]);
        let mut text = String::new();
        let mut number = 0;
        while text.len() < (megabytes << 20) - 2 * line.len() - 4 {
            text.push_str(&line[..line.ceil_char_boundary(number % line.len())]);
            text.push_str(line);
            text.push_str(ends[number % ends.len()]);
            number += 1;
        }
        text.push_str("the end");
        folder.write("large.txt", &text);
        let shown = text.replace("\r\n", "\n").replace('\r', "\n");
        let total = number + 1;

        let mut client = server.connect();
        for path in MCP {
            let request = Request::tool("read_file", json!({ "name": "large.txt" })).to(path);
            let answer = client.send(&request).json();
            let (head, body) = texts(&answer)[0].split_once("\n\n").unwrap();
            assert_eq!(head, format!("File: large.txt ({total} lines)"));
            assert_same(body, &shown, path);
        }
        let call = json!({ "name": "read_file", "arguments": { "name": "large.txt" } });
        let answer = client.send(&Request::modern("tools/call", call)).json();
        assert_same(texts(&answer)[0].split_once("\n\n").unwrap().1, &shown, "2026-07-28");
        let answer = client.rest("read_file", json!({ "name": "large.txt" }));
        assert_same(answer["content"].as_str().unwrap(), &shown, "/read_file");
        assert_eq!(answer["total_lines"], total);
    }

    const ODD: &str =
        "plain \"quoted\" back\\slash /\t\u{1}\u{8}\u{1b}\u{1f}\u{7f}é\u{2028}漢\u{fffd}😀 ";

    #[test]
    fn a_megabyte_is_read_byte_for_byte() {
        check_both_ways(1, "just a line of text, as there are many", &["\n"]);
        check_both_ways(1, ODD, &["\n", "\r\n", "\r"]);
        check_both_ways(1, "\"", &["\r\n"]);
    }

    #[test]
    fn ten_megabytes_are_read_byte_for_byte() {
        check_both_ways(10, "just a line of text, as there are many", &["\n"]);
        check_both_ways(10, &ODD.repeat(20), &["\r\n"]);
    }

    #[test]
    fn megabytes_are_written_byte_for_byte() {
        let folder = Folder::new();
        let server = folder.http();
        let text = format!("{ODD}\n").repeat((4 << 20) / ODD.len());
        let edit = |name: &str| json!({ "name": name, "append": text, "create_if_missing": true });
        let mut client = server.connect();
        let whole = Request::tool("edit_file", edit("mcp.txt"));
        assert_eq!(client.send(&whole).json()["result"]["isError"], false);
        let chunked = Request::tool("edit_file", edit("mcp-chunked.txt")).chunked();
        assert_eq!(client.send(&chunked).json()["result"]["isError"], false);
        assert_eq!(client.rest("edit_file", edit("rest.txt"))["success"], true);
        let chunked = Request::post("/edit_file", edit("rest-chunked.txt").to_string()).chunked();
        assert_eq!(client.send(&chunked).json()["success"], true);
        for name in folder.names() {
            assert_same(&folder.read(&name), &text, &name);
        }
        assert_eq!(folder.names().len(), 4);
    }

    /// Objects take a hundred times the memory of their JSON, so a message may have few of them outside a tool's arguments.
    #[test]
    fn what_is_no_argument_is_small() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let server = folder.http();
        let call = |meta: Value, id: &str| {
            let params =
                json!({ "name": "read_file", "arguments": { "name": "a.txt" }, "_meta": meta });
            let call =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            Request::post("/mcp", call.to_string())
        };
        let long = "x".repeat(64 << 10);
        let objects = |number| Value::from(vec![json!({ "a": 0 }); number]);
        for request in [
            call(json!({ "objects": objects(20), "text": &long[..60_000] }), "id"),
            call(json!({}), &long[..60_000]),
        ] {
            let answer = server.send(&request).json();
            assert_eq!(answer["result"]["isError"], false, "{:.200}", answer.to_string());
        }
        for request in [
            call(json!({ "objects": objects(100) }), "id"),
            call(json!({ "text": long }), "id"),
            Request::mcp("ping", json!({ "_meta": { "objects": objects(100) } })),
            Request::mcp("ping", json!({ "_meta": { "text": long } })),
            Request::mcp("initialize", json!({ "more": objects(50_000) })),
        ] {
            let response = server.send(&request);
            assert_eq!(response.refusal(413, -32600), "Request too large");
            assert_ne!(response.json()["id"], Value::Null, "{response}");
            assert!(response.json()["error"]["data"]["detail"].is_string(), "{response}");
        }
        // Nor may what has to be repeated be long.
        let response = server.send(&call(json!({}), &"x".repeat(100_000)));
        assert_eq!(response.refusal(413, -32600), "Request too large");
        assert_eq!(response.json()["id"], Value::Null, "{response}");
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": objects(1000) });
        server.send(&Request::post("/mcp", answer.to_string())).refusal(413, -32600);
        // What is not answered is not refused either.
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "a": long } });
        assert_eq!(server.send(&Request::post("/mcp", note.to_string())).status, 202);
        assert_alive(&server);
    }

    #[test]
    fn arguments_of_too_many_values_are_refused() {
        let folder = Folder::new();
        let server = folder.http();
        let edits = vec![json!({ "a": 0 }); 200_000];
        let arguments = json!({ "name": "a.txt", "edits": edits });
        let message = "the arguments have more than 262144 names and values";
        let answer = server.mcp().tool("edit_file", arguments.clone());
        assert_eq!(fault(&answer, -32602), "Invalid params");
        assert_eq!(answer["error"]["data"]["detail"], message, "{answer}");
        let answer = server.rest("edit_file", arguments);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["data"]["validation_errors"], json!([message]), "{answer}");
        assert_eq!(folder.names(), [""; 0]);
    }

    /// A coding that is not undone, and two who count the length of a body differently, are how requests are smuggled.
    #[test]
    fn bodies_are_chunked_or_of_one_length_and_nothing_else() {
        let folder = Folder::new();
        let server = folder.http();
        let edit = r#"{"name":"a.txt","append":"x","create_if_missing":true}"#;
        let chunks = format!("{:x}\r\n{edit}\r\n0\r\n\r\n", edit.len());
        let send = |request: &Request, body: &str| {
            let mut client = server.connect();
            client.write(&[&request.head(None), body.as_bytes()].concat()).unwrap();
            (client.receive().unwrap(), client)
        };
        let request = Request::post("/edit_file", "");
        for coding in
            ["gzip, chunked", "chunked, chunked", "chunked, identity", "identity", "x", ""]
        {
            let (response, _) = send(&request.clone().and("Transfer-Encoding", coding), &chunks);
            assert_eq!(response.status, 400, "{coding}: {response}");
        }
        let twice = request.clone().and("Transfer-Encoding", "chunked");
        let (response, _) = send(&twice.and("Transfer-Encoding", "chunked"), &chunks);
        let message = "Transfer-Encoding must be chunked or absent";
        assert_eq!(refused(&response, 400, -32600), message);
        assert_eq!(folder.names(), [""; 0]);
        // With chunks and a length, what chunks leave over is not the next request.
        let smuggled = Request::post("/edit_file", edit).bytes();
        let both = request.clone().and("Transfer-Encoding", "chunked").and("Content-Length", "4");
        let rest = ["2\r\n{}\r\n0\r\n\r\n".as_bytes(), &smuggled].concat();
        let (response, mut client) = send(&both, &String::from_utf8(rest).unwrap());
        assert_eq!(response.json()["error"]["code"], -32602, "{response}");
        client.assert_closed();
        assert_eq!(folder.names(), [""; 0]);
        let (response, _) = send(&request.and("Transfer-Encoding", "Chunked"), &chunks);
        assert_eq!(response.json()["success"], true, "{response}");
    }

    #[test]
    fn headers_are_small() {
        let folder = Folder::new();
        let server = folder.http();
        let health = Request::new("GET", "/health");
        let mut client = server.connect();
        assert_eq!(client.send(&health.clone().with("X", &"x".repeat(12_000))).status, 200);
        assert_eq!(client.send(&health.clone().with("X", &"x".repeat(20_000))).status, 431);
        client.assert_closed();
        let with = |number| (0..number).fold(health.clone(), |request, _| request.and("X", "y"));
        let mut client = server.connect();
        assert_eq!(client.send(&with(60)).status, 200);
        assert_eq!(client.send(&with(70)).status, 431);
        client.assert_closed();
    }

    /// Bytes that arrive one by one, and two requests that arrive as one.
    #[test]
    fn how_the_bytes_arrive_does_not_matter() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let server = folder.http();
        let mut client = server.connect();
        let read = Request::post("/read_file", r#"{"name":"a.txt"}"#).bytes();
        for byte in &read {
            client.write(&[*byte]).unwrap();
        }
        assert_eq!(client.receive().unwrap().json()["content"], "one");
        let list = Request::tool("list_files", json!({})).bytes();
        client.write(&[&read[..], &list, &read].concat()).unwrap();
        assert_eq!(client.receive().unwrap().json()["content"], "one");
        assert_eq!(client.receive().unwrap().json()["result"]["isError"], false);
        assert_eq!(client.receive().unwrap().json()["content"], "one");
    }
}

mod door {
    use super::*;

    /// That every path, known or not, refuses the request as `change` makes it.
    fn check_refused(server: &HttpServer, change: &dyn Fn(Request) -> Request, status: u16) {
        let requests = CALLS
            .map(proper)
            .into_iter()
            .chain(["/nowhere", "/mcp"].map(|path| Request::new("OPTIONS", path)));
        for request in requests {
            let response = server.send(&change(request));
            refused(&response, status, -32600);
        }
        let edit = r#"{"name":"a.txt","append":"x","create_if_missing":true}"#;
        refused(&server.send(&change(Request::post("/edit_file", edit))), status, -32600);
    }

    fn check_admitted(server: &HttpServer, change: &dyn Fn(Request) -> Request) {
        for path in CALLS {
            let response = server.send(&change(proper(path)));
            assert_eq!(response.status, 200, "{path}: {response}");
            response.json();
        }
        let response = server.send(&change(Request::new("GET", "/health")));
        assert_eq!(response.status, 200, "{response}");
    }

    const FOREIGN: [&str; 16] = [
        "evil.com",
        "evil.com:8080",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "evil.localhost",
        "notlocalhost",
        "localhost@evil.com",
        "localhost:80@evil.com",
        "evil.com@localhost",
        "127.0.0.2",
        "0.0.0.0",
        "192.168.0.1",
        "[::2]",
        "[::1].evil.com",
        "[::1",
        "2130706433",
    ];

    #[test]
    fn a_foreign_host_is_refused() {
        let folder = Folder::new();
        let server = folder.http();
        for host in FOREIGN.into_iter().chain(["", " ", ":8080", "localhost:80:80", "localhost:x"])
        {
            check_refused(&server, &|request| request.with("Host", host), 403);
            let health = server.send(&Request::new("GET", "/health").with("Host", host));
            let refusal = refused(&health, 403, -32600);
            assert!(refusal.starts_with(&format!("Host `{}` is not allowed", host.trim())), "{refusal}");
        }
        check_refused(&server, &|request| request.without("Host"), 403);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn this_machine_is_admitted_by_any_of_its_names() {
        let folder = Folder::new();
        let server = folder.http();
        for host in ["localhost", "127.0.0.1", "[::1]", "LocalHost"] {
            for port in [String::new(), ":9".into(), ":65535".into(), format!(":{}", server.port)] {
                let host = format!("{host}{port}");
                check_admitted(&server, &|request| request.with("Host", &host));
                let origin = format!("http://{host}");
                check_admitted(&server, &|request| request.with("Origin", &origin));
                let origin = format!("https://{host}");
                check_admitted(&server, &|request| request.with("Origin", &origin));
            }
        }
    }

    /// Two who are addressed are one too many, and so are two tokens.
    #[test]
    fn nobody_is_admitted_by_half_of_what_is_said() {
        let folder = Folder::new();
        let server = folder.http();
        let target = format!("http://evil.com:{}", server.port);
        let raw = |line: &str, headers: &str| {
            let request = format!(
                "{line} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
                 Content-Length: 2\r\n\r\n{{}}"
            );
            let mut client = server.connect();
            client.write(request.as_bytes()).unwrap();
            client.receive().unwrap().status
        };
        assert_eq!(raw("POST /list_files", "Host: localhost\r\n"), 200);
        assert_eq!(raw("POST /list_files", "Host: localhost\r\nHost: evil.com\r\n"), 403);
        assert_eq!(raw("POST /list_files", "Host: localhost\r\nHost: localhost\r\n"), 403);
        assert_eq!(raw(&format!("POST {target}/list_files"), "Host: localhost\r\n"), 403);
        let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", "secret")]);
        let raw = |headers: &str| {
            let request = format!(
                "POST /list_files HTTP/1.1\r\nHost: localhost\r\n{headers}\
                 Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
            );
            let mut client = server.connect();
            client.write(request.as_bytes()).unwrap();
            client.receive().unwrap().status
        };
        let (good, bad) = ("Authorization: Bearer secret\r\n", "Authorization: Bearer x\r\n");
        assert_eq!(raw(good), 200);
        assert_eq!(raw(&format!("{good}{bad}")), 401);
        assert_eq!(raw(&format!("{bad}{good}")), 401);
    }

    #[test]
    fn both_loopback_addresses_are_served() {
        let folder = Folder::new();
        let server = folder.http();
        if std::net::TcpListener::bind("[::1]:0").is_err() {
            return crate::harness::not_checked("the address ::1", "IPv6");
        }
        for address in ["127.0.0.1", "::1"] {
            let mut client = Client::connect((address, server.port)).unwrap();
            let response = client.send(&Request::new("GET", "/health"));
            assert_eq!(response.status, 200, "{address}");
        }
    }

    #[test]
    fn a_foreign_origin_is_refused() {
        let folder = Folder::new();
        let server = folder.http();
        let schemes = ["http", "https", "chrome-extension", "file", "vscode-webview"];
        let origins = FOREIGN.iter().flat_map(|host| schemes.map(|at| format!("{at}://{host}")));
        let others = ["null", "", "localhost", "http:localhost", "file://", "http://", "*"];
        for origin in origins.chain(others.map(String::from)) {
            let response = server.send(&proper("/mcp").with("Origin", &origin));
            let refusal = refused(&response, 403, -32600);
            assert!(refusal.starts_with(&format!("Origin `{origin}` is not allowed")), "{refusal}");
        }
        for origin in ["http://evil.com", "null", "http://localhost.evil.com"] {
            check_refused(&server, &|request| request.with("Origin", origin), 403);
            // Nor behind one that is allowed.
            let both =
                |request: Request| request.with("Origin", "http://localhost").and("Origin", origin);
            check_refused(&server, &both, 403);
            let health = server.send(&Request::new("GET", "/health").with("Origin", origin));
            refused(&health, 403, -32600);
        }
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn names_can_be_allowed() {
        let folder = Folder::new();
        let server = folder.http_with(&["--allow-host=editor.example, other.test"]);
        for host in ["editor.example", "editor.example:9", "EDITOR.example", "other.test:443"] {
            check_admitted(&server, &|request| request.with("Host", host));
            let origin = format!("https://{host}");
            check_admitted(&server, &|request| request.with("Origin", &origin));
        }
        check_admitted(&server, &|request| request);
        for host in ["x.editor.example", "editor.example.evil.com", "example", ",", "evil.com"] {
            check_refused(&server, &|request| request.with("Host", host), 403);
        }
        check_refused(&server, &|request| request.with("Origin", "http://evil.com"), 403);
    }

    #[test]
    fn a_name_can_be_allowed_with_its_port() {
        let folder = Folder::new();
        let server =
            folder.http_with(&["--allow-host=a.test:8443, [fd00::1]:80,fd00::2,b.test:443"]);
        for host in
            ["a.test:8443", "A.test:8443", "[fd00::1]:80", "[fd00::2]:7", "b.test", "b.test:443"]
        {
            check_admitted(&server, &|request| request.with("Host", host));
        }
        for host in ["a.test", "a.test:8444", "a.test:84430", "[fd00::1]:81", "b.test:80"] {
            check_refused(&server, &|request| request.with("Host", host), 403);
        }
        for origin in ["https://a.test:8443", "http://[fd00::1]", "https://b.test"] {
            check_admitted(&server, &|request| request.with("Origin", origin));
        }
        for origin in ["https://a.test", "https://[fd00::1]", "http://b.test", "null"] {
            check_refused(&server, &|request| request.with("Origin", origin), 403);
        }
    }

    const TOKEN: &str = "correct horse battery staple";

    #[test]
    fn a_token_is_asked_of_everyone() {
        let folder = Folder::new();
        let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", TOKEN)]);
        let wrong = [
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            "Bearer correct horse battery stapl",
            "Bearer correct horse battery staples",
            "Bearer Correct horse battery staple",
            "Bearer  correct horse battery staple",
            "Basic correct horse battery staple",
            "Basic Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==",
            "Token correct horse battery staple",
            "correct horse battery staple",
            "",
        ];
        check_refused(&server, &|request| request, 401);
        for wrong in wrong {
            check_refused(&server, &|request| request.with("Authorization", wrong), 401);
        }
        let response = server.send(&proper("/mcp"));
        let scheme = response.header("WWW-Authenticate").unwrap();
        assert!(scheme.starts_with("Bearer"), "{response}");
        assert!(!response.refusal(401, -32600).contains("horse"));
        // Not in the address either, where it would be logged.
        let query = "/list_files?access_token=correct%20horse%20battery%20staple";
        refused(&server.send(&proper("/list_files").to(query)), 401, -32600);

        for scheme in ["Bearer", "bearer", "BEARER"] {
            let right = format!("{scheme} {TOKEN}");
            check_admitted(&server, &|request| request.with("Authorization", &right));
            // And it opens no other door.
            let foreign = |request: Request| request.with("Authorization", &right);
            check_refused(&server, &|request| foreign(request).with("Host", "evil.com"), 403);
            check_refused(&server, &|request| foreign(request).with("Origin", "null"), 403);
        }
        let right = format!("Bearer {TOKEN}");
        // Two of them: whichever is meant, one is wrong.
        let both = |request: Request| {
            request.with("Authorization", "Bearer wrong").and("Authorization", &right)
        };
        check_refused(&server, &both, 401);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    #[cfg(unix)]
    fn the_token_is_never_logged() {
        let folder = Folder::new();
        let env = [("FILE_EDITOR_TOKEN", TOKEN)];
        let server = HttpServer::start(folder.path(), &["--log=debug"], &env);
        let right = format!("Bearer {TOKEN}");
        server.send(&proper("/mcp"));
        server.send(&proper("/read_file").with("Authorization", &right));
        server.send(&proper("/mcp").with("Authorization", &right));
        let log = server.stop();
        assert!(!log_lines(&log).is_empty());
        assert!(!log.contains("horse"), "{log}");
    }

    /// The lines about those who were turned away: their statuses, and how many more there were.
    #[cfg(unix)]
    fn turned_away(log: &str) -> (Vec<u64>, u64) {
        let lines = log_lines(log);
        let lines = lines.iter().filter(|line| line["event"] == "access denied");
        let more = |line: &Value| line["more_refused_before"].as_u64().unwrap_or(0);
        let told = lines.map(|line| {
            assert_eq!(line["category"], "client", "{line}");
            (line["status"].as_u64().unwrap(), more(line))
        });
        let (statuses, more): (Vec<_>, Vec<_>) = told.unzip();
        (statuses, more.iter().sum())
    }

    #[test]
    #[cfg(unix)]
    fn those_who_are_turned_away_are_logged() {
        let folder = Folder::new();
        let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", TOKEN)]);
        server.send(&proper("/mcp"));
        server.send(&proper("/read_file").with("Host", "evil.com"));
        server.send(&proper("/nowhere").with("Origin", "null"));
        let log = server.stop();
        assert_eq!(turned_away(&log), (vec![401, 403, 403], 0));
        assert!(!log.contains("evil"), "{log}");
    }

    /// A refusal costs whoever asks for it nothing, so that a flood of them must not become a flood of lines.
    #[test]
    #[cfg(unix)]
    fn of_a_flood_some_are_logged_and_all_are_counted() {
        const FLOOD: usize = 2000;
        let folder = Folder::new();
        let server = folder.http();
        let foreign = Request::new("GET", "/health").with("Host", "evil.com");
        let mut client = server.connect();
        for _ in 0..FLOOD {
            assert_eq!(client.send(&foreign).status, 403);
        }
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(client.send(&foreign).status, 403);
        let (told, more) = turned_away(&server.stop());
        assert_eq!(told.len() + usize::try_from(more).unwrap(), FLOOD + 1);
        assert!(told.len() < FLOOD / 2, "{} lines", told.len());
    }

    #[test]
    fn without_a_token_none_is_asked_for() {
        let folder = Folder::new();
        let server = folder.http();
        check_admitted(&server, &|request| request);
        check_admitted(&server, &|request| request.with("Authorization", "Bearer anything"));
        check_admitted(&server, &|request| request.with("Authorization", "Basic Zm9vOmJhcg=="));
    }
}

mod rest {
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
            assert!(
                faults.iter().any(|fault| fault.as_str().unwrap().contains(&named)),
                "{answer}"
            );
        }
        let names =
            ["../a.txt", "/etc/passwd", "a/b", "..", ".", "a\n", "a b", "", "nul\0", "a\\b"];
        for name in names {
            let answer = server.rest("read_file", json!({ "name": name }));
            assert_eq!(answer["error"]["code"], -32602, "{name:?}: {answer}");
        }
        assert_eq!(folder.names(), [""; 0]);
    }

    fn tag(response: &Response) -> String {
        let tag = response.header("ETag").unwrap_or_else(|| panic!("{response}")).to_owned();
        let hash =
            tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).expect("a strong tag");
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
        assert_eq!(
            (response.status, &response.json()["isError"]),
            (200, &json!(true)),
            "{response}"
        );
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
}

mod versions {
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

    /// What the headers say must be what the body says; else nothing is done.
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
}

mod flags {
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
        let message =
            server.send(&Request::post("/edit_file", edit.to_string())).refusal(404, -32601);
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
}
