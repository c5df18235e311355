//! The editor against agents of a line of shell each.

use super::*;

/// Says what it hears.
const ECHO: &str = r#"read -r heard; printf '{"method":"heard","params":%s}\n' "$heard""#;

/// An agent that asks the editor something, and says what it was answered.
fn asking(
    method: &str,
    params: &Value,
    manners: Manners,
    open: &[(&str, &str)],
) -> (Editor, Value) {
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let script = format!(r"read go; printf '%s\n' '{request}'; {ECHO}; cat > /dev/null");
    let mut command = Command::new("sh");
    let editor = Editor::start(command.args(["-c", &script]), manners);
    let editor = editor.unwrap_or_else(|_| panic!("sh is there"));
    for (path, text) in open {
        editor.open(Path::new(path), text);
    }
    let heard = editor
        .tell("go", json!({}))
        .and_then(|()| editor.heard("an echo", 0, |message| message["method"] == "heard"));
    let heard = heard.unwrap_or_else(|_| panic!("the agent answers"));
    (editor, heard["params"].clone())
}

#[test]
fn a_buffer_is_read_by_lines_and_written() {
    let open = [("/a", "one\ntwo\nthree\n")];
    let params = json!({ "path": "/a", "line": 2, "limit": 1 });
    let (_, heard) = asking("fs/read_text_file", &params, Manners::default(), &open);
    assert_eq!(heard["result"]["content"], "two\n");
    let params = json!({ "path": "/a", "content": "new\n" });
    let (editor, heard) = asking("fs/write_text_file", &params, Manners::default(), &open);
    assert_eq!(heard.get("result"), Some(&Value::Null));
    assert_eq!(editor.buffer(Path::new("/a")).as_deref(), Some("new\n"));
}

#[test]
fn what_is_not_there_or_not_offered_is_an_error() {
    let params = json!({ "path": "/nowhere/at/all" });
    let (_, heard) = asking("fs/read_text_file", &params, Manners::default(), &[]);
    assert_eq!(heard["error"]["code"], -32002);
    let blind = Manners { reads: false, ..Manners::default() };
    let (_, heard) = asking("fs/read_text_file", &params, blind, &[]);
    assert_eq!(heard["error"]["code"], -32601);
}

#[test]
fn a_person_chooses_among_the_options() {
    let option = |kind: &str| json!({ "optionId": format!("id of {kind}"), "kind": kind });
    let params =
        json!({ "options": [option("allow_once"), option("allow_always"), option("reject_once")] });
    for (says, chosen) in [
        (Says::AllowOnce, json!({ "outcome": "selected", "optionId": "id of allow_once" })),
        (Says::AllowAlways, json!({ "outcome": "selected", "optionId": "id of allow_always" })),
        (Says::RejectOnce, json!({ "outcome": "selected", "optionId": "id of reject_once" })),
        (Says::Cancelled, json!({ "outcome": "cancelled" })),
    ] {
        let manners = Manners::saying(&[says]);
        let (_, heard) = asking("session/request_permission", &params, manners, &[]);
        assert_eq!(heard["result"]["outcome"], chosen);
    }
}

#[test]
fn a_person_types_between_any_two_things() {
    let typing = Manners {
        person: Box::new(|moment, buffers| {
            let typed = format!("{moment:?} ");
            for text in buffers.values_mut() {
                text.push_str(&typed);
            }
        }),
        ..Manners::default()
    };
    let params = json!({ "path": "/a", "content": "new " });
    let (editor, _) = asking("fs/write_text_file", &params, typing, &[("/a", "old ")]);
    let write = "\"fs/write_text_file\"";
    let typed = editor.buffer(Path::new("/a"));
    let expected = format!("new Answering({write}) Answered({write}) Heard(\"heard\") ");
    assert_eq!(typed, Some(expected));
}

#[test]
fn an_agent_that_ends_is_not_waited_for() {
    let editor = Editor::start(Command::new("sh").args(["-c", "exit"]), Manners::default());
    let editor = editor.unwrap_or_else(|_| panic!("sh is there"));
    let Err(Trouble::Wrong(why)) = editor.answer(1) else { panic!("there is no answer") };
    assert!(why.starts_with("the agent ended without an answer"), "{why}");
}

#[test]
fn what_is_held_is_answered_later() {
    let request = json!({ "id": 1, "method": "fs/read_text_file", "params": { "path": "/a" } });
    let script = format!("echo '{request}'; {ECHO}");
    let silent = Manners { serves: Box::new(|_| Serves::Hold), ..Manners::default() };
    let editor = Editor::start(Command::new("sh").args(["-c", &script]), silent);
    let editor = editor.unwrap_or_else(|_| panic!("sh is there"));
    assert!(editor.held("fs/read_text_file").is_ok());
    editor.behave(|manners| manners.serves = Box::new(|_| Serves::Refuses(-32000)));
    editor.release();
    let heard = editor.heard("an echo", 0, |message| message["method"] == "heard");
    assert!(heard.is_ok_and(|heard| heard["params"]["error"]["code"] == -32000));
}
