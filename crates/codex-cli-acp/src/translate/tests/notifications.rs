//! Tests of notifications and their updates.

use expect_test::expect;
use serde_json::{Value, json};

use super::samples::{begun, items, notifications};
use super::{check, cwd, everything};
use crate::translate::*;

fn told(display: DisplayCapabilities) -> Vec<Value> {
    let mut sent_updates = SentUpdates::default();
    for item in items() {
        item_started(&begun(item), cwd(), display, &mut sent_updates);
    }
    let each = notifications().into_iter();
    each.flat_map(|(method, params)| {
        notification(method, &params, cwd(), display, &mut sent_updates)
    })
    .collect()
}

#[test]
fn in_an_editor_that_shows_everything() {
    check(
        &told(everything()),
        &expect![[r#"
        {"sessionUpdate":"agent_message_chunk","messageId":"msg-1","content":{"type":"text","text":"Hel"}}
        {"sessionUpdate":"agent_message_chunk","messageId":"plan-1","content":{"type":"text","text":"1. Read"}}
        {"sessionUpdate":"agent_thought_chunk","messageId":"rs-1","content":{"type":"text","text":"**First**"}}
        {"sessionUpdate":"agent_thought_chunk","messageId":"rs-1","content":{"type":"text","text":"\n\n**Second**"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-1","_meta":{"terminal_output":{"terminal_id":"call-1","data":"running 2 tests\n"}}}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-3","content":[{"type":"content","content":{"type":"text","text":"half"}}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-2","title":"Edit 3 files","kind":"edit","locations":[{"path":"/home/me/project/src/a.rs","line":10},{"path":"/home/me/project/new.txt"},{"path":"/home/me/project/old.txt"}],"content":[{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"},{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"z\n","newText":"z\n--- not a header\n"},{"type":"diff","path":"/home/me/project/new.txt","oldText":null,"newText":"new\n"},{"type":"diff","path":"/home/me/project/old.txt","oldText":"old\n","newText":""}]}
        {"sessionUpdate":"plan","entries":[{"content":"Read","priority":"medium","status":"completed"},{"content":"Write","priority":"medium","status":"in_progress"},{"content":"Test","priority":"medium","status":"pending"}]}
        {"sessionUpdate":"usage_update","used":1500,"size":272000}
        {"sessionUpdate":"session_info_update","title":"Fix the tests"}
        {"sessionUpdate":"notice","severity":"warning","title":"Reconnecting... 1/5","description":"stream closed"}
        {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"This cannot be done."}}
        {"sessionUpdate":"notice","severity":"warning","title":"Long threads are less accurate"}
        {"sessionUpdate":"notice","severity":"warning","title":"Unknown key","description":"in config.toml"}
        {"sessionUpdate":"notice","severity":"warning","title":"Codex goes on with gpt-5.5 in place of gpt-6","description":"highRiskCyberActivity"}
        {"sessionUpdate":"notice","severity":"warning","title":"MCP server `docs` did not start","description":"no such file"}
    "#]],
    );
}

#[test]
fn in_an_editor_without_extras_output_waits_and_notices_are_thoughts() {
    let rich = told(everything());
    let others: Vec<_> = told(DisplayCapabilities::default())
        .into_iter()
        .filter(|update| !rich.contains(update))
        .collect();
    check(
        &others,
        &expect![[r#"
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Reconnecting... 1/5: stream closed\n\n"}}
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Long threads are less accurate\n\n"}}
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Unknown key: in config.toml\n\n"}}
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Codex goes on with gpt-5.5 in place of gpt-6: highRiskCyberActivity\n\n"}}
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"MCP server `docs` did not start: no such file\n\n"}}
    "#]],
    );
    assert_eq!(rich.len(), told(DisplayCapabilities::default()).len() + 1, "only the output waits");
}

#[test]
fn tool_calls_that_have_not_begun_are_not_updated() {
    for (method, params) in &notifications()[6..10] {
        let mut sent_updates = SentUpdates::default();
        assert!(
            notification(method, params, cwd(), everything(), &mut sent_updates).is_empty(),
            "{method}"
        );
    }
}

#[test]
fn a_context_of_unknown_size_is_not_told() {
    let params = json!({"tokenUsage": {"last": {"totalTokens": 5}, "modelContextWindow": null}});
    let method = "thread/tokenUsage/updated";
    assert!(
        notification(method, &params, cwd(), everything(), &mut SentUpdates::default()).is_empty()
    );
}
