//! `docs/protocol.md`: what goes over the wire, recorded from a running server.
//!
//! `UPDATE_EXPECT=1 cargo test -p file-editor transcript` writes it anew.

use std::fmt::Write as _;

use crate::harness::http::{HttpServer, Request};
use crate::harness::{Folder, Server};
use expect_test::expect_file;
use serde_json::{Value, json};

const INTRODUCTION: &str = "\
# On the wire

Messages between clients and the server, for MCP with and without a handshake, on both transports. Every line was recorded
from a running server by `cargo test -p file-editor transcript`, which fails if a line differs. `→` is the client, `←` the
server. `$TOOLS` stands for the [list of tools](../crates/file-editor/tests/golden/tools_list-text.json), `$SESSION` and
`$STATE` for random values.

Clients that send `initialize` get a version from 2024-11-05 to 2025-11-25. Requests that name version 2026-07-28 need no
handshake. Both work on one connection. The plain methods and `tools/call` are answered without either.
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("notes.txt", "one\ntwo\nthree\n");
    folder
}

/// The document, as far as it is written.
struct Document {
    text: String,
    /// What is different every time, and what stands for it.
    shown: Vec<(String, &'static str)>,
}

impl Document {
    fn section(&mut self, title: &str, about: &str) {
        write!(self.text, "\n## {title}\n\n{about}\n").unwrap();
    }

    fn say(&mut self, about: &str) {
        write!(self.text, "\n{about}\n\n").unwrap();
    }

    fn line(&mut self, line: &str) {
        let mut line = line.to_owned();
        for (random, shown) in &self.shown {
            line = line.replace(random, shown);
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// What is said from here to the next fence is code, or is no longer.
    fn fence(&mut self) {
        self.text.push_str("```\n");
    }
}

/// A conversation on stdio.
struct OnStdio<'a> {
    document: &'a mut Document,
    server: Server,
}

impl OnStdio<'_> {
    fn send(&mut self, message: Value) {
        let line = message.to_string();
        self.document.line(&format!("→ {line}"));
        self.server.send_line(&line);
    }

    fn receive(&mut self) -> Value {
        let line = self.server.receive_line();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let time = answer["result"]["resources"][0]["annotations"]["lastModified"].as_str();
        self.document.shown.extend(time.map(|time| (time.to_owned(), "2026-11-15T12:00:00Z")));
        let state = answer["result"]["requestState"].as_str();
        self.document.shown.extend(state.map(|state| (state.to_owned(), "$STATE")));
        self.document.line(&format!("← {line}"));
        answer
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        // One that was shown before may come once more.
        loop {
            let at = self.document.text.len();
            let answer = self.receive();
            if answer["method"] != "notifications/progress" {
                return answer;
            }
            self.document.text.truncate(at);
        }
    }

    fn tool(&mut self, id: u64, name: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({ "name": name, "arguments": arguments }))
    }
}

fn initialize(capabilities: Value) -> Value {
    let client = json!({ "name": "client", "version": "1.0" });
    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client })
}

