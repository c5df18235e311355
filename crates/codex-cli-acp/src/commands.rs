//! Slash commands: prompts that begin with `/`, and their output.

use serde_json::{Value, json};

use crate::lock;
use crate::session::Session;

/// A slash command with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A prompt that this program supplies.
    Prompt(String),
    Compact,
    /// The `target` of Codex's `review/start`.
    Review(Value),
    Status,
    Mcp,
    Skills,
    Rename(String),
    Logout,
}

/// Name, description and argument hint of each command.
const ALL: [(&str, &str, Option<&str>); 10] = [
    ("init", "Write an AGENTS.md that tells agents about this project", None),
    ("status", "Show model, mode, account and tokens used", None),
    ("compact", "Summarize the conversation so far, to free its context", None),
    ("review", "Review the changes that are not committed", Some("what to look at, if not those")),
    ("review-branch", "Review the changes against a branch", Some("branch")),
    ("review-commit", "Review a commit", Some("commit")),
    ("mcp", "List the MCP servers and their tools", None),
    ("skills", "List the skills", None),
    ("rename", "Give the session a name", Some("name")),
    ("logout", "Forget the account", None),
];

const INIT: &str = "Write a file AGENTS.md at the top of this project, for agents that come to work here: what the \
project is and how it is laid out, how to build, test and check it (the exact commands), the style of its code and of its \
commits, and what is easily got wrong. Look at the project first, and say only what you found there. Keep it under 60 \
lines. If there is an AGENTS.md already, correct and complete that one.";

/// Returns the `available_commands_update` with all commands.
pub fn available() -> Value {
    let all = ALL.map(|(name, description, input)| {
        let mut command = json!({ "name": name, "description": description });
        if let Some(hint) = input {
            command["input"] = json!({ "hint": hint });
        }
        command
    });
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": all })
}

impl Command {
    /// Parses a prompt as a command; `Err` says which argument is missing. A slash with another word is left to Codex.
    pub fn of(prompt: &str) -> Option<Result<Self, String>> {
        let line = prompt.trim().strip_prefix('/')?;
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let needed = |make: fn(&str) -> Self| match rest {
            "" => Err(format!("/{name} needs to know which: write it after the command")),
            rest => Ok(make(rest)),
        };
        Some(match name {
            "init" => Ok(Self::Prompt(INIT.into())),
            "status" => Ok(Self::Status),
            "compact" => Ok(Self::Compact),
            "review" if rest.is_empty() => {
                Ok(Self::Review(json!({ "type": "uncommittedChanges" })))
            }
            "review" => Ok(Self::Review(json!({ "type": "custom", "instructions": rest }))),
            "review-branch" => {
                needed(|branch| Self::Review(json!({ "type": "baseBranch", "branch": branch })))
            }
            "review-commit" => {
                needed(|sha| Self::Review(json!({ "type": "commit", "sha": sha, "title": null })))
            }
            "mcp" => Ok(Self::Mcp),
            "skills" => Ok(Self::Skills),
            "rename" => needed(|name| Self::Rename(name.to_owned())),
            "logout" => Ok(Self::Logout),
            _ => return None,
        })
    }
}

/// Returns the output of `/status`.
pub fn status(session: &Session, account: &Value) -> String {
    let state = lock(&session.state);
    let options = &state.options;
    let account = match account["type"].as_str() {
        Some("chatgpt") => {
            let (email, plan) = (&account["email"], &account["planType"]);
            let email = email.as_str().unwrap_or("unknown");
            format!("ChatGPT, {email} ({})", plan.as_str().unwrap_or("unknown plan"))
        }
        Some("apiKey") => "API key".into(),
        Some(other) => other.to_owned(),
        None => "none".into(),
    };
    let mut rows = vec![
        ("Session", session.id().to_owned()),
        ("Folders", session.folders.join(", ")),
        ("Model", options.model.clone()),
        ("Mode", options.mode.name().to_owned()),
        ("Account", account),
    ];
    if let Some(effort) = &options.effort {
        rows.insert(3, ("Reasoning effort", effort.clone()));
    }
    if let Some(usage) = &state.usage {
        let usage = &usage["tokenUsage"];
        let tokens = |part: &str| usage[part]["totalTokens"].as_u64().unwrap_or_default();
        let window = usage["modelContextWindow"].as_u64().map(|size| format!(" of {size}"));
        rows.push((
            "Tokens in context",
            format!("{}{}", tokens("last"), window.unwrap_or_default()),
        ));
        rows.push(("Tokens used", tokens("total").to_string()));
    }
    let rows: Vec<String> =
        rows.into_iter().map(|(name, value)| format!("- **{name}:** {value}")).collect();
    rows.join("\n")
}

/// Returns the output of `/mcp`.
pub fn servers(list: &Value) -> String {
    let server = |server: &Value| {
        let tools =
            server["tools"].as_object().map(|tools| tools.keys().cloned().collect::<Vec<_>>());
        let tools = tools.filter(|tools| !tools.is_empty()).map(|tools| tools.join(", "));
        let name = server["name"].as_str().unwrap_or_default();
        format!("- **{name}:** {}", tools.as_deref().unwrap_or("no tools"))
    };
    listed(list, server, "There are no MCP servers.")
}

/// Returns the output of `/skills`.
pub fn skills(list: &Value) -> String {
    let skill = |skill: &Value| {
        let text = |name: &str| skill[name].as_str().unwrap_or_default();
        format!("- **{}:** {}", text("name"), text("description"))
    };
    let all: Vec<Value> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|folder| folder["skills"].as_array())
        .flatten()
        .cloned()
        .collect();
    listed(&all.into(), skill, "There are no skills.")
}

fn listed(list: &Value, line: impl Fn(&Value) -> String, none: &str) -> String {
    let lines: Vec<String> = list.as_array().into_iter().flatten().map(line).collect();
    if lines.is_empty() { none.into() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_offered_is_known() {
        for (name, ..) in ALL {
            assert!(matches!(Command::of(&format!("/{name} x")), Some(Ok(_))), "{name}");
        }
    }

    #[test]
    fn other_slashes_are_for_codex() {
        for prompt in ["/usr/bin is full", "/", "// comment", "status", "a /status", "/unknown"] {
            assert_eq!(Command::of(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        assert!(matches!(Command::of("/review-branch  "), Some(Err(_))));
        let branch = json!({ "type": "baseBranch", "branch": "main" });
        assert_eq!(Command::of(" /review-branch main "), Some(Ok(Command::Review(branch))));
        let custom = json!({ "type": "custom", "instructions": "the locks" });
        assert_eq!(Command::of("/review the locks"), Some(Ok(Command::Review(custom))));
    }
}
