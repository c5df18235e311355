//! Prompts: each runs a turn of Codex, or a slash command; and how they are cancelled.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{PromptRequest, PromptResponse, SessionId};
use serde_json::{Value, json};

use crate::bridge::{AcpResult, Bridge, from_json};
use crate::commands::{self, Command};
use crate::lock;
use crate::open_session::OpenSession;
use crate::session::{StartedTurn, TurnSelector};
use crate::translate::{self, TurnError};

/// Time for Codex to stop a cancelled turn.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of tries to stop a turn, and pause after each: Codex cannot stop a turn that has just begun.
const STOP_TRIES_MAX: usize = 10;
const STOP_PAUSE: Duration = Duration::from_millis(100);

/// A prompt whose turn has begun in the session.
pub struct Prompt {
    open: Arc<OpenSession>,
    started: StartedTurn,
    action: PromptAction,
}

/// The work that a prompt asks for.
enum PromptAction {
    Command(Command),
    /// Only a text is to be shown.
    Say(String),
    /// Input for a turn of Codex.
    Input(Vec<Value>),
}

/// First outcome of the work.
enum PromptStart {
    /// Codex began a turn with this id.
    Turn(String),
    /// Codex will begin a turn and report it by an event.
    TurnLater,
    /// The work is done.
    Done,
}

impl Bridge {
    /// Begins the turn of a prompt, unless another prompt is running in the session.
    pub fn begin_prompt(&self, request: &PromptRequest) -> AcpResult<Prompt> {
        let open = self.open_session(&request.session_id.to_string())?;
        let blocks = serde_json::to_value(&request.prompt).unwrap_or_default();
        let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
        let command = match blocks {
            [block] => block["text"].as_str().and_then(Command::of),
            _ => None,
        };
        let action = match command {
            Some(Err(missing)) => PromptAction::Say(missing),
            Some(Ok(command)) => PromptAction::Command(command),
            None => {
                let invalid = |reason| Error::new(-32602, reason);
                PromptAction::Input(translate::prompt(blocks).map_err(invalid)?)
            }
        };
        let started = open.session.begin_turn().ok_or_else(|| {
            Error::new(
                -32600,
                "the session is at work on another prompt: wait for its end, or cancel it",
            )
        })?;
        Ok(Prompt { open, started, action })
    }

    /// Runs a prompt and returns the answer when its turn has ended.
    pub async fn prompt(self: Arc<Self>, prompt: Prompt) -> AcpResult<PromptResponse> {
        let Prompt { open, started: StartedTurn { number, ended }, action } = prompt;
        let session = Arc::clone(&open.session);
        // The work is spawned, so that a person can cancel even while Codex is slow to begin the turn.
        tokio::spawn(async move { self.run(&open, number, action).await });
        let ended = ended.await.map_err(|_| Error::internal_error())?;
        let reason = ended.map_err(|TurnError { code, message, data }| {
            Error::new(code, message).data(Some(data).filter(|data| !data.is_null()))
        })?;
        let usage = lock(&session.state).usage.as_ref().and_then(translate::usage);
        from_json(json!({ "stopReason": reason, "usage": usage }))
    }

    /// Begins the work of a turn. Codex ends a turn that it began; any other ends here.
    async fn run(self: &Arc<Self>, open: &Arc<OpenSession>, number: u64, action: PromptAction) {
        let session = &open.session;
        let start = match action {
            _ if !session.is_running(number) => Ok(PromptStart::Done),
            PromptAction::Command(command) => self.run_command(open, command).await,
            PromptAction::Say(text) => {
                session.send_message(&text);
                Ok(PromptStart::Done)
            }
            PromptAction::Input(input) => {
                self.start_turn(open, "turn/start", json!({ "input": input })).await
            }
        };
        let ended = match start {
            Ok(PromptStart::Turn(turn)) => {
                if session.set_turn_id(number, &turn) {
                    self.interrupt(open, number, Some(turn));
                }
                return;
            }
            Ok(PromptStart::TurnLater) => return,
            Ok(PromptStart::Done) => Ok("end_turn"),
            Err(Error { code, message, data, .. }) => {
                Err(TurnError { code: code.into(), message, data: data.unwrap_or_default() })
            }
        };
        session.end_turn(TurnSelector::Number(number), ended);
    }

