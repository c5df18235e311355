//! Clients that behave badly: they do not read, flood, close one end, send too much at once. Others are served on, memory
//! is bounded, and what was answered comes out whole.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Folder, HANG, binary, failure, fault};
use serde_json::{Value, json};

/// A server whose stdout nobody reads unless a test does.
fn start(folder: &Folder, flags: &[&str]) -> Child {
    binary()
        .arg(format!("--dir={}", folder.path().display()))
        .args(["--transport=stdio", "--log=error"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn request(id: usize, method: &str, params: &Value) -> Vec<u8> {
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    format!("{line}\n").into_bytes()
}

/// Waits for the end, and kills what does not come to one.
fn ends(child: &mut Child) -> bool {
    let until = Instant::now() + HANG;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

/// The most memory the process ever had, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(child: &Child) -> u64 {
    crate::harness::memory_kib(child.id(), "VmHWM") << 10
}

/// The peak memory, once it has not grown for a second.
#[cfg(target_os = "linux")]
fn settled_peak(child: &Child) -> u64 {
    let (mut peak, mut same) = (0, 0);
    while same < 20 {
        std::thread::sleep(Duration::from_millis(50));
        let now = peak_memory(child);
        same = if now == peak { same + 1 } else { 0 };
        peak = now;
    }
    peak
}

#[test]
fn a_large_answer_comes_out_whole_after_the_end_of_input() {
    let folder = Folder::new();
    folder.write("large.txt", "x".repeat(4_000_000));
    let mut child = start(&folder, &[]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(&request(1, "read_file", &json!({ "name": "large.txt" }))).unwrap();
    drop(input);
    // Much more than a pipe holds, and read only now.
    std::thread::sleep(Duration::from_millis(500));
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(ends(&mut child));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["result"]["content"].as_str().unwrap().len(), 4_000_000);
}

#[test]
#[cfg(target_os = "linux")]
fn many_large_answers_at_once_are_not_held_at_once() {
    let folder = Folder::new();
    folder.write("large.txt", "x".repeat(4_000_000));
    let uri = format!("file://{}", folder.file("large.txt").display());
    let requests =
        [("read_file", json!({ "name": "large.txt" })), ("resources/read", json!({ "uri": uri }))];
    for (method, params) in requests {
        let mut child = start(&folder, &["--max-size=4", "--timeout=120"]);
        let mut input = child.stdin.take().unwrap();
        for id in 0..100 {
            input.write_all(&request(id, method, &params)).unwrap();
        }
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..100 {
            let mut answer = String::new();
            output.read_line(&mut answer).unwrap();
            assert!(answer.len() > 4_000_000, "{answer}");
        }
        // 64 MB of files, and what the process and its allocator need besides; all of them would be 400 MB.
        let peak = peak_memory(&child);
        assert!(peak < 200 << 20, "{method}: {peak}");
        drop(input);
        assert!(ends(&mut child));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn answers_nobody_reads_do_not_pile_up() {
    let folder = Folder::new();
    let mut child = start(&folder, &[]);
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let lines = request(1, "tools/call", &json!({ "name": "nonsense" })).repeat(1000);
        // Until the server stops reading, which ends this by a broken pipe once it is killed.
        while input.write_all(&lines).is_ok() {}
    });
    let peak = settled_peak(&child);
    assert!(peak < 60 << 20, "{peak}");
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn answers_to_pings_nobody_reads_do_not_pile_up() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let lock = folder.lock("a.txt");
    let mut child = start(&folder, &["--timeout=300"]);
    let mut input = child.stdin.take().unwrap();
    // One more than may be in flight. Behind it only pings and notifications are read.
    let edit = json!({ "name": "a.txt", "append": "x" });
    let edits: Vec<u8> = (0..4097).flat_map(|id| request(id, "edit_file", &edit)).collect();
    input.write_all(&edits).unwrap();
    let before = settled_peak(&child);
    let writer = std::thread::spawn(move || {
        for number in 0..20_000 {
            let id = format!("{number}{}", "x".repeat(15_000));
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            if writeln!(input, "{ping}").is_err() {
                return;
            }
        }
    });
    let peak = settled_peak(&child);
    assert!(peak < before + (20 << 20), "{before}, then {peak}");
    drop(lock);
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn questions_nobody_reads_do_not_pile_up() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let mut child = start(&folder, &["--confirm=always"]);
    let mut input = child.stdin.take().unwrap();
    let client = json!({ "name": "test-client", "version": "1" });
    let capabilities = json!({ "elicitation": {} });
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client
    });
    input.write_all(&request(0, "initialize", &params)).unwrap();
    let writer = std::thread::spawn(move || {
        for id in 1..20_000 {
            let edit = json!({ "name": "a.txt", "append": "x".repeat(8000) });
            let cancel = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id }
            });
            let call =
                request(id, "tools/call", &json!({ "name": "edit_file", "arguments": edit }));
            if input.write_all(&call).and_then(|()| writeln!(input, "{cancel}")).is_err() {
                return;
            }
            // The question is asked before the call is cancelled.
            std::thread::sleep(Duration::from_micros(300));
        }
    });
    let peak = settled_peak(&child);
    assert!(peak < 45 << 20, "{peak}");
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
}

