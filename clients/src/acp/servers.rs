//! What a session is given: MCP servers, folders, a model, and ways to do things or none.

use serde_json::json;

use super::Scenario;
use super::editor::{Manners, Says};
use super::mind::{BOTH, CLASSIC, Mind};
use super::stage::{Stage, Talk};
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "an editor's MCP servers are passed on, whatever they are called",
        minds: BOTH,
        play: brought,
    },
    Scenario {
        name: "a server of the user's own configuration keeps its name",
        minds: CLASSIC,
        play: configured,
    },
    Scenario { name: "the model and its effort can be chosen", minds: CLASSIC, play: chosen },
    Scenario {
        name: "other folders of a session are its own, too",
        minds: CLASSIC,
        play: more_folders,
    },
    Scenario {
        name: "`--editor-only`: no commands, also after a session comes back; our tools work",
        minds: BOTH,
        play: editor_only,
    },
];

fn brought(stage: &mut Stage) -> Outcome<()> {
    stage.put("notes.txt", "from the other server\n")?;
    let http = crate::scene::Scene::new(&stage.cast.server)?;
    http.put("far.txt", "from far away\n")?;
    let server = http.serve(&["--tools=all"])?;
    let read = |mind: Mind, namespace, name| {
        mind.calls(namespace, vec![("read_file", json!({ "name": name }))])
    };
    let script = stage
        .script()
        .answer(read(stage.mind, "mcp__file_editor_2", "notes.txt"))
        .saw("from the other server")
        .answer(read(stage.mind, "mcp__far", "far.txt"))
        .saw("from far away")
        .call("read_text_file", json!({ "path": stage.path("notes.txt") }))
        .saw("unsaved")
        .say("Done.");
    stage.think(script)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let dir = format!("--dir={}", stage.folder().display());
    let servers = json!([
        {
            "name": "file_editor", "command": stage.cast.server, "env": [],
            "args": [dir, "--transport=stdio", "--log=error", "--tools=all"],
        },
        { "type": "http", "name": "far", "url": server.url, "headers": [] },
    ]);
    let talk = Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": servers }))?;
    talk.editor.open(&stage.path("notes.txt"), "unsaved\n");
    talk.work()?;
    let wire = talk.close()?;
    let done = wire.calls().iter().filter(|call| call.state["status"] == "completed").count();
    ensure(done == 3, || format!("{done} calls are said to be done"))
}

fn configured(stage: &mut Stage) -> Outcome<()> {
    stage.put("notes.txt", "saved\n")?;
    let (theirs, ours) = ("mcp__file_editor", "mcp__file_editor_2");
    let read = json!({ "path": stage.path("notes.txt") });
    let calls = |namespace| stage.mind.calls(namespace, vec![("read_text_file", read.clone())]);
    let script = stage
        .script()
        .answer(calls(theirs))
        .saw("saved")
        .answer(calls(ours))
        .saw("typed")
        .say("Done.");
    let dir = format!("--dir={}", stage.folder().display());
    let settings = format!(
        "[mcp_servers.file_editor]\ncommand = {}\nargs = {}\n",
        json!(stage.cast.server),
        json!([dir, "--transport=stdio", "--log=error", "--tools=text"]),
    );
    let steps = script.steps()?;
    stage.think_of(vec![("", steps)], &settings)?;
    let talk = stage.open(Manners::default(), &[])?;
    talk.editor.open(&stage.path("notes.txt"), "typed\n");
    talk.work()?;
    talk.close().map(drop)
}

fn chosen(stage: &mut Stage) -> Outcome<()> {
    let script = stage.script().offered().check(|request| {
        let body = request.body();
        let right = body["model"] == "gpt-5.5" && body["reasoning"]["effort"] == "high";
        ensure(right, || format!("{} with {}", body["model"], body["reasoning"]))
    });
    stage.think(script.say("Done."))?;
    let talk = stage.open(Manners::default(), &[])?;
    for (option, value) in [("model", "gpt-5.5"), ("reasoning_effort", "high")] {
        let params = json!({ "sessionId": talk.session, "configId": option, "value": value });
        let set = talk.editor.ask("session/set_config_option", params)?;
        let options = set["configOptions"].as_array().cloned().unwrap_or_default();
        let found = options.iter().find(|found| found["id"] == option);
        ensure(found.is_some_and(|found| found["currentValue"] == value), || {
            format!("{option} is {found:?}")
        })?;
    }
    talk.work()?;
    talk.close().map(drop)
}

fn more_folders(stage: &mut Stage) -> Outcome<()> {
    let more = tempfile::tempdir()?;
    let path = more.path().join("b.txt");
    std::fs::write(&path, "there\n")?;
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("there\n")
        .call("write_text_file", json!({ "path": path, "content": "changed\n" }))
        .say("Done.");
    stage.think(script)?;
    let editor = stage.edit(Manners::default(), &[])?;
    let params = json!({
        "cwd": stage.folder(), "mcpServers": [], "additionalDirectories": [more.path()],
    });
    let talk = Talk::new(editor, &params)?;
    talk.work()?;
    talk.close()?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    ensure(text == "changed\n", || format!("it holds {text:?}"))
}

fn editor_only(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let refused = match stage.mind {
        Mind::Classic => "unsupported call",
        Mind::Code => "is not a function",
    };
    let script = stage
        .script()
        .shell("echo > made")
        .saw(refused)
        .call("write_text_file", json!({ "path": path, "content": "text\n" }))
        .say("Done.")
        .shell("echo > made")
        .saw(refused)
        .say("Done again.");
    stage.think(script)?;
    let talk = stage.open(Manners::saying(&[Says::AllowOnce]), &["--editor-only"])?;
    talk.set_mode("full-access")?;
    talk.work()?;
    // It holds for a session that comes back, too.
    let params = json!({ "sessionId": talk.session, "cwd": stage.folder(), "mcpServers": [] });
    talk.editor.ask("session/resume", params)?;
    talk.set_mode("full-access")?;
    talk.prompt("Follow the script.")?;
    talk.close()?;
    ensure(!stage.path("made").exists(), || "a command ran".into())?;
    ensure(stage.text("a.txt")? == "text\n", || "our tool did not work".into())
}
