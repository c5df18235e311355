//! Questions whether Codex may run a command.

use std::path::Path;

use serde_json::{Value, json};

use super::permissions::described;
use super::{ChoiceOption, ChoiceRequest};
use crate::translate::DisplayCapabilities;
use crate::translate::command::{is_shell, tool_call};
use crate::translate::json::{fenced, list, one_line, text, text_content};
use crate::translate::tool_call::ItemPhase;

/// Translates `item/commandExecution/requestApproval`. Offers the decisions that Codex says it accepts.
pub fn choice_request(
    params: &Value,
    item: Option<&Value>,
    cwd: &Path,
    display: DisplayCapabilities,
) -> ChoiceRequest {
    let typed = params["kind"] == "writeStdin";
    let known = item.unwrap_or(&Value::Null);
    // For input to a running command, the name is that of the command, not the input.
    let latest = |key: &str| {
        let (first, second) = if typed { (known, params) } else { (params, known) };
        if first[key].is_null() { second[key].clone() } else { first[key].clone() }
    };
    let about = json!({
        "id": params["itemId"],
        "command": latest("command"),
        "cwd": latest("cwd"),
        "commandActions": latest("commandActions"),
    });
    let mut call = tool_call(&about, ItemPhase::Started, cwd, display);
    call.id = text(params, "itemId").unwrap_or_default().into();
    if item.is_none() {
        // The terminal does not exist yet.
        call.content.clear();
    }
    let mut lines: Vec<String> = text(params, "reason").map(str::to_owned).into_iter().collect();
    if typed {
        lines.push("Input for the running command:".into());
    }
    let script = text(params, "command").or(text(&about, "command"));
    lines.extend(script.map(fenced));
    let network = &params["networkApprovalContext"];
    if let Some(host) = text(network, "host") {
        let by = text(network, "protocol").map(|by| format!(" ({by})")).unwrap_or_default();
        lines.push(format!("Network access to `{host}`{by}"));
        if script.is_none() {
            call.title = one_line(&format!("Network access to {host}"));
        }
    }
    let (wishes, _) = described(&params["additionalPermissions"], cwd);
    lines.extend((!wishes.is_empty()).then_some(wishes));
    lines.extend(text(&call.input, "cwd").map(|folder| format!("In `{folder}`")));
    call.content.insert(0, text_content(lines.join("\n\n")));

    let decisions = match params["availableDecisions"].as_array() {
        Some(decisions) => decisions.clone(),
        None => vec![json!("accept"), json!("acceptForSession"), json!("decline")],
    };
    let mut choices: Vec<ChoiceOption> = Vec::new();
    for decision in &decisions {
        let Some(mut choice) = choice(decision) else { continue };
        if choices.iter().any(|other| other.id == choice.id) {
            choice.id = format!("{}-{}", choice.id, choices.len());
        }
        choices.push(choice);
    }
    ChoiceRequest::new(call, choices, json!({"decision": "cancel"}))
}

/// Converts a decision to a choice. `None` for an unknown one, which is not offered.
fn choice(decision: &Value) -> Option<ChoiceOption> {
    let details = decision.as_object().and_then(|decision| decision.iter().next());
    let (id, name, kind) = match (decision.as_str(), details) {
        (Some("accept"), _) => ("accept", "Allow once".into(), "allow_once"),
        (Some("acceptForSession"), _) => {
            ("acceptForSession", "Allow for this session".into(), "allow_always")
        }
        (Some("decline"), _) => ("decline", "Reject".into(), "reject_once"),
        (Some("cancel"), _) => ("cancel", "Reject and stop".into(), "reject_once"),
        (_, Some((id, details))) if id == "acceptWithExecpolicyAmendment" => {
            let begin = list(details, "execpolicy_amendment").iter();
            let name = match begin.filter_map(Value::as_str).collect::<Vec<_>>()[..] {
                [shell, flag, script] if is_shell(shell, flag) => {
                    format!("Always allow `{}`", one_line(script))
                }
                ref words => {
                    let begin = one_line(&words.join(" "));
                    format!("Always allow commands that begin with `{begin}`")
                }
            };
            (id.as_str(), name, "allow_always")
        }
        (_, Some((id, details))) if id == "applyNetworkPolicyAmendment" => {
            let rule = &details["network_policy_amendment"];
            let host = one_line(text(rule, "host")?);
            if rule["action"] == "deny" {
                (id.as_str(), format!("Never allow network access to `{host}`"), "reject_always")
            } else {
                (id.as_str(), format!("Always allow network access to `{host}`"), "allow_always")
            }
        }
        _ => return None,
    };
    Some(ChoiceOption::new(id, name, kind, json!({"decision": decision})))
}

/// Translates `execCommandApproval`, which older versions of Codex send.
pub fn legacy_request(params: &Value, cwd: &Path, display: DisplayCapabilities) -> ChoiceRequest {
    let argv: Vec<_> = list(params, "command").iter().filter_map(Value::as_str).collect();
    let about = json!({
        "itemId": params["callId"],
        "command": argv.join(" "),
        "cwd": params["cwd"],
        "commandActions": params["parsedCmd"],
        "reason": params["reason"],
    });
    ChoiceRequest {
        choices: legacy_choices(),
        default_answer: aborted(),
        ..choice_request(&about, None, cwd, display)
    }
}

/// Returns the choices for requests of older versions of Codex.
pub fn legacy_choices() -> Vec<ChoiceOption> {
    let denied = json!({"denied": {"rejection": "rejected by the user"}});
    vec![
        ChoiceOption::new("approved", "Allow once", "allow_once", json!({"decision": "approved"})),
        ChoiceOption::new(
            "approved_for_session",
            "Allow for this session",
            "allow_always",
            json!({"decision": "approved_for_session"}),
        ),
        ChoiceOption::new("denied", "Reject", "reject_once", json!({"decision": denied})),
        ChoiceOption::new("abort", "Reject and stop", "reject_once", aborted()),
    ]
}

/// Returns the answer that rejects and stops the turn.
pub fn aborted() -> Value {
    json!({"decision": "abort"})
}
