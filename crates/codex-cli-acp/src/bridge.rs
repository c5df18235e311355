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
use crate::modes::{self, Choice};
use crate::session::{Begins, Which};
use crate::sessions::Open;
use crate::translate::{self, Asked, Failed, Shown};
use crate::workplace::Through;
use crate::{leftovers, lock};

/// How long Codex may take to stop a turn that was taken back.
const STOPPING: Duration = Duration::from_secs(10);
/// A turn that has just begun Codex cannot stop yet: it is told so often, with such a pause after each time.
const STOP_TRIES: usize = 10;
const STOP_PAUSE: Duration = Duration::from_millis(100);

pub type Answer<T> = Result<T, Error>;

pub struct Bridge {
    pub cli: Cli,
    pub link: Arc<Link>,
    pub hosted: Arc<Hosted>,
    editor: OnceLock<Editor>,
    /// The latest, or why it could not be started.
    codex: AsyncMutex<Option<Result<Arc<Codex>, CodexError>>>,
    /// How many there have been, those included that could not be started.
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

/// A prompt whose turn has begun for us.
pub struct Prompt {
    open: Arc<Open>,
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
        let before = self.started.load(Ordering::Relaxed);
        let mut latest = self.codex.lock().await;
        let number = self.started.load(Ordering::Relaxed);
        match &*latest {
            Some(Ok(codex)) if !codex.is_over() => return Ok(Arc::clone(codex)),
            // That was while this one waited.
            Some(Err(error)) if number > before => return Err(error.clone()),
            _ => {}
        }
        let heard = self.heard.clone();
        let tell = move |message| drop(heard.send((number, message)));
        let codex = Codex::start(&self.cli.codex(), number, tell).await;
        self.started.store(number + 1, Ordering::Relaxed);
        latest.insert(codex).clone()
    }

    /// Whether Codex can read its own configuration. If not it is ended, so that the next one can.
    pub async fn check_configuration(&self) -> Answer<()> {
        let Some(wrong) = lock(&self.misconfigured).take() else { return Ok(()) };
        // Nobody starts another meanwhile, which would be taken for what this one leaves behind.
        end(&mut *self.codex.lock().await).await;
        let message =
            format!("Codex cannot read its configuration: {wrong}. Correct it and try again");
        Err(Error::new(-32603, message))
    }

    /// The editor is gone, or does not want us any more: nothing more is written, and Codex has to go too.
    pub async fn close(&self) {
        lock(&self.threads).clear();
        match self.codex.try_lock() {
            Ok(mut latest) => end(&mut latest).await,
            // One that is still being started has nothing to clear up.
            Err(_) => leftovers::end().await,
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
                    && let Some(number) = open.session.turn_began(turn)
                {
                    self.interrupt(&open, number, Some(turn.to_owned()));
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
        let running = self.codex.try_lock().ok().and_then(|latest| latest.clone()?.ok());
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
        // The next one numbers its questions anew.
        for (_, question) in lock(&self.questions).drain() {
            question.abort();
        }
        let mut opens: Vec<Arc<Open>> = lock(&self.threads).values().cloned().collect();
        opens.retain(|open| open.is_loaded_in(number));
        for open in opens {
            open.session.end_turn(
                Which::Any,
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
    async fn work(self: &Arc<Self>, open: &Arc<Open>, number: u64, work: Work) {
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
    async fn start_turn(&self, open: &Arc<Open>, method: &str, mut params: Value) -> Answer<Begun> {
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
        if let Some((number, turn)) = open.session.cancel() {
            self.interrupt(&open, number, turn);
        }
    }

    /// Has Codex stop, once it has begun; a turn that it does not end by itself is ended all the same.
    fn interrupt(self: &Arc<Self>, open: &Arc<Open>, number: u64, turn: Option<String>) {
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

/// Has the latest Codex end, if it runs.
async fn end(latest: &mut Option<Result<Arc<Codex>, CodexError>>) {
    if let Some(Ok(codex)) = latest.take() {
        codex.close().await;
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
