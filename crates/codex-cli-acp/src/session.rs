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
use tools::arguments_memory;

use crate::cli::EventFormat;
use crate::connection::EditorConnection;
use crate::editor::{CommandPeriods, RunningCommand};
use crate::lock;
use crate::modes::Mode;
use crate::session_options::SessionOptions;
use crate::translate::{self, DisplayCapabilities, SentUpdates, TurnError};

/// Time that the end of a turn waits for running calls, so that their true outcome is reported.
const RUNNING_CALLS_TIMEOUT: Duration = Duration::from_secs(3);

/// Limits of the open items that are remembered: their number, and their bytes in memory.
const OPEN_ITEMS_MAX: usize = 1000;
const OPEN_ITEM_BYTES_MAX: usize = 32 << 20;
/// Limit of the calls of this program's tools that Codex may announce in a turn.
const CALLS_MAX: usize = 100_000;
/// Limit of the remembered warnings.
const WARNINGS_MAX: usize = 1000;

/// Outcome of a turn: the stop reason, or an error.
pub type TurnOutcome = Result<&'static str, TurnError>;

/// Selects a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnSelector<'a> {
    Any,
    Number(u64),
    /// By Codex's id.
    Id(&'a str),
}

/// A turn that a prompt has begun.
#[derive(Debug)]
pub struct StartedTurn {
    pub number: u64,
    pub ended: oneshot::Receiver<TurnOutcome>,
}

pub struct Session {
    /// Codex's id of the thread, known once it has begun.
    pub id: Arc<OnceLock<String>>,
    pub cwd: PathBuf,
    /// The folders of the session, the first of which is `cwd`.
    pub folders: Vec<String>,
    pub connection: Arc<EditorConnection>,
    pub event_format: EventFormat,
    pub display: DisplayCapabilities,
    /// Name of this program's server in Codex's configuration.
    pub server: OnceLock<String>,
    pub state: Mutex<SessionState>,
    /// Periods in which Codex changes files by itself.
    pub command_periods: Arc<CommandPeriods>,
}

/// Mutable state of a session.
#[derive(Default)]
pub struct SessionState {
    pub options: SessionOptions,
    /// Set when a person allowed all writes of this program's tools for the rest of the session.
    writes_allowed: bool,
    turn: Option<RunningTurn>,
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
struct RunningTurn {
    number: u64,
    /// Codex's id of the turn, known once Codex has answered.
    id: Option<String>,
    answer: oneshot::Sender<TurnOutcome>,
    /// Calls of this program's tools, by the id under which each is shown.
    calls: HashMap<String, CallStatus>,
    /// Ids of the calls that have arrived and not ended, by the number of the call.
    arrived_calls: HashMap<u64, String>,
    /// Other items of Codex that have not ended, including those that change files on disk.
    items: HashMap<String, OpenItem>,
    sent_updates: SentUpdates,
    /// Tool calls that exist only for a question.
    questions: BTreeSet<String>,
    /// Set when a person cancelled the prompt.
    cancelled: bool,
    /// Id of the turn that Codex was told to stop because it began after the cancellation.
    stopped: Option<String>,
    /// Outcome of the turn, as Codex reported it.
    ended: Option<TurnOutcome>,
}

/// An item of Codex that has not ended.
struct OpenItem {
    item: Value,
    bytes: usize,
    #[expect(dead_code, reason = "held, not read: files may change as long as it is there")]
    running_command: Option<RunningCommand>,
}

/// Status of a call of this program's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStatus {
    /// Codex announced it; the call itself has not arrived.
    Announced,
    /// The tool is running.
    Running,
    Ended,
}

impl SessionState {
    pub fn new(mode: Mode) -> Self {
        let mut state = Self::default();
        state.options.mode = mode;
        state
    }
}

impl Session {
    pub fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    pub fn update(&self, update: &Value) {
        self.connection.update(self.id(), update);
    }

