//! Tests of requests as questions and forms, and of the answers to Codex.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::user_request::{ChoiceOption, FormRequest};
use super::samples::*;
use super::{cwd, everything, lines, read, read_form, read_question};
use crate::translate::*;

/// Checks a request as an editor without extras is asked it, and its answers.
fn check(method: &str, params: &Value, item: Option<&Value>, expect: &Expect) {
    expect.assert_eq(&put(user_request(
        method,
        params,
        item,
        cwd(),
        DisplayCapabilities::default(),
    )
    .unwrap()));
}

fn put(asked: UserRequest) -> String {
    match asked {
        UserRequest::Choice(question) => {
            read_question(&question);
            let choice = |choice: &ChoiceOption| {
                format!("{} | {} | {} | {}\n", choice.kind, choice.id, choice.name, choice.answer)
            };
            let choices: String = question.choices.iter().map(choice).collect();
            let alone = if question.is_own_call { " | alone" } else { "" };
            format!(
                "{}{choices}otherwise {}{alone}\n",
                lines(&[question.tool_call]),
                question.default_answer
            )
        }
        UserRequest::Form(form) => {
            read_form(&form);
            format!("form {}\notherwise {}\n", form.params, form.default_answer)
        }
        UserRequest::Unsupported(answer) => format!("refused {answer}\n"),
    }
}

