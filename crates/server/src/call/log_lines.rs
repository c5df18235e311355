//! Log lines: of calls, of requests that were refused, of the start and the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use files::Sandbox;
use rmcp::model::RequestId;
use serde_json::{Map, Value};
use tools::{Failure, ToolOutput};

use crate::call::Calls;
use crate::call::pending_call::CallRequest;
use crate::error_codes;
use crate::log::Level;
use crate::message::ErrorResponse;

/// A start that takes longer is worth a warning.
const STARTUP_TARGET: Duration = Duration::from_millis(100);

impl Calls {
    /// Logs a request that was refused before it became a call.
    pub fn log_refusal(&self, refusal: &ErrorResponse) {
        let mut line = Map::new();
        line.insert("request_id".into(), refusal.id.as_ref().map(short).into());
        line.insert("outcome".into(), "error".into());
        line.insert("code".into(), refusal.code.into());
        line.insert("category".into(), "client".into());
        self.log.write_refusal("refused", line);
    }

    /// Logs a connection that was denied access.
    pub fn log_denied_access(&self, status: u16) {
        let mut line = Map::new();
        line.insert("outcome".into(), "error".into());
        line.insert("status".into(), status.into());
        line.insert("category".into(), "client".into());
        self.log.write_refusal("access denied", line);
    }

    /// Logs a request that calls no tool.
    pub fn log_request(&self, method: &str, id: &RequestId) {
        let mut line = Map::new();
        line.insert("operation".into(), method.into());
        line.insert("request_id".into(), short(id).into());
        self.log.write(Level::Debug, "request", line);
    }

    /// Logs that the client has gone away.
    pub fn log_end(&self, error: &std::io::Error) {
        let mut line = Map::new();
        line.insert("message".into(), error.to_string().into());
        self.log.write(Level::Warn, "responses cannot be written", line);
    }

    /// Logs the start: the first line of the log.
    pub fn announce(&self, transport: &str, sandbox: &Sandbox, started: Instant) {
        let took = started.elapsed();
        let mut line = Map::new();
        line.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        line.insert("transport".into(), transport.into());
        let tools: Vec<_> = self.options.offered().map(|tool| tool.name).collect();
        line.insert("tools".into(), tools.into());
        line.insert("sandbox".into(), sandbox.to_string().into());
        line.insert("startup_ms".into(), millis(took));
        self.log.write(Level::Info, "ready", line);
        if let Sandbox::Failed(reason) = sandbox {
            let mut line = Map::new();
            line.insert("message".into(), reason.as_str().into());
            self.log.write(Level::Warn, "the sandbox could not be entered", line);
        }
        if took > STARTUP_TARGET {
            let mut line = Map::new();
            line.insert("startup_ms".into(), millis(took));
            self.log.write(Level::Warn, "startup time exceeded target", line);
        }
    }

    /// Logs panics from now on: where, and nothing of what was being worked on.
    pub fn log_panics(self: &Arc<Self>) {
        let calls = Arc::clone(self);
        std::panic::set_hook(Box::new(move |panic| {
            let mut line = Map::new();
            line.insert("at".into(), panic.location().map(ToString::to_string).into());
            calls.log.write(Level::Error, "panic", line);
        }));
    }

    /// Logs a call that is over.
    pub fn log_call(
        &self,
        request: &CallRequest,
        lock_wait: Duration,
        outcome: &Result<ToolOutput, Failure>,
    ) {
        let level = match outcome {
            Ok(_) => Level::Info,
            Err(failure) if error_codes::code(failure.kind).category == "server" => Level::Error,
            Err(_) => Level::Warn,
        };
        if !self.log.enabled(level) {
            return;
        }
        let mut line = Map::new();
        line.insert("operation".into(), request.tool.name.into());
        line.insert("file".into(), request.targets.first().cloned().into());
        line.insert("request_id".into(), short(&request.id).into());
        line.insert("duration_ms".into(), millis(request.since.elapsed()));
        line.insert("lock_wait_ms".into(), millis(lock_wait));
        match outcome {
            Ok(_) => drop(line.insert("outcome".into(), "ok".into())),
            Err(failure) => {
                let code = error_codes::code_of(request.tool, failure.kind);
                line.insert("outcome".into(), "error".into());
                line.insert("code".into(), code.number.into());
                line.insert("category".into(), code.category.into());
                line.insert("message".into(), code.about.into());
            }
        }
        self.log.write(level, "call", line);
    }
}

/// An id as the log shows it: it may be any text that a client likes.
fn short(id: &impl ToString) -> String {
    id.to_string().chars().take(80).collect()
}

fn millis(time: Duration) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a duration in a log")]
    let millis = time.as_micros() as f64 / 1000.0;
    millis.into()
}
