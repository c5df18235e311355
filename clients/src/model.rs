//! A model that follows a script, for programs that expect the Responses API behind them.
//!
//! Request n is answered by step n, and kept: what the model was offered and shown is all that a real one would have
//! had to work with.

mod events;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Outcome, Trouble};
pub use events::TOKENS;

/// One thing a model puts into an answer.
pub enum Item {
    /// Words; its work ends with an answer that has nothing else.
    Say(String),
    /// A summary of what it thinks.
    Think(String),
    /// A call of a tool, by its name, in its namespace if it has one.
    Call { namespace: Option<&'static str>, name: &'static str, arguments: Value },
    /// A call of a tool that takes free text instead of arguments.
    Write { name: &'static str, input: String },
    /// A search among the tools that were not offered at once.
    Search { query: &'static str },
    /// A search of the web, which is done by whoever runs the model.
    Browse { query: &'static str },
}

/// What a model answers to one request.
pub struct Turn {
    pub items: Vec<Item>,
    pub end: End,
}

/// How an answer ends.
pub enum End {
    Complete,
    /// Not at all: whoever asked has to give up.
    Hanging,
    /// In the middle.
    Dropped,
}

impl From<Item> for Turn {
    fn from(item: Item) -> Self {
        vec![item].into()
    }
}

impl From<Vec<Item>> for Turn {
    fn from(items: Vec<Item>) -> Self {
        Self { items, end: End::Complete }
    }
}

/// A turn, made when its request is there, so that it can depend on what was shown.
pub type Step = Box<dyn FnOnce(&Request) -> Outcome<Turn> + Send>;

/// A request, as it came.
#[derive(Clone)]
pub struct Request(Value);

impl Request {
    /// A namespace with its tools, offered with the request or found by a search.
    pub fn namespace(&self, name: &str) -> Option<&Value> {
        self.tools().find(|tool| tool["type"] == "namespace" && tool["name"] == name)
    }

    /// The description of a tool outside all namespaces. A search has no name but a type.
    pub fn description(&self, name: &str) -> Option<&str> {
        // For some models these are in a namespace after all.
        let bare = self.namespace("functions").and_then(|space| space["tools"].as_array());
        let mut all = self.tools().chain(bare.into_iter().flatten());
        all.find(|tool| tool["name"] == name || tool["type"] == name)?["description"].as_str()
    }

    /// What the tools answered so far, oldest first, each as the texts it consists of.
    pub fn outputs(&self) -> Vec<Vec<&str>> {
        let outputs = self.input().filter(|item| {
            item["type"] == "function_call_output" || item["type"] == "custom_tool_call_output"
        });
        outputs
            .map(|item| match &item["output"] {
                Value::Array(parts) => {
                    parts.iter().filter_map(|part| part["text"].as_str()).collect()
                }
                text => text.as_str().into_iter().collect(),
            })
            .collect()
    }

    /// What the user said, oldest first: a message is its parts, each as it came.
    pub fn said(&self) -> Vec<&Value> {
        let messages = self.input().filter(|item| item["role"] == "user");
        messages.filter_map(|item| item["content"].as_array()).flatten().collect()
    }

    /// Itself, as it came.
    pub fn body(&self) -> &Value {
        &self.0
    }

    fn tools(&self) -> impl Iterator<Item = &Value> {
        let shown = self.input().filter_map(|item| item["tools"].as_array());
        self.0["tools"].as_array().into_iter().chain(shown).flatten()
    }

    fn input(&self) -> impl Iterator<Item = &Value> {
        self.0["input"].as_array().into_iter().flatten()
    }
}

/// A scripted model that listens on a port of this machine for as long as it is kept.
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    asked: Condvar,
    closed: AtomicBool,
}

#[derive(Default)]
struct Work {
    scripts: Vec<(&'static str, VecDeque<Step>)>,
    requests: Vec<Request>,
    /// What a script had to say against what it was shown.
    refused: Vec<String>,
}

impl Model {
    pub fn start(script: Vec<Step>) -> Outcome<Self> {
        Self::start_for(vec![("", script)])
    }

    /// Several conversations at once: each has the first script whose word is in what the user said.
    pub fn start_for(scripts: Vec<(&'static str, Vec<Step>)>) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|l| Ok((l.local_addr()?, l)));
        let (address, listener) = listener.map_err(|e| Trouble::NotRun(e.to_string()))?;
        let shared = Arc::new(Shared::default());
        held(&shared.work).scripts =
            scripts.into_iter().map(|(word, script)| (word, script.into())).collect();
        let model = Self { address, shared: shared.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.closed.load(Ordering::Relaxed) {
                    return;
                }
                let shared = shared.clone();
                // A step may take its time: others are not kept waiting.
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(model)
    }

    /// The base of its address, as the configuration of a provider has it.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests it was sent, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        held(&self.shared.work).requests.clone()
    }

    /// What it refused to answer, and why.
    pub fn refused(&self) -> Vec<String> {
        held(&self.shared.work).refused.clone()
    }

    /// Waits until it was sent so many requests.
    pub fn wait_for(&self, requests: usize, patience: Duration) -> Outcome<()> {
        let waiting = |work: &mut Work| work.requests.len() < requests;
        let work = held(&self.shared.work);
        let waited = self.shared.asked.wait_timeout_while(work, patience, waiting);
        let (work, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() {
            return Ok(());
        }
        let asked = work.requests.len();
        Err(Trouble::Wrong(format!("the model was asked {asked} times, not {requests}")))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn held(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request and its answer. A step that went wrong is answered with a refusal, which nobody tries again.
fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let (line, body) = receive(&stream)?;
    let answer = if line.starts_with("POST /v1/responses ") {
        respond(&Request(serde_json::from_slice(&body)?), shared)
    } else {
        Err(format!("not known here: {line}"))
    };
    match answer {
        Ok((events, end)) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
            write!(stream, "{head}\r\n\r\n{}", events.concat())?;
            if let End::Hanging = end {
                // Nothing more is said by whoever asked: this ends when they go.
                stream.read_exact(&mut [0])?;
            }
            Ok(())
        }
        Err(why) => {
            let error = json!({ "error": { "message": why } }).to_string();
            let length = error.len();
            let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json";
            write!(stream, "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{error}")
        }
    }
}

/// The first line of a request, and its body.
fn receive(stream: &TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first, body))
}

/// Keeps the request and makes the events of its answer.
fn respond(request: &Request, shared: &Shared) -> Result<(Vec<String>, End), String> {
    let said: Vec<_> = request.said().iter().filter_map(|part| part["text"].as_str()).collect();
    let said = said.join("\n");
    let (number, step) = {
        let mut work = held(&shared.work);
        work.requests.push(request.clone());
        let script = work.scripts.iter_mut().find(|(word, _)| said.contains(word));
        let step = script.and_then(|(_, script)| script.pop_front());
        (work.requests.len(), step)
    };
    shared.asked.notify_all();
    let turn =
        step.map_or_else(|| Err(Trouble::Wrong("the script is over".into())), |step| step(request));
    let turn = turn.map_err(|(Trouble::NotRun(why) | Trouble::Wrong(why))| {
        held(&shared.work).refused.push(format!("request {number}: {why}"));
        why
    })?;
    let events = events::of(number, turn.items, &turn.end);
    Ok((events.iter().map(|event| format!("data: {event}\n\n")).collect(), turn.end))
}
