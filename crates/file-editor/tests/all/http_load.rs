//! HTTP under load: many clients, rude ones among them, other processes on the same file, and the end in the midst.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::http::{Client, HttpServer, Mcp, Request};
use crate::harness::{Folder, HANG};
use serde_json::{Value, json};

const FILE: &str = "shared.txt";

fn append(line: &str) -> Value {
    json!({ "name": FILE, "append": line, "create_if_missing": true })
}

/// Each line is in the file exactly once, and nothing else is.
fn check_lines(folder: &Folder, expected: &BTreeSet<String>) {
    let text = folder.read(FILE);
    let found: BTreeSet<String> = text.lines().map(String::from).collect();
    let lost: Vec<_> = expected.difference(&found).take(5).collect();
    let foreign: Vec<_> = found.difference(expected).take(5).collect();
    assert!(lost.is_empty() && foreign.is_empty(), "lost: {lost:?}, nobody's: {foreign:?}");
    assert_eq!(text.lines().count(), expected.len(), "a line is there twice");
    assert!(text.ends_with('\n'));
}

/// One client of either kind, on one connection.
struct Agent {
    number: usize,
    rest: Client,
    mcp: Mcp,
}

const STEADY: &str = "first \"line\"\nsecond\\line\nthird";

impl Agent {
    fn new(server: &HttpServer, number: usize) -> Self {
        let mcp = if number.is_multiple_of(2) { server.mcp() } else { server.modern() };
        Self { number, rest: server.connect(), mcp }
    }

    /// One call of ten kinds, its answer checked. Those that edit say which line they added.
    fn call(&mut self, call: usize) -> Option<String> {
        let line = format!("agent {} call {call}", self.number);
        match (call + self.number) % 10 {
            0 | 5 => {
                let answer = self.rest.rest("edit_file", append(&line));
                assert_eq!(answer["success"], true, "{answer}");
                return Some(line);
            }
            1 | 6 => {
                let answer = self.mcp.tool("edit_file", append(&line));
                assert_eq!(answer["result"]["isError"], false, "{answer}");
                return Some(line);
            }
            2 | 7 => {
                let answer = self.rest.rest("read_file", json!({ "name": "steady.txt" }));
                assert_eq!(answer, json!({ "content": STEADY, "total_lines": 3 }));
            }
            3 => {
                let text = self.mcp.text("read_file", json!({ "name": "steady.txt" }));
                assert_eq!(text, format!("File: steady.txt (3 lines)\n\n{STEADY}"));
            }
            4 => {
                let answer = self.rest.rest("list_files", json!({}));
                let names: Vec<_> = answer["files"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|file| file["name"].as_str().unwrap())
                    .collect();
                assert_eq!(names, ["large.txt", FILE, "steady.txt"]);
            }
            8 => {
                let text = self.mcp.text("list_files", json!({}));
                assert!(text.ends_with("Total files: 3"), "{text}");
            }
            _ => {
                let range =
                    json!({ "name": "large.txt", "start_line": call + 1, "end_line": 2000 });
                let answer = self.rest.rest("read_file", range);
                let content = answer["content"].as_str().unwrap();
                assert_eq!(content.lines().count(), 2000 - call);
                assert_eq!(content.lines().next().unwrap(), format!("{call:050}"));
            }
        }
        None
    }
}

/// KiB of memory that the process has: its own, and pages of its program, which the system may take back.
#[cfg(target_os = "linux")]
fn memory(server: &HttpServer) -> (u64, u64) {
    (memory_figure(server, "RssAnon:"), memory_figure(server, "RssFile:"))
}

/// KiB, as the system calls them.
#[cfg(target_os = "linux")]
fn memory_figure(server: &HttpServer, name: &str) -> u64 {
    let path = format!("/proc/{}/status", server.pid());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
}

/// Room for a thousand connections more than a process usually may have.
#[cfg(unix)]
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

#[cfg(not(unix))]
fn raise_descriptor_limit() {}

/// Sends header after header and never ends them, until `done`.
fn dribble(server: &HttpServer, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let mut client = server.connect();
        let mut written = client.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
        while written.is_ok() && !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            written = client.write(b"X-More: y\r\n");
        }
    }
}

/// Everything that is refused, over and over.
fn intrude(server: &HttpServer, done: &AtomicBool) {
    let right = format!("Bearer {TOKEN}");
    let edit = append("an intruder's line").to_string();
    let edit = |name, value| {
        Request::post("/edit_file", &edit).with("Authorization", &right).with(name, value)
    };
    let refused = [
        (edit("Host", "evil.com"), 403),
        (edit("Origin", "http://evil.com"), 403),
        (edit("Authorization", "Bearer wrong"), 401),
        (edit("Content-Type", "text/plain"), 400),
        (Request::post("/mcp", "{").with("Authorization", &right), 400),
        (Request::new("GET", "/mcp").with("Authorization", &right), 405),
    ];
    while !done.load(Ordering::Relaxed) {
        for (request, status) in &refused {
            assert_eq!(server.send(request).status, *status);
        }
    }
}

