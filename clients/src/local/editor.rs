//! Our server on stdio, asked without an SDK in between.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use super::cases::With;
use crate::Outcome;
use crate::program::Program;
use crate::scene::Scene;

pub const PROTOCOL: &str = "2025-11-25";

/// Seconds for one answer of the model.
const TIMEOUT: &str = "90";

pub struct Editor {
    program: Program,
    with: With,
    last: u64,
}

/// What came of a call.
pub struct Called {
    /// What a person was shown and agreed to, if they were asked.
    pub shown: Option<String>,
    pub answer: Value,
    /// How often its progress was told.
    pub progress: usize,
}

impl Editor {
    pub fn start(scene: &Scene, with: With, base_url: &str, key: &str) -> Outcome<Self> {
        let confirm = if with == With::Asking { "--confirm=always" } else { "--confirm=never" };
        let model = with.model();
        let mut command = Command::new(&scene.binary);
        command.args(scene.stdio_arguments(&["--tools=code", confirm]));
        command.env("FILE_EDITOR_LLM_BASE_URL", base_url).env("FILE_EDITOR_LLM_MODEL", model);
        command.env("FILE_EDITOR_LLM_API_KEY", key).env("FILE_EDITOR_LLM_TIMEOUT", TIMEOUT);
        let program = Program::start(&mut command, Instant::now() + PATIENCE)?;
        let mut editor = Self { program, with, last: 0 };
        let client = json!({ "name": "local", "version": "1" });
        let params =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        let id = editor.send("initialize", &params)?;
        editor.answer(id)?;
        editor.notify("notifications/initialized", &json!({}))?;
        Ok(editor)
    }

    pub fn send(&mut self, method: &str, params: &Value) -> Outcome<u64> {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.program.say(&request.to_string())?;
        Ok(id)
    }

    pub fn notify(&mut self, method: &str, params: &Value) -> Outcome<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.program.say(&message.to_string())
    }

    /// The answer to a request, and how often its progress was told before.
    pub fn answer(&mut self, id: u64) -> Outcome<(Value, usize)> {
        let mut progress = 0;
        loop {
            let line = self.program.hear()?;
            let Ok(mut said) = serde_json::from_str::<Value>(&line) else {
                return Err(self.program.wrong(&format!("it says {line}")));
            };
            if said["method"] == "notifications/progress" {
                progress += 1;
            } else if said["id"] == id && said["result"].is_object() {
                return Ok((said["result"].take(), progress));
            } else {
                return Err(self.program.wrong(&format!("it says {line}")));
            }
        }
    }

    pub fn call(&mut self, arguments: &Value) -> Outcome<Called> {
        let mut params = edit(arguments);
        if self.with == With::Asking {
            speak_for_itself(&mut params);
        }
        let id = self.send("tools/call", &params)?;
        let (answer, progress) = self.answer(id)?;
        let question = &answer["inputRequests"]["confirm"]["params"]["message"];
        let Some(shown) = question.as_str().map(String::from) else {
            return Ok(Called { shown: None, answer, progress });
        };
        params["requestState"] = answer["requestState"].clone();
        params["inputResponses"] = json!({ "confirm": { "action": "accept", "content": {} } });
        let id = self.send("tools/call", &params)?;
        let (answer, _) = self.answer(id)?;
        Ok(Called { shown: Some(shown), answer, progress })
    }

    pub fn finish(self) -> Outcome<()> {
        self.program.finish()?.expect(0).map(|_| ())
    }
}

/// A call whose progress is told.
pub fn edit(arguments: &Value) -> Value {
    let meta = json!({ "progressToken": "progress" });
    json!({ "name": "ai_edit_code", "arguments": arguments, "_meta": meta })
}

/// Makes it a call of 2026-07-28, which needs no handshake: it is answered with a question, and comes again.
fn speak_for_itself(params: &mut Value) {
    for (name, value) in [
        ("protocolVersion", json!("2026-07-28")),
        ("clientInfo", json!({ "name": "local", "version": "1" })),
        ("clientCapabilities", json!({ "elicitation": {} })),
    ] {
        params["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
    }
}
