//! The queue of messages from Codex, bounded in bytes. A sender waits until there is room.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tools::arguments_memory;

use super::CodexMessage;

/// Limit of the bytes that queued messages take in memory. A larger message is queued alone.
const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Bytes that a message takes besides its contents.
const MESSAGE_OVERHEAD: usize = 256;

/// A queued message, with the number of its Codex. Its bytes count until it is dropped.
pub struct QueuedMessage {
    pub number: u64,
    pub message: CodexMessage,
    #[expect(dead_code, reason = "held, not read")]
    permit: Option<OwnedSemaphorePermit>,
}

/// The sending end of the queue.
#[derive(Clone)]
pub struct MessageSender {
    queue: mpsc::UnboundedSender<QueuedMessage>,
    permits: Arc<Semaphore>,
}

pub type MessageReceiver = mpsc::UnboundedReceiver<QueuedMessage>;

pub fn queue() -> (MessageSender, MessageReceiver) {
    let (queue, messages) = mpsc::unbounded_channel();
    (MessageSender { queue, permits: Arc::new(Semaphore::new(QUEUED_BYTES_MAX)) }, messages)
}

impl MessageSender {
    pub async fn send(&self, number: u64, message: CodexMessage) {
        let bytes = match &message {
            CodexMessage::Notification { method, params } => {
                MESSAGE_OVERHEAD + method.len() + arguments_memory(params)
            }
            CodexMessage::Request { id, method, params } => {
                MESSAGE_OVERHEAD + method.len() + arguments_memory(id) + arguments_memory(params)
            }
            // There is one of these for each Codex, and it must not wait.
            CodexMessage::Ended(_) => 0,
        };
        let bytes = u32::try_from(bytes.min(QUEUED_BYTES_MAX)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let permit = match bytes {
            0 => None,
            bytes => Arc::clone(&self.permits).acquire_many_owned(bytes).await.ok(),
        };
        let _ = self.queue.send(QueuedMessage { number, message, permit });
    }
}