/// A body of 100 MB, by whoever says so before and by who does not.
fn overwhelm(server: &HttpServer) {
    let right = format!("Bearer {TOKEN}");
    let body = vec![b' '; 100 << 20];
    for path in ["/mcp", "/edit_file"] {
        let request = Request::post(path, &body).with("Authorization", &right);
        for request in [request.clone(), request.chunked()] {
            let message = server.send(&request).refusal(413, -32600);
            assert_eq!(message, "Request too large");
        }
    }
}

const TOKEN: &str = "a-token-that-nobody-guesses";

#[test]
fn legitimate_calls_are_answered_whatever_else_goes_on() {
    const CLIENTS: usize = 64;
    const CALLS: usize = 200;
    raise_descriptor_limit();
    let folder = Folder::new();
    folder.write("steady.txt", format!("{STEADY}\n"));
    let lines: Vec<_> = (0..2000).map(|line| format!("{line:050}")).collect();
    folder.write("large.txt", lines.join("\n") + "\n");
    folder.write(FILE, "");
    let flags = ["--timeout=300", "--durability=none"];
    // Those of the agents carry no token, those of the intruders are measured against one.
    let server = folder.http_with(&flags);
    let guarded = HttpServer::start(folder.path(), &flags, &[("FILE_EDITOR_TOKEN", TOKEN)]);
    // What is idle has done a little of everything.
    let mut warm = Agent::new(&server, CLIENTS);
    for call in 0..20 {
        warm.call(call);
    }
    drop(warm);
    folder.write(FILE, "");
    #[cfg(target_os = "linux")]
    let idle = {
        std::thread::sleep(Duration::from_secs(3));
        memory(&server)
    };

    let idle_connections: Vec<_> = (0..1000)
        .map(|number| {
            let mut client = server.connect();
            // Some have been used, some never.
            if number % 4 == 0 {
                assert_eq!(client.send(&Request::new("GET", "/health")).status, 200);
            }
            client
        })
        .collect();
    let done = AtomicBool::new(false);
    let begin = Barrier::new(CLIENTS);
    let mut added = BTreeSet::new();
    std::thread::scope(|scope| {
        for server in [&server, &guarded] {
            scope.spawn(|| dribble(server, &done));
        }
        let intruder = scope.spawn(|| intrude(&guarded, &done));
        let giant = scope.spawn(|| overwhelm(&guarded));
        let agents: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (server, begin) = (&server, &begin);
                scope.spawn(move || {
                    let mut agent = Agent::new(server, number);
                    begin.wait();
                    (0..CALLS).filter_map(|call| agent.call(call)).collect::<Vec<_>>()
                })
            })
            .collect();
        let outcomes: Vec<_> =
            agents.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        let giant = giant.join();
        done.store(true, Ordering::Relaxed);
        intruder.join().unwrap();
        giant.unwrap();
        for outcome in outcomes {
            added.extend(outcome.unwrap());
        }
    });
    assert_eq!(added.len(), CLIENTS * CALLS * 4 / 10);
    check_lines(&folder, &added);
    assert_eq!(folder.names(), ["large.txt", FILE, "steady.txt"]);
    drop(idle_connections);

    #[cfg(target_os = "linux")]
    {
        const BOUND: u64 = 4 << 10;
        // It is given back when nobody has called for a moment.
        let until = std::time::Instant::now() + Duration::from_secs(30);
        let mut after = memory(&server);
        while after.0 > idle.0 + BOUND && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
            after = memory(&server);
        }
        std::thread::sleep(Duration::from_secs(2));
        after = memory(&server);
        crate::harness::measured(&format!(
            "HTTP memory (own, program) in KiB: idle {idle:?}, after load {after:?}"
        ));
        assert!(after.0 <= idle.0 + BOUND, "{idle:?} KiB before, {after:?} afterwards");
    }
    #[cfg(not(target_os = "linux"))]
    crate::harness::not_checked("memory after load", "Linux");
}

