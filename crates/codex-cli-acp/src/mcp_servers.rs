//! MCP servers of a session in the format of Codex's configuration: this program's own, and those of the editor. Pure
//! functions.

use std::collections::BTreeSet;
use std::time::Duration;

use agent_client_protocol::v1::schema::McpServer;
use serde_json::{Map, Value, json};

/// Name of this program's server, unless that name is in use.
const NAME: &str = "file_editor";
/// Time limit of a tool call: a person may be asked before it is answered, and may take long.
const TOOL_TIMEOUT: Duration = Duration::from_hours(24);

/// MCP servers of one thread.
#[derive(Debug)]
pub struct ThreadServers {
    /// Name of this program's server in Codex's configuration.
    pub ours: String,
    /// Keys and values of Codex's configuration.
    pub config: Map<String, Value>,
}

/// Returns the configuration of this program's server at `url` and of the editor's servers. Codex merges servers of one
/// name, so names that its own configuration has, `in_use`, are not used again.
pub fn thread_servers(
    url: &str,
    token: &str,
    editor_servers: &[McpServer],
    mut in_use: BTreeSet<String>,
) -> Result<ThreadServers, String> {
    let ours = unused(NAME, &mut in_use);
    let mut config = Map::new();
    let key = |name: &str| format!("mcp_servers.{name}");
    config.insert(
        key(&ours),
        json!({
            "url": url,
            "http_headers": { "Authorization": format!("Bearer {token}") },
            "required": true,
            "tool_timeout_sec": TOOL_TIMEOUT.as_secs(),
            // Permission to write is decided by this program when a call arrives.
            "default_tools_approval_mode": "approve",
            // Models that search for their tools would not find these.
            "omit_tools_from": ["deferred"],
        }),
    );
    for server in editor_servers {
        let (name, value) = translated(server)?;
        config.insert(key(&unused(&name, &mut in_use)), value);
    }
    Ok(ThreadServers { ours, config })
}

fn translated(server: &McpServer) -> Result<(String, Value), String> {
    match server {
        McpServer::Stdio(server) => {
            let env: Map<String, Value> = server
                .env
                .iter()
                .map(|variable| (variable.name.clone(), variable.value.as_str().into()))
                .collect();
            let value = json!({ "command": server.command, "args": server.args, "env": env });
            Ok((server.name.clone(), value))
        }
        McpServer::Http(server) => {
            let headers: Map<String, Value> = server
                .headers
                .iter()
                .map(|header| (header.name.clone(), header.value.as_str().into()))
                .collect();
            Ok((server.name.clone(), json!({ "url": server.url, "http_headers": headers })))
        }
        McpServer::Sse(server) => Err(format!(
            "the MCP server `{}` uses SSE, which Codex does not speak: give it as `http` or `stdio`",
            server.name
        )),
        _ => Err("an MCP server of an unknown type: give it as `http` or `stdio`".into()),
    }
}

/// Returns the name, or the first free one like it. Codex accepts letters, digits, `_` and `-`.
fn unused(name: &str, in_use: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let name = if name.is_empty() { "server".into() } else { name };
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let unused = names.find(|name| !in_use.contains(name)).unwrap_or(name);
    in_use.insert(unused.clone());
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor_servers(servers: Value) -> Vec<McpServer> {
        serde_json::from_value(servers).expect("as ACP has them")
    }

    fn stdio(name: &str) -> Value {
        json!({ "name": name, "command": "/bin/s", "args": ["-x"], "env": [{ "name": "A", "value": "b" }] })
    }

    #[test]
    fn names_are_used_once() {
        let in_use = BTreeSet::from(["file_editor".to_owned(), "mine".to_owned()]);
        let list = editor_servers(json!([
            stdio("file_editor"),
            stdio("mine"),
            stdio("mine"),
            stdio("a b.c")
        ]));
        let ThreadServers { ours, config } =
            thread_servers("http://u", "t", &list, in_use).expect("all are fine");
        assert_eq!(ours, "file_editor_2");
        let names: Vec<&String> = config.keys().collect();
        let expected = ["file_editor_2", "file_editor_3", "mine_2", "mine_3", "a_b_c"];
        assert_eq!(
            names,
            expected.map(|name| format!("mcp_servers.{name}")).iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn servers_of_the_editor_are_passed_on() {
        let http = json!({ "type": "http", "name": "h", "url": "http://x/", "headers": [{ "name": "K", "value": "v" }] });
        let list = editor_servers(json!([stdio("s"), http]));
        let ThreadServers { config, .. } =
            thread_servers("http://u", "t", &list, BTreeSet::new()).expect("fine");
        assert_eq!(
            config["mcp_servers.s"],
            json!({ "command": "/bin/s", "args": ["-x"], "env": { "A": "b" } })
        );
        assert_eq!(
            config["mcp_servers.h"],
            json!({ "url": "http://x/", "http_headers": { "K": "v" } })
        );
    }

    #[test]
    fn what_codex_does_not_speak_is_refused_by_name() {
        let list = editor_servers(
            json!([{ "type": "sse", "name": "old", "url": "http://x/", "headers": [] }]),
        );
        let error =
            thread_servers("http://u", "t", &list, BTreeSet::new()).expect_err("it is refused");
        assert!(error.contains("`old`") && error.contains("`http`"), "{error}");
    }
}
