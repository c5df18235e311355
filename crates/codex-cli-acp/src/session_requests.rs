//! Requests that begin, load, resume, fork, list, close and delete sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse,
    ForkSessionRequest, ForkSessionResponse, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionId,
};
use files::Root;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bridge::{AcpResult, Bridge, acp_error, from_json};
use crate::codex::CodexError;
use crate::commands;
use crate::lock;
use crate::mcp_servers::{ThreadServers, thread_servers};
use crate::modes::{Mode, modes};
use crate::open_session::OpenSession;
use crate::session::{Session, SessionState, TurnSelector};
use crate::session_options::{Model, Setting};
use crate::session_tools::{self, SessionTools};
use crate::translate;

/// Sessions in a page of `session/list`.
const SESSIONS_PER_PAGE: usize = 50;
/// Sources of threads that a person can continue.
const THREAD_SOURCES: [&str; 4] = ["cli", "vscode", "exec", "appServer"];
/// Features by which Codex runs commands. They are switched off, since a thread that is loaded again does not remember
/// that it has no environments.
const COMMAND_FEATURES: [&str; 2] = ["features.shell_tool", "features.unified_exec"];
const SHELL: &str = "The shell and `apply_patch` see only what is saved; use them for what is not text, for searching \
and for running things.";
const NO_SHELL: &str =
    "There is no shell here, and `apply_patch` does not work: nothing can be run.";

/// Parameters of a session that the editor asks for.
struct SessionParams {
    roots: Vec<Arc<Root>>,
    servers: Vec<McpServer>,
    /// Mode of the session that was open before, if any.
    mode: Option<Mode>,
}

impl SessionParams {
    /// Opens the folders first: if one is missing, neither Codex nor a session that is already open is touched.
    fn of(cwd: &Path, more: &[PathBuf], servers: Vec<McpServer>) -> AcpResult<Self> {
        let roots = session_tools::open_folders(cwd, more).map_err(invalid)?;
        Ok(Self { roots, servers, mode: None })
    }
}