/// Whoever announces a body and does not send it keeps nobody else waiting.
#[test]
fn bodies_that_never_come_delay_nobody() {
    raise_descriptor_limit();
    let folder = Folder::new();
    folder.write("steady.txt", format!("{STEADY}\n"));
    // As patient as can be: waiting for those would be a hang.
    let server = folder.http_with(&["--timeout=300"]);
    let mut silent = Vec::new();
    for number in 0..700 {
        let request = Request::post("/read_file", "");
        let head = match number % 7 {
            0 => request.and("Transfer-Encoding", "chunked").head(None),
            1 => request.head(Some(10 << 20)),
            _ => request.head(Some(100)),
        };
        let mut client = server.connect();
        client.write(&head).unwrap();
        silent.push(client);
    }
    server.settle();
    let read = json!({ "name": "steady.txt" });
    assert_eq!(server.rest("read_file", read.clone())["content"], STEADY);
    server.mcp().text("read_file", read.clone());
    let chunked = Request::post("/read_file", read.to_string()).chunked();
    assert_eq!(server.send(&chunked).status, 200);
    let text = "x".repeat(5 << 20);
    let edit = json!({ "name": "new.txt", "append": text, "create_if_missing": true });
    assert_eq!(server.rest("edit_file", edit)["success"], true);
}

/// Ten megabytes in lines of one kilobyte.
fn huge() -> String {
    ("x".repeat(1023) + "\n").repeat(10 << 10)
}

/// A request for a large file, by either way.
fn read_huge(number: usize) -> Request {
    let arguments = json!({ "name": "huge.txt" });
    match number % 2 {
        0 => Request::post("/read_file", arguments.to_string()),
        _ => Request::tool("read_file", arguments),
    }
}

/// A client that takes a large answer slowly is waited for, and nobody waits because of it.
#[test]
fn answers_that_are_taken_slowly_delay_nobody() {
    let folder = Folder::new();
    folder.write("steady.txt", format!("{STEADY}\n"));
    let text = huge();
    folder.write("huge.txt", &text);
    let server = folder.http_with(&["--timeout=300"]);
    let mut slow: Vec<_> = (0..4)
        .map(|number| {
            let mut client = server.connect();
            client.write(&read_huge(number).bytes()).unwrap();
            client
        })
        .collect();
    server.settle();
    for _ in 0..20 {
        let answer = server.rest("read_file", json!({ "name": "steady.txt" }));
        assert_eq!(answer["content"], STEADY);
        server.mcp().text("read_file", json!({ "name": "steady.txt" }));
    }
    // Longer than they could take if somebody had to wait for them.
    std::thread::sleep(Duration::from_secs(4));
    let answer = slow[0].receive().unwrap().json();
    assert!(answer["content"].as_str().unwrap() == text.trim_end());
    let answer = slow[1].receive().unwrap().json();
    assert!(crate::harness::texts(&answer)[0].ends_with(text.trim_end()));
}

