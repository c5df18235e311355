//! Between the editor and Codex. What Codex says by itself comes through one loop, in order; what the editor asks is
//! answered by a task of its own. How sessions begin and end is in `sessions`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    InitializeRequest, InitializeResponse, PromptRequest, PromptResponse, SessionId,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::Hosted;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::AbortHandle;

use crate::cli::Cli;
use crate::codex::{Codex, CodexError, Message};
use crate::commands::{self, Command};
use crate::link::Link;
use crate::lock;
use crate::modes::{self, Choice};
use crate::sessions::Open;
use crate::translate::{self, Asked, Failed, Shown};
use crate::workplace::Through;

/// How long Codex may take to stop a turn that was taken back.
const STOPPING: Duration = Duration::from_secs(10);

pub type Answer<T> = Result<T, Error>;

pub struct Bridge {
    pub cli: Cli,
    pub link: Arc<Link>,
    pub hosted: Arc<Hosted>,
    editor: OnceLock<Editor>,
    codex: AsyncMutex<Option<Arc<Codex>>>,
    /// How many have been started.
    started: AtomicU64,
    heard: UnboundedSender<Heard>,
    /// By thread; those of sub-agents lead to the session that has them.
    pub threads: Mutex<HashMap<String, Arc<Open>>>,
    /// Questions of Codex's that a person is at.
    questions: Mutex<HashMap<String, AbortHandle>>,
    /// What is wrong with Codex's own configuration.
    misconfigured: Mutex<Option<String>>,
    /// Those who wait for a login to be over.
    pub logins: Mutex<Vec<oneshot::Sender<Value>>>,
}

/// A message, and which Codex it came from.
pub type Heard = (u64, Message);

/// What an editor can do.
#[derive(Clone, Default)]
pub struct Editor {
    pub through: Through,
    pub shown: Shown,
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
    pub fn new(cli: Cli, hosted: Arc<Hosted>, heard: UnboundedSender<Heard>) -> Arc<Self> {
        Arc::new(Self {
            cli,
            link: Arc::default(),
            hosted,
            editor: OnceLock::new(),
            codex: AsyncMutex::default(),
            started: AtomicU64::new(0),
            heard,
            threads: Mutex::default(),
            questions: Mutex::default(),
            misconfigured: Mutex::default(),
            logins: Mutex::default(),
        })
    }

    pub fn editor(&self) -> Editor {
        self.editor.get().cloned().unwrap_or_default()
    }

    /// The running Codex; it is started when there is none, or none any more.
    pub async fn codex(&self) -> Result<Arc<Codex>, CodexError> {
        let mut running = self.codex.lock().await;
        if let Some(codex) = running.as_ref().filter(|codex| !codex.is_over()) {
            return Ok(Arc::clone(codex));
        }
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let heard = self.heard.clone();
        let tell = move |message| drop(heard.send((number, message)));
        let codex = Codex::start(&self.cli.codex(), number, tell).await?;
        *running = Some(Arc::clone(&codex));
        Ok(codex)
    }

    /// Whether Codex can read its own configuration. If not it is ended, so that the next one can.
    pub async fn check_configuration(&self) -> Answer<()> {
        let Some(wrong) = lock(&self.misconfigured).take() else { return Ok(()) };
        self.close().await;
        let message =
            format!("Codex cannot read its configuration: {wrong}. Correct it and try again");
        Err(Error::new(-32603, message))
    }

    /// The editor is gone: nothing more is written, and Codex has to go too.
    pub async fn close(&self) {
        lock(&self.threads).clear();
        let codex = self.codex.lock().await.take();
        if let Some(codex) = codex {
            codex.close().await;
        }
    }

    /// Asks Codex.
    pub async fn ask(&self, method: &str, params: Value) -> Answer<Value> {
        let codex = self.codex().await.map_err(|error| failed(&error))?;
        codex.request(method, params).await.map_err(|error| failed(&error))
    }

    /// The session of that id.
    pub fn open(&self, id: &str) -> Answer<Arc<Open>> {
        let open = lock(&self.threads).get(id).cloned();
        open.ok_or_else(|| {
            Error::new(-32002, format!("there is no open session {id}: load or resume it first"))
        })
    }

    /// Everything Codex says by itself.
    pub async fn listen(self: Arc<Self>, mut heard: UnboundedReceiver<Heard>) {
        while let Some((number, message)) = heard.recv().await {
            match message {
                Message::Notification { method, params } => self.hear(&method, &params),
                Message::Request { id, method, params } => {
                    self.be_asked(number, id, &method, &params);
                }
                Message::Ended(why) => self.outlive(number, &why),
            }
        }
    }

