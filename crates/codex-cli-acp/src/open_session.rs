//! An open session: its thread of Codex, its tools, and its settings as Codex takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::lock;
use crate::modes::Mode;
use crate::session::Session;
use crate::session_options::{SentOptions, SessionOptions, Setting};
use crate::session_tools::SessionTools;

/// An open session, with its tools and the Codex that runs its thread.
pub struct OpenSession {
    pub session: Arc<Session>,
    #[expect(dead_code, reason = "held, not read: the tools go with it")]
    tools: SessionTools,
    /// Parameters of the thread, sent to Codex whenever it loads the thread.
    pub thread_params: Value,
    /// Number of the Codex that has the thread loaded.
    loaded_in: AtomicU64,
}

impl OpenSession {
    /// Makes an open session. `codex`: the number of the Codex that has the thread loaded.
    pub fn new(
        session: Arc<Session>,
        tools: SessionTools,
        thread_params: Value,
        codex: u64,
    ) -> Self {
        Self { session, tools, thread_params, loaded_in: AtomicU64::new(codex) }
    }

    pub fn is_loaded_in(&self, codex: u64) -> bool {
        self.loaded_in.load(Ordering::Relaxed) == codex
    }

    pub fn set_loaded_in(&self, codex: u64) {
        self.loaded_in.store(codex, Ordering::Relaxed);
    }

    /// Returns the current values of a setting, and the parameters that set them for a running thread.
    pub fn settings(&self, setting: Setting) -> (SentOptions, Value) {
        let state = lock(&self.session.state);
        let SessionOptions { mode, model, effort, .. } = &state.options;
        let thread = self.session.id();
        let params = match setting {
            Setting::Mode => {
                let sandbox = match (mode, &state.auto_sandbox) {
                    (Mode::Auto, Some(sandbox)) => sandbox.clone(),
                    _ => mode.sandbox_policy(&self.session.folders),
                };
                let policy = mode.approval_policy();
                json!({ "threadId": thread, "approvalPolicy": policy, "sandboxPolicy": sandbox })
            }
            Setting::Model => json!({ "threadId": thread, "model": model, "effort": effort }),
        };
        (state.options.sent(setting), params)
    }
}
