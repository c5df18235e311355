//! MCP: the tools as `rmcp` lists and calls them, in every protocol version it knows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ClientRequest,
    ContentBlock, ErrorCode, Implementation, InitializeRequestParams, InitializeResult,
    JsonRpcMessage, ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion,
    RequestId, RequestMetaObject, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::{Block, Effect, Entry, Failure, Kind, Reply};

use crate::aside::Aside;
use crate::calls::{Answered, Arrived, Calls, Recall, Structured, ToolErrors};
use crate::confirm::{self, Again, Settled, Way};
use crate::fault;
use crate::flights::Working;
use crate::room::Share;
use crate::wire::{self, Refusal};

/// What a transport sends along with a `tools/call`: the call, which already has its place in the
/// queue, how to reach the client meanwhile, and where its large texts are to be left for the writer.
#[derive(Clone)]
pub struct Carried {
    arrived: Arc<Mutex<Option<Arrived>>>,
    aside: Option<Aside>,
    again: Again,
    pub parked: SharedParked,
    crashed: Arc<AtomicBool>,
    /// Let go of when the call is over.
    #[expect(dead_code, reason = "held, not read")]
    working: Option<Arc<Working>>,
}

/// What `tools/call` must be given, and what it may be given.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    pub name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    pub meta: Option<RequestMetaObject>,
    request_state: Option<String>,
    input_responses: Option<HashMap<String, Value>>,
}

