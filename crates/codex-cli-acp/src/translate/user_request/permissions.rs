//! Questions whether Codex may have more permissions than its sandbox.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{ChoiceOption, ChoiceRequest};
use crate::translate::json::{absolute, list, location, text, text_content};
use crate::translate::tool_call::ToolCall;

/// Translates `item/permissions/requestApproval`. All requested permissions are granted, or none.
pub fn choice_request(params: &Value, item: Option<&Value>, cwd: &Path) -> ChoiceRequest {
    let wanted = &params["permissions"];
    let (wishes, locations) = described(wanted, cwd);
    let mut lines: Vec<String> = text(params, "reason").map(str::to_owned).into_iter().collect();
    lines.extend(["Codex asks for more permissions:".into(), wishes]);
    let call = ToolCall {
        id: text(params, "itemId").unwrap_or_default().into(),
        title: "More permissions for Codex".into(),
        kind: "other",
        content: vec![text_content(lines.join("\n\n"))],
        locations,
        input: json!({"permissions": wanted, "cwd": params["cwd"]}),
        ..ToolCall::default()
    };
    let granted: Map<String, Value> = ["network", "fileSystem"]
        .into_iter()
        .filter(|part| wanted[*part].is_object())
        .map(|part| (part.into(), wanted[part].clone()))
        .collect();
    let grant = |scope: &str| json!({"permissions": granted, "scope": scope});
    let nothing = json!({"permissions": {}, "scope": "turn"});
    let choices = vec![
        ChoiceOption::new("turn", "Allow for this turn", "allow_once", grant("turn")),
        ChoiceOption::new("session", "Allow for this session", "allow_always", grant("session")),
        ChoiceOption::new("reject", "Reject", "reject_once", nothing.clone()),
    ];
    ChoiceRequest { is_own_call: item.is_none(), ..ChoiceRequest::new(call, choices, nothing) }
}

/// Describes a permission profile as a list in words, with the locations it names.
pub fn described(profile: &Value, cwd: &Path) -> (String, Vec<Value>) {
    let (mut lines, mut places) = (Vec::<String>::new(), Vec::new());
    if profile["network"]["enabled"] == true {
        lines.push("- network access".into());
    }
    let files = &profile["fileSystem"];
    let mut place = |access: &str, path: &str| {
        let path = absolute(path, cwd);
        lines.push(format!("- {access} `{path}`"));
        places.push(location(&path, None));
    };
    let entries = list(files, "entries");
    if entries.is_empty() {
        for access in ["read", "write"] {
            let paths = list(files, access).iter().filter_map(Value::as_str);
            paths.for_each(|path| place(access, path));
        }
    }
    let mut others = Vec::new();
    for entry in entries {
        let access = text(entry, "access").unwrap_or("use");
        let path = &entry["path"];
        let special = &path["value"];
        if let Some(path) = text(path, "path") {
            place(access, path);
        } else if let Some(name) = text(path, "pattern").or(text(special, "path")) {
            others.push(format!("- {access} `{name}`"));
        } else {
            let below = text(special, "subpath").map(|path| format!(", `{path}`"));
            let name = match text(special, "kind").unwrap_or_default() {
                "root" => "the whole file system",
                "minimal" => "what programs need to run",
                "project_roots" => "the folders of the project",
                "tmpdir" | "slash_tmp" => "the folder for temporary files",
                _ => "other places",
            };
            others.push(format!("- {access} {name}{}", below.unwrap_or_default()));
        }
    }
    lines.extend(others);
    (lines.join("\n"), places)
}
