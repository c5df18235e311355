//! What is on an editor's desk: its buffers, the person at it, and all that passed.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;

use serde_json::{Value, json};

use crate::Trouble;
use crate::codex::program::tail;

/// Texts that are not saved, by path.
pub type Buffers = BTreeMap<PathBuf, String>;

/// When a person can do something: between any two things that the editor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment<'a> {
    /// A message of this method came, and nothing was done about it yet.
    Heard(&'a str),
    /// What was asked is done, and not yet answered.
    Answering(&'a str),
    /// The answer is on its way.
    Answered(&'a str),
}

impl Moment<'_> {
    pub fn is_about_files(self) -> bool {
        let (Self::Heard(method) | Self::Answering(method) | Self::Answered(method)) = self;
        method.starts_with("fs/")
    }
}

/// What a person does at a moment.
pub type Person = Box<dyn FnMut(Moment<'_>, &mut Buffers) + Send>;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Agent,
    Editor,
}

/// A message, and who sent it.
pub type Passed = (From, Value);

/// What a person answers to a question for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    /// Nothing: the question was taken away.
    Cancelled,
    /// Nothing: the editor fails to ask.
    Error,
    /// Nothing yet.
    Hold,
}

/// How the editor answers a message about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    Well,
    /// With an error of this code, and does nothing.
    Refuses(i64),
    /// Not at all, and does nothing.
    Hold,
}

/// What an editor can do, and how it behaves.
pub struct Manners {
    /// Whether it offers to read, and to write.
    pub reads: bool,
    pub writes: bool,
    /// What else it can do, as ACP has it.
    pub offers: Value,
    /// What the person at it says to questions, in order; and to all after these.
    pub says: VecDeque<Says>,
    pub then: Says,
    /// How it serves a method for files.
    pub serves: Box<dyn FnMut(&str) -> Serves + Send>,
    pub person: Person,
    /// What the person fills into forms.
    pub fills: Value,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            reads: true,
            writes: true,
            offers: json!({}),
            says: VecDeque::new(),
            then: Says::AllowOnce,
            serves: Box::new(|_| Serves::Well),
            person: Box::new(|_, _| ()),
            fills: Value::Null,
        }
    }
}

impl Manners {
    /// An editor whose person says these, and then the last of them for ever.
    pub fn saying(says: &[Says]) -> Self {
        let then = says.last().copied().unwrap_or(Says::AllowOnce);
        Self { says: says.iter().copied().collect(), then, ..Self::default() }
    }

    /// As ACP has it.
    pub fn capabilities(&self) -> Value {
        let mut all = self.offers.clone();
        all["fs"] = json!({ "readTextFile": self.reads, "writeTextFile": self.writes });
        all
    }
}

/// An editor as it is at some moment.
pub struct Desk {
    pub stdin: Option<ChildStdin>,
    pub manners: Manners,
    pub buffers: Buffers,
    pub wire: Vec<Passed>,
    /// Requests of the agent that are not answered yet.
    pub held: Vec<Value>,
    pub asked: u64,
    /// The agent says no more.
    pub over: bool,
    pub complaints: String,
}

impl Desk {
    /// Lets the person act.
    pub fn pass(&mut self, moment: Moment<'_>) {
        (self.manners.person)(moment, &mut self.buffers);
    }

    pub fn say(&mut self, message: Value) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("the editor is gone")?;
        // In one piece, and flushed by nature: a pipe has no buffer on this side.
        let written = stdin.write_all(format!("{message}\n").as_bytes());
        self.wire.push((From::Editor, message));
        written.map_err(|e| format!("the agent takes no more: {e}"))
    }

    pub fn answer(&mut self, request: &Value) -> Option<Result<Value, (i64, String)>> {
        let (method, params) = (request["method"].as_str()?, &request["params"]);
        let path = Path::new(params["path"].as_str().unwrap_or_default());
        if method.starts_with("fs/") {
            match (self.manners.serves)(method) {
                Serves::Well => {}
                Serves::Refuses(code) => return Some(Err((code, format!("{method} refused")))),
                Serves::Hold => return None,
            }
        }
        Some(match method {
            "fs/read_text_file" if self.manners.reads => self.read(path, params),
            "fs/write_text_file" if self.manners.writes => {
                self.write(path, params["content"].as_str().unwrap_or_default())
            }
            "session/request_permission" => {
                let says = self.manners.says.pop_front().unwrap_or(self.manners.then);
                if says == Says::Hold {
                    return None;
                }
                permission(says, params)
            }
            "elicitation/create" if !self.manners.fills.is_null() => {
                Ok(json!({ "action": "accept", "content": self.manners.fills }))
            }
            _ => Err((-32601, format!("Method not found: {method}"))),
        })
    }

    fn read(&self, path: &Path, params: &Value) -> Result<Value, (i64, String)> {
        let text = match self.buffers.get(path) {
            Some(text) => text.clone(),
            None => fs::read_to_string(path).map_err(|e| match e.kind() {
                ErrorKind::NotFound => (-32002, format!("Resource not found: {}", path.display())),
                _ => (-32603, e.to_string()),
            })?,
        };
        let first = params["line"].as_u64().unwrap_or(1).saturating_sub(1);
        let limit = params["limit"].as_u64().unwrap_or(u64::MAX);
        let lines = text.split_inclusive('\n');
        let lines = lines.skip(usize::try_from(first).unwrap_or(usize::MAX));
        let content: String = lines.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
        Ok(json!({ "content": content }))
    }

    /// Into the buffer if there is one, else onto the disk, as editors do.
    fn write(&mut self, path: &Path, text: &str) -> Result<Value, (i64, String)> {
        match self.buffers.get_mut(path) {
            Some(buffer) => text.clone_into(buffer),
            None => fs::write(path, text).map_err(|e| (-32603, e.to_string()))?,
        }
        // As the protocol's documentation has it; others answer `{}`.
        Ok(Value::Null)
    }

    pub fn wrong(&self, what: &str) -> Trouble {
        let shown = |(from, message): &Passed| {
            let arrow = if *from == From::Agent { "<" } else { ">" };
            let text: String = message.to_string().chars().take(600).collect();
            format!("{arrow} {text}\n")
        };
        let wire: String =
            self.wire[self.wire.len().saturating_sub(12)..].iter().map(shown).collect();
        let complaints = tail(&self.complaints);
        Trouble::Wrong(format!("{what}\n{wire}{complaints}"))
    }
}

fn permission(says: Says, params: &Value) -> Result<Value, (i64, String)> {
    let kind = match says {
        Says::AllowOnce => "allow_once",
        Says::AllowAlways => "allow_always",
        Says::RejectOnce => "reject_once",
        Says::Error => return Err((-32603, "nobody is there".into())),
        Says::Cancelled | Says::Hold => {
            return Ok(json!({ "outcome": { "outcome": "cancelled" } }));
        }
    };
    let mut options = params["options"].as_array().into_iter().flatten();
    let option = options.find(|option| option["kind"] == kind);
    let option = option.ok_or_else(|| (-32602, format!("there is no option to {kind}")))?;
    Ok(json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }))
}
