//! MCP: the tools as `rmcp` lists and calls them, in every protocol version it knows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ClientRequest,
    ContentBlock, ErrorCode, GetMeta as _, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, InputRequiredResult, JsonRpcMessage,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, RequestId, RequestMetaObject, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::{Block, Dialect, Effect, Entry, Failure, Kind, Reply};

use crate::arguments;
use crate::aside::Aside;
use crate::calls::{Answered, Arrived, Calls, Recall};
use crate::confirm::{self, Again, Settled, Way};
use crate::flights::Working;
use crate::options::{Options, Structured, ToolErrors};
use crate::room::Share;
use crate::wire::{self, Refusal};
use crate::{drafts, fault, resources};

/// What a transport sends along with a request for files: the call, which already has its place in the queue, how to
/// reach the client meanwhile, and where its large texts are to be left for the writer.
#[derive(Clone)]
pub struct Carried {
    pub entry: &'static Entry,
    /// The file as it was asked for, for the code tools' failures.
    target: Option<String>,
    arrived: Arc<Mutex<Option<Arrived>>>,
    aside: Option<Aside>,
    again: Again,
    pub parked: SharedParked,
    crashed: Arc<AtomicBool>,
    /// Let go of when the call is over.
    #[expect(dead_code, reason = "held, not read")]
    working: Option<Arc<Working>>,
}

/// What becomes of a call.
pub enum Given {
    Outcome(Result<Reply, Failure>),
    /// A person has to be asked first.
    Question(InputRequiredResult),
}

/// What `tools/call` must be given, and what it may be given.
pub struct ToolCall<'a> {
    pub name: String,
    arguments: Option<&'a str>,
    pub meta: Option<Small<RequestMetaObject>>,
    request_state: Option<String>,
    input_responses: Option<Small<HashMap<String, Value>>>,
}

/// What has no more names and values than a message may have besides the arguments.
#[derive(Clone)]
pub struct Small<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Small<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        if arguments::count(json.as_bytes()) > wire::MOST_VALUES {
            return Err(D::Error::custom("too many names and values"));
        }
        serde_json::from_str(json).map(Self).map_err(D::Error::custom)
    }
}

impl<'a> ToolCall<'a> {
    /// What is read of it.
    pub const MEMBERS: [&'static str; 5] =
        ["name", "arguments", "_meta", "requestState", "inputResponses"];

    pub fn parse(id: &RequestId, params: Option<&'a RawValue>) -> Result<Self, Refusal> {
        let call = params.and_then(|params| Self::read(params.get()));
        call.ok_or_else(|| {
            wire::invalid_params(
                id,
                "`params` must hold `name`, a string; `_meta` and `inputResponses` are objects of at most 256 \
                 names and values",
            )
        })
    }
}

impl<'a> ToolCall<'a> {
    /// Each member at most once. What is asked for besides is nobody's business here.
    fn read(params: &'a str) -> Option<Self> {
        let mut found = [None; Self::MEMBERS.len()];
        for (member, value) in arguments::members(params) {
            let member: Cow<str> = serde_json::from_str(member).ok()?;
            let place = Self::MEMBERS.iter().position(|name| *name == member);
            if place.is_some_and(|place| found[place].replace(value).is_some()) {
                return None;
            }
        }
        let [name, arguments, meta, request_state, input_responses] = found;
        Some(Self {
            name: serde_json::from_str(name?).ok()?,
            arguments: arguments.filter(|arguments| *arguments != "null"),
            meta: serde_json::from_str(meta.unwrap_or("null")).ok()?,
            request_state: serde_json::from_str(request_state.unwrap_or("null")).ok()?,
            input_responses: serde_json::from_str(input_responses.unwrap_or("null")).ok()?,
        })
    }
}

impl Carried {
    /// Takes the call in; what it carries is for `Mcp::call_tool` to find.
    pub fn take(
        calls: &Calls,
        id: &RequestId,
        call: &ToolCall,
        aside: Option<Aside>,
    ) -> Result<Self, Refusal> {
        let entry = find_tool(calls, &call.name).map_err(|error| {
            let refusal = Refusal::new(Some(id.clone()), error.code.0, error.message);
            refusal.with_data(error.data.unwrap_or_default())
        })?;
        let arguments = wire::arguments(id, call.arguments)?;
        let target =
            (entry.dialect == Dialect::Code).then(|| fault::target(&arguments).map(String::from));
        let call_id = call.meta.as_ref().and_then(|Small(meta)| meta.get("callId")?.as_str());
        let arrived = calls.arrive(entry, arguments, id.to_string(), call_id);
        let answers = call.input_responses.clone().map(|Small(answers)| answers);
        let again = Again::new(call.request_state.clone(), answers);
        Ok(Self { again, target: target.flatten(), ..Self::new(arrived, aside) })
    }

