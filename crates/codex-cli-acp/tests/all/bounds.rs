//! Tests of the memory bounds: with an editor that does not read and a Codex that floods, the program holds little, ends
//! what has no end, and goes on.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::TestSession;

const MB: usize = 1 << 20;

/// A thread that repeats something, until it is done or nobody takes more.
struct Flood {
    done: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Flood {
    /// Calls `pour` with each number, until it returns false.
    fn start(numbers: usize, mut pour: impl FnMut(usize) -> bool + Send + 'static) -> Self {
        let (done, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (progress, ends) = (Arc::clone(&done), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            for number in 0..numbers {
                if !pour(number) {
                    break;
                }
                progress.store(number + 1, Ordering::Relaxed);
            }
            ends.store(true, Ordering::Relaxed);
        });
        Self { done, is_over, thread }
    }

    /// Waits until the thread makes no more progress, done or not.
    fn wait_for_stop(&self) {
        let mut still = 0;
        let mut before = 0;
        while still < 10 && !self.is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(100));
            let done = self.done.load(Ordering::Relaxed);
            still = if done == before { still + 1 } else { 0 };
            before = done;
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn join(self) {
        self.thread.join().unwrap();
    }
}

impl TestSession {
    /// Sends a piece of a message from Codex so often.
    fn flood(&self, pieces: usize, bytes: usize) -> Flood {
        let delta = "x".repeat(bytes);
        let params = json!({ "threadId": self.id, "itemId": "message", "delta": delta });
        let message = json!({ "method": "item/agentMessage/delta", "params": params });
        let (line, stdout) = (format!("{message}\n"), self.codex.stdout());
        Flood::start(pieces, move |_| stdout.write(line.as_bytes()).is_ok())
    }

