//! Tests of the updates that an editor gets in a turn, whichever of events and calls comes first.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{Agent, Channel, Client, UntypedMessage, on_receive_notification};
use server::observer::{CallInfo, CallObserver as _, Permission};
use tools::{Effect, Failure, FailureKind, ToolOutput};

use super::*;

/// Runs a scene in a session and returns the updates that the editor got.
async fn updates_of(play: impl AsyncFnOnce(&Arc<Session>)) -> Vec<Value> {
    let (ours, theirs) = Channel::duplex();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let editors = Arc::clone(&heard);
    let editor = Client
        .v1()
        .on_receive_notification(
            async move |message: UntypedMessage, _: ConnectionTo<Agent>| {
                lock(&editors).push(message.params()["update"].clone());
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(theirs);
    let agent = Agent.v1().connect_with(ours, async |connection: ConnectionTo<Client>| {
        let session = session();
        session.connection.set(&connection);
        play(&session).await;
        Ok(())
    });
    let (editor, agent) = tokio::join!(editor, agent);
    editor.and(agent).expect("both end well");
    Arc::into_inner(heard).expect("nobody else has it").into_inner().expect("it is whole")
}

fn session() -> Arc<Session> {
    let session = Session {
        id: Arc::new(OnceLock::from("thread".to_owned())),
        cwd: "/work".into(),
        folders: vec!["/work".into()],
        connection: Arc::default(),
        event_format: EventFormat::Acp,
        display: DisplayCapabilities::default(),
        server: OnceLock::from("file_editor".to_owned()),
        state: Mutex::default(),
        command_periods: Arc::default(),
    };
    Arc::new(session)
}

/// Makes a call; the same id makes the same call.
fn call(id: &str) -> CallInfo {
    let (tool, path) = ("read_text_file", Some("/project/a".to_owned()));
    let number = id.bytes().fold(0, |number, byte| number << 8 | u64::from(byte));
    CallInfo { number, id: Some(id.to_owned()), tool, effect: Effect::Reads, path }
}

fn begin(session: &Session, id: &str) {
    session.begin(&call(id), &json!({ "path": "/project/a" }));
}

fn end(session: &Session, id: &str) {
    session.end(&call(id), Ok(&ToolOutput::default()), &[]);
}

/// Sends Codex's event about a call of this program's tools.
fn item(session: &Arc<Session>, moment: &str, thread: &str, id: &str) {
    let item = json!({
        "type": "mcpToolCall", "id": id, "server": "file_editor", "tool": "read_text_file",
        "arguments": { "path": "/project/a" }, "error": null,
    });
    session.handle_notification(moment, &json!({ "threadId": thread, "item": item }));
}

fn completed(session: &Arc<Session>, thread: &str, status: &str) {
    let turn = json!({ "id": "turn", "status": status, "error": null });
    session.handle_notification("turn/completed", &json!({ "threadId": thread, "turn": turn }));
}

/// Returns kind, call and status of each update.
fn short(updates: &[Value]) -> Vec<String> {
    let text = |update: &Value, name: &str| update[name].as_str().unwrap_or_default().to_owned();
    updates
        .iter()
        .map(|update| {
            [text(update, "sessionUpdate"), text(update, "toolCallId"), text(update, "status")]
                .join(" ")
        })
        .collect()
}

#[tokio::test]
async fn a_call_begins_and_ends_once_whichever_stream_is_first() {
    const STARTED: &str = "item/started";
    const COMPLETED: &str = "item/completed";
    let orders: [&[&str]; 5] = [
        &[STARTED, "begin", "end", COMPLETED],
        &["begin", STARTED, "end", COMPLETED],
        &["begin", "end", STARTED, COMPLETED],
        &["begin", "end"],
        &["begin", "end", COMPLETED],
    ];
    for order in orders {
        let updates = updates_of(async |session| {
            let _ended = session.begin_turn();
            for step in order {
                match *step {
                    "begin" => begin(session, "a"),
                    "end" => end(session, "a"),
                    moment => item(session, moment, "thread", "a"),
                }
            }
        })
        .await;
        let expected = ["tool_call a pending", "tool_call_update a completed"];
        assert_eq!(short(&updates), expected, "{order:?}");
        assert_eq!(updates[0]["locations"][0]["path"], "/project/a", "{order:?}");
    }
}

#[tokio::test]
async fn a_call_that_codex_did_not_make_has_failed() {
    let updates = updates_of(async |session| {
        let _ended = session.begin_turn();
        item(session, "item/started", "thread", "a");
        item(session, "item/completed", "thread", "a");
        item(session, "item/completed", "thread", "a");
    })
    .await;
    assert_eq!(short(&updates), ["tool_call a pending", "tool_call_update a failed"]);
}

#[tokio::test]
async fn a_turn_ends_after_the_calls_that_are_at_work() {
    let updates = updates_of(async |session| {
        let StartedTurn { number, mut ended } = session.begin_turn().expect("there is none yet");
        assert!(!session.set_turn_id(number, "turn"));
        begin(session, "a");
        item(session, "item/started", "thread", "b");
        session.cancel();
        completed(session, "thread", "interrupted");
        assert!(ended.try_recv().is_err(), "one call is still writing");
        begin(session, "late");
        end(session, "a");
        assert_eq!(ended.await, Ok(Ok("cancelled")));
        // Nothing is reported after the answer.
        end(session, "a");
        item(session, "item/started", "thread", "c");
        begin(session, "d");
    })
    .await;
    let expected = [
        "tool_call a pending",
        "tool_call b pending",
        "tool_call_update a completed",
        "tool_call_update b failed",
    ];
    assert_eq!(short(&updates), expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_is_given_up() {
    let updates = updates_of(async |session| {
        let ended = session.begin_turn().expect("there is none yet").ended;
        begin(session, "a");
        completed(session, "thread", "completed");
        assert_eq!(ended.await, Ok(Ok("end_turn")));
        let mut next = session.begin_turn().expect("the first is over").ended;
        begin(session, "b");
        tokio::time::sleep(2 * RUNNING_CALLS_TIMEOUT).await;
        assert!(next.try_recv().is_err(), "the next is another");
    })
    .await;
    assert_eq!(short(&updates)[1], "tool_call_update a failed");
}

#[tokio::test]
async fn what_a_sub_agent_does_is_told_and_what_it_says_is_not() {
    let updates = updates_of(async |session| {
        let mut ended = session.begin_turn().expect("there is none yet").ended;
        begin(session, "a");
        item(session, "item/started", "child", "a");
        end(session, "a");
        let said = json!({ "threadId": "child", "itemId": "m", "delta": "psst" });
        session.handle_notification("item/agentMessage/delta", &said);
        let message = json!({ "type": "agentMessage", "id": "m", "text": "psst" });
        session.handle_notification(
            "item/completed",
            &json!({ "threadId": "child", "item": message }),
        );
        completed(session, "child", "completed");
        assert!(ended.try_recv().is_err(), "the turn is not the child's");
    })
    .await;
    assert_eq!(short(&updates), ["tool_call a pending", "tool_call_update a completed"]);
}

#[tokio::test]
async fn who_may_write() {
    updates_of(async |session| {
        let writes = |mode| {
            lock(&session.state).options.mode = mode;
            session.permission(&call("a"))
        };
        assert!(matches!(writes(Mode::FullAccess), Permission::Refused(_)), "there is no prompt");
        let _ended = session.begin_turn();
        assert!(
            matches!(writes(Mode::FullAccess), Permission::Refused(_)),
            "it is of another prompt"
        );
        begin(session, "a");
        assert!(matches!(writes(Mode::ReadOnly), Permission::Refused(_)));
        assert_eq!(writes(Mode::Auto), Permission::Ask);
        assert_eq!(writes(Mode::FullAccess), Permission::Granted);
        lock(&session.state).writes_allowed = true;
        assert_eq!(writes(Mode::Auto), Permission::Granted);
        assert!(matches!(writes(Mode::ReadOnly), Permission::Refused(_)));
        completed(session, "thread", "interrupted");
        assert!(matches!(writes(Mode::FullAccess), Permission::Refused(_)), "the prompt is over");
        let failure = Failure::new(FailureKind::Cancelled, "");
        session.end(&call("a"), Err(&failure), &[]);
    })
    .await;
}

#[tokio::test]
async fn a_prompt_at_a_time() {
    updates_of(async |session| {
        let first = session.begin_turn();
        assert!(first.is_some() && session.begin_turn().is_none());
        completed(session, "thread", "completed");
        let second = session.begin_turn().expect("the first is over").number;
        // The end of an earlier turn does not end this one.
        session.set_turn_id(second, "other");
        completed(session, "thread", "completed");
        session.end_turn(TurnSelector::Number(second - 1), Ok("cancelled"));
        assert!(session.begin_turn().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_prompt_that_is_taken_back_before_codex_begins_is_stopped_when_it_does() {
    updates_of(async |session| {
        let StartedTurn { number, ended } = session.begin_turn().expect("there is none yet");
        assert!(session.is_running(number));
        assert_eq!(session.cancel(), Some((number, None)));
        assert!(!session.is_running(number));
        assert_eq!(session.turn_started("turn"), Some(number));
        assert!(session.set_turn_id(number, "turn"));
        completed(session, "thread", "completed");
        assert_eq!(ended.await, Ok(Ok("cancelled")));
        assert!(session.set_turn_id(number, "turn"), "nobody waits for it any more");
        let next = session.begin_turn().expect("it is over").number;
        assert!(session.set_turn_id(number, "turn"));
        assert!(session.is_running(next) && !session.set_turn_id(next, "next"));
    })
    .await;
}
