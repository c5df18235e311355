//! Modes of a session: what Codex may do without asking. Pure functions.

use serde_json::{Value, json};

/// Permissions of Codex in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reads only: this program's tools refuse to write, and Codex's commands run in a read-only sandbox.
    ReadOnly,
    /// Works in the session's folders. A person is asked before this program's tools write.
    #[default]
    Auto,
    /// Permits anything, without asking.
    FullAccess,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Auto, Self::FullAccess];

    pub fn id(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Auto => "auto",
            Self::FullAccess => "full-access",
        }
    }

    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }

    /// Returns the mode that matches Codex's own configuration.
    pub fn configured(config: &Value) -> Self {
        match config["sandbox_mode"].as_str() {
            Some("read-only") => Self::ReadOnly,
            Some("danger-full-access") if config["approval_policy"] == "never" => Self::FullAccess,
            _ => Self::Auto,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "Read only",
            Self::Auto => "Auto",
            Self::FullAccess => "Full access",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::ReadOnly => "Reads files and answers questions; edits are refused",
            Self::Auto => {
                "Edits and runs commands in the session's folders; asks before it edits or leaves them"
            }
            Self::FullAccess => "Edits and runs anything without asking",
        }
    }

    /// Returns the approval policy: when Codex asks before it acts itself.
    pub fn approval_policy(self) -> &'static str {
        match self {
            Self::ReadOnly | Self::Auto => "on-request",
            Self::FullAccess => "never",
        }
    }

    /// Returns the sandbox for `thread/start`.
    pub fn sandbox(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Auto => "workspace-write",
            Self::FullAccess => "danger-full-access",
        }
    }

    /// Returns the sandbox policy for a running thread.
    pub fn sandbox_policy(self, folders: &[String]) -> Value {
        match self {
            Self::ReadOnly => json!({ "type": "readOnly", "networkAccess": false }),
            Self::Auto => json!({
                "type": "workspaceWrite", "writableRoots": folders, "networkAccess": false,
                "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
            }),
            Self::FullAccess => json!({ "type": "dangerFullAccess" }),
        }
    }
}

/// Returns the modes for the answer to `session/new` and similar requests.
pub fn modes(current: Mode) -> Value {
    let all = Mode::ALL.map(
        |mode| json!({ "id": mode.id(), "name": mode.name(), "description": mode.description() }),
    );
    json!({ "currentModeId": current.id(), "availableModes": all })
}
