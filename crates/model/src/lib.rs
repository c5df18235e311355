//! Text written by a language model, if one is configured.
//!
//! The model is behind an endpoint that speaks `OpenAI`'s chat completions, as llama.cpp, Ollama, vLLM and the hosted ones
//! do. Nothing here knows of files or tools: a text and an instruction go in, a new text comes out, and what a model
//! wrote is not taken for good until it has been looked at.
//!
//! - [`Settings`]: who is asked; nobody, unless that was said
//! - [`Task`]: what is asked, and what of an answer is accepted; pure
//! - [`generate`]: asks, reads, and asks once more when the answer cannot be used
//! - [`scripted`]: a model for tests, which says what it was told to
//!
//! No error repeats the key, the file or what the model said.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod answer;
mod client;
mod elision;
mod fence;
mod prompt;
pub mod scripted;
pub mod settings;
mod task;

pub use answer::Refusal;
pub use prompt::{Message, Role};
pub use settings::{Host, Settings, SettingsError};
pub use task::{Generated, Loss, Request, Scope, Task, TaskError};

/// Why there is no new text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error("cancelled before the model had answered")]
    Cancelled,
    #[error(
        "{running} requests to the model are under way already: try again when one of them is over"
    )]
    Busy { running: usize },
    #[error("the model cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("no secure connection to the model's server: {reason}")]
    NotSecure { reason: String },
    #[error(
        "the model did not answer within {seconds} s ({} sets another limit)",
        settings::TIMEOUT
    )]
    TimedOut { seconds: u64 },
    #[error("the model's server does not let us in ({status}): check {}", settings::API_KEY)]
    KeyRefused { status: u16 },
    #[error(
        "the model's server has no such address or model (404): check {} and {}",
        settings::BASE_URL,
        settings::MODEL
    )]
    NotFound,
    #[error("the model's server has too much to do (429){}", wait(*.retry_after))]
    TooManyRequests {
        /// In seconds, if the server said so.
        retry_after: Option<u64>,
    },
    #[error("the model's server failed ({status})")]
    ServerFailed { status: u16 },
    #[error(
        "the model's server sends us elsewhere ({status}), which is not followed: set {} to where it is",
        settings::BASE_URL
    )]
    Redirected { status: u16 },
    #[error(
        "the model's server refused the request ({status}): the text may be too long for the model, or a setting be \
         unknown to it"
    )]
    Rejected { status: u16 },
    #[error(
        "the text is too long for the model (400): name the lines to be replaced, or fewer of them"
    )]
    TooLong,
    #[error("the model's answer is larger than {limit} bytes")]
    Oversized { limit: usize },
    #[error("the connection to the model's server ended before there was a whole answer")]
    Interrupted,
    #[error("the model's server does not speak HTTP as it should")]
    NotHttp,
    #[error(
        "the model's server answered with something that is not JSON: check {}",
        settings::BASE_URL
    )]
    NotJson,
    #[error("the model's server answered with JSON that is no chat completion")]
    NotACompletion,
    #[error("the model's server answered without a choice")]
    NoChoice,
    #[error("the model answered without a text")]
    NoText,
    #[error("the model declined to answer")]
    Declined,
    #[error("the model stopped before its answer was whole: it had reached its longest answer")]
    CutShort,
    #[error("the model's answer cannot be used: {refusal}")]
    Refused {
        /// Of the last answer.
        refusal: Refusal,
    },
    #[error("the system gives us no thread to ask the model with")]
    NoThread,
}

fn wait(seconds: Option<u64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!(": try again in {seconds} s"))
}

/// Has the model write what `request` asks for.
///
/// `check` looks at the whole new text; what it objects to is told to the model, which may answer once more. `cancelled`
/// is asked several times a second, also while the server says nothing. `progress` hears what is being waited for.
///
/// Takes as long as the model does, up to twice [`Settings::timeout`], and blocks.
pub fn generate(
    settings: &Settings,
    request: &Request<'_>,
    check: &dyn Fn(&str) -> Result<(), String>,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(&str),
) -> Result<Generated, Error> {
    let task = Task::new(request)?;
    let model = settings.model();
    let ask = |messages: &[Message]| {
        client::ask(settings, messages, task.max_tokens(), cancelled, progress)
    };
    let read = |answer: &str| {
        let generated = task.read(answer)?;
        check(&generated.text).map_err(Refusal::Check)?;
        Ok(generated)
    };
    progress(&format!("asking {model}"));
    let messages = task.prompt();
    let answer = ask(&messages)?;
    let refusal = match read(&answer) {
        Ok(generated) => return Ok(generated),
        Err(refusal) => refusal,
    };
    progress(&format!("asking {model} once more, since its answer cannot be used: {refusal}"));
    let answer = ask(&Task::prompt_again(messages, answer, &refusal))?;
    read(&answer).map_err(|refusal| Error::Refused { refusal })
}