#[test]
fn every_request() {
    let rows: &[Expect] = &[
        expect![[r#"
            {"toolCallId":"call-1","title":"git push","kind":"execute","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Needs the network\n\n```\n/bin/bash -lc 'git push'\n```\n\nNetwork access to `example.com` (https)\n\n- network access\n\nIn `/home/me/project`"}}],"rawInput":{"command":"/bin/bash -lc 'git push'","cwd":"/home/me/project"}}
            allow_once | accept | Allow once | {"decision":"accept"}
            allow_always | acceptForSession | Allow for this session | {"decision":"acceptForSession"}
            allow_always | acceptWithExecpolicyAmendment | Always allow commands that begin with `git push` | {"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","push"]}}}
            allow_always | acceptWithExecpolicyAmendment-3 | Always allow `a && b` | {"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["/bin/bash","-lc","a && b"]}}}
            allow_always | applyNetworkPolicyAmendment | Always allow network access to `example.com` | {"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"example.com","action":"allow"}}}}
            reject_always | applyNetworkPolicyAmendment-5 | Never allow network access to `example.com` | {"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"example.com","action":"deny"}}}}
            reject_once | decline | Reject | {"decision":"decline"}
            reject_once | cancel | Reject and stop | {"decision":"cancel"}
            otherwise {"decision":"cancel"}
        "#]],
        expect![[r#"
            {"toolCallId":"call-2","title":"Edit files","kind":"edit","status":"pending","locations":[{"path":"/srv/www"}],"content":[{"type":"content","content":{"type":"text","text":"outside the sandbox"}}]}
            allow_once | accept | Allow once | {"decision":"accept"}
            allow_always | acceptForSession | Allow changes in `/srv/www` for this session | {"decision":"acceptForSession"}
            reject_once | decline | Reject | {"decision":"decline"}
            reject_once | cancel | Reject and stop | {"decision":"cancel"}
            otherwise {"decision":"cancel"}
        "#]],
        expect![[r#"
            {"toolCallId":"call-4","title":"More permissions for Codex","kind":"other","status":"pending","locations":[{"path":"/opt"}],"content":[{"type":"content","content":{"type":"text","text":"To install\n\nCodex asks for more permissions:\n\n- network access\n- write `/opt`\n- read `/etc/*.conf`\n- write the folder for temporary files"}}],"rawInput":{"permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":null,"entries":[{"path":{"type":"path","path":"/opt"},"access":"write"},{"path":{"type":"glob_pattern","pattern":"/etc/*.conf"},"access":"read"},{"path":{"type":"special","value":{"kind":"slash_tmp"}},"access":"write"}]}},"cwd":"/home/me/project"}}
            allow_once | turn | Allow for this turn | {"permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":null,"entries":[{"path":{"type":"path","path":"/opt"},"access":"write"},{"path":{"type":"glob_pattern","pattern":"/etc/*.conf"},"access":"read"},{"path":{"type":"special","value":{"kind":"slash_tmp"}},"access":"write"}]}},"scope":"turn"}
            allow_always | session | Allow for this session | {"permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":null,"entries":[{"path":{"type":"path","path":"/opt"},"access":"write"},{"path":{"type":"glob_pattern","pattern":"/etc/*.conf"},"access":"read"},{"path":{"type":"special","value":{"kind":"slash_tmp"}},"access":"write"}]}},"scope":"session"}
            reject_once | reject | Reject | {"permissions":{},"scope":"turn"}
            otherwise {"permissions":{},"scope":"turn"} | alone
        "#]],
        expect![[r#"
            {"toolCallId":"elicitation-50d783ccae9bae80","title":"Allow the docs MCP server to run tool \"search\"?","kind":"other","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Allow the docs MCP server to run tool \"search\"?\n\nSearches the docs\n\n```\n{\n  \"q\": \"x\"\n}\n```"}}],"rawInput":{"q":"x"}}
            allow_once | once | Allow once | {"action":"accept","content":{},"_meta":null}
            allow_always | session | Allow for this session | {"action":"accept","content":{},"_meta":{"persist":"session"}}
            allow_always | always | Always allow | {"action":"accept","content":{},"_meta":{"persist":"always"}}
            reject_once | decline | Reject | {"action":"decline","content":null,"_meta":null}
            otherwise {"action":"cancel","content":null,"_meta":null} | alone
        "#]],
        expect![[r#"
            refused {"action":"decline","content":null,"_meta":null}
        "#]],
        expect![[r#"
            {"toolCallId":"elicitation-00c5b75de1d84f55","title":"Log in at the bank","kind":"fetch","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Log in at the bank\n\nhttps://bank.example/login"}}]}
            allow_once | once | Accept | {"action":"accept","content":{},"_meta":null}
            reject_once | decline | Reject | {"action":"decline","content":null,"_meta":null}
            otherwise {"action":"cancel","content":null,"_meta":null} | alone
        "#]],
        expect![[r#"
            refused {"action":"decline","content":null,"_meta":null}
        "#]],
        expect![[r#"
            {"toolCallId":"call-7","title":"Database","kind":"other","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Which one?\n\n- SQLite: one file\n- Postgres: a server"}}],"rawInput":{"question":{"id":"db","header":"Database","question":"Which one?","isOther":false,"isSecret":false,"options":[{"label":"SQLite","description":"one file"},{"label":"Postgres","description":"a server"}]}}}
            allow_once | option-0 | SQLite | {"answers":{"db":{"answers":["SQLite"]}}}
            allow_once | option-1 | Postgres | {"answers":{"db":{"answers":["Postgres"]}}}
            reject_once | skip | Skip | {"answers":{}}
            otherwise {"answers":{}} | alone
        "#]],
        expect![[r#"
            refused {"answers":{}}
        "#]],
        expect![[r#"
            {"toolCallId":"call-2","title":"Edit 2 files","kind":"edit","status":"pending","locations":[{"path":"/home/me/project/a.rs","line":1},{"path":"/home/me/project/b.rs"}],"content":[{"type":"diff","path":"/home/me/project/a.rs","oldText":"a\n","newText":"b\n"},{"type":"diff","path":"/home/me/project/b.rs","oldText":null,"newText":"b\n"}]}
            allow_once | approved | Allow once | {"decision":"approved"}
            allow_always | approved_for_session | Allow for this session | {"decision":"approved_for_session"}
            reject_once | denied | Reject | {"decision":{"denied":{"rejection":"rejected by the user"}}}
            reject_once | abort | Reject and stop | {"decision":"abort"}
            otherwise {"decision":"abort"}
        "#]],
        expect![[r#"
            {"toolCallId":"call-1","title":"git push","kind":"execute","status":"pending","content":[{"type":"content","content":{"type":"text","text":"needs the network\n\n```\ngit push\n```\n\nIn `/home/me/project`"}}],"rawInput":{"command":"git push","cwd":"/home/me/project"}}
            allow_once | approved | Allow once | {"decision":"approved"}
            allow_always | approved_for_session | Allow for this session | {"decision":"approved_for_session"}
            reject_once | denied | Reject | {"decision":{"denied":{"rejection":"rejected by the user"}}}
            reject_once | abort | Reject and stop | {"decision":"abort"}
            otherwise {"decision":"abort"}
        "#]],
    ];
    assert_eq!(rows.len(), requests().len());
    for ((method, params), row) in requests().iter().zip(rows) {
        check(method, params, None, row);
    }
    assert!(user_request("currentTime/read", &json!({}), None, cwd(), everything()).is_none());
}

#[test]
fn an_item_that_is_known_is_asked_about() {
    let rows = requests();
    check(
        rows[0].0,
        &rows[0].1,
        Some(&command()),
        &expect![[r#"
            {"toolCallId":"call-1","title":"git push","kind":"execute","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Needs the network\n\n```\n/bin/bash -lc 'git push'\n```\n\nNetwork access to `example.com` (https)\n\n- network access\n\nIn `/home/me/project`"}}],"rawInput":{"command":"/bin/bash -lc 'git push'","cwd":"/home/me/project"}}
            allow_once | accept | Allow once | {"decision":"accept"}
            allow_always | acceptForSession | Allow for this session | {"decision":"acceptForSession"}
            allow_always | acceptWithExecpolicyAmendment | Always allow commands that begin with `git push` | {"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","push"]}}}
            allow_always | acceptWithExecpolicyAmendment-3 | Always allow `a && b` | {"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["/bin/bash","-lc","a && b"]}}}
            allow_always | applyNetworkPolicyAmendment | Always allow network access to `example.com` | {"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"example.com","action":"allow"}}}}
            reject_always | applyNetworkPolicyAmendment-5 | Never allow network access to `example.com` | {"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"example.com","action":"deny"}}}}
            reject_once | decline | Reject | {"decision":"decline"}
            reject_once | cancel | Reject and stop | {"decision":"cancel"}
            otherwise {"decision":"cancel"}
        "#]],
    );
    check(
        rows[1].0,
        &rows[1].1,
        Some(&patch()),
        &expect![[r#"
        {"toolCallId":"call-2","title":"Edit 3 files","kind":"edit","status":"pending","locations":[{"path":"/home/me/project/src/a.rs","line":10},{"path":"/home/me/project/new.txt"},{"path":"/home/me/project/old.txt"}],"content":[{"type":"content","content":{"type":"text","text":"outside the sandbox"}},{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"},{"type":"diff","path":"/home/me/project/src/a.rs","oldText":"z\n","newText":"z\n--- not a header\n"},{"type":"diff","path":"/home/me/project/new.txt","oldText":null,"newText":"new\n"},{"type":"diff","path":"/home/me/project/old.txt","oldText":"old\n","newText":""}]}
        allow_once | accept | Allow once | {"decision":"accept"}
        allow_always | acceptForSession | Allow changes in `/srv/www` for this session | {"decision":"acceptForSession"}
        reject_once | decline | Reject | {"decision":"decline"}
        reject_once | cancel | Reject and stop | {"decision":"cancel"}
        otherwise {"decision":"cancel"}
    "#]],
    );
    check(
        rows[3].0,
        &rows[3].1,
        Some(&begun(mcp())),
        &expect![[r#"
        {"toolCallId":"call-3","title":"docs: search","name":"search","kind":"read","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Allow the docs MCP server to run tool \"search\"?\n\nSearches the docs\n\n```\n{\n  \"q\": \"x\"\n}\n```"}}],"rawInput":{"q":"x"}}
        allow_once | once | Allow once | {"action":"accept","content":{},"_meta":null}
        allow_always | session | Allow for this session | {"action":"accept","content":{},"_meta":{"persist":"session"}}
        allow_always | always | Always allow | {"action":"accept","content":{},"_meta":{"persist":"always"}}
        reject_once | decline | Reject | {"action":"decline","content":null,"_meta":null}
        otherwise {"action":"cancel","content":null,"_meta":null}
    "#]],
    );
}

#[test]
fn a_terminal_stays_where_it_is_asked_about() {
    let content = |item: Option<&Value>| {
        let asked = user_request(
            "item/commandExecution/requestApproval",
            &command_request(),
            item,
            cwd(),
            everything(),
        );
        let Some(UserRequest::Choice(question)) = asked else { panic!("a question") };
        question.tool_call["content"].as_array().unwrap().clone()
    };
    let terminal = json!({"type": "terminal", "terminalId": "call-1"});
    assert_eq!(content(Some(&command())).last(), Some(&terminal));
    assert!(!content(None).contains(&terminal), "it has not begun");
}

#[test]
fn input_for_a_command_leaves_the_command_its_name() {
    let mut params = command_request();
    params["kind"] = json!("writeStdin");
    params["command"] = json!("yes\n");
    let asked = user_request(
        "item/commandExecution/requestApproval",
        &params,
        Some(&command()),
        cwd(),
        DisplayCapabilities::default(),
    );
    let Some(UserRequest::Choice(question)) = asked else { panic!("a question") };
    assert_eq!(question.tool_call["title"], "cargo test");
    let text = question.tool_call["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Input for the running command:\n\n```\nyes\n```"), "{text}");
}

#[test]
fn forms_where_the_editor_shows_them() {
    let mut other = choice_question();
    other["isOther"] = json!(true);
    let clash = json!({"id": "db_note", "header": "Note", "question": "Why?", "isOther": false, "isSecret": false, "options": null});
    let rows = [
        (
            "mcpServer/elicitation/request",
            form_request(),
            expect![[r#"
                form {"mode":"form","message":"Which account?","requestedSchema":{"type":"object","properties":{"account":{"type":"string","title":"Account","oneOf":[{"const":"a","title":"First"},{"const":"b","title":"Second"}]},"mail":{"type":"string","format":"email"},"count":{"type":"integer","minimum":1,"maximum":9},"sure":{"type":"boolean","default":false},"tags":{"type":"array","maxItems":2,"items":{"type":"string","enum":["x","y"]}}},"required":["account"]}}
                otherwise {"action":"cancel","content":null,"_meta":null}
            "#]],
        ),
        (
            "mcpServer/elicitation/request",
            link_request(),
            expect![[r#"
            form {"mode":"url","message":"Log in at the bank","elicitationId":"e-1","url":"https://bank.example/login"}
            otherwise {"action":"cancel","content":null,"_meta":null}
        "#]],
        ),
        (
            "item/tool/requestUserInput",
            input_request(&[other, clash]),
            expect![[r#"
            form {"mode":"form","message":"Codex asks","requestedSchema":{"type":"object","properties":{"db":{"type":"string","title":"Database","description":"Which one?","oneOf":[{"const":"SQLite","title":"SQLite","description":"one file"},{"const":"Postgres","title":"Postgres","description":"a server"}]},"db_note_":{"type":"string","title":"Database: something else"},"db_note":{"type":"string","title":"Note","description":"Why?"}},"required":["db_note"]}}
            otherwise {"answers":{}}
        "#]],
        ),
        (
            "item/tool/requestUserInput",
            input_request(&[free_question()]),
            expect![[r#"
            form {"mode":"form","message":"Codex asks","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name","description":"What is it called?"}},"required":["name"]}}
            otherwise {"answers":{}}
        "#]],
        ),
    ];
    for (method, params, expected) in rows {
        expected.assert_eq(&put(user_request(method, &params, None, cwd(), everything()).unwrap()));
    }
    for (method, params) in [
        ("mcpServer/elicitation/request", tool_request()),
        ("item/tool/requestUserInput", input_request(&[choice_question()])),
    ] {
        let asked = user_request(method, &params, None, cwd(), everything());
        assert!(matches!(asked, Some(UserRequest::Choice(_))), "a few answers need no form");
    }
    let mut odd_approval = tool_request();
    odd_approval["requestedSchema"] = form_request()["requestedSchema"].clone();
    let mut other = choice_question();
    other["isOther"] = json!(true);
    for display in [DisplayCapabilities::default(), everything()] {
        let approval =
            user_request("mcpServer/elicitation/request", &odd_approval, None, cwd(), display);
        assert!(
            matches!(approval, Some(UserRequest::Choice(_))),
            "whether a tool may run is a choice"
        );
        let input = input_request(std::slice::from_ref(&other));
        let input = user_request("item/tool/requestUserInput", &input, None, cwd(), display);
        assert_eq!(
            matches!(input, Some(UserRequest::Form(_))),
            display.forms,
            "free words need a form"
        );
    }
    let mut odd = form_request();
    odd["requestedSchema"]["properties"]["mail"] = json!({"type": "object"});
    let asked = user_request("mcpServer/elicitation/request", &odd, None, cwd(), everything());
    assert!(matches!(asked, Some(UserRequest::Unsupported(_))), "no editor can show it");
}

fn form(method: &str, params: &Value) -> FormRequest {
    match user_request(method, params, None, cwd(), everything()) {
        Some(UserRequest::Form(form)) => form,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_of_forms() {
    let account = form("mcpServer/elicitation/request", &form_request());
    let filled = json!({"action": "accept", "content": {"account": "a"}});
    let accepted = json!({"action": "accept", "content": {"account": "a"}, "_meta": null});
    assert_eq!(account.answer(&filled), accepted);
    for action in ["decline", "cancel"] {
        assert_eq!(account.answer(&json!({"action": action}))["action"], action);
    }
    assert_eq!(account.answer(&json!({"action": "_odd"})), account.default_answer);

    let mut other = choice_question();
    other["isOther"] = json!(true);
    let input = form("item/tool/requestUserInput", &input_request(&[other, free_question()]));
    let filled = json!({"action": "accept", "content": {"db": "SQLite", "db_note": "in memory", "name": ""}});
    let answers = json!({"answers": {"db": {"answers": ["SQLite", "user_note: in memory"]}}});
    assert_eq!(input.answer(&filled), answers);
    assert_eq!(input.answer(&json!({"action": "decline"})), json!({"answers": {}}));
}

#[test]
fn what_was_chosen() {
    let alone = user_request(
        "mcpServer/elicitation/request",
        &tool_request(),
        None,
        cwd(),
        DisplayCapabilities::default(),
    );
    let Some(UserRequest::Choice(question)) = alone else { panic!("a question") };
    let selected = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
    let always = question.chosen(&selected("always")).unwrap();
    assert_eq!(
        always.answer,
        json!({"action": "accept", "content": {}, "_meta": {"persist": "always"}})
    );
    assert_eq!(question.chosen(&selected("never")), None);
    let cancelled = json!({"outcome": {"outcome": "cancelled", "optionId": "once"}});
    assert_eq!(question.chosen(&cancelled), None);
    let status = |chosen| {
        let update = question.closing(chosen).unwrap();
        read(&update);
        update["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(Some(always)), "completed");
    assert_eq!(status(question.chosen(&selected("decline"))), "failed");
    assert_eq!(status(None), "failed");

    let item_update = user_request(
        "mcpServer/elicitation/request",
        &tool_request(),
        Some(&mcp()),
        cwd(),
        DisplayCapabilities::default(),
    );
    let Some(UserRequest::Choice(question)) = item_update else { panic!("a question") };
    assert_eq!(question.closing(None), None, "its item ends it");
}

#[test]
fn what_is_not_asked_for_is_not_granted() {
    let mut params = permissions_request();
    params["permissions"] =
        json!({"network": null, "fileSystem": {"read": ["/r"], "write": ["w"]}});
    let request = |params: &Value| {
        let method = "item/permissions/requestApproval";
        let asked = user_request(method, params, None, cwd(), DisplayCapabilities::default());
        let Some(UserRequest::Choice(question)) = asked else { panic!("a question") };
        question
    };
    let question = request(&params);
    let files = &params["permissions"]["fileSystem"];
    assert_eq!(
        question.choices[0].answer,
        json!({"permissions": {"fileSystem": files}, "scope": "turn"})
    );
    let places = json!([{"path": "/r"}, {"path": "/home/me/project/w"}]);
    assert_eq!(question.tool_call["locations"], places);
    params["permissions"]["fileSystem"]["entries"] =
        json!([{"path": {"type": "path", "path": "/r"}, "access": "read"}]);
    assert_eq!(request(&params).tool_call["locations"], json!([{"path": "/r"}]), "told once");
}