    fn hear(self: &Arc<Self>, method: &str, params: &Value) {
        match method {
            "account/login/completed" => {
                for waiting in lock(&self.logins).drain(..) {
                    let _ = waiting.send(params.clone());
                }
            }
            "configWarning" => {
                let text = |name: &str| params[name].as_str().unwrap_or_default();
                // Others are about little things. After this one Codex goes on as if there was no configuration.
                if text("summary").contains("using defaults") {
                    *lock(&self.misconfigured) = Some(text("details").to_owned());
                }
            }
            "turn/started" => {
                let open = params["threadId"].as_str().and_then(|id| self.open(id).ok());
                let (turn, root) = (&params["turn"]["id"], &params["turn"]["rootTurnId"]);
                // A review has turns of its own inside.
                let own = |open: &Arc<Open>| {
                    params["threadId"] == open.session.id() && (root.is_null() || root == turn)
                };
                let turn = turn.as_str().unwrap_or_default();
                if let Some(open) = open.filter(own)
                    && open.session.turn_is(turn)
                {
                    self.interrupt(&open, turn.to_owned());
                }
            }
            "serverRequest/resolved" => {
                let asked = lock(&self.questions).remove(&params["requestId"].to_string());
                if let Some(asked) = asked {
                    asked.abort();
                }
            }
            _ => {
                let id = params["threadId"].as_str().unwrap_or_default();
                let open = lock(&self.threads).get(id).cloned();
                if let Some(open) = open {
                    self.adopt(&open, &params["item"]);
                    open.session.hear(method, params);
                }
            }
        }
    }

    /// The threads of sub-agents are known by the calls that are about them.
    fn adopt(&self, open: &Arc<Open>, item: &Value) {
        let agents = item["receiverThreadIds"].as_array().into_iter().flatten();
        for agent in agents.filter_map(Value::as_str) {
            lock(&self.threads).entry(agent.to_owned()).or_insert_with(|| Arc::clone(open));
        }
    }

    /// Somebody has to decide something for Codex.
    fn be_asked(self: &Arc<Self>, number: u64, id: Value, method: &str, params: &Value) {
        // While another is being started, whoever asked is gone.
        let running = self.codex.try_lock().ok().and_then(|running| running.clone());
        let Some(codex) = running.filter(|codex| codex.number == number) else { return };
        let open = params["threadId"].as_str().or(params["conversationId"].as_str());
        let open = open.and_then(|id| lock(&self.threads).get(id).cloned());
        let asked = open.as_ref().and_then(|open| {
            let session = &open.session;
            let item = session.item_of(params);
            translate::asked(method, params, item.as_ref(), &session.cwd, session.shown)
        });
        let (Some(open), Some(asked)) = (open, asked) else {
            return codex.refuse(&id, method);
        };
        let (bridge, key) = (Arc::clone(self), id.to_string());
        let mut questions = lock(&self.questions);
        let task = tokio::spawn(async move {
            let session = &open.session;
            let answer = match asked {
                Asked::Refuse(answer) => answer,
                Asked::Choice(mut question) => {
                    if let Some(update) = question.open(&id.to_string()) {
                        session.update_question(&update);
                    }
                    let (call, options) = (&question.tool_call, question.options());
                    let answer = session.link.choose(session.id(), call, &options).await;
                    let chosen = question.chosen(&answer);
                    let allowed = chosen.is_some_and(|choice| choice.kind.starts_with("allow"));
                    let id = call["toolCallId"].as_str().unwrap_or_default();
                    let goes_on = (allowed && !question.alone).then(|| translate::resumed(id));
                    if let Some(update) = question.closing(chosen).or(goes_on) {
                        session.update_question(&update);
                    }
                    chosen.map_or(&question.otherwise, |choice| &choice.answer).clone()
                }
                Asked::Form(form) => {
                    let filled_in = session.link.elicit(session.id(), form.params.clone()).await;
                    form.answer(&filled_in)
                }
            };
            lock(&bridge.questions).remove(&id.to_string());
            codex.answer(&id, &answer);
        });
        questions.insert(key, task.abort_handle());
    }

    /// Codex is gone: its turns end, and its sessions can go on with the next.
    fn outlive(&self, number: u64, why: &CodexError) {
        let mut opens: Vec<Arc<Open>> = lock(&self.threads).values().cloned().collect();
        opens.retain(|open| open.is_loaded_in(number));
        for open in opens {
            open.session.end_turn(
                None,
                Err(Failed { code: -32603, message: why.to_string(), data: Value::Null }),
            );
        }
    }