impl Bridge {
    pub async fn new_session(
        self: Arc<Self>,
        request: NewSessionRequest,
    ) -> AcpResult<NewSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let params = SessionParams::of(cwd, more, request.mcp_servers)?;
        let (open, _) = self.begin_thread("thread/start", json!({}), params).await?;
        session_answer(&open)
    }

    pub async fn load_session(
        self: Arc<Self>,
        request: LoadSessionRequest,
    ) -> AcpResult<LoadSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let params = SessionParams::of(cwd, more, request.mcp_servers)?;
        let (open, thread) = self.reopen(&request.session_id, json!({}), params).await?;
        for turn in thread["turns"].as_array().map(Vec::as_slice).unwrap_or_default() {
            for item in turn["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
                self.connection.wait_until_read().await;
                open.session.replay(item);
                tokio::task::yield_now().await;
            }
        }
        session_answer(&open)
    }

    pub async fn resume_session(
        self: Arc<Self>,
        request: ResumeSessionRequest,
    ) -> AcpResult<ResumeSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let params = SessionParams::of(cwd, more, request.mcp_servers)?;
        let quietly = json!({ "excludeTurns": true });
        let (open, _) = self.reopen(&request.session_id, quietly, params).await?;
        session_answer(&open)
    }

    pub async fn fork_session(
        self: Arc<Self>,
        request: ForkSessionRequest,
    ) -> AcpResult<ForkSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let params = SessionParams::of(cwd, more, request.mcp_servers)?;
        let thread_selection =
            json!({ "threadId": request.session_id.to_string(), "excludeTurns": true });
        let (open, _) = self.begin_thread("thread/fork", thread_selection, params).await?;
        session_answer(&open)
    }

    pub async fn list_sessions(
        self: Arc<Self>,
        request: ListSessionsRequest,
    ) -> AcpResult<ListSessionsResponse> {
        let params = json!({
            "cwd": request.cwd, "cursor": request.cursor, "limit": SESSIONS_PER_PAGE, "sourceKinds": THREAD_SOURCES,
            "sortKey": "updated_at",
        });
        let answer = self.ask("thread/list", params).await?;
        let threads = answer["data"].as_array().into_iter().flatten();
        let sessions: Vec<Value> = threads.map(session_entry).collect();
        from_json(json!({ "sessions": sessions, "nextCursor": answer["nextCursor"] }))
    }

    pub async fn close_session(
        self: Arc<Self>,
        request: CloseSessionRequest,
    ) -> AcpResult<CloseSessionResponse> {
        let id = request.session_id.to_string();
        self.open_session(&id)?;
        self.close_open(&id).await;
        from_json(json!({}))
    }

    pub async fn delete_session(
        self: Arc<Self>,
        request: DeleteSessionRequest,
    ) -> AcpResult<DeleteSessionResponse> {
        let id = request.session_id.to_string();
        self.close_open(&id).await;
        let codex = self.codex().await.map_err(|error| acp_error(&error))?;
        match codex.request("thread/delete", json!({ "threadId": id })).await {
            Err(CodexError::Refused { message, .. }) => Err(not_found(&id.into(), &message)),
            answer => answer.map_err(|error| acp_error(&error)).and(from_json(json!({}))),
        }
    }

    /// Closes an open session and returns its mode. Its thread stays.
    async fn close_open(self: &Arc<Self>, id: &str) -> Option<Mode> {
        let open = {
            let mut threads = lock(&self.threads);
            let open = threads.remove(id)?;
            threads.retain(|_, other| !Arc::ptr_eq(other, &open));
            open
        };
        // A turn that Codex has not begun yet is stopped when it begins.
        if let Some((_, Some(turn))) = open.session.cancel() {
            self.stop_turn(id, &turn).await;
        }
        open.session.end_turn(TurnSelector::Any, Ok("cancelled"));
        let _ = self.ask("thread/unsubscribe", json!({ "threadId": id })).await;
        let mode = lock(&open.session.state).options.mode;
        Some(mode)
    }

    /// Begins a session for an existing thread. If the session is open it is closed first, and its mode is kept.
    async fn reopen(
        self: &Arc<Self>,
        id: &SessionId,
        mut thread_selection: Value,
        params: SessionParams,
    ) -> AcpResult<(Arc<OpenSession>, Value)> {
        thread_selection["threadId"] = id.to_string().into();
        let mode = self.close_open(&id.to_string()).await;
        let begun = self
            .begin_thread("thread/resume", thread_selection, SessionParams { mode, ..params })
            .await?;
        self.welcome(id);
        Ok(begun)
    }

    /// Begins a new or an existing thread. Returns the session, and the thread as Codex described it.
    async fn begin_thread(
        self: &Arc<Self>,
        method: &str,
        thread_selection: Value,
        params: SessionParams,
    ) -> AcpResult<(Arc<OpenSession>, Value)> {
        let SessionParams { roots, servers: editor_servers, mode } = params;
        let codex = self.codex().await.map_err(|error| acp_error(&error))?;
        let ask = async |method: &str, params: Value| {
            codex.request(method, params).await.map_err(|error| acp_error(&error))
        };
        let account = ask("account/read", json!({})).await?;
        self.check_configuration().await?;
        if account["requiresOpenaiAuth"] == true && account["account"].is_null() {
            return Err(Error::auth_required());
        }
        let config = ask("config/read", json!({ "cwd": roots[0].path() })).await?["config"].take();
        let mode = mode.unwrap_or_else(|| Mode::configured(&config));
        let session = self.session(&roots, mode);
        let session_tools =
            SessionTools::open(&self.loopback, &session, roots, self.editor().file_source);
        let thread_params =
            self.thread_params(&session, &session_tools, &editor_servers, &config)?;
        let answer = match codex
            .request(method, merged(thread_selection.clone(), &thread_params))
            .await
        {
            // Codex does not know the thread.
            Err(CodexError::Refused { message, .. }) if !thread_selection["threadId"].is_null() => {
                return Err(not_found(&thread_selection["threadId"], &message));
            }
            answer => answer.map_err(|error| acp_error(&error))?,
        };
        let thread = &answer["thread"];
        let id = thread["id"].as_str().unwrap_or_default().to_owned();
        let _ = session.id.set(id.clone());
        {
            let models = ask("model/list", json!({})).await?;
            let models = models["data"].as_array().into_iter().flatten().filter_map(Model::of);
            let state = &mut *lock(&session.state);
            state.options.models = models.collect();
            let model = answer["model"].as_str().unwrap_or_default();
            state.options.begin(model, answer["reasoningEffort"].as_str());
            state.auto_sandbox = Some(answer["sandbox"].clone()).filter(|_| mode == Mode::Auto);
        }
        let open = Arc::new(OpenSession::new(session, session_tools, thread_params, codex.number));
        lock(&self.threads).insert(id, Arc::clone(&open));
        Ok((open, answer["thread"].clone()))
    }

    fn session(&self, roots: &[Arc<Root>], mode: Mode) -> Arc<Session> {
        let folders = roots.iter().map(|root| root.path().to_string_lossy().into_owned()).collect();
        Arc::new(Session {
            id: Arc::default(),
            cwd: roots[0].path().to_owned(),
            folders,
            connection: Arc::clone(&self.connection),
            event_format: self.cli.events,
            display: self.editor().display,
            server: OnceLock::new(),
            state: Mutex::new(SessionState::new(mode)),
            command_periods: Arc::default(),
        })
    }

    /// Returns the parameters of a thread. `config` is Codex's own configuration.
    fn thread_params(
        &self,
        session: &Session,
        session_tools: &SessionTools,
        editor_servers: &[McpServer],
        config: &Value,
    ) -> AcpResult<Value> {
        let named = config["mcp_servers"].as_object().into_iter().flatten();
        let taken: BTreeSet<String> = named.map(|(name, _)| name.clone()).collect();
        let ThreadServers { ours, config: mut injected } =
            thread_servers(&self.loopback.url(), &session_tools.token, editor_servers, taken)
                .map_err(invalid)?;
        injected.insert("tools.update_plan".into(), json!({ "enabled": true }));
        let mode = lock(&session.state).options.mode;
        let mut thread_params = json!({
            "cwd": session.cwd,
            "runtimeWorkspaceRoots": session.folders,
            "approvalPolicy": mode.approval_policy(),
            "sandbox": mode.sandbox(),
        });
        let mut shell = SHELL;
        if self.cli.editor_only {
            shell = NO_SHELL;
            thread_params["environments"] = json!([]);
            injected.extend(COMMAND_FEATURES.map(|feature| (feature.into(), false.into())));
        }
        thread_params["developerInstructions"] = instructions(&ours, shell, config).into();
        thread_params["config"] = injected.into();
        let _ = session.server.set(ours);
        Ok(thread_params)
    }

    /// Has Codex load the thread again, if a new Codex was started since.
    pub async fn keep_loaded(&self, open: &OpenSession) -> AcpResult<()> {
        let codex = self.codex().await.map_err(|error| acp_error(&error))?;
        if open.is_loaded_in(codex.number) {
            return Ok(());
        }
        let thread_selection = json!({ "threadId": open.session.id(), "excludeTurns": true });
        match codex.request("thread/resume", merged(thread_selection, &open.thread_params)).await {
            // Codex stores nothing of a thread before its first turn.
            Err(CodexError::Refused { message, .. }) => {
                let lost = format!(
                    "the session is lost with the Codex that had it ({message}); begin a new one"
                );
                return Err(Error::new(-32002, lost));
            }
            answer => answer.map_err(|error| acp_error(&error))?,
        };
        for setting in [Setting::Mode, Setting::Model] {
            self.send_setting(open, setting).await?;
        }
        open.set_loaded_in(codex.number);
        Ok(())
    }

    /// Sends the updates that follow the start of a session.
    pub fn welcome(&self, id: &SessionId) {
        self.connection.update(&id.to_string(), &commands::available());
    }
}

