//! One session: what its turn is at, which tool calls are open, what was chosen and allowed.
//!
//! Two streams tell of the calls of our own tools: Codex's events, and the calls themselves as they arrive at our server.
//! Whichever is first begins a call, the call itself ends it, and both happen once. What happens outside a turn is told
//! to nobody.

mod observer;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tools::tool::arguments_hold;

use crate::cli::Events;
use crate::editor::{AtWork, Others};
use crate::link::Link;
use crate::lock;
use crate::modes::{Choices, Mode};
use crate::translate::{self, Failed, Shown, Streamed};

/// How long the end of a turn waits for calls that are still writing, so that their true outcome is told.
const SETTLING: Duration = Duration::from_secs(3);

/// Items that are open at a time and known by more than their end, and the bytes that they take in memory.
const MAX_ITEMS: usize = 1000;
const MAX_ITEM_BYTES: usize = 32 << 20;
/// Calls of our own tools that Codex may announce in a turn.
const MAX_CALLS: usize = 100_000;
/// Warnings that are remembered.
const MAX_WARNINGS: usize = 1000;

/// How a turn ended: why it stopped, or what went wrong.
pub type Ended = Result<&'static str, Failed>;

/// Which turn is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    Any,
    Number(u64),
    /// By Codex's id.
    Id(&'a str),
}

/// A turn that a prompt has begun.
#[derive(Debug)]
pub struct Begins {
    pub number: u64,
    pub ended: oneshot::Receiver<Ended>,
}

pub struct Session {
    /// Codex's id of the thread, known once it has begun.
    pub id: Arc<OnceLock<String>>,
    pub cwd: PathBuf,
    /// The folders it works in, the first of which is `cwd`.
    pub folders: Vec<String>,
    pub link: Arc<Link>,
    pub events: Events,
    pub shown: Shown,
    /// The name under which Codex knows our server.
    pub server: OnceLock<String>,
    pub state: Mutex<State>,
    /// Told when Codex changes files by itself.
    pub others: Arc<Others>,
}

/// What changes while a session goes on.
#[derive(Default)]
pub struct State {
    pub choices: Choices,
    /// A person allowed all writes of our tools for the rest of the session.
    writes_allowed: bool,
    turn: Option<Turn>,
    /// How many turns there have been.
    turns: u64,
    /// What Codex warned of, each thing once, by its hash.
    warnings: BTreeSet<u64>,
    /// Tokens used so far, as Codex last told.
    pub usage: Option<Value>,
    /// The sandbox that Codex made of its own configuration for the mode `auto`.
    pub auto_sandbox: Option<Value>,
}

/// What a prompt has under way.
struct Turn {
    number: u64,
    /// Known once Codex has answered.
    id: Option<String>,
    answer: oneshot::Sender<Ended>,
    /// Calls of our own tools, by the id under which each is shown.
    calls: HashMap<String, Progress>,
    /// The ids of those that have come and not ended, by the number of the call.
    served: HashMap<u64, String>,
    /// Other items of Codex's that have not ended, with those that change files on disk.
    items: HashMap<String, OpenItem>,
    streamed: Streamed,
    /// Tool calls that are there for a question only.
    questions: BTreeSet<String>,
    /// A person took the prompt back.
    cancelled: bool,
    /// The turn that Codex is told to stop, since it began after that.
    stopped: Option<String>,
    /// Codex said how it ended.
    ended: Option<Ended>,
}

/// An item of Codex's that has not ended.
struct OpenItem {
    item: Value,
    bytes: usize,
    #[expect(dead_code, reason = "held, not read: files may change as long as it is there")]
    at_work: Option<AtWork>,
}

/// Where a call of one of our tools is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Codex said so; the call itself has not come.
    Announced,
    /// Our tool is at it.
    Running,
    Over,
}

impl State {
    pub fn new(mode: Mode) -> Self {
        let mut state = Self::default();
        state.choices.mode = mode;
        state
    }
}

impl Session {
    pub fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    pub fn update(&self, update: &Value) {
        self.link.update(self.id(), update);
    }

