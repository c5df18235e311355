//! Sends one request to the model's server, on a thread of its own so that the caller can stop waiting for it.

use std::{
    io,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use ureq::{
    Agent,
    http::{Response, header},
};

use crate::{Error, Message, Settings};

/// Most bytes of an answer. No answer that can be used is larger.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Most bytes that are read of an error response.
const ERROR_BODY_BYTES_MAX: u64 = 64 << 10;
const HEADER_BYTES_MAX: usize = 32 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks for a cancellation or a timeout.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between progress reports while the model works.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Most threads with a request, including those that no caller waits for any more: a connection that is being made
/// cannot be stopped.
const REQUESTS_MAX: usize = 32;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Sends `messages` to the model and returns its answer.
pub(crate) fn ask(
    settings: &Settings,
    messages: &[Message],
    max_tokens: usize,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(&str),
) -> Result<String, Error> {
    let agent = agent(settings);
    let mut body = RequestBody {
        model: settings.model(),
        messages,
        stream: false,
        temperature: Some(0),
        max_tokens: Some(max_tokens),
    };
    let waiting = PendingRequest { settings, started: Instant::now(), cancelled, progress };
    let mut outcome = waiting.wait_for(&agent, &body)?;
    if matches!(outcome, ServerReply::UnknownSetting) {
        // Some models accept neither setting, or name them differently; without them the defaults of their makers
        // apply.
        (body.temperature, body.max_tokens) = (None, None);
        outcome = waiting.wait_for(&agent, &body)?;
    }
    match outcome {
        ServerReply::Text(text) => Ok(text),
        ServerReply::UnknownSetting => Err(Error::Rejected { status: 400 }),
    }
}

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
}

enum ServerReply {
    Text(String),
    /// The server rejects a setting of the request, `temperature` or `max_tokens`, not the question.
    UnknownSetting,
}

fn agent(settings: &Settings) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // The default would take a proxy from variables that were set for other programs.
        .proxy(None)
        // A redirect would send the key and the code to another server.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(HEADER_BYTES_MAX)
        .max_idle_connections(0)
        .user_agent(concat!("file-editor/", env!("CARGO_PKG_VERSION")))
        .accept("application/json")
        .timeout_connect(Some(CONNECT_TIMEOUT.min(settings.timeout())))
        .timeout_global(Some(settings.timeout()))
        .build();
    Agent::new_with_config(config)
}

/// A caller that waits for an answer.
struct PendingRequest<'a> {
    settings: &'a Settings,
    started: Instant,
    cancelled: &'a dyn Fn() -> bool,
    progress: &'a dyn Fn(&str),
}

impl PendingRequest<'_> {
    fn wait_for(&self, agent: &Agent, body: &RequestBody<'_>) -> Result<ServerReply, Error> {
        if (self.cancelled)() {
            return Err(Error::Cancelled);
        }
        let body = serde_json::to_vec(body).map_err(|_| Error::NotACompletion)?;
        let answer = start(agent.clone(), self.settings.clone(), body)?;
        let outcome = self.wait_on(&answer);
        if matches!(outcome, Err(Error::Cancelled | Error::TimedOut { .. })) {
            // Closes the connection, which ends the thread and the work of the server.
            agent.clone().shutdown();
        }
        outcome
    }

    fn wait_on(
        &self,
        answer: &mpsc::Receiver<Result<ServerReply, Error>>,
    ) -> Result<ServerReply, Error> {
        let mut next_progress = PROGRESS_INTERVAL;
        loop {
            match answer.recv_timeout(POLL_INTERVAL) {
                Ok(outcome) => return outcome,
                // The thread ended without an outcome.
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if (self.cancelled)() {
                return Err(Error::Cancelled);
            }
            let waited = self.started.elapsed();
            if waited > self.settings.timeout() {
                return Err(timed_out(self.settings));
            }
            if waited >= next_progress {
                let seconds = waited.as_secs();
                (self.progress)(&format!(
                    "{} has been working for {seconds} s",
                    self.settings.model()
                ));
                next_progress = waited + PROGRESS_INTERVAL;
            }
        }
    }
}

fn timed_out(settings: &Settings) -> Error {
    Error::TimedOut { seconds: settings.timeout().as_secs() }
}

/// A slot for one of the [`REQUESTS_MAX`] threads; freed when the thread ends, however that happens.
struct RequestSlot;