    /// Starts a turn of the thread and returns its id. A thread that Codex has no longer loaded is loaded again.
    async fn start_turn(
        &self,
        open: &Arc<OpenSession>,
        method: &str,
        mut params: Value,
    ) -> AcpResult<PromptStart> {
        self.keep_loaded(open).await?;
        params["threadId"] = open.session.id().into();
        if self.cli.editor_only {
            // A thread that was loaded again does not remember that it has no environments.
            params["environments"] = json!([]);
        }
        let answer = self.ask(method, params).await?;
        Ok(PromptStart::Turn(answer["turn"]["id"].as_str().unwrap_or_default().to_owned()))
    }

    /// Runs a slash command.
    async fn run_command(
        &self,
        open: &Arc<OpenSession>,
        command: Command,
    ) -> AcpResult<PromptStart> {
        let session = &open.session;
        match command {
            Command::Prompt(text) => {
                let input = json!([{ "type": "text", "text": text, "text_elements": [] }]);
                return self.start_turn(open, "turn/start", json!({ "input": input })).await;
            }
            Command::Review(target) => {
                return self.start_turn(open, "review/start", json!({ "target": target })).await;
            }
            Command::Compact => {
                self.keep_loaded(open).await?;
                self.ask("thread/compact/start", json!({ "threadId": session.id() })).await?;
                return Ok(PromptStart::TurnLater);
            }
            Command::Status => {
                let account = self.ask("account/read", json!({})).await.unwrap_or_default();
                session.send_message(&commands::status(session, &account["account"]));
            }
            Command::Mcp => {
                let servers =
                    self.ask("mcpServerStatus/list", json!({ "threadId": session.id() })).await?;
                session.send_message(&commands::servers(&servers["data"]));
            }
            Command::Skills => {
                let skills = self.ask("skills/list", json!({ "cwds": [session.cwd] })).await?;
                session.send_message(&commands::skills(&skills["data"]));
            }
            Command::Rename(name) => {
                self.ask("thread/name/set", json!({ "threadId": session.id(), "name": name }))
                    .await?;
                session.send_message(&format!("The session is called {name} now."));
            }
            Command::Logout => {
                self.ask("account/logout", Value::Null).await?;
                session.send_message("Codex has forgotten the account.");
            }
        }
        Ok(PromptStart::Done)
    }

    pub fn cancel(self: &Arc<Self>, session: &SessionId) {
        let Ok(open) = self.open_session(&session.to_string()) else { return };
        if let Some((number, turn)) = open.session.cancel() {
            self.interrupt(&open, number, turn);
        }
    }

    /// Tells Codex to stop the turn, if it has begun, and ends the turn in any case after [`STOP_TIMEOUT`].
    pub fn interrupt(self: &Arc<Self>, open: &Arc<OpenSession>, number: u64, turn: Option<String>) {
        let (bridge, open) = (Arc::clone(self), Arc::clone(open));
        tokio::spawn(async move {
            let stopped = async {
                if let Some(turn) = turn {
                    bridge.stop_turn(open.session.id(), &turn).await;
                }
            };
            tokio::join!(stopped, tokio::time::sleep(STOP_TIMEOUT));
            open.session.end_turn(TurnSelector::Number(number), Ok("cancelled"));
        });
    }

    /// Tells Codex to stop a turn.
    pub async fn stop_turn(&self, thread: &str, turn: &str) {
        let params = json!({ "threadId": thread, "turnId": turn });
        let told = async {
            for _ in 0..STOP_TRIES_MAX {
                if self.ask("turn/interrupt", params.clone()).await.is_ok() {
                    return;
                }
                tokio::time::sleep(STOP_PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(STOP_TIMEOUT, told).await;
    }
}
