//! The files below the root as MCP resources: listed in pages, and read by their URIs.
//!
//! They take the way of a tool that reads: the transport takes the call in, it gets its thread and its room, and a large
//! text is left with the transport. Only the shape of the answers is another.

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
use tools::{Entry, Failure, Kind, Reply};

use crate::aside::Aside;
use crate::calls::Calls;
use crate::fault;
use crate::mcp::{self, Carried, Given};

static LIST: &Entry = &tools::RESOURCES[0];
static READ: &Entry = &tools::RESOURCES[1];

/// What every one of them is, as far as is known without reading it.
const MEDIA_TYPE: &str = "text/plain";

/// Takes the call in, if the message asks for files; what it carries is for `list` and `read` to find.
pub fn take(
    calls: &Calls,
    message: &ClientJsonRpcMessage,
    aside: Option<Aside>,
) -> Option<Carried> {
    let JsonRpcMessage::Request(message) = message else { return None };
    let mut arguments = Map::new();
    let entry = match &message.request {
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
    let arrived = calls.arrive(entry, arguments.into(), message.id.to_string(), None);
    Some(Carried::new(arrived, aside))
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

/// There is one, and one page of it.
pub fn templates(
    calls: &Calls,
    request: Option<&PaginatedRequestParams>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    mcp::only_page(request)?;
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
    let (outcome, carried) = answer(calls, context).await?;
    let reply = outcome.map_err(|failure| failed(&failure))?;
    let text = reply.blocks.into_iter().next().ok_or_else(|| failed(&defect()))?;
    let contents =
        ResourceContents::text(mcp::text(text, &carried.parked), uri).with_mime_type(MEDIA_TYPE);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

async fn answer(
    calls: &Arc<Calls>,
    context: &RequestContext<RoleServer>,
) -> Result<(Result<Reply, Failure>, Carried), ErrorData> {
    let defect = || ErrorData::internal_error("Internal error", None);
    let carried = Carried::of(context).ok_or_else(defect)?;
    match carried.answer(calls, context).await? {
        Given::Outcome(outcome) => Ok((outcome, carried)),
        Given::Question(_) => Err(defect()),
    }
}

fn error(entry: &Entry, uri: Option<&str>, failure: &Failure) -> ErrorData {
    let (code, message, data) = fault::resource(entry, uri, failure);
    ErrorData::new(ErrorCode(code), message, Some(data))
}

fn defect() -> Failure {
    Failure::new(Kind::Internal, "Internal error")
}