impl RequestSlot {
    fn take() -> Result<Self, Error> {
        let more = |running: usize| (running < REQUESTS_MAX).then_some(running + 1);
        let taken = RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| RequestSlot).map_err(|running| Error::Busy { running })
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(
    agent: Agent,
    settings: Settings,
    body: Vec<u8>,
) -> Result<mpsc::Receiver<Result<ServerReply, Error>>, Error> {
    let slot = RequestSlot::take()?;
    let (send, receive) = mpsc::sync_channel(1);
    let work = move || {
        let _slot = slot;
        // The caller may have stopped waiting.
        let _ = send.send(post(&agent, &settings, &body));
    };
    thread::Builder::new().name("model".to_owned()).spawn(work).map_err(|_| Error::NoThread)?;
    Ok(receive)
}

fn post(agent: &Agent, settings: &Settings, body: &[u8]) -> Result<ServerReply, Error> {
    let mut request = agent.post(settings.url()).header(header::CONTENT_TYPE, "application/json");
    if let Some(key) = settings.key() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    }
    let explain = |error| explain(error, settings);
    let mut response = request.send(body).map_err(explain)?;
    let status = response.status().as_u16();
    if status == 400 {
        let error_body = error_body(&mut response);
        if rejects_setting(&error_body) {
            return Ok(ServerReply::UnknownSetting);
        }
        if says_too_long(&error_body) {
            return Err(Error::TooLong);
        }
    }
    check_status(&response)?;
    let limit = ANSWER_BYTES_MAX as u64;
    let answer = response.body_mut().with_config().limit(limit).read_to_vec().map_err(explain)?;
    text_of(&answer).map(ServerReply::Text)
}

fn error_body(response: &mut Response<ureq::Body>) -> String {
    let body = response.body_mut().with_config().limit(ERROR_BODY_BYTES_MAX).read_to_vec();
    String::from_utf8_lossy(&body.unwrap_or_default()).into_owned()
}

fn rejects_setting(error_body: &str) -> bool {
    // The last one: the longest answer that `max_tokens` allows does not fit beside the question.
    const WORDS: [&str; 3] = ["max_tokens", "temperature", "in the completion"];
    WORDS.iter().any(|word| error_body.contains(word))
}

/// True if the server says that the text is too long, as llama.cpp, the hosted services and vLLM word it.
fn says_too_long(error_body: &str) -> bool {
    const WORDS: [&str; 3] =
        ["exceed_context_size", "context_length_exceeded", "maximum context length"];
    WORDS.iter().any(|word| error_body.contains(word))
}

fn check_status(response: &Response<ureq::Body>) -> Result<(), Error> {
    let status = response.status().as_u16();
    Err(match status {
        200..=299 => return Ok(()),
        300..=399 => Error::Redirected { status },
        401 | 403 => Error::KeyRefused { status },
        404 => Error::NotFound,
        429 => Error::TooManyRequests { retry_after: retry_after(response) },
        500..=599 => Error::ServerFailed { status },
        _ => Error::Rejected { status },
    })
}

fn retry_after(response: &Response<ureq::Body>) -> Option<u64> {
    response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn explain(error: ureq::Error, settings: &Settings) -> Error {
    let unreachable = |reason: &str| Error::Unreachable { reason: reason.to_owned() };
    match error {
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            unreachable("connecting timed out")
        }
        ureq::Error::Timeout(_) => timed_out(settings),
        ureq::Error::BodyExceedsLimit(_) => Error::Oversized { limit: ANSWER_BYTES_MAX },
        ureq::Error::HostNotFound => unreachable("its host name has no address"),
        ureq::Error::ConnectionFailed => unreachable("no connection"),
        ureq::Error::Rustls(reason) => Error::NotSecure { reason: reason.to_string() },
        ureq::Error::Tls(reason) => Error::NotSecure { reason: reason.to_owned() },
        ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
            Error::NotHttp
        }
        ureq::Error::Io(error) => explain_io(&error),
        // No other error happens to a request like this; its message may contain anything, so it is not shown.
        _ => Error::Interrupted,
    }
}

fn explain_io(error: &io::Error) -> Error {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, NotConnected, UnexpectedEof,
    };
    match error.kind() {
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected => {
            Error::Interrupted
        }
        InvalidData => Error::NotSecure { reason: error.to_string() },
        _ => Error::Unreachable { reason: error.to_string() },
    }
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<CompletionChoice>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    message: CompletionMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct CompletionMessage {
    content: Option<String>,
    refusal: Option<String>,
}

fn text_of(answer: &[u8]) -> Result<String, Error> {
    use serde_json::error::Category;
    let wrong = |error: serde_json::Error| match error.classify() {
        Category::Eof => Error::Interrupted,
        Category::Data => Error::NotACompletion,
        Category::Syntax | Category::Io => Error::NotJson,
    };
    let completion: Completion = serde_json::from_slice(answer).map_err(wrong)?;
    let choice = completion.choices.into_iter().next().ok_or(Error::NoChoice)?;
    let is_declined = choice.message.refusal.is_some_and(|refusal| !refusal.is_empty());
    match choice.finish_reason.as_deref() {
        Some("length") => Err(Error::CutShort),
        Some("content_filter") => Err(Error::Declined),
        _ if is_declined => Err(Error::Declined),
        _ => choice.message.content.filter(|text| !text.trim().is_empty()).ok_or(Error::NoText),
    }
}