/// What every request carries since 2026-07-28.
fn modern(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

fn with_handshake(document: &mut Document) {
    let folder = folder();
    let path = folder.file("notes.txt");
    document.shown.push((folder.path().display().to_string(), "/path/to/folder"));
    document.section(
        "2025-11-25 and older, on stdio",
        "`file-editor --dir=/path/to/folder --transport=stdio --tools=text`: one message a line.",
    );
    let server = folder.serve_with(&["--tools=text", "--timeout=60"]);
    document.say("The handshake, and the list of tools:");
    let mut stdio = OnStdio { document, server };
    stdio.document.fence();
    stdio.request(1, "initialize", initialize(json!({})));
    stdio.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    stdio.request(2, "tools/list", json!({}));
    stdio.document.fence();

    stdio.document.say(
        "Read, edit, and edit again with the hash of what was read, which is out of date by then:",
    );
    stdio.document.fence();
    let read = stdio.tool(3, "read_text_file", json!({ "path": path }));
    let edits = json!([{ "old_string": "two", "new_string": "2" }]);
    stdio.tool(4, "multi_edit_text_file", json!({ "path": path, "edits": edits }));
    let edits = json!([{ "old_string": "three", "new_string": "3" }]);
    let hash = &read["result"]["_meta"]["hash"];
    let stale = json!({ "path": path, "edits": edits, "expected_hash": hash });
    stdio.tool(5, "multi_edit_text_file", stale);
    stdio.document.fence();

    stdio.document.say(
        "An edit that does not match, and an unknown tool. Only the second is a protocol error:",
    );
    stdio.document.fence();
    let edits = json!([{ "old_string": "tree", "new_string": "3" }]);
    stdio.tool(6, "multi_edit_text_file", json!({ "path": path, "edits": edits }));
    stdio.tool(7, "no_such_tool", json!({}));
    stdio.document.fence();

    stdio.document.say("A call that waits (here for a lock held by another program) reports its progress each second, if it has a `progressToken`:");
    stdio.document.fence();
    let lock = folder.lock("notes.txt");
    let arguments = json!({ "path": path, "content": "new\n" });
    let meta = json!({ "progressToken": "a" });
    let params = json!({ "_meta": meta, "name": "write_text_file", "arguments": arguments });
    stdio.send(json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params }));
    stdio.receive();
    stdio.document.fence();
    stdio.document.say("If it is cancelled in time, it writes nothing and is not answered:");
    stdio.document.fence();
    let cancelled = json!({ "requestId": 8 });
    stdio.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    drop(lock);
    stdio.request(9, "ping", json!({}));
    assert_eq!(folder.read("notes.txt"), "one\n2\nthree\n");
    stdio.document.fence();

    stdio.document.say("Files are resources as well:");
    stdio.document.fence();
    stdio.request(10, "resources/templates/list", json!({}));
    stdio.request(11, "resources/list", json!({}));
    let uri = format!("file://{}", path.display());
    stdio.request(12, "resources/read", json!({ "uri": uri }));
    stdio.request(13, "resources/read", json!({ "uri": uri.replace("notes", "none") }));
    stdio.document.fence();

    let server = folder.serve_with(&["--tools=text", "--confirm=always"]);
    let document = stdio.document;
    document
        .say("With `--confirm`, a client that shows forms is asked before anything is written:");
    let mut stdio = OnStdio { document, server };
    stdio.document.fence();
    stdio.request(1, "initialize", initialize(json!({ "elicitation": {} })));
    let edits = json!([{ "old_string": "2", "new_string": "two" }]);
    let question = stdio.tool(2, "multi_edit_text_file", json!({ "path": path, "edits": edits }));
    let id = &question["id"];
    stdio.send(
        json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": {} } }),
    );
    stdio.receive();
    stdio.document.fence();
}

fn without_handshake(document: &mut Document) {
    let folder = folder();
    document.shown.push((folder.path().display().to_string(), "/path/to/folder"));
    let path = folder.file("notes.txt");
    document.section(
        "2026-07-28, on stdio",
        "No handshake: every request says which version it is and what its client can do.",
    );
    document.text.push('\n');
    let server = folder.serve_with(&["--tools=text", "--confirm=auto"]);
    let mut stdio = OnStdio { document, server };
    stdio.document.fence();
    stdio.request(1, "server/discover", modern(json!({}), json!({})));
    stdio.request(2, "tools/list", modern(json!({}), json!({})));
    let read =
        json!({ "name": "read_text_file", "arguments": { "path": path, "line": 2, "limit": 1 } });
    stdio.request(3, "tools/call", modern(read, json!({})));
    stdio.document.fence();

    stdio.document.say(
        "The server sends no requests. The answer to the call contains the question; the client repeats the call with the person's answer. \
         `requestState` is signed, and valid once, for ten minutes, for this file and this change:",
    );
    stdio.document.fence();
    let edits = json!([{ "old_string": "two", "new_string": "2" }]);
    let edit =
        json!({ "name": "multi_edit_text_file", "arguments": { "path": path, "edits": edits } });
    let forms = json!({ "elicitation": { "form": {} } });
    let asked = stdio.request(4, "tools/call", modern(edit.clone(), forms.clone()));
    let mut again = modern(edit, forms);
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "confirm": { "action": "accept", "content": {} } });
    stdio.request(5, "tools/call", again.clone());
    stdio.request(6, "tools/call", again);
    stdio.document.fence();
    assert_eq!(folder.read("notes.txt"), "one\n2\nthree\n");
}

/// A request over HTTP, as far as it matters here.
fn show_request(document: &mut Document, method: &str, headers: &[(&str, &str)], body: &Value) {
    document.line(&format!("→ {method} /mcp HTTP/1.1"));
    for (name, value) in headers {
        document.line(&format!("  {name}: {value}"));
    }
    if !body.is_null() {
        document.line(&format!("  {body}"));
    }
}

