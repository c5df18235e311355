//! The session as the observer of its tools: reports the start and end of calls, and asks a person for permission.

use std::pin::Pin;

use serde_json::{Value, json};
use server::observer::{CallInfo, CallObserver, FileChange, Permission, Verdict};
use tools::{Failure, ToolOutput};

use super::{CallStatus, RunningTurn, Session};
use crate::modes::Mode;
use crate::{lock, tool_call_updates};

impl CallObserver for Session {
    fn begin(&self, call: &CallInfo, arguments: &Value) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        if turn.ended.is_some() {
            return;
        }
        let id = turn.register(call);
        if turn.calls.insert(id.clone(), CallStatus::Running).is_none() {
            self.update(&self.event_format.started(&id, call.tool, arguments));
        }
    }

    fn ready<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.connection.wait_until_read())
    }

    fn permission(&self, call: &CallInfo) -> Permission {
        let state = lock(&self.state);
        // A call of a sub-agent after the turn would be invisible, and so would a write that was allowed too late.
        let is_of = |turn: &RunningTurn| {
            turn.ended.is_none() && turn.arrived_calls.contains_key(&call.number)
        };
        if !state.turn.as_ref().is_some_and(is_of) {
            return Permission::Refused("the prompt that it was for is over");
        }
        match state.options.mode {
            Mode::ReadOnly => Permission::Refused("the session is in read-only mode"),
            Mode::Auto if !state.writes_allowed => Permission::Ask,
            Mode::Auto | Mode::FullAccess => Permission::Granted,
        }
    }

    fn ask<'a>(
        &'a self,
        call: &'a CallInfo,
        changes: &'a [FileChange],
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let id = lock(&self.state)
                .turn
                .as_ref()
                .and_then(|turn| turn.arrived_calls.get(&call.number).cloned());
            let Some(id) = id else { return Verdict::Unanswered };
            let question = tool_call_updates::permission_request(&id, changes);
            let options = json!([
                { "optionId": "allow", "name": "Allow", "kind": "allow_once" },
                { "optionId": "allow-always", "name": "Allow all edits in this session", "kind": "allow_always" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
            ]);
            let answer = self.connection.choose(self.id(), &question, &options).await;
            let selected = answer["outcome"]["outcome"] == "selected";
            match answer["outcome"]["optionId"].as_str().filter(|_| selected) {
                Some("allow") => Verdict::Yes,
                Some("allow-always") => {
                    lock(&self.state).writes_allowed = true;
                    Verdict::Yes
                }
                Some(_) => Verdict::No,
                None => Verdict::Unanswered,
            }
        })
    }

    fn end(&self, call: &CallInfo, outcome: Result<&ToolOutput, &Failure>, changes: &[FileChange]) {
        let mut state = lock(&self.state);
        let Some(turn) = &mut state.turn else { return };
        let Some(id) = turn.arrived_calls.remove(&call.number) else { return };
        self.update(&self.event_format.ended(&id, call, outcome, changes));
        turn.calls.insert(id, CallStatus::Ended);
        self.finish_if_calls_ended(&mut state);
    }
}

impl RunningTurn {
    /// Registers a call. Returns the id to show it by: Codex's, unless it has none or another call uses it.
    fn register(&mut self, call: &CallInfo) -> String {
        let is_free = |id: &&String| {
            !id.is_empty() && matches!(self.calls.get(*id), None | Some(CallStatus::Announced))
        };
        let given = call.id.as_ref().filter(is_free).cloned();
        let id = given.unwrap_or_else(|| format!("file-editor-{}", call.number));
        self.arrived_calls.insert(call.number, id.clone());
        id
    }
}
