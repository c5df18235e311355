//! Clients that send or read slowly, stall, or close one end: nobody else waits, and memory is bounded.

use super::*;

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
        let peak = crate::harness::memory_kib(server.pid(), "VmHWM");
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

/// A request that gets no memory in time is told so, and the connection goes on.
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
    let before = crate::harness::memory_kib(server.pid(), "VmHWM");
    let mut client = server.connect();
    let mut writer = client.writer();
    let requests = Request::post("/read_file", r#"{"name":"medium.txt"}"#).bytes().repeat(REQUESTS);
    // More than all buffers on the way hold, so it ends only when answers are taken.
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &requests));
    server.settle();
    std::thread::sleep(Duration::from_millis(500));
    let peak = crate::harness::memory_kib(server.pid(), "VmHWM");
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