fn request(method: &str, headers: &[(&str, &str)], body: &Value) -> Request {
    let request = if body.is_null() {
        Request::new(method, "/mcp")
    } else {
        Request::post("/mcp", body.to_string())
    };
    headers.iter().fold(request, |request, (name, value)| request.with(name, value))
}

/// A request over HTTP and its answer.
fn exchange(
    document: &mut Document,
    server: &HttpServer,
    method: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> crate::harness::http::Response {
    show_request(document, method, headers, &body);
    let response = server.send(&request(method, headers, &body));
    document.line(&format!("← HTTP/1.1 {}", response.status));
    for name in ["Content-Type", "Mcp-Session-Id", "Allow"] {
        if let Some(value) = response.header(name) {
            if name == "Mcp-Session-Id" {
                document.shown.push((value.to_owned(), "$SESSION"));
            }
            document.line(&format!("  {name}: {value}"));
        }
    }
    if !response.body.is_empty() {
        document.line(&format!("  {}", String::from_utf8_lossy(&response.body)));
    }
    response
}

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn over_http(document: &mut Document) {
    let folder = folder();
    document.section(
        "2025-11-25 and older, over HTTP",
        "`file-editor --dir=/path/to/folder --confirm=always`. Sessions exist only with `--confirm`, for clients \
         that can be asked. All other requests are independent and answered with plain JSON.",
    );
    let server = folder.http_with(&["--confirm=always"]);
    document.text.push('\n');
    document.fence();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(json!({ "elicitation": {} })) });
    let welcome = exchange(document, &server, "POST", &[ACCEPT], message);
    let session = welcome.header("Mcp-Session-Id").unwrap().to_owned();
    let session = ("Mcp-Session-Id", session.as_str());
    document.fence();
    document.say("If a question precedes the answer, the response is a stream of events. The client sends the person's answer in a request of its own:");
    document.fence();
    let version = ("MCP-Protocol-Version", "2025-11-25");
    let headers = [ACCEPT, version, session];
    let arguments = json!({ "name": "notes.txt", "append": "four" });
    let params = json!({ "name": "edit_file", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    show_request(document, "POST", &headers, &call);
    let mut events = server.connect().open_events(&request("POST", &headers, &call));
    document.line("← HTTP/1.1 200\n  Content-Type: text/event-stream");
    let question = events.next().unwrap();
    document.line(&format!("  data: {question}"));
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} } });
    exchange(document, &server, "POST", &[version, session], answer);
    document.line(&format!("← data: {}", events.next().unwrap()));
    assert!(events.next().is_none());
    exchange(document, &server, "DELETE", &[session], Value::Null);
    document.fence();
    assert_eq!(folder.read("notes.txt"), "one\ntwo\nthree\nfour\n");
}

fn over_http_without_handshake(document: &mut Document) {
    let folder = folder();
    document.section(
        "2026-07-28, over HTTP",
        "Headers repeat parts of the body, so that a proxy need not read the body. If they differ, the request is refused. \
         There are no sessions, no `GET` and no `DELETE`.",
    );
    let server = folder.http();
    document.text.push('\n');
    document.fence();
    let message = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params, json!({})) });
    let read = || {
        message("tools/call", json!({ "name": "read_file", "arguments": { "name": "notes.txt" } }))
    };
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let headers = |method: &'static str, name: &'static str| {
        [ACCEPT, version, ("Mcp-Method", method), ("Mcp-Name", name)]
    };
    exchange(document, &server, "POST", &headers("tools/call", "read_file"), read());
    exchange(document, &server, "POST", &headers("tools/call", "edit_file"), read());
    let unknown = message("no/such/method", json!({}));
    exchange(document, &server, "POST", &headers("no/such/method", "")[..3], unknown);
    exchange(document, &server, "GET", &[ACCEPT, version], Value::Null);
    document.fence();
}

#[test]
fn docs_protocol() {
    let folder = Folder::new();
    let tools = |set: &str| {
        let answer = folder.serve_with(&[set]).request("tools/list", json!({}));
        answer["result"]["tools"].to_string()
    };
    let shown = vec![(tools("--tools=text"), "$TOOLS"), (tools("--tools=flat"), "$TOOLS")];
    let mut document = Document { text: INTRODUCTION.to_owned(), shown };
    with_handshake(&mut document);
    without_handshake(&mut document);
    over_http(&mut document);
    over_http_without_handshake(&mut document);
    expect_file!["../../../../docs/protocol.md"].assert_eq(&document.text);
}
