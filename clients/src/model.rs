//! A model that follows a script, for programs that expect the Responses API behind them.
//!
//! Request n is answered by step n, and kept: what the model was offered and shown is all that a real one would have
//! had to work with.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::{Outcome, Trouble};

/// What a model answers to one request.
pub enum Turn {
    /// Words, with which its work ends.
    Say(String),
    /// A call of a tool, by its name in its namespace.
    Call { namespace: &'static str, name: &'static str, arguments: Value },
    /// A call of a tool that takes free text instead of arguments.
    Write { name: &'static str, input: String },
    /// A search among the tools that were not offered at once.
    Search { query: &'static str },
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
    work: Arc<Mutex<Work>>,
    closed: Arc<AtomicBool>,
}

struct Work {
    script: VecDeque<Step>,
    requests: Vec<Request>,
}

impl Model {
    pub fn start(script: Vec<Step>) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|l| Ok((l.local_addr()?, l)));
        let (address, listener) = listener.map_err(|e| Trouble::NotRun(e.to_string()))?;
        let work = Arc::new(Mutex::new(Work { script: script.into(), requests: Vec::new() }));
        let closed = Arc::new(AtomicBool::new(false));
        let model = Self { address, work: work.clone(), closed: closed.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                let work = work.clone();
                // A step may take its time: others are not kept waiting.
                thread::spawn(move || serve(stream, &work));
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
        held(&self.work).requests.clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn held(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request and its answer. A step that went wrong is answered with a refusal, which nobody tries again.
fn serve(mut stream: TcpStream, work: &Mutex<Work>) -> io::Result<()> {
    let (line, body) = receive(&stream)?;
    let answer = if line.starts_with("POST /v1/responses ") {
        respond(&Request(serde_json::from_slice(&body)?), work)
    } else {
        Err(format!("not known here: {line}"))
    };
    let (status, kind, text) = match answer {
        Ok(events) => ("200 OK", "text/event-stream", events),
        Err(why) => {
            let error = json!({ "error": { "message": why } });
            ("400 Bad Request", "application/json", error.to_string())
        }
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
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
fn respond(request: &Request, work: &Mutex<Work>) -> Result<String, String> {
    let (number, step) = {
        let mut work = held(work);
        work.requests.push(request.clone());
        (work.requests.len(), work.script.pop_front())
    };
    let Some(step) = step else { return Err("the script is over".into()) };
    let turn = step(request).map_err(|(Trouble::NotRun(why) | Trouble::Wrong(why))| why)?;
    let events: Vec<_> =
        events(number, turn).iter().map(|event| format!("data: {event}\n\n")).collect();
    Ok(events.concat())
}

fn events(number: usize, turn: Turn) -> Vec<Value> {
    let (id, call) = (format!("item_{number}"), format!("call_{number}"));
    let mut said = None;
    let item = match turn {
        Turn::Say(text) => {
            said = Some(text.clone());
            let content = json!([{ "type": "output_text", "text": text }]);
            json!({ "type": "message", "id": id, "role": "assistant", "content": content })
        }
        Turn::Call { namespace, name, arguments } => json!({
            "type": "function_call", "id": id, "call_id": call,
            "namespace": namespace, "name": name, "arguments": arguments.to_string(),
        }),
        Turn::Write { name, input } => json!({
            "type": "custom_tool_call", "id": id, "call_id": call, "name": name, "input": input,
        }),
        Turn::Search { query } => json!({
            "type": "tool_search_call", "id": id, "call_id": call,
            "execution": "client", "arguments": { "query": query },
        }),
    };
    let response = json!({ "id": format!("resp_{number}") });
    let mut events = vec![json!({ "type": "response.created", "response": response })];
    if let Some(text) = said {
        // Words are shown while they come, so they come in pieces: here in one.
        let begun = json!({ "type": "message", "id": id, "role": "assistant", "content": [] });
        events.push(
            json!({ "type": "response.output_item.added", "output_index": 0, "item": begun }),
        );
        events.push(json!({
            "type": "response.output_text.delta", "item_id": id,
            "output_index": 0, "content_index": 0, "delta": text,
        }));
    }
    events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
    events.push(json!({ "type": "response.completed", "response": response }));
    events
}
