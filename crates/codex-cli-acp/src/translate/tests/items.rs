//! Tests of items that begin, end, and are replayed.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::samples::*;
use super::{check, cwd, everything, read};
use crate::translate::command::title;
use crate::translate::*;

/// Checks the start and end of an item in an editor without extras, and its replay.
fn life(item: &Value, live: &Expect, past: &Expect) {
    let mut sent_updates = SentUpdates::default();
    let display = DisplayCapabilities::default();
    let mut updates = item_started(&begun(item.clone()), cwd(), display, &mut sent_updates);
    updates.extend(item_completed(item, cwd(), display, &mut sent_updates));
    check(&updates, live);
    check(&replayed(item, cwd(), display), past);
    assert!(sent_updates.abandon().is_empty(), "nothing is open");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for every type")]
fn every_type() {
    let rows: &[(Expect, Expect)] = &[
        (
            expect![[""]],
            expect![[r#"
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"text","text":"Look at this"}}
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}}
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"resource_link","name":"image","uri":"https://example.com/a.png"}}
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"resource_link","name":"/home/me/a.png","uri":"file:///home/me/a.png"}}
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"text","text":"@docs"}}
            {"sessionUpdate":"user_message_chunk","messageId":"msg-0","content":{"type":"text","text":"$review"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"hook-1","content":{"type":"text","text":"Run the tests."}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"hook-1","content":{"type":"text","text":"Run the tests."}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"msg-1","content":{"type":"text","text":"Hello."}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"msg-1","content":{"type":"text","text":"Hello."}}
        "#]],
        ),
        (expect![[""]], expect![[""]]),
        (
            expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"plan-1","content":{"type":"text","text":"1. Read\n2. Write"}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"plan-1","content":{"type":"text","text":"1. Read\n2. Write"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"rs-1","content":{"type":"text","text":"**First**\n\n**Second**"}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"rs-1","content":{"type":"text","text":"**First**\n\n**Second**"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-1","title":"cargo test","kind":"execute","status":"in_progress","rawInput":{"command":"/bin/bash -lc 'cargo test'","cwd":"/home/me/project"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-1","title":"cargo test","kind":"execute","status":"completed","content":[{"type":"content","content":{"type":"text","text":"```\nrunning 2 tests\nok\n```"}}],"rawOutput":{"exitCode":0,"durationMs":1200,"status":"completed"}}
        "#]],
            expect![[r#"
                {"sessionUpdate":"tool_call","toolCallId":"call-1","title":"cargo test","kind":"execute","status":"completed","content":[{"type":"content","content":{"type":"text","text":"```\nrunning 2 tests\nok\n```"}}],"rawInput":{"command":"/bin/bash -lc 'cargo test'","cwd":"/home/me/project"},"rawOutput":{"exitCode":0,"durationMs":1200,"status":"completed"}}
            "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-2","title":"Edit 3 files","kind":"edit","status":"in_progress","locations":[{"path":"/home/me/project/src/a.rs","line":10},{"path":"/home/me/project/new.txt"},{"path":"/home/me/project/old.txt"}],"content":[{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"},{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"z\n","newText":"z\n--- not a header\n"},{"type":"diff","path":"/home/me/project/new.txt","oldText":null,"newText":"new\n"},{"type":"diff","path":"/home/me/project/old.txt","oldText":"old\n","newText":""}]}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-2","title":"Edit 3 files","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/src/a.rs","line":10},{"path":"/home/me/project/new.txt"},{"path":"/home/me/project/old.txt"}]}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-2","title":"Edit 3 files","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/src/a.rs","line":10},{"path":"/home/me/project/new.txt"},{"path":"/home/me/project/old.txt"}],"content":[{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"},{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"z\n","newText":"z\n--- not a header\n"},{"type":"diff","path":"/home/me/project/new.txt","oldText":null,"newText":"new\n"},{"type":"diff","path":"/home/me/project/old.txt","oldText":"old\n","newText":""}]}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"in_progress","rawInput":{"q":"x"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"completed","content":[{"type":"content","content":{"type":"text","text":"found"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}},{"type":"content","content":{"type":"resource_link","name":"page","uri":"https://example.com"}},{"type":"content","content":{"type":"text","text":"embedded"}}],"rawOutput":{"content":[{"type":"text","text":"found"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"resource_link","uri":"https://example.com","name":"page"},{"type":"resource","resource":{"uri":"docs://x","text":"embedded"}}],"structuredContent":null,"_meta":null}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"completed","content":[{"type":"content","content":{"type":"text","text":"found"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}},{"type":"content","content":{"type":"resource_link","name":"page","uri":"https://example.com"}},{"type":"content","content":{"type":"text","text":"embedded"}}],"rawInput":{"q":"x"},"rawOutput":{"content":[{"type":"text","text":"found"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"resource_link","uri":"https://example.com","name":"page"},{"type":"resource","resource":{"uri":"docs://x","text":"embedded"}}],"structuredContent":null,"_meta":null}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-5","title":"ide: open","name":"open","kind":"other","status":"in_progress","rawInput":{"path":"a.rs"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-5","title":"ide: open","name":"open","kind":"other","status":"completed","content":[{"type":"content","content":{"type":"text","text":"opened"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}}],"rawOutput":{"success":true}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-5","title":"ide: open","name":"open","kind":"other","status":"completed","content":[{"type":"content","content":{"type":"text","text":"opened"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}}],"rawInput":{"path":"a.rs"},"rawOutput":{"success":true}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-6","title":"Start a sub-agent","kind":"other","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"Count the files"}}],"rawInput":{"tool":"spawnAgent","prompt":"Count the files","model":"gpt-6","reasoningEffort":"low","receiverThreadIds":["t-2"]}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-6","title":"Start a sub-agent","kind":"other","status":"completed","content":[{"type":"content","content":{"type":"text","text":"Count the files"}},{"type":"content","content":{"type":"text","text":"t-2 completed: 12"}}],"rawOutput":{"agentsStates":{"t-2":{"status":"completed","message":"12"}}}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-6","title":"Start a sub-agent","kind":"other","status":"completed","content":[{"type":"content","content":{"type":"text","text":"Count the files"}},{"type":"content","content":{"type":"text","text":"t-2 completed: 12"}}],"rawInput":{"tool":"spawnAgent","prompt":"Count the files","model":"gpt-6","reasoningEffort":"low","receiverThreadIds":["t-2"]},"rawOutput":{"agentsStates":{"t-2":{"status":"completed","message":"12"}}}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"act-1","title":"Sub-agent /root/counter started","kind":"other","status":"in_progress","rawInput":{"agentPath":"/root/counter","agentThreadId":"t-2"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"act-1","title":"Sub-agent /root/counter started","kind":"other","status":"completed"}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"act-1","title":"Sub-agent /root/counter started","kind":"other","status":"completed","rawInput":{"agentPath":"/root/counter","agentThreadId":"t-2"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"ws-1","title":"Search the web: rust serde","kind":"search","status":"in_progress","rawInput":{"query":"rust serde","action":{"type":"search","query":"rust serde","queries":["rust serde"]}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"ws-1","title":"Search the web: rust serde","kind":"search","status":"completed"}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"ws-1","title":"Search the web: rust serde","kind":"search","status":"completed","rawInput":{"query":"rust serde","action":{"type":"search","query":"rust serde","queries":["rust serde"]}}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-8","title":"View img/a.png","kind":"read","status":"in_progress","locations":[{"path":"/home/me/project/img/a.png"}],"rawInput":{"path":"/home/me/project/img/a.png"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-8","title":"View img/a.png","kind":"read","status":"completed","locations":[{"path":"/home/me/project/img/a.png"}]}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-8","title":"View img/a.png","kind":"read","status":"completed","locations":[{"path":"/home/me/project/img/a.png"}],"rawInput":{"path":"/home/me/project/img/a.png"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-9","title":"Wait 0 s","kind":"other","status":"in_progress","rawInput":{"durationMs":0}}
            {"sessionUpdate":"tool_call_update","toolCallId":"call-9","title":"Wait 1500 ms","kind":"other","status":"completed"}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-9","title":"Wait 1500 ms","kind":"other","status":"completed","rawInput":{"durationMs":1500}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"ig-1","title":"Generate an image","kind":"other","status":"in_progress","locations":[{"path":"/home/me/boat.png"}]}
            {"sessionUpdate":"tool_call_update","toolCallId":"ig-1","title":"Generate an image","kind":"other","status":"completed","locations":[{"path":"/home/me/boat.png"}],"content":[{"type":"content","content":{"type":"text","text":"A red boat"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}}],"rawOutput":{"savedPath":"/home/me/boat.png"}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"ig-1","title":"Generate an image","kind":"other","status":"completed","locations":[{"path":"/home/me/boat.png"}],"content":[{"type":"content","content":{"type":"text","text":"A red boat"}},{"type":"content","content":{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}}],"rawOutput":{"savedPath":"/home/me/boat.png"}}
        "#]],
        ),
        (
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"rev-1","content":{"type":"text","text":"Review: current changes\n\n"}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","messageId":"rev-1","content":{"type":"text","text":"Review: current changes\n\n"}}
        "#]],
        ),
        (expect![""], expect![""]),
        (
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"The context was compacted\n\n"}}
        "#]],
            expect![[r#"
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"The context was compacted\n\n"}}
        "#]],
        ),
    ];
    assert_eq!(rows.len(), items().len());
    for (item, (live, past)) in items().iter().zip(rows) {
        life(item, live, past);
    }
    life(&json!({"type": "future", "id": "x"}), &expect![[""]], &expect![[""]]);
}

