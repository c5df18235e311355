//! What passed between an editor and its agent, and what must be true of all of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::editor::{From, Passed};

/// All messages, in the order in which they passed; a message is known by its place.
pub struct Wire(pub Vec<Passed>);

/// A tool call as the editor was told of it.
pub struct ToolCall {
    pub id: String,
    /// Where it began, and where it was told about since.
    pub began: usize,
    pub updates: Vec<usize>,
    /// All that was told, the newest of each.
    pub state: Value,
}

impl ToolCall {
    /// Where it was told about last.
    pub fn ended(&self) -> usize {
        self.updates.last().copied().unwrap_or(self.began)
    }
}

/// The names of ACP, and no others.
const TOOL_CALL_NAMES: &[&str] = &[
    "sessionUpdate",
    "toolCallId",
    "title",
    "name",
    "kind",
    "status",
    "content",
    "locations",
    "rawInput",
    "rawOutput",
    "_meta",
];

const KINDS: &[&str] = &[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

/// What belongs to a turn: it must not come outside one.
const OF_A_TURN: &[&str] =
    &["tool_call", "tool_call_update", "agent_message_chunk", "agent_thought_chunk", "plan"];

impl Wire {
    /// The agent's messages of a method, each with its place.
    pub fn heard(&self, method: &str) -> Vec<(usize, &Value)> {
        let all = self.0.iter().enumerate();
        all.filter(|(_, (from, message))| *from == From::Agent && message["method"] == method)
            .map(|(place, (_, message))| (place, &message["params"]))
            .collect()
    }

    /// All updates of sessions.
    pub fn updates(&self) -> Vec<(usize, &Value)> {
        let updates = self.heard("session/update").into_iter();
        updates.map(|(place, params)| (place, &params["update"])).collect()
    }

    /// The updates of one kind.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        let updates = self.updates().into_iter().map(|(_, update)| update);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The words of all chunks of a kind.
    pub fn words(&self, kind: &str) -> String {
        self.of(kind).iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The tool calls, in the order in which they began.
    pub fn calls(&self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for (place, update) in self.updates() {
            let id = update["toolCallId"].as_str().unwrap_or_default();
            match update["sessionUpdate"].as_str() {
                Some("tool_call") => calls.push(ToolCall {
                    id: id.into(),
                    began: place,
                    updates: Vec::new(),
                    state: update.clone(),
                }),
                Some("tool_call_update") => {
                    if let Some(call) = calls.iter_mut().find(|call| call.id == id) {
                        call.updates.push(place);
                        for (name, value) in update.as_object().into_iter().flatten() {
                            call.state[name] = value.clone();
                        }
                    }
                }
                _ => {}
            }
        }
        calls
    }

    /// Holds of everything that ever passes; what does not.
    pub fn in_order(&self) -> Result<(), String> {
        self.messages_are_sound()?;
        self.turns_are_closed()?;
        self.calls_begin_and_end_once()?;
        self.questions_are_complete()
    }

    /// Each is JSON-RPC, each request has its own id, and nothing is answered twice.
    fn messages_are_sound(&self) -> Result<(), String> {
        let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::new());
        for (_, message) in self.0.iter().filter(|(from, _)| *from == From::Agent) {
            let id = message.get("id").map(Value::to_string);
            let sound = message["jsonrpc"] == "2.0"
                && match (message.get("method"), id) {
                    (Some(_), None) => true,
                    (Some(_), Some(id)) => asked.insert(id),
                    (None, Some(id)) => answered.insert(id),
                    (None, None) => false,
                };
            if !sound {
                return Err(format!("not a message, or one for the second time: {message}"));
            }
        }
        Ok(())
    }

    /// What belongs to a turn comes between its prompt and the answer to it, or while a session is loaded.
    fn turns_are_closed(&self) -> Result<(), String> {
        let mut open: BTreeMap<String, Value> = BTreeMap::new();
        for (from, message) in &self.0 {
            let (method, id) = (message["method"].as_str(), message["id"].to_string());
            let session = &message["params"]["sessionId"];
            match (from, method) {
                (From::Editor, Some("session/prompt" | "session/load")) => {
                    open.insert(id, session.clone());
                }
                (From::Agent, None) => {
                    open.remove(&id);
                }
                (From::Agent, Some("session/update")) => {
                    let kind = message["params"]["update"]["sessionUpdate"].as_str();
                    let of_a_turn = kind.is_none_or(|kind| OF_A_TURN.contains(&kind));
                    if of_a_turn && !open.values().any(|open| open == session) {
                        return Err(format!("outside a turn: {message}"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn calls_begin_and_end_once(&self) -> Result<(), String> {
        let mut status: BTreeMap<&str, &str> = BTreeMap::new();
        for (_, update) in self.updates() {
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            if !kind.starts_with("tool_call") {
                continue;
            }
            let id = update["toolCallId"].as_str().unwrap_or_default();
            let wrong = |why: &str| Err(format!("{why}: {update}"));
            let known = status.get(id).copied();
            match (kind, known) {
                ("tool_call", Some(_)) => return wrong("a call that began before"),
                ("tool_call_update", None) => return wrong("a call that never began"),
                ("tool_call_update", Some("completed" | "failed")) => {
                    return wrong("a call that was over");
                }
                _ => {}
            }
            if update.get("type").is_none() {
                let foreign = update.as_object().into_iter().flatten().map(|(name, _)| name);
                let mut foreign = foreign.filter(|name| !TOOL_CALL_NAMES.contains(&name.as_str()));
                if let Some(name) = foreign.next() {
                    return wrong(&format!("`{name}` is not of ACP"));
                }
                if update["kind"].as_str().is_some_and(|kind| !KINDS.contains(&kind)) {
                    return wrong("a kind that is not of ACP");
                }
            }
            let title = update["title"].as_str().unwrap_or_default();
            if kind == "tool_call" && title.is_empty() {
                return wrong("a call without a title");
            }
            status.insert(id, update["status"].as_str().or(known).unwrap_or("pending"));
        }
        let open = status.iter().find(|(_, status)| !["completed", "failed"].contains(status));
        open.map_or(Ok(()), |(id, status)| Err(format!("call {id} was left {status}")))
    }

    /// A question for permission says what it is about, and can be answered.
    fn questions_are_complete(&self) -> Result<(), String> {
        let calls = self.calls();
        for (place, params) in self.heard("session/request_permission") {
            let (about, options) = (&params["toolCall"], &params["options"]);
            let wrong = |why: &str| Err(format!("{why}: {params}"));
            let open = |call: &&ToolCall| call.began < place && place < call.ended();
            let id = about["toolCallId"].as_str().unwrap_or_default();
            if !calls.iter().filter(open).any(|call| call.id == id) {
                return wrong("asked about a call that is not under way");
            }
            if about["title"].as_str().unwrap_or_default().is_empty() || about["kind"].is_null() {
                return wrong("asked without a title or a kind");
            }
            for kind in ["allow_once", "reject_once"] {
                let mut options = options.as_array().into_iter().flatten();
                if !options.any(|option| option["kind"] == kind) {
                    return wrong(&format!("there is no option to {kind}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is wrong with these updates in a turn of their own, if anything.
    fn check(updates: &[Value], wrong: Option<&str>) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": { "sessionId": "s" } });
        let update = |update: &Value| {
            let params = json!({ "sessionId": "s", "update": update });
            (From::Agent, json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
        };
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        let mut wire = vec![(From::Editor, request)];
        wire.extend(updates.iter().map(update));
        wire.push((From::Agent, answer));
        let found = Wire(wire).in_order().err();
        let start = found.as_deref().map(|found| found.split(": {").next().unwrap_or(found));
        assert_eq!(start, wrong);
    }

    fn begin() -> Value {
        json!({ "sessionUpdate": "tool_call", "toolCallId": "a", "title": "t" })
    }

    fn end() -> Value {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed" })
    }

    #[test]
    fn a_call_begins_and_ends_once() {
        check(&[begin(), end()], None);
        check(&[begin()], Some("call a was left pending"));
        check(&[begin(), begin(), end()], Some("a call that began before"));
        check(&[end()], Some("a call that never began"));
        check(&[begin(), end(), end()], Some("a call that was over"));
    }

    #[test]
    fn nothing_is_added_to_acp() {
        let mut foreign = begin();
        foreign["id"] = json!("a");
        check(&[foreign.clone(), end()], Some("`id` is not of ACP"));
        // Unless it says of itself that it is the other shape.
        foreign["type"] = json!("toolCall");
        check(&[foreign, end()], None);
        let mut kind = begin();
        kind["kind"] = json!("write");
        check(&[kind, end()], Some("a kind that is not of ACP"));
    }

    #[test]
    fn a_turn_is_over_when_it_is_answered() {
        let update = json!({ "sessionUpdate": "agent_message_chunk" });
        let params = json!({ "sessionId": "s", "update": update });
        let late = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let found = Wire(vec![(From::Agent, late)]).in_order();
        assert!(found.is_err_and(|why| why.starts_with("outside a turn")));
    }
}
