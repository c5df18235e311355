//! One call of our own process: no transport and no message, all else as for a client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use tools::{Entry, Failure, Limits, Reply};

use crate::aside::BEAT;
use crate::calls::{Answered, Calls};
use crate::{arguments, drafts, http};

/// Bytes of arguments that a call may have.
pub fn longest(limits: &Limits) -> u64 {
    limits.max_size + http::ENVELOPE
}

/// Arguments as JSON has them; why they cannot be read, else.
pub fn read(json: &[u8]) -> Result<Value, Cow<'static, str>> {
    match value(json) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err("the arguments must be a JSON object".into()),
        Err(reason) => Err(format!("the arguments must be a JSON object: {reason}").into()),
    }
}

/// The same of one of them.
pub fn value(json: &[u8]) -> Result<Value, Cow<'static, str>> {
    if arguments::are_too_many(json) {
        return Err(arguments::TOO_MANY.into());
    }
    let read = serde_json::from_slice::<&RawValue>(json).and_then(|raw| arguments::read(raw.get()));
    read.map_err(|error| error.to_string().into())
}

/// Runs a call to its end. When `taken_back` is ready it is recalled, and what became of it is still awaited. `report`
/// hears now and then what a call is doing that takes long, and for how long it has been.
pub async fn call(
    calls: &Arc<Calls>,
    entry: &'static Entry,
    arguments: Value,
    taken_back: impl Future<Output = ()>,
    report: impl Fn(&str, Duration),
) -> Result<Reply, Failure> {
    let since = Instant::now();
    let arrived = calls.arrive(entry, arguments, "1".into(), None);
    let (recall, doing) = (arrived.recall().clone(), arrived.doing().clone());
    let answer = async {
        let arrived = drafts::settle(calls, arrived).await;
        Arc::clone(calls).answer(arrived).await
    };
    let reports = async {
        loop {
            tokio::time::sleep(BEAT).await;
            report(&doing.now(), since.elapsed());
        }
    };
    let recalls = async {
        taken_back.await;
        recall.ring();
        std::future::pending().await
    };
    let Answered { outcome, .. } = tokio::select! {
        answered = answer => answered,
        never = reports => never,
        never = recalls => never,
    };
    outcome
}
