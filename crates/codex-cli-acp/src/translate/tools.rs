//! Other tools of Codex: MCP servers, web search, images, sub-agents.

use std::path::Path;

use serde_json::{Value, json};

use super::item_text::image;
use super::json::{absolute, list, location, one_line, present, relative, text, text_content};
use super::tool_call::ToolCall;

/// Converts an `mcpToolCall` of another MCP server.
pub fn mcp(item: &Value) -> ToolCall {
    let server = text(item, "server").unwrap_or("MCP");
    let tool = text(item, "tool").unwrap_or("tool");
    let mut result: Vec<_> = list(&item["result"], "content").iter().filter_map(block).collect();
    result.extend(text(&item["error"], "message").map(text_content));
    ToolCall {
        title: one_line(&format!("{server}: {tool}")),
        name: Some(tool.into()),
        kind: if item["readOnlyHint"] == true { "read" } else { "other" },
        final_content: result,
        input: item["arguments"].clone(),
        output: item["result"].clone(),
        ..ToolCall::default()
    }
}

/// Converts a block of an MCP result. Types that ACP has no block for are only in `rawOutput`.
fn block(block: &Value) -> Option<Value> {
    let media = || Some((text(block, "data")?, text(block, "mimeType")?));
    let content = match text(block, "type")? {
        "text" => return text(block, "text").map(text_content),
        kind @ ("image" | "audio") => {
            let (data, mime) = media()?;
            json!({"type": kind, "data": data, "mimeType": mime})
        }
        "resource_link" => {
            let uri = text(block, "uri")?;
            json!({"type": "resource_link", "name": text(block, "name").unwrap_or(uri), "uri": uri})
        }
        "resource" => {
            return text(&block["resource"], "text").map(text_content);
        }
        _ => return None,
    };
    Some(json!({"type": "content", "content": content}))
}

/// Converts a `dynamicToolCall`.
pub fn dynamic(item: &Value) -> ToolCall {
    let tool = text(item, "tool").unwrap_or("tool");
    let namespace = text(item, "namespace").map(|name| format!("{name}: ")).unwrap_or_default();
    let block = |content: &Value| match text(content, "type")? {
        "inputText" => text(content, "text").map(text_content),
        "inputImage" => text(content, "imageUrl").map(show_image),
        _ => None,
    };
    ToolCall {
        title: one_line(&format!("{namespace}{tool}")),
        name: Some(tool.into()),
        kind: "other",
        final_content: list(item, "contentItems").iter().filter_map(block).collect(),
        input: item["arguments"].clone(),
        output: present(json!({"success": item["success"]})),
        ..ToolCall::default()
    }
}

fn show_image(url: &str) -> Value {
    json!({"type": "content", "content": image(url)})
}

/// Converts a `webSearch`. Its query may be known only at its end.
pub fn web_search(item: &Value) -> ToolCall {
    let action = &item["action"];
    let url = text(action, "url");
    let queries: Vec<_> = list(action, "queries").iter().filter_map(Value::as_str).collect();
    let query = text(action, "query").or(text(item, "query"));
    let query = query.map_or_else(|| queries.join(", "), str::to_owned);
    let (kind, title) = match (text(action, "type"), url, text(action, "pattern")) {
        (Some("open_page"), Some(url), _) => ("fetch", format!("Open {url}")),
        (Some("find_in_page"), Some(url), Some(pattern)) => {
            ("fetch", format!("Find {pattern} in {url}"))
        }
        _ if query.is_empty() => ("search", "Search the web".into()),
        _ => ("search", format!("Search the web: {query}")),
    };
    let results = &item["results"];
    ToolCall {
        title: one_line(&title),
        kind,
        input: present(json!({"query": query, "action": action})),
        output: if results.is_array() { json!({"results": results}) } else { Value::Null },
        ..ToolCall::default()
    }
}

