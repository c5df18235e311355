//! JSON-RPC error codes and bodies for failures of tools. Errors of the protocol itself use the constants here or `rmcp`'s.

use serde_json::{Map, Value, json};
use tools::{Dialect, Failure, FailureKind, ToolSpec};

/// JSON-RPC's own.
pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;

/// MCP's own, before 2026-07-28; `rmcp` makes it [`INVALID_PARAMS`] for those who speak that version.
const RESOURCE_NOT_FOUND: i32 = -32002;

/// Characters of a URI that an error repeats.
const URI_SHOWN: usize = 16 * 1024;
/// Characters of a path that an error repeats.
const PATH_SHOWN: usize = 4096;

/// A kind of failure on the wire and in the log.
pub struct Code {
    pub number: i32,
    /// The party that can correct it: `client`, `server` or `system`.
    pub category: &'static str,
    /// For the log: what happened, without contents of files.
    pub about: &'static str,
}

pub fn code(kind: FailureKind) -> Code {
    let (number, category, about) = match kind {
        FailureKind::Invalid => (INVALID_PARAMS, "client", "invalid arguments"),
        FailureKind::Unusable => (INVALID_REQUEST, "client", "invalid arguments"),
        FailureKind::NotFound => (-32001, "system", "file not found"),
        FailureKind::TooLarge => (-32001, "system", "file too large"),
        FailureKind::Denied => (-32002, "system", "permission denied"),
        FailureKind::Declined => (-32002, "client", "not confirmed"),
        FailureKind::NotAFile => (-32003, "client", "not a regular file"),
        FailureKind::NotText => (-32004, "client", "not a text file"),
        FailureKind::DiskFull => (-32005, "system", "no space left"),
        FailureKind::NoMatch => (-32010, "client", "string not found"),
        FailureKind::Ambiguous => (-32011, "client", "string appears several times"),
        FailureKind::Conflict => (-32012, "client", "edits conflict"),
        FailureKind::Stale => (-32013, "client", "file changed since it was read"),
        FailureKind::Generation => (-32603, "system", "nothing was generated"),
        FailureKind::TimedOut => (-32014, "system", "timed out"),
        FailureKind::Cancelled => (-32014, "client", "cancelled"),
        FailureKind::Stopping => (-32014, "server", "server is stopping"),
        FailureKind::System => (-32603, "system", "file system error"),
        FailureKind::Internal => (-32603, "server", "internal error"),
    };
    Code { number, category, about }
}

/// The code for a call of this tool. For a resource -32002 means that there is none, and nothing else.
pub fn code_of(tool: &ToolSpec, kind: FailureKind) -> Code {
    let number = match (tool.dialect, kind) {
        (Dialect::Resource, FailureKind::NotFound) => RESOURCE_NOT_FOUND,
        (Dialect::Resource, FailureKind::Denied) => INVALID_PARAMS,
        (Dialect::Code, kind) if name(kind) == "INVALID_INPUT" => INVALID_PARAMS,
        (Dialect::Code, kind) if name(kind) == "EDIT_CONFLICT" => code(FailureKind::Stale).number,
        _ => code(kind).number,
    };
    Code { number, ..code(kind) }
}

/// The message as text content of a tool's result.
pub fn text(dialect: Dialect, failure: &Failure) -> String {
    match dialect {
        Dialect::Flat | Dialect::Plain => format!("Error: {}", failure.message),
        Dialect::Text | Dialect::Code | Dialect::Resource => failure.message.clone(),
    }
}

/// The file as asked for, which the failures of the code tools name.
pub fn target(arguments: &Value) -> Option<&str> {
    arguments.get("target_file").or(arguments.get("path"))?.as_str()
}

/// A failure as `structuredContent`. `target` is the file as asked for.
pub fn structured(dialect: Dialect, target: Option<&str>, failure: &Failure) -> Value {
    let mut object = Map::new();
    if dialect != Dialect::Code {
        object.insert("error".into(), self::object(failure));
        return object.into();
    }
    object.insert("status".into(), "failure".into());
    let target: String = target.unwrap_or_default().chars().take(PATH_SHOWN).collect();
    object.insert("file_path".into(), target.into());
    object.insert("message".into(), failure.message.clone().into());
    object.insert("error".into(), failure.message.clone().into());
    object.insert("code".into(), name(failure.kind).into());
    object.extend(details(failure));
    object.into()
}

/// `{code, message, hint?, hash?}`.
pub fn object(failure: &Failure) -> Value {
    let mut error = Map::new();
    error.insert("code".into(), code(failure.kind).number.into());
    error.insert("message".into(), failure.message.clone().into());
    error.extend(details(failure));
    error.into()
}

/// The code tools' name of a kind. The contract has four of them.
fn name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NotFound => "FILE_NOT_FOUND",
        FailureKind::Denied | FailureKind::Declined => "PERMISSION_DENIED",
        FailureKind::Stale | FailureKind::Conflict => "EDIT_CONFLICT",
        FailureKind::Invalid
        | FailureKind::Unusable
        | FailureKind::TooLarge
        | FailureKind::NotAFile
        | FailureKind::NotText
        | FailureKind::NoMatch
        | FailureKind::Ambiguous => "INVALID_INPUT",
        FailureKind::DiskFull => "DISK_FULL",
        FailureKind::Generation => "GENERATION_FAILED",
        FailureKind::TimedOut => "TIMED_OUT",
        FailureKind::Cancelled => "CANCELLED",
        FailureKind::Stopping => "SERVER_STOPPING",
        FailureKind::System => "FILE_SYSTEM_ERROR",
        FailureKind::Internal => "INTERNAL_ERROR",
    }
}

/// A failure as a JSON-RPC error: code, message, data.
pub fn json_rpc(tool: &ToolSpec, failure: &Failure) -> (i32, String, Value) {
    let mut data = Map::new();
    data.insert("tool".into(), tool.name.into());
    let message = if failure.kind == FailureKind::Invalid {
        data.insert("validation_errors".into(), json!(failure.argument_errors));
        "Invalid params".into()
    } else {
        failure.message.clone()
    };
    if tool.dialect == Dialect::Code {
        data.insert("code".into(), name(failure.kind).into());
    }
    data.extend(details(failure));
    (code_of(tool, failure.kind).number, message, data.into())
}

/// The failure of a resource as a JSON-RPC error, with the URI if one was asked for.
pub fn resource(tool: &ToolSpec, uri: Option<&str>, failure: &Failure) -> (i32, String, Value) {
    let uri = uri.map(|uri| ("uri".into(), uri.chars().take(URI_SHOWN).collect::<String>().into()));
    let data: Map<_, _> = uri.into_iter().chain(details(failure)).collect();
    (code_of(tool, failure.kind).number, failure.message.clone(), data.into())
}

fn details(failure: &Failure) -> impl Iterator<Item = (String, Value)> {
    let hint = failure.hint.clone().map(|hint| ("hint".into(), hint.into()));
    let hash = failure.current.map(|hash| ("hash".into(), hash.to_string().into()));
    let more = failure.details.iter().flat_map(|details| details.as_ref().clone());
    hint.into_iter().chain(hash).chain(more)
}