    pub fn new(arrived: Arrived, aside: Option<Aside>) -> Self {
        Self {
            entry: arrived.entry(),
            target: None,
            arrived: Arc::new(Mutex::new(Some(arrived))),
            aside,
            again: Again::default(),
            parked: SharedParked::default(),
            crashed: Arc::default(),
            working: None,
        }
    }

    /// What the transport sent along with a request.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let over_http = || context.extensions.get::<Parts>()?.extensions.get::<Self>();
        context.extensions.get::<Self>().or_else(over_http).cloned()
    }

    /// Runs the call, unless a person has to be asked first; room for what it found is left with the transport.
    pub async fn answer(
        &self,
        calls: &Arc<Calls>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Given, ErrorData> {
        let Some(arrived) = lock(&self.arrived).take() else {
            return Ok(Given::Outcome(Err(Failure::new(Kind::Internal, "Internal error"))));
        };
        let mut way = self.way(calls, context, &arrived)?;
        let (recall, doing) = (arrived.recall().clone(), arrived.doing().clone());
        let answer = async {
            let arrived = confirm::before_writing(calls, arrived, &mut way);
            let arrived = drafts::settle(calls, arrived).await;
            match confirm::settle(calls, arrived, way).await {
                Settled::Run(arrived) => Ok(Arc::clone(calls).answer(arrived).await),
                Settled::Ask(question) => Err(question),
            }
        };
        let reports = async {
            match (&self.aside, context.meta.get_progress_token()) {
                (Some(aside), Some(token)) => aside.report(token, &doing).await,
                _ => std::future::pending().await,
            }
        };
        tokio::pin!(answer);
        let answered = tokio::select! {
            answered = &mut answer => answered,
            () = reports => answer.await,
            () = context.ct.cancelled() => {
                recall.ring();
                answer.await
            }
        };
        let Answered { outcome, share } = match answered {
            Ok(answered) => answered,
            Err(question) => return Ok(Given::Question(question)),
        };
        if matches!(outcome, Err(Failure { kind: Kind::Internal, .. })) {
            self.crashed.store(true, Ordering::Relaxed);
        }
        lock(&self.parked).share = share;
        Ok(Given::Outcome(outcome))
    }

    /// How a person can be asked about the call.
    fn way(
        &self,
        calls: &Calls,
        context: &RequestContext<RoleServer>,
        arrived: &Arrived,
    ) -> Result<Way, ErrorData> {
        if !calls.options.asks(arrived.entry()) {
            return Ok(Way::None);
        }
        // Since 2026-07-28 every request says for itself what its client can do.
        if is_modern(&context.meta) {
            let capabilities = context.meta.client_capabilities().unwrap_or_default();
            return Ok(match self.again.said(calls, arrived)? {
                Some(said) => Way::Said(said),
                None if confirm::shows_forms(&capabilities) => Way::Answer,
                None => Way::None,
            });
        }
        Ok(match self.aside.as_ref().filter(|aside| aside.can_ask()) {
            Some(aside) => Way::Request(aside.clone()),
            None => Way::None,
        })
    }

    /// Keeps `working` until the call is over.
    pub fn holding(self, working: Working) -> Self {
        Self { working: Some(Arc::new(working)), ..self }
    }

    /// The call is run by the thread that answers it.
    pub fn at_once(self) -> Self {
        let arrived = lock(&self.arrived).take().map(Arrived::at_once);
        *lock(&self.arrived) = arrived;
        self
    }

    /// The call keeps this share until it is over.
    pub fn hold(&self, held: Option<Share>) {
        let mut arrived = lock(&self.arrived);
        *arrived = arrived.take().map(|arrived| arrived.holding(held));
    }

    /// Rung when the caller takes the call back.
    pub fn recall(&self) -> Recall {
        lock(&self.arrived).as_ref().map(|arrived| arrived.recall().clone()).unwrap_or_default()
    }

    /// Whether the call ended by a defect of ours.
    pub fn crashed(&self) -> bool {
        self.crashed.load(Ordering::Relaxed)
    }
}

/// What an answer leaves with the transport: its large texts, in order, for which markers stand in the answer itself.
#[derive(Default)]
pub struct Parked {
    pub blocks: Vec<Block>,
    pub share: Option<Share>,
}

pub type SharedParked = Arc<Mutex<Parked>>;

#[derive(Clone)]
pub struct Mcp {
    calls: Arc<Calls>,
    /// As they are listed; made by the first who asks, for a start needs none of it.
    tools: Arc<OnceLock<Vec<Tool>>>,
}

impl Mcp {
    pub fn new(calls: Arc<Calls>) -> Self {
        Self { calls, tools: Arc::default() }
    }

