//! Sample items and requests as Codex 0.166 sends them.

use serde_json::{Value, json};

/// Returns an item of each type after its end.
pub fn items() -> Vec<Value> {
    vec![
        user_message(),
        json!({"type": "hookPrompt", "id": "hook-1", "fragments": [{"text": "Run the tests.", "hookRunId": "run-1"}]}),
        message("Hello."),
        json!({"type": "functionCallOutput", "id": "out-1", "name": "f", "namespace": null, "output": "text"}),
        json!({"type": "plan", "id": "plan-1", "text": "1. Read\n2. Write"}),
        reasoning(),
        command(),
        patch(),
        mcp(),
        json!({"type": "dynamicToolCall", "id": "call-5", "namespace": "ide", "tool": "open", "arguments": {"path": "a.rs"},
            "status": "completed", "contentItems": [{"type": "inputText", "text": "opened"},
            {"type": "inputImage", "imageUrl": "data:image/png;base64,iVBORw0KGgo="}], "success": true, "durationMs": 3}),
        json!({"type": "collabAgentToolCall", "id": "call-6", "tool": "spawnAgent", "status": "completed",
            "senderThreadId": "t-1", "receiverThreadIds": ["t-2"], "prompt": "Count the files", "model": "gpt-6",
            "reasoningEffort": "low", "agentsStates": {"t-2": {"status": "completed", "message": "12"}}}),
        json!({"type": "subAgentActivity", "model": null, "reasoningEffort": null, "id": "act-1", "kind": "started",
            "agentThreadId": "t-2", "agentPath": "/root/counter"}),
        web_search(&json!({"type": "search", "query": "rust serde", "queries": ["rust serde"]})),
        json!({"type": "imageView", "id": "call-8", "path": "/home/me/project/img/a.png"}),
        json!({"type": "sleep", "id": "call-9", "durationMs": 1500}),
        json!({"type": "imageGeneration", "id": "ig-1", "status": "completed", "revisedPrompt": "A red boat",
            "failure": null, "savedPath": "/home/me/boat.png", "generationId": null, "result": "iVBORw0KGgo="}),
        json!({"type": "enteredReviewMode", "id": "rev-1", "review": "current changes"}),
        json!({"type": "exitedReviewMode", "id": "rev-1", "review": "Looks right."}),
        json!({"type": "contextCompaction", "id": "comp-1"}),
    ]
}

pub fn user_message() -> Value {
    json!({"type": "userMessage", "id": "msg-0", "clientId": null, "content": [
        {"type": "text", "text": "Look at this", "text_elements": []},
        {"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "localImage", "path": "/home/me/a.png"},
        {"type": "mention", "name": "docs", "path": "app://docs"},
        {"type": "skill", "name": "review", "path": "/s/SKILL.md"},
    ]})
}

pub fn message(text: &str) -> Value {
    json!({"type": "agentMessage", "id": "msg-1", "text": text, "phase": "final_answer", "memoryCitation": null,
        "delivery": null, "questions": null})
}

pub fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs-1", "summary": ["**First**", "**Second**"], "content": ["raw"]})
}

pub fn command() -> Value {
    json!({"type": "commandExecution", "id": "call-1", "pluginId": null, "scriptPath": null,
        "command": "/bin/bash -lc 'cargo test'", "cwd": "/home/me/project", "processId": "77", "source": "agent",
        "status": "completed", "commandActions": [{"type": "unknown", "command": "cargo test"}],
        "aggregatedOutput": "running 2 tests\nok\n", "exitCode": 0, "durationMs": 1200})
}

/// Returns an item as it was at its start.
pub fn begun(mut item: Value) -> Value {
    for field in ["aggregatedOutput", "exitCode", "durationMs", "result", "contentItems", "success"]
    {
        if item.get(field).is_some() {
            item[field] = Value::Null;
        }
    }
    if item.get("status").is_some() {
        item["status"] = json!("inProgress");
    }
    item
}

pub fn patch() -> Value {
    json!({"type": "fileChange", "id": "call-2", "status": "completed", "changes": [
        {"path": "/home/me/project/src/a.rs", "kind": {"type": "update", "move_path": null},
            "diff": "@@ -10,3 +10,3 @@\n a\n-b\n+B\n c\n@@ -90 +90,2 @@ fn x()\n z\n+--- not a header\n"},
        {"path": "/home/me/project/new.txt", "kind": {"type": "add"}, "diff": "new\n"},
        {"path": "/home/me/project/old.txt", "kind": {"type": "delete"}, "diff": "old\n"},
    ]})
}

