//! Progress notifications and questions sent to the client while its call runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ProgressToken,
    RequestId,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::call::progress::CallProgress;
use crate::lock::lock;
use crate::memory_budget::{MemoryBudget, Permit};
use crate::{json_arguments, message};

/// Between two progress notifications of a call.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of notifications that may wait for a client to read them. More are not sent.
const UNREAD_MAX: usize = 64 << 10;
/// Bytes of requests that may wait for a client to read them. Further ones are sent later.
const UNREAD_REQUESTS_MAX: usize = 1 << 20;

/// The way to a client besides the answer to its call.
#[derive(Clone)]
pub struct ClientChannel {
    send: Arc<dyn Fn(Value, Option<Permit>) + Send + Sync>,
    interval: Duration,
    unread: Arc<MemoryBudget>,
    unread_requests: Arc<MemoryBudget>,
    /// `None` if the client's answers could not be received.
    pub questions: Option<Arc<Questions>>,
}

impl ClientChannel {
    /// `send` sends a message, and drops its permit when the client has read it.
    pub fn new(
        send: impl Fn(Value, Option<Permit>) + Send + Sync + 'static,
        questions: Option<Arc<Questions>>,
    ) -> Self {
        let unread = MemoryBudget::new(UNREAD_MAX);
        let unread_requests = MemoryBudget::new(UNREAD_REQUESTS_MAX);
        Self { send: Arc::new(send), interval: INTERVAL, unread, unread_requests, questions }
    }

    /// Reads from `initialize` what the client can show.
    pub fn note_capabilities(&self, message: &ClientJsonRpcMessage) {
        if let (Some(questions), JsonRpcMessage::Request(request)) = (&self.questions, message)
            && let ClientRequest::InitializeRequest(initialize) = &request.request
        {
            let shown = shows_forms(&initialize.params.capabilities);
            questions.are_shown.store(shown, Ordering::Relaxed);
        }
    }

    /// Receives the client's answer to a request of ours.
    pub fn answer(&self, id: &RequestId, result: Option<&RawValue>) {
        if let Some(questions) = &self.questions {
            questions.answer(id, result);
        }
    }

    /// There will be no more answers.
    pub fn close(&self) {
        if let Some(questions) = &self.questions {
            questions.close();
        }
    }

    /// True if the client can ask a person.
    pub fn can_ask(&self) -> bool {
        let shown = |questions: &Arc<Questions>| questions.are_shown.load(Ordering::Relaxed);
        self.questions.as_ref().is_some_and(shown)
    }

    /// Sends progress notifications for as long as this is polled.
    pub async fn report(&self, token: ProgressToken, progress: &CallProgress) {
        let size = size_of::<Value>() + json!(token).to_string().len();
        for number in 1.. {
            tokio::time::sleep(self.interval).await;
            let message = progress.describe();
            let Some(permit) = self.unread.try_acquire(size + message.len()) else { continue };
            let params = json!({ "progressToken": token, "progress": number, "message": message });
            let method = "notifications/progress";
            let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            (self.send)(message, Some(permit));
        }
    }
}

/// Requests to one client that it has not answered yet.
pub struct Questions {
    /// `None`: there will be no more answers.
    open: Mutex<Option<HashMap<i64, oneshot::Sender<Option<Value>>>>>,
    last: AtomicI64,
    /// The client said that it shows forms.
    are_shown: AtomicBool,
}

impl Default for Questions {
    fn default() -> Self {
        let (open, last, are_shown) = (Mutex::new(Some(HashMap::new())), 0.into(), false.into());
        Self { open, last, are_shown }
    }
}

impl Questions {
    /// Receives the client's answer to `id`: its result, or `None` for an error. An answer to nothing is ignored.
    pub fn answer(&self, id: &RequestId, result: Option<&RawValue>) {
        let RequestId::Number(id) = id else { return };
        let asked = lock(&self.open).as_mut().and_then(|open| open.remove(id));
        let Some(asked) = asked else { return };
        let is_small =
            |json: &&RawValue| json_arguments::count(json.get().as_bytes()) <= message::VALUES_MAX;
        let result = result.filter(is_small);
        let _ = asked.send(result.and_then(|result| serde_json::from_str(result.get()).ok()));
    }