#[test]
fn output_of_a_terminal_is_sent_once() {
    let rows = [
        // Output that came in pieces, and output that is sent at the end.
        ("", Some("running 2 tests\nok\n")),
        ("running 2 tests\n", Some("ok\n")),
        ("running 2 tests\nok\n", None),
        // The first bytes never came.
        ("2 tests\nok\n", Some("\r\n[the output began with:]\r\nrunning ")),
        // The pieces are not part of the final output, which Codex shortened.
        ("something else entirely, and longer than that", None),
        ("tests", None),
    ];
    for (pieces, at_end) in rows {
        let mut sent_updates = SentUpdates::default();
        item_started(&begun(command()), cwd(), everything(), &mut sent_updates);
        for piece in pieces.split_inclusive(' ') {
            let params = json!({"itemId": "call-1", "delta": piece});
            let method = "item/commandExecution/outputDelta";
            let updates = notification(method, &params, cwd(), everything(), &mut sent_updates);
            assert_eq!(updates[0]["_meta"]["terminal_output"]["data"], piece);
            updates.iter().for_each(read);
        }
        let updates = item_completed(&command(), cwd(), everything(), &mut sent_updates);
        updates.iter().for_each(read);
        assert_eq!(updates[0]["_meta"]["terminal_output"]["data"].as_str(), at_end, "{pieces}");
        assert_eq!(updates[0]["_meta"]["terminal_exit"]["exit_code"], 0);
        assert_eq!(updates[0].get("content"), None, "the terminal stays");
    }
}

