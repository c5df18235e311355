//! An editor that does not read, and a Codex that floods: the program holds little, ends what has no end, and goes on.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Stage;

const MB: usize = 1 << 20;

/// Something done again and again by a thread of its own, until it is done or nobody takes more.
struct Flood {
    done: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Flood {
    /// Calls `pour` with each number; it answers whether to go on.
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

    /// Waits until it goes on no more, done or not.
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

impl Stage {
    /// Codex says a piece of a message so often.
    fn flood(&self, pieces: usize, bytes: usize) -> Flood {
        let delta = "x".repeat(bytes);
        let params = json!({ "threadId": self.session, "itemId": "message", "delta": delta });
        let message = json!({ "method": "item/agentMessage/delta", "params": params });
        let (line, stdout) = (format!("{message}\n"), self.codex.stdout());
        Flood::start(pieces, move |_| stdout.write(line.as_bytes()).is_ok())
    }

    /// That the program never held more than this.
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
        let stage = Stage::open();
        let prompt = stage.prompt();
        stage.editor.pause();
        let flood = stage.flood(pieces, bytes);
        flood.wait_for_stop();
        assert!(!flood.is_over(), "it was all taken");
        stage.editor.resume();
        stage.editor.wait_for_chunks(pieces * bytes);
        flood.join();
        stage.end_turn();
        assert_eq!(stage.editor.result(prompt)["stopReason"], "end_turn");
        stage.assert_memory_below(150);
    }
}

#[test]
fn a_prompt_is_cancelled_although_the_editor_did_not_read() {
    let stage = Stage::open();
    let prompt = stage.prompt();
    stage.editor.pause();
    let flood = stage.flood(4000, 64 * 1024);
    flood.wait_for_stop();
    stage.editor.notify("session/cancel", json!({ "sessionId": stage.session }));
    stage.codex.heard("turn/interrupt");
    stage.editor.resume();
    flood.join();
    let turn = json!({ "id": "turn", "status": "interrupted", "error": null });
    stage.codex.notify("turn/completed", json!({ "threadId": stage.session, "turn": turn }));
    assert_eq!(stage.editor.result(prompt)["stopReason"], "cancelled");
}

#[test]
fn the_program_ends_although_the_editor_does_not_read() {
    let mut stage = Stage::open();
    stage.prompt();
    stage.editor.pause();
    let flood = stage.flood(4000, 64 * 1024);
    flood.wait_for_stop();
    stage.editor.close_stdin();
    stage.editor.wait_for_end();
    flood.join();
    stage.codex.wait_for_end();
}

#[test]
fn a_message_without_an_end_ends_codex_and_the_next_goes_on() {
    let stage = Stage::open();
    let prompt = stage.prompt();
    let stdout = stage.codex.stdout();
    let blanks = vec![b' '; MB];
    let flood = Flood::start(1024, move |_| stdout.write(&blanks).is_ok());
    let error = stage.editor.error(prompt);
    assert!(error.contains("a message of more than 64 MB"), "{error}");
    stage.codex.wait_for_end();
    flood.join();
    stage.assert_memory_below(300);
    let next = thread::scope(|scope| {
        let next = scope.spawn(|| stage.listener.accept(&json!({})));
        let prompt = json!([{ "type": "text", "text": "Go on." }]);
        let params = json!({ "sessionId": stage.session, "prompt": prompt });
        let prompt = stage.editor.send("session/prompt", params);
        let next = next.join().unwrap();
        next.answered("turn/start");
        (next, prompt)
    });
    let (next, prompt) = next;
    let turn = json!({ "id": "turn", "status": "completed", "error": null });
    next.notify("turn/completed", json!({ "threadId": stage.session, "turn": turn }));
    assert_eq!(stage.editor.result(prompt)["stopReason"], "end_turn");
}

#[test]
fn a_long_message_is_taken() {
    let stage = Stage::open();
    let prompt = stage.prompt();
    stage.flood(1, 50 * MB).join();
    stage.editor.wait_for_chunks(50 * MB);
    stage.end_turn();
    assert_eq!(stage.editor.result(prompt)["stopReason"], "end_turn");
}

#[test]
fn a_message_of_the_editor_without_an_end_is_refused() {
    let stage = Stage::open();
    let blanks = vec![b' '; MB];
    for _ in 0..200 {
        stage.editor.write_raw(&blanks);
    }
    stage.editor.write_raw(b"\n");
    let message = stage.editor.wait("a refusal", |messages| {
        let refusal = messages.iter().find(|message| !message["error"].is_null())?;
        refusal["error"]["message"].as_str().map(str::to_owned)
    });
    assert!(message.contains("more than 64 MB"), "{message}");
    let prompt = stage.prompt();
    stage.end_turn();
    stage.editor.result(prompt);
    stage.assert_memory_below(200);
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let stage = Stage::open();
    let prompt = stage.prompt();
    let mut stderr = stage.codex.stderr();
    let piece = vec![b'x'; MB];
    Flood::start(200, move |_| stderr.write_all(&piece).is_ok()).join();
    stage.flood(1, 10).join();
    stage.editor.wait_for_chunks(10);
    stage.end_turn();
    stage.editor.result(prompt);
    stage.assert_memory_below(100);
}

#[test]
fn codex_waits_for_an_editor_that_answers_no_questions() {
    const QUESTIONS: usize = 500;
    let stage = Stage::open();
    let prompt = stage.prompt();
    let (session, stdout) = (stage.session.clone(), stage.codex.stdout());
    let flood = Flood::start(QUESTIONS, move |number| {
        let params = json!({
            "threadId": session, "turnId": "turn", "itemId": format!("item-{number}"),
            "command": "x".repeat(100_000), "cwd": "/", "reason": null,
            "availableDecisions": ["accept", "decline"],
        });
        let method = "item/commandExecution/requestApproval";
        let message = json!({ "id": number, "method": method, "params": params });
        stdout.write(format!("{message}\n").as_bytes()).is_ok()
    });
    flood.wait_for_stop();
    let questions = || {
        let messages = stage.editor.messages();
        messages.iter().filter(|message| message["method"] == "session/request_permission").count()
    };
    assert!((1..=64).contains(&questions()), "{} questions are open", questions());
    for _ in 0..QUESTIONS {
        let question = stage.editor.asked("session/request_permission");
        let option = question["params"]["options"][0]["optionId"].as_str().unwrap().to_owned();
        stage.editor.choose(&question, &option);
    }
    flood.join();
    let answers = stage.codex.answers(QUESTIONS);
    assert!(answers.iter().all(|answer| answer["result"]["decision"] == "accept"));
    stage.end_turn();
    stage.editor.result(prompt);
    stage.assert_memory_below(150);
}

#[test]
fn a_codex_that_does_not_read_has_to_before_it_is_heard() {
    const REQUESTS: usize = 40_000;
    let stage = Stage::open();
    let prompt = stage.prompt();
    stage.codex.pause();
    let stdout = stage.codex.stdout();
    let flood = Flood::start(REQUESTS, move |number| {
        let message = json!({ "id": number, "method": "x".repeat(1000), "params": {} });
        stdout.write(format!("{message}\n").as_bytes()).is_ok()
    });
    flood.wait_for_stop();
    assert!(!flood.is_over(), "it was all taken");
    stage.codex.resume();
    flood.join();
    stage.codex.answers(REQUESTS);
    stage.end_turn();
    stage.editor.result(prompt);
    stage.assert_memory_below(150);
}

#[test]
fn calls_wait_for_an_editor_that_does_not_read() {
    const CALLS: usize = 400;
    let stage = Stage::open();
    let prompt = stage.prompt();
    fs::write(stage.path("a.txt"), "one line of the file\n".repeat(50_000)).unwrap();
    stage.editor.pause();
    let (tools, path) = (stage.tools(), stage.path("a.txt"));
    let flood = Flood::start(CALLS, move |number| {
        let meta = json!({ "callId": format!("call_{number}") });
        tools.call("read_text_file", &json!({ "path": path }), &meta).is_ok()
    });
    flood.wait_for_stop();
    assert!(!flood.is_over(), "all were answered");
    stage.editor.resume();
    flood.join();
    stage.end_turn();
    stage.editor.result(prompt);
    let ends = stage.editor.updates("tool_call_update");
    let is_done = |end: &&Value| end["status"] == "completed";
    assert_eq!(ends.iter().filter(is_done).count(), CALLS);
    stage.assert_memory_below(200);
}

#[test]
fn a_history_is_shown_as_the_editor_reads() {
    const ITEMS: usize = 48;
    let stage = Stage::open();
    stage.codex.hold("thread/resume");
    let load = json!({ "sessionId": stage.session, "cwd": stage.folder(), "mcpServers": [] });
    let load = stage.editor.send("session/load", load);
    let resume = stage.codex.heard("thread/resume");
    stage.editor.pause();
    let item = |number: usize| json!({ "type": "agentMessage", "id": number.to_string(), "text": "x".repeat(MB) });
    let items: Vec<Value> = (0..ITEMS).map(item).collect();
    let thread = json!({ "id": stage.session, "turns": [{ "items": items }] });
    stage.codex.answer(&resume, &json!({ "thread": thread, "model": "small" }));
    stage.editor.resume();
    stage.editor.result(load);
    stage.editor.wait_for_chunks(ITEMS * MB);
    stage.assert_memory_below(145);
}

#[test]
fn little_is_remembered_of_what_never_ends() {
    const ITEMS: usize = 20_000;
    let stage = Stage::open();
    let prompt = stage.prompt();
    let tell = |method: &str, params: Value| {
        let mut params = params;
        params["threadId"] = stage.session.clone().into();
        stage.codex.notify(method, params);
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
    stage.end_turn();
    stage.editor.result(prompt);
    let shown = stage.editor.updates("tool_call");
    let ends = shown.iter().filter(|call| call["toolCallId"] == *last);
    assert_eq!(ends.map(|call| &call["status"]).collect::<Vec<_>>(), ["completed"]);
    stage.assert_memory_below(150);
}