    /// There will be no more answers: whoever waits for one gets none.
    pub fn close(&self) {
        *lock(&self.open) = None;
    }

    /// Sends a request and waits for its result; `None` if there will be none. If this is dropped before, the request is
    /// cancelled.
    pub async fn ask(&self, channel: &ClientChannel, method: &str, params: Value) -> Option<Value> {
        let bytes = size_of::<Value>() + params.to_string().len();
        let permit = channel.unread_requests.acquire(bytes, Instant::now()).await;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (asked, answer) = oneshot::channel();
        lock(&self.open).as_mut()?.insert(id, asked);
        let mut open = OpenRequest { questions: self, channel, id: Some(id) };
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (channel.send)(request, Some(permit));
        let answer = answer.await;
        // Answered or closed: there is no request to cancel.
        open.id = None;
        answer.ok().flatten()
    }
}

/// A request that is cancelled when this is dropped.
struct OpenRequest<'a> {
    questions: &'a Questions,
    channel: &'a ClientChannel,
    id: Option<i64>,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        lock(&self.questions.open).as_mut().and_then(|open| open.remove(&id));
        let (method, params) = ("notifications/cancelled", json!({ "requestId": id }));
        (self.channel.send)(json!({ "jsonrpc": "2.0", "method": method, "params": params }), None);
    }
}

/// True if a client with these capabilities shows forms. Before there were two kinds of elicitation, forms were the only one.
pub fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let kinds = capabilities.elicitation.as_ref();
    kinds.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    /// Messages that were sent, kept with their permits as if the client had not read them.
    type SentMessages = Arc<Mutex<Vec<(Value, Option<Permit>)>>>;

    #[tokio::test]
    async fn who_takes_nothing_is_told_no_more() {
        let sent = SentMessages::default();
        let keep = {
            let sent = Arc::clone(&sent);
            move |message, permit| lock(&sent).push((message, permit))
        };
        let interval = Duration::from_millis(1);
        let channel = ClientChannel { interval, ..ClientChannel::new(keep, None) };
        let token = "t".repeat(UNREAD_MAX / 4);
        for _ in 0..2 {
            let some_time = async {
                while lock(&sent).len() < 3 {
                    tokio::time::sleep(interval).await;
                }
                tokio::time::sleep(50 * interval).await;
            };
            let token = ProgressToken(NumberOrString::String(token.as_str().into()));
            let progress = CallProgress::default();
            tokio::select! {
                () = channel.report(token, &progress) => {}
                () = some_time => {}
            }
            assert_eq!(lock(&sent).len(), 3);
            // It is taken, and there is more to tell.
            lock(&sent).clear();
        }
    }

    #[tokio::test]
    async fn a_question_that_is_taken_back_is_forgotten() {
        let (questions, sent) = (Questions::default(), SentMessages::default());
        let keep = {
            let sent = Arc::clone(&sent);
            move |message, permit| lock(&sent).push((message, permit))
        };
        let channel = ClientChannel::new(keep, None);
        let asked = questions.ask(&channel, "elicitation/create", json!({}));
        let given_up = tokio::time::timeout(Duration::ZERO, asked).await;
        assert!(given_up.is_err(), "nobody answers");
        assert!(lock(&questions.open).as_ref().expect("open").is_empty());
        let methods: Vec<Value> =
            lock(&sent).iter().map(|(message, _)| message["method"].clone()).collect();
        assert_eq!(methods, ["elicitation/create", "notifications/cancelled"]);
    }

    #[test]
    fn an_answer_without_end_is_none() {
        let questions = Questions::default();
        let ask = |id, result: &str| {
            let (asked, mut answer) = oneshot::channel();
            lock(&questions.open).as_mut().expect("open").insert(id, asked);
            let result: &RawValue = serde_json::from_str(result).expect("JSON");
            questions.answer(&RequestId::Number(id), Some(result));
            answer.try_recv().expect("it was answered")
        };
        assert_eq!(ask(1, r#"{"action":"accept"}"#), Some(json!({ "action": "accept" })));
        let many = vec!["[]"; message::VALUES_MAX].join(",");
        assert_eq!(ask(2, &format!(r#"{{"action":"accept","content":[{many}]}}"#)), None);
    }
}
