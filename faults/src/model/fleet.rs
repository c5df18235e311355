//! Several servers of one folder, and a call of any of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::tools::{Call, Tool};
use crate::http::{self, Client, HttpServer};
use crate::server::{HANG, Server};

/// What a server answered, whichever way it was asked.
#[derive(Debug, Default)]
pub struct Seen {
    pub texts: Vec<String>,
    /// `structuredContent`, or the object of a plain method.
    pub data: Value,
    pub meta: Value,
    /// The `ETag` of a plain method over HTTP, empty if it has none; nothing where there are no headers.
    pub tag: Option<String>,
}

/// What it was refused with.
#[derive(Debug)]
pub struct Refused {
    /// A number, or a name that the code tools have for it.
    pub code: Value,
    pub message: String,
    /// The first text, where there are texts.
    pub text: Option<String>,
    /// What is wrong with the arguments, as an error of JSON-RPC has it.
    pub faults: Option<Vec<String>>,
}

pub type Observed = Result<Seen, Box<Refused>>;

const FLAGS: &[&[&str]] = &[
    &["--durability=none"],
    &["--durability=none", "--tool-errors=jsonrpc"],
    &["--durability=full"],
    &["--durability=none"],
    &["--durability=data"],
];
/// Those from here on are on HTTP.
const HTTP: usize = 3;

enum Process {
    Stdio(Server),
    /// The server ends with this.
    Http(HttpServer, Client),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By its input, or by the signal for it.
    Order,
    Kill,
}

pub struct Fleet {
    root: PathBuf,
    processes: Vec<Process>,
    next_id: usize,
}

impl Fleet {
    pub fn start(root: &Path) -> Self {
        let processes = (0..FLAGS.len()).map(|which| start(root, which)).collect();
        Self { root: root.to_owned(), processes, next_id: 1 }
    }

    pub fn len(&self) -> usize {
        self.processes.len()
    }

    pub fn is_http(which: usize) -> bool {
        which >= HTTP
    }

    pub fn name(which: usize) -> String {
        let transport = if which < HTTP { "stdio" } else { "http" };
        format!("{transport} {which} {}", FLAGS[which].join(" "))
    }

    /// Ends one that idles, and starts it again; why it did not end well.
    pub fn restart(&mut self, which: usize, ending: Ending) -> Result<(), String> {
        let ended = match (&mut self.processes[which], ending) {
            (Process::Stdio(server), Ending::Order) => server.end(),
            (Process::Http(server, _), Ending::Order) => server.end(),
            (Process::Stdio(server), Ending::Kill) => {
                server.kill();
                Ok(())
            }
            // It is killed when it is dropped.
            (Process::Http(..), Ending::Kill) => Ok(()),
        };
        self.processes[which] = start(&self.root, which);
        ended
    }

    /// Makes a call; `is_new`: as clients of 2026-07-28 make it.
    pub fn ask(&mut self, which: usize, call: &Call, is_new: bool) -> Result<Observed, String> {
        let (tool, mut arguments) = (call.tool, call.arguments.clone());
        let mut all: Option<Seen> = None;
        loop {
            let call = Call { arguments: arguments.clone(), ..call.clone() };
            let observed = self.ask_once(which, &call, is_new)?;
            let (Tool::SearchFiles, Ok(page)) = (tool, &observed) else { return Ok(observed) };
            let next = page.data["next_cursor"].clone();
            let mut page = observed.unwrap_or_default();
            if let Some(before) = all.take() {
                page.data = merged(before.data, &page.data);
            }
            if next.is_null() {
                return Ok(Ok(page));
            }
            arguments["cursor"] = next;
            all = Some(page);
        }
    }