    /// Sends the current mode. The lock is held, so that the last update sent is the true one.
    pub fn send_mode(&self) {
        let state = lock(&self.state);
        let mode = state.options.mode.id();
        self.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }));
    }

    /// Sends the current options, under the lock like [`Session::send_mode`].
    pub fn send_options(&self) {
        let state = lock(&self.state);
        let options = state.options.to_json();
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
    pub fn send_message(&self, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    }

    /// Sends the updates of an item of a loaded thread.
    pub fn replay(&self, item: &Value) {
        if !self.is_ours(item) {
            for update in translate::replayed(item, &self.cwd, self.display) {
                self.update(&update);
            }
            return;
        }
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        self.update(&self.event_format.started(text("id"), text("tool"), &item["arguments"]));
        self.update(&self.event_format.replayed(text("id"), item));
    }

    /// Begins a turn. `None` if one is running.
    pub fn begin_turn(&self) -> Option<StartedTurn> {
        let mut state = lock(&self.state);
        if state.turn.is_some() {
            return None;
        }
        let (answer, ended) = oneshot::channel();
        state.turns += 1;
        state.turn = Some(RunningTurn {
            number: state.turns,
            id: None,
            answer,
            calls: HashMap::new(),
            arrived_calls: HashMap::new(),
            items: HashMap::new(),
            sent_updates: SentUpdates::default(),
            questions: BTreeSet::new(),
            cancelled: false,
            stopped: None,
            ended: None,
        });
        Some(StartedTurn { number: state.turns, ended })
    }

    /// True if the turn of this number is running and not cancelled.
    pub fn is_running(&self, number: u64) -> bool {
        let state = lock(&self.state);
        state.turn.as_ref().is_some_and(|turn| turn.number == number && !turn.cancelled)
    }

    /// Records the id with which Codex began the turn of this number. True if Codex must stop it, since the prompt was
    /// cancelled meanwhile or has ended.
    pub fn set_turn_id(&self, number: u64, id: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(turn) = state.turn.as_mut().filter(|turn| turn.number == number) else {
            return true;
        };
        turn.id = Some(id.to_owned());
        turn.cancelled
    }

    /// Records that Codex reported a turn. Returns its number if it was cancelled meanwhile and must be stopped. A
    /// repeated report changes nothing.
    pub fn turn_started(&self, id: &str) -> Option<u64> {
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
    /// [`RUNNING_CALLS_TIMEOUT`].
    pub fn end_turn(self: &Arc<Self>, which: TurnSelector<'_>, ended: TurnOutcome) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        let is_it = match which {
            TurnSelector::Any => true,
            TurnSelector::Number(number) => turn.number == number,
            TurnSelector::Id(id) => turn.id.as_deref().is_none_or(|own| own == id),
        };
        // Otherwise it is an older turn that was given up.
        if !is_it {
            return;
        }
        let number = turn.number;
        let is_first = turn.ended.replace(ended).is_none();
        self.finish_if_calls_ended(&mut state);
        if is_first && state.turn.is_some() {
            let session = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(RUNNING_CALLS_TIMEOUT).await;
                let mut state = lock(&session.state);
                if state.turn.as_ref().is_some_and(|turn| turn.number == number) {
                    session.finish(&mut state);
                }
            });
        }
    }

    fn finish_if_calls_ended(&self, state: &mut SessionState) {
        let runs = |turn: &RunningTurn| {
            turn.calls.values().any(|progress| *progress == CallStatus::Running)
        };
        if state.turn.as_ref().is_some_and(|turn| turn.ended.is_some() && !runs(turn)) {
            self.finish(state);
        }
    }

    /// Closes the open calls and answers the prompt. Nothing is sent about this turn afterwards.
    fn finish(&self, state: &mut SessionState) {
        let Some(mut turn) = state.turn.take() else { return };
        for (id, _) in turn.calls.iter().filter(|(_, progress)| **progress != CallStatus::Ended) {
            self.update(&self.event_format.abandoned(id, "The turn ended before the call did"));
        }
        let questions = turn.questions.iter().map(|id| translate::abandoned(id));
        for update in questions.chain(turn.sent_updates.abandon()) {
            self.update(&update);
        }
        let ended = turn.ended.unwrap_or(Ok("end_turn"));
        // A cancelled prompt is answered as cancelled, whatever its outcome.
        let _ = turn.answer.send(if turn.cancelled { Ok("cancelled") } else { ended });
    }

    /// Handles a notification about a thread: this session's own, or that of a sub-agent.
    pub fn handle_notification(self: &Arc<Self>, method: &str, params: &Value) {
        let is_own = params["threadId"].as_str() == Some(self.id());
        if method == "turn/completed" && is_own {
            let turn = &params["turn"];
            let id = turn["id"].as_str().unwrap_or_default();
            return self.end_turn(TurnSelector::Id(id), translate::turn_outcome(turn));
        }
        let mut state = lock(&self.state);
        if method == "thread/tokenUsage/updated" && is_own {
            state.usage = Some(params.clone());
        }
        if method == "warning" && is_own {
            let mut hash = DefaultHasher::new();
            params["message"].as_str().unwrap_or_default().hash(&mut hash);
            if state.warnings.len() >= WARNINGS_MAX {
                state.warnings.clear();
            }
            if !state.warnings.insert(hash.finish()) {
                return;
            }
        }
        let Some(turn) = &mut state.turn else {
            // A new name is worth showing outside a turn too.
            if matches!(method, "thread/name/updated") && is_own {
                let mut nothing = SentUpdates::default();
                for update in
                    translate::notification(method, params, &self.cwd, self.display, &mut nothing)
                {
                    self.update(&update);
                }
            }
            return;
        };
        let item = &params["item"];
        match method {
            "item/started" | "item/completed" if self.is_ours(item) => {
                self.announce_call(turn, item);
                if method == "item/completed" {
                    self.end_missing_call(turn, item);
                }
                self.finish_if_calls_ended(&mut state);
            }
            "item/started" if is_own || is_action(item) => {
                let id = item["id"].as_str().unwrap_or_default();
                let bytes = arguments_memory(item);
                let open_bytes: usize = turn.items.values().map(|open| open.bytes).sum();
                if turn.items.len() >= OPEN_ITEMS_MAX || open_bytes + bytes > OPEN_ITEM_BYTES_MAX {
                    return;
                }
                let running_command = changes_files(item).then(|| self.command_periods.start());
                let open = OpenItem { item: item.clone(), bytes, running_command };
                turn.items.insert(id.to_owned(), open);
                let sent_updates = &mut turn.sent_updates;
                for update in translate::item_started(item, &self.cwd, self.display, sent_updates) {
                    self.update(&update);
                }
            }
            "item/completed" if is_own || is_action(item) => {
                let id = item["id"].as_str().unwrap_or_default();
                turn.items.remove(id);
                let sent_updates = &mut turn.sent_updates;
                for update in translate::item_completed(item, &self.cwd, self.display, sent_updates)
                {
                    self.update(&update);
                }
            }
            // Messages of a sub-agent are for the agent that started it.
            _ if is_own => {
                let sent_updates = &mut turn.sent_updates;
                for update in
                    translate::notification(method, params, &self.cwd, self.display, sent_updates)
                {
                    self.update(&update);
                }
            }
            _ => {}
        }
    }

    /// Returns the item that a question of Codex is about. A question about an MCP tool does not name it.
    pub fn item_in_question(&self, question: &Value) -> Option<Value> {
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

    /// Reports the start of a call of this program's tools that Codex announced, unless it has arrived before.
    fn announce_call(&self, turn: &mut RunningTurn, item: &Value) {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        let id = text("id");
        if turn.calls.contains_key(id) || turn.calls.len() >= CALLS_MAX {
            return;
        }
        turn.calls.insert(id.to_owned(), CallStatus::Announced);
        self.update(&self.event_format.started(id, text("tool"), &item["arguments"]));
    }

    /// Reports the end of an announced call that never arrived: Codex refused it, or could not connect.
    fn end_missing_call(&self, turn: &mut RunningTurn, item: &Value) {
        let id = item["id"].as_str().unwrap_or_default();
        if turn.calls.get(id) == Some(&CallStatus::Announced) {
            turn.calls.insert(id.to_owned(), CallStatus::Ended);
            let reason = item["error"]["message"].as_str().unwrap_or("Codex did not make the call");
            self.update(&self.event_format.abandoned(id, reason));
        }
    }
}

/// True if an item is an action, not a message or thought.
fn is_action(item: &Value) -> bool {
    !matches!(
        item["type"].as_str(),
        None | Some("userMessage" | "agentMessage" | "reasoning" | "plan" | "hookPrompt")
    )
}

/// True if an item may change files on disk.
fn changes_files(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("commandExecution" | "fileChange"))
}
