//! Logging in by the browser, more than once.

use serde_json::{Value, json};

use crate::common::Stage;

impl Stage {
    /// Begins to log in; the editor's request.
    fn log_in(&self, login: &str) -> u64 {
        let request = self.editor.send("authenticate", json!({ "methodId": "chatgpt" }));
        let start = self.codex.heard("account/login/start");
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
    let stage = Stage::open();
    stage.codex.hold("account/login/start");
    let (old, new) = (stage.log_in("1"), stage.log_in("2"));
    stage.end_login(&json!("1"), false);
    assert!(stage.editor.error(old).contains("given up"));
    stage.end_login(&json!("2"), true);
    stage.editor.result(new);
}

#[test]
fn the_end_of_a_login_without_a_name_is_that_of_all() {
    let stage = Stage::open();
    stage.codex.hold("account/login/start");
    let logins = [stage.log_in("1"), stage.log_in("2")];
    // They wait for it once they have their pages.
    stage.editor.ask("session/list", json!({}));
    stage.end_login(&Value::Null, true);
    for login in logins {
        stage.editor.result(login);
    }
}