/// More answers than there is room for, which nobody takes, or a little of them now and then: memory is bounded, and
/// everybody else is answered.
#[test]
fn answers_that_nobody_takes_delay_nobody_and_hold_no_more_than_there_is_room_for() {
    const SILENT: usize = 150;
    const TRICKLING: usize = 20;
    raise_descriptor_limit();
    let folder = Folder::new();
    folder.write("steady.txt", format!("{STEADY}\n"));
    folder.write(FILE, "");
    let text = huge();
    folder.write("huge.txt", &text);
    let server = folder.http_with(&["--timeout=60", "--durability=none"]);
    let mut clients: Vec<_> = (0..SILENT + TRICKLING)
        .map(|number| {
            let mut client = server.connect();
            client.write(&read_huge(number).bytes()).unwrap();
            client
        })
        .collect();
    let done = AtomicBool::new(false);
    let mut added = BTreeSet::new();
    std::thread::scope(|scope| {
        let (server, done) = (&server, &done);
        let trickling = clients.split_off(SILENT);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for client in &trickling {
                    client.take_a_little();
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let readers = [0, 1].map(|number| scope.spawn(move || server.send(&read_huge(number))));
        let calls = scope.spawn(|| {
            let mut client = server.connect();
            let mut mcp = server.mcp();
            let mut slowest = Duration::ZERO;
            for call in 0..200_u32 {
                let since = std::time::Instant::now();
                let answer = client.rest("read_file", json!({ "name": "steady.txt" }));
                assert_eq!(answer["content"], STEADY);
                let line = format!("line {call}");
                mcp.text("edit_file", append(&line));
                added.insert(line);
                if call.is_multiple_of(50) {
                    // A part of what the others ask for whole.
                    let part = json!({ "name": "huge.txt", "start_line": 7, "end_line": 7 });
                    assert_eq!(client.rest("read_file", part)["content"], text[..1023]);
                }
                assert_eq!(client.rest("list_files", json!({}))["total_count"], 3);
                slowest = slowest.max(since.elapsed());
            }
            slowest
        });
        let ([plain, tool], slowest) =
            (readers.map(std::thread::ScopedJoinHandle::join), calls.join());
        done.store(true, Ordering::Relaxed);
        let (plain, tool) = (plain.unwrap().json(), tool.unwrap().json());
        assert!(plain["content"].as_str() == Some(text.trim_end()), "{:.300}", plain.to_string());
        assert!(crate::harness::texts(&tool)[0].ends_with(text.trim_end()));
        crate::harness::measured(&format!("the slowest of 200 rounds took {:?}", slowest.unwrap()));
    });
    check_lines(&folder, &added);
    #[cfg(target_os = "linux")]
    {
        // Room for answers, large and small; eight reads on threads; what a connection may take by itself; the process.
        const BOUND: usize = ((64 + 16 + 8 * 10 + 32) << 10) + (SILENT + TRICKLING + 3) * 200;
        let peak = memory_figure(&server, "VmHWM:");
        crate::harness::measured(&format!("peak memory {peak} KiB, at most {BOUND} are allowed"));
        assert!(peak <= BOUND as u64, "{peak} KiB, more than {BOUND}");
        drop(clients);
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while memory(&server).0 > 16 << 10 && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
        let after = memory(&server);
        assert!(after.0 <= 16 << 10, "{after:?} KiB are left");
    }
    #[cfg(not(target_os = "linux"))]
    crate::harness::not_checked("memory under attack", "Linux");
}

/// What finds no room in time is told so, and the connection goes on.
#[test]
fn a_read_that_finds_no_room_times_out() {
    let folder = Folder::new();
    folder.write("huge.txt", huge());
    let server = folder.http_with(&["--timeout=1"]);
    // In time nobody is sent away: those who wait are gone before those who stall have to be.
    let mut clients: Vec<_> = (0..60)
        .map(|number| {
            let mut client = server.connect();
            client.write(&read_huge(number).bytes()).unwrap();
            client
        })
        .collect();
    let mut refused = 0;
    // The first ones hold what room there is; the last ones found none.
    for client in clients.iter_mut().rev().take(30) {
        let Ok(response) = client.receive() else { continue };
        let answer = response.json();
        if answer["isError"] == true || answer["result"]["isError"] == true {
            let text = answer.to_string();
            assert!(text.contains("-32014") && text.contains("timed out after 1 second"), "{text}");
            assert_eq!(client.send(&Request::new("GET", "/health")).status, 200);
            refused += 1;
        }
    }
    assert!(refused > 0, "none had to wait");
}

/// Requests without end on one connection, whose answers nobody takes: one answer is made at a time.
#[test]
#[cfg(target_os = "linux")]
fn requests_that_come_before_answers_are_taken_wait() {
    const REQUESTS: usize = 400;
    let folder = Folder::new();
    let line = "y".repeat(99) + "\n";
    folder.write("medium.txt", line.repeat(1000));
    let server = folder.http();
    server.rest("read_file", json!({ "name": "medium.txt" }));
    let before = memory_figure(&server, "VmHWM:");
    let mut client = server.connect();
    let mut writer = client.writer();
    let requests = Request::post("/read_file", r#"{"name":"medium.txt"}"#).bytes().repeat(REQUESTS);
    // More than all buffers on the way hold, so it ends only when answers are taken.
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &requests));
    server.settle();
    std::thread::sleep(Duration::from_millis(500));
    let peak = memory_figure(&server, "VmHWM:");
    crate::harness::measured(&format!("{REQUESTS} requests unanswered: {before} KiB, then {peak}"));
    assert!(peak < before + (4 << 10), "{before} KiB before, {peak} then");
    for _ in 0..REQUESTS {
        let answer = client.receive().unwrap().json();
        assert_eq!(answer["total_lines"], 1000);
    }
    writing.join().unwrap().unwrap();
}

/// Bodies of which something comes and the rest does not give up their room when somebody waits for it.
#[test]
fn bodies_that_stall_make_room_for_others() {
    let folder = Folder::new();
    let server = folder.http();
    // Ten times as many as there is room for. By themselves they would be waited for twice as long as a call.
    let stalled: Vec<_> = (0..60)
        .map(|number| {
            let request = Request::post("/edit_file", "");
            let head = match number % 2 {
                0 => request.and("Transfer-Encoding", "chunked").head(None),
                _ => request.head(Some(10 << 20)),
            };
            let mut client = server.connect();
            client.write(&head).unwrap();
            let begin = [b"20000\r\n".to_vec(), vec![b' '; 100_000]].concat();
            client.write(&begin[if number % 2 == 0 { 0 } else { 7 }..]).unwrap();
            client
        })
        .collect();
    server.settle();
    let text = "x".repeat(5 << 20);
    let edit = json!({ "name": "new.txt", "append": text, "create_if_missing": true });
    assert_eq!(server.rest("edit_file", edit)["success"], true);
    drop(stalled);
}