/// Converts an `imageView`.
pub fn image_view(item: &Value, cwd: &Path) -> ToolCall {
    let path = text(item, "path").map(|path| absolute(path, cwd));
    let name = path.as_deref().map_or("an image".into(), |path| relative(path, cwd));
    ToolCall {
        title: one_line(&format!("View {name}")),
        kind: "read",
        locations: path.iter().map(|path| location(path, None)).collect(),
        input: json!({"path": path}),
        ..ToolCall::default()
    }
}

/// Converts an `imageGeneration`.
pub fn image_generation(item: &Value, cwd: &Path) -> ToolCall {
    let path = text(item, "savedPath").map(|path| absolute(path, cwd));
    let mut result: Vec<_> = text(item, "revisedPrompt").map(text_content).into_iter().collect();
    if let Some(data) = text(item, "result") {
        let mime = match data.get(..4) {
            Some("/9j/") => "image/jpeg",
            Some("UklG") => "image/webp",
            _ => "image/png",
        };
        result.push(show_image(&format!("data:{mime};base64,{data}")));
    }
    if item["failure"]["type"] == "usageLimitExceeded" {
        result.push(text_content("The limit of generated images is used up"));
    }
    ToolCall {
        title: "Generate an image".into(),
        kind: "other",
        final_content: result,
        locations: path.iter().map(|path| location(path, None)).collect(),
        output: present(json!({"savedPath": path, "failure": item["failure"]})),
        ..ToolCall::default()
    }
}

/// Converts a `collabAgentToolCall`: work with other agents.
pub fn collab(item: &Value) -> ToolCall {
    let tool = text(item, "tool").unwrap_or_default();
    let title = match tool {
        "spawnAgent" => "Start a sub-agent",
        "sendInput" | "sendMessage" | "followupTask" => "Write to a sub-agent",
        "resumeAgent" => "Resume a sub-agent",
        "wait" => "Wait for sub-agents",
        "closeAgent" => "Close a sub-agent",
        "interruptAgent" => "Interrupt a sub-agent",
        "listAgents" => "List sub-agents",
        _ => "Work with sub-agents",
    };
    let state = |(id, state): (&String, &Value)| {
        let status = text(state, "status")?;
        let message = text(state, "message").map(|message| format!(": {message}"));
        Some(format!("{id} {status}{}", message.unwrap_or_default()))
    };
    let states = item["agentsStates"].as_object();
    let states: Vec<_> = states.into_iter().flatten().filter_map(state).collect();
    let prompt = text(item, "prompt").map(text_content);
    let mut result: Vec<_> = prompt.iter().cloned().collect();
    result.extend((!states.is_empty()).then(|| text_content(states.join("\n\n"))));
    ToolCall {
        title: title.into(),
        kind: "other",
        content: prompt.into_iter().collect(),
        final_content: result,
        input: present(json!({
            "tool": item["tool"],
            "prompt": item["prompt"],
            "model": item["model"],
            "reasoningEffort": item["reasoningEffort"],
            "receiverThreadIds": item["receiverThreadIds"],
        })),
        output: present(json!({"agentsStates": item["agentsStates"]})),
        ..ToolCall::default()
    }
}

/// Converts a `subAgentActivity`.
pub fn sub_agent(item: &Value) -> ToolCall {
    let name = text(item, "agentPath").or(text(item, "agentThreadId")).unwrap_or_default();
    let did = match text(item, "kind").unwrap_or_default() {
        "started" => "started",
        "interrupted" => "was interrupted",
        "completed" => "has finished",
        _ => "works",
    };
    ToolCall {
        title: one_line(&format!("Sub-agent {name} {did}")),
        kind: "other",
        input: present(json!({
            "agentPath": item["agentPath"],
            "agentThreadId": item["agentThreadId"],
            "model": item["model"],
        })),
        ..ToolCall::default()
    }
}

/// Converts a `sleep`.
pub fn sleep(item: &Value) -> ToolCall {
    let ms = item["durationMs"].as_u64().unwrap_or_default();
    let long =
        if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") };
    ToolCall {
        title: format!("Wait {long}"),
        kind: "other",
        input: json!({"durationMs": ms}),
        ..ToolCall::default()
    }
}
