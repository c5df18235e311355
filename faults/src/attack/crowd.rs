//! Many at once: who want something, who want much and do not take it, who promise much and do not send it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scene::{CONNECTION, PROCESS, Scene};
use crate::http::{Answer, Client, plain, tool};
use crate::report::{Row, Scale, grouped};

const FILES: usize = 50;
const WORKERS: usize = 8;

pub fn concurrent(scale: Scale) -> JoinHandle<Row> {
    let connections = scale.of(1000, 4000);
    let what = format!("{} connections at once, a call on each", grouped(connections));
    let mut scene = Scene::open(&what, &["--timeout=300"], &[]);
    let kilobyte = "k".repeat(1023) + "\n";
    std::fs::write(scene.folder().join("kilobyte.txt"), &kilobyte).unwrap();
    let port = scene.server.port;
    let each = connections / WORKERS;
    let rounds = scale.of(2, 8);
    let since = Instant::now();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let crowds: Vec<_> = (0..WORKERS)
            .map(|worker| {
                scope.spawn(move || crowd(port, worker * each..(worker + 1) * each, rounds))
            })
            .collect();
        crowds.into_iter().map(|crowd| crowd.join().unwrap()).collect()
    });
    let (took, mut added) = (since.elapsed(), Vec::new());
    for (lines, bad) in outcomes {
        added.extend(lines);
        scene.row.bad.extend(bad);
    }
    scene.row.tries = connections * rounds;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let files: Vec<_> = (0..FILES).map(|file| format!("file-{file}.txt")).collect();
    for file in &files {
        for line in std::fs::read_to_string(scene.folder().join(file)).unwrap_or_default().lines() {
            *found.entry(line.to_owned()).or_default() += 1;
        }
    }
    for line in &added {
        let times = found.remove(line).unwrap_or(0);
        scene.row.check(times == 1, || format!("`{line}` was answered and is there {times} times"));
    }
    scene.row.check(found.is_empty(), || format!("nobody's lines: {:?}", found.keys().next()));
    let rate = f64::from(u32::try_from(scene.row.tries).unwrap()) / took.as_secs_f64();
    let edits = grouped(added.len());
    let found = format!("{edits} edits answered, each there once; {rate:.0} calls a second");
    let files: Vec<_> = files.iter().map(String::as_str).chain(["kilobyte.txt"]).collect();
    scene.close(found, &files, PROCESS + CONNECTION * connections as u64 / 2)
}

/// A part of the crowd: everybody asks before anybody listens. The lines whose edits were answered, and what was wrong.
fn crowd(port: u16, numbers: std::ops::Range<usize>, rounds: usize) -> (Vec<String>, Vec<String>) {
    /// Half of what the server waits for a request: whoever was silent for so long comes anew.
    const SILENT: Duration = Duration::from_secs(5);
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    let connected: Result<Vec<_>, _> = numbers
        .clone()
        .map(|number| Client::connect(port).map(|client| (number, client, Instant::now())))
        .collect();
    let mut clients = match connected {
        Ok(clients) => clients,
        Err(error) => return (lines, vec![format!("no connection: {error}")]),
    };
    for round in 0..rounds {
        for (number, client, since) in &mut clients {
            if since.elapsed() > SILENT
                && let Ok(anew) = Client::connect(port)
            {
                *client = anew;
            }
            if let Err(error) = client.write(&request(*number, round)) {
                bad.push(format!("client {number} round {round}: {error}"));
            }
        }
        for (number, client, since) in &mut clients {
            let edits = (*number + round) % 4 < 2;
            match client.receive() {
                Ok(answer) if is_right(&answer) => {
                    lines.extend(edits.then(|| format!("client {number} round {round}")));
                }
                Ok(answer) => {
                    bad.push(format!("client {number} round {round}: {}", answer.short()));
                }
                Err(error) => bad.push(format!("client {number} round {round}: {error}")),
            }
            *since = Instant::now();
        }
    }
    (lines, bad)
}

/// One of the calls that the crowd makes.
fn request(number: usize, round: usize) -> Vec<u8> {
    let edit = json!({
        "name": format!("file-{}.txt", number % FILES),
        "append": format!("client {number} round {round}"),
        "create_if_missing": true,
    });
    let read = json!({ "name": "kilobyte.txt" });
    match (number + round) % 4 {
        0 => plain("edit_file", &edit),
        1 => tool(number, "edit_file", &edit),
        2 if number % 8 < 4 => plain("read_file", &read),
        2 => tool(number, "read_file", &read),
        _ => plain("list_files", &json!({})),
    }
}

fn is_right(Answer { status, body, .. }: &Answer) -> bool {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let content = json["content"].as_str().is_some_and(|text| text.len() == 1023);
    let done = json["success"] == true || json["result"]["isError"] == false;
    *status == 200 && (content || done || json["files"].is_array())
}

/// KiB of answers that there is room for, and of files that threads have in hand.
const ANSWERS: u64 = (64 + 16 + 8 * 10) << 10;

