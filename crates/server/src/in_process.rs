//! Calls of this process itself: without a transport, otherwise as for a client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use tools::{Failure, Limits, ToolOutput, ToolSpec};

use crate::call::Calls;
use crate::client_channel::INTERVAL;
use crate::{confirm, json_arguments, message};

/// Bytes of arguments that a call may have.
pub fn arguments_max(limits: &Limits) -> u64 {
    limits.max_size + message::OVERHEAD_MAX
}

/// Reads arguments. The error says why they cannot be read.
pub fn read(json: &[u8]) -> Result<Value, Cow<'static, str>> {
    match value(json) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err("the arguments must be a JSON object".into()),
        Err(reason) => Err(format!("the arguments must be a JSON object: {reason}").into()),
    }
}

/// Reads one argument.
pub fn value(json: &[u8]) -> Result<Value, Cow<'static, str>> {
    if json_arguments::are_too_many(json) {
        return Err(json_arguments::TOO_MANY.into());
    }
    let read =
        serde_json::from_slice::<&RawValue>(json).and_then(|raw| json_arguments::read(raw.get()));
    read.map_err(|error| error.to_string().into())
}

/// Runs a call to its end. When `cancelled` is ready the call is cancelled, and its outcome is still awaited. `report` is
/// called at intervals with the phase of a call that takes long, and with how long it has taken.
pub async fn call(
    calls: &Arc<Calls>,
    tool: &'static ToolSpec,
    arguments: Value,
    cancelled: impl Future<Output = ()>,
    report: impl Fn(&str, Duration),
) -> Result<ToolOutput, Failure> {
    let since = Instant::now();
    let pending = calls.accept(tool, arguments, "1".into(), None);
    let control = pending.control.clone();
    let result = confirm::answer_unasked(calls, pending);
    let reports = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
            report(&control.progress.describe(), since.elapsed());
        }
    };
    let cancels = async {
        cancelled.await;
        control.cancel.cancel();
        std::future::pending().await
    };
    let result = tokio::select! {
        result = result => result,
        never = reports => never,
        never = cancels => never,
    };
    result.outcome
}