    fn ask_once(&mut self, which: usize, call: &Call, is_new: bool) -> Result<Observed, String> {
        let (tool, name) = (call.tool, call.tool.name());
        let id = self.next_id;
        self.next_id += 1;
        match &mut self.processes[which] {
            Process::Stdio(server) => {
                let params = json!({ "name": name, "arguments": call.arguments });
                let sent = if tool.is_plain() || tool.is_resource() {
                    server.request(name, &call.arguments)
                } else {
                    server.request("tools/call", &params)
                };
                let id = sent.map_err(|why| format!("{why:?}"))?;
                let answer = server.receive(HANG).map_err(|why| format!("{why:?}"))?.0;
                if answer["id"] != id {
                    return Err(format!("the answer is of another call: {answer}"));
                }
                Ok(read(tool, &answer, None))
            }
            Process::Http(_, client) => {
                let request = request(call, id, is_new);
                let answer = client.send(&request).map_err(|why| why.to_string())?;
                if answer.status != 200 {
                    return Err(format!("answered {}", answer.short()));
                }
                let body = answer.json();
                if !tool.is_plain() {
                    return Ok(read(tool, &body, None));
                }
                if body["isError"] == true {
                    let text = body["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                    let refused = refused(&body["error"]);
                    return Ok(Err(Box::new(Refused { text: Some(text), ..refused })));
                }
                let tag = answer.header("etag").unwrap_or_default().to_owned();
                Ok(read(tool, &json!({ "result": body }), Some(tag)))
            }
        }
    }
}

fn start(root: &Path, which: usize) -> Process {
    let flags = [&["--tools=all", "--max-size=1"], FLAGS[which]].concat();
    if which < HTTP {
        return Process::Stdio(Server::start(root, &flags));
    }
    let server = HttpServer::start(root, &flags, &[]);
    let client = server.connect();
    Process::Http(server, client)
}

fn request(call: &Call, id: usize, is_new: bool) -> Vec<u8> {
    let name = call.tool.name();
    if call.tool.is_plain() {
        let condition = call.if_match.as_ref().map(|hash| format!("If-Match: \"{hash}\"\r\n"));
        return http::post(
            &format!("/{name}"),
            &condition.unwrap_or_default(),
            &call.arguments.to_string(),
        );
    }
    let (method, mut params) = if call.tool.is_resource() {
        (name, call.arguments.clone())
    } else {
        ("tools/call", json!({ "name": name, "arguments": call.arguments }))
    };
    let mut headers = "MCP-Protocol-Version: 2025-06-18\r\n".to_owned();
    if is_new && !call.tool.is_resource() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "faults", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
        );
    }
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    http::post("/mcp", &headers, &message.to_string())
}

/// A message of JSON-RPC as what it says.
fn read(tool: Tool, message: &Value, tag: Option<String>) -> Observed {
    if let Some(error) = message.get("error") {
        return Err(Box::new(refused(error)));
    }
    let result = &message["result"];
    if tool.is_plain() {
        return Ok(Seen { data: result.clone(), tag, ..Seen::default() });
    }
    if tool == Tool::ListResources {
        let row = |row: &Value| {
            json!({
                "name": row["name"],
                "size": row["size"],
                "modified": row["annotations"]["lastModified"],
            })
        };
        let rows = result["resources"].as_array().into_iter().flatten().map(row);
        return Ok(Seen { data: rows.collect(), ..Seen::default() });
    }
    let blocks = if tool == Tool::ReadResource { "contents" } else { "content" };
    let blocks = result[blocks].as_array().into_iter().flatten();
    let texts: Vec<_> =
        blocks.filter_map(|block| block["text"].as_str()).map(String::from).collect();
    let data = &result["structuredContent"];
    if result["isError"] == true {
        // The code tools have it at the top.
        let error = if data["error"].is_object() { &data["error"] } else { data };
        let text = Some(texts.first().cloned().unwrap_or_default());
        return Err(Box::new(Refused { text, faults: None, ..refused(error) }));
    }
    Ok(Seen { texts, data: data.clone(), meta: result["_meta"].clone(), tag })
}

/// An error as it is told, whatever it is in.
fn refused(error: &Value) -> Refused {
    let faults = error["data"]["validation_errors"].as_array().into_iter().flatten();
    let faults = faults.map(|fault| fault.as_str().unwrap_or_default().to_owned()).collect();
    Refused {
        code: error["code"].clone(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        text: None,
        faults: Some(faults),
    }
}

/// Two pages of a search as one.
fn merged(mut one: Value, other: &Value) -> Value {
    for file in other["files"].as_array().into_iter().flatten() {
        let files = one["files"].as_array_mut().unwrap();
        match files.last_mut().filter(|last| last["path"] == file["path"]) {
            Some(last) => {
                let more = file["lines"].as_array().cloned().unwrap_or_default();
                if let Some(lines) = last["lines"].as_array_mut() {
                    lines.extend(more);
                }
            }
            None => files.push(file.clone()),
        }
    }
    one
}
