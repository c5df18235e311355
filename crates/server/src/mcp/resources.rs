//! The files below the root as MCP resources: listed in pages, and read by their URIs.
//!
//! They go the same way as a tool that reads. Only the shape of the answers differs.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    Annotations, ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage,
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};
use tools::resource::{Page, Row, template};
use tools::{Failure, FailureKind, ToolOutput, ToolSpec};

use crate::call::Calls;
use crate::client_channel::ClientChannel;
use crate::{error_codes, outgoing};

use super::call_handle::{CallHandle, CallOutcome};
use super::methods::only_page;

static LIST: &ToolSpec = &tools::RESOURCES[0];
static READ: &ToolSpec = &tools::RESOURCES[1];

/// The media type of all of them: more is not known without reading them.
const MEDIA_TYPE: &str = "text/plain";

/// Accepts the call, if the message asks for files. `list` and `read` find the handle in the request.
pub fn accept(
    calls: &Calls,
    message: &ClientJsonRpcMessage,
    channel: Option<ClientChannel>,
) -> Option<CallHandle> {
    let JsonRpcMessage::Request(message) = message else { return None };
    let mut arguments = Map::new();
    let tool = match &message.request {
        ClientRequest::ListResourcesRequest(request) => {
            let cursor = request.params.as_ref().and_then(|params| params.cursor.clone());
            arguments.extend(cursor.map(|cursor| ("cursor".into(), cursor.into())));
            LIST
        }
        ClientRequest::ReadResourceRequest(request) => {
            arguments.insert("uri".into(), request.params.uri.clone().into());
            READ
        }
        _ => return None,
    };
    let pending = calls.accept(tool, arguments.into(), message.id.to_string(), None);
    Some(CallHandle::new(pending, channel))
}

pub async fn list(
    calls: &Arc<Calls>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let failed = |failure: &Failure| error(LIST, None, failure);
    let (outcome, _) = answer(calls, context).await?;
    let reply = outcome.map_err(|failure| failed(&failure))?;
    let page = serde_json::from_value(reply.data.map_or(Value::Null, Value::Object));
    let Page { files, next } = page.map_err(|_| failed(&defect()))?;
    Ok(ListResourcesResult {
        next_cursor: next,
        ..ListResourcesResult::with_all_items(files.into_iter().map(describe).collect())
    })
}

fn describe(Row { uri, name, size, modified }: Row) -> Resource {
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(modified);
    Resource::new(uri, name)
        .with_mime_type(MEDIA_TYPE)
        .with_size(size)
        .with_annotations(annotations)
}

/// One template, on one page.
pub fn templates(
    calls: &Calls,
    request: Option<&PaginatedRequestParams>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    only_page(request)?;
    let describe = |template| {
        ResourceTemplate::new(template, "file")
            .with_title("Text file")
            .with_description("A text file, by its path below the folder that is served")
            .with_mime_type(MEDIA_TYPE)
    };
    let templates = template(calls.root()).map(describe).into_iter().collect();
    Ok(ListResourceTemplatesResult::with_all_items(templates))
}

pub async fn read(
    calls: &Arc<Calls>,
    uri: String,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let failed = |failure: &Failure| error(READ, Some(&uri), failure);
    let (outcome, handle) = answer(calls, context).await?;
    let reply = outcome.map_err(|failure| failed(&failure))?;
    let text = reply.blocks.into_iter().next().ok_or_else(|| failed(&defect()))?;
    let contents = ResourceContents::text(outgoing::text(text, &handle.large_texts), uri)
        .with_mime_type(MEDIA_TYPE);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

async fn answer(
    calls: &Arc<Calls>,
    context: &RequestContext<RoleServer>,
) -> Result<(Result<ToolOutput, Failure>, CallHandle), ErrorData> {
    let defect = || ErrorData::internal_error("Internal error", None);
    let handle = CallHandle::of(context).ok_or_else(defect)?;
    match handle.answer(calls, context).await? {
        CallOutcome::Outcome(outcome) => Ok((outcome, handle)),
        CallOutcome::Question(_) => Err(defect()),
    }
}

fn error(tool: &ToolSpec, uri: Option<&str>, failure: &Failure) -> ErrorData {
    let (code, message, data) = error_codes::resource(tool, uri, failure);
    ErrorData::new(ErrorCode(code), message, Some(data))
}

fn defect() -> Failure {
    Failure::new(FailureKind::Internal, "Internal error")
}
