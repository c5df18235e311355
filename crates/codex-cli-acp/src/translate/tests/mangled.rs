//! Tests that no malformed message of Codex causes a panic or an update that clients cannot read.

use serde_json::{Value, json};

use super::samples::{items, notifications, requests};
use super::{cwd, everything, read, read_form, read_question};
use crate::translate::*;

/// Returns all values that differ from the sample in one place.
fn mangled(sample: &Value) -> Vec<Value> {
    let wrong = || {
        [json!(null), json!(7), json!(-0.5), json!([]), json!({}), json!("é\n`````"), json!([[1]])]
    };
    let mut all: Vec<Value> = wrong().into();
    match sample {
        Value::Object(members) => {
            for (name, member) in members {
                let mut without = members.clone();
                without.remove(name);
                all.push(without.into());
                for other in mangled(member) {
                    let mut changed = members.clone();
                    changed[name] = other;
                    all.push(changed.into());
                }
            }
        }
        Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate() {
                for other in mangled(part) {
                    let mut changed = parts.clone();
                    changed[at] = other;
                    all.push(changed.into());
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn items_begin_and_end() {
    let mut seen = 0;
    for item in items().iter().flat_map(mangled) {
        for display in [DisplayCapabilities::default(), everything()] {
            let mut sent_updates = SentUpdates::default();
            let updates = [
                item_started(&item, cwd(), display, &mut sent_updates),
                item_completed(&item, cwd(), display, &mut sent_updates),
                item_completed(&item, cwd(), display, &mut SentUpdates::default()),
                replayed(&item, cwd(), display),
            ];
            updates.iter().flatten().for_each(read);
            seen += updates.iter().flatten().count();
        }
    }
    assert!(seen > 5000, "{seen} updates");
}

#[test]
fn notifications_of_open_items() {
    let mut seen = 0;
    for (method, params) in notifications() {
        for params in mangled(&params) {
            for display in [DisplayCapabilities::default(), everything()] {
                let mut sent_updates = SentUpdates::default();
                for item in items() {
                    item_started(&item, cwd(), display, &mut sent_updates);
                }
                let mut updates = notification(method, &params, cwd(), display, &mut sent_updates);
                updates.extend(sent_updates.abandon());
                updates.iter().for_each(read);
                seen += updates.len();
            }
        }
    }
    assert!(seen > 1000, "{seen} updates");
}

#[test]
fn questions() {
    let mut seen = 0;
    for (method, params) in requests() {
        for params in mangled(&params) {
            for (display, item) in
                [(DisplayCapabilities::default(), None), (everything(), Some(&items()[6]))]
            {
                match user_request(method, &params, item, cwd(), display) {
                    Some(UserRequest::Choice(question)) => {
                        read_question(&question);
                        assert!(question.closing(None).iter().all(|update| {
                            read(update);
                            true
                        }));
                    }
                    Some(UserRequest::Form(form)) => {
                        read_form(&form);
                        for answer in mangled(&json!({"action": "accept", "content": {"db": "x"}}))
                        {
                            assert!(form.answer(&answer).is_object());
                        }
                    }
                    Some(UserRequest::Unsupported(answer)) => assert!(answer.is_object()),
                    None => panic!("{method} is for a person"),
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 1000, "{seen} questions");
}

#[test]
fn turns_and_prompts() {
    let turn = json!({"id": "1", "status": "failed", "error": {"message": "m", "codexErrorInfo":
        {"httpConnectionFailed": {"httpStatusCode": 500}}, "additionalDetails": "d", "misalignment": null}});
    for turn in mangled(&turn) {
        let _ = turn_outcome(&turn);
    }
    for params in mangled(&notifications()[11].1) {
        let _ = usage(&params);
    }
    let blocks = json!([{"type": "text", "text": "x"}, {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "resource_link", "name": "a", "uri": "file:///a"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}]);
    for blocks in mangled(&blocks) {
        if let Some(blocks) = blocks.as_array()
            && let Ok(input) = prompt(blocks)
        {
            assert_eq!(input.len(), blocks.len());
        }
    }
}
