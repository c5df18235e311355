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
use crate::codex::{Codex, CodexError, CodexMessage, MessageReceiver, MessageSender};
use crate::connection::EditorConnection;
use crate::open_session::OpenSession;
use crate::session::TurnSelector;
use crate::session_options::{self, Setting};
use crate::session_tools::FileSource;
use crate::translate::{self, DisplayCapabilities, TurnError, UserRequest};
use crate::{auth_methods, lock, process_cleanup};

pub type AcpResult<T> = Result<T, Error>;

/// Limit of the known threads, those of sub-agents included.
const THREADS_MAX: usize = 10_000;
/// Limit of the open questions of Codex. Its messages are not read while there are more.
const QUESTIONS_MAX: usize = 64;

pub struct Bridge {
    pub cli: Cli,
    pub connection: Arc<EditorConnection>,
    pub loopback: Arc<LoopbackServer>,
    editor: OnceLock<EditorCapabilities>,
    /// The latest Codex process, or why it could not be started.
    codex: AsyncMutex<Option<Result<Arc<Codex>, CodexError>>>,
    /// Number of the Codex processes so far, those included that could not be started.
    started: AtomicU64,
    messages: MessageSender,
    /// Sessions by thread id; the threads of sub-agents map to the session that started them.
    pub threads: Mutex<HashMap<String, Arc<OpenSession>>>,
    /// Tasks that wait for a person to answer a question of Codex, by request id.
    questions: Mutex<HashMap<String, AbortHandle>>,
    question_permits: Arc<Semaphore>,
    /// The error in Codex's own configuration, if Codex reported one.
    configuration_error: Mutex<Option<String>>,
    /// Requests that wait for the end of a login. Each gets the end of every login.
    pub logins: Mutex<Vec<mpsc::Sender<Value>>>,
}

/// Capabilities of the editor.
#[derive(Clone, Default)]
pub struct EditorCapabilities {
    pub file_source: FileSource,
    pub display: DisplayCapabilities,
}

impl Bridge {
    pub fn new(cli: Cli, loopback: Arc<LoopbackServer>, messages: MessageSender) -> Arc<Self> {
        Arc::new(Self {
            cli,
            connection: Arc::default(),
            loopback,
            editor: OnceLock::new(),
            codex: AsyncMutex::default(),
            started: AtomicU64::new(0),
            messages,
            threads: Mutex::default(),
            questions: Mutex::default(),
            question_permits: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            configuration_error: Mutex::default(),
            logins: Mutex::default(),
        })
    }

    pub fn editor(&self) -> EditorCapabilities {
        self.editor.get().cloned().unwrap_or_default()
    }

