//! A server with all its tools, in a folder of its own.

use std::sync::Arc;
use std::time::Duration;

use files::{Access, DiskOptions, DiskStore, Durability, Root};
use serde_json::Value;
use server::{Calls, Confirm, Level, Log, Options, Structured, ToolErrors};
use tokio::runtime::Runtime;
use tools::{CODE, FLAT, Limits, TEXT};

use crate::scratch::Scratch;

/// Longer than anything takes that does not hang. The fuzzer gives up after ten seconds.
pub const HANG: Duration = Duration::from_secs(8);
/// Bytes that a file may have: few, so that chance finds what is too large as well.
const MAX_SIZE: u64 = 16 * 1024;
/// What every case begins with.
const FILES: [(&str, &str); 3] = [
    ("a.txt", "one\ntwo\nthree\n"),
    ("b.rs", "/// Adds.\nfn add(a: u8, b: u8) -> u8 {\n    a + b\n}\n"),
    ("c.txt", "\u{feff}eins\r\nzwei\r\n\r\n\tdrei"),
];
/// Stands for the folder in what a client says: its path is another one each time.
const FOLDER: &str = "$DIR";

/// A server, and where its files are.
pub struct Serving {
    pub calls: Arc<Calls>,
    folder: Scratch,
}

impl Serving {
    pub fn new(confirm: Confirm) -> Self {
        let folder = Scratch::new();
        for (name, text) in FILES {
            folder.write(name, text);
        }
        let root = Arc::new(Root::open(folder.path()).expect("the folder is there"));
        let disk = DiskOptions { max_size: MAX_SIZE, durability: Durability::None };
        let store = DiskStore::open(Arc::clone(&root), disk);
        let options = Options {
            tools: FLAT.iter().chain(&TEXT).chain(&CODE).collect(),
            access: Access::ReadWrite,
            tool_errors: ToolErrors::Result,
            structured: Structured::On,
            confirm,
            observer: None,
            model: None,
            instructions: None,
        };
        let limits = Limits::new(MAX_SIZE, HANG / 2);
        let log = Log::new(Level::Error);
        Self { calls: Calls::new(root, Box::new(store), limits, options, log), folder }
    }

    /// What a client says, with the path of the folder in it.
    pub fn addressed(&self, said: &[u8]) -> Vec<u8> {
        let path = self.folder.path().display().to_string();
        let mut addressed = Vec::with_capacity(said.len());
        let mut rest = said;
        while let Some(at) = rest.windows(FOLDER.len()).position(|part| part == FOLDER.as_bytes()) {
            addressed.extend_from_slice(&rest[..at]);
            addressed.extend_from_slice(path.as_bytes());
            rest = &rest[at + FOLDER.len()..];
        }
        addressed.extend_from_slice(rest);
        addressed
    }
}

pub fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

/// A message of the server: JSON, of one kind, and never that something broke.
pub fn check_message(message: &[u8]) -> Value {
    let shown = String::from_utf8_lossy(message);
    let message: Value = serde_json::from_slice(message).unwrap_or_else(|e| panic!("{e}: {shown}"));
    assert!(message.is_object(), "{shown}");
    let data = &message["result"]["structuredContent"];
    for error in [&message["error"], &data["error"]] {
        assert_ne!(error["code"], -32603, "{shown}");
    }
    // What the code tools call the same.
    let code = data["code"].as_str().unwrap_or_default();
    assert!(!["INTERNAL_ERROR", "FILE_SYSTEM_ERROR"].contains(&code), "{shown}");
    message
}
