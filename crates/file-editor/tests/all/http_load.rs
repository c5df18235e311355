//! HTTP under load: many clients, rude ones among them, other processes on the same file, and the end in the midst.

#[cfg(unix)]
mod ending;
#[cfg(unix)]
mod inherited_socket;
mod slow_clients;

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
    let figure = |name| crate::harness::memory_kib(server.pid(), name);
    (figure("RssAnon"), figure("RssFile"))
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
