//! Every case of `cases/` through the binary.

#[path = "../../../../cases/play.rs"]
mod play;

use std::path::Path;

use crate::harness::Server;
use crate::harness::http::{Client, HttpServer, Mcp, Request};
use play::{Player, play_all};
use serde_json::{Value, json};

#[test]
fn every_case_on_stdio() {
    play_all(|folder, flags| Some(Box::new(Server::start(folder, flags, &[]))));
}

/// Tools over MCP, plain methods over REST.
#[test]
fn every_case_over_http() {
    play_all(|folder, flags| Some(Box::new(OverHttp::start(folder, flags))));
}

impl Player for Server {
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        Server::tool(self, name, arguments)
    }

    fn method(&mut self, name: &str, params: Value) -> Value {
        self.request(name, params)
    }
}

struct OverHttp {
    mcp: Mcp,
    client: Client,
    _server: HttpServer,
}

impl OverHttp {
    fn start(folder: &Path, flags: &[&str]) -> Self {
        let server = HttpServer::start(folder, flags, &[]);
        Self { mcp: server.mcp(), client: server.connect(), _server: server }
    }
}

impl Player for OverHttp {
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.mcp.tool(name, arguments)
    }

    /// A failure is shown as the error it would be on stdio, a result must be the contract's to the letter.
    fn method(&mut self, name: &str, params: Value) -> Value {
        let response = self.client.send(&Request::post(&format!("/{name}"), params.to_string()));
        assert_eq!(response.status, 200, "{response}");
        let mut body = response.json();
        if body.get("isError").is_none() {
            check_keys(name, &body);
            let tagged = name != "list_files";
            assert_eq!(response.header("ETag").is_some(), tagged, "{response}");
            return json!({ "result": body });
        }
        assert_eq!(body["isError"], true, "{body}");
        assert_eq!(keys(&body), ["isError", "content", "error"], "{body}");
        let text = body["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Error: "), "{body}");
        assert_eq!(body["content"], json!([{ "type": "text", "text": text }]), "{body}");
        if body["error"]["code"] != -32602 {
            assert_eq!(text["Error: ".len()..], body["error"]["message"], "{body}");
        }
        json!({ "error": body["error"].take() })
    }
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The keys of 004 §3.1: all of them, no others.
fn check_keys(name: &str, body: &Value) {
    let mut found = keys(body);
    match name {
        "list_files" => {
            assert_eq!(found, ["files", "total_count", "directory"]);
            for file in body["files"].as_array().unwrap() {
                assert_eq!(keys(file), ["name", "modified", "lines"]);
            }
        }
        "read_file" => {
            if let Some(range) = body.get("range_requested") {
                assert!(keys(range).iter().all(|key| ["start_line", "end_line"].contains(key)));
                found.retain(|key| *key != "range_requested");
            }
            assert_eq!(found, ["content", "total_lines"]);
        }
        "edit_file" => {
            let all = ["success", "lines_modified", "file_created", "new_total_lines"];
            assert_eq!(found, all);
            assert_eq!(body["success"], true);
        }
        _ => panic!("no such method: {name}"),
    }
}