#[test]
fn a_terminal_begins_and_is_closed_with_its_turn() {
    let mut sent_updates = SentUpdates::default();
    let mut updates = item_started(&begun(command()), cwd(), everything(), &mut sent_updates);
    assert!(
        item_started(&begun(command()), cwd(), everything(), &mut sent_updates).is_empty(),
        "once"
    );
    let compaction = json!({"type": "contextCompaction", "id": "comp-1"});
    updates.extend(item_started(&compaction, cwd(), everything(), &mut sent_updates));
    updates.extend(item_started(&begun(mcp()), cwd(), everything(), &mut sent_updates));
    updates.extend(sent_updates.abandon());
    updates.extend(sent_updates.abandon());
    check(
        &updates,
        &expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"call-1","title":"cargo test","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"call-1"}],"rawInput":{"command":"/bin/bash -lc 'cargo test'","cwd":"/home/me/project"},"_meta":{"terminal_info":{"terminal_id":"call-1","cwd":"/home/me/project"}}}
        {"sessionUpdate":"compaction_update","compactionId":"comp-1","status":"in_progress"}
        {"sessionUpdate":"tool_call","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"in_progress","rawInput":{"q":"x"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"failed","_meta":{"terminal_exit":{"terminal_id":"call-1","exit_code":null,"signal":null}}}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-3","status":"failed"}
        {"sessionUpdate":"compaction_update","compactionId":"comp-1","status":"cancelled"}
    "#]],
    );
}