pub fn mcp() -> Value {
    json!({"type": "mcpToolCall", "id": "call-3", "server": "docs", "tool": "search", "status": "completed",
        "arguments": {"q": "x"}, "appContext": null, "mcpAppUi": null, "pluginId": null, "readOnlyHint": true,
        "result": {"content": [{"type": "text", "text": "found"}, {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "https://example.com", "name": "page"},
            {"type": "resource", "resource": {"uri": "docs://x", "text": "embedded"}}], "structuredContent": null, "_meta": null},
        "error": null, "durationMs": 2})
}

pub fn web_search(action: &Value) -> Value {
    json!({"type": "webSearch", "id": "ws-1", "query": "", "action": action, "results": null})
}

/// Returns notifications with their methods.
pub fn notifications() -> Vec<(&'static str, Value)> {
    let of = |item: &str, delta: &str| json!({"threadId": "t-1", "turnId": "1", "itemId": item, "delta": delta});
    let with = |mut params: Value, name: &str, value: Value| {
        params[name] = value;
        params
    };
    let tokens = json!({"totalTokens": 1500, "inputTokens": 1200, "cachedInputTokens": 1000, "cacheWriteInputTokens": 7,
        "outputTokens": 300, "reasoningOutputTokens": 250});
    vec![
        ("item/agentMessage/delta", of("msg-1", "Hel")),
        ("item/plan/delta", of("plan-1", "1. Read")),
        (
            "item/reasoning/summaryPartAdded",
            json!({"threadId": "t-1", "turnId": "1", "itemId": "rs-1", "summaryIndex": 0}),
        ),
        (
            "item/reasoning/summaryTextDelta",
            with(of("rs-1", "**First**"), "summaryIndex", json!(0)),
        ),
        (
            "item/reasoning/summaryTextDelta",
            with(of("rs-1", "**Second**"), "summaryIndex", json!(1)),
        ),
        ("item/reasoning/textDelta", with(of("rs-1", "raw"), "contentIndex", json!(0))),
        ("item/commandExecution/outputDelta", of("call-1", "running 2 tests\n")),
        (
            "item/commandExecution/terminalInteraction",
            json!({"threadId": "t-1", "turnId": "1", "itemId": "call-1", "processId": "77", "stdin": "y\n"}),
        ),
        ("item/mcpToolCall/progress", with(of("call-3", ""), "message", json!("half"))),
        (
            "item/fileChange/patchUpdated",
            with(of("call-2", ""), "changes", patch()["changes"].clone()),
        ),
        (
            "turn/plan/updated",
            json!({"threadId": "t-1", "turnId": "1", "explanation": null, "plan": [
            {"step": "Read", "status": "completed"}, {"step": "Write", "status": "inProgress"}, {"step": "Test", "status": "pending"}]}),
        ),
        (
            "thread/tokenUsage/updated",
            json!({"threadId": "t-1", "turnId": "1",
            "tokenUsage": {"total": tokens, "last": tokens, "modelContextWindow": 272_000}}),
        ),
        ("thread/name/updated", json!({"threadId": "t-1", "threadName": "Fix the tests"})),
        ("thread/compacted", json!({"threadId": "t-1", "turnId": "1"})),
        (
            "error",
            json!({"error": {"message": "Reconnecting... 1/5", "codexErrorInfo": {"responseStreamDisconnected":
            {"httpStatusCode": null}}, "additionalDetails": "stream closed", "misalignment": null},
            "willRetry": true, "threadId": "t-1", "turnId": "1"}),
        ),
        (
            "error",
            json!({"error": {"message": "This cannot be done.", "codexErrorInfo": "cyberPolicy",
            "additionalDetails": null, "misalignment": null}, "willRetry": false, "threadId": "t-1", "turnId": "1"}),
        ),
        ("warning", json!({"threadId": "t-1", "message": "Long threads are less accurate"})),
        ("configWarning", json!({"summary": "Unknown key", "details": "in config.toml"})),
        (
            "model/rerouted",
            json!({"threadId": "t-1", "turnId": "1", "fromModel": "gpt-6", "toModel": "gpt-5.5",
            "reason": "highRiskCyberActivity"}),
        ),
        (
            "mcpServer/startupStatus/updated",
            json!({"threadId": "t-1", "name": "docs", "status": "failed",
            "error": "no such file", "failureReason": null}),
        ),
        ("turn/diff/updated", json!({"threadId": "t-1", "turnId": "1", "diff": "..."})),
    ]
}

