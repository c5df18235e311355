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

use crate::bridge::{Answer, Bridge, failed, typed};
use crate::codex::CodexError;
use crate::commands;
use crate::lock;
use crate::modes::{Mode, Model, Setting, modes};
use crate::open_session::OpenSession;
use crate::servers::{Servers, servers};
use crate::session::{Session, State, Which};
use crate::translate;
use crate::workplace::{self, Workplace};

/// Sessions in a page of `session/list`.
const PAGE: usize = 50;
/// Sources of threads that a person can continue.
const SOURCES: [&str; 4] = ["cli", "vscode", "exec", "appServer"];
/// Features by which Codex runs commands. They are switched off, since a thread that is loaded again does not remember
/// that it has no environments.
const RUNNING: [&str; 2] = ["features.shell_tool", "features.unified_exec"];
const SHELL: &str = "The shell and `apply_patch` see only what is saved; use them for what is not text, for searching \
and for running things.";
const NO_SHELL: &str =
    "There is no shell here, and `apply_patch` does not work: nothing can be run.";

/// Parameters of a session that the editor asks for.
struct Wanted {
    roots: Vec<Arc<Root>>,
    servers: Vec<McpServer>,
    /// Mode of the session that was open before, if any.
    mode: Option<Mode>,
}

impl Wanted {
    /// Opens the folders first: if one is missing, neither Codex nor a session that is already open is touched.
    fn of(cwd: &Path, more: &[PathBuf], servers: Vec<McpServer>) -> Answer<Self> {
        let roots = workplace::folders(cwd, more).map_err(invalid)?;
        Ok(Self { roots, servers, mode: None })
    }
}

