//! An open session: its thread of Codex, its tools, and its settings as Codex takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::lock;
use crate::modes::{Choices, Mode, Sent, Setting};
use crate::session::Session;
use crate::workplace::Workplace;

/// An open session, with its tools and the Codex that runs its thread.
pub struct OpenSession {
    pub session: Arc<Session>,
    #[expect(dead_code, reason = "held, not read: the tools go with it")]
    workplace: Workplace,
    /// Parameters of the thread, sent to Codex whenever it loads the thread.
    pub terms: Value,
    /// Number of the Codex that has the thread loaded.
    loaded_in: AtomicU64,
}

impl OpenSession {
    /// Makes an open session. `codex`: the number of the Codex that has the thread loaded.
    pub fn new(session: Arc<Session>, workplace: Workplace, terms: Value, codex: u64) -> Self {
        Self { session, workplace, terms, loaded_in: AtomicU64::new(codex) }
    }

    pub fn is_loaded_in(&self, codex: u64) -> bool {
        self.loaded_in.load(Ordering::Relaxed) == codex
    }

    pub fn set_loaded_in(&self, codex: u64) {
        self.loaded_in.store(codex, Ordering::Relaxed);
    }

    /// Returns the current values of a setting, and the parameters that set them for a running thread.
    pub fn settings(&self, setting: Setting) -> (Sent, Value) {
        let state = lock(&self.session.state);
        let Choices { mode, model, effort, .. } = &state.choices;
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
        (state.choices.sent(setting), params)
    }
}
