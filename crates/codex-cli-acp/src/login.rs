//! Login to Codex, and logout.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, AuthenticateResponse, LogoutRequest, LogoutResponse,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::auth_methods::{API_KEYS, CHATGPT};
use crate::bridge::{AcpResult, Bridge, from_json};
use crate::lock;

/// Time limit for a person to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(15);

/// Ends of logins that are queued for a request.
const OUTCOMES_MAX: usize = 16;

impl Bridge {
    pub async fn authenticate(
        self: Arc<Self>,
        request: AuthenticateRequest,
    ) -> AcpResult<AuthenticateResponse> {
        let id = request.method_id.to_string();
        if id == CHATGPT {
            self.log_in_by_browser().await?;
            return from_json(json!({}));
        }
        let Some((_, variable)) = API_KEYS.iter().find(|(known, _)| *known == id) else {
            return Err(Error::new(-32602, format!("there is no way to log in called {id}")));
        };
        let key = std::env::var(variable).ok().filter(|key| !key.trim().is_empty());
        let key = key.ok_or_else(|| {
            let message =
                format!("{variable} is not set: set it where the editor starts this agent");
            Error::new(-32602, message)
        })?;
        self.ask("account/login/start", json!({ "type": "apiKey", "apiKey": key.trim() })).await?;
        from_json(json!({}))
    }

    pub async fn logout(self: Arc<Self>, _: LogoutRequest) -> AcpResult<LogoutResponse> {
        self.ask("account/logout", Value::Null).await?;
        from_json(json!({}))
    }

    /// Starts a login in the browser and waits until Codex reports its end.
    async fn log_in_by_browser(&self) -> AcpResult<()> {
        // Registered first, since the login may end before Codex has answered.
        let (done, mut over) = mpsc::channel(OUTCOMES_MAX);
        lock(&self.logins).push(done);
        let login = self.ask("account/login/start", json!({ "type": "chatgpt" })).await?;
        let page = login["authUrl"].as_str().unwrap_or_default();
        open_in_browser(page);
        let failed =
            |why: &str| Error::new(-32000, format!("Not logged in: {why}. The page was {page}"));
        let outcome = async {
            loop {
                let outcome: Option<Value> = over.recv().await;
                // An older login may end meanwhile.
                let id = outcome.as_ref().map_or(&Value::Null, |outcome| &outcome["loginId"]);
                if id.is_null() || *id == login["loginId"] {
                    return outcome;
                }
            }
        };
        match tokio::time::timeout(LOGIN_TIMEOUT, outcome).await {
            Ok(Some(outcome)) if outcome["success"] == true => Ok(()),
            Ok(Some(outcome)) => {
                Err(failed(outcome["error"].as_str().unwrap_or("no reason was given")))
            }
            Ok(None) | Err(_) => {
                let _ =
                    self.ask("account/login/cancel", json!({ "loginId": login["loginId"] })).await;
                Err(failed("it took too long"))
            }
        }
    }
}

/// Opens a page in the browser, and writes its address to the log for systems without one.
fn open_in_browser(page: &str) {
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    server::terminal::write_message(&format!("To log in, open {page}"));
    let mut command = tokio::process::Command::new(program);
    let null = std::process::Stdio::null;
    let _ = command.args(before).arg(page).stdin(null()).stdout(null()).stderr(null()).spawn();
}
