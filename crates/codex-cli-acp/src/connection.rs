//! The connection to the editor: updates, questions, and the messages about files.

pub mod transport;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ReadTextFileRequest, RequestPermissionRequest, WriteTextFileRequest,
};
use agent_client_protocol::{
    Client, Error, JsonRpcRequest, UntypedMessage, is_incoming_transport_closed,
};
use files::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::editor::{EditorFiles, MessageError, PathsInUse};

/// Interval at which a thread that waits for the editor checks whether its call was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Unwritten bytes from which on senders of updates wait for the editor to read.
const UNWRITTEN_BYTES_MAX: usize = 8 << 20;

/// Updates that later versions of the protocol added, and that older editors fail on.
const NEWER_UPDATES: [&str; 2] = ["config_option_update", "usage_update"];

/// The connection to the editor, once it is open.
#[derive(Default)]
pub struct EditorConnection {
    acp: OnceLock<ConnectionTo<Client>>,
    /// Set if the editor sent no `clientInfo`, which was optional before these updates too.
    omits_newer_updates: AtomicBool,
    /// Paths of the editor's files that are being changed, by whichever session.
    pub paths_in_use: PathsInUse,
    /// Bytes of lines that are queued and not written, since the editor does not read fast enough.
    unwritten: watch::Sender<usize>,
}

impl EditorConnection {
    pub fn set(&self, connection: &ConnectionTo<Client>) {
        self.acp.get_or_init(|| connection.clone());
    }

    /// Waits while the editor has much to read. Senders of an unbounded number of updates call this first.
    pub async fn wait_until_read(&self) {
        let _ = self.unwritten.subscribe().wait_for(|bytes| *bytes < UNWRITTEN_BYTES_MAX).await;
    }

    /// Leaves out the updates that older editors fail on.
    pub fn omit_newer_updates(&self) {
        self.omits_newer_updates.store(true, Ordering::Relaxed);
    }

    /// Sends a session update. It is dropped if the editor is gone.
    pub fn update(&self, session: &str, update: &Value) {
        let is_newer =
            update["sessionUpdate"].as_str().is_some_and(|kind| NEWER_UPDATES.contains(&kind));
        if is_newer && self.omits_newer_updates.load(Ordering::Relaxed) {
            return;
        }
        let params = json!({ "sessionId": session, "update": update });
        if let (Some(connection), Ok(message)) =
            (self.acp.get(), UntypedMessage::new("session/update", params))
        {
            let _ = connection.send_notification(message);
        }
    }

    /// Asks a person to choose. Returns the editor's answer as it came, `null` if there is none.
    pub async fn choose(&self, session: &str, tool_call: &Value, options: &Value) -> Value {
        let params = json!({ "sessionId": session, "toolCall": tool_call, "options": options });
        self.request_as_json::<RequestPermissionRequest>(params).await
    }

    /// Asks a person to fill in a form or to open a page. Returns the answer like [`EditorConnection::choose`].
    pub async fn elicit(&self, session: &str, mut params: Value) -> Value {
        params["sessionId"] = session.into();
        self.request_as_json::<CreateElicitationRequest>(params).await
    }

    async fn request_as_json<R: JsonRpcRequest + DeserializeOwned>(&self, params: Value) -> Value
    where
        R::Response: Serialize,
    {
        let Ok(request) = serde_json::from_value::<R>(params) else { return Value::Null };
        match self.request(request).await {
            Ok(answer) => serde_json::to_value(answer).unwrap_or_default(),
            Err(_) => Value::Null,
        }
    }

    async fn request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, Error> {
        let Some(connection) = self.acp.get() else { return Err(Error::internal_error()) };
        connection.send_request(request).block_task().await
    }

    fn is_gone(&self) -> bool {
        self.acp.get().is_none_or(|connection| {
            connection.is_incoming_closed() || connection.termination().is_some()
        })
    }
}

/// Files of the editor for a session, called on the threads of its tools.
pub struct ConnectedFiles {
    pub connection: Arc<EditorConnection>,
    /// The session id, known once the session has begun.
    pub session: Arc<OnceLock<String>>,
    pub runtime: Handle,
}

impl ConnectedFiles {
    /// Sends a request and waits for the answer until the deadline of the call.
    fn request<R: JsonRpcRequest>(
        &self,
        request: R,
        call: &Call,
    ) -> Result<R::Response, MessageError> {
        if self.connection.is_gone() {
            return Err(MessageError::Disconnected);
        }
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                answer = self.connection.request(request) => answer.map_err(|error| message_error(&error)),
                () = tokio::time::sleep_until(call.deadline.into()) => Err(MessageError::TimedOut),
                () = cancelled(call) => Err(MessageError::Cancelled),
            }
        })
    }

    fn session(&self) -> String {
        self.session.get().cloned().unwrap_or_default()
    }
}

impl EditorFiles for ConnectedFiles {
    fn read(&self, path: &Path, call: &Call) -> Result<String, MessageError> {
        self.request(ReadTextFileRequest::new(self.session(), path), call)
            .map(|answer| answer.content)
    }

    fn write(&self, path: &Path, text: &str, call: &Call) -> Result<(), MessageError> {
        if self.connection.is_gone() {
            return Err(MessageError::Disconnected);
        }
        match self.request(WriteTextFileRequest::new(self.session(), path, text), call) {
            Ok(_) => Ok(()),
            // The write may have been sent, so its outcome is not known.
            Err(MessageError::Cancelled) => Err(MessageError::TimedOut),
            Err(_) if self.connection.is_gone() => Err(MessageError::TimedOut),
            Err(error) => Err(error),
        }
    }
}

async fn cancelled(call: &Call) {
    while !call.cancel.is_set() {
        tokio::time::sleep(CANCEL_CHECK_INTERVAL).await;
    }
}

/// Classifies an error of the editor.
fn message_error(error: &Error) -> MessageError {
    if is_incoming_transport_closed(error) {
        return MessageError::Refused("it went away before it answered".into());
    }
    let detail =
        error.data.as_ref().map(|data| data.as_str().map_or(data.to_string(), ToOwned::to_owned));
    let message =
        detail.map_or(error.message.clone(), |detail| format!("{}: {detail}", error.message));
    MessageError::from_json_rpc(i32::from(error.code).into(), message)
}