#[test]
fn a_server_whose_answers_nobody_can_read_makes_no_more_edits() {
    let folder = Folder::new();
    let mut child = start(&folder, &[]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let edit = json!({ "name": "a.txt", "append": "x", "create_if_missing": true });
    let _ = input.write_all(&request(1, "edit_file", &edit));
    // It ends, though its input does not.
    assert!(ends(&mut child));
    drop(input);
    assert_eq!(folder.read("a.txt"), "x\n", "one edit was under way, and no other was made");
}

#[test]
fn pipes_that_do_not_block_are_waited_for() {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let folder = Folder::new();
    folder.write("large.txt", "x".repeat(1_000_000));
    let (stdin, mut input) = std::io::pipe().unwrap();
    let (output, stdout) = std::io::pipe().unwrap();
    // The flag belongs to the end of the pipe, whoever holds it.
    let unblock = |flags: OFlags| flags | OFlags::NONBLOCK;
    fcntl_setfl(&stdin, unblock(fcntl_getfl(&stdin).unwrap())).unwrap();
    fcntl_setfl(&stdout, unblock(fcntl_getfl(&stdout).unwrap())).unwrap();
    let mut child = binary()
        .arg(format!("--dir={}", folder.path().display()))
        .args(["--transport=stdio", "--log=error"])
        .stdin(stdin)
        .stdout(stdout)
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(100)); // it finds nothing to read at first
    for id in 0..3 {
        input.write_all(&request(id, "read_file", &json!({ "name": "large.txt" }))).unwrap();
    }
    let mut output = BufReader::new(output);
    for _ in 0..3 {
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert!(answer.len() > 1_000_000 && answer.ends_with("}\n"));
    }
    drop(input);
    assert!(ends(&mut child));
}

#[test]
fn faults_are_told_up_to_a_limit_however_many_there_are() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let mut arguments = json!({ "name": "a.txt" });
    for number in 0..100_000 {
        arguments[format!("p{number}")] = json!(1);
    }
    let answer = server.tool("read_file", arguments);
    let message = failure(&answer, -32602);
    assert!(message.ends_with("; ... and 99980 more"), "{message}");
    assert!(message.len() < 4000, "{}", message.len());
}

#[test]
fn edits_that_wait_for_many_locks_leave_threads_for_reads() {
    let folder = Folder::new();
    let names: Vec<String> = (0..80).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        folder.write(name, "one\n");
    }
    folder.write("free.txt", "free\n");
    let locks: Vec<_> = names.iter().map(|name| folder.lock(name)).collect();
    let mut server = folder.serve_with(&["--timeout=300"]);
    let edit = |name: &String| json!({ "name": name, "append": "two" });
    let ids: Vec<_> = names.iter().map(|name| server.send("edit_file", edit(name))).collect();
    // The first answer is that of the last call: nobody else can have one.
    let read = server.request("read_file", json!({ "name": "free.txt" }));
    assert_eq!(read["result"]["content"], "free");
    drop(locks);
    for answer in server.receive_all(&ids) {
        assert_eq!(answer["result"]["success"], true, "{answer}");
    }
}

#[test]
fn a_request_that_finds_no_room_does_not_hide_a_ping_or_a_cancellation() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let lock = folder.lock("a.txt");
    let mut server = folder.serve_with(&["--timeout=300"]);
    // Eight of these are one more than may be in flight.
    let text = "x".repeat(9_000_000);
    let edit = json!({ "name": "a.txt", "append": text });
    let ids: Vec<_> = (0..8).map(|_| server.send("edit_file", edit.clone())).collect();
    let answer = server.request("ping", json!({}));
    assert_eq!(answer["result"], json!({}));
    for id in &ids[..7] {
        server.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    drop(lock);
    let answer = server.receive();
    assert_eq!(answer["id"], ids[7]);
    assert_eq!(answer["result"]["lines_modified"], 1, "{answer}");
}

#[test]
fn a_folder_that_is_gone_is_not_taken_for_an_empty_one() {
    let outer = Folder::new();
    std::fs::create_dir(outer.file("inner")).unwrap();
    let mut server = crate::harness::Server::start(&outer.file("inner"), &[], &[]);
    assert!(server.text("list_files", json!({})).ends_with("Total files: 0"));
    std::fs::remove_dir(outer.file("inner")).unwrap();
    let message = "Error: Cannot access working directory";
    assert_eq!(server.error("list_files", json!({})), message);
    assert_eq!(server.error("edit_file", json!({ "name": "a.txt", "append": "x" })), message);
    let edit = json!({ "name": "a.txt", "append": "x", "create_if_missing": true });
    fault(&server.request("edit_file", edit), -32001);
}