impl<'a> ToolCall<'a> {
    pub fn parse(id: &RequestId, params: Option<&'a RawValue>) -> Result<Self, Refusal> {
        let params = params.map_or("null", RawValue::get);
        serde_json::from_str(params).map_err(|_| {
            wire::invalid_params(
                id,
                "`params` must hold `name`, a string; `_meta` and `inputResponses` are objects",
            )
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
        let arrived = calls.arrive(entry, arguments, id.to_string());
        let arrived = Arc::new(Mutex::new(Some(arrived)));
        let again = Again::new(call.request_state.clone(), call.input_responses.clone());
        Ok(Self {
            arrived,
            aside,
            again,
            parked: SharedParked::default(),
            crashed: Arc::default(),
            working: None,
        })
    }

    /// Keeps `working` until the call is over.
    pub fn holding(self, working: Working) -> Self {
        Self { working: Some(Arc::new(working)), ..self }
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

pub struct Mcp {
    calls: Arc<Calls>,
    tools: Vec<Tool>,
}

impl Mcp {
    pub fn new(calls: Arc<Calls>) -> Self {
        let structured = calls.options.structured;
        let tools = calls.options.offered().map(|entry| describe(entry, structured)).collect();
        Self { calls, tools }
    }
}

fn describe(entry: &Entry, structured: Structured) -> Tool {
    let mut tool =
        Tool::new(entry.name, entry.description().to_owned(), Arc::new(entry.input_schema()));
    tool.title = Some(entry.title.into());
    if structured == Structured::On {
        tool.output_schema = entry.output_schema().map(Arc::new);
    }
    tool.annotations = Some(annotations(entry));
    tool
}

fn annotations(entry: &Entry) -> ToolAnnotations {
    let (read_only, destructive, idempotent) = match entry.effect {
        Effect::Reads => (true, false, true),
        Effect::Edits => (false, false, false),
        Effect::Overwrites => (false, true, true),
    };
    ToolAnnotations::new()
        .read_only(read_only)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(false)
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
    calls.options.tools.iter().copied().find(|entry| entry.name == name).ok_or_else(unknown)
}

fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

/// The methods that `rmcp` is asked for. What it has besides answers in words of its own.
pub const SERVED: [&str; 5] = ["initialize", "ping", "server/discover", "tools/call", "tools/list"];

/// One of them, read as `rmcp` does.
pub fn request(id: &RequestId, message: &[u8]) -> Result<ClientJsonRpcMessage, Refusal> {
    let message: ClientJsonRpcMessage = serde_json::from_slice(message)
        .map_err(|_| wire::invalid_params(id, "`params` must be an object"))?;
    if let JsonRpcMessage::Request(request) = &message
        && matches!(request.request, ClientRequest::CustomRequest(_))
    {
        // A method it knows, with parameters it does not: that is not an unknown method.
        return Err(wire::invalid_params(id, "the parameters do not fit the method"));
    }
    Ok(message)
}

/// The answer to any other method.
pub fn method_not_found(id: &RequestId, method: &str) -> Refusal {
    Refusal::new(Some(id.clone()), fault::METHOD_NOT_FOUND, "Method not found")
        .with_data(json!({ "method": short(method) }))
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("file-editing-server", env!("CARGO_PKG_VERSION"));
        server.title = Some("file-editor".into());
        server.description = Some("High-performance file editing server for AI agents".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
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
        // There is one page.
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("Invalid cursor", None));
        }
        Ok(ListToolsResult { tools: self.tools.clone(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let over_http = || context.extensions.get::<Parts>()?.extensions.get::<Carried>();
        let carried = context.extensions.get::<Carried>().or_else(over_http).cloned();
        let brought = carried.as_ref().and_then(|carried| lock(&carried.arrived).take());
        let arrived = if let Some(arrived) = brought {
            arrived
        } else {
            let entry = find_tool(&self.calls, &request.name)?;
            let arguments = request.arguments.map_or(Value::Null, Value::Object);
            self.calls.arrive(entry, arguments, context.id.to_string())
        };
        let (entry, recall) = (arrived.entry(), arrived.recall().clone());
        let aside = carried.as_ref().and_then(|carried| carried.aside.clone());
        let again = carried.as_ref().map(|carried| carried.again.clone()).unwrap_or_default();
        let way = self.way(&context, aside.as_ref(), &again, &arrived)?;
        let doing = arrived.doing().clone();
        let answer = async {
            match confirm::settle(&self.calls, arrived, way).await {
                Settled::Run(arrived) => Ok(Arc::clone(&self.calls).answer(arrived).await),
                Settled::Ask(question) => Err(question),
            }
        };
        let reports = async {
            match (&aside, context.meta.get_progress_token()) {
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
            Err(question) => return Ok(question.into()),
        };
        if let (Err(Failure { kind: Kind::Internal, .. }), Some(carried)) = (&outcome, &carried) {
            carried.crashed.store(true, Ordering::Relaxed);
        }
        let parked = carried.map(|carried| carried.parked);
        if let Some(parked) = &parked {
            lock(parked).share = share;
        }
        self.result(entry, outcome, parked.as_ref()).map(CallToolResponse::from)
    }
}

impl Mcp {
    /// How a person can be asked about this call.
    fn way(
        &self,
        context: &RequestContext<RoleServer>,
        aside: Option<&Aside>,
        again: &Again,
        arrived: &Arrived,
    ) -> Result<Way, ErrorData> {
        if !self.calls.options.asks(arrived.entry()) {
            return Ok(Way::None);
        }
        // Since 2026-07-28 every request says for itself what its client can do.
        if context.meta.protocol_version() >= Some(ProtocolVersion::V_2026_07_28) {
            let capabilities = context.meta.client_capabilities().unwrap_or_default();
            return Ok(match again.said(&self.calls, arrived)? {
                Some(said) => Way::Said(said),
                None if confirm::shows_forms(&capabilities) => Way::Answer,
                None => Way::None,
            });
        }
        Ok(match aside.filter(|aside| aside.can_ask()) {
            Some(aside) => Way::Request(aside.clone()),
            None => Way::None,
        })
    }

    fn result(
        &self,
        entry: &Entry,
        outcome: Result<Reply, Failure>,
        parked: Option<&SharedParked>,
    ) -> Result<CallToolResult, ErrorData> {
        let structured = self.calls.options.structured == Structured::On;
        match outcome {
            Ok(Reply { blocks, data, meta, .. }) => {
                let content = blocks.into_iter().map(|block| content(block, parked)).collect();
                let mut result = CallToolResult::success(content);
                result.structured_content = data.map(Value::Object).filter(|_| structured);
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
                result.structured_content =
                    structured.then(|| json!({ "error": fault::object(&failure) }));
                Ok(result)
            }
        }
    }
}

/// A text block; a large one is left with the transport, if it takes such, and marked.
fn content(block: Block, parked: Option<&SharedParked>) -> ContentBlock {
    match parked {
        Some(parked) if block.len() >= wire::LARGE => {
            let mut parked = lock(parked);
            parked.blocks.push(block);
            ContentBlock::text(wire::marker(parked.blocks.len() - 1))
        }
        _ => ContentBlock::text(block.to_string()),
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