/// Whatever comes so slowly that it never ends is given up.
#[test]
fn what_trickles_in_is_given_up() {
    let folder = Folder::new();
    let server = folder.http_with(&["--timeout=300"]);
    let request = Request::post("/edit_file", "");
    let chunked = request.clone().and("Transfer-Encoding", "chunked");
    let blanks = |number| vec![b' '; number];
    let begun = [
        // A small body, a large one, one of a length that is not told, and headers.
        [request.head(Some(5000)), blanks(10)].concat(),
        [request.head(Some(2 << 20)), blanks(100_000)].concat(),
        [chunked.head(None), b"5000\r\n".to_vec()].concat(),
        request.head(None)[..30].to_vec(),
    ];
    std::thread::scope(|scope| {
        for (number, begun) in begun.iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                client.write(begun).unwrap();
                let until = std::time::Instant::now() + HANG / 2;
                while client.is_silent() {
                    assert!(std::time::Instant::now() < until, "{number} is waited for");
                    std::thread::sleep(Duration::from_millis(100));
                    let _ = client.write(b" ");
                }
                if number < 3 {
                    let message = client.receive().unwrap().refusal(400, -32600);
                    assert_eq!(message, "The request body did not arrive in time");
                }
                client.assert_closed();
            });
        }
    });
    assert_eq!(server.rest("list_files", json!({}))["total_count"], 0);
}

/// Whoever says that nothing more will come has hung up: no edit of theirs is half made, and nobody waits for them.
#[test]
fn clients_that_close_one_end_do_no_harm() {
    const EDITS: usize = 50;
    let folder = Folder::new();
    folder.write(FILE, "");
    let server = folder.http_with(&["--timeout=300", "--durability=none"]);
    let lines: BTreeSet<_> = (0..EDITS).map(|number| format!("half {number}")).collect();
    for (number, line) in lines.iter().enumerate() {
        let request = match number % 2 {
            0 => Request::post("/edit_file", append(line).to_string()),
            _ => Request::tool("edit_file", append(line)),
        };
        let mut client = server.connect();
        client.write(&request.bytes()).unwrap();
        client.close_writing();
        // Answered or not, it comes to an end.
        if let Ok(response) = client.receive() {
            assert_eq!(response.status, 200, "{response}");
        }
        client.assert_closed();
    }
    assert_eq!(server.rest("edit_file", append("whole"))["success"], true);
    let text = folder.read(FILE);
    let found: BTreeSet<_> = text.lines().map(String::from).collect();
    assert_eq!(found.len(), text.lines().count(), "twice: {text}");
    assert!(found.iter().all(|line| line == "whole" || lines.contains(line)), "{text}");
    assert!(found.contains("whole"));
}

/// More requests than are worked on at once, all waiting for one file.
#[test]
fn a_thousand_edits_of_one_file_do_not_delay_a_read_of_another() {
    const EDITS: usize = 1000;
    raise_descriptor_limit();
    let folder = Folder::new();
    folder.write(FILE, "start\n");
    folder.write("steady.txt", format!("{STEADY}\n"));
    let server = folder.http_with(&["--timeout=300", "--durability=none"]);
    let held = folder.lock(FILE);
    let mut waiting: Vec<_> = (0..EDITS)
        .map(|number| {
            let mut client = server.connect();
            let request = match number % 2 {
                0 => Request::post("/edit_file", append(&number.to_string()).to_string()),
                _ => Request::tool("edit_file", append(&number.to_string())),
            };
            client.write(&request.bytes()).unwrap();
            client
        })
        .collect();
    server.settle();
    assert_eq!(server.rest("read_file", json!({ "name": "steady.txt" }))["content"], STEADY);
    server.mcp().text("read_file", json!({ "name": FILE }));
    assert_eq!(folder.read(FILE), "start\n");
    drop(held);
    for client in &mut waiting {
        let answer = client.receive().unwrap().json();
        let done = answer["success"] == true || answer["result"]["isError"] == false;
        assert!(done, "{answer}");
    }
    let lines = (0..EDITS).map(|number| number.to_string()).chain(["start".into()]);
    check_lines(&folder, &lines.collect());
}