/// Returns requests with their methods.
pub fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("item/commandExecution/requestApproval", command_request()),
        (
            "item/fileChange/requestApproval",
            json!({"threadId": "t-1", "turnId": "1", "itemId": "call-2", "startedAtMs": 1,
            "reason": "outside the sandbox", "grantRoot": "/srv/www"}),
        ),
        ("item/permissions/requestApproval", permissions_request()),
        ("mcpServer/elicitation/request", tool_request()),
        ("mcpServer/elicitation/request", form_request()),
        ("mcpServer/elicitation/request", link_request()),
        (
            "mcpServer/elicitation/request",
            json!({"threadId": "t-1", "turnId": "1", "serverName": "bank",
            "mode": "openai/userVerification", "_meta": null, "title": "t", "description": "d", "challenge": "c"}),
        ),
        ("item/tool/requestUserInput", input_request(&[choice_question()])),
        ("item/tool/requestUserInput", input_request(&[choice_question(), free_question()])),
        (
            "applyPatchApproval",
            json!({"conversationId": "t-1", "callId": "call-2", "reason": null, "grantRoot": null,
            "fileChanges": {"/home/me/project/a.rs": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": null},
            "/home/me/project/b.rs": {"type": "add", "content": "b\n"}}}),
        ),
        (
            "execCommandApproval",
            json!({"conversationId": "t-1", "callId": "call-1", "approvalId": null,
            "command": ["git", "push"], "cwd": "/home/me/project", "reason": "needs the network",
            "parsedCmd": [{"type": "unknown", "cmd": "git push"}]}),
        ),
    ]
}

pub fn command_request() -> Value {
    json!({"kind": "command", "threadId": "t-1", "turnId": "1", "itemId": "call-1", "startedAtMs": 1, "environmentId": null,
        "reason": "Needs the network", "command": "/bin/bash -lc 'git push'", "cwd": "/home/me/project",
        "commandActions": [{"type": "unknown", "command": "git push"}],
        "networkApprovalContext": {"host": "example.com", "protocol": "https"},
        "additionalPermissions": {"network": {"enabled": true}, "fileSystem": null},
        "availableDecisions": ["accept", "acceptForSession",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "push"]}},
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["/bin/bash", "-lc", "a && b"]}},
            {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "example.com", "action": "allow"}}},
            {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "example.com", "action": "deny"}}},
            "decline", "cancel"]})
}

pub fn permissions_request() -> Value {
    json!({"threadId": "t-1", "turnId": "1", "itemId": "call-4", "environmentId": null, "startedAtMs": 1,
        "cwd": "/home/me/project", "reason": "To install", "permissions": {"network": {"enabled": true},
        "fileSystem": {"read": null, "write": null, "entries": [
            {"path": {"type": "path", "path": "/opt"}, "access": "write"},
            {"path": {"type": "glob_pattern", "pattern": "/etc/*.conf"}, "access": "read"},
            {"path": {"type": "special", "value": {"kind": "slash_tmp"}}, "access": "write"}]}}})
}

pub fn tool_request() -> Value {
    json!({"threadId": "t-1", "turnId": "1", "serverName": "docs", "mode": "form",
        "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"],
            "tool_params": {"q": "x"}, "tool_description": "Searches the docs"},
        "message": "Allow the docs MCP server to run tool \"search\"?",
        "requestedSchema": {"type": "object", "properties": {}}})
}

pub fn form_request() -> Value {
    json!({"threadId": "t-1", "turnId": "1", "serverName": "bank", "mode": "form", "_meta": null, "message": "Which account?",
        "requestedSchema": {"$schema": "x", "type": "object", "required": ["account"], "properties": {
            "account": {"type": "string", "title": "Account", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
            "mail": {"type": "string", "format": "email"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "sure": {"type": "boolean", "default": false},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 2}}}})
}

pub fn link_request() -> Value {
    json!({"threadId": "t-1", "turnId": null, "serverName": "bank", "mode": "url", "_meta": null,
        "message": "Log in at the bank", "url": "https://bank.example/login", "elicitationId": "e-1"})
}

pub fn input_request(questions: &[Value]) -> Value {
    json!({"threadId": "t-1", "turnId": "1", "itemId": "call-7", "questions": questions, "isBlocking": true,
        "autoResolutionMs": null})
}

pub fn choice_question() -> Value {
    json!({"id": "db", "header": "Database", "question": "Which one?", "isOther": false, "isSecret": false,
        "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres", "description": "a server"}]})
}

pub fn free_question() -> Value {
    json!({"id": "name", "header": "Name", "question": "What is it called?", "isOther": false, "isSecret": false, "options": null})
}