    /// Returns the running Codex, and starts one if none is running.
    pub async fn codex(&self) -> Result<Arc<Codex>, CodexError> {
        let before = self.started.load(Ordering::Relaxed);
        let mut latest = self.codex.lock().await;
        let number = self.started.load(Ordering::Relaxed);
        match &*latest {
            Some(Ok(codex)) if !codex.has_ended() => return Ok(Arc::clone(codex)),
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
    pub async fn check_configuration(&self) -> AcpResult<()> {
        let Some(wrong) = lock(&self.configuration_error).take() else { return Ok(()) };
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
            Err(_) => process_cleanup::kill_all().await,
        }
    }

    /// Sends a request to Codex and returns its answer.
    pub async fn ask(&self, method: &str, params: Value) -> AcpResult<Value> {
        let codex = self.codex().await.map_err(|error| acp_error(&error))?;
        codex.request(method, params).await.map_err(|error| acp_error(&error))
    }

    /// Returns the open session of that id.
    pub fn open_session(&self, id: &str) -> AcpResult<Arc<OpenSession>> {
        let open = lock(&self.threads).get(id).cloned();
        open.ok_or_else(|| {
            Error::new(-32002, format!("there is no open session {id}: load or resume it first"))
        })
    }

    /// Handles every message that Codex sends by itself. While the editor has much to read, no message is taken, so
    /// that Codex waits too. Nothing that this waits for may need a message of Codex.
    pub async fn listen(self: Arc<Self>, mut messages: MessageReceiver) {
        while let Some(queued) = messages.recv().await {
            self.connection.wait_until_read().await;
            match &queued.message {
                CodexMessage::Notification { method, params } => {
                    self.handle_notification(method, params);
                }
                CodexMessage::Request { id, method, params } => {
                    self.handle_request(queued.number, id.clone(), method, params).await;
                }
                CodexMessage::Ended(why) => self.handle_exit(queued.number, why),
            }
            // The updates of this message are counted as unwritten before the next message is handled.
            tokio::task::yield_now().await;
        }
    }

    fn handle_notification(self: &Arc<Self>, method: &str, params: &Value) {
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
                    *lock(&self.configuration_error) = Some(text("details").to_owned());
                }
            }
            "turn/started" => {
                let open = params["threadId"].as_str().and_then(|id| self.open_session(id).ok());
                let (turn, root) = (&params["turn"]["id"], &params["turn"]["rootTurnId"]);
                // A review has turns of its own inside, which are not the turn of the prompt.
                let own = |open: &Arc<OpenSession>| {
                    params["threadId"] == open.session.id() && (root.is_null() || root == turn)
                };
                let turn = turn.as_str().unwrap_or_default();
                if let Some(open) = open.filter(own)
                    && let Some(number) = open.session.turn_started(turn)
                {
                    self.interrupt(&open, number, Some(turn.to_owned()));
                }
            }
            "serverRequest/resolved" => {
                let request = lock(&self.questions).remove(&params["requestId"].to_string());
                if let Some(request) = request {
                    request.abort();
                }
            }
            _ => {
                let id = params["threadId"].as_str().unwrap_or_default();
                let open = lock(&self.threads).get(id).cloned();
                if let Some(open) = open {
                    self.register_sub_agents(&open, &params["item"]);
                    open.session.handle_notification(method, params);
                }
            }
        }
    }

    /// Registers the threads of sub-agents, which are named by the tool calls about them.
    fn register_sub_agents(&self, open: &Arc<OpenSession>, item: &Value) {
        let agents = item["receiverThreadIds"].as_array().into_iter().flatten();
        for agent in agents.filter_map(Value::as_str) {
            let mut threads = lock(&self.threads);
            if threads.len() < THREADS_MAX {
                threads.entry(agent.to_owned()).or_insert_with(|| Arc::clone(open));
            }
        }
    }

    /// Handles a request of Codex that a person must decide.
    async fn handle_request(
        self: &Arc<Self>,
        number: u64,
        id: Value,
        method: &str,
        params: &Value,
    ) {
        // While another Codex is starting, the one that asked is gone.
        let running = self.codex.try_lock().ok().and_then(|latest| latest.clone()?.ok());
        let Some(codex) = running.filter(|codex| codex.number == number) else { return };
        let permit = tokio::select! {
            permit = Arc::clone(&self.question_permits).acquire_owned() => permit,
            () = codex.ended() => return,
        };
        let open = params["threadId"].as_str().or(params["conversationId"].as_str());
        let open = open.and_then(|id| lock(&self.threads).get(id).cloned());
        let request = open.as_ref().and_then(|open| {
            let session = &open.session;
            let item = session.item_in_question(params);
            translate::user_request(method, params, item.as_ref(), &session.cwd, session.display)
        });
        let (Some(open), Some(request)) = (open, request) else {
            let method = method.to_owned();
            tokio::spawn(async move {
                codex.refuse(&id, &method).await;
                drop(permit);
            });
            return;
        };
        let (bridge, key) = (Arc::clone(self), id.to_string());
        let mut questions = lock(&self.questions);
        let task = tokio::spawn(async move {
            let session = &open.session;
            let answer = match request {
                UserRequest::Unsupported(answer) => answer,
                UserRequest::Choice(mut question) => {
                    if let Some(update) = question.open(&id.to_string()) {
                        session.update_question(&update);
                    }
                    let (call, options) = (&question.tool_call, question.options());
                    let answer = session.connection.choose(session.id(), call, &options).await;
                    let chosen = question.chosen(&answer);
                    let allowed = chosen.is_some_and(|choice| choice.kind.starts_with("allow"));
                    let id = call["toolCallId"].as_str().unwrap_or_default();
                    let goes_on =
                        (allowed && !question.is_own_call).then(|| translate::resumed(id));
                    if let Some(update) = question.closing(chosen).or(goes_on) {
                        session.update_question(&update);
                    }
                    chosen.map_or(&question.default_answer, |choice| &choice.answer).clone()
                }
                UserRequest::Form(form) => {
                    let filled_in =
                        session.connection.elicit(session.id(), form.params.clone()).await;
                    form.answer(&filled_in)
                }
            };
            lock(&bridge.questions).remove(&id.to_string());
            codex.answer(&id, &answer).await;
            drop(permit);
        });
        questions.insert(key, task.abort_handle());
    }

    /// Ends the turns of a Codex that is gone. Its sessions can go on with the next Codex.
    fn handle_exit(&self, number: u64, why: &CodexError) {
        // The next Codex numbers its requests from the beginning.
        for (_, question) in lock(&self.questions).drain() {
            question.abort();
        }
        let mut opens: Vec<Arc<OpenSession>> = lock(&self.threads).values().cloned().collect();
        opens.retain(|open| open.is_loaded_in(number));
        for open in opens {
            open.session.end_turn(
                TurnSelector::Any,
                Err(TurnError { code: -32603, message: why.to_string(), data: Value::Null }),
            );
        }
    }

    pub fn initialize(
        self: &Arc<Self>,
        request: &InitializeRequest,
    ) -> AcpResult<InitializeResponse> {
        let capabilities = &request.client_capabilities;
        let files = &capabilities.fs;
        let file_source = if files.read_text_file && files.write_text_file {
            FileSource::Editor
        } else {
            FileSource::Disk
        };
        let display =
            DisplayCapabilities::new(&serde_json::to_value(capabilities).unwrap_or_default());
        let _ = self.editor.set(EditorCapabilities { file_source, display });
        if request.client_info.is_none() {
            self.connection.omit_newer_updates();
        }
        // Codex takes a moment to start, so it is started now. If it cannot be, the request that needs it reports the
        // error.
        tokio::spawn({
            let bridge = Arc::clone(self);
            async move { bridge.codex().await.map(drop) }
        });
        from_json(json!({
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
    ) -> AcpResult<SetSessionModeResponse> {
        let mode = request.mode_id.to_string();
        let (open, _) =
            self.choose_option(&request.session_id, session_options::MODE, &mode).await?;
        open.session.send_options();
        from_json(json!({}))
    }

    pub async fn set_config_option(
        self: Arc<Self>,
        request: SetSessionConfigOptionRequest,
    ) -> AcpResult<SetSessionConfigOptionResponse> {
        let id = request.config_id.to_string();
        let value = serde_json::to_value(&request).unwrap_or_default()["value"].clone();
        let value = value.as_str().unwrap_or_default();
        let (open, setting) = self.choose_option(&request.session_id, &id, value).await?;
        if setting == Setting::Mode {
            open.session.send_mode();
        }
        let options = lock(&open.session.state).options.to_json();
        from_json(json!({ "configOptions": options }))
    }

    /// Sends the editor the mode and options of a session, after an answer that may have made it believe others.
    pub fn send_choices(&self, session: &SessionId) {
        if let Ok(open) = self.open_session(&session.to_string()) {
            open.session.send_mode();
            open.session.send_options();
        }
    }

    /// True if this is the mode of the session.
    pub fn has_mode(&self, session: &SessionId, mode: &str) -> bool {
        let open = self.open_session(&session.to_string());
        open.is_ok_and(|open| lock(&open.session.state).options.mode.id() == mode)
    }

    /// Makes a choice in the session and in Codex, or in neither, and returns the session afterwards. Nothing is sent
    /// if there is a later choice of the same setting.
    async fn choose_option(
        &self,
        session: &SessionId,
        id: &str,
        value: &str,
    ) -> AcpResult<(Arc<OpenSession>, Setting)> {
        let open = self.open_session(&session.to_string())?;
        let choice = lock(&open.session.state).options.choose(id, value);
        let choice = choice.map_err(|reason| Error::new(-32602, reason))?;
        let chosen = async {
            self.keep_loaded(&open).await?;
            let is_open = lock(&open.session.state).options.is_open(choice);
            if is_open { self.send_setting(&open, choice.setting).await } else { Ok(()) }
        };
        if let Err(error) = chosen.await {
            lock(&open.session.state).options.refuse(choice);
            return Err(error);
        }
        // The session may have been loaded again meanwhile.
        Ok((self.open_session(&session.to_string()).unwrap_or(open), choice.setting))
    }

    /// Sends Codex a setting as it is chosen now, and again if Codex ended up with other values.
    pub async fn send_setting(&self, open: &OpenSession, setting: Setting) -> AcpResult<()> {
        let mut again = None;
        loop {
            let (sent, params) = open.settings(setting);
            let answer = self.ask("thread/settings/update", params).await;
            let options = &mut lock(&open.session.state).options;
            if let Err(error) = answer {
                if let Some(choice) = again {
                    options.refuse(choice);
                }
                return Err(error);
            }
            again = options.accept(&sent);
            if again.is_none() {
                break;
            }
        }
        // If the session was loaded again meanwhile, the choices of the new one hold.
        let now = self
            .open_session(open.session.id())
            .ok()
            .filter(|now| !std::ptr::eq(Arc::as_ptr(now), open));
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
pub fn from_json<T: DeserializeOwned>(value: Value) -> AcpResult<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

/// Converts an error of Codex to one that the editor shows.
pub fn acp_error(error: &CodexError) -> Error {
    Error::new(-32603, error.to_string())
}
