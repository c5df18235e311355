//! A call that takes long tells how it goes on, to clients that want to know.

use crate::harness::http::Request;
use crate::harness::{Folder, modern};
use serde_json::{Value, json};

/// An edit that waits for the file's lock, and answers with a diff too large to be copied.
fn call(token: Option<Value>) -> Value {
    let edits = json!([{ "old_string": "two\n", "new_string": "2\n".repeat(5000) }]);
    let mut params =
        json!({ "name": "multi_edit_text_file", "arguments": { "path": "", "edits": edits } });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    params
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    folder
}

fn of(folder: &Folder, mut params: Value) -> Value {
    params["arguments"]["path"] = json!(folder.file("a.txt"));
    params
}

/// That `told` is what a client is told of the call with this token; how far it says it is.
fn progress(told: &Value, token: &Value) -> u64 {
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert!(told.get("id").is_none(), "{told}");
    assert_eq!(&told["params"]["progressToken"], token, "{told}");
    assert!(told["params"]["message"].is_string(), "{told}");
    told["params"]["progress"].as_u64().unwrap()
}

fn check_done(done: &Value) {
    assert_eq!(done["result"]["isError"], false, "{done}");
    let diff = done["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(diff.matches("+2\n").count(), 5000, "{}", &diff[..200]);
}

#[test]
fn on_stdio() {
    // With `none` an edit without a token would be run by the thread that reads.
    for (token, durability) in [(json!("a token"), "data"), (json!(7), "none")] {
        let folder = folder();
        let durability = format!("--durability={durability}");
        let mut server = folder.serve_with(&["--tools=text", "--timeout=60", &durability]);
        let lock = folder.lock("a.txt");
        server.send("tools/call", of(&folder, call(Some(token.clone()))));
        let first = progress(&server.receive(), &token);
        let second = progress(&server.receive(), &token);
        assert!(second > first, "{first} {second}");
        while server.receive()["params"]["message"] != "waiting for the file's lock" {}
        drop(lock);
        let done = loop {
            let next = server.receive();
            if next.get("result").is_some() {
                break next;
            }
            progress(&next, &token);
        };
        check_done(&done);
        // There is nothing more to tell.
        server.request("ping", json!({}));
    }
}

#[test]
fn who_did_not_ask_is_not_told() {
    let folder = folder();
    let mut server = folder.serve_with(&["--tools=text", "--timeout=60"]);
    let lock = folder.lock("a.txt");
    let id = server.send("tools/call", of(&folder, call(None)));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    drop(lock);
    let done = server.receive();
    assert_eq!(done["id"], id);
    check_done(&done);
}

#[test]
fn over_http() {
    for is_modern in [false, true] {
        let folder = folder();
        let server = folder.http_with(&["--tools=text", "--timeout=60"]);
        let lock = folder.lock("a.txt");
        let mut params = of(&folder, call(None));
        if is_modern {
            params = modern(params);
        }
        params["_meta"]["progressToken"] = json!(1);
        let request = Request::mcp("tools/call", params);
        let request = if is_modern {
            request
                .with("MCP-Protocol-Version", "2026-07-28")
                .with("Mcp-Method", "tools/call")
                .with("Mcp-Name", "multi_edit_text_file")
        } else {
            request
        };
        let both = request.with("Accept", "application/json, text/event-stream");
        let mut events = server.connect().open_events(&both);
        let first = progress(&events.next().unwrap(), &json!(1));
        let second = progress(&events.next().unwrap(), &json!(1));
        assert!(second > first, "{first} {second}");
        drop(lock);
        let done = loop {
            let next = events.next().unwrap();
            if next.get("result").is_some() {
                break next;
            }
        };
        check_done(&done);
        assert!(events.next().is_none());
    }
}

/// Plain JSON is for those who take nothing else, and for calls with nothing to tell.
#[test]
fn over_http_without_events() {
    let folder = folder();
    let server = folder.http_with(&["--tools=text", "--timeout=60"]);
    let mut params = of(&folder, call(None));
    params["_meta"] = json!({ "progressToken": 1 });
    let request = Request::mcp("tools/call", params);
    let quick = request.clone().with("Accept", "application/json, text/event-stream");
    check_done(&server.send(&quick).json());

    folder.write("a.txt", "one\ntwo\n");
    let lock = folder.lock("a.txt");
    let mut client = server.connect();
    client.write(&request.with("Accept", "application/json").bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    drop(lock);
    check_done(&client.receive().unwrap().json());
}

/// What a call was sent is held until the call is over, whatever its client was told meanwhile.
#[test]
fn what_is_held_is_not_forgotten_by_telling() {
    let folder = folder();
    let server = folder.http_with(&["--tools=text", "--timeout=60", "--max-size=22"]);
    let lock = folder.lock("a.txt");
    let arguments = json!({ "path": folder.file("a.txt"), "content": "x".repeat(22 << 20) });
    let params = json!({ "name": "write_text_file", "arguments": arguments, "_meta": { "progressToken": 1 } });
    let request =
        Request::mcp("tools/call", params).with("Accept", "application/json, text/event-stream");
    // There is room for two.
    let mut first = server.connect().open_events(&request);
    let mut second = server.connect().open_events(&request);
    progress(&first.next().unwrap(), &json!(1));
    progress(&second.next().unwrap(), &json!(1));
    let mut third = server.connect();
    let third = std::thread::spawn(move || third.send(&request).status);
    for _ in 0..4 {
        progress(&first.next().unwrap(), &json!(1));
    }
    assert!(!third.is_finished(), "it was let in");
    drop(lock);
    assert_eq!(third.join().unwrap(), 200);
}

#[test]
fn waiting_for_a_person_is_told() {
    let folder = folder();
    let mut server = folder.serve_with(&["--tools=text", "--confirm=always"]);
    let client = json!({ "name": "test-client", "version": "1" });
    let capabilities = json!({ "elicitation": {} });
    server.request(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client }),
    );
    server.send("tools/call", of(&folder, call(Some(json!(1)))));
    assert_eq!(server.receive()["method"], "elicitation/create");
    assert_eq!(server.receive()["params"]["message"], "waiting for confirmation");
}
