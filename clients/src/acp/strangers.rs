//! A Codex that is not there, not the right one, or not able to: the editor is told what is wrong, and what to do.

use serde_json::json;

use super::Scenario;
use super::editor::{Editor, Manners};
use super::mind::CLASSIC;
use super::stage::Stage;
use crate::Outcome;
use crate::codex::ensure;

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "a missing Codex is said, with what to do", minds: CLASSIC, play: missing },
    Scenario {
        name: "a Codex that is too old is said, with what to do",
        minds: CLASSIC,
        play: too_old,
    },
    Scenario { name: "a Codex that dies at once is said", minds: CLASSIC, play: dying },
    Scenario {
        name: "a configuration that Codex refuses is said",
        minds: CLASSIC,
        play: misconfigured,
    },
];

/// Opens a session with another Codex, which must be refused in these words.
fn refused(stage: &Stage, codex: &str, words: &[&str]) -> Outcome<()> {
    let mut command = stage.program(&stage.cast.agent);
    let mut editor = Editor::start(command.args(["--codex", codex]), Manners::default())?;
    // Whoever is only asked what it can do, can say so without Codex, or say what is missing.
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let asked = editor.send("initialize", params)?;
    let first = editor.answer(asked)?;
    let error = match first.get("error") {
        Some(error) => error.clone(),
        None => {
            editor.refused("session/new", json!({ "cwd": stage.folder(), "mcpServers": [] }))?
        }
    };
    let text = error.to_string();
    let missing = words.iter().find(|word| !text.contains(**word));
    ensure(missing.is_none(), || format!("{missing:?} is not in {text}"))?;
    editor.leave()
}

fn missing(stage: &mut Stage) -> Outcome<()> {
    let nowhere = stage.path("no-codex").display().to_string();
    refused(stage, &nowhere, &[&nowhere, "--codex", "CODEX_BIN", "npm"])
}

/// A script in the place of Codex.
#[cfg(unix)]
pub fn in_place_of_codex(stage: &Stage, script: &str) -> Outcome<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = stage.home().join("codex");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

#[cfg(not(unix))]
pub fn in_place_of_codex(_: &Stage, _: &str) -> Outcome<String> {
    Err(crate::Trouble::NotRun("there is no shell here".into()))
}

fn too_old(stage: &mut Stage) -> Outcome<()> {
    let codex = in_place_of_codex(stage, "echo codex-cli 0.1.0")?;
    refused(stage, &codex, &["0.1.0", "npm"])
}

fn dying(stage: &mut Stage) -> Outcome<()> {
    let script =
        "case $1 in --version) echo codex-cli 0.166.0;; *) echo the reason >&2; exit 3;; esac";
    let codex = in_place_of_codex(stage, script)?;
    refused(stage, &codex, &["Codex", "the reason"])
}

fn misconfigured(stage: &mut Stage) -> Outcome<()> {
    let config = "model = [\n";
    std::fs::write(stage.home().join("config.toml"), config)?;
    let codex = stage.cast.codex.display().to_string();
    refused(stage, &codex, &["config.toml"])
}