    /// Tells which mode the session is in. What is told last is true: nobody changes it meanwhile.
    pub fn tell_mode(&self) {
        let state = lock(&self.state);
        let mode = state.choices.mode.id();
        self.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }));
    }

    /// Tells what is chosen, in the same way.
    pub fn tell_options(&self) {
        let state = lock(&self.state);
        let options = state.choices.options();
        self.update(&json!({ "sessionUpdate": "config_option_update", "configOptions": options }));
    }

    /// Tells of a tool call that is there for a question only, or that is closed.
    pub fn update_question(&self, update: &Value) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        let id = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        if update["sessionUpdate"] == "tool_call" {
            turn.questions.insert(id);
        } else if update["status"] != "in_progress" {
            turn.questions.remove(&id);
        }
        self.update(update);
    }

    /// Says something in Codex's place.
    pub fn say(&self, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    }

    /// Tells of an item of the past.
    pub fn replay(&self, item: &Value) {
        if !self.is_ours(item) {
            for update in translate::replayed(item, &self.cwd, self.shown) {
                self.update(&update);
            }
            return;
        }
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        self.update(&self.events.begin(text("id"), text("tool"), &item["arguments"]));
        self.update(&self.events.remembered(text("id"), item));
    }

    /// Begins a turn; `None` if there is one already.
    pub fn begin_turn(&self) -> Option<Begins> {
        let mut state = lock(&self.state);
        if state.turn.is_some() {
            return None;
        }
        let (answer, ended) = oneshot::channel();
        state.turns += 1;
        state.turn = Some(Turn {
            number: state.turns,
            id: None,
            answer,
            calls: HashMap::new(),
            served: HashMap::new(),
            items: HashMap::new(),
            streamed: Streamed::default(),
            questions: BTreeSet::new(),
            cancelled: false,
            stopped: None,
            ended: None,
        });
        Some(Begins { number: state.turns, ended })
    }

    /// Whether the turn of this number is under way, and was not taken back.
    pub fn wants(&self, number: u64) -> bool {
        let state = lock(&self.state);
        state.turn.as_ref().is_some_and(|turn| turn.number == number && !turn.cancelled)
    }

    /// Codex has begun the turn of this number, under this id; whether it is to stop: the prompt was taken back
    /// meanwhile, or is over.
    pub fn turn_is(&self, number: u64, id: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(turn) = state.turn.as_mut().filter(|turn| turn.number == number) else {
            return true;
        };
        turn.id = Some(id.to_owned());
        turn.cancelled
    }

    /// Codex says that it has begun a turn; the number of the one that was taken back meanwhile, if it is that. What it
    /// says again changes nothing.
    pub fn turn_began(&self, id: &str) -> Option<u64> {
        let mut state = lock(&self.state);
        let turn = state.turn.as_mut()?;
        turn.id.get_or_insert_with(|| id.to_owned());
        let is_new = turn.cancelled && turn.stopped.as_deref() != Some(id);
        is_new.then(|| {
            turn.stopped = Some(id.to_owned());
            turn.number
        })
    }

    /// Takes the turn back; its number, and its id if Codex has begun it.
    pub fn cancel(&self) -> Option<(u64, Option<String>)> {
        let mut state = lock(&self.state);
        let turn = state.turn.as_mut()?;
        turn.cancelled = true;
        Some((turn.number, turn.id.clone()))
    }

    /// A turn is over. It is, once our own calls are; those that take too long are given up.
    pub fn end_turn(self: &Arc<Self>, which: Which<'_>, ended: Ended) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        let is_it = match which {
            Which::Any => true,
            Which::Number(number) => turn.number == number,
            Which::Id(id) => turn.id.as_deref().is_none_or(|own| own == id),
        };
        // Else it is an older one that was given up.
        if !is_it {
            return;
        }
        let number = turn.number;
        let is_first = turn.ended.replace(ended).is_none();
        self.finish_if_settled(&mut state);
        if is_first && state.turn.is_some() {
            let session = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(SETTLING).await;
                let mut state = lock(&session.state);
                if state.turn.as_ref().is_some_and(|turn| turn.number == number) {
                    session.finish(&mut state);
                }
            });
        }
    }

    fn finish_if_settled(&self, state: &mut State) {
        let runs = |turn: &Turn| turn.calls.values().any(|progress| *progress == Progress::Running);
        if state.turn.as_ref().is_some_and(|turn| turn.ended.is_some() && !runs(turn)) {
            self.finish(state);
        }
    }

    /// Closes what is open, and answers the prompt. Nothing is told of this turn from here on.
    fn finish(&self, state: &mut State) {
        let Some(mut turn) = state.turn.take() else { return };
        for (id, _) in turn.calls.iter().filter(|(_, progress)| **progress != Progress::Over) {
            self.update(&self.events.abandoned(id, "The turn ended before the call did"));
        }
        let questions = turn.questions.iter().map(|id| translate::abandoned(id));
        for update in questions.chain(turn.streamed.abandon()) {
            self.update(&update);
        }
        let ended = turn.ended.unwrap_or(Ok("end_turn"));
        // Whoever took a prompt back is told that it was, whatever else became of it.
        let _ = turn.answer.send(if turn.cancelled { Ok("cancelled") } else { ended });
    }

    /// What Codex tells of one of its threads: this one, or one of a sub-agent's.
    pub fn hear(self: &Arc<Self>, method: &str, params: &Value) {
        let is_own = params["threadId"].as_str() == Some(self.id());
        if method == "turn/completed" && is_own {
            let turn = &params["turn"];
            let id = turn["id"].as_str().unwrap_or_default();
            return self.end_turn(Which::Id(id), translate::ended(turn));
        }
        let mut state = lock(&self.state);
        if method == "thread/tokenUsage/updated" && is_own {
            state.usage = Some(params.clone());
        }
        if method == "warning" && is_own {
            let mut hash = DefaultHasher::new();
            params["message"].as_str().unwrap_or_default().hash(&mut hash);
            if state.warnings.len() >= MAX_WARNINGS {
                state.warnings.clear();
            }
            if !state.warnings.insert(hash.finish()) {
                return;
            }
        }
        let Some(turn) = &mut state.turn else {
            // Some things are worth knowing at any time.
            if matches!(method, "thread/name/updated") && is_own {
                let mut nothing = Streamed::default();
                for update in
                    translate::notification(method, params, &self.cwd, self.shown, &mut nothing)
                {
                    self.update(&update);
                }
            }
            return;
        };
        let item = &params["item"];
        match method {
            "item/started" | "item/completed" if self.is_ours(item) => {
                let done = method == "item/completed";
                self.hear_of_call(turn, item, done);
                self.finish_if_settled(&mut state);
            }
            "item/started" if is_own || is_deed(item) => {
                let id = item["id"].as_str().unwrap_or_default();
                let bytes = arguments_hold(item);
                let open_bytes: usize = turn.items.values().map(|open| open.bytes).sum();
                if turn.items.len() >= MAX_ITEMS || open_bytes + bytes > MAX_ITEM_BYTES {
                    return;
                }
                let at_work = changes_files(item).then(|| self.others.begin());
                let open = OpenItem { item: item.clone(), bytes, at_work };
                turn.items.insert(id.to_owned(), open);
                let streamed = &mut turn.streamed;
                for update in translate::item_started(item, &self.cwd, self.shown, streamed) {
                    self.update(&update);
                }
            }
            "item/completed" if is_own || is_deed(item) => {
                let id = item["id"].as_str().unwrap_or_default();
                turn.items.remove(id);
                let streamed = &mut turn.streamed;
                for update in translate::item_completed(item, &self.cwd, self.shown, streamed) {
                    self.update(&update);
                }
            }
            // What a sub-agent says is for the agent that sent it.
            _ if is_own => {
                let streamed = &mut turn.streamed;
                for update in
                    translate::notification(method, params, &self.cwd, self.shown, streamed)
                {
                    self.update(&update);
                }
            }
            _ => {}
        }
    }

    /// The item that a question of Codex's is about. One about a tool of an MCP server does not name it.
    pub fn item_of(&self, question: &Value) -> Option<Value> {
        let state = lock(&self.state);
        let items = &state.turn.as_ref()?.items;
        if let Some(id) = question["itemId"].as_str() {
            return items.get(id).map(|open| open.item.clone());
        }
        let arguments = &question["_meta"]["tool_params"];
        let is_it = |item: &Value| {
            item["type"] == "mcpToolCall"
                && item["server"] == question["serverName"]
                && (arguments.is_null() || item["arguments"] == *arguments)
        };
        items.values().map(|open| &open.item).find(|item| is_it(item)).cloned()
    }

    fn is_ours(&self, item: &Value) -> bool {
        item["type"] == "mcpToolCall"
            && item["server"].as_str() == self.server.get().map(String::as_str)
            && tools::TEXT.iter().any(|entry| item["tool"] == entry.name)
    }

    /// A call of one of our tools, as Codex tells of it.
    fn hear_of_call(&self, turn: &mut Turn, item: &Value, done: bool) {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        let (id, tool) = (text("id"), text("tool"));
        if !turn.calls.contains_key(id) {
            if turn.calls.len() >= MAX_CALLS {
                return;
            }
            turn.calls.insert(id.to_owned(), Progress::Announced);
            self.update(&self.events.begin(id, tool, &item["arguments"]));
        }
        // It never came to us: Codex itself refused it, or could not reach us.
        if done && turn.calls.get(id) == Some(&Progress::Announced) {
            turn.calls.insert(id.to_owned(), Progress::Over);
            let reason = item["error"]["message"].as_str().unwrap_or("Codex did not make the call");
            self.update(&self.events.abandoned(id, reason));
        }
    }
}

/// Whether an item is something done rather than said.
fn is_deed(item: &Value) -> bool {
    !matches!(
        item["type"].as_str(),
        None | Some("userMessage" | "agentMessage" | "reasoning" | "plan" | "hookPrompt")
    )
}

/// Whether files on disk may change by it.
fn changes_files(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("commandExecution" | "fileChange"))
}