    fn tools(&self) -> &[Tool] {
        let options = &self.calls.options;
        let all = || options.offered().map(|entry| describe(entry, options)).collect();
        self.tools.get_or_init(all)
    }
}

fn describe(entry: &Entry, options: &Options) -> Tool {
    let mut tool =
        Tool::new(entry.name, entry.description().to_owned(), Arc::new(entry.input_schema()));
    tool.title = Some(entry.title.into());
    if options.structured == Structured::On {
        tool.output_schema = entry.output_schema().map(Arc::new);
    }
    let open_world = options.model.is_some() && entry.effect == Effect::Rewrites;
    tool.annotations = Some(annotations(entry, open_world));
    tool
}

/// `open_world`: it asks somebody elsewhere.
fn annotations(entry: &Entry, open_world: bool) -> ToolAnnotations {
    let (read_only, destructive, idempotent) = match entry.effect {
        Effect::Reads => (true, false, true),
        Effect::Edits => (false, false, false),
        Effect::Rewrites => (false, true, false),
        Effect::Overwrites => (false, true, true),
    };
    ToolAnnotations::new()
        .read_only(read_only)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(open_world)
}

/// The tool of that name, among those a server has: one that is not offered is refused later, with the reason.
fn find_tool(calls: &Calls, name: &str) -> Result<&'static Entry, ErrorData> {
    let unknown = || {
        let known: Vec<_> = calls.options.offered().map(|entry| entry.name).collect();
        let data = json!({ "known_tools": known });
        ErrorData::new(
            ErrorCode::INVALID_PARAMS,
            format!("Unknown tool: {}", short(name)),
            Some(data),
        )
    };
    let is_it = |entry: &&Entry| entry.name == name || entry.alias == Some(name);
    calls.options.tools.iter().copied().find(is_it).ok_or_else(unknown)
}

/// Of a list that has one page a second one is asked for by mistake.
pub fn only_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        Some(_) => Err(ErrorData::invalid_params("Invalid cursor", None)),
        None => Ok(()),
    }
}

fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

/// The methods that `rmcp` is asked for. What it has besides answers in words of its own.
pub const SERVED: [&str; 12] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/call",
    "tools/list",
];

/// Those of them that 2026-07-28 has no more.
const REMOVED: [&str; 3] = ["initialize", "logging/setLevel", "ping"];

/// One of them, read as `rmcp` does.
pub fn request(
    id: &RequestId,
    method: &str,
    bytes: &[u8],
) -> Result<ClientJsonRpcMessage, Refusal> {
    if arguments::count(bytes) > wire::MOST_VALUES {
        let refusal = Refusal::new(Some(id.clone()), fault::INVALID_REQUEST, "Request too large");
        return Err(refusal.with_detail("a message may have 256 names and values"));
    }
    let message: ClientJsonRpcMessage = serde_json::from_slice(bytes)
        .map_err(|_| wire::invalid_params(id, "`params` must be an object"))?;
    let JsonRpcMessage::Request(request) = &message else { return Ok(message) };
    match &request.request {
        request if REMOVED.contains(&method) && is_modern(request.get_meta()) => {
            Err(method_not_found(id, method, None))
        }
        // A method it knows, with parameters it does not: that is not an unknown method.
        ClientRequest::CustomRequest(_) => {
            Err(wire::invalid_params(id, "the parameters do not fit the method"))
        }
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_)
            if serde_json::from_slice::<Paged>(bytes).is_err() =>
        {
            Err(wire::invalid_params(id, "`params` must be an object, its `cursor` a string"))
        }
        _ => Ok(message),
    }
}