/// Converts a thread of Codex to an entry of `session/list`.
fn session_entry(thread: &Value) -> Value {
    let named = |name: &str| thread[name].as_str().filter(|name| !name.is_empty());
    let title = named("name").or(named("preview")).map(translate::one_line);
    let seconds = thread["updatedAt"].as_u64().unwrap_or_default();
    let updated = tools::iso8601::seconds(UNIX_EPOCH + Duration::from_secs(seconds));
    json!({ "sessionId": thread["id"], "cwd": thread["cwd"], "title": title, "updatedAt": updated })
}

/// Returns the answer that describes a session which has begun.
fn session_answer<T: DeserializeOwned>(open: &OpenSession) -> AcpResult<T> {
    let options = lock(&open.session.state).options.clone();
    from_json(json!({
        "sessionId": open.session.id(),
        "modes": modes(options.mode),
        "configOptions": options.to_json(),
    }))
}

fn invalid(reason: String) -> Error {
    Error::new(-32602, reason)
}

fn not_found(id: &Value, why: &str) -> Error {
    let id = id.as_str().unwrap_or_default();
    Error::new(
        -32002,
        format!(
            "there is no session {id} that could be used ({why}); session/list has those there are"
        ),
    )
}

fn merged(mut one: Value, other: &Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other.clone());
    }
    one
}

/// Returns the developer instructions: those of the user's own configuration, then those about this program's tools.
fn instructions(server: &str, shell: &str, config: &Value) -> String {
    let ours = format!(
        "You work inside the user's editor. Read and edit text files with the tools of the MCP server `{server}`: they \
         see and change what the editor shows, saved or not. {shell}"
    );
    match config["developer_instructions"].as_str() {
        Some(theirs) => format!("{theirs}\n\n{ours}"),
        None => ours,
    }
}
