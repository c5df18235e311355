//! Tests of logins by the browser, more than one at a time.

use serde_json::{Value, json};

use crate::common::TestSession;

impl TestSession {
    /// Starts a login. Returns the number of the editor's request.
    fn log_in(&self, login: &str) -> u64 {
        let request = self.editor.send("authenticate", json!({ "methodId": "chatgpt" }));
        let start = self.codex.next("account/login/start");
        self.codex.answer(&start, &json!({ "loginId": login, "authUrl": "" }));
        request
    }

    fn end_login(&self, login: &Value, is_success: bool) {
        let params = json!({ "loginId": login, "success": is_success, "error": "given up" });
        self.codex.notify("account/login/completed", params);
    }
}

#[test]
fn a_login_that_failed_does_not_end_a_newer_one() {
    let session = TestSession::open();
    session.codex.hold_answers("account/login/start");
    let (old, new) = (session.log_in("1"), session.log_in("2"));
    session.end_login(&json!("1"), false);
    assert!(session.editor.error(old).contains("given up"));
    session.end_login(&json!("2"), true);
    session.editor.result(new);
}

#[test]
fn the_end_of_a_login_without_a_name_is_that_of_all() {
    let session = TestSession::open();
    session.codex.hold_answers("account/login/start");
    let logins = [session.log_in("1"), session.log_in("2")];
    // They wait for it once they have their pages.
    session.editor.ask("session/list", json!({}));
    session.end_login(&Value::Null, true);
    for login in logins {
        session.editor.result(login);
    }
}
