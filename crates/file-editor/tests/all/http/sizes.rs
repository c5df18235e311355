//! Requests and answers that are large, and those that are too large.

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
    let edit =
        |name: &str, size| json!({ "name": name, "append": text(size), "create_if_missing": true });
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
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
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
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "a": long } });
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
    for coding in ["gzip, chunked", "chunked, chunked", "chunked, identity", "identity", "x", ""] {
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
