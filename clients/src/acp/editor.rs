//! An editor that follows a script: an ACP client with buffers, and a person at it.
//!
//! What the agent asks is answered by a thread of its own, by what the editor was told beforehand; the whole wire is kept
//! in the order in which it passed. Nothing here knows the agent: what it says is taken as it comes.

mod desk;

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Outcome, Trouble};
use desk::Desk;
pub use desk::{Buffers, From, Manners, Moment, Passed, Says, Serves};

/// How long an answer may take. Far more than any needs: it is there for one that never comes.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// An editor with its agent, which is ended when the editor goes.
pub struct Editor {
    child: Child,
    capabilities: Value,
    shared: Arc<Shared>,
}

struct Shared {
    desk: Mutex<Desk>,
    changed: Condvar,
}

impl Editor {
    pub fn start(command: &mut Command, manners: Manners) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = command.spawn();
        let mut child = spawned.map_err(|e| Trouble::NotRun(format!("{command:?}: {e}")))?;
        let (said, complained) = (child.stdout.take(), child.stderr.take());
        let capabilities = manners.capabilities();
        let desk = Desk {
            stdin: child.stdin.take(),
            manners,
            buffers: Buffers::new(),
            wire: Vec::new(),
            held: Vec::new(),
            asked: 0,
            over: false,
            complaints: String::new(),
        };
        let shared = Arc::new(Shared { desk: Mutex::new(desk), changed: Condvar::new() });
        let listener = shared.clone();
        thread::spawn(move || {
            each_line(said, |line| listener.hear(line));
            // The pipe is closed by now: what the agent says from here on is an error to it.
            listener.desk().over = true;
            listener.changed.notify_all();
        });
        let listener = shared.clone();
        thread::spawn(move || {
            each_line(complained, |line| {
                let complaints = &mut listener.desk().complaints;
                complaints.push_str(line);
                complaints.push('\n');
                ControlFlow::Continue(())
            });
        });
        Ok(Self { child, capabilities, shared })
    }

    /// The first thing an editor says.
    pub fn initialize(&self) -> Outcome<Value> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": self.capabilities,
            "clientInfo": { "name": "scripted-editor", "version": "1" },
        });
        self.ask("initialize", params)
    }

    /// Asks, and waits for the result.
    pub fn ask(&self, method: &str, params: Value) -> Outcome<Value> {
        let id = self.send(method, params)?;
        self.result(id).map_err(|trouble| trouble.at(method))
    }

    /// Asks what must be refused, and waits for the error.
    pub fn refused(&self, method: &str, params: Value) -> Outcome<Value> {
        let id = self.send(method, params)?;
        let answer = self.answer(id)?;
        let error = answer.get("error").cloned();
        error.ok_or_else(|| self.wrong(&format!("{method} was not refused: {answer}")))
    }

    /// Asks, and goes on; the number by which the answer will be known.
    pub fn send(&self, method: &str, params: Value) -> Outcome<u64> {
        let mut desk = self.shared.desk();
        desk.asked += 1;
        let id = desk.asked;
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        request["params"] = params;
        desk.say(request).map_err(|why| Trouble::Wrong(format!("{method}: {why}")))?;
        Ok(id)
    }

    /// Says something that is no message.
    pub fn mumble(&self, line: &str) -> Outcome<()> {
        let mut desk = self.shared.desk();
        let said = desk.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        let said = said.is_some_and(|said| said.is_ok());
        if said { Ok(()) } else { Err(desk.wrong("the agent takes no more")) }
    }

    /// Says what has no answer.
    pub fn tell(&self, method: &str, params: Value) -> Outcome<()> {
        let mut notice = json!({ "jsonrpc": "2.0", "method": method });
        notice["params"] = params;
        let said = self.shared.desk().say(notice);
        said.map_err(|why| Trouble::Wrong(format!("{method}: {why}")))
    }

    /// The answer to request `id`, once it is there.
    pub fn answer(&self, id: u64) -> Outcome<Value> {
        self.wait(&format!("an answer to request {id}"), |desk| {
            let answers = desk.wire.iter().filter(|(from, _)| *from == From::Agent);
            let mut answers = answers.filter(|(_, message)| message.get("method").is_none());
            answers.find(|(_, message)| message["id"] == id).map(|(_, answer)| answer.clone())
        })
    }

    /// The same, which has to be a result.
    pub fn result(&self, id: u64) -> Outcome<Value> {
        let answer = self.answer(id)?;
        let result = answer.get("result").cloned();
        result.ok_or_else(|| self.wrong(&format!("an error: {}", answer["error"])))
    }

    /// The first message of the agent that fits, from message `start` of the wire on.
    pub fn heard(&self, what: &str, start: usize, fits: impl Fn(&Value) -> bool) -> Outcome<Value> {
        self.wait(what, |desk| {
            let later = desk.wire.get(start..).unwrap_or_default().iter();
            let mut said = later.filter(|(from, _)| *from == From::Agent);
            said.find(|(_, message)| fits(message)).map(|(_, message)| message.clone())
        })
    }

    /// Waits for a request by that name that the editor holds.
    pub fn held(&self, method: &str) -> Outcome<Value> {
        self.wait(&format!("{method}, held"), |desk| {
            desk.held.iter().find(|request| request["method"] == method).cloned()
        })
    }

    /// Answers what was held, as `serves` and `says` say by now.
    pub fn release(&self) {
        let held = std::mem::take(&mut self.shared.desk().held);
        for request in held {
            self.shared.answer(&request);
        }
    }

    /// Changes how the editor behaves.
    pub fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.shared.desk().manners);
    }

    /// Opens a file with a text that is not saved, or types over it.
    pub fn open(&self, path: &Path, text: &str) {
        self.shared.desk().buffers.insert(path.into(), text.into());
    }

    /// The text that is open under the path.
    pub fn buffer(&self, path: &Path) -> Option<String> {
        self.shared.desk().buffers.get(path).cloned()
    }

    /// All that passed so far.
    pub fn wire(&self) -> Vec<Passed> {
        self.shared.desk().wire.clone()
    }

    /// The number of the agent's process.
    pub fn agent(&self) -> u32 {
        self.child.id()
    }

    /// Goes: the agent hears no more, and whatever it still says finds nobody. It has to go, too.
    pub fn leave(&mut self) -> Outcome<()> {
        self.shared.desk().stdin = None;
        self.gone()
    }

    /// Kills the agent.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn gone(&mut self) -> Outcome<()> {
        let until = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let trouble = self.wrong("the agent stays although its editor is gone");
                self.kill();
                return Err(trouble);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What is wrong, with the last of what passed and of what the agent complained about.
    pub fn wrong(&self, what: &str) -> Trouble {
        self.shared.desk().wrong(what)
    }

    fn wait<T>(&self, what: &str, look: impl Fn(&Desk) -> Option<T>) -> Outcome<T> {
        let until = Instant::now() + PATIENCE;
        let mut desk = self.shared.desk();
        loop {
            if let Some(found) = look(&desk) {
                return Ok(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if desk.over || left.is_zero() {
                let ended = if desk.over { "the agent ended" } else { "the agent hangs" };
                return Err(desk.wrong(&format!("{ended} without {what}")));
            }
            let waited = self.shared.changed.wait_timeout(desk, left);
            desk = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears a message, and whether there is anybody to hear more.
    fn hear(&self, line: &str) -> ControlFlow<()> {
        // What is not JSON is kept all the same: that it was said is what is wrong with it.
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| json!(line));
        {
            let desk = &mut *self.desk();
            desk.wire.push((From::Agent, message.clone()));
            desk.pass(Moment::Heard(message["method"].as_str().unwrap_or_default()));
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            self.answer(&message);
        }
        self.changed.notify_all();
        if self.desk().stdin.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Answers a request of the agent, or holds it.
    fn answer(&self, request: &Value) {
        let desk = &mut *self.desk();
        let method = request["method"].as_str().unwrap_or_default();
        let answer = desk.answer(request);
        desk.pass(Moment::Answering(method));
        match answer {
            None => desk.held.push(request.clone()),
            Some(answer) => {
                let mut message = json!({ "jsonrpc": "2.0", "id": request["id"] });
                match answer {
                    Ok(result) => message["result"] = result,
                    Err((code, why)) => message["error"] = json!({ "code": code, "message": why }),
                }
                // An agent that is gone hears nothing; that it is gone is noticed elsewhere.
                let _ = desk.say(message);
                desk.pass(Moment::Answered(method));
            }
        }
    }
}

fn each_line(pipe: Option<impl Read>, mut then: impl FnMut(&str) -> ControlFlow<()>) {
    for line in pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
        let Ok(line) = line else { return };
        if then(&String::from_utf8_lossy(&line)).is_break() {
            return;
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
