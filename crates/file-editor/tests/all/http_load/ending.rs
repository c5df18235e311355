//! The end of a server under load: every answered edit is on disk.

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

/// Outcome of a line, as its client knows it.
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
