//! MCP: the tools as `rmcp` lists and calls them, in every protocol version it knows.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tools::{Block, Effect, Entry, Failure, Reply};

use crate::calls::{Arrived, Calls, Structured, ToolErrors};
use crate::{fault, wire};

/// What an agent needs to know first. Some clients show only the first 512 characters.
const INSTRUCTIONS: &str = "Text files of one folder, addressed by name alone. `list_files` shows them, `read_file` reads one, whole or by lines, `edit_file` replaces, inserts, deletes and appends lines or creates a file. Line numbers are 0-based and inclusive; in `edit_file` they all mean the file before the call. A call's edits are applied all or none; after an error nothing was written and the second text says what would work. Pass the last `hash` as `expected_hash` to be refused instead of overwriting someone's change.";

/// What the stdio transport sends along with a `tools/call`: the call, which already has its place in the
/// queue, and where its large texts are to be left for the writer.
#[derive(Clone)]
pub struct Carried {
    pub arrived: Arc<Mutex<Option<Arrived>>>,
    pub parked: Parked,
}

/// The large texts of an answer, in order; in the answer itself markers stand for them.
pub type Parked = Arc<Mutex<Vec<Block>>>;

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
    ToolAnnotations::with_title(entry.title)
        .read_only(read_only)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(false)
}

/// The tool of that name, among those a server has: one that is not offered is refused later, with the reason.
pub fn find_tool(calls: &Calls, name: &str) -> Result<&'static Entry, ErrorData> {
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

fn method_not_found(method: &str) -> ErrorData {
    let data = json!({ "method": short(method) });
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", Some(data))
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("file-editing-server", env!("CARGO_PKG_VERSION"));
        server.title = Some("file-editor".into());
        server.description = Some("High-performance file editing server for AI agents".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: self.tools.clone(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let carried = context.extensions.get::<Carried>().cloned();
        let brought = carried.as_ref().and_then(|carried| lock(&carried.arrived).take());
        let arrived = if let Some(arrived) = brought {
            arrived
        } else {
            let entry = find_tool(&self.calls, &request.name)?;
            let arguments = request.arguments.map_or(Value::Null, Value::Object);
            self.calls.arrive(entry, arguments, context.id.to_string())
        };
        let (entry, recall) = (arrived.entry(), arrived.recall().clone());
        let answer = Arc::clone(&self.calls).answer(arrived);
        tokio::pin!(answer);
        let outcome = tokio::select! {
            outcome = &mut answer => outcome,
            () = context.ct.cancelled() => {
                recall.ring();
                answer.await
            }
        };
        let parked = carried.map(|carried| carried.parked);
        self.result(entry, outcome, parked.as_ref()).map(CallToolResponse::from)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(method_not_found("prompts/list"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(method_not_found("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(method_not_found("resources/templates/list"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(method_not_found("completion/complete"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(method_not_found(&request.method))
    }
}

impl Mcp {
    fn result(
        &self,
        entry: &Entry,
        outcome: Result<Reply, Failure>,
        parked: Option<&Parked>,
    ) -> Result<CallToolResult, ErrorData> {
        let structured = self.calls.options.structured == Structured::On;
        match outcome {
            Ok(Reply { blocks, data, .. }) => {
                let content = blocks.into_iter().map(|block| content(block, parked)).collect();
                let mut result = CallToolResult::success(content);
                result.structured_content = data.map(Value::Object).filter(|_| structured);
                Ok(result)
            }
            Err(failure) if self.calls.options.tool_errors == ToolErrors::JsonRpc => {
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
fn content(block: Block, parked: Option<&Parked>) -> ContentBlock {
    match parked {
        Some(parked) if block.len() >= wire::LARGE => {
            let mut parked = lock(parked);
            parked.push(block);
            ContentBlock::text(wire::marker(parked.len() - 1))
        }
        _ => ContentBlock::text(block.to_string()),
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
