//! The way to the editor: what it is told, what it is asked, and its files.

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
use files::{Call, Turns};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::editor::{MessageError, Messages};

/// How often a thread that waits for the editor looks whether its call was taken back.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes that the editor has not read when those who have more to tell it begin to wait.
const MAX_UNWRITTEN_BYTES: usize = 8 << 20;

/// Updates that the protocol did not always have, and that editors of then stumble over.
const LATER: [&str; 2] = ["config_option_update", "usage_update"];

/// The connection, from the moment there is one.
#[derive(Default)]
pub struct Link {
    connection: OnceLock<ConnectionTo<Client>>,
    /// The editor does not say who it is, as it did not have to before these updates either.
    is_old: AtomicBool,
    /// Who changes a file of the editor's takes a turn, whichever session it is for.
    pub turns: Turns,
    /// Bytes of lines that were said and are not written, since the editor has not read enough.
    unwritten: watch::Sender<usize>,
}

impl Link {
    pub fn meet(&self, connection: &ConnectionTo<Client>) {
        self.connection.get_or_init(|| connection.clone());
    }

    /// Waits while the editor has much to read. Whoever has more to tell it without end does so before.
    pub async fn wait_until_read(&self) {
        let _ = self.unwritten.subscribe().wait_for(|bytes| *bytes < MAX_UNWRITTEN_BYTES).await;
    }

    /// Spares the editor what came later.
    pub fn spare(&self) {
        self.is_old.store(true, Ordering::Relaxed);
    }

    /// Tells the editor something about a session. What it cannot be told any more it need not know.
    pub fn update(&self, session: &str, update: &Value) {
        let is_later = update["sessionUpdate"].as_str().is_some_and(|kind| LATER.contains(&kind));
        if is_later && self.is_old.load(Ordering::Relaxed) {
            return;
        }
        let params = json!({ "sessionId": session, "update": update });
        if let (Some(connection), Ok(message)) =
            (self.connection.get(), UntypedMessage::new("session/update", params))
        {
            let _ = connection.send_notification(message);
        }
    }

    /// Asks a person to choose; the answer as the editor gave it, `null` if it gave none.
    pub async fn choose(&self, session: &str, tool_call: &Value, options: &Value) -> Value {
        let params = json!({ "sessionId": session, "toolCall": tool_call, "options": options });
        self.put::<RequestPermissionRequest>(params).await
    }

    /// Asks a person to fill in a form or to open a page; the answer in the same way.
    pub async fn elicit(&self, session: &str, mut params: Value) -> Value {
        params["sessionId"] = session.into();
        self.put::<CreateElicitationRequest>(params).await
    }

    async fn put<R: JsonRpcRequest + DeserializeOwned>(&self, params: Value) -> Value
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
        let Some(connection) = self.connection.get() else { return Err(Error::internal_error()) };
        connection.send_request(request).block_task().await
    }

    fn is_gone(&self) -> bool {
        self.connection.get().is_none_or(|connection| {
            connection.is_incoming_closed() || connection.termination().is_some()
        })
    }
}

/// The editor's files, as a session reaches them from the threads of its tools.
pub struct Buffers {
    pub link: Arc<Link>,
    /// Known once the session has begun.
    pub session: Arc<OnceLock<String>>,
    pub runtime: Handle,
}

impl Buffers {
    /// Sends a request and waits, as long as the call may.
    fn ask<R: JsonRpcRequest>(&self, request: R, call: &Call) -> Result<R::Response, MessageError> {
        if self.link.is_gone() {
            return Err(MessageError::Gone);
        }
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                answer = self.link.request(request) => answer.map_err(|error| sorted(&error)),
                () = tokio::time::sleep_until(call.deadline.into()) => Err(MessageError::TimedOut),
                () = taken_back(call) => Err(MessageError::Cancelled),
            }
        })
    }

    fn session(&self) -> String {
        self.session.get().cloned().unwrap_or_default()
    }
}

impl Messages for Buffers {
    fn read(&self, path: &Path, call: &Call) -> Result<String, MessageError> {
        self.ask(ReadTextFileRequest::new(self.session(), path), call).map(|answer| answer.content)
    }

    fn write(&self, path: &Path, text: &str, call: &Call) -> Result<(), MessageError> {
        if self.link.is_gone() {
            return Err(MessageError::Gone);
        }
        match self.ask(WriteTextFileRequest::new(self.session(), path, text), call) {
            Ok(_) => Ok(()),
            // It may have been sent, and nobody knows what became of it.
            Err(MessageError::Cancelled) => Err(MessageError::TimedOut),
            Err(_) if self.link.is_gone() => Err(MessageError::TimedOut),
            Err(error) => Err(error),
        }
    }
}

async fn taken_back(call: &Call) {
    while !call.cancel.is_set() {
        tokio::time::sleep(LOOK).await;
    }
}

/// What an editor's error means.
fn sorted(error: &Error) -> MessageError {
    if is_incoming_transport_closed(error) {
        return MessageError::Refused("it went away before it answered".into());
    }
    let detail =
        error.data.as_ref().map(|data| data.as_str().map_or(data.to_string(), ToOwned::to_owned));
    let words =
        detail.map_or(error.message.clone(), |detail| format!("{}: {detail}", error.message));
    MessageError::answered(i32::from(error.code).into(), words)
}
