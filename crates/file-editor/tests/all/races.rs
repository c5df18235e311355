//! Real processes on one file, and many calls in one process: nothing is lost, refused, made twice or left over.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

use crate::harness::{Folder, Server, texts};
use serde_json::{Value, json};

const FILE: &str = "shared.txt";

fn append(line: &str) -> Value {
    json!({ "name": FILE, "append": line })
}

/// How many of these answers say that they made the file. None may be a refusal.
fn creators<'a>(answers: impl IntoIterator<Item = &'a Value>) -> usize {
    let created = |answer: &&Value| {
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"]["file_created"] == true
    };
    answers.into_iter().filter(created).count()
}

/// Each line is in the file exactly once, nothing else is, and the folder holds nothing but the file.
fn check_file(folder: &Folder, expected: impl Iterator<Item = String>) {
    let text = folder.read(FILE);
    let expected: BTreeSet<String> = expected.collect();
    let found: BTreeSet<String> = text.lines().map(String::from).collect();
    assert_eq!(found, expected);
    assert_eq!(text.lines().count(), expected.len(), "a line is there twice");
    assert!(text.ends_with('\n'));
    assert_eq!(folder.names(), [FILE]);
}

/// From a missing file, `processes` servers make `edits` each, all beginning at once.
fn race(processes: usize, edits: usize, flags: &[&str]) {
    let folder = Folder::new();
    let flags: Vec<&str> = ["--timeout=300"].iter().chain(flags).copied().collect();
    let begin = Arc::new(Barrier::new(processes));
    let threads: Vec<_> = (0..processes)
        .map(|process| {
            let (mut server, begin) = (folder.serve_with(&flags), Arc::clone(&begin));
            std::thread::spawn(move || {
                server.request("ping", json!({}));
                begin.wait();
                let edit = |edit| server.tool("edit_file", append(&format!("{process}-{edit}")));
                let answers: Vec<_> = (0..edits).map(edit).collect();
                let (status, rest, _) = server.finish();
                assert!(status.success() && rest.is_empty(), "{status} {rest}");
                creators(&answers)
            })
        })
        .collect();
    let created: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(created, 1, "one and only one made the file");
    let lines =
        (0..processes).flat_map(|process| (0..edits).map(move |edit| format!("{process}-{edit}")));
    check_file(&folder, lines);
}

#[test]
fn five_processes_make_fifty_edits_each() {
    race(5, 50, &[]);
}

#[test]
fn twenty_processes_make_a_hundred_edits_each() {
    race(20, 100, &["--durability=none"]);
}

#[test]
fn one_process_with_fifty_calls_in_flight() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let ids: Vec<_> =
        (0..50).map(|number| server.send_tool("edit_file", append(&number.to_string()))).collect();
    let answers = server.receive_all(&ids);
    assert_eq!(creators(&answers), 1);
    // In order of arrival, so it was the first that made it.
    assert_eq!(creators(&answers[..1]), 1);
    check_file(&folder, (0..50).map(|number| number.to_string()));
    let lines: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(folder.read(FILE).lines().collect::<Vec<_>>(), lines);
}

#[test]
fn several_processes_with_many_calls_in_flight() {
    let folder = Folder::new();
    let mut servers: Vec<Server> =
        (0..4).map(|_| folder.serve_with(&["--timeout=300", "--durability=none"])).collect();
    let mut sent: Vec<Vec<i64>> = vec![Vec::new(); servers.len()];
    for number in 0..50 {
        for (index, server) in servers.iter_mut().enumerate() {
            sent[index].push(server.send_tool("edit_file", append(&format!("{index}-{number}"))));
        }
    }
    let answers: Vec<Value> =
        servers.iter_mut().zip(&sent).flat_map(|(server, ids)| server.receive_all(ids)).collect();
    assert_eq!(creators(&answers), 1);
    check_file(
        &folder,
        (0..4).flat_map(|index| (0..50).map(move |number| format!("{index}-{number}"))),
    );
}

