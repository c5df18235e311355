//! Tests of prompts, and of the ends of turns.

use agent_client_protocol::v1::schema::Usage;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::read;
use super::samples::notifications;
use crate::translate::*;

#[test]
fn prompts() {
    let rows: &[(Value, Expect)] = &[
        (
            json!({"type": "text", "text": "Hi"}),
            expect![[r#"[{"type":"text","text":"Hi","text_elements":[]}]"#]],
        ),
        (
            json!({"type": "image", "data": "AA==", "mimeType": "image/jpeg"}),
            expect![[r#"[{"type":"image","url":"data:image/jpeg;base64,AA=="}]"#]],
        ),
        (
            json!({"type": "image", "data": "", "mimeType": "image/png", "uri": "https://a.b/c.png"}),
            expect![[r#"[{"type":"image","url":"https://a.b/c.png"}]"#]],
        ),
        (
            json!({"type": "image", "mimeType": "image/png"}),
            expect!["An image has no data: send it as base64 in `data`"],
        ),
        (
            json!({"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"}),
            expect![[r#"[{"type":"text","text":"[@a.rs](file:///p/a.rs)","text_elements":[]}]"#]],
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///p/a.md", "text": "```\nx\n```\n"}}),
            expect![[
                r#"[{"type":"text","text":"Contents of file:///p/a.md:\n````\n```\nx\n```\n````","text_elements":[]}]"#
            ]],
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///p/a.png", "blob": "AA==", "mimeType": "image/png"}}),
            expect![[r#"[{"type":"image","url":"data:image/png;base64,AA=="}]"#]],
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///p/a.zip", "blob": "AA==", "mimeType": "application/zip"}}),
            expect!["The resource file:///p/a.zip is neither text nor an image: link it instead"],
        ),
        (
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            expect!["Audio is not supported: send the words as text"],
        ),
        (json!({"type": "video"}), expect!["Blocks of type `video` are not supported: send text"]),
    ];
    for (block, expected) in rows {
        let got = match prompt(std::slice::from_ref(block)) {
            Ok(input) => json!(input).to_string(),
            Err(why) => why,
        };
        expected.assert_eq(&got);
    }
    assert!(prompt(&[]).is_err());
}

#[test]
fn ends() {
    let turn = |status: &str, info: Value| {
        json!({"id": "1", "status": status, "error": {"message": "It failed.", "codexErrorInfo": info,
            "additionalDetails": null, "misalignment": null}})
    };
    let unauthorized = json!({"responseStreamConnectionFailed": {"httpStatusCode": 401}});
    let rows = [
        (json!({"status": "completed", "error": null}), expect!["end_turn"]),
        (turn("interrupted", json!(null)), expect!["cancelled"]),
        (turn("failed", json!("cyberPolicy")), expect!["refusal"]),
        (
            turn("failed", json!("unauthorized")),
            expect![[
                r#"-32000 It failed; log in to Codex and try again {"codexErrorInfo":"unauthorized"}"#
            ]],
        ),
        (
            turn("failed", unauthorized),
            expect![[
                r#"-32000 It failed; log in to Codex and try again {"codexErrorInfo":{"responseStreamConnectionFailed":{"httpStatusCode":401}}}"#
            ]],
        ),
        (
            turn("failed", json!("contextWindowExceeded")),
            expect![[
                r#"-32603 It failed; use /compact or start a new session {"codexErrorInfo":"contextWindowExceeded"}"#
            ]],
        ),
        (
            turn("failed", json!("usageLimitExceeded")),
            expect![[
                r#"-32603 It failed; wait until the limit is reset or change your plan {"codexErrorInfo":"usageLimitExceeded"}"#
            ]],
        ),
        (
            turn("failed", json!({"httpConnectionFailed": {"httpStatusCode": 500}})),
            expect![[
                r#"-32603 It failed {"codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":500}}}"#
            ]],
        ),
        (
            json!({"status": "failed", "error": null}),
            expect!["-32603 Codex ended the turn without an answer {}"],
        ),
        (json!({}), expect!["-32603 Codex ended the turn without an answer {}"]),
    ];
    for (turn, expected) in rows {
        let got = match turn_outcome(&turn) {
            Ok(reason) => reason.to_owned(),
            Err(TurnError { code, message, data }) => format!("{code} {message} {data}"),
        };
        expected.assert_eq(&got);
    }
}

#[test]
fn tokens_of_the_session() {
    let (_, params) = &notifications()[11];
    let used = usage(params).unwrap();
    expect![[r#"{"totalTokens":1500,"inputTokens":1200,"outputTokens":300,"thoughtTokens":250,"cachedReadTokens":1000,"cachedWriteTokens":7}"#]].assert_eq(&used.to_string());
    let typed: Usage = serde_json::from_value(used.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), used);
    assert_eq!(usage(&json!({"tokenUsage": null})), None);
}

#[test]
fn calls_that_are_left_and_that_go_on() {
    for (update, status) in [(abandoned("c"), "failed"), (resumed("c"), "in_progress")] {
        read(&update);
        assert_eq!((&update["toolCallId"], &update["status"]), (&json!("c"), &json!(status)));
    }
}
