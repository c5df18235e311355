//! Connects the editor and Codex. Messages of Codex are handled in one loop, in order; each request of the editor is
//! answered by a task of its own. `sessions` begins and ends sessions, `prompts` runs prompts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    InitializeRequest, InitializeResponse, SessionId, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::LoopbackServer;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::cli::Cli;
use crate::codex::{Codex, CodexError, Message, MessageReceiver, MessageSender};
use crate::link::Link;
use crate::modes::{self, Setting};
use crate::open_session::OpenSession;
use crate::session::Which;
use crate::translate::{self, Asked, Failed, Shown};
use crate::workplace::Through;
use crate::{auth_methods, leftovers, lock};

pub type Answer<T> = Result<T, Error>;

/// Limit of the known threads, those of sub-agents included.
const MAX_THREADS: usize = 10_000;
/// Limit of the open questions of Codex. Its messages are not read while there are more.
const MAX_QUESTIONS: usize = 64;

pub struct Bridge {
    pub cli: Cli,
    pub link: Arc<Link>,
    pub hosted: Arc<LoopbackServer>,
    editor: OnceLock<Editor>,
    /// The latest Codex process, or why it could not be started.
    codex: AsyncMutex<Option<Result<Arc<Codex>, CodexError>>>,
    /// Number of the Codex processes so far, those included that could not be started.
    started: AtomicU64,
    messages: MessageSender,
    /// Sessions by thread id; the threads of sub-agents map to the session that started them.
    pub threads: Mutex<HashMap<String, Arc<OpenSession>>>,
    /// Tasks that wait for a person to answer a question of Codex, by request id.
    questions: Mutex<HashMap<String, AbortHandle>>,
    question_slots: Arc<Semaphore>,
    /// The error in Codex's own configuration, if Codex reported one.
    misconfigured: Mutex<Option<String>>,
    /// Requests that wait for the end of a login. Each gets the end of every login.
    pub logins: Mutex<Vec<mpsc::Sender<Value>>>,
}

/// Capabilities of the editor.
#[derive(Clone, Default)]
pub struct Editor {
    pub through: Through,
    pub shown: Shown,
}

impl Bridge {
    pub fn new(cli: Cli, hosted: Arc<LoopbackServer>, messages: MessageSender) -> Arc<Self> {
        Arc::new(Self {
            cli,
            link: Arc::default(),
            hosted,
            editor: OnceLock::new(),
            codex: AsyncMutex::default(),
            started: AtomicU64::new(0),
            messages,
            threads: Mutex::default(),
            questions: Mutex::default(),
            question_slots: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            misconfigured: Mutex::default(),
            logins: Mutex::default(),
        })
    }

    pub fn editor(&self) -> Editor {
        self.editor.get().cloned().unwrap_or_default()
    }

    /// Returns the running Codex, and starts one if none is running.
    pub async fn codex(&self) -> Result<Arc<Codex>, CodexError> {
        let before = self.started.load(Ordering::Relaxed);
        let mut latest = self.codex.lock().await;
        let number = self.started.load(Ordering::Relaxed);
        match &*latest {
            Some(Ok(codex)) if !codex.is_over() => return Ok(Arc::clone(codex)),
            // Another task tried to start it while this one waited.
            Some(Err(error)) if number > before => return Err(error.clone()),
            _ => {}
        }
        let codex = Codex::start(&self.cli.codex(), number, self.messages.clone()).await;
        self.started.store(number + 1, Ordering::Relaxed);
        latest.insert(codex).clone()
    }

    /// Returns an error if Codex could not read its own configuration. That Codex is ended, so that the next one reads
    /// it again.
    pub async fn check_configuration(&self) -> Answer<()> {
        let Some(wrong) = lock(&self.misconfigured).take() else { return Ok(()) };
        // The lock is held until the end, so that no new Codex is started and then killed as a leftover of this one.
        end(&mut *self.codex.lock().await).await;
        let message =
            format!("Codex cannot read its configuration: {wrong}. Correct it and try again");
        Err(Error::new(-32603, message))
    }

    /// Ends the connection: the editor is gone or closed it. Nothing more is written, and Codex is ended.
    pub async fn close(&self) {
        lock(&self.threads).clear();
        match self.codex.try_lock() {
            Ok(mut latest) => end(&mut latest).await,
            // A Codex that is still starting has only its processes to end.
            Err(_) => leftovers::end().await,
        }
    }

