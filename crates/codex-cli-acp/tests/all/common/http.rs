//! The tools of a session, called over HTTP as Codex calls them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::TIMEOUT;

/// Address and token of the tools of a session.
#[derive(Clone)]
pub struct Tools {
    address: String,
    authorization: String,
}

impl Tools {
    /// Reads them from the program's `thread/start` request.
    pub fn of(start: &Value) -> Self {
        let config = start["params"]["config"].as_object().unwrap();
        let is_ours = |(name, _): &(&String, &Value)| name.starts_with("mcp_servers.");
        let (_, server) = config.iter().find(is_ours).unwrap();
        let address = server["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        Self {
            address: address.strip_suffix("/mcp").unwrap().to_owned(),
            authorization: server["http_headers"]["Authorization"].as_str().unwrap().to_owned(),
        }
    }

    /// Calls a tool, with `_meta` if there is any. Returns its text, as an error if the call failed.
    pub fn call(&self, tool: &str, arguments: &Value, meta: &Value) -> Result<String, String> {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if !meta.is_null() {
            params["_meta"] = meta.clone();
        }
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answer = self.post("/mcp", &request);
        let result = &answer["result"];
        let texts = result["content"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        let text: String = texts.filter_map(|block| block["text"].as_str()).collect();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let Self { address, authorization } = self;
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {authorization}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        let mut length = None;
        let mut is_chunked = false;
        while line != "\r\n" {
            line.clear();
            answer.read_line(&mut line).unwrap();
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>().unwrap());
            }
            is_chunked |= header.starts_with("transfer-encoding: chunked");
        }
        let mut bytes = Vec::new();
        while is_chunked {
            line.clear();
            answer.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let at = bytes.len();
            bytes.resize(at + size, 0);
            answer.read_exact(&mut bytes[at..]).unwrap();
            answer.read_line(&mut line).unwrap();
            is_chunked = size > 0;
        }
        if let Some(length) = length {
            bytes.resize(length, 0);
            answer.read_exact(&mut bytes).unwrap();
        }
        serde_json::from_slice(&bytes).unwrap()
    }
}