#[test]
fn text_is_sent_once() {
    for (delta, rest) in
        [("", Some("Hello.")), ("Hel", Some("lo.")), ("Hello.", None), ("Other", None)]
    {
        let mut sent_updates = SentUpdates::default();
        let params = json!({"itemId": "msg-1", "delta": delta});
        notification(
            "item/agentMessage/delta",
            &params,
            cwd(),
            DisplayCapabilities::default(),
            &mut sent_updates,
        );
        let updates = item_completed(
            &message("Hello."),
            cwd(),
            DisplayCapabilities::default(),
            &mut sent_updates,
        );
        assert_eq!(updates.first().and_then(|update| update["content"]["text"].as_str()), rest);
    }
}

#[test]
fn thoughts_are_their_summary_or_their_words() {
    type Deltas<'a> = &'a [(&'a str, u64, &'a str)];
    let rows: [(Deltas<'_>, &[&str]); 4] = [
        (
            &[
                ("summaryTextDelta", 0, "**First**"),
                ("summaryTextDelta", 1, "**Sec"),
                ("summaryTextDelta", 1, "ond**"),
            ],
            &["**First**", "\n\n**Sec", "ond**"],
        ),
        (
            &[("summaryTextDelta", 0, "**First**"), ("textDelta", 0, "raw")],
            &["**First**", "\n\n**Second**"],
        ),
        (&[("textDelta", 0, "ra"), ("summaryTextDelta", 0, "**First**")], &["ra", "w"]),
        (&[], &["**First**\n\n**Second**"]),
    ];
    for (deltas, sent) in rows {
        let mut sent_updates = SentUpdates::default();
        let mut updates = Vec::new();
        for (method, index, delta) in deltas {
            let params = json!({"itemId": "rs-1", "delta": delta, "summaryIndex": index, "contentIndex": index});
            let method = format!("item/reasoning/{method}");
            updates.extend(notification(
                &method,
                &params,
                cwd(),
                DisplayCapabilities::default(),
                &mut sent_updates,
            ));
        }
        updates.extend(item_completed(
            &reasoning(),
            cwd(),
            DisplayCapabilities::default(),
            &mut sent_updates,
        ));
        let texts: Vec<_> =
            updates.iter().map(|update| update["content"]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, sent);
        assert!(updates.iter().all(|update| update["messageId"] == "rs-1"));
    }
}

#[test]
fn commands_have_the_words_a_person_would_type() {
    let long = "x ".repeat(100_000);
    let rows = [
        ("/bin/bash -lc 'git status'", "git status".to_owned()),
        ("zsh -c ls", "ls".into()),
        (r#"bash -lc "echo \"it's\" \$HOME""#, r#"echo "it's" $HOME"#.into()),
        (r#"bash -lc "echo it's "'$HOME'\ x"#, "echo it's $HOME x".into()),
        ("bash -lc 'a' 'b'", "bash -lc 'a' 'b'".into()),
        ("bash -lc 'a", "bash -lc 'a".into()),
        ("fish -c 'a'", "fish -c 'a'".into()),
        ("cat <<E\n  ä\nE", "cat <<E ä E".into()),
        (&long, format!("{}…", "x ".repeat(60).trim_end())),
        (&"ä".repeat(500), format!("{}…", "ä".repeat(119))),
        ("", "Command".into()),
    ];
    for (script, expected) in rows {
        assert_eq!(title(script), expected);
    }
}

#[test]
fn a_command_that_only_looks_is_a_read_or_a_search() {
    let read = json!({"type": "read", "command": "cat a", "name": "a", "path": "sub/a"});
    let find = json!({"type": "search", "command": "rg x", "query": "x", "path": null});
    let ls = json!({"type": "listFiles", "command": "ls /b", "path": "/b"});
    let other = json!({"type": "unknown", "command": "rm a"});
    let a = json!({"path": "/home/me/project/sub/a"});
    let rows = [
        (json!([read]), "read", json!([a])),
        (json!([read, find]), "search", json!([a])),
        (json!([ls]), "search", json!([{"path": "/b"}])),
        (json!([read, other]), "execute", Value::Null),
        (json!([]), "execute", Value::Null),
    ];
    for (actions, kind, locations) in rows {
        let mut item = command();
        item["commandActions"] = actions;
        let update = &replayed(&item, cwd(), everything())[0];
        assert_eq!((&update["kind"], &update["locations"]), (&json!(kind), &locations));
    }
}

#[test]
fn output_is_fenced_and_shortened() {
    let mut item = command();
    let text = |item: &Value| {
        let update = &replayed(item, cwd(), DisplayCapabilities::default())[0];
        update["content"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    item["aggregatedOutput"] = json!("a\n````\nb");
    assert_eq!(text(&item), "`````\na\n````\nb\n`````");
    item["aggregatedOutput"] = json!("ä".repeat(16 * 1024));
    let shortened = text(&item);
    assert!(shortened.contains("\n[… 16384 bytes left out …]\n"), "{shortened}");
    assert!(shortened.len() < 17 * 1024);
}

#[test]
fn failed_and_declined_calls_fail() {
    let mut refused = command();
    refused["status"] = json!("declined");
    refused["exitCode"] = Value::Null;
    let mut broken = mcp();
    broken["status"] = json!("failed");
    broken["result"] = Value::Null;
    broken["error"] = json!({"message": "no such tool"});
    let mut unpaid = items()[15].clone();
    unpaid["failure"] =
        json!({"type": "usageLimitExceeded", "limitId": "images", "resetsAt": null});
    for item in [&refused, &broken, &unpaid] {
        assert_eq!(replayed(item, cwd(), DisplayCapabilities::default())[0]["status"], "failed");
    }
    assert_eq!(
        replayed(&begun(mcp()), cwd(), DisplayCapabilities::default())[0]["status"],
        "failed",
        "never ended"
    );
    life(
        &broken,
        &expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"in_progress","rawInput":{"q":"x"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no such tool"}}]}
    "#]],
        &expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no such tool"}}],"rawInput":{"q":"x"}}
        "#]],
    );
}

#[test]
fn patches() {
    let change = |path: &str, kind: Value, diff: &str| json!({"type": "fileChange", "id": "p", "status": "completed", "changes": [{"path": path, "kind": kind, "diff": diff}]});
    let update = json!({"type": "update", "move_path": null});
    let moved = json!({"type": "update", "move_path": "b/new.rs"});
    let rows = [
        (
            change(
                "a.rs",
                update.clone(),
                "@@ -1,2 +1 @@\n-x\n-y\n\\ No newline at end of file\n+x\r\n",
            ),
            expect![[r#"
                {"sessionUpdate":"tool_call","toolCallId":"p","title":"Edit a.rs","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/a.rs","line":1}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"x\ny","newText":"x\r\n"}]}
            "#]],
        ),
        (
            change("a.rs", moved.clone(), "@@ -3 +3 @@\n-x\n+y\n\n\nMoved to: b/new.rs"),
            expect![[r#"
                {"sessionUpdate":"tool_call","toolCallId":"p","title":"Move a.rs to b/new.rs","kind":"move","status":"completed","locations":[{"path":"/home/me/project/b/new.rs","line":3}],"content":[{"type":"diff","path":"/home/me/project/b/new.rs","oldText":"x\n","newText":"y\n"}]}
            "#]],
        ),
        (
            change("a.rs", update.clone(), "@@ -1 +0,0 @@\n-x\n"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Edit a.rs","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/a.rs","line":1}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"x\n","newText":""}]}
        "#]],
        ),
        (
            change("a.rs", moved, ""),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Move a.rs to b/new.rs","kind":"move","status":"completed","locations":[{"path":"/home/me/project/b/new.rs"}]}
        "#]],
        ),
        (
            change("a.rs", json!({"type": "delete"}), "x\n"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Delete a.rs","kind":"delete","status":"completed","locations":[{"path":"/home/me/project/a.rs"}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"x\n","newText":""}]}
        "#]],
        ),
        (
            change("/etc/hosts", json!({"type": "add"}), "x\n"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Create /etc/hosts","kind":"edit","status":"completed","locations":[{"path":"/etc/hosts"}],"content":[{"type":"diff","path":"/etc/hosts","oldText":null,"newText":"x\n"}]}
        "#]],
        ),
        (
            change("a.rs", update.clone(), "@@ fn main\n a\n-b\n+c\n@@\n+d"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Edit a.rs","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/a.rs"}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"a\nb\n","newText":"a\nc\n"},{"type":"diff","path":"/home/me/project/a.rs","oldText":"","newText":"d\n"}]}
        "#]],
        ),
        (
            change("a.rs", update.clone(), "@@ -99999999999 +1 @@\n+d\n"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Edit a.rs","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/a.rs"}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"","newText":"d\n"}]}
        "#]],
        ),
        (
            change("a.rs", update, "what is this?"),
            expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"p","title":"Edit a.rs","kind":"edit","status":"completed","locations":[{"path":"/home/me/project/a.rs"}],"content":[{"type":"content","content":{"type":"text","text":"```\nwhat is this?\n```"}}]}
        "#]],
        ),
    ];
    for (item, expected) in rows {
        check(&replayed(&item, cwd(), DisplayCapabilities::default()), &expected);
    }
}

#[test]
fn searches_of_the_web() {
    let rows = [
        (json!(null), ("search", "Search the web")),
        (json!({"type": "search", "queries": ["a", "b"]}), ("search", "Search the web: a, b")),
        (json!({"type": "open_page", "url": "https://a.b"}), ("fetch", "Open https://a.b")),
        (
            json!({"type": "find_in_page", "url": "https://a.b", "pattern": "x"}),
            ("fetch", "Find x in https://a.b"),
        ),
    ];
    for (action, (kind, title)) in rows {
        let update = &replayed(&web_search(&action), cwd(), DisplayCapabilities::default())[0];
        assert_eq!((&update["kind"], &update["title"]), (&json!(kind), &json!(title)));
    }
}

#[test]
fn an_end_without_a_beginning_is_both() {
    let updates = item_completed(&command(), cwd(), everything(), &mut SentUpdates::default());
    assert_eq!(updates, replayed(&command(), cwd(), everything()));
    assert_eq!(updates[0]["sessionUpdate"], "tool_call");
    assert_eq!(updates[0]["content"][0]["type"], "content", "no terminal");
}

#[test]
fn a_beginning_always_has_an_end() {
    let mut sent_updates = SentUpdates::default();
    item_started(&command(), cwd(), everything(), &mut sent_updates);
    let unknown = json!({"type": "future", "id": "call-1"});
    let updates = item_completed(&unknown, cwd(), everything(), &mut sent_updates);
    assert_eq!(updates, [abandoned("call-1")]);
}
