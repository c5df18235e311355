//! What becomes of a prompt: a turn of Codex's, or a command that is ours to obey; and how it is taken back.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{PromptRequest, PromptResponse, SessionId};
use serde_json::{Value, json};

use crate::bridge::{Answer, Bridge, typed};
use crate::commands::{self, Command};
use crate::lock;
use crate::open_session::OpenSession;
use crate::session::{Begins, Which};
use crate::translate::{self, Failed};

/// How long Codex may take to stop a turn that was taken back.
const STOPPING: Duration = Duration::from_secs(10);
/// A turn that has just begun Codex cannot stop yet: it is told so often, with such a pause after each time.
const STOP_TRIES: usize = 10;
const STOP_PAUSE: Duration = Duration::from_millis(100);

/// A prompt whose turn has begun for us.
pub struct Prompt {
    open: Arc<OpenSession>,
    begins: Begins,
    work: Work,
}

/// What is to be done for a prompt.
enum Work {
    Command(Command),
    /// There is something to be said only.
    Say(String),
    /// Codex is given this.
    Input(Vec<Value>),
}

/// What came of a prompt, at first.
enum Begun {
    /// A turn, of this id.
    Turn(String),
    /// A turn that will tell of itself.
    Soon,
    /// It is done already.
    Done,
}

impl Bridge {
    /// Takes a prompt, if the session is free for it.
    pub fn begin_prompt(&self, request: &PromptRequest) -> Answer<Prompt> {
        let open = self.open(&request.session_id.to_string())?;
        let blocks = serde_json::to_value(&request.prompt).unwrap_or_default();
        let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
        let command = match blocks {
            [block] => block["text"].as_str().and_then(Command::of),
            _ => None,
        };
        let work = match command {
            Some(Err(missing)) => Work::Say(missing),
            Some(Ok(command)) => Work::Command(command),
            None => {
                let invalid = |reason| Error::new(-32602, reason);
                Work::Input(translate::prompt(blocks).map_err(invalid)?)
            }
        };
        let begins = open.session.begin_turn().ok_or_else(|| {
            Error::new(
                -32600,
                "the session is at work on another prompt: wait for its end, or cancel it",
            )
        })?;
        Ok(Prompt { open, begins, work })
    }

    /// Has Codex do what a prompt says; the answer, when it is over.
    pub async fn prompt(self: Arc<Self>, prompt: Prompt) -> Answer<PromptResponse> {
        let Prompt { open, begins: Begins { number, ended }, work } = prompt;
        let session = Arc::clone(&open.session);
        // Codex may take its time even to begin, which keeps nobody from giving up.
        tokio::spawn(async move { self.work(&open, number, work).await });
        let ended = ended.await.map_err(|_| Error::internal_error())?;
        let reason = ended.map_err(|Failed { code, message, data }| {
            Error::new(code, message).data(Some(data).filter(|data| !data.is_null()))
        })?;
        let usage = lock(&session.state).usage.as_ref().and_then(translate::usage);
        typed(json!({ "stopReason": reason, "usage": usage }))
    }

    /// Begins what is to be done in a turn. One that Codex begins it ends too, else it is over.
    async fn work(self: &Arc<Self>, open: &Arc<OpenSession>, number: u64, work: Work) {
        let session = &open.session;
        let begun = match work {
            _ if !session.wants(number) => Ok(Begun::Done),
            Work::Command(command) => self.obey(open, command).await,
            Work::Say(text) => {
                session.say(&text);
                Ok(Begun::Done)
            }
            Work::Input(input) => {
                self.start_turn(open, "turn/start", json!({ "input": input })).await
            }
        };
        let ended = match begun {
            Ok(Begun::Turn(turn)) => {
                if session.turn_is(number, &turn) {
                    self.interrupt(open, number, Some(turn));
                }
                return;
            }
            Ok(Begun::Soon) => return,
            Ok(Begun::Done) => Ok("end_turn"),
            Err(Error { code, message, data, .. }) => {
                Err(Failed { code: code.into(), message, data: data.unwrap_or_default() })
            }
        };
        session.end_turn(Which::Number(number), ended);
    }

    /// Gives the thread something to do; the id of its turn. A thread that Codex does not have any more is loaded anew.
    async fn start_turn(
        &self,
        open: &Arc<OpenSession>,
        method: &str,
        mut params: Value,
    ) -> Answer<Begun> {
        self.keep_loaded(open).await?;
        params["threadId"] = open.session.id().into();
        if self.cli.editor_only {
            // A thread that was loaded again has forgotten that it has none.
            params["environments"] = json!([]);
        }
        let answer = self.ask(method, params).await?;
        Ok(Begun::Turn(answer["turn"]["id"].as_str().unwrap_or_default().to_owned()))
    }

    /// Does what a command says.
    async fn obey(&self, open: &Arc<OpenSession>, command: Command) -> Answer<Begun> {
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
                return Ok(Begun::Soon);
            }
            Command::Status => {
                let account = self.ask("account/read", json!({})).await.unwrap_or_default();
                session.say(&commands::status(session, &account["account"]));
            }
            Command::Mcp => {
                let servers =
                    self.ask("mcpServerStatus/list", json!({ "threadId": session.id() })).await?;
                session.say(&commands::servers(&servers["data"]));
            }
            Command::Skills => {
                let skills = self.ask("skills/list", json!({ "cwds": [session.cwd] })).await?;
                session.say(&commands::skills(&skills["data"]));
            }
            Command::Rename(name) => {
                self.ask("thread/name/set", json!({ "threadId": session.id(), "name": name }))
                    .await?;
                session.say(&format!("The session is called {name} now."));
            }
            Command::Logout => {
                self.ask("account/logout", Value::Null).await?;
                session.say("Codex has forgotten the account.");
            }
        }
        Ok(Begun::Done)
    }

    pub fn cancel(self: &Arc<Self>, session: &SessionId) {
        let Ok(open) = self.open(&session.to_string()) else { return };
        if let Some((number, turn)) = open.session.cancel() {
            self.interrupt(&open, number, turn);
        }
    }

    /// Has Codex stop, once it has begun; a turn that it does not end by itself is ended all the same.
    pub fn interrupt(self: &Arc<Self>, open: &Arc<OpenSession>, number: u64, turn: Option<String>) {
        let (bridge, open) = (Arc::clone(self), Arc::clone(open));
        tokio::spawn(async move {
            let stopped = async {
                if let Some(turn) = turn {
                    bridge.stop(open.session.id(), &turn).await;
                }
            };
            tokio::join!(stopped, tokio::time::sleep(STOPPING));
            open.session.end_turn(Which::Number(number), Ok("cancelled"));
        });
    }

    /// Tells Codex to stop a turn.
    pub async fn stop(&self, thread: &str, turn: &str) {
        let params = json!({ "threadId": thread, "turnId": turn });
        let told = async {
            for _ in 0..STOP_TRIES {
                if self.ask("turn/interrupt", params.clone()).await.is_ok() {
                    return;
                }
                tokio::time::sleep(STOP_PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(STOPPING, told).await;
    }
}
