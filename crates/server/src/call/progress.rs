//! The phase that a call is in: set by whoever runs it, read by whoever reports it to the client.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use files::Call;

use crate::lock::lock;

/// Characters of a model's own report that are shown.
const REPORT_MAX: usize = 200;

#[derive(Clone, Default)]
pub struct CallProgress(Arc<Mutex<Phase>>);

#[derive(Default)]
pub enum Phase {
    #[default]
    Waiting,
    Working(Arc<Call>),
    Asking,
    /// A model generates code; the model's own report.
    Generating(String),
}

impl CallProgress {
    pub fn set(&self, phase: Phase) {
        *lock(&self.0) = phase;
    }

    /// The phase in words for people.
    pub fn describe(&self) -> Cow<'static, str> {
        match &*lock(&self.0) {
            Phase::Waiting => "waiting for its turn".into(),
            Phase::Working(call) if call.is_waiting() => "waiting for the file's lock".into(),
            Phase::Working(_) => "working".into(),
            Phase::Asking => "waiting for confirmation".into(),
            Phase::Generating(report) => report.chars().take(REPORT_MAX).collect(),
        }
    }
}
