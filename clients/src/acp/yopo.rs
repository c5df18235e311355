//! yopo: prompts once, allows everything and has no files of its own, so that the disk is edited.

use std::time::Instant;

use serde_json::json;

use super::PROTOCOL;
use super::mind::{BOTH, Mind};
use super::stage::{Cast, Stage};
use crate::codex::ensure;
use crate::install::cargo;
use crate::program::{PATIENCE, Program};
use crate::scene::Scene;
use crate::{Outcome, Row};

pub const YOPO: &str = "yopo@11.0.0";

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let (name, version) = YOPO.split_once('@').unwrap_or((YOPO, ""));
    let (cast, yopo) = (Cast::gather(scene)?, cargo(name, version)?);
    let row = |mind: &Mind| {
        let played = Stage::new(&cast, *mind).and_then(|mut stage| {
            let played = play(&mut stage, &yopo);
            played.and(stage.end())
        });
        let shown = format!("read and edit on the disk, allowed; {}", mind.shown());
        let did = played.map_err(|trouble| trouble.at(&shown)).map(|()| shown);
        Row { transport: "stdio", protocol: PROTOCOL, did }
    };
    Ok(BOTH.iter().map(row).collect())
}

fn play(stage: &mut Stage, yopo: &std::path::Path) -> Outcome<()> {
    stage.put("a.txt", "one\ntwo\n")?;
    let path = stage.path("a.txt");
    let edit = json!({ "old_string": "two", "new_string": "2" });
    let script = stage
        .script()
        .call("read_text_file", json!({ "path": path }))
        .saw("one\ntwo\n")
        .call("multi_edit_text_file", json!({ "path": path, "edits": [edit] }))
        .saw("+2")
        .say("All is done.");
    stage.think(script)?;
    let mut command = stage.program(yopo);
    command.arg("Follow the script.").arg(&stage.cast.agent).env("CODEX_BIN", &stage.cast.codex);
    let ended = Program::start(&mut command, Instant::now() + PATIENCE)?.finish()?.expect(0)?;
    ensure(ended.said.trim() == "All is done.", || format!("it showed {:?}", ended.said))?;
    let text = stage.text("a.txt")?;
    ensure(text == "one\n2\n", || format!("the file holds {text:?}"))
}