#[test]
fn two_thousand_edits_of_one_file_do_not_delay_a_read_of_another() {
    let folder = Folder::new();
    folder.write(FILE, "start\n");
    folder.write("other.txt", "here\n");
    let mut server = folder.serve_with(&["--timeout=300", "--durability=none"]);
    let held = folder.lock(FILE);
    let ids: Vec<_> = (0..2000)
        .map(|number| server.send_tool("edit_file", append(&number.to_string())))
        .collect();
    // The first answer to arrive is the last one asked for.
    let answer = server.tool("read_file", json!({ "name": "other.txt" }));
    assert_eq!(texts(&answer)[0], "File: other.txt (1 lines)\n\nhere");
    let answer = server.request("read_file", json!({ "name": "other.txt" }));
    assert_eq!(answer["result"]["content"], "here");
    server.text("edit_file", json!({ "name": "other.txt", "append": "too" }));
    assert_eq!(folder.read(FILE), "start\n");
    drop(held);
    assert_eq!(creators(&server.receive_all(&ids)), 0);
    let lines: Vec<_> = (0..2000).map(|number| number.to_string()).collect();
    assert_eq!(folder.read(FILE).lines().skip(1).collect::<Vec<_>>(), lines);
    assert_eq!(folder.names(), ["other.txt", FILE]);
}

/// A reader that never locks sees the file as it was before or after an edit, never in between.
#[test]
fn readers_never_see_half_an_edit() {
    let folder = Folder::new();
    let block = |letter: &str| vec![letter.repeat(60); 2000].join("\n") + "\n";
    folder.write(FILE, block("a"));
    let mut editor = folder.serve_with(&["--durability=none"]);
    let mut reader = folder.serve();
    let writer = std::thread::spawn(move || {
        for round in 0..30 {
            let letter = ["b", "a"][round % 2];
            let content = vec![letter.repeat(60); 2000].join("\n");
            let replace = json!({ "line": 0, "operation": "replace", "content": content });
            let deletes = (1..1000).map(|line| json!({ "line": line, "operation": "delete" }));
            // Half of the lines each, so that the first of the two leaves the file mixed: read with both.
            let edits: Vec<Value> = std::iter::once(replace).chain(deletes).collect();
            editor.text("edit_file", json!({ "name": FILE, "edits": edits }));
            let edits: Vec<Value> = (0..1000)
                .map(|line| json!({ "line": 2000 + line, "operation": "delete" }))
                .collect();
            editor.text("edit_file", json!({ "name": FILE, "edits": edits }));
        }
    });
    let mut reads = 0;
    while !writer.is_finished() || reads < 10 {
        let text = reader.text("read_file", json!({ "name": FILE }));
        let (head, body) = text.split_once("\n\n").unwrap();
        let lines: Vec<_> = body.split('\n').collect();
        let whole = |lines: &[&str]| lines.iter().all(|line| line == &lines[0] && line.len() == 60);
        match lines.len() {
            2000 => assert!(whole(&lines), "{head}"),
            3000 => assert!(whole(&lines[..2000]) && whole(&lines[2000..]), "{head}"),
            count => panic!("{count} lines: {head}"),
        }
        reads += 1;
    }
    writer.join().unwrap();
}

/// Whoever may read a file can lock it, for as long as he likes.
#[test]
#[cfg(target_os = "linux")]
fn an_edit_that_waited_in_vain_names_who_holds_the_lock() {
    let folder = Folder::new();
    folder.write(FILE, "one\n");
    let _held = std::fs::File::open(folder.file(FILE)).map(|file| file.lock().map(|()| file));
    for flags in [&["--timeout=1"][..], &["--timeout=1", "--no-sandbox"]] {
        let mut server = folder.serve_with(flags);
        let answer = server.tool("edit_file", json!({ "name": FILE, "append": "two" }));
        let hint = format!(
            "process {} holds the lock of this file; nothing was written, try again, or end that \
             process if it should not hold it",
            std::process::id()
        );
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!((&error["code"], &error["hint"]), (&json!(-32014), &json!(hint)), "{answer}");
        assert_eq!(answer["result"]["content"][1]["text"], hint);
    }
    assert_eq!(folder.read(FILE), "one\n");
}

/// A program that opens a file while the server holds a lease on it has the kernel send a signal.
#[test]
fn a_program_that_writes_into_the_file_all_the_time_does_not_end_the_server() {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = Folder::new();
    folder.write(FILE, "one\n");
    let mut server = folder.serve_with(&["--durability=none"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let file = std::fs::File::options().append(true).open(folder.file(FILE));
                file.and_then(|mut file| file.write_all(b"theirs\n")).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        });
        for number in 0..500 {
            let answer = server.tool("edit_file", append(&format!("ours {number}")));
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let text = folder.read(FILE);
    assert!((0..500).all(|number| text.contains(&format!("ours {number}\n"))), "{text}");
}
