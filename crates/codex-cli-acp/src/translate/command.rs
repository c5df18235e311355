//! Commands that Codex runs in a shell.

use std::path::Path;

use serde_json::{Value, json};

use super::DisplayCapabilities;
use super::json::{
    absolute, fenced, list, location, one_line, present, shortened, text, text_content,
};
use super::sent_updates::SentText;
use super::tool_call::{ItemPhase, ToolCall};

/// Converts a `commandExecution` item. A display-only terminal has the id of its tool call.
pub fn tool_call(
    item: &Value,
    phase: ItemPhase,
    cwd: &Path,
    display: DisplayCapabilities,
) -> ToolCall {
    let id = text(item, "id").unwrap_or_default();
    let command = text(item, "command").unwrap_or_default();
    let folder = absolute(text(item, "cwd").unwrap_or_default(), cwd);
    let actions = list(item, "commandActions");
    let mut call = ToolCall {
        title: title(command),
        kind: kind(actions),
        input: json!({"command": command, "cwd": folder}),
        output: present(json!({
            "exitCode": item["exitCode"],
            "durationMs": item["durationMs"],
            "status": item["status"],
        })),
        ..ToolCall::default()
    };
    if call.kind != "execute" {
        let paths = actions.iter().filter_map(|action| text(action, "path"));
        call.locations =
            paths.map(|path| location(&absolute(path, Path::new(&folder)), None)).collect();
    }
    if display.terminal_output && phase != ItemPhase::Replayed {
        call.content = vec![json!({"type": "terminal", "terminalId": id})];
        call.meta = json!({"terminal_info": {"terminal_id": id, "cwd": folder}});
    } else if let Some(output) = text(item, "aggregatedOutput") {
        call.final_content = vec![text_content(fenced(&shortened(output)))];
    }
    call
}

/// Returns the `_meta` that closes a terminal: the output that was not sent as pieces, and the exit code.
///
/// The first pieces can be missing. A terminal only grows, so they are appended with a note.
pub fn closing_terminal(item: &Value, sent: &SentText) -> Value {
    let id = text(item, "id").unwrap_or_default();
    let (before, after) = sent.missing(text(item, "aggregatedOutput").unwrap_or_default());
    let data = match before {
        "" => after.to_owned(),
        before => format!("\r\n[the output began with:]\r\n{before}"),
    };
    let mut meta = json!({});
    if !data.is_empty() {
        meta["terminal_output"] = json!({"terminal_id": id, "data": data});
    }
    let code = &item["exitCode"];
    meta["terminal_exit"] = json!({"terminal_id": id, "exit_code": code, "signal": null});
    meta
}

/// Returns the tool kind: a command that only looks is a read or a search.
fn kind(actions: &[Value]) -> &'static str {
    let all = |kinds: &[&str]| {
        let known = |action: &Value| text(action, "type").is_some_and(|kind| kinds.contains(&kind));
        !actions.is_empty() && actions.iter().all(known)
    };
    if all(&["read"]) {
        "read"
    } else if all(&["read", "search", "listFiles", "list_files"]) {
        "search"
    } else {
        "execute"
    }
}

/// Returns the command as a person would type it.
pub fn title(command: &str) -> String {
    let title = one_line(&in_shell(command).unwrap_or_else(|| command.into()));
    if title.is_empty() { "Command".into() } else { title }
}

/// Returns the script of `bash -lc '…'`, in which Codex wraps its commands.
fn in_shell(command: &str) -> Option<String> {
    let (shell, rest) = command.split_once(' ')?;
    let (flag, script) = rest.split_once(' ')?;
    is_shell(shell, flag).then(|| unquoted(script))?
}

/// True if this shell and flag run the next word as a script.
pub fn is_shell(program: &str, flag: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    ["bash", "zsh", "sh"].contains(&name) && ["-c", "-lc"].contains(&flag)
}

/// Removes the quotes of a shell word, each part of which may be quoted in its own way. `None` if there are more words.
fn unquoted(word: &str) -> Option<String> {
    let mut plain = String::new();
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (None, '\\') => plain.push(chars.next()?),
            (Some('"'), '\\') => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => plain.push(escaped),
                other => plain.extend(['\\', other]),
            },
            (None, blank) if blank.is_whitespace() => return None,
            (_, other) => plain.push(other),
        }
    }
    quote.is_none().then_some(plain)
}