    /// Sends a request to Codex and returns its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Answer<Value> {
        let codex = self.codex().await.map_err(|error| failed(&error))?;
        codex.request(method, params).await.map_err(|error| failed(&error))
    }

    /// Returns the open session of that id.
    pub fn open(&self, id: &str) -> Answer<Arc<OpenSession>> {
        let open = lock(&self.threads).get(id).cloned();
        open.ok_or_else(|| {
            Error::new(-32002, format!("there is no open session {id}: load or resume it first"))
        })
    }

    /// Handles every message that Codex sends by itself. While the editor has much to read, no message is taken, so
    /// that Codex waits too. Nothing that this waits for may need a message of Codex.
    pub async fn listen(self: Arc<Self>, mut heard: MessageReceiver) {
        while let Some(queued) = heard.recv().await {
            self.link.wait_until_read().await;
            match &queued.message {
                Message::Notification { method, params } => self.hear(method, params),
                Message::Request { id, method, params } => {
                    self.be_asked(queued.number, id.clone(), method, params).await;
                }
                Message::Ended(why) => self.outlive(queued.number, why),
            }
            // The updates of this message are counted as unwritten before the next message is handled.
            tokio::task::yield_now().await;
        }
    }

    fn hear(self: &Arc<Self>, method: &str, params: &Value) {
        match method {
            "account/login/completed" => {
                let mut logins = lock(&self.logins);
                logins.retain(|waiting| !waiting.is_closed());
                for waiting in &*logins {
                    let _ = waiting.try_send(params.clone());
                }
            }
            "configWarning" => {
                let text = |name: &str| params[name].as_str().unwrap_or_default();
                // Other warnings are minor. After this one Codex goes on as if it had no configuration.
                if text("summary").contains("using defaults") {
                    *lock(&self.misconfigured) = Some(text("details").to_owned());
                }
            }
            "turn/started" => {
                let open = params["threadId"].as_str().and_then(|id| self.open(id).ok());
                let (turn, root) = (&params["turn"]["id"], &params["turn"]["rootTurnId"]);
                // A review has turns of its own inside, which are not the turn of the prompt.
                let own = |open: &Arc<OpenSession>| {
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

    /// Registers the threads of sub-agents, which are named by the tool calls about them.
    fn adopt(&self, open: &Arc<OpenSession>, item: &Value) {
        let agents = item["receiverThreadIds"].as_array().into_iter().flatten();
        for agent in agents.filter_map(Value::as_str) {
            let mut threads = lock(&self.threads);
            if threads.len() < MAX_THREADS {
                threads.entry(agent.to_owned()).or_insert_with(|| Arc::clone(open));
            }
        }
    }

    /// Handles a request of Codex that a person must decide.
    async fn be_asked(self: &Arc<Self>, number: u64, id: Value, method: &str, params: &Value) {
        // While another Codex is starting, the one that asked is gone.
        let running = self.codex.try_lock().ok().and_then(|latest| latest.clone()?.ok());
        let Some(codex) = running.filter(|codex| codex.number == number) else { return };
        let slot = tokio::select! {
            slot = Arc::clone(&self.question_slots).acquire_owned() => slot,
            () = codex.ended() => return,
        };
        let open = params["threadId"].as_str().or(params["conversationId"].as_str());
        let open = open.and_then(|id| lock(&self.threads).get(id).cloned());
        let asked = open.as_ref().and_then(|open| {
            let session = &open.session;
            let item = session.item_of(params);
            translate::asked(method, params, item.as_ref(), &session.cwd, session.shown)
        });
        let (Some(open), Some(asked)) = (open, asked) else {
            let method = method.to_owned();
            tokio::spawn(async move {
                codex.refuse(&id, &method).await;
                drop(slot);
            });
            return;
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
            codex.answer(&id, &answer).await;
            drop(slot);
        });
        questions.insert(key, task.abort_handle());
    }

    /// Ends the turns of a Codex that is gone. Its sessions can go on with the next Codex.
    fn outlive(&self, number: u64, why: &CodexError) {
        // The next Codex numbers its requests from the beginning.
        for (_, question) in lock(&self.questions).drain() {
            question.abort();
        }
        let mut opens: Vec<Arc<OpenSession>> = lock(&self.threads).values().cloned().collect();
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
        // Codex takes a moment to start, so it is started now. If it cannot be, the request that needs it reports the
        // error.
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
            "authMethods": auth_methods::list(),
            "agentInfo": {
                "name": env!("CARGO_PKG_NAME"), "title": "Codex", "version": env!("CARGO_PKG_VERSION"),
            },
        }))
    }

    pub async fn set_mode(
        self: Arc<Self>,
        request: SetSessionModeRequest,
    ) -> Answer<SetSessionModeResponse> {
        let mode = request.mode_id.to_string();
        let (open, _) = self.choose(&request.session_id, modes::MODE, &mode).await?;
        open.session.tell_options();
        typed(json!({}))
    }

    pub async fn set_config_option(
        self: Arc<Self>,
        request: SetSessionConfigOptionRequest,
    ) -> Answer<SetSessionConfigOptionResponse> {
        let id = request.config_id.to_string();
        let value = serde_json::to_value(&request).unwrap_or_default()["value"].clone();
        let value = value.as_str().unwrap_or_default();
        let (open, setting) = self.choose(&request.session_id, &id, value).await?;
        if setting == Setting::Mode {
            open.session.tell_mode();
        }
        let options = lock(&open.session.state).choices.options();
        typed(json!({ "configOptions": options }))
    }

    /// Sends the editor the mode and options of a session, after an answer that may have made it believe others.
    pub fn tell_choices(&self, session: &SessionId) {
        if let Ok(open) = self.open(&session.to_string()) {
            open.session.tell_mode();
            open.session.tell_options();
        }
    }

    /// True if this is the mode of the session.
    pub fn has_mode(&self, session: &SessionId, mode: &str) -> bool {
        let open = self.open(&session.to_string());
        open.is_ok_and(|open| lock(&open.session.state).choices.mode.id() == mode)
    }

    /// Makes a choice in the session and in Codex, or in neither, and returns the session afterwards. Nothing is sent
    /// if there is a later choice of the same setting.
    async fn choose(
        &self,
        session: &SessionId,
        id: &str,
        value: &str,
    ) -> Answer<(Arc<OpenSession>, Setting)> {
        let open = self.open(&session.to_string())?;
        let choice = lock(&open.session.state).choices.choose(id, value);
        let choice = choice.map_err(|reason| Error::new(-32602, reason))?;
        let chosen = async {
            self.keep_loaded(&open).await?;
            let is_open = lock(&open.session.state).choices.is_open(choice);
            if is_open { self.send_setting(&open, choice.setting).await } else { Ok(()) }
        };
        if let Err(error) = chosen.await {
            lock(&open.session.state).choices.refuse(choice);
            return Err(error);
        }
        // The session may have been loaded again meanwhile.
        Ok((self.open(&session.to_string()).unwrap_or(open), choice.setting))
    }

    /// Sends Codex a setting as it is chosen now, and again if Codex ended up with other values.
    pub async fn send_setting(&self, open: &OpenSession, setting: Setting) -> Answer<()> {
        let mut again = None;
        loop {
            let (sent, params) = open.settings(setting);
            let answer = self.ask("thread/settings/update", params).await;
            let choices = &mut lock(&open.session.state).choices;
            if let Err(error) = answer {
                if let Some(choice) = again {
                    choices.refuse(choice);
                }
                return Err(error);
            }
            again = choices.accept(&sent);
            if again.is_none() {
                break;
            }
        }
        // If the session was loaded again meanwhile, the choices of the new one hold.
        let now =
            self.open(open.session.id()).ok().filter(|now| !std::ptr::eq(Arc::as_ptr(now), open));
        match now {
            Some(now) => Box::pin(self.send_setting(&now, setting)).await,
            None => Ok(()),
        }
    }
}

/// Ends the latest Codex if it runs.
async fn end(latest: &mut Option<Result<Arc<Codex>, CodexError>>) {
    if let Some(Ok(codex)) = latest.take() {
        codex.close().await;
    }
}

/// Converts JSON to a typed answer.
pub fn typed<T: DeserializeOwned>(value: Value) -> Answer<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

/// Converts an error of Codex to one that the editor shows.
pub fn failed(error: &CodexError) -> Error {
    Error::new(-32603, error.to_string())
}
