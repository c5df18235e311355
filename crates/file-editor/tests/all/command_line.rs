//! The command line and the log: every fault at once, in the contract's words; one JSON line per call, no contents.

use crate::harness::http::{HttpServer, Request, some_port};
use crate::harness::{Folder, Server, binary, failure, fault, log_lines, run, stderr};
use serde_json::{Value, json};

/// That these arguments are refused with exit code 1, nothing on stdout, and every one of these faults.
fn check_refused(arguments: &[&str], faults: &[&str]) {
    let output = run(arguments);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    for fault in faults {
        assert!(told.contains(fault), "{arguments:?}: {fault:?} is not in: {told}");
    }
    let count = told.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(count, faults.len(), "{arguments:?}: {told}");
}

mod arguments {
    use super::*;

    const PORT: &str = "--port must be between 1024 and 65535";
    const MAX_SIZE: &str = "--max-size must be between 1 and 100 MB";
    const TIMEOUT: &str = "--timeout must be between 1 and 300 seconds";

    #[test]
    fn every_fault_is_told_at_once() {
        check_refused(
            &[
                "--transport=carrier-pigeon",
                "--port=80",
                "--max-size=0",
                "--timeout=301",
                "--tools=hammer",
                "--durability=eternal",
                "--tool-errors=loud",
                "--structured=maybe",
                "--log=all",
            ],
            &[
                "--dir argument is required",
                "--transport must be one of: http, stdio",
                PORT,
                MAX_SIZE,
                TIMEOUT,
                "--tools must be a comma list of: ",
                "--durability must be one of: none, data, full",
                "--tool-errors must be one of: result, jsonrpc",
                "--structured must be one of: on, off",
                "--log must be one of: error, warn, info, debug",
            ],
        );
    }

