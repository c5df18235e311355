//! HTTP: every status and its body, who is let in, both protocol eras, the plain methods, large texts both ways.

mod access;
mod flags;
mod rest;
mod sizes;
mod statuses;
mod versions;

use crate::harness::http::{Client, HttpServer, Request, Response};
use crate::harness::{Folder, failure, fault, initialize, log_lines, modern, texts};
use serde_json::{Value, json};

/// Every path that takes calls.
const CALLS: [&str; 5] = ["/", "/mcp", "/list_files", "/read_file", "/edit_file"];
const MCP: [&str; 2] = ["/", "/mcp"];
const REST: [&str; 3] = ["/list_files", "/read_file", "/edit_file"];

/// A request that this path answers with 200.
fn proper(path: &str) -> Request {
    match path {
        "/" | "/mcp" => Request::mcp("tools/list", json!({})).to(path),
        "/list_files" => Request::post(path, "{}"),
        _ => Request::post(path, r#"{"name":"missing.txt"}"#),
    }
}

fn assert_alive(server: &HttpServer) {
    let response = server.send(&Request::mcp("ping", json!({})));
    assert_eq!((response.status, &response.json()["result"]), (200, &json!({})), "{response}");
}

/// That it is a refusal of the transport: an error and nothing else.
fn refused(response: &Response, status: u16, code: i64) -> String {
    let message = response.refusal(status, code);
    let expected = json!({ "error": { "code": code, "message": message } });
    assert_eq!(response.json(), expected, "{response}");
    message
}

/// Compares without printing megabytes when it fails.
fn assert_same(found: &str, expected: &str, what: &str) {
    let differs =
        found.bytes().zip(expected.bytes()).position(|(found, expected)| found != expected);
    let lengths = (found.len(), expected.len());
    assert!(found == expected, "{what}: lengths {lengths:?}, first difference at {differs:?}");
}
