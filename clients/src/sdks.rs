//! The SDKs: a thin program in the language of each takes questions, and tells what the SDK made of them.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::install;
use crate::play::{ASKING, Asker, FLAGS, play, play_asking_first};
use crate::program::{self, PATIENCE, Program};
use crate::scene::{Scene, Server};
use crate::ways::each_way;
use crate::{Outcome, Row, Trouble};

pub const PYTHON: &str = "mcp==2.3.0";
/// Once it has listed the tools it holds what they answer, errors too, against their schemas.
pub const SDK: &str = "@modelcontextprotocol/sdk@1.32.2";
/// It does so for what is no error.
pub const CLIENT: &str = "@modelcontextprotocol/client@2.4.0";

const BOTH_ERAS: &[&str] = &["2025-11-25", "2026-07-28"];

pub fn python(scene: &Scene) -> Outcome<Vec<Row>> {
    let interpreter = install::python(&[PYTHON])?;
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/python.py");
    Ok(drive(scene, BOTH_ERAS, &interpreter, &adapter))
}

pub fn sdk(scene: &Scene) -> Outcome<Vec<Row>> {
    javascript(scene, &["2025-11-25"], SDK, include_str!("../adapters/sdk.mjs"))
}

pub fn client(scene: &Scene) -> Outcome<Vec<Row>> {
    javascript(scene, BOTH_ERAS, CLIENT, include_str!("../adapters/client.mjs"))
}

/// Node looks for packages beside the program, so the program goes where they are.
fn javascript(
    scene: &Scene,
    eras: &[&'static str],
    package: &str,
    adapter: &str,
) -> Outcome<Vec<Row>> {
    let npm = install::npm(&[package])?;
    let program = npm.folder.join("adapter.mjs");
    fs::write(&program, adapter)
        .and_then(|()| fs::write(npm.folder.join("talk.mjs"), include_str!("../adapters/talk.mjs")))
        .map_err(|e| Trouble::NotRun(e.to_string()))?;
    Ok(drive(scene, eras, &npm.node, &program))
}

fn drive(scene: &Scene, eras: &[&'static str], interpreter: &Path, adapter: &Path) -> Vec<Row> {
    each_way(scene, eras, |transport, protocol, scene| {
        let start = |flags| {
            let server = scene.server(transport, flags)?;
            let mut command = program::client(interpreter);
            command.arg(adapter).arg(protocol);
            match &server {
                Server::Stdio(words) => command.arg("stdio").args(words),
                Server::Http(server) => command.arg("http").arg(&server.url),
            };
            let program = Program::start(&mut command, Instant::now() + PATIENCE)?;
            Outcome::Ok((Adapter(program), server))
        };
        let (mut adapter, _server) = start(FLAGS)?;
        let played = play(&mut adapter, scene, protocol);
        let did = adapter.finish(played)?;
        let (mut adapter, _server) = start(ASKING)?;
        let played = play_asking_first(&mut adapter, scene);
        adapter.finish(played)?;
        Ok(format!("{did}; a person is asked first, and says no, nothing and yes"))
    })
}

struct Adapter(Program);

impl Adapter {
    /// Ends it; what it did, if all was well.
    fn finish<T>(mut self, played: Outcome<T>) -> Outcome<T> {
        match played {
            Ok(did) => self.0.finish()?.expect(0).map(|_| did),
            Err(Trouble::Wrong(why)) => Err(self.0.wrong(&why)),
            trouble => trouble,
        }
    }

    fn hear(&mut self) -> Outcome<Value> {
        let line = self.0.hear()?;
        serde_json::from_str(&line).map_err(|e| self.0.wrong(&format!("{e}: {line}")))
    }
}

impl Asker for Adapter {
    fn open(&mut self) -> Outcome<Value> {
        Ok(self.hear()?["result"].take())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Option<Value>> {
        self.0.say(&json!({ "method": method, "params": params }).to_string())?;
        self.hear().map(Some)
    }

    fn say(&mut self, said: &str) -> Outcome<Value> {
        let mut form = json!({ "action": said });
        if said == "accept" {
            form["content"] = json!({});
        }
        self.0.say(&form.to_string())?;
        self.hear()
    }
}
