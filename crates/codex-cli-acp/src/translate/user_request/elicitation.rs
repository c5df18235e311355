//! Elicitations of MCP servers that Codex forwards. The approval of an MCP tool comes as one too.

use std::hash::{DefaultHasher, Hash, Hasher};

use agent_client_protocol::v1::schema::ElicitationPropertySchema;
use serde_json::{Map, Value, json};

use super::{ChoiceOption, ChoiceRequest, FormKind, FormRequest, UserRequest};
use crate::translate::DisplayCapabilities;
use crate::translate::json::{fenced, list, one_line, shortened, text, text_content};
use crate::translate::tool_call::ToolCall;
use crate::translate::tools;

/// Translates `mcpServer/elicitation/request`.
pub fn user_request(
    params: &Value,
    item: Option<&Value>,
    display: DisplayCapabilities,
) -> UserRequest {
    let wanted = &params["requestedSchema"];
    let nothing_to_fill = wanted["properties"].as_object().is_none_or(Map::is_empty);
    match text(params, "mode").unwrap_or_default() {
        "url" if display.urls => link(params),
        "url" => UserRequest::Choice(choice_request(params, item)),
        "form" | "openai/form" | "openaiForm" => {
            let approval = is_tool_approval(params);
            match schema(wanted).filter(|_| display.forms) {
                Some(schema) if !approval => form(params, &schema),
                _ if approval || nothing_to_fill => {
                    UserRequest::Choice(choice_request(params, item))
                }
                _ => UserRequest::Unsupported(declined()),
            }
        }
        _ => UserRequest::Unsupported(declined()),
    }
}

fn is_tool_approval(params: &Value) -> bool {
    params["_meta"]["codex_approval_kind"] == "mcp_tool_call"
}

/// Returns the answer that declines.
pub fn declined() -> Value {
    json!({"action": "decline", "content": null, "_meta": null})
}

fn cancelled() -> Value {
    json!({"action": "cancel", "content": null, "_meta": null})
}

fn form(params: &Value, schema: &Value) -> UserRequest {
    UserRequest::Form(FormRequest {
        params: json!({"mode": "form", "message": message(params), "requestedSchema": schema}),
        default_answer: cancelled(),
        kind: FormKind::Elicitation,
    })
}

fn link(params: &Value) -> UserRequest {
    let (Some(id), Some(url)) = (text(params, "elicitationId"), text(params, "url")) else {
        return UserRequest::Unsupported(declined());
    };
    UserRequest::Form(FormRequest {
        params: json!({
            "mode": "url", "message": message(params), "elicitationId": id, "url": url,
        }),
        default_answer: cancelled(),
        kind: FormKind::Elicitation,
    })
}

fn message(params: &Value) -> String {
    let server = text(params, "serverName").unwrap_or("An MCP server");
    text(params, "message").map_or_else(|| format!("{server} asks"), str::to_owned)
}

/// Makes a question with accept and reject. Accepting can be remembered if Codex offers that.
fn choice_request(params: &Value, item: Option<&Value>) -> ChoiceRequest {
    let meta = &params["_meta"];
    let mut call = item.map_or_else(|| own_call(params), call_of_item);
    let mut lines = vec![message(params)];
    lines.extend(text(meta, "tool_description").map(str::to_owned));
    lines.extend(text(params, "url").map(str::to_owned));
    if meta["tool_params"].is_object() {
        let arguments = serde_json::to_string_pretty(&meta["tool_params"]).unwrap_or_default();
        lines.push(fenced(&shortened(&arguments)));
        call.input = meta["tool_params"].clone();
    }
    call.content = vec![text_content(lines.join("\n\n"))];

    let accepted = |meta: Value| json!({"action": "accept", "content": {}, "_meta": meta});
    let persist = |scope: &str| {
        let offered = &meta["persist"];
        let listed = offered.as_array().is_some_and(|scopes| scopes.iter().any(|one| one == scope));
        (listed || offered == scope).then(|| accepted(json!({"persist": scope})))
    };
    let yes = if is_tool_approval(params) { "Allow once" } else { "Accept" };
    let mut choices = vec![ChoiceOption::new("once", yes, "allow_once", accepted(Value::Null))];
    choices
        .extend(persist("session").map(|yes| {
            ChoiceOption::new("session", "Allow for this session", "allow_always", yes)
        }));
    choices.extend(
        persist("always")
            .map(|yes| ChoiceOption::new("always", "Always allow", "allow_always", yes)),
    );
    choices.push(ChoiceOption::new("decline", "Reject", "reject_once", declined()));
    ChoiceRequest { is_own_call: item.is_none(), ..ChoiceRequest::new(call, choices, cancelled()) }
}

/// Returns the tool call of the item.
fn call_of_item(item: &Value) -> ToolCall {
    let id = text(item, "id").unwrap_or_default().into();
    ToolCall { id, ..tools::mcp(item) }
}

/// Makes a tool call that exists only for the question. Its id is a hash of the parameters.
fn own_call(params: &Value) -> ToolCall {
    let mut hash = DefaultHasher::new();
    params.to_string().hash(&mut hash);
    ToolCall {
        id: format!("elicitation-{:016x}", hash.finish()),
        title: one_line(message(params).lines().next().unwrap_or_default()),
        kind: if params["mode"] == "url" { "fetch" } else { "other" },
        ..ToolCall::default()
    }
}

/// Returns the schema of a form that every editor can show. `None` if ACP has no field type for a part of it.
fn schema(wanted: &Value) -> Option<Value> {
    let mut properties = Map::new();
    for (name, property) in wanted["properties"].as_object()? {
        let field: ElicitationPropertySchema = serde_json::from_value(titled(property)).ok()?;
        if matches!(field, ElicitationPropertySchema::Other(_)) {
            return None;
        }
        properties.insert(name.clone(), serde_json::to_value(field).ok()?);
    }
    let required = list(wanted, "required").iter().filter_map(Value::as_str);
    let required: Vec<_> = required.filter(|name| properties.contains_key(*name)).collect();
    Some(json!({"type": "object", "properties": properties, "required": required}))
}

/// Returns a property with its choices in today's form: `oneOf` instead of `enumNames`.
fn titled(property: &Value) -> Value {
    let mut property = property.clone();
    let (values, names) = (property["enum"].as_array(), property["enumNames"].as_array());
    if let (Some(values), Some(names)) = (values, names) {
        let choices = values
            .iter()
            .enumerate()
            .map(|(at, value)| json!({"const": value, "title": names.get(at).unwrap_or(value)}));
        let choices: Value = choices.collect();
        if let Some(property) = property.as_object_mut() {
            property.retain(|key, _| key != "enum" && key != "enumNames");
            property.insert("oneOf".into(), choices);
        }
    }
    property
}