#[test]
fn one_http_server_and_five_stdio_servers_lose_nothing() {
    const AGENTS: usize = 5;
    const STDIO: usize = 5;
    const EDITS: usize = 100;
    let folder = Folder::new();
    let flags = ["--timeout=300", "--durability=none"];
    let server = folder.http_with(&flags);
    let begin = Barrier::new(AGENTS + STDIO);
    let (server, folder, begin) = (&server, &folder, &begin);
    let created: usize = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for agent in 0..AGENTS {
            threads.push(scope.spawn(move || {
                let mut client = Agent::new(server, agent);
                begin.wait();
                let edit = |edit: usize| {
                    let line = append(&format!("http {agent} {edit}"));
                    if edit.is_multiple_of(2) {
                        let answer = client.rest.rest("edit_file", line);
                        assert_eq!(answer["success"], true, "{answer}");
                        answer["file_created"] == true
                    } else {
                        let answer = client.mcp.tool("edit_file", line);
                        assert_eq!(answer["result"]["isError"], false, "{answer}");
                        answer["result"]["structuredContent"]["file_created"] == true
                    }
                };
                (0..EDITS).map(edit).filter(|created| *created).count()
            }));
        }
        for process in 0..STDIO {
            let mut server = folder.serve_with(&flags);
            threads.push(scope.spawn(move || {
                server.request("ping", json!({}));
                begin.wait();
                let edit = |edit: usize| {
                    let answer =
                        server.tool("edit_file", append(&format!("stdio {process} {edit}")));
                    assert_eq!(answer["result"]["isError"], false, "{answer}");
                    answer["result"]["structuredContent"]["file_created"] == true
                };
                (0..EDITS).map(edit).filter(|created| *created).count()
            }));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(created, 1, "one and only one made the file");
    let lines = (0..EDITS).flat_map(|edit| {
        let http = (0..AGENTS).map(move |agent| format!("http {agent} {edit}"));
        http.chain((0..STDIO).map(move |process| format!("stdio {process} {edit}")))
    });
    let lines: BTreeSet<_> = lines.collect();
    assert_eq!(lines.len(), 1000);
    check_lines(folder, &lines);
    assert_eq!(folder.names(), [FILE]);
}

/// More bytes of bodies at once than may be held: they queue, and none is refused.
#[test]
fn large_bodies_at_once_all_get_through() {
    let folder = Folder::new();
    let server = folder.http_with(&["--timeout=300", "--durability=none"]);
    let text = "x".repeat(2_000_000);
    std::thread::scope(|scope| {
        for client in 0..64 {
            let (server, text) = (&server, &text);
            scope.spawn(move || {
                let name = format!("{client}.txt");
                let edit = json!({ "name": name, "append": text, "create_if_missing": true });
                assert_eq!(server.rest("edit_file", edit)["lines_modified"], 1);
            });
        }
    });
    assert_eq!(folder.names().len(), 64);
}

/// Connections that say nothing leave descriptors for files.
#[test]
#[cfg(unix)]
fn idle_connections_leave_room_for_files() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    let port = crate::harness::http::some_port();
    let mut command = std::process::Command::new("sh");
    let server = env!("CARGO_BIN_EXE_file-editor");
    let script = format!("ulimit -n 256 && exec {server} --dir=. --port={port}");
    let command = command.args(["-c", &script]).current_dir(folder.path());
    let server = HttpServer::spawn(command, port).unwrap();
    let mut client = server.connect();
    let read = Request::post("/read_file", r#"{"name":"a.txt"}"#);
    assert_eq!(client.send(&read).status, 200);
    // More than there are places for, and not more than the kernel keeps waiting.
    let idle: Vec<_> = (0..200).map(|_| server.connect()).collect();
    for _ in 0..20 {
        assert_eq!(client.send(&read).json()["content"], "one");
    }
    drop(idle);
}

#[test]
fn a_client_that_hangs_up_while_its_edit_waits_does_no_harm() {
    let folder = Folder::new();
    folder.write(FILE, "start\n");
    let server = folder.http_with(&["--timeout=300"]);
    let held = folder.lock(FILE);
    let mut names = Vec::new();
    for number in 0..10 {
        for kind in ["rest", "mcp", "modern"] {
            let line = format!("{kind} {number}");
            let request = match kind {
                "rest" => Request::post("/edit_file", append(&line).to_string()),
                "mcp" => Request::tool("edit_file", append(&line)),
                _ => {
                    let call = json!({ "name": "edit_file", "arguments": append(&line) });
                    Request::modern("tools/call", call)
                }
            };
            let mut client = server.connect();
            client.write(&request.bytes()).unwrap();
            names.push((line, client));
        }
    }
    server.settle();
    // Half a request, and half a body, are nothing at all.
    for part in [30, 150] {
        let request = Request::post("/edit_file", append("half").to_string()).bytes();
        let mut client = server.connect();
        client.write(&request[..part.min(request.len() - 1)]).unwrap();
        client.hang_up();
    }
    let mut lines = BTreeSet::new();
    for (line, client) in names {
        client.hang_up();
        lines.insert(line);
    }
    server.settle();
    assert_eq!(server.rest("read_file", json!({ "name": FILE }))["content"], "start");
    drop(held);
    // Nobody waits behind those who left.
    assert_eq!(server.rest("edit_file", append("rest after"))["success"], true);
    server.mcp().text("edit_file", append("mcp after"));
    let text = folder.read(FILE);
    let mut found = BTreeMap::new();
    for line in text.lines() {
        *found.entry(line).or_insert(0) += 1;
    }
    for line in ["start", "rest after", "mcp after"] {
        assert_eq!(found.remove(line), Some(1), "{text}");
    }
    // Each of the others was made or was not: whole, and once.
    for (line, count) in found {
        assert!(count == 1 && lines.contains(line), "{line}: {text}");
    }
    #[cfg(unix)]
    {
        // And each is accounted for.
        let log = crate::harness::log_lines(&server.stop());
        let edits = log.iter().filter(|line| line["operation"] == "edit_file").count();
        assert_eq!(edits, 32);
    }
}

#[cfg(unix)]
mod ending {
    use super::*;
    use rustix::process::Signal;

    #[test]
    fn a_signal_ends_an_idle_server_with_open_connections() {
        for signal in [Signal::TERM, Signal::INT] {
            let folder = Folder::new();
            let server = folder.http();
            let mut clients = [server.connect(), server.connect(), server.connect()];
            clients[0].rest("list_files", json!({}));
            clients[1].write(b"POST /mcp HTTP/1.1\r\nHost: loc").unwrap();
            server.settle();
            server.signal(signal);
            let (status, log) = server.wait();
            assert!(status.success(), "{signal:?} {status}: {log}");
            for client in &mut clients {
                client.assert_closed();
            }
        }
    }

    /// A call that waits for a lock when the server has to go is refused, and nothing is written later.
    #[test]
    fn calls_that_wait_for_a_lock_are_refused_with_an_answer() {
        for signal in [Signal::TERM, Signal::INT] {
            let folder = Folder::new();
            folder.write(FILE, "start\n");
            let server = folder.http_with(&["--timeout=300"]);
            let held = folder.lock(FILE);
            let call = json!({ "name": "edit_file", "arguments": append("modern") });
            let requests = [
                Request::tool("edit_file", append("mcp")),
                Request::post("/edit_file", append("rest").to_string()),
                Request::modern("tools/call", call),
            ];
            // One of them is at the head of the queue, the others wait behind it.
            let mut clients = requests.map(|request| {
                let mut client = server.connect();
                client.write(&request.bytes()).unwrap();
                server.settle();
                client
            });
            server.signal(signal);
            let answers = clients.each_mut().map(|client| {
                let response = client.receive().unwrap();
                assert_eq!(response.status, 200, "{response}");
                response.json()
            });
            let message = "The server is stopping; nothing was written";
            for answer in [&answers[0], &answers[2]] {
                assert_eq!(crate::harness::failure(answer, -32014), format!("Error: {message}"));
            }
            assert_eq!(answers[1]["isError"], true);
            assert_eq!(answers[1]["error"]["code"], -32014);
            assert_eq!(answers[1]["error"]["message"], message);
            let (status, log) = server.wait();
            assert!(status.success(), "{status}: {log}");
            drop(held);
            assert_eq!(folder.read(FILE), "start\n");
            assert_eq!(folder.names(), [FILE]);
        }
    }

    /// What became of a line, as its client knows it.
    enum Fate {
        Answered(String),
        Refused(String),
        Unknown(String),
    }

    /// Adds line after line until the server is gone.
    fn add_lines(server: &HttpServer, number: usize, answered: &AtomicUsize) -> Vec<Fate> {
        let mut agent = Agent::new(server, number);
        let mut fates = Vec::new();
        for edit in 0.. {
            let line = format!("agent {number} edit {edit}, to the end of the line");
            let response = if (number + edit).is_multiple_of(2) {
                let body = append(&line).to_string();
                agent.rest.try_send(&Request::post("/edit_file", body))
            } else {
                let call = json!({ "name": "edit_file", "arguments": append(&line) });
                agent.mcp.try_request("tools/call", call)
            };
            let Ok(response) = response else {
                fates.push(Fate::Unknown(line));
                break;
            };
            assert_eq!(response.status, 200, "{response}");
            let answer = response.json();
            if answer["success"] == true || answer["result"]["isError"] == false {
                answered.fetch_add(1, Ordering::Relaxed);
                fates.push(Fate::Answered(line));
            } else {
                let text = answer.to_string();
                assert!(text.contains("The server is stopping"), "{text}");
                fates.push(Fate::Refused(line));
            }
        }
        fates
    }

    #[test]
    fn under_load_every_answered_edit_is_on_disk_and_no_other_is_half_there() {
        for round in 0..5 {
            let folder = Folder::new();
            let server = folder.http_with(&["--durability=none"]);
            let (port, answered) = (server.port, AtomicUsize::new(0));
            let fates: Vec<Fate> = std::thread::scope(|scope| {
                let agents: Vec<_> = (0..16)
                    .map(|number| {
                        let (server, answered) = (&server, &answered);
                        scope.spawn(move || add_lines(server, number, answered))
                    })
                    .collect();
                let until = std::time::Instant::now() + HANG;
                while answered.load(Ordering::Relaxed) < 100 + 37 * round {
                    assert!(std::time::Instant::now() < until, "the load does not come about");
                    std::thread::sleep(Duration::from_millis(1));
                }
                server.signal(Signal::TERM);
                agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
            });
            let (status, log) = server.wait();
            assert!(status.success(), "{status}: {log}");
            // The port is free at once, for anybody and for the next server.
            drop(std::net::TcpListener::bind(("127.0.0.1", port)).unwrap());

            let text = folder.read(FILE);
            assert!(text.ends_with('\n'));
            let mut found: BTreeMap<&str, usize> = BTreeMap::new();
            for line in text.lines() {
                *found.entry(line).or_default() += 1;
            }
            for fate in &fates {
                match fate {
                    Fate::Answered(line) => {
                        assert_eq!(found.remove(line.as_str()), Some(1), "lost: {line}");
                    }
                    Fate::Refused(line) => {
                        assert_eq!(found.get(line.as_str()), None, "made though refused: {line}");
                    }
                    // Whole and once, or not at all.
                    Fate::Unknown(line) => {
                        assert!(found.remove(line.as_str()).is_none_or(|count| count == 1));
                    }
                }
            }
            assert!(found.is_empty(), "nobody's lines: {found:?}");
            assert_eq!(folder.names(), [FILE]);
        }
    }

    #[test]
    fn the_port_can_be_served_again_at_once() {
        let folder = Folder::new();
        let server = folder.http();
        let port = server.port;
        // Connections that the server closes first would keep an unready port.
        let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.rest("list_files", json!({}));
        }
        server.stop();
        let mut command = crate::harness::binary();
        command.arg(format!("--dir={}", folder.path().display())).arg(format!("--port={port}"));
        let server = HttpServer::spawn(&mut command, port).unwrap();
        assert_eq!(server.rest("list_files", json!({}))["total_count"], 0);
    }
}

