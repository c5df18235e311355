//! MCP: the tools and resources as `rmcp` lists, calls and reads them, in every protocol version it knows.
//!
//! - `call_handle`: a `tools/call` on its way through `rmcp`
//! - `methods`: the methods that `rmcp` is asked for
//! - `resources`: files as resources

pub mod call_handle;
pub mod methods;
pub mod resources;

use std::sync::{Arc, OnceLock};

use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, MetaObject, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tools::{Block, Effect, Failure, FailureKind, ToolOutput, ToolSpec};

use crate::call::Calls;
use crate::error_codes;
use crate::options::{Options, Structured, ToolErrors};
use crate::outgoing;
use call_handle::{CallHandle, CallOutcome, find_tool};
use methods::{only_page, shortened};

#[derive(Clone)]
pub struct Mcp {
    calls: Arc<Calls>,
    /// The list of tools, made when it is first asked for.
    tools: Arc<OnceLock<Vec<Tool>>>,
}

impl Mcp {
    pub fn new(calls: Arc<Calls>) -> Self {
        Self { calls, tools: Arc::default() }
    }

    fn tools(&self) -> &[Tool] {
        let options = &self.calls.options;
        let all = || options.offered().map(|tool| describe(tool, options)).collect();
        self.tools.get_or_init(all)
    }
}

fn describe(spec: &ToolSpec, options: &Options) -> Tool {
    let mut tool =
        Tool::new(spec.name, spec.description().to_owned(), Arc::new(spec.input_schema()));
    tool.title = Some(spec.title.into());
    if options.structured == Structured::On {
        tool.output_schema = spec.output_schema().map(Arc::new);
    }
    tool.annotations = Some(annotations(spec, options));
    tool
}

fn annotations(tool: &ToolSpec, options: &Options) -> ToolAnnotations {
    let asks_model = options.model.is_some() && tool.effect == Effect::Rewrites;
    let (read_only, destructive, idempotent) = match tool.effect {
        Effect::Reads => (true, false, true),
        Effect::Edits => (false, false, false),
        Effect::Rewrites => (false, true, false),
        Effect::Overwrites => (false, true, true),
    };
    ToolAnnotations::new()
        .read_only(read_only)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(asks_model)
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

    /// Like rmcp's own, but the peer's version is the one that was agreed on: a client that asks for a version without a
    /// handshake must not be spoken to in that version.
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
        let message = format!("Unknown prompt: {}", shortened(&request.name));
        Err(ErrorData::invalid_params(message, None))
    }

    /// Accepted and ignored: the log goes to stderr.
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
        let Some(handle) = CallHandle::of(&context) else {
            find_tool(&self.calls, &request.name)?;
            return Err(ErrorData::internal_error("Internal error", None));
        };
        match handle.answer(&self.calls, &context).await? {
            CallOutcome::Outcome(outcome) => {
                self.result(&handle, outcome).map(CallToolResponse::from)
            }
            CallOutcome::Question(question) => Ok(question.into()),
        }
    }
}

impl Mcp {
    fn result(
        &self,
        CallHandle { tool, target, large_texts, .. }: &CallHandle,
        outcome: Result<ToolOutput, Failure>,
    ) -> Result<CallToolResult, ErrorData> {
        let structured = self.calls.options.structured == Structured::On;
        match outcome {
            Ok(ToolOutput { blocks, data, written, meta, .. }) => {
                let content = blocks.into_iter().map(|block| outgoing::text(block, large_texts));
                let content = content.map(ContentBlock::text).collect();
                let mut result = CallToolResult::success(content);
                if structured {
                    let written = written
                        .map(|json| outgoing::defer(Block::of_json(json), large_texts).into());
                    result.structured_content = data.map(Value::Object).or(written);
                }
                result.meta = meta.map(MetaObject);
                Ok(result)
            }
            // A defect of ours is no result, whatever was asked for.
            Err(failure)
                if failure.kind == FailureKind::Internal
                    || self.calls.options.tool_errors == ToolErrors::JsonRpc =>
            {
                let (code, message, data) = error_codes::json_rpc(tool, &failure);
                Err(ErrorData::new(ErrorCode(code), message, Some(data)))
            }
            Err(failure) => {
                let text = error_codes::text(tool.dialect, &failure);
                let texts = [Some(text), failure.hint.clone()];
                let content = texts.into_iter().flatten().map(ContentBlock::text).collect();
                let mut result = CallToolResult::error(content);
                result.structured_content = structured
                    .then(|| error_codes::structured(tool.dialect, target.as_deref(), &failure));
                Ok(result)
            }
        }
    }
}