    /// Asserts that the program never held more than this.
    fn assert_memory_below(&self, megabytes: usize) {
        #[cfg(target_os = "linux")]
        {
            let status = fs::read_to_string(format!("/proc/{}/status", self.editor.process()));
            let status = status.unwrap();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            let kilobytes: usize = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
            assert!(kilobytes < megabytes * 1024, "{kilobytes} kB");
        }
        let _ = (self, megabytes);
    }
}

#[test]
fn codex_waits_for_an_editor_that_does_not_read() {
    for (pieces, bytes) in [(4000, 64 * 1024), (60_000, 1000)] {
        let session = TestSession::open();
        let prompt = session.prompt();
        session.editor.pause();
        let flood = session.flood(pieces, bytes);
        flood.wait_for_stop();
        assert!(!flood.is_over(), "it was all taken");
        session.editor.resume();
        session.editor.wait_for_chunks(pieces * bytes);
        flood.join();
        session.end_turn();
        assert_eq!(session.editor.result(prompt)["stopReason"], "end_turn");
        session.assert_memory_below(150);
    }
}

#[test]
fn a_prompt_is_cancelled_although_the_editor_did_not_read() {
    let session = TestSession::open();
    let prompt = session.prompt();
    session.editor.pause();
    let flood = session.flood(4000, 64 * 1024);
    flood.wait_for_stop();
    session.editor.notify("session/cancel", json!({ "sessionId": session.id }));
    session.codex.next("turn/interrupt");
    session.editor.resume();
    flood.join();
    let turn = json!({ "id": "turn", "status": "interrupted", "error": null });
    session.codex.notify("turn/completed", json!({ "threadId": session.id, "turn": turn }));
    assert_eq!(session.editor.result(prompt)["stopReason"], "cancelled");
}

#[test]
fn the_program_ends_although_the_editor_does_not_read() {
    let mut session = TestSession::open();
    session.prompt();
    session.editor.pause();
    let flood = session.flood(4000, 64 * 1024);
    flood.wait_for_stop();
    session.editor.close_stdin();
    session.editor.wait_for_end();
    flood.join();
    session.codex.wait_for_end();
}

#[test]
fn a_message_without_an_end_ends_codex_and_the_next_goes_on() {
    let session = TestSession::open();
    let prompt = session.prompt();
    let stdout = session.codex.stdout();
    let blanks = vec![b' '; MB];
    let flood = Flood::start(1024, move |_| stdout.write(&blanks).is_ok());
    let error = session.editor.error(prompt);
    assert!(error.contains("a message of more than 64 MB"), "{error}");
    session.codex.wait_for_end();
    flood.join();
    session.assert_memory_below(300);
    let next = thread::scope(|scope| {
        let next = scope.spawn(|| session.listener.accept(&json!({})));
        let prompt = json!([{ "type": "text", "text": "Go on." }]);
        let params = json!({ "sessionId": session.id, "prompt": prompt });
        let prompt = session.editor.send("session/prompt", params);
        let next = next.join().unwrap();
        next.answered("turn/start");
        (next, prompt)
    });
    let (next, prompt) = next;
    let turn = json!({ "id": "turn", "status": "completed", "error": null });
    next.notify("turn/completed", json!({ "threadId": session.id, "turn": turn }));
    assert_eq!(session.editor.result(prompt)["stopReason"], "end_turn");
}

#[test]
fn a_long_message_is_taken() {
    let session = TestSession::open();
    let prompt = session.prompt();
    session.flood(1, 50 * MB).join();
    session.editor.wait_for_chunks(50 * MB);
    session.end_turn();
    assert_eq!(session.editor.result(prompt)["stopReason"], "end_turn");
}

#[test]
fn a_message_of_the_editor_without_an_end_is_refused() {
    let session = TestSession::open();
    let blanks = vec![b' '; MB];
    for _ in 0..200 {
        session.editor.write_raw(&blanks);
    }
    session.editor.write_raw(b"\n");
    let message = session.editor.wait("a refusal", |messages| {
        let refusal = messages.iter().find(|message| !message["error"].is_null())?;
        refusal["error"]["message"].as_str().map(str::to_owned)
    });
    assert!(message.contains("more than 64 MB"), "{message}");
    let prompt = session.prompt();
    session.end_turn();
    session.editor.result(prompt);
    session.assert_memory_below(200);
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let session = TestSession::open();
    let prompt = session.prompt();
    let mut stderr = session.codex.stderr();
    let piece = vec![b'x'; MB];
    Flood::start(200, move |_| stderr.write_all(&piece).is_ok()).join();
    session.flood(1, 10).join();
    session.editor.wait_for_chunks(10);
    session.end_turn();
    session.editor.result(prompt);
    session.assert_memory_below(100);
}

#[test]
fn codex_waits_for_an_editor_that_answers_no_questions() {
    const QUESTIONS: usize = 500;
    let session = TestSession::open();
    let prompt = session.prompt();
    let (thread, stdout) = (session.id.clone(), session.codex.stdout());
    let flood = Flood::start(QUESTIONS, move |number| {
        let params = json!({
            "threadId": thread, "turnId": "turn", "itemId": format!("item-{number}"),
            "command": "x".repeat(100_000), "cwd": "/", "reason": null,
            "availableDecisions": ["accept", "decline"],
        });
        let method = "item/commandExecution/requestApproval";
        let message = json!({ "id": number, "method": method, "params": params });
        stdout.write(format!("{message}\n").as_bytes()).is_ok()
    });
    flood.wait_for_stop();
    let questions = || {
        let messages = session.editor.messages();
        messages.iter().filter(|message| message["method"] == "session/request_permission").count()
    };
    assert!((1..=64).contains(&questions()), "{} questions are open", questions());
    for _ in 0..QUESTIONS {
        let question = session.editor.asked("session/request_permission");
        let option = question["params"]["options"][0]["optionId"].as_str().unwrap().to_owned();
        session.editor.choose(&question, &option);
    }
    flood.join();
    let answers = session.codex.answers(QUESTIONS);
    assert!(answers.iter().all(|answer| answer["result"]["decision"] == "accept"));
    session.end_turn();
    session.editor.result(prompt);
    session.assert_memory_below(150);
}

#[test]
fn a_codex_that_does_not_read_has_to_before_it_is_heard() {
    const REQUESTS: usize = 40_000;
    let session = TestSession::open();
    let prompt = session.prompt();
    session.codex.pause();
    let stdout = session.codex.stdout();
    let flood = Flood::start(REQUESTS, move |number| {
        let message = json!({ "id": number, "method": "x".repeat(1000), "params": {} });
        stdout.write(format!("{message}\n").as_bytes()).is_ok()
    });
    flood.wait_for_stop();
    assert!(!flood.is_over(), "it was all taken");
    session.codex.resume();
    flood.join();
    session.codex.answers(REQUESTS);
    session.end_turn();
    session.editor.result(prompt);
    session.assert_memory_below(150);
}

#[test]
fn calls_wait_for_an_editor_that_does_not_read() {
    const CALLS: usize = 400;
    let session = TestSession::open();
    let prompt = session.prompt();
    fs::write(session.path("a.txt"), "one line of the file\n".repeat(50_000)).unwrap();
    session.editor.pause();
    let (tools, path) = (session.tools(), session.path("a.txt"));
    let flood = Flood::start(CALLS, move |number| {
        let meta = json!({ "callId": format!("call_{number}") });
        tools.call("read_text_file", &json!({ "path": path }), &meta).is_ok()
    });
    flood.wait_for_stop();
    assert!(!flood.is_over(), "all were answered");
    session.editor.resume();
    flood.join();
    session.end_turn();
    session.editor.result(prompt);
    let ends = session.editor.updates("tool_call_update");
    let is_done = |end: &&Value| end["status"] == "completed";
    assert_eq!(ends.iter().filter(is_done).count(), CALLS);
    session.assert_memory_below(200);
}

#[test]
fn a_history_is_shown_as_the_editor_reads() {
    const ITEMS: usize = 48;
    let session = TestSession::open();
    session.codex.hold_answers("thread/resume");
    let load = json!({ "sessionId": session.id, "cwd": session.folder(), "mcpServers": [] });
    let load = session.editor.send("session/load", load);
    let resume = session.codex.next("thread/resume");
    session.editor.pause();
    let item = |number: usize| json!({ "type": "agentMessage", "id": number.to_string(), "text": "x".repeat(MB) });
    let items: Vec<Value> = (0..ITEMS).map(item).collect();
    let thread = json!({ "id": session.id, "turns": [{ "items": items }] });
    session.codex.answer(&resume, &json!({ "thread": thread, "model": "small" }));
    session.editor.resume();
    session.editor.result(load);
    session.editor.wait_for_chunks(ITEMS * MB);
    session.assert_memory_below(145);
}

#[test]
fn little_is_remembered_of_what_never_ends() {
    const ITEMS: usize = 20_000;
    let session = TestSession::open();
    let prompt = session.prompt();
    let tell = |method: &str, params: Value| {
        let mut params = params;
        params["threadId"] = session.id.clone().into();
        session.codex.notify(method, params);
    };
    let long = "x".repeat(10_000);
    for number in 0..ITEMS {
        let command =
            json!({ "type": "commandExecution", "id": number.to_string(), "command": long });
        tell("item/started", json!({ "item": command }));
        tell("warning", json!({ "message": format!("{number} {long}") }));
    }
    // What was not remembered is shown when it ends.
    let last = (ITEMS - 1).to_string();
    let command =
        json!({ "type": "commandExecution", "id": last, "command": "ls", "status": "completed" });
    tell("item/completed", json!({ "item": command }));
    session.end_turn();
    session.editor.result(prompt);
    let shown = session.editor.updates("tool_call");
    let ends = shown.iter().filter(|call| call["toolCallId"] == *last);
    assert_eq!(ends.map(|call| &call["status"]).collect::<Vec<_>>(), ["completed"]);
    session.assert_memory_below(150);
}
