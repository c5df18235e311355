//! The two file messages of ACP, and their errors.

use std::path::Path;

use files::Call;

/// Limit of the characters of an editor's error message that are passed on.
const ERROR_CHARS_MAX: usize = 300;

/// The two file messages of ACP, as a connection sends them. Called on a blocking thread.
pub trait EditorFiles: Send + Sync {
    /// Reads the whole text of a file, by its absolute path.
    fn read(&self, path: &Path, call: &Call) -> Result<String, MessageError>;

    /// Replaces the whole text of a file, new or not. Once the message was sent, the only error is
    /// [`MessageError::TimedOut`], unless the editor itself answered with another.
    fn write(&self, path: &Path, text: &str, call: &Call) -> Result<(), MessageError>;
}

/// Errors of a message to the editor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the editor does not know the message")]
    UnknownMethod,
    #[error("the editor has no such file")]
    NoSuchFile,
    /// The editor's error message.
    #[error("the editor refused: {}", .0.chars().take(ERROR_CHARS_MAX).collect::<String>())]
    Refused(String),
    /// The connection is closed, and nothing was sent.
    #[error("the editor is gone")]
    Disconnected,
    /// The message was sent, and no answer came until the deadline.
    #[error("the editor did not answer")]
    TimedOut,
    /// The call was cancelled. Nothing was sent, or only a read.
    #[error("the call was taken back")]
    Cancelled,
}

impl MessageError {
    /// Classifies a JSON-RPC error. Editors word a missing file in several ways.
    pub fn from_json_rpc(code: i64, message: impl Into<String>) -> Self {
        const NO_SUCH_FILE: [&str; 4] =
            ["no such file", "file not found", "does not exist", "enoent"];
        let message = message.into();
        match code {
            -32601 => Self::UnknownMethod,
            -32002 => Self::NoSuchFile,
            _ => {
                let lower = message.to_lowercase();
                let is_missing = NO_SUCH_FILE.iter().any(|words| lower.contains(words));
                if is_missing { Self::NoSuchFile } else { Self::Refused(message) }
            }
        }
    }
}
