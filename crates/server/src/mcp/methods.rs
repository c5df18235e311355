//! The methods that `rmcp` is asked for, and the checks that it does not make itself.

use rmcp::ErrorData;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage, PaginatedRequestParams,
    ProtocolVersion, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::json;

use crate::message::{self, ErrorResponse};
use crate::{error_codes, json_arguments};

/// Methods that are passed to `rmcp`. It would answer others in words of its own, so they are answered here.
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

/// Reads a request of one of these methods as `rmcp` does.
pub fn request(
    id: &RequestId,
    method: &str,
    bytes: &[u8],
) -> Result<ClientJsonRpcMessage, ErrorResponse> {
    if json_arguments::count(bytes) > message::VALUES_MAX {
        let code = error_codes::INVALID_REQUEST;
        let response = ErrorResponse::new(Some(id.clone()), code, "Request too large");
        return Err(response.with_detail("a message may have at most 256 names and values"));
    }
    let message: ClientJsonRpcMessage = serde_json::from_slice(bytes)
        .map_err(|_| message::invalid_params(id, "`params` must be an object"))?;
    let JsonRpcMessage::Request(request) = &message else { return Ok(message) };
    match &request.request {
        request if REMOVED.contains(&method) && is_modern(request.get_meta()) => {
            Err(not_found(id, method, None))
        }
        // A method it knows, with parameters it does not: that is not an unknown method.
        ClientRequest::CustomRequest(_) => {
            Err(message::invalid_params(id, "the parameters do not match the method"))
        }
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_)
            if serde_json::from_slice::<Paged>(bytes).is_err() =>
        {
            Err(message::invalid_params(id, "`params` must be an object, its `cursor` a string"))
        }
        _ => Ok(message),
    }
}

/// The parameters of a list. `rmcp` takes a cursor that is no string for none, and the client would begin again.
#[derive(Deserialize)]
struct Paged {
    #[expect(dead_code, reason = "that it can be read is all")]
    params: Option<PaginatedRequestParams>,
}

/// True for a request of the protocol version without a handshake.
pub fn is_modern(meta: &RequestMetaObject) -> bool {
    meta.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
}

/// The answer to any other method, with the reason if it is one that this server could have.
pub fn not_found(id: &RequestId, method: &str, reason: Option<&str>) -> ErrorResponse {
    let mut data = json!({ "method": shortened(method) });
    if let Some(reason) = reason {
        data["hint"] = reason.into();
    }
    let code = error_codes::METHOD_NOT_FOUND;
    ErrorResponse::new(Some(id.clone()), code, "Method not found").with_data(data)
}

/// Refuses a second page of a list that has one.
pub fn only_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        Some(_) => Err(ErrorData::invalid_params("Invalid cursor", None)),
        None => Ok(()),
    }
}

/// The beginning of a name that a client sent, for error messages.
pub fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}
