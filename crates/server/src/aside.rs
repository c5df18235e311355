//! What is said to a client while its call is under way: how it goes on, and what somebody has to decide.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use files::Call;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ProgressToken, RequestId};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::confirm;
use crate::mcp::lock;

/// A call that takes longer is told about, and again after each such time.
const BEAT: Duration = Duration::from_secs(1);

/// The way to a client besides the answer.
#[derive(Clone)]
pub struct Aside {
    say: Arc<dyn Fn(Value) + Send + Sync>,
    /// Those it can be asked by; `None` if what it says to them would not be heard.
    pub questions: Option<Arc<Questions>>,
}

impl Aside {
    pub fn new(
        say: impl Fn(Value) + Send + Sync + 'static,
        questions: Option<Arc<Questions>>,
    ) -> Self {
        Self { say: Arc::new(say), questions }
    }

    /// Takes note of what the client can show, when it says so.
    pub fn meet(&self, message: &ClientJsonRpcMessage) {
        if let (Some(questions), JsonRpcMessage::Request(request)) = (&self.questions, message)
            && let ClientRequest::InitializeRequest(initialize) = &request.request
        {
            let shown = confirm::shows_forms(&initialize.params.capabilities);
            questions.are_shown.store(shown, Ordering::Relaxed);
        }
    }

    /// The client's answer to a request of ours.
    pub fn answer(&self, id: &RequestId, result: Option<&RawValue>) {
        if let Some(questions) = &self.questions {
            questions.answer(id, result);
        }
    }

    /// The client will not answer any more.
    pub fn hear_no_more(&self) {
        if let Some(questions) = &self.questions {
            *lock(&questions.open) = None;
        }
    }

    /// Whether the client can ask a person.
    pub fn can_ask(&self) -> bool {
        let shown = |questions: &Arc<Questions>| questions.are_shown.load(Ordering::Relaxed);
        self.questions.as_ref().is_some_and(shown)
    }

    /// Tells how the call goes on, as long as this is polled.
    pub async fn report(&self, token: ProgressToken, doing: &Doing) {
        for beat in 1.. {
            tokio::time::sleep(BEAT).await;
            let params =
                json!({ "progressToken": token, "progress": beat, "message": doing.now() });
            let method = "notifications/progress";
            (self.say)(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
    }
}

/// What a call is doing: seen by whoever tells the client.
#[derive(Clone, Default)]
pub struct Doing(Arc<Mutex<Stage>>);

#[derive(Default)]
pub enum Stage {
    #[default]
    Waiting,
    Working(Arc<Call>),
    Asking,
}

impl Doing {
    pub fn set(&self, stage: Stage) {
        *lock(&self.0) = stage;
    }

    fn now(&self) -> &'static str {
        match &*lock(&self.0) {
            Stage::Waiting => "waiting for its turn",
            Stage::Working(call) if call.is_waiting() => "waiting for the file's lock",
            Stage::Working(_) => "working",
            Stage::Asking => "waiting for confirmation",
        }
    }
}

/// What one client was asked and has not answered yet.
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
    /// The client's answer to `id`: its result, or `None` for an error. What was never asked is nobody's answer.
    pub fn answer(&self, id: &RequestId, result: Option<&RawValue>) {
        let result = result.and_then(|result| serde_json::from_str(result.get()).ok());
        let RequestId::Number(id) = id else { return };
        if let Some(asker) = lock(&self.open).as_mut().and_then(|open| open.remove(id)) {
            let _ = asker.send(result);
        }
    }

    /// Sends a request and waits for its result; `None` if there will be none. Dropped before, it is taken back.
    pub async fn ask(&self, aside: &Aside, method: &str, params: Value) -> Option<Value> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (asker, answer) = oneshot::channel();
        lock(&self.open).as_mut()?.insert(id, asker);
        let mut open = Asked { questions: self, aside, id: Some(id) };
        (aside.say)(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = answer.await;
        // Answered, or never to be: there is nothing to take back.
        open.id = None;
        answer.ok().flatten()
    }
}

/// An open question.
struct Asked<'a> {
    questions: &'a Questions,
    aside: &'a Aside,
    id: Option<i64>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        lock(&self.questions.open).as_mut().and_then(|open| open.remove(&id));
        let (method, params) = ("notifications/cancelled", json!({ "requestId": id }));
        (self.aside.say)(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
}