impl Bridge {
    pub async fn new_session(
        self: Arc<Self>,
        request: NewSessionRequest,
    ) -> Answer<NewSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let wanted = Wanted::of(cwd, more, request.mcp_servers)?;
        let (open, _) = self.begin("thread/start", json!({}), wanted).await?;
        described(&open)
    }

    pub async fn load_session(
        self: Arc<Self>,
        request: LoadSessionRequest,
    ) -> Answer<LoadSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let wanted = Wanted::of(cwd, more, request.mcp_servers)?;
        let (open, thread) = self.come_back(&request.session_id, json!({}), wanted).await?;
        for turn in thread["turns"].as_array().map(Vec::as_slice).unwrap_or_default() {
            for item in turn["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
                self.link.wait_until_read().await;
                open.session.replay(item);
                tokio::task::yield_now().await;
            }
        }
        described(&open)
    }

    pub async fn resume_session(
        self: Arc<Self>,
        request: ResumeSessionRequest,
    ) -> Answer<ResumeSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let wanted = Wanted::of(cwd, more, request.mcp_servers)?;
        let quietly = json!({ "excludeTurns": true });
        let (open, _) = self.come_back(&request.session_id, quietly, wanted).await?;
        described(&open)
    }

    pub async fn fork_session(
        self: Arc<Self>,
        request: ForkSessionRequest,
    ) -> Answer<ForkSessionResponse> {
        let (cwd, more) = (&request.cwd, &request.additional_directories);
        let wanted = Wanted::of(cwd, more, request.mcp_servers)?;
        let which = json!({ "threadId": request.session_id.to_string(), "excludeTurns": true });
        let (open, _) = self.begin("thread/fork", which, wanted).await?;
        described(&open)
    }

    pub async fn list_sessions(
        self: Arc<Self>,
        request: ListSessionsRequest,
    ) -> Answer<ListSessionsResponse> {
        let params = json!({
            "cwd": request.cwd, "cursor": request.cursor, "limit": PAGE, "sourceKinds": SOURCES,
            "sortKey": "updated_at",
        });
        let answer = self.ask("thread/list", params).await?;
        let threads = answer["data"].as_array().into_iter().flatten();
        let sessions: Vec<Value> = threads.map(listed).collect();
        typed(json!({ "sessions": sessions, "nextCursor": answer["nextCursor"] }))
    }

    pub async fn close_session(
        self: Arc<Self>,
        request: CloseSessionRequest,
    ) -> Answer<CloseSessionResponse> {
        let id = request.session_id.to_string();
        self.open(&id)?;
        self.forget(&id).await;
        typed(json!({}))
    }

    pub async fn delete_session(
        self: Arc<Self>,
        request: DeleteSessionRequest,
    ) -> Answer<DeleteSessionResponse> {
        let id = request.session_id.to_string();
        self.forget(&id).await;
        let codex = self.codex().await.map_err(|error| failed(&error))?;
        match codex.request("thread/delete", json!({ "threadId": id })).await {
            Err(CodexError::Refused { message, .. }) => Err(not_found(&id.into(), &message)),
            answer => answer.map_err(|error| failed(&error)).and(typed(json!({}))),
        }
    }

    /// Closes an open session and returns its mode. Its thread stays.
    async fn forget(self: &Arc<Self>, id: &str) -> Option<Mode> {
        let open = {
            let mut threads = lock(&self.threads);
            let open = threads.remove(id)?;
            threads.retain(|_, other| !Arc::ptr_eq(other, &open));
            open
        };
        // A turn that Codex has not begun yet is stopped when it begins.
        if let Some((_, Some(turn))) = open.session.cancel() {
            self.stop(id, &turn).await;
        }
        open.session.end_turn(Which::Any, Ok("cancelled"));
        let _ = self.ask("thread/unsubscribe", json!({ "threadId": id })).await;
        let mode = lock(&open.session.state).choices.mode;
        Some(mode)
    }

    /// Begins a session for an existing thread. If the session is open it is closed first, and its mode is kept.
    async fn come_back(
        self: &Arc<Self>,
        id: &SessionId,
        mut which: Value,
        wanted: Wanted,
    ) -> Answer<(Arc<OpenSession>, Value)> {
        which["threadId"] = id.to_string().into();
        let mode = self.forget(&id.to_string()).await;
        let begun = self.begin("thread/resume", which, Wanted { mode, ..wanted }).await?;
        self.welcome(id);
        Ok(begun)
    }

    /// Begins a new or an existing thread. Returns the session, and the thread as Codex described it.
    async fn begin(
        self: &Arc<Self>,
        method: &str,
        which: Value,
        wanted: Wanted,
    ) -> Answer<(Arc<OpenSession>, Value)> {
        let Wanted { roots, servers: brought, mode } = wanted;
        let codex = self.codex().await.map_err(|error| failed(&error))?;
        let ask = async |method: &str, params: Value| {
            codex.request(method, params).await.map_err(|error| failed(&error))
        };
        let account = ask("account/read", json!({})).await?;
        self.check_configuration().await?;
        if account["requiresOpenaiAuth"] == true && account["account"].is_null() {
            return Err(Error::auth_required());
        }
        let config = ask("config/read", json!({ "cwd": roots[0].path() })).await?["config"].take();
        let mode = mode.unwrap_or_else(|| Mode::configured(&config));
        let session = self.session(&roots, mode);
        let workplace = Workplace::open(&self.hosted, &session, roots, self.editor().through);
        let terms = self.terms(&session, &workplace, &brought, &config)?;
        let answer = match codex.request(method, merged(which.clone(), &terms)).await {
            // Codex does not know the thread.
            Err(CodexError::Refused { message, .. }) if !which["threadId"].is_null() => {
                return Err(not_found(&which["threadId"], &message));
            }
            answer => answer.map_err(|error| failed(&error))?,
        };
        let thread = &answer["thread"];
        let id = thread["id"].as_str().unwrap_or_default().to_owned();
        let _ = session.id.set(id.clone());
        {
            let models = ask("model/list", json!({})).await?;
            let models = models["data"].as_array().into_iter().flatten().filter_map(Model::of);
            let state = &mut *lock(&session.state);
            state.choices.models = models.collect();
            let model = answer["model"].as_str().unwrap_or_default();
            state.choices.begin(model, answer["reasoningEffort"].as_str());
            state.auto_sandbox = Some(answer["sandbox"].clone()).filter(|_| mode == Mode::Auto);
        }
        let open = Arc::new(OpenSession::new(session, workplace, terms, codex.number));
        lock(&self.threads).insert(id, Arc::clone(&open));
        Ok((open, answer["thread"].clone()))
    }

    fn session(&self, roots: &[Arc<Root>], mode: Mode) -> Arc<Session> {
        let folders = roots.iter().map(|root| root.path().to_string_lossy().into_owned()).collect();
        Arc::new(Session {
            id: Arc::default(),
            cwd: roots[0].path().to_owned(),
            folders,
            link: Arc::clone(&self.link),
            events: self.cli.events,
            shown: self.editor().shown,
            server: OnceLock::new(),
            state: Mutex::new(State::new(mode)),
            command_periods: Arc::default(),
        })
    }

    /// Returns the parameters of a thread. `config` is Codex's own configuration.
    fn terms(
        &self,
        session: &Session,
        workplace: &Workplace,
        brought: &[McpServer],
        config: &Value,
    ) -> Answer<Value> {
        let named = config["mcp_servers"].as_object().into_iter().flatten();
        let taken: BTreeSet<String> = named.map(|(name, _)| name.clone()).collect();
        let Servers { ours, config: mut injected } =
            servers(&self.hosted.url(), &workplace.token, brought, taken).map_err(invalid)?;
        injected.insert("tools.update_plan".into(), json!({ "enabled": true }));
        let mode = lock(&session.state).choices.mode;
        let mut terms = json!({
            "cwd": session.cwd,
            "runtimeWorkspaceRoots": session.folders,
            "approvalPolicy": mode.approval_policy(),
            "sandbox": mode.sandbox(),
        });
        let mut shell = SHELL;
        if self.cli.editor_only {
            shell = NO_SHELL;
            terms["environments"] = json!([]);
            injected.extend(RUNNING.map(|feature| (feature.into(), false.into())));
        }
        terms["developerInstructions"] = instructions(&ours, shell, config).into();
        terms["config"] = injected.into();
        let _ = session.server.set(ours);
        Ok(terms)
    }

    /// Has Codex load the thread again, if a new Codex was started since.
    pub async fn keep_loaded(&self, open: &OpenSession) -> Answer<()> {
        let codex = self.codex().await.map_err(|error| failed(&error))?;
        if open.is_loaded_in(codex.number) {
            return Ok(());
        }
        let which = json!({ "threadId": open.session.id(), "excludeTurns": true });
        match codex.request("thread/resume", merged(which, &open.terms)).await {
            // Codex stores nothing of a thread before its first turn.
            Err(CodexError::Refused { message, .. }) => {
                let lost = format!(
                    "the session is lost with the Codex that had it ({message}); begin a new one"
                );
                return Err(Error::new(-32002, lost));
            }
            answer => answer.map_err(|error| failed(&error))?,
        };
        for setting in [Setting::Mode, Setting::Model] {
            self.send_setting(open, setting).await?;
        }
        open.set_loaded_in(codex.number);
        Ok(())
    }

    /// Sends the updates that follow the start of a session.
    pub fn welcome(&self, id: &SessionId) {
        self.link.update(&id.to_string(), &commands::available());
    }
}

/// Converts a thread of Codex to an entry of `session/list`.
fn listed(thread: &Value) -> Value {
    let named = |name: &str| thread[name].as_str().filter(|name| !name.is_empty());
    let title = named("name").or(named("preview")).map(translate::one_line);
    let seconds = thread["updatedAt"].as_u64().unwrap_or_default();
    let updated = tools::iso8601::seconds(UNIX_EPOCH + Duration::from_secs(seconds));
    json!({ "sessionId": thread["id"], "cwd": thread["cwd"], "title": title, "updatedAt": updated })
}

/// Returns the answer that describes a session which has begun.
fn described<T: DeserializeOwned>(open: &OpenSession) -> Answer<T> {
    let choices = lock(&open.session.state).choices.clone();
    typed(json!({
        "sessionId": open.session.id(),
        "modes": modes(choices.mode),
        "configOptions": choices.options(),
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
