//! `--confirm`: a person is asked before anything is written, in every protocol version and on every transport.

use crate::harness::http::{HttpServer, Request};
use crate::harness::{Folder, Server, failure, fault, log_lines, modern, texts};
use serde_json::{Value, json};

const ALWAYS: &str = "--confirm=always";
const AUTO: &str = "--confirm=auto";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\nthree\n");
    folder
}

/// Two lines become one: what most tests ask about.
fn edit() -> Value {
    json!({ "name": "a.txt", "edits": [{ "line": 1, "operation": "replace", "content": "TWO" }] })
}

const EDITED: &str = "one\nTWO\nthree\n";
const BEFORE: &str = "one\ntwo\nthree\n";

fn initialize(capabilities: Value) -> Value {
    let client = json!({ "name": "test-client", "version": "1" });
    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client })
}

/// A server on stdio whose client can ask.
fn asking(folder: &Folder, flags: &[&str]) -> Server {
    let mut server = folder.serve_with(flags);
    server.request("initialize", initialize(json!({ "elicitation": {} })));
    server
}

/// The question that comes next; what it says, and its id.
fn question(asked: &Value) -> (String, Value) {
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let form = json!({ "type": "object", "properties": {} });
    assert_eq!(asked["params"]["requestedSchema"], form, "{asked}");
    (asked["params"]["message"].as_str().unwrap().to_owned(), asked["id"].clone())
}

fn answer(id: &Value, action: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "action": action, "content": {} } }).to_string()
}

mod by_request {
    use super::*;

    /// Calls a tool that asks; the question and the call's id.
    fn ask(server: &mut Server, tool: &str, arguments: Value) -> (i64, String, Value) {
        let id = server.send_tool(tool, arguments);
        let (message, question) = question(&server.receive());
        (id, message, question)
    }