    pub fn initialize(self: &Arc<Self>, request: &InitializeRequest) -> Answer<InitializeResponse> {
        let capabilities = &request.client_capabilities;
        let files = &capabilities.fs;
        let through = if files.read_text_file && files.write_text_file {
            Through::Editor
        } else {
            Through::Disk
        };
        let shown = Shown::new(&serde_json::to_value(capabilities).unwrap_or_default());
        let _ = self.editor.set(Editor { through, shown });
        if request.client_info.is_none() {
            self.link.spare();
        }
        // It takes a moment to start, so it does so already. Whoever needs it is told if it cannot.
        tokio::spawn({
            let bridge = Arc::clone(self);
            async move { bridge.codex().await.map(drop) }
        });
        typed(json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": true, "sse": false },
                "sessionCapabilities": {
                    "list": {}, "delete": {}, "resume": {}, "close": {}, "fork": {},
                    "additionalDirectories": {},
                },
                "auth": { "logout": {} },
            },
            "authMethods": crate::login::methods(),
            "agentInfo": {
                "name": env!("CARGO_PKG_NAME"), "title": "Codex", "version": env!("CARGO_PKG_VERSION"),
            },
        }))
    }

    pub async fn prompt(self: Arc<Self>, request: PromptRequest) -> Answer<PromptResponse> {
        let open = self.open(&request.session_id.to_string())?;
        let session = &open.session;
        let blocks = serde_json::to_value(&request.prompt).unwrap_or_default();
        let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
        let command = match blocks {
            [block] => block["text"].as_str().and_then(Command::of),
            _ => None,
        };
        let input = translate::prompt(blocks).map_err(|reason| Error::new(-32602, reason))?;
        let ended = session.begin_turn().ok_or_else(|| {
            Error::new(
                -32600,
                "the session is at work on another prompt: wait for its end, or cancel it",
            )
        })?;
        let begun = match command {
            Some(Err(missing)) => {
                session.say(&missing);
                Ok(Begun::Done)
            }
            Some(Ok(command)) => self.obey(&open, command).await,
            None => self.start_turn(&open, "turn/start", json!({ "input": input })).await,
        };
        match begun {
            Ok(Begun::Turn(turn)) if session.turn_is(&turn) => self.interrupt(&open, turn),
            Ok(Begun::Turn(_) | Begun::Soon) => {}
            Ok(Begun::Done) => session.end_turn(None, Ok("end_turn")),
            Err(error) => {
                session.end_turn(None, Ok("end_turn"));
                return Err(error);
            }
        }
        let ended = ended.await.map_err(|_| Error::internal_error())?;
        let reason =
            ended.map_err(|failed| Error::new(failed.code, failed.message).data(failed.data))?;
        let usage = lock(&session.state).usage.as_ref().and_then(translate::usage);
        typed(json!({ "stopReason": reason, "usage": usage }))
    }

    /// Gives the thread something to do; the id of its turn. A thread that Codex does not have any more is loaded anew.
    async fn start_turn(&self, open: &Arc<Open>, method: &str, mut params: Value) -> Answer<Begun> {
        self.keep_loaded(open).await?;
        params["threadId"] = open.session.id().into();
        let answer = self.ask(method, params).await?;
        Ok(Begun::Turn(answer["turn"]["id"].as_str().unwrap_or_default().to_owned()))
    }

    /// Does what a command says.
    async fn obey(&self, open: &Arc<Open>, command: Command) -> Answer<Begun> {
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
        if let Some(turn) = open.session.cancel() {
            self.interrupt(&open, turn);
        }
    }

    /// Has Codex stop; a turn that it does not end by itself is ended all the same.
    fn interrupt(self: &Arc<Self>, open: &Arc<Open>, turn: String) {
        let (bridge, open) = (Arc::clone(self), Arc::clone(open));
        tokio::spawn(async move {
            let params = json!({ "threadId": open.session.id(), "turnId": turn });
            let _ = tokio::time::timeout(STOPPING, bridge.ask("turn/interrupt", params)).await;
            tokio::time::sleep(STOPPING).await;
            open.session.end_turn(Some(&turn), Ok("cancelled"));
        });
    }

    pub async fn set_mode(
        self: Arc<Self>,
        request: SetSessionModeRequest,
    ) -> Answer<SetSessionModeResponse> {
        let open = self.open(&request.session_id.to_string())?;
        self.choose(&open, modes::MODE, &request.mode_id.to_string()).await?;
        let options = lock(&open.session.state).choices.options();
        open.session
            .update(&json!({ "sessionUpdate": "config_option_update", "configOptions": options }));
        typed(json!({}))
    }

    pub async fn set_config_option(
        self: Arc<Self>,
        request: SetSessionConfigOptionRequest,
    ) -> Answer<SetSessionConfigOptionResponse> {
        let open = self.open(&request.session_id.to_string())?;
        let id = request.config_id.to_string();
        let value = serde_json::to_value(&request).unwrap_or_default()["value"].clone();
        let value = value.as_str().unwrap_or_default();
        if self.choose(&open, &id, value).await? == Choice::Mode {
            open.session
                .update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": value }));
        }
        let options = lock(&open.session.state).choices.options();
        typed(json!({ "configOptions": options }))
    }

    /// Chooses for us and for Codex, or for neither.
    async fn choose(&self, open: &Arc<Open>, id: &str, value: &str) -> Answer<Choice> {
        let (before, choice) = {
            let choices = &mut lock(&open.session.state).choices;
            let before = choices.clone();
            (before, choices.choose(id, value).map_err(|reason| Error::new(-32602, reason))?)
        };
        let settings = open.settings(choice);
        let chosen = async {
            self.keep_loaded(open).await?;
            self.ask("thread/settings/update", settings).await
        };
        if let Err(error) = chosen.await {
            lock(&open.session.state).choices = before;
            return Err(error);
        }
        Ok(choice)
    }
}

/// An answer from its JSON.
pub fn typed<T: DeserializeOwned>(value: Value) -> Answer<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

/// What went wrong with Codex, as the editor shows it.
pub fn failed(error: &CodexError) -> Error {
    Error::new(-32603, error.to_string())
}
