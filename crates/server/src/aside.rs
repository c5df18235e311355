//! What is said to a client while its call is under way: how it goes on, and what somebody has to decide.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use files::Call;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ProgressToken, RequestId};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::mcp::lock;
use crate::room::{Room, Share};
use crate::{arguments, confirm, wire};

/// A call that takes longer is told about, and again after each such time.
pub const BEAT: Duration = Duration::from_secs(1);
/// Bytes of it that may wait until they are taken. Whoever takes nothing is told no more.
const UNTAKEN: usize = 64 << 10;
/// Characters of what somebody else says of their work.
const LONGEST_WORD: usize = 200;

/// The way to a client besides the answer.
#[derive(Clone)]
pub struct Aside {
    say: Arc<dyn Fn(Value, Option<Share>) + Send + Sync>,
    beat: Duration,
    untaken: Arc<Room>,
    /// Those it can be asked by; `None` if what it says to them would not be heard.
    pub questions: Option<Arc<Questions>>,
}

impl Aside {
    /// `say` sends a message, and gives up its share when it is taken.
    pub fn new(
        say: impl Fn(Value, Option<Share>) + Send + Sync + 'static,
        questions: Option<Arc<Questions>>,
    ) -> Self {
        Self { say: Arc::new(say), beat: BEAT, untaken: Room::new(UNTAKEN), questions }
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
            questions.close();
        }
    }

    /// Whether the client can ask a person.
    pub fn can_ask(&self) -> bool {
        let shown = |questions: &Arc<Questions>| questions.are_shown.load(Ordering::Relaxed);
        self.questions.as_ref().is_some_and(shown)
    }

    /// Tells how the call goes on, as long as this is polled.
    pub async fn report(&self, token: ProgressToken, doing: &Doing) {
        let size = size_of::<Value>() + json!(token).to_string().len();
        for beat in 1.. {
            tokio::time::sleep(self.beat).await;
            let message = doing.now();
            let Some(share) = self.untaken.take_now(size + message.len()) else { continue };
            let params = json!({ "progressToken": token, "progress": beat, "message": message });
            let method = "notifications/progress";
            let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            (self.say)(message, Some(share));
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
    /// A model writes; what is waited for, as whoever asks it says.
    Writing(String),
}

impl Doing {
    pub fn set(&self, stage: Stage) {
        *lock(&self.0) = stage;
    }

    pub fn now(&self) -> Cow<'static, str> {
        match &*lock(&self.0) {
            Stage::Waiting => "waiting for its turn".into(),
            Stage::Working(call) if call.is_waiting() => "waiting for the file's lock".into(),
            Stage::Working(_) => "working".into(),
            Stage::Asking => "waiting for confirmation".into(),
            Stage::Writing(word) => word.chars().take(LONGEST_WORD).collect(),
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
        let RequestId::Number(id) = id else { return };
        let asker = lock(&self.open).as_mut().and_then(|open| open.remove(id));
        let Some(asker) = asker else { return };
        let is_small =
            |json: &&RawValue| arguments::count(json.get().as_bytes()) <= wire::MOST_VALUES;
        let result = result.filter(is_small);
        let _ = asker.send(result.and_then(|result| serde_json::from_str(result.get()).ok()));
    }

    /// There will be no more answers, and whoever waits for one has none.
    pub fn close(&self) {
        *lock(&self.open) = None;
    }

    /// Sends a request and waits for its result; `None` if there will be none. Dropped before, it is taken back.
    pub async fn ask(&self, aside: &Aside, method: &str, params: Value) -> Option<Value> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (asker, answer) = oneshot::channel();
        lock(&self.open).as_mut()?.insert(id, asker);
        let mut open = Asked { questions: self, aside, id: Some(id) };
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (aside.say)(request, None);
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
        (self.aside.say)(json!({ "jsonrpc": "2.0", "method": method, "params": params }), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    /// What is said, and kept as if nobody took it.
    type Told = Arc<Mutex<Vec<(Value, Option<Share>)>>>;

    #[tokio::test]
    async fn who_takes_nothing_is_told_no_more() {
        let told = Told::default();
        let keep = {
            let told = Arc::clone(&told);
            move |message, share| lock(&told).push((message, share))
        };
        let beat = Duration::from_millis(1);
        let aside = Aside { beat, ..Aside::new(keep, None) };
        let token = "t".repeat(UNTAKEN / 4);
        for _ in 0..2 {
            let some_time = async {
                while lock(&told).len() < 3 {
                    tokio::time::sleep(beat).await;
                }
                tokio::time::sleep(50 * beat).await;
            };
            let token = ProgressToken(NumberOrString::String(token.as_str().into()));
            let doing = Doing::default();
            tokio::select! {
                () = aside.report(token, &doing) => {}
                () = some_time => {}
            }
            assert_eq!(lock(&told).len(), 3);
            // It is taken, and there is more to tell.
            lock(&told).clear();
        }
    }

    #[tokio::test]
    async fn a_question_that_is_taken_back_is_forgotten() {
        let (questions, told) = (Questions::default(), Told::default());
        let keep = {
            let told = Arc::clone(&told);
            move |message, share| lock(&told).push((message, share))
        };
        let aside = Aside::new(keep, None);
        let asked = questions.ask(&aside, "elicitation/create", json!({}));
        let given_up = tokio::time::timeout(Duration::ZERO, asked).await;
        assert!(given_up.is_err(), "nobody answers");
        assert!(lock(&questions.open).as_ref().expect("open").is_empty());
        let methods: Vec<Value> =
            lock(&told).iter().map(|(said, _)| said["method"].clone()).collect();
        assert_eq!(methods, ["elicitation/create", "notifications/cancelled"]);
    }

    #[test]
    fn an_answer_without_end_is_none() {
        let questions = Questions::default();
        let ask = |id, result: &str| {
            let (asker, mut answer) = oneshot::channel();
            lock(&questions.open).as_mut().expect("open").insert(id, asker);
            let result: &RawValue = serde_json::from_str(result).expect("JSON");
            questions.answer(&RequestId::Number(id), Some(result));
            answer.try_recv().expect("it was answered")
        };
        assert_eq!(ask(1, r#"{"action":"accept"}"#), Some(json!({ "action": "accept" })));
        let many = vec!["[]"; wire::MOST_VALUES].join(",");
        assert_eq!(ask(2, &format!(r#"{{"action":"accept","content":[{many}]}}"#)), None);
    }
}