/// The convention: the socket is descriptor 3, and the process is told by its own number.
#[cfg(unix)]
mod inherited {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    /// Starts the server by a shell that makes its standard input descriptor 3.
    fn hand_over(folder: &Folder, listener: &TcpListener, script: &str, flags: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_file-editor"));
        command.arg(format!("--dir={}", folder.path().display())).args(flags);
        command.env_remove("FILE_EDITOR_TOKEN").env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
        let socket: OwnedFd = listener.try_clone().unwrap().into();
        command.stdin(Stdio::from(socket));
        command
    }

    #[test]
    fn a_socket_that_is_handed_over_is_served() {
        let folder = Folder::new();
        folder.write("steady.txt", format!("{STEADY}\n"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // A port that is taken does not matter: it is not asked for.
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let flag = format!("--port={}", taken.local_addr().unwrap().port());
        let script = r#"LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&0 0</dev/null"#;
        let mut command = hand_over(&folder, &listener, script, &[&flag]);
        // Whoever connects before the server is there is served as well.
        let mut early = Client::connect(("127.0.0.1", port)).unwrap();
        early.write(&Request::post("/read_file", r#"{"name":"steady.txt"}"#).bytes()).unwrap();
        let server = HttpServer::spawn(&mut command, port).unwrap();
        drop(command);
        assert_eq!(early.receive().unwrap().json()["content"], STEADY);
        let answer = server.rest("read_file", json!({ "name": "steady.txt" }));
        assert_eq!(answer["content"], STEADY);
        server.mcp().text("list_files", json!({}));
        server.stop();
        // The socket is whose it was: the next server takes over, and nobody was turned away in between.
        let mut early = Client::connect(("127.0.0.1", port)).unwrap();
        early.write(&Request::new("GET", "/health").bytes()).unwrap();
        let mut command = hand_over(&folder, &listener, script, &[&flag]);
        let _server = HttpServer::spawn(&mut command, port).unwrap();
        assert_eq!(early.receive().unwrap().status, 200);
    }

    #[test]
    fn a_socket_that_is_for_somebody_else_is_left_alone() {
        let folder = Folder::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for variables in [
            "LISTEN_PID=1 LISTEN_FDS=1",
            "LISTEN_PID=$$ LISTEN_FDS=0",
            "LISTEN_FDS=1",
            "LISTEN_PID=$$",
        ] {
            let script = format!(r#"{variables} exec "$0" "$@" 3<&0 0</dev/null"#);
            let server = loop {
                let port = crate::harness::http::some_port();
                let flag = format!("--port={port}");
                let mut command = hand_over(&folder, &listener, &script, &[&flag]);
                match HttpServer::spawn(&mut command, port) {
                    Ok(server) => break server,
                    Err(told) => assert!(told.contains("already in use"), "{told}"),
                }
            };
            assert_eq!(server.rest("list_files", json!({}))["total_count"], 0, "{variables}");
            server.stop();
        }
    }
}