/// What a list may be given. `rmcp` takes a cursor that is no string for none, and whoever sent it would begin again.
#[derive(Deserialize)]
struct Paged {
    #[expect(dead_code, reason = "that it can be read is all")]
    params: Option<PaginatedRequestParams>,
}

/// Whether a request is of the version without a handshake.
fn is_modern(meta: &RequestMetaObject) -> bool {
    meta.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
}

/// The answer to any other method, with the reason if it is one that is not served.
pub fn method_not_found(id: &RequestId, method: &str, reason: Option<&str>) -> Refusal {
    let mut data = json!({ "method": short(method) });
    if let Some(reason) = reason {
        data["hint"] = reason.into();
    }
    Refusal::new(Some(id.clone()), fault::METHOD_NOT_FOUND, "Method not found").with_data(data)
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("file-editing-server", env!("CARGO_PKG_VERSION"));
        server.title = Some("file-editor".into());
        server.description = Some("High-performance file editing server for AI agents".into());
        // There are no prompts. Some clients ask all the same, and an empty list troubles them less than an error.
        let capabilities = ServerCapabilities::builder();
        let capabilities = capabilities.enable_prompts().enable_resources().enable_tools();
        ServerConfig::new(capabilities.build())
            .with_server_info(server)
            .with_instructions(self.calls.instructions())
    }

    /// As rmcp does it, but the peer is what was agreed on, not what it asked for: otherwise one that asks for a
    /// version without a handshake would be spoken to in that version.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListToolsResult { tools: self.tools().to_vec(), ..Default::default() })
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListPromptsResult::default())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let message = format!("Unknown prompt: {}", short(&request.name));
        Err(ErrorData::invalid_params(message, None))
    }

    /// What a client wants to be told of the log is nothing: that goes to stderr. It is no reason to fail.
    #[expect(deprecated, reason = "older clients still ask")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.calls, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates(&self.calls, request.as_ref())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.calls, request.uri, &context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(carried) = Carried::of(&context) else {
            find_tool(&self.calls, &request.name)?;
            return Err(ErrorData::internal_error("Internal error", None));
        };
        match carried.answer(&self.calls, &context).await? {
            Given::Outcome(outcome) => self.result(&carried, outcome).map(CallToolResponse::from),
            Given::Question(question) => Ok(question.into()),
        }
    }
}

impl Mcp {
    fn result(
        &self,
        Carried { entry, target, parked, .. }: &Carried,
        outcome: Result<Reply, Failure>,
    ) -> Result<CallToolResult, ErrorData> {
        let structured = self.calls.options.structured == Structured::On;
        match outcome {
            Ok(Reply { blocks, data, written, meta, .. }) => {
                let content = blocks.into_iter().map(|block| text(block, parked));
                let content = content.map(ContentBlock::text).collect();
                let mut result = CallToolResult::success(content);
                if structured {
                    let written = written.map(|json| park(Block::of_json(json), parked).into());
                    result.structured_content = data.map(Value::Object).or(written);
                }
                result.meta = meta.map(MetaObject);
                Ok(result)
            }
            // A defect of ours is no result, whatever was asked for.
            Err(failure)
                if failure.kind == Kind::Internal
                    || self.calls.options.tool_errors == ToolErrors::JsonRpc =>
            {
                let (code, message, data) = fault::json_rpc(entry, &failure);
                Err(ErrorData::new(ErrorCode(code), message, Some(data)))
            }
            Err(failure) => {
                let text = fault::text(entry.dialect, &failure);
                let texts = [Some(text), failure.hint.clone()];
                let content = texts.into_iter().flatten().map(ContentBlock::text).collect();
                let mut result = CallToolResult::error(content);
                result.structured_content = structured
                    .then(|| fault::structured(entry.dialect, target.as_deref(), &failure));
                Ok(result)
            }
        }
    }
}

/// A text; a large one is left with the transport, and marked.
pub fn text(block: Block, parked: &SharedParked) -> String {
    if block.len() < wire::LARGE {
        return block.to_string();
    }
    park(block, parked)
}

/// Leaves a block with the transport; what stands for it.
fn park(block: Block, parked: &SharedParked) -> String {
    let mut parked = lock(parked);
    parked.blocks.push(block);
    wire::marker(parked.blocks.len() - 1)
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