    #[test]
    fn what_is_agreed_to_is_written_and_not_before() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let (id, message, question) = ask(&mut server, "edit_file", edit());
        assert_eq!(
            message,
            "Allow edit_file to change a.txt?\n\n--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three"
        );
        assert_eq!(folder.read("a.txt"), BEFORE);
        let done = server.exchange(&answer(&question, "accept"));
        assert_eq!(
            (&done["id"], &done["result"]["isError"]),
            (&json!(id), &json!(false)),
            "{done}"
        );
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn what_is_not_agreed_to_is_not_written() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let id = json!("?");
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } });
        let odd = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": true } });
        let (declined, silent) = ("a person declined the edit", "nobody answered");
        for (reply, hint) in [
            (answer(&id, "decline"), declined),
            (answer(&id, "cancel"), declined),
            (answer(&id, "maybe"), silent),
            (error.to_string(), silent),
            (odd.to_string(), silent),
        ] {
            let (_, _, question) = ask(&mut server, "edit_file", edit());
            let refused = server.exchange(&reply.replace("\"?\"", &question.to_string()));
            assert_eq!(failure(&refused, -32002), "Error: Not confirmed; nothing was written");
            assert!(texts(&refused)[1].starts_with(hint), "{refused}");
            assert_eq!(folder.read("a.txt"), BEFORE);
        }
        let (_, _, log) = server.finish();
        let calls: Vec<Value> =
            log_lines(&log).into_iter().filter(|line| line["event"] == "call").collect();
        assert_eq!(calls.len(), 5);
        for call in calls {
            assert_eq!(
                (&call["file"], &call["message"]),
                (&json!("a.txt"), &json!("not confirmed"))
            );
        }
    }

    #[test]
    fn nobody_is_asked_about_what_writes_nothing() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS, "--tools=all"]);
        server.text("read_file", json!({ "name": "a.txt" }));
        server.text("list_files", json!({}));
        let mut rehearsal = edit();
        rehearsal["dry_run"] = true.into();
        server.text("edit_file", rehearsal);
        let same = json!({ "line": 1, "operation": "replace", "content": "two" });
        server.text("edit_file", json!({ "name": "a.txt", "edits": [same] }));
        let path = folder.file("a.txt");
        server.text("write_text_file", json!({ "path": path, "content": BEFORE }));
        // What must fail fails at once.
        let missing = json!([{ "old_string": "four", "new_string": "4" }]);
        let missed = server.tool("multi_edit_text_file", json!({ "path": path, "edits": missing }));
        assert_eq!(failure(&missed, -32010), "Edit 0: String not found: four");
        let nowhere = json!({ "path": folder.file("no/where.txt"), "content": "x" });
        failure(&server.tool("write_text_file", nowhere), -32001);
        let bad = server.tool("edit_file", json!({ "name": "../a.txt", "append": "x" }));
        failure(&bad, -32602);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn every_tool_that_writes_asks() {
        let folder = folder();
        let mut server = asking(&folder, &[AUTO, "--tools=all"]);
        let path = folder.file("a.txt");
        let mut check = |tool: &str, arguments: Value, begins: &str| {
            let (_, message, question) = ask(&mut server, tool, arguments);
            assert!(message.starts_with(begins), "{message}");
            let done = server.exchange(&answer(&question, "accept"));
            assert_eq!(done["result"]["isError"], false, "{done}");
        };
        let edits = json!([{ "old_string": "three", "new_string": "3" }]);
        let shown =
            format!("Allow multi_edit_text_file to change {}?\n\n--- a.txt", path.display());
        check("multi_edit_text_file", json!({ "path": path, "edits": edits }), &shown);
        let shown = format!("Allow write_text_file to change {}?\n\n--- a.txt", path.display());
        check("write_text_file", json!({ "path": path, "content": "new\n" }), &shown);
        check(
            "edit_file",
            json!({ "name": "b.txt", "append": "x" }),
            "Allow edit_file to create b.txt?",
        );
        assert_eq!((folder.read("a.txt"), folder.read("b.txt")), ("new\n".into(), "x\n".into()));
        folder.write("binary", b"\xff\x00\xfe");
        let path = folder.file("binary");
        let shown = format!(
            "Allow write_text_file to change {}?\n\nIts 3 bytes, which are not text, become:\n--- binary\n+++ binary\n@@ -0,0 +1,1 @@\n+text",
            path.display()
        );
        check("write_text_file", json!({ "path": path, "content": "text\n" }), &shown);
        assert_eq!(folder.read("binary"), "text\n");
    }

    #[test]
    fn folders_are_not_made_before_somebody_agrees() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS, "--tools=text"]);
        let call =
            json!({ "path": folder.file("x/y/z.txt"), "content": "z\n", "create_dirs": true });
        let (_, _, question) = ask(&mut server, "write_text_file", call.clone());
        assert_eq!(folder.names(), ["a.txt"]);
        failure(&server.exchange(&answer(&question, "decline")), -32002);
        assert_eq!(folder.names(), ["a.txt"]);
        let (_, _, question) = ask(&mut server, "write_text_file", call);
        server.exchange(&answer(&question, "accept"));
        assert_eq!(folder.read("x/y/z.txt"), "z\n");
    }

    #[test]
    fn what_changed_meanwhile_is_not_overwritten() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let (_, _, question) = ask(&mut server, "edit_file", edit());
        folder.write("a.txt", "somebody else's\ntwo\n");
        let refused = server.exchange(&answer(&question, "accept"));
        assert_eq!(failure(&refused, -32013), "Error: File changed since it was read: a.txt");
        assert_eq!(folder.read("a.txt"), "somebody else's\ntwo\n");
        // A file that was to be created, and is there by now.
        let (_, _, question) =
            ask(&mut server, "edit_file", json!({ "name": "b.txt", "append": "x" }));
        folder.write("b.txt", "theirs\n");
        failure(&server.exchange(&answer(&question, "accept")), -32013);
        assert_eq!(folder.read("b.txt"), "theirs\n");
    }

    #[test]
    fn nobody_waits_for_a_person_but_the_call_itself() {
        let folder = folder();
        let mut server = asking(&folder, &[AUTO, "--timeout=1"]);
        let (first, _, one) = ask(&mut server, "edit_file", edit());
        // Another call is asked about, made and answered first, and no lock is held.
        let append = json!({ "name": "b.txt", "append": "x" });
        let (second, _, two) = ask(&mut server, "edit_file", append);
        let free = folder.lock("a.txt");
        drop(free);
        let done = server.exchange(&answer(&two, "accept"));
        assert_eq!((&done["id"], &done["result"]["isError"]), (&json!(second), &json!(false)));
        // The time a person takes is not the call's.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let done = server.exchange(&answer(&one, "accept"));
        assert_eq!(
            (&done["id"], &done["result"]["isError"]),
            (&json!(first), &json!(false)),
            "{done}"
        );
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn two_edits_of_one_file_are_both_asked_about_and_the_later_answer_finds_it_changed() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let (_, _, one) = ask(&mut server, "edit_file", edit());
        let other = json!({ "line": 2, "operation": "delete" });
        let (_, _, two) =
            ask(&mut server, "edit_file", json!({ "name": "a.txt", "edits": [other] }));
        let done = server.exchange(&answer(&two, "accept"));
        assert_eq!(done["result"]["isError"], false, "{done}");
        failure(&server.exchange(&answer(&one, "accept")), -32013);
        assert_eq!(folder.read("a.txt"), "one\ntwo\n");
    }

    #[test]
    fn a_call_taken_back_takes_its_question_back() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let (id, _, question) = ask(&mut server, "edit_file", edit());
        server.notify("notifications/cancelled", json!({ "requestId": id }));
        let withdrawn = server.receive();
        assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
        assert_eq!(withdrawn["params"]["requestId"], question);
        // Too late.
        server.send_line(&answer(&question, "accept"));
        server.request("ping", json!({}));
        let (status, rest, log) = server.finish();
        assert!(status.success() && rest.is_empty(), "{rest}");
        assert!(log.contains(r#""message":"cancelled""#), "{log}");
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn a_question_ends_with_the_input() {
        let folder = folder();
        let mut server = asking(&folder, &[AUTO]);
        let (id, _, _) = ask(&mut server, "edit_file", edit());
        server.close_input();
        let refused = server.receive();
        assert_eq!(refused["id"], id);
        failure(&refused, -32002);
        let (status, rest, _) = server.wait();
        assert!(status.success() && rest.is_empty(), "{rest}");
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn an_answer_nobody_asked_for_is_nobodys() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        server.send_line(&answer(&json!(1), "accept"));
        server.send_line(&answer(&json!("x"), "accept"));
        let (_, _, question) = ask(&mut server, "edit_file", edit());
        server.send_line(&answer(&json!(question.as_i64().unwrap() + 1), "accept"));
        server.request("ping", json!({}));
        assert_eq!(folder.read("a.txt"), BEFORE);
        failure(&server.exchange(&answer(&question, "decline")), -32002);
    }

    #[test]
    fn a_question_is_short_and_hides_nothing() {
        let folder = folder();
        folder.write("long.txt", "a line\n".repeat(500));
        let mut server = asking(&folder, &[ALWAYS, "--tools=all"]);
        let content = format!("\u{1b}[2J\u{202e}evil\u{200b}\n{}\n", "x".repeat(100_000))
            + &"y\n".repeat(300);
        let call = json!({ "path": folder.file("long.txt"), "content": content });
        let (_, message, question) = ask(&mut server, "write_text_file", call);
        let shown: Vec<&str> = message.lines().skip(2).collect();
        assert!(shown.len() <= 40, "{} lines", shown.len());
        assert!(shown.iter().all(|line| line.chars().count() <= 240), "{message}");
        assert!(shown.last().unwrap().starts_with("... ("), "{message}");
        server.exchange(&answer(&question, "decline"));
        let odd = json!({ "line": 0, "operation": "insert", "content": "\u{1b}[2J\u{202e}evil\u{200b}\rx" });
        let (_, message, question) =
            ask(&mut server, "edit_file", json!({ "name": "a.txt", "edits": [odd] }));
        assert!(message.contains("+<U+001B>[2J<U+202E>evil<U+200B>"), "{message:?}");
        assert!(!message.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r']), "{message:?}");
        server.exchange(&answer(&question, "decline"));
    }

    /// A path that is long enough leads anywhere, and a return at the end of a line is a change like any other.
    #[test]
    fn a_question_shows_the_whole_path_and_how_lines_end() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS, "--tools=text"]);
        let path = format!("{}/{}a.txt", folder.path().display(), "./".repeat(500));
        let crlf = BEFORE.replace('\n', "\r\n");
        let call = json!({ "path": path, "content": crlf });
        let (_, message, question) = ask(&mut server, "write_text_file", call);
        assert!(
            message.starts_with(&format!("Allow write_text_file to change {path}?\n")),
            "{message}"
        );
        assert!(
            message.ends_with("-three\n+one<U+000D>\n+two<U+000D>\n+three<U+000D>"),
            "{message}"
        );
        server.exchange(&answer(&question, "accept"));
        assert_eq!(folder.read("a.txt"), crlf);
        // Where all lines end so, that is not worth a word.
        let call = json!({ "path": path, "content": crlf.replace("two", "2") });
        let (_, message, question) = ask(&mut server, "write_text_file", call);
        assert!(message.ends_with("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"), "{message}");
        server.exchange(&answer(&question, "decline"));
    }

    #[test]
    fn nobody_is_asked_about_what_is_refused_anyway() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS, "--read-only"]);
        failure(&server.tool("edit_file", edit()), -32002);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    /// Calls that nobody has to be asked about queue for their file like all others: otherwise those that wait for its
    /// lock would have all threads.
    #[test]
    fn calls_that_write_nothing_keep_to_the_queue() {
        let folder = folder();
        folder.write("b.txt", BEFORE);
        let mut server = asking(&folder, &[AUTO, "--timeout=60"]);
        let lock = folder.lock("a.txt");
        let mut dry_run = edit();
        dry_run["dry_run"] = true.into();
        let waiting: Vec<i64> =
            (0..40).map(|_| server.send_tool("edit_file", dry_run.clone())).collect();
        // Time for all of them to get where they wait.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let mut other = dry_run.clone();
        other["name"] = "b.txt".into();
        let done = server.tool("edit_file", other);
        assert_eq!(done["result"]["isError"], false, "{done}");
        drop(lock);
        for done in server.receive_all(&waiting) {
            assert_eq!(done["result"]["isError"], false, "{done}");
        }
    }

    #[test]
    fn calls_that_were_agreed_to_keep_to_the_queue() {
        let folder = folder();
        folder.write("b.txt", BEFORE);
        let mut server = asking(&folder, &[ALWAYS, "--timeout=60"]);
        let lock = folder.lock("a.txt");
        let asked: Vec<_> = (0..40).map(|_| ask(&mut server, "edit_file", edit())).collect();
        let other = json!({ "name": "b.txt", "append": "x" });
        let (other, _, question) = ask(&mut server, "edit_file", other);
        for (_, _, question) in &asked {
            server.send_line(&answer(question, "accept"));
        }
        // Time for all of them to get where they wait.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let done = server.exchange(&answer(&question, "accept"));
        assert_eq!((&done["id"], &done["result"]["isError"]), (&json!(other), &json!(false)));
        drop(lock);
        let ids: Vec<i64> = asked.iter().map(|(id, ..)| *id).collect();
        let done = server.receive_all(&ids);
        let made = |answer: &&Value| answer["result"]["isError"] == false;
        assert_eq!(done.iter().filter(made).count(), 1, "the others find it changed");
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    /// Nobody was asked, since nothing was to be written; so nothing is, whatever the file has become.
    #[test]
    fn what_nobody_was_asked_about_is_not_written_later_either() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS, "--tools=text", "--timeout=60"]);
        let lock = folder.lock("a.txt");
        let arguments = json!({ "path": folder.file("a.txt"), "content": BEFORE });
        let meta = json!({ "progressToken": 1 });
        let call = json!({ "name": "write_text_file", "arguments": arguments, "_meta": meta });
        let id = server.send("tools/call", call);
        while server.receive()["params"]["message"] != "waiting for the file's lock" {}
        folder.write("a.txt", "theirs\n");
        drop(lock);
        let refused = loop {
            let next = server.receive();
            if next["id"] == id {
                break next;
            }
        };
        failure(&refused, -32013);
        assert_eq!(folder.read("a.txt"), "theirs\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_stop_takes_the_question_back() {
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let (id, _, question) = ask(&mut server, "edit_file", edit());
        server.signal(rustix::process::Signal::TERM);
        let withdrawn = server.receive();
        assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
        assert_eq!(withdrawn["params"]["requestId"], question);
        let refused = server.receive();
        assert_eq!(refused["id"], id);
        failure(&refused, -32014);
        assert!(server.wait().0.success());
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    /// What a call holds is held until it is over, whoever agreed to it.
    #[test]
    fn only_so_many_questions_are_open() {
        let folder = folder();
        folder.write("b.txt", BEFORE);
        let mut server = asking(&folder, &[ALWAYS, "--timeout=60"]);
        let append = json!({ "name": "b.txt", "append": "x" });
        let (first, _, locked) = ask(&mut server, "edit_file", append);
        let open: Vec<Value> = (1..512).map(|_| ask(&mut server, "edit_file", edit()).2).collect();
        let too_many = |refused: &Value| {
            assert_eq!(failure(refused, -32002), "Error: Not confirmed; nothing was written");
            assert!(
                texts(refused)[1].starts_with("too many confirmations are pending"),
                "{refused}"
            );
        };
        too_many(&server.tool("edit_file", edit()));
        let lock = folder.lock("b.txt");
        server.send_line(&answer(&locked, "accept"));
        server.request("ping", json!({}));
        too_many(&server.tool("edit_file", edit()));
        drop(lock);
        let done = server.receive();
        assert_eq!((&done["id"], &done["result"]["isError"]), (&json!(first), &json!(false)));
        ask(&mut server, "edit_file", edit());
        failure(&server.exchange(&answer(&open[0], "decline")), -32002);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn who_cannot_ask_is_refused_or_not_asked() {
        for capabilities in
            [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "roots": {} })]
        {
            let folder = folder();
            let mut server = folder.serve_with(&[ALWAYS]);
            server.request("initialize", initialize(capabilities.clone()));
            let refused = server.tool("edit_file", edit());
            assert_eq!(failure(&refused, -32002), "Error: Not confirmed; nothing was written");
            assert!(texts(&refused)[1].contains("--confirm=always"), "{refused}");
            assert_eq!(folder.read("a.txt"), BEFORE);
            server.text("read_file", json!({ "name": "a.txt" }));

            let mut server = folder.serve_with(&[AUTO]);
            server.request("initialize", initialize(capabilities));
            server.text("edit_file", edit());
            assert_eq!(folder.read("a.txt"), EDITED);
        }
        let folder = folder();
        // One that could, and says now that it cannot.
        let mut server = asking(&folder, &[ALWAYS]);
        server.request("initialize", initialize(json!({})));
        failure(&server.tool("edit_file", edit()), -32002);
        // Without a handshake nothing is known of a client.
        failure(&folder.serve_with(&[ALWAYS]).tool("edit_file", edit()), -32002);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn clients_that_show_forms_say_so_in_two_ways() {
        for elicitation in [json!({}), json!({ "form": {} }), json!({ "form": {}, "url": {} })] {
            let folder = folder();
            let mut server = folder.serve_with(&[ALWAYS]);
            server.request("initialize", initialize(json!({ "elicitation": elicitation })));
            let (_, _, question) = ask(&mut server, "edit_file", edit());
            server.exchange(&answer(&question, "accept"));
            assert_eq!(folder.read("a.txt"), EDITED);
        }
    }

    #[test]
    fn plain_methods_cannot_ask() {
        let edit = json!({ "name": "a.txt", "edits": [{ "line": 2, "operation": "replace", "content": "TWO" }] });
        let folder = folder();
        let mut server = asking(&folder, &[ALWAYS]);
        let refused = server.request("edit_file", edit.clone());
        assert_eq!(fault(&refused, -32002), "Not confirmed; nothing was written");
        assert_eq!(
            server.request("read_file", json!({ "name": "a.txt" }))["result"]["total_lines"],
            3
        );
        let http = folder.http_with(&[ALWAYS]);
        let refused = http.rest("edit_file", edit.clone());
        assert_eq!(
            (&refused["isError"], &refused["error"]["code"]),
            (&json!(true), &json!(-32002))
        );
        assert_eq!(folder.read("a.txt"), BEFORE);
        asking(&folder, &[AUTO]).request("edit_file", edit);
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn never_is_the_default() {
        let folder = folder();
        let mut server = asking(&folder, &[]);
        server.text("edit_file", edit());
        assert_eq!(folder.read("a.txt"), EDITED);
        let output = crate::harness::run(&["--dir=/", "--confirm=sometimes"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("--confirm must be one of: never, auto, always"), "{told}");
    }
}

mod by_answer {
    use super::*;

    /// `params` of a client that can ask, without a handshake.
    fn call(arguments: &Value, again: Option<(&Value, &str)>) -> Value {
        let mut params = modern(json!({ "name": "edit_file", "arguments": arguments }));
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {} });
        if let Some((state, action)) = again {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({ "confirm": { "action": action, "content": {} } });
        }
        params
    }

    /// That the call was answered with a question; its state.
    fn asked(answer: &Value) -> Value {
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required", "{answer}");
        let request = &result["inputRequests"]["confirm"];
        assert_eq!(request["params"]["mode"], "form", "{answer}");
        assert!(question(request).0.starts_with("Allow edit_file to change a.txt?"), "{answer}");
        assert!(result["requestState"].is_string(), "{answer}");
        result["requestState"].clone()
    }

    trait Send {
        fn call(&mut self, params: Value) -> Value;
    }

    impl Send for Server {
        fn call(&mut self, params: Value) -> Value {
            self.request("tools/call", params)
        }
    }

    impl Send for HttpServer {
        fn call(&mut self, params: Value) -> Value {
            let name = params["name"].as_str().unwrap().to_owned();
            let request = Request::mcp("tools/call", params)
                .with("MCP-Protocol-Version", "2026-07-28")
                .with("Mcp-Method", "tools/call")
                .with("Mcp-Name", &name)
                .with("Accept", "application/json, text/event-stream");
            let response = self.send(&request);
            assert_eq!(response.status, 200, "{response}");
            response.json()
        }
    }

    fn on_both(flags: &[&str], check: impl Fn(&Folder, &mut dyn Send)) {
        let folder = folder();
        check(&folder, &mut folder.serve_with(flags));
        let folder = super::folder();
        check(&folder, &mut folder.http_with(flags));
    }

    #[test]
    fn what_is_agreed_to_is_written_once() {
        for flag in [ALWAYS, AUTO] {
            on_both(&[flag], |folder, server| {
                let state = asked(&server.call(call(&edit(), None)));
                assert_eq!(folder.read("a.txt"), BEFORE);
                let done = server.call(call(&edit(), Some((&state, "accept"))));
                assert_eq!(done["result"]["isError"], false, "{done}");
                assert_eq!(done["result"]["resultType"], "complete", "{done}");
                assert_eq!(folder.read("a.txt"), EDITED);
                // What was said is said once, even if the file is as it was.
                folder.write("a.txt", BEFORE);
                let again = server.call(call(&edit(), Some((&state, "accept"))));
                fault(&again, -32602);
                assert_eq!(folder.read("a.txt"), BEFORE);
            });
        }
    }

    #[test]
    fn what_is_not_agreed_to_is_not_written() {
        on_both(&[ALWAYS], |folder, server| {
            for action in ["decline", "cancel"] {
                let state = asked(&server.call(call(&edit(), None)));
                let refused = server.call(call(&edit(), Some((&state, action))));
                assert_eq!(failure(&refused, -32002), "Error: Not confirmed; nothing was written");
                fault(&server.call(call(&edit(), Some((&state, "accept")))), -32602);
            }
            let state = asked(&server.call(call(&edit(), None)));
            fault(&server.call(call(&edit(), Some((&state, "maybe")))), -32602);
            assert_eq!(folder.read("a.txt"), BEFORE);
        });
    }

    #[test]
    fn only_what_was_shown_is_written() {
        on_both(&[ALWAYS, "--tools=all"], |folder, server| {
            folder.write("b.txt", BEFORE);
            // Another text than the one that was shown.
            let state = asked(&server.call(call(&edit(), None)));
            let mut other = edit();
            other["edits"][0]["content"] = "something else".into();
            let refused = server.call(call(&other, Some((&state, "accept"))));
            failure(&refused, -32013);
            // Another file that looks the same.
            let state = asked(&server.call(call(&edit(), None)));
            let mut other = edit();
            other["name"] = "b.txt".into();
            fault(&server.call(call(&other, Some((&state, "accept")))), -32602);
            // Another tool that would make the same of it.
            let path = folder.file("a.txt");
            let mut other = call(&json!({ "path": path, "content": EDITED }), None);
            other["name"] = "write_text_file".into();
            let state = server.call(other.clone())["result"]["requestState"].take();
            let edits = json!([{ "old_string": "two", "new_string": "TWO" }]);
            other["arguments"] = json!({ "path": path, "edits": edits });
            other["name"] = "multi_edit_text_file".into();
            other["requestState"] = state;
            other["inputResponses"] = json!({ "confirm": { "action": "accept" } });
            fault(&server.call(other), -32602);
            // A file that changed.
            let state = asked(&server.call(call(&edit(), None)));
            folder.write("a.txt", "one\ntwo\nfour\n");
            failure(&server.call(call(&edit(), Some((&state, "accept")))), -32013);
            assert_eq!(folder.read("a.txt"), "one\ntwo\nfour\n");
            assert_eq!(folder.read("b.txt"), BEFORE);
        });
    }

    #[test]
    fn a_state_that_was_not_given_is_refused() {
        on_both(&[ALWAYS], |folder, server| {
            let state = asked(&server.call(call(&edit(), None)));
            let text = state.as_str().unwrap();
            let mut forged = text.to_owned().into_bytes();
            let at = forged.len() / 2;
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            for state in [forged.as_str(), "", "nonsense", &text[1..], &format!("{text}A")] {
                let refused = server.call(call(&edit(), Some((&json!(state), "accept"))));
                assert_eq!(fault(&refused, -32602), "Invalid params", "{state}");
            }
            assert_eq!(folder.read("a.txt"), BEFORE);
            // The true one is still good.
            server.call(call(&edit(), Some((&state, "accept"))));
            assert_eq!(folder.read("a.txt"), EDITED);
        });
        // That of another server, or of the same one before it was started again.
        let folder = folder();
        let state = asked(&folder.serve_with(&[ALWAYS]).call(call(&edit(), None)));
        let mut server = folder.serve_with(&[ALWAYS]);
        fault(&server.call(call(&edit(), Some((&state, "accept")))), -32602);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn an_answer_that_is_missing_is_asked_for_again() {
        on_both(&[ALWAYS], |folder, server| {
            let state = asked(&server.call(call(&edit(), None)));
            let mut again = call(&edit(), Some((&state, "accept")));
            again["inputResponses"] = json!({ "other": { "action": "accept" } });
            asked(&server.call(again));
            let mut again = call(&edit(), Some((&state, "accept")));
            again.as_object_mut().unwrap().remove("requestState");
            asked(&server.call(again));
            assert_eq!(folder.read("a.txt"), BEFORE);
        });
    }

    #[test]
    fn answers_without_end_are_refused() {
        let folder = folder();
        let mut server = folder.serve_with(&[ALWAYS]);
        let state = asked(&server.call(call(&edit(), None)));
        let mut again = call(&edit(), Some((&state, "accept")));
        again["inputResponses"]["more"] = json!(vec![json!([]); 300]);
        fault(&server.call(again), -32602);
        let mut again = call(&edit(), Some((&state, "accept")));
        again["_meta"]["more"] = json!(vec![json!([]); 300]);
        fault(&server.call(again), -32602);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    /// Where nobody asks, nobody listens to answers either.
    #[test]
    fn answers_to_nothing_are_passed_over() {
        on_both(&[], |folder, server| {
            let done = server.call(call(&edit(), Some((&json!("whatever"), "decline"))));
            assert_eq!(done["result"]["isError"], false, "{done}");
            assert_eq!(folder.read("a.txt"), EDITED);
        });
    }

    #[test]
    fn who_cannot_ask_is_refused_or_not_asked() {
        let cannot = |params: Value| {
            let mut params = params;
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            params
        };
        on_both(&[ALWAYS], |folder, server| {
            failure(&server.call(cannot(call(&edit(), None))), -32002);
            assert_eq!(folder.read("a.txt"), BEFORE);
        });
        on_both(&[AUTO], |folder, server| {
            let done = server.call(cannot(call(&edit(), None)));
            assert_eq!(done["result"]["isError"], false, "{done}");
            assert_eq!(folder.read("a.txt"), EDITED);
        });
    }
}

mod by_session {
    use super::*;

    /// A session of a client that can ask.
    fn session(server: &HttpServer) -> String {
        let request = Request::mcp("initialize", initialize(json!({ "elicitation": {} })));
        let response = server.send(&request);
        assert_eq!(response.status, 200, "{response}");
        response.header("Mcp-Session-Id").unwrap().to_owned()
    }

    fn call(session: &str, accept: &str) -> Request {
        Request::tool("edit_file", edit())
            .with("Accept", accept)
            .with("MCP-Protocol-Version", "2025-11-25")
            .with("Mcp-Session-Id", session)
    }

    const EVENTS: &str = "application/json, text/event-stream";

    fn post(server: &HttpServer, session: &str, body: &str) -> u16 {
        server.send(&Request::post("/mcp", body).with("Mcp-Session-Id", session)).status
    }

    #[test]
    fn the_answer_finds_its_question() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let (one, other) = (session(&server), session(&server));
        assert_ne!(one, other);
        let mut events = server.connect().open_events(&call(&one, EVENTS));
        let (message, question) = question(&events.next().unwrap());
        assert!(message.starts_with("Allow edit_file to change a.txt?"), "{message}");
        // Somebody else's answer is none.
        assert_eq!(post(&server, &other, &answer(&question, "accept")), 202);
        server.settle();
        assert_eq!(folder.read("a.txt"), BEFORE);
        assert_eq!(post(&server, &one, &answer(&question, "accept")), 202);
        let done = events.next().unwrap();
        assert_eq!((&done["id"], &done["result"]["isError"]), (&json!(1), &json!(false)), "{done}");
        assert!(events.next().is_none());
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn a_session_ends() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let session = session(&server);
        let end = Request::new("DELETE", "/mcp").with("Mcp-Session-Id", &session);
        assert_eq!(server.send(&end).status, 204);
        assert_eq!(server.send(&end).status, 404);
        assert_eq!(server.send(&call(&session, EVENTS)).status, 404);
        assert_eq!(server.send(&Request::new("DELETE", "/mcp")).status, 405);
        assert_eq!(server.send(&Request::new("GET", "/mcp")).status, 405);
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn a_question_ends_with_its_session() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let session = session(&server);
        let mut events = server.connect().open_events(&call(&session, EVENTS));
        question(&events.next().unwrap());
        let end = Request::new("DELETE", "/mcp").with("Mcp-Session-Id", &session);
        assert_eq!(server.send(&end).status, 204);
        failure(&events.next().unwrap(), -32002);
        assert!(events.next().is_none());
        assert_eq!(folder.read("a.txt"), BEFORE);
    }

    #[test]
    fn a_call_taken_back_takes_its_question_back() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let (one, other) = (session(&server), session(&server));
        let mut events = server.connect().open_events(&call(&one, EVENTS));
        let (_, asked) = question(&events.next().unwrap());
        let cancel = |id: i64| {
            let params = json!({ "requestId": id });
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
                .to_string()
        };
        // Neither another client's call of this id, nor another call of this client.
        assert_eq!(post(&server, &other, &cancel(1)), 202);
        assert_eq!(post(&server, &one, &cancel(2)), 202);
        assert_eq!(post(&server, &one, &cancel(1)), 202);
        let withdrawn = events.next().unwrap();
        assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
        assert_eq!(withdrawn["params"]["requestId"], asked);
        failure(&events.next().unwrap(), -32014);
        assert_eq!(post(&server, &one, &answer(&asked, "accept")), 202);
        server.settle();
        assert_eq!(folder.read("a.txt"), BEFORE);
        // Its id is free again, and stands for the next call.
        let mut events = server.connect().open_events(&call(&one, EVENTS));
        question(&events.next().unwrap());
        assert_eq!(post(&server, &one, &cancel(1)), 202);
        events.next().unwrap();
        failure(&events.next().unwrap(), -32014);
        let mut events = server.connect().open_events(&call(&one, EVENTS));
        let (_, asked) = question(&events.next().unwrap());
        assert_eq!(post(&server, &one, &answer(&asked, "accept")), 202);
        assert_eq!(events.next().unwrap()["result"]["isError"], false);
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn who_takes_events_may_say_so_in_any_words() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let session = session(&server);
        let plain = call(&session, "application/json");
        for request in [
            plain.clone().and("Accept", "text/event-stream"),
            call(&session, "Text/Event-Stream; charset=utf-8,application/json"),
        ] {
            question(&server.connect().open_events(&request).next().unwrap());
        }
        failure(&server.send(&plain).json(), -32002);
    }

    #[test]
    fn who_cannot_be_asked_is_refused_or_not_asked() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let id = session(&server);
        // One that takes no events, one without a session, one that has no forms.
        failure(&server.send(&call(&id, "application/json")).json(), -32002);
        failure(&server.send(&Request::tool("edit_file", edit())).json(), -32002);
        let mute = server.send(&Request::mcp("initialize", initialize(json!({}))));
        assert!(mute.header("Mcp-Session-Id").is_none(), "{mute}");
        assert_eq!(folder.read("a.txt"), BEFORE);
        let server = folder.http_with(&[AUTO]);
        let done = server.send(&Request::tool("edit_file", edit())).json();
        assert_eq!(done["result"]["isError"], false, "{done}");
        assert_eq!(folder.read("a.txt"), EDITED);
    }

    #[test]
    fn without_questions_there_are_no_sessions() {
        let folder = folder();
        let server = folder.http();
        let forms = initialize(json!({ "elicitation": {} }));
        let response = server.send(&Request::mcp("initialize", forms));
        assert!(response.header("Mcp-Session-Id").is_none(), "{response}");
        assert_eq!(server.send(&call("whatever", EVENTS)).json()["result"]["isError"], false);
        let end = Request::new("DELETE", "/mcp").with("Mcp-Session-Id", "whatever");
        assert_eq!(server.send(&end).status, 405);
    }

    #[test]
    fn who_hangs_up_has_not_agreed() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let session = session(&server);
        let mut events = server.connect().open_events(&call(&session, EVENTS));
        let (_, question) = question(&events.next().unwrap());
        events.hang_up();
        server.settle();
        post(&server, &session, &answer(&question, "accept"));
        server.settle();
        assert_eq!(folder.read("a.txt"), BEFORE);
        let log = server.stop();
        assert!(log.contains(r#""message":"cancelled""#), "{log}");
    }

    #[cfg(unix)]
    #[test]
    fn a_stop_does_not_wait_for_a_person() {
        let folder = folder();
        let server = folder.http_with(&[ALWAYS]);
        let session = session(&server);
        let mut events = server.connect().open_events(&call(&session, EVENTS));
        question(&events.next().unwrap());
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(events.next().unwrap()["method"], "notifications/cancelled");
        failure(&events.next().unwrap(), -32014);
        assert!(server.wait().0.success());
        assert_eq!(folder.read("a.txt"), BEFORE);
    }
}
