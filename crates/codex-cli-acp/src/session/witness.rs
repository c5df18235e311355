//! A session as the witness of its tools: calls begin and end here, and persons are asked.

use std::pin::Pin;

use serde_json::{Value, json};
use server::witness::{Begun, Changed, Leave, Verdict, Witness};
use tools::{Failure, Reply};

use super::{Progress, Session, Turn};
use crate::modes::Mode;
use crate::{events, lock};

impl Witness for Session {
    fn begin(&self, call: &Begun, arguments: &Value) {
        let mut state = lock(&self.state);
        let (Some(turn), Some(id)) = (&mut state.turn, &call.id) else { return };
        if turn.ended.is_some() {
            return;
        }
        match turn.calls.insert(id.clone(), Progress::Running) {
            None => self.update(&self.events.begin(id, call.tool, arguments)),
            Some(Progress::Announced | Progress::Running) => {}
            Some(Progress::Over) => {
                turn.calls.insert(id.clone(), Progress::Over);
            }
        }
    }

    fn leave(&self, call: &Begun) -> Leave {
        let state = lock(&self.state);
        // What a sub-agent does later nobody would see, nor what was allowed too late.
        let is_of = |turn: &Turn| {
            turn.ended.is_none() && call.id.as_ref().is_none_or(|id| turn.calls.contains_key(id))
        };
        if !state.turn.as_ref().is_some_and(is_of) {
            return Leave::Refused("the prompt that it was for is over");
        }
        match state.choices.mode {
            Mode::ReadOnly => Leave::Refused("the session is in read-only mode"),
            Mode::Auto if !state.writes_allowed => Leave::Asked,
            Mode::Auto | Mode::FullAccess => Leave::Given,
        }
    }

    fn ask<'a>(
        &'a self,
        call: &'a Begun,
        change: &'a Changed,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let Some(id) = &call.id else { return Verdict::Unanswered };
            let question = events::question(id, call, change);
            let options = json!([
                { "optionId": "allow", "name": "Allow", "kind": "allow_once" },
                { "optionId": "allow-always", "name": "Allow all edits in this session", "kind": "allow_always" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
            ]);
            let answer = self.link.choose(self.id(), &question, &options).await;
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

    fn end(&self, call: &Begun, outcome: Result<&Reply, &Failure>, change: Option<&Changed>) {
        let mut state = lock(&self.state);
        let (Some(turn), Some(id)) = (&mut state.turn, &call.id) else { return };
        if turn.calls.get(id) != Some(&Progress::Running) {
            return;
        }
        turn.calls.insert(id.clone(), Progress::Over);
        self.update(&self.events.end(id, call, outcome, change));
        self.finish_if_settled(&mut state);
    }
}