pub fn non_readers(scale: Scale) -> JoinHandle<Row> {
    let (silent, slow) = scale.of((150, 20), (1000, 100));
    let what = format!("{} ask for 10 MB and take nothing, {slow} a little", grouped(silent));
    let mut scene = Scene::open(&what, &["--timeout=60"], &[]);
    let text = ("x".repeat(1023) + "\n").repeat(10 << 10);
    std::fs::write(scene.folder().join("huge.txt"), &text).unwrap();
    let read = |number: usize| {
        let arguments = json!({ "name": "huge.txt" });
        if number.is_multiple_of(2) {
            plain("read_file", &arguments)
        } else {
            tool(number, "read_file", &arguments)
        }
    };
    let clients: Vec<_> = (0..silent + slow)
        .map(|number| {
            let client = scene.server.connect();
            let _ = client.write(&read(number));
            let _ = client.stream().set_nonblocking(true);
            client
        })
        .collect();
    scene.row.tries = silent + slow;
    let done = AtomicBool::new(false);
    let whole_reads = scale.of(2, 6);
    let times = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for client in &clients[silent..] {
                    let mut stream = client.stream();
                    let _ = stream.read(&mut [0; 1000]);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let mut times = Vec::new();
        for number in 0..whole_reads {
            let since = Instant::now();
            let answer = scene.server.connect().send(&read(number));
            times.push(since.elapsed());
            let right = |answer: &Answer| {
                let json = answer.json();
                let text_of_tool = json["result"]["content"][0]["text"].as_str();
                let found = json["content"].as_str().or(text_of_tool).unwrap_or_default();
                found.ends_with(text.trim_end())
            };
            match answer {
                Ok(answer) if right(&answer) => {}
                Ok(answer) => scene.row.bad.push(format!("10 MB: {}", answer.short())),
                Err(error) => scene.row.bad.push(format!("10 MB: {error}")),
            }
        }
        done.store(true, Ordering::Relaxed);
        times
    });
    drop(clients);
    let slowest = times.iter().max().copied().unwrap_or_default();
    let found =
        format!("{whole_reads} who took their 10 MB got them, the slowest in {slowest:.1?}");
    scene.close(found, &["huge.txt"], PROCESS + ANSWERS + CONNECTION * (silent + slow) as u64)
}

/// KiB of bodies that there is room for.
const BODIES: u64 = (64 + 16) << 10;

pub fn stalled_bodies(scale: Scale) -> JoinHandle<Row> {
    let number = scale.of(100, 500);
    let what = format!("{number} send the beginning of 10 MB and no more");
    let mut scene = Scene::open(&what, &[], &[]);
    let begin = |number: usize| {
        let framing = match number % 3 {
            0 => "Transfer-Encoding: chunked\r\n\r\nA00000\r\n".to_owned(),
            _ => format!("Content-Length: {}\r\n\r\n", 10 << 20),
        };
        let head = format!(
            "POST /edit_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{framing}"
        );
        let sent = [20_000, 100_000, 1 << 20][number / 3 % 3];
        [head.into_bytes(), vec![b' '; sent]].concat()
    };
    let clients: Vec<_> = (0..number)
        .map(|number| {
            let client = scene.server.connect();
            let _ = client.stream().set_nonblocking(true);
            let _ = client.write(&begin(number));
            client
        })
        .collect();
    scene.row.tries = number;
    let edits = scale.of(3, 20);
    let mut slowest = Duration::ZERO;
    for edit in 0..edits {
        let text = "y".repeat(5 << 20);
        let body = json!({ "name": "large.txt", "append": text, "create_if_missing": edit == 0 });
        let since = Instant::now();
        let body = if edit == 0 {
            body
        } else {
            json!({ "name": "large.txt", "edits": [{ "line": 1, "operation": "replace", "content": text }] })
        };
        match scene.server.connect().send(&plain("edit_file", &body)) {
            Ok(answer) if answer.json()["success"] == true => {}
            Ok(answer) => scene.bad(format!("5 MB: {}", answer.short())),
            Err(error) => scene.bad(format!("5 MB: {error}")),
        }
        slowest = slowest.max(since.elapsed());
    }
    drop(clients);
    // A request that finds no room is told so when its time is up, which is ten seconds.
    scene.row.check(slowest < Duration::from_mins(1), || format!("one took {slowest:?}"));
    let found = format!("{edits} edits of 5 MB were made, the slowest in {slowest:.1?}");
    // What an edit has in hand: the text, the file before and after, the diff.
    scene.close(found, &["large.txt"], PROCESS + BODIES + (40 << 10) + CONNECTION * number as u64)
}

pub fn queued(scale: Scale) -> JoinHandle<Row> {
    let number = scale.of(500, 4000);
    let what = format!("{} edits of a file that another process has locked", grouped(number));
    let mut scene = Scene::open(&what, &["--timeout=300"], &[]);
    let path = scene.folder().join("locked.txt");
    let file = std::fs::File::create(&path).unwrap();
    file.lock().unwrap();
    let mut clients: Vec<_> = (0..number)
        .map(|number| {
            let client = scene.server.connect();
            let line = format!("client {number}");
            let arguments = json!({ "name": "locked.txt", "append": line });
            let request = match number % 2 {
                0 => plain("edit_file", &arguments),
                _ => tool(number, "edit_file", &arguments),
            };
            let _ = client.write(&request);
            client
        })
        .collect();
    scene.row.tries = number;
    std::thread::sleep(Duration::from_secs(1));
    file.unlock().unwrap();
    for (number, client) in clients.iter_mut().enumerate() {
        match client.receive() {
            Ok(answer) if is_right(&answer) => {}
            Ok(answer) => scene.bad(format!("client {number}: {}", answer.short())),
            Err(error) => scene.bad(format!("client {number}: {error}")),
        }
    }
    drop(clients);
    let text = std::fs::read_to_string(path).unwrap();
    let mut found: Vec<_> = text.lines().collect();
    found.sort_unstable();
    let mut expected: Vec<_> = (0..number).map(|number| format!("client {number}")).collect();
    expected.sort_unstable();
    scene.row.check(found == expected, || format!("{} lines of {number}", found.len()));
    let found = "they wait, and all are made when it is free".into();
    scene.close(found, &["locked.txt"], PROCESS + CONNECTION * number as u64 / 2)
}
