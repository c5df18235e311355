//! The ACP connection to the editor: every request and the method of `Bridge` that answers it.

use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    ForkSessionRequest, ForkSessionResponse, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, LogoutRequest, NewSessionRequest, NewSessionResponse, PromptRequest,
    ResumeSessionRequest, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Client, Result, on_receive_notification, on_receive_request};

use crate::bridge::Bridge;
use crate::connection::transport;

/// Answers a request by a method of [`Bridge`], in a task of its own, since the answer may need the editor. `$after` is
/// called once the answer is on its way.
macro_rules! by {
    ($bridge:expr, $method:ident, $request:ty) => {
        by!($bridge, $method, $request, |_, _, _: &Result<_>| {})
    };
    ($bridge:expr, $method:ident, $request:ty, $after:expr) => {{
        let bridge = Arc::clone(&$bridge);
        async move |request: $request, responder, _: ConnectionTo<Client>| {
            let bridge = Arc::clone(&bridge);
            tokio::spawn(async move {
                let answer = Arc::clone(&bridge).$method(request.clone()).await;
                let _ = responder.respond_with_result(answer.clone());
                let after: fn(&Bridge, &$request, &Result<_>) = $after;
                after(&bridge, &request, &answer);
            });
            Ok(())
        }
    }};
}

/// Serves the editor until it closes the connection.
pub async fn serve(b: Arc<Bridge>) -> Result<()> {
    let (beginning, prompts, cancels) = (Arc::clone(&b), Arc::clone(&b), Arc::clone(&b));
    let (channel, transport) = transport::open(&b.connection);
    let ended = Agent
        .v1()
        .name("codex-cli-acp")
        .on_receive_request(
            async move |request: InitializeRequest, responder, connection: ConnectionTo<Client>| {
                beginning.connection.set(&connection);
                responder.respond_with_result(beginning.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(by!(b, authenticate, AuthenticateRequest), on_receive_request!())
        .on_receive_request(by!(b, logout, LogoutRequest), on_receive_request!())
        .on_receive_request(
            by!(b, new_session, NewSessionRequest, |b, _, answer: &Result<NewSessionResponse>| {
                let _ = answer.as_ref().map(|new| b.welcome(&new.session_id));
            }),
            on_receive_request!(),
        )
        .on_receive_request(
            by!(
                b,
                fork_session,
                ForkSessionRequest,
                |b, _, answer: &Result<ForkSessionResponse>| {
                    let _ = answer.as_ref().map(|new| b.welcome(&new.session_id));
                }
            ),
            on_receive_request!(),
        )
        .on_receive_request(by!(b, load_session, LoadSessionRequest), on_receive_request!())
        .on_receive_request(by!(b, resume_session, ResumeSessionRequest), on_receive_request!())
        .on_receive_request(by!(b, list_sessions, ListSessionsRequest), on_receive_request!())
        .on_receive_request(by!(b, close_session, CloseSessionRequest), on_receive_request!())
        .on_receive_request(by!(b, delete_session, DeleteSessionRequest), on_receive_request!())
        .on_receive_request(
            by!(b, set_mode, SetSessionModeRequest, |b, request, answer| {
                let SetSessionModeRequest { session_id, mode_id, .. } = request;
                if answer.is_err() || !b.has_mode(session_id, &mode_id.to_string()) {
                    b.send_choices(session_id);
                }
            }),
            on_receive_request!(),
        )
        .on_receive_request(
            by!(b, set_config_option, SetSessionConfigOptionRequest, |b, request, answer| {
                if answer.is_err() {
                    b.send_choices(&request.session_id);
                }
            }),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, _: ConnectionTo<Client>| {
                let bridge = Arc::clone(&prompts);
                // The prompt begins before the next message is read, which may cancel it.
                let prompt = bridge.begin_prompt(&request);
                tokio::spawn(async move {
                    let (session, cancellation) = (request.session_id, responder.cancellation());
                    let answer = async { Arc::clone(&bridge).prompt(prompt?).await };
                    tokio::pin!(answer);
                    let answer = tokio::select! {
                        answer = &mut answer => answer,
                        // The request itself was cancelled (`$/cancel_request`), rather than the prompt
                        // (`session/cancel`).
                        () = cancellation.cancelled() => {
                            bridge.cancel(&session);
                            answer.await
                        }
                    };
                    let _ = responder.respond_with_result(answer);
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |request: CancelNotification, _: ConnectionTo<Client>| {
                cancels.cancel(&request.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(channel, async |connection: ConnectionTo<Client>| {
            connection.incoming_closed().await;
            Ok(())
        })
        .await;
    transport.finish().await;
    ended
}