    #[test]
    fn numbers_have_ranges() {
        let folder = Folder::new();
        let dir = format!("--dir={}", folder.path().display());
        let rows = [
            ("--port", PORT, ["1023", "65536", "-1", "", "abc", "8080.5", "99999999999999999999"]),
            ("--max-size", MAX_SIZE, ["0", "101", "-1", "", "ten", "1.5", "18446744073709551616"]),
            ("--timeout", TIMEOUT, ["0", "301", "-1", "", "10s", "0.5", "18446744073709551616"]),
        ];
        for (flag, fault, values) in rows {
            for value in values {
                check_refused(&[&dir, "--transport=stdio", &format!("{flag}={value}")], &[fault]);
            }
        }
        for flags in [
            ["--port=1024", "--max-size=1", "--timeout=1"],
            ["--port=65535", "--max-size=100", "--timeout=300"],
        ] {
            let output = run(&[&[&dir, "--transport=stdio"], &flags[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        }
    }

    #[test]
    fn the_folder_must_be_one() {
        let folder = Folder::new();
        folder.write("file", "");
        let (missing, file) = (folder.file("missing"), folder.file("file"));
        let missing = format!("--dir={}", missing.display());
        check_refused(&["--transport=stdio"], &["--dir argument is required"]);
        check_refused(&["--transport=stdio", "--dir="], &["--dir argument is required"]);
        check_refused(&["--transport=stdio", &missing], &["Directory does not exist"]);
        check_refused(
            &["--transport=stdio", &format!("--dir={}", file.display())],
            &["Not a directory"],
        );
        check_refused(
            &["--transport=stdio", &missing, "--port=1", "--timeout=0"],
            &["Directory does not exist", PORT, TIMEOUT],
        );
    }

    #[test]
    fn a_value_may_follow_its_flag_either_way() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let dir = folder.path().to_str().unwrap();
        let joined = format!("--dir={dir}");
        for arguments in [
            vec!["--dir", dir, "--transport", "stdio", "--max-size", "1"],
            vec![&joined, "--transport=stdio", "--max-size=1"],
        ] {
            let mut server = Server::spawn(binary().args(&arguments));
            let answer = server.request("read_file", json!({ "name": "a.txt" }));
            assert_eq!(answer["result"]["content"], "one", "{arguments:?}");
        }
        // Relative to where it was started.
        let mut server = Server::spawn(
            binary().args(["--dir=.", "--transport=stdio"]).current_dir(folder.path()),
        );
        let answer = server.request("read_file", json!({ "name": "a.txt" }));
        assert_eq!(answer["result"]["content"], "one");
    }

    #[test]
    fn help_and_version_are_no_faults() {
        let help = run(&["--help"]);
        assert_eq!(help.status.code(), Some(0));
        assert_eq!(stderr(&help), "");
        let help = String::from_utf8(help.stdout).unwrap();
        let flags = [
            "--dir",
            "--transport",
            "--port",
            "--host",
            "--allow-host",
            "FILE_EDITOR_TOKEN",
            "--max-size",
            "--timeout",
            "--tools",
            "--read-only",
            "--no-sandbox",
            "--durability",
            "--tool-errors",
            "--structured",
            "--log",
            "--help",
            "--version",
        ];
        for flag in flags {
            assert!(help.contains(flag), "{flag} is not in the manual");
        }
        for default in ["8080", "[default: 10]", "1024 to 65535", "1 to 100", "1 to 300"] {
            assert!(help.contains(default), "{default} is not in the manual");
        }
        let version = run(&["--version"]);
        assert_eq!(version.status.code(), Some(0));
        assert_eq!(version.stdout, b"file-editor 1.0.0\n");
        assert_eq!(stderr(&version), "");
    }

    #[test]
    fn what_is_unknown_is_refused() {
        let folder = Folder::new();
        let dir = format!("--dir={}", folder.path().display());
        for unknown in ["--colour", "--dri=/tmp", "-x", "file.txt", "--read-only=maybe", "--port"] {
            let output = run(&[&dir, "--transport=stdio", unknown]);
            assert_eq!(output.status.code(), Some(1), "{unknown}: {}", stderr(&output));
            assert_eq!(output.stdout, b"", "{unknown}");
            assert!(
                stderr(&output).contains(unknown.split('=').next().unwrap()),
                "{}",
                stderr(&output)
            );
        }
    }

    #[test]
    #[cfg(unix)]
    fn read_only_needs_no_writable_folder() {
        let scene = crate::harness::Unwritable::new();
        let output = scene.run(&["--dir=.", "--transport=stdio"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("Directory not writable"), "{}", stderr(&output));

        let flags = ["--dir=.", "--transport=stdio", "--read-only"];
        let mut server = Server::spawn(&mut scene.command(&flags));
        assert_eq!(
            server.text("read_file", json!({ "name": "a.txt" })),
            "File: a.txt (1 lines)\n\none"
        );
        assert!(server.text("list_files", json!({})).ends_with("Total files: 1"));
        failure(&server.tool("edit_file", json!({ "name": "b.txt", "append": "x" })), -32002);
    }

    #[test]
    fn read_only_refuses_every_edit() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve_with(&["--read-only"]);
        let edit = json!({ "name": "a.txt", "append": "x" });
        let denied = "Permission denied accessing 'a.txt'";
        let why = "the server was started with --read-only";
        let answer = server.tool("edit_file", edit.clone());
        assert_eq!(failure(&answer, -32002), format!("Error: {denied}"));
        assert_eq!(answer["result"]["content"][1]["text"], why);
        let answer = server.request("edit_file", edit);
        assert_eq!(fault(&answer, -32601), "Method not found");
        assert_eq!(answer["error"]["data"], json!({ "method": "edit_file", "hint": why }));
        assert_eq!(
            server.request("read_file", json!({ "name": "a.txt" }))["result"]["content"],
            "one"
        );
        let dry =
            json!({ "name": "new.txt", "append": "x", "create_if_missing": true, "dry_run": true });
        failure(&server.tool("edit_file", dry), -32002);
        assert_eq!(folder.read("a.txt"), "one\n");
        assert_eq!(folder.names(), ["a.txt"]);
    }

    /// Not even what a killed server left.
    #[test]
    #[cfg(unix)]
    fn read_only_removes_nothing() {
        let folder = Folder::new();
        let left = ".fe-1-0123456789abcdef.tmp";
        folder.write(left, "left");
        let dir = format!("--dir={}", folder.path().display());
        let mut server = folder.serve_with(&["--read-only"]);
        server.text("list_files", json!({}));
        server.finish();
        for arguments in
            [&["call", "list_files", &dir, "--read-only"][..], &["doctor", &dir, "--read-only"]]
        {
            run(arguments);
        }
        assert_eq!(folder.names(), [left]);
        folder.serve().finish();
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn a_plain_method_is_served_only_with_the_flat_tools() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let calls = [
            ("list_files", json!({})),
            ("read_file", json!({ "name": "a.txt" })),
            ("edit_file", json!({ "name": "a.txt", "append": "x" })),
        ];
        for flags in [&["--tools=text,code"][..], &["--tools=text", "--read-only"]] {
            let mut server = folder.serve_with(flags);
            for (method, params) in &calls {
                let answer = server.request(method, params.clone());
                assert_eq!(fault(&answer, -32601), "Method not found");
                let hint = "the server was started without --tools=flat";
                assert_eq!(answer["error"]["data"], json!({ "method": method, "hint": hint }));
            }
        }
        assert_eq!(folder.read("a.txt"), "one\n");
        let mut server = folder.serve_with(&["--tools=text,flat"]);
        assert_eq!(
            server.request("read_file", json!({ "name": "a.txt" }))["result"]["content"],
            "one"
        );
    }
}

mod listening {
    use super::*;
    use std::net::TcpListener;

    /// A port that stays taken as long as the listener.
    fn taken(address: &str) -> (TcpListener, u16) {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn dir(folder: &Folder) -> String {
        format!("--dir={}", folder.path().display())
    }

    #[test]
    fn a_host_that_no_request_can_name_is_refused() {
        let folder = Folder::new();
        let words =
            "is not a name or an address with an optional port, such as editor.example:8443";
        for host in
            ["https://a.test", "a.test:x", "a.test:99999", "*.a.test", "[::1", "a b", "a.test/"]
        {
            let fault = format!("--allow-host: `{host}` {words}");
            let flag = format!("--allow-host=b.test,{host}");
            check_refused(&[&dir(&folder), "--port=18099", &flag], &[&fault]);
        }
    }

    #[test]
    #[cfg(unix)]
    fn http_is_what_is_served_unless_said_otherwise() {
        let folder = Folder::new();
        for flags in
            [&[][..], &["--transport=http"], &["--transport", "http", "--host", "localhost"]]
        {
            let server = folder.http_with(flags);
            assert_eq!(server.rest("list_files", json!({}))["total_count"], 0, "{flags:?}");
            let lines = log_lines(&server.stop());
            assert_eq!(lines[0]["event"], "ready");
            assert_eq!(lines[0]["transport"], "http", "{flags:?}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_a_fault_among_the_others() {
        let folder = Folder::new();
        let (_listener, port) = taken("127.0.0.1");
        let (flag, fault) = (format!("--port={port}"), format!("Port {port} is already in use"));
        check_refused(&[&dir(&folder), &flag], &[&fault]);
        check_refused(&[&dir(&folder), &flag, "--host=127.0.0.1"], &[&fault]);
        check_refused(
            &[&flag, "--timeout=0", "--log=all"],
            &[
                "--dir argument is required",
                &fault,
                "--timeout must be between 1 and 300 seconds",
                "--log must be one of: error, warn, info, debug",
            ],
        );
        // On stdio nobody listens, so nobody minds.
        let output = run(&[&dir(&folder), &flag, "--transport=stdio"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }

    /// Who asks for `localhost` may be sent to either address: half of it is not enough.
    #[test]
    fn a_port_that_is_taken_on_the_other_loopback_address_is_taken() {
        let folder = Folder::new();
        if TcpListener::bind("[::1]:0").is_err() {
            return crate::harness::not_checked("the address ::1", "IPv6");
        }
        let (_listener, port) = taken("::1");
        let fault = format!("Port {port} is already in use");
        check_refused(&[&dir(&folder), &format!("--port={port}")], &[&fault]);
    }

    #[test]
    fn an_address_that_is_not_ours_is_a_fault() {
        let folder = Folder::new();
        let port = format!("--port={}", some_port());
        for host in ["192.0.2.1", "not a host"] {
            let fault = format!("Cannot listen on {host}");
            check_refused(&[&dir(&folder), &port, &format!("--host={host}")], &[&fault]);
        }
    }

    #[test]
    fn one_loopback_address_can_be_asked_for() {
        let folder = Folder::new();
        let server = folder.http_with(&["--host=127.0.0.1"]);
        assert_eq!(server.rest("list_files", json!({}))["total_count"], 0);
    }

    #[test]
    fn beyond_this_machine_only_with_a_token() {
        const FAULT: &str =
            "--host=0.0.0.0 can be reached from other machines: set a token in FILE_EDITOR_TOKEN";
        let folder = Folder::new();
        let port = format!("--port={}", some_port());
        check_refused(&[&dir(&folder), &port, "--host=0.0.0.0"], &[FAULT]);
        check_refused(
            &[&dir(&folder), &port, "--host=0.0.0.0", "--max-size=0"],
            &[FAULT, "--max-size must be between 1 and 100 MB"],
        );
        // A name that may be said is no token, and an empty one is none.
        check_refused(&[&dir(&folder), &port, "--host=0.0.0.0", "--allow-host=a.test"], &[FAULT]);
        let output = binary()
            .args([&dir(&folder), &port, "--host=0.0.0.0"])
            .env("FILE_EDITOR_TOKEN", "")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(FAULT), "{}", stderr(&output));

        let token = "a-token-that-nobody-guesses";
        let env = [("FILE_EDITOR_TOKEN", token)];
        let server =
            HttpServer::start(folder.path(), &["--host=0.0.0.0", "--allow-host=a.test"], &env);
        let list = Request::post("/list_files", "{}");
        server.send(&list).refusal(401, -32600);
        let list = list.with("Authorization", &format!("Bearer {token}"));
        assert_eq!(server.send(&list).status, 200);
        assert_eq!(server.send(&list.clone().with("Host", "a.test:80")).status, 200);
        server.send(&list.with("Host", "0.0.0.0")).refusal(403, -32600);
    }

    /// It cannot be compared, and a server that is open by mistake is worse than none.
    #[test]
    #[cfg(unix)]
    fn a_token_that_cannot_be_read_is_not_ignored() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = Folder::new();
        let mut command = binary();
        let port = some_port();
        command.args([dir(&folder), format!("--port={port}")]);
        command.env("FILE_EDITOR_TOKEN", std::ffi::OsStr::from_bytes(b"secret\xff"));
        match HttpServer::spawn(&mut command, port) {
            Err(told) => assert!(told.contains("FILE_EDITOR_TOKEN"), "{told}"),
            Ok(server) => {
                server.send(&Request::post("/list_files", "{}")).refusal(401, -32600);
            }
        }
    }

    /// Nobody could ever come in.
    #[test]
    fn a_token_that_no_request_can_carry_is_a_fault() {
        let folder = Folder::new();
        let port = some_port();
        for token in ["blank ", "line\n", "tab\t", "two\nlines", "\u{7f}"] {
            let mut command = binary();
            command.args([dir(&folder), format!("--port={port}")]).env("FILE_EDITOR_TOKEN", token);
            match HttpServer::spawn(&mut command, port) {
                Err(told) => assert!(told.contains("which no HTTP header can carry"), "{told}"),
                Ok(_) => panic!("served with {token:?}"),
            }
        }
    }

    /// As soon as it says that it is ready it can be told to stop.
    #[test]
    #[cfg(unix)]
    fn a_signal_right_after_the_start_is_a_good_end() {
        let folder = Folder::new();
        for _ in 0..20 {
            folder.http().stop();
        }
    }
}

mod log {
    use super::*;

    /// One of each: done, the client's fault, the system's, all on one server.
    fn logged(flags: &[&str]) -> Vec<Value> {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve_with(flags);
        server.text("read_file", json!({ "name": "a.txt" }));
        server.request("edit_file", json!({ "name": "a.txt", "append": "two" }));
        server.tool("read_file", json!({ "name": "missing.txt" }));
        server.tool(
            "edit_file",
            json!({ "name": "a.txt", "edits": [{ "line": 99, "operation": "delete" }] }),
        );
        server.send_line(r#"{"jsonrpc":"2.0","id":"text id","method":"list_files"}"#);
        server.receive();
        let (status, _, stderr) = server.finish();
        assert!(status.success());
        log_lines(&stderr)
    }

    #[test]
    fn one_line_for_the_start_and_one_for_each_call() {
        let lines = logged(&[]);
        let ready = &lines[0];
        assert_eq!(ready["event"], "ready");
        assert_eq!(ready["level"], "info");
        assert_eq!(ready["version"], "1.0.0");
        assert_eq!(ready["transport"], "stdio");
        assert_eq!(ready["tools"], json!(["list_files", "read_file", "edit_file"]));
        assert!(ready["startup_ms"].is_f64(), "{ready}");

        let calls: Vec<_> = lines.iter().filter(|line| line["event"] == "call").collect();
        // Operation, file, request id, level, outcome, code, category.
        let expected = [
            json!(["read_file", "a.txt", "1", "info", "ok", null, null]),
            json!(["edit_file", "a.txt", "2", "info", "ok", null, null]),
            json!(["read_file", "missing.txt", "3", "warn", "error", -32001, "system"]),
            json!(["edit_file", "a.txt", "4", "warn", "error", -32602, "client"]),
            json!(["list_files", null, "text id", "info", "ok", null, null]),
        ];
        let facts = ["operation", "file", "request_id", "level", "outcome", "code", "category"];
        let found: Vec<Value> =
            calls.iter().map(|line| json!(facts.map(|fact| &line[fact]))).collect();
        assert_eq!(found, expected);
        for call in calls {
            let time = call["timestamp"].as_str().unwrap();
            let shape: String =
                time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(shape, "0000-00-00T00:00:00.000Z");
            assert!(call["duration_ms"].is_f64() && call["lock_wait_ms"].is_f64(), "{call}");
            assert_eq!(call["message"].is_string(), call["outcome"] == "error", "{call}");
        }
    }

    #[test]
    fn a_level_leaves_out_what_is_below() {
        let levels = |flags: &[&str]| -> Vec<String> {
            // A slow start adds a warning of its own.
            let calls = logged(flags)
                .into_iter()
                .filter(|line| !line["event"].as_str().unwrap().contains("startup"));
            calls.map(|line| line["level"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(levels(&["--log=error"]), [""; 0]);
        assert_eq!(levels(&["--log=warn"]), ["warn", "warn"]);
        let all = ["info", "info", "info", "warn", "warn", "info"];
        assert_eq!(levels(&["--log=info"]), all);
        assert!(levels(&["--log=debug"]).len() >= all.len());
    }

    #[test]
    fn a_wait_for_a_lock_is_measured() {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let mut server = folder.serve_with(&["--timeout=1"]);
        let held = folder.lock("a.txt");
        failure(&server.tool("edit_file", json!({ "name": "a.txt", "append": "x" })), -32014);
        drop(held);
        let (_, _, stderr) = server.finish();
        let line = log_lines(&stderr).into_iter().find(|line| line["code"] == -32014).unwrap();
        assert!(line["lock_wait_ms"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["duration_ms"].as_f64() >= line["lock_wait_ms"].as_f64(), "{line}");
    }

    /// Every way contents can come in, fail and go out, at the most talkative level.
    #[test]
    fn contents_are_never_logged() {
        const SECRET: &str = "hunter2-and-nothing-else";
        let folder = Folder::new();
        folder.write("a.txt", format!("{SECRET}\n"));
        folder.write("binary", format!("{SECRET}\0"));
        folder.write("latin", [SECRET.as_bytes(), b"\xe9"].concat());
        let mut server = folder.serve_with(&["--log=debug"]);
        let edit = |edit: Value| json!({ "name": "a.txt", "edits": [edit] });
        let arguments = [
            json!({ "name": "a.txt" }),
            json!({ "name": "binary" }),
            json!({ "name": "latin" }),
            json!({ "name": "a.txt", "append": SECRET }),
            json!({ "name": "new.txt", "append": SECRET }),
            json!({ "name": "binary", "append": SECRET }),
            json!({ "name": "a.txt", "append": format!("{SECRET}\0") }),
            json!({ "name": "a.txt", "append": [SECRET] }),
            json!({ "name": "a.txt", "append": { SECRET: SECRET } }),
            json!({ "name": "a.txt", "expected_hash": SECRET }),
            json!({ "name": "a.txt", SECRET: 1 }),
            json!({ "name": "a.txt", "start_line": SECRET }),
            json!({ "name": format!("{SECRET}/") }),
            edit(json!({ "line": 0, "operation": "replace", "content": SECRET })),
            edit(json!({ "line": 99, "operation": "replace", "content": SECRET })),
            edit(json!({ "line": 0, "operation": "delete", "content": SECRET })),
            edit(json!({ "line": 0, "operation": SECRET, "content": SECRET })),
            edit(json!({ "line": SECRET, "operation": "insert", "content": SECRET })),
        ];
        let mut answers = String::new();
        for arguments in &arguments {
            for method in ["list_files", "read_file", "edit_file"] {
                answers += &server.tool(method, arguments.clone()).to_string();
                answers += &server.request(method, arguments.clone()).to_string();
            }
        }
        // And everything that is no call.
        for line in [
            SECRET.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":"{SECRET}""#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{SECRET}","params":{{"{SECRET}":1}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"{SECRET}"}}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{SECRET}"}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"a":"{SECRET}"}}}}"#
            ),
            format!(r#"[{{"jsonrpc":"{SECRET}"}}]"#),
        ] {
            answers += &server.exchange(&line).to_string();
        }
        server.notify("notifications/cancelled", json!({ "requestId": 1, "reason": SECRET }));
        server.notify(SECRET, json!({ SECRET: SECRET }));
        let (status, _, stderr) = server.finish();
        assert!(status.success());
        assert!(answers.contains(SECRET), "the secret went through");
        assert!(log_lines(&stderr).len() > 100, "{stderr}");
        assert!(!stderr.contains("hunter2"), "{stderr}");
    }
}
