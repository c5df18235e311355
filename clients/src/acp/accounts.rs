//! Whose Codex it is: what it is configured to, and who is logged in.

use std::fs;

use serde_json::json;

use super::editor::{Editor, Manners};
use super::mind::CLASSIC;
use super::stage::{Stage, Talk};
use super::{Scenario, expect};
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "who is not logged in is told so, and can log in and out",
        minds: CLASSIC,
        play: login,
    },
    Scenario {
        name: "a session begins in the mode that Codex is configured to",
        minds: CLASSIC,
        play: mode,
    },
];

fn login(stage: &mut Stage) -> Outcome<()> {
    stage.think(stage.script())?;
    // Codex's own provider wants to know who asks. It is at the address of the model, in case it is asked something.
    let config = stage.home().join("config.toml");
    let url = stage.model()?.url();
    let own = format!(
        "model = \"gpt-5.5\"\nopenai_base_url = \"{url}\"\nanalytics.enabled = false\n\
         check_for_update_on_startup = false\nfeatures.plugins = false\n"
    );
    fs::write(config, own)?;
    let mut command = stage.agent(&[]);
    let editor = Editor::start(command.env("OPENAI_API_KEY", "sk-scripted"), Manners::default())?;
    let can = editor.initialize()?;
    let methods = can["authMethods"].as_array().cloned().unwrap_or_default();
    let known = methods.iter().any(|method| method["id"] == "openai-api-key");
    ensure(known, || format!("the ways to log in are {methods:?}"))?;
    let new = json!({ "cwd": stage.folder(), "mcpServers": [] });
    let error = editor.refused("session/new", new.clone())?;
    expect(&json!({ "code": -32000 }), &error)?;
    let refused = [("codex-api-key", "CODEX_API_KEY"), ("by-magic", "by-magic")];
    for (method, word) in refused {
        let error = editor.refused("authenticate", json!({ "methodId": method }))?.to_string();
        ensure(error.contains(word), || format!("{word} is not in {error}"))?;
    }
    editor.ask("authenticate", json!({ "methodId": "openai-api-key" }))?;
    let talk = Talk::new(editor, &new)?;
    talk.editor.ask("logout", json!({}))?;
    let error = talk.editor.refused("session/new", new)?;
    expect(&json!({ "code": -32000 }), &error)?;
    talk.close().map(drop)
}

fn mode(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let script = stage
        .script()
        .call("write_text_file", json!({ "path": path, "content": "text" }))
        .saw("Permission denied")
        .say("Done.");
    stage.think(script)?;
    let config = stage.home().join("config.toml");
    let configured = fs::read_to_string(&config)?;
    fs::write(config, format!("sandbox_mode = \"read-only\"\n{configured}"))?;
    let talk = stage.open(Manners::default(), &[])?;
    expect(&json!({ "currentModeId": "read-only" }), &talk.opened["modes"])?;
    talk.work()?;
    talk.close()?;
    ensure(!path.exists(), || "it was written".into())
}
