//! State of a session: its turn, the open tool calls, and what was chosen and permitted.
//!
//! A call of this program's own tools is reported twice: by Codex's events, and by the call itself when it arrives at
//! the loopback server. Whichever is first begins the call, the call itself ends it, and each is sent to the editor
//! once. Outside a turn nothing about calls is sent.

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
use tools::tool::arguments_memory;

use crate::cli::Events;
use crate::editor::{CommandPeriods, RunningCommand};
use crate::link::Link;
use crate::lock;
use crate::modes::{Choices, Mode};
use crate::translate::{self, Failed, Shown, Streamed};

/// Time that the end of a turn waits for running calls, so that their true outcome is reported.
const SETTLING: Duration = Duration::from_secs(3);

/// Limits of the open items that are remembered: their number, and their bytes in memory.
const MAX_ITEMS: usize = 1000;
const MAX_ITEM_BYTES: usize = 32 << 20;
/// Limit of the calls of this program's tools that Codex may announce in a turn.
const MAX_CALLS: usize = 100_000;
/// Limit of the remembered warnings.
const MAX_WARNINGS: usize = 1000;

/// Outcome of a turn: the stop reason, or an error.
pub type Ended = Result<&'static str, Failed>;

/// Selects a turn.
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
    /// The folders of the session, the first of which is `cwd`.
    pub folders: Vec<String>,
    pub link: Arc<Link>,
    pub events: Events,
    pub shown: Shown,
    /// Name of this program's server in Codex's configuration.
    pub server: OnceLock<String>,
    pub state: Mutex<State>,
    /// Periods in which Codex changes files by itself.
    pub command_periods: Arc<CommandPeriods>,
}

/// Mutable state of a session.
#[derive(Default)]
pub struct State {
    pub choices: Choices,
    /// Set when a person allowed all writes of this program's tools for the rest of the session.
    writes_allowed: bool,
    turn: Option<Turn>,
    /// Number of turns so far.
    turns: u64,
    /// Hashes of the warnings of Codex, each of which is shown once.
    warnings: BTreeSet<u64>,
    /// Tokens used so far, as Codex last reported them.
    pub usage: Option<Value>,
    /// The sandbox that Codex made from its own configuration for the mode `auto`.
    pub auto_sandbox: Option<Value>,
}

/// A running turn.
struct Turn {
    number: u64,
    /// Codex's id of the turn, known once Codex has answered.
    id: Option<String>,
    answer: oneshot::Sender<Ended>,
    /// Calls of this program's tools, by the id under which each is shown.
    calls: HashMap<String, Progress>,
    /// Ids of the calls that have arrived and not ended, by the number of the call.
    served: HashMap<u64, String>,
    /// Other items of Codex that have not ended, including those that change files on disk.
    items: HashMap<String, OpenItem>,
    streamed: Streamed,
    /// Tool calls that exist only for a question.
    questions: BTreeSet<String>,
    /// Set when a person cancelled the prompt.
    cancelled: bool,
    /// Id of the turn that Codex was told to stop because it began after the cancellation.
    stopped: Option<String>,
    /// Outcome of the turn, as Codex reported it.
    ended: Option<Ended>,
}

/// An item of Codex that has not ended.
struct OpenItem {
    item: Value,
    bytes: usize,
    #[expect(dead_code, reason = "held, not read: files may change as long as it is there")]
    running_command: Option<RunningCommand>,
}

/// Progress of a call of this program's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Codex announced it; the call itself has not arrived.
    Announced,
    /// The tool is running.
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

    /// Sends the current mode. The lock is held, so that the last update sent is the true one.
    pub fn tell_mode(&self) {
        let state = lock(&self.state);
        let mode = state.choices.mode.id();
        self.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }));
    }

    /// Sends the current options, under the lock like [`Session::tell_mode`].
    pub fn tell_options(&self) {
        let state = lock(&self.state);
        let options = state.choices.options();
        self.update(&json!({ "sessionUpdate": "config_option_update", "configOptions": options }));
    }

    /// Sends an update of a tool call that exists only for a question, or that was asked about.
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

    /// Sends a message of the agent that this program wrote itself.
    pub fn say(&self, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    }

    /// Sends the updates of an item of a loaded thread.
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

    /// Begins a turn. `None` if one is running.
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

    /// True if the turn of this number is running and not cancelled.
    pub fn wants(&self, number: u64) -> bool {
        let state = lock(&self.state);
        state.turn.as_ref().is_some_and(|turn| turn.number == number && !turn.cancelled)
    }

    /// Records the id with which Codex began the turn of this number. True if Codex must stop it, since the prompt was
    /// cancelled meanwhile or has ended.
    pub fn turn_is(&self, number: u64, id: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(turn) = state.turn.as_mut().filter(|turn| turn.number == number) else {
            return true;
        };
        turn.id = Some(id.to_owned());
        turn.cancelled
    }

    /// Records that Codex reported a turn. Returns its number if it was cancelled meanwhile and must be stopped. A
    /// repeated report changes nothing.
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

    /// Cancels the turn. Returns its number, and its id if Codex has begun it.
    pub fn cancel(&self) -> Option<(u64, Option<String>)> {
        let mut state = lock(&self.state);
        let turn = state.turn.as_mut()?;
        turn.cancelled = true;
        Some((turn.number, turn.id.clone()))
    }

    /// Records the outcome of a turn. The turn ends when the running calls of this program's tools have, or after
    /// [`SETTLING`].
    pub fn end_turn(self: &Arc<Self>, which: Which<'_>, ended: Ended) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        let is_it = match which {
            Which::Any => true,
            Which::Number(number) => turn.number == number,
            Which::Id(id) => turn.id.as_deref().is_none_or(|own| own == id),
        };
        // Otherwise it is an older turn that was given up.
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

    /// Closes the open calls and answers the prompt. Nothing is sent about this turn afterwards.
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
        // A cancelled prompt is answered as cancelled, whatever its outcome.
        let _ = turn.answer.send(if turn.cancelled { Ok("cancelled") } else { ended });
    }

    /// Handles a notification about a thread: this session's own, or that of a sub-agent.
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
            // A new name is worth showing outside a turn too.
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
                let bytes = arguments_memory(item);
                let open_bytes: usize = turn.items.values().map(|open| open.bytes).sum();
                if turn.items.len() >= MAX_ITEMS || open_bytes + bytes > MAX_ITEM_BYTES {
                    return;
                }
                let running_command = changes_files(item).then(|| self.command_periods.start());
                let open = OpenItem { item: item.clone(), bytes, running_command };
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
            // Messages of a sub-agent are for the agent that started it.
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

    /// Returns the item that a question of Codex is about. A question about an MCP tool does not name it.
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

    /// Handles Codex's event about a call of this program's tools.
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
        // The call never arrived: Codex refused it, or could not connect.
        if done && turn.calls.get(id) == Some(&Progress::Announced) {
            turn.calls.insert(id.to_owned(), Progress::Over);
            let reason = item["error"]["message"].as_str().unwrap_or("Codex did not make the call");
            self.update(&self.events.abandoned(id, reason));
        }
    }
}

/// True if an item is an action, not a message or thought.
fn is_deed(item: &Value) -> bool {
    !matches!(
        item["type"].as_str(),
        None | Some("userMessage" | "agentMessage" | "reasoning" | "plan" | "hookPrompt")
    )
}

/// True if an item may change files on disk.
fn changes_files(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("commandExecution" | "fileChange"))
}
