//! Where a scenario plays: a folder to work in, a home for Codex, a model that follows a script, an agent and its editor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::editor::{Editor, Manners, PATIENCE};
use super::mind::{Mind, Script};
use super::wire::Wire;
use crate::codex::ensure;
use crate::codex::program::{Codex, see_off};
use crate::model::{Model, Step};
use crate::scene::Scene;
use crate::{Outcome, Trouble};

/// The programs that take part.
pub struct Cast {
    pub agent: PathBuf,
    pub server: PathBuf,
    pub codex: PathBuf,
}

impl Cast {
    pub fn gather(scene: &Scene) -> Outcome<Self> {
        let agent = scene.agent()?;
        Ok(Self { agent, server: scene.binary.clone(), codex: Codex::install()?.binary()? })
    }
}

pub struct Stage<'a> {
    pub cast: &'a Cast,
    pub mind: Mind,
    scene: Scene,
    model: Option<Model>,
}

impl<'a> Stage<'a> {
    pub fn new(cast: &'a Cast, mind: Mind) -> Outcome<Self> {
        Ok(Self { cast, mind, scene: Scene::new(&cast.server)?, model: None })
    }

    pub fn folder(&self) -> &Path {
        self.scene.folder()
    }

    /// Codex's home, which every process knows that belongs to the scenario.
    pub fn home(&self) -> &Path {
        self.scene.aside()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scene.path(name)
    }

    pub fn put(&self, name: &str, text: &str) -> Outcome<()> {
        self.scene.put(name, text)
    }

    pub fn text(&self, name: &str) -> Outcome<String> {
        self.scene.text(name)
    }

    pub fn script(&self) -> Script {
        Script::new(self.mind)
    }

    /// Gives the model its script.
    pub fn think(&mut self, script: Script) -> Outcome<()> {
        self.think_of(vec![("", script.steps()?)], "")
    }

    /// Gives the model scripts for several conversations, and Codex settings of a user.
    pub fn think_of(
        &mut self,
        scripts: Vec<(&'static str, Vec<Step>)>,
        settings: &str,
    ) -> Outcome<()> {
        let model = Model::start_for(scripts)?;
        let config = format!(
            r#"
model = "{}"
model_provider = "scripted"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false
features.shell_snapshot = false
[model_providers.scripted]
name = "scripted"
base_url = "{}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[projects.{}]
trust_level = "trusted"
{settings}
"#,
            self.mind.model(),
            model.url(),
            json!(self.folder()),
        );
        self.model = Some(model);
        Ok(fs::write(self.home().join("config.toml"), config)?)
    }

    pub fn model(&self) -> Outcome<&Model> {
        self.model.as_ref().ok_or_else(|| Trouble::Wrong("there is no model".into()))
    }

    /// Waits until the model was asked so many times.
    pub fn asked(&self, times: usize) -> Outcome<()> {
        self.model()?.wait_for(times, PATIENCE)
    }

    /// The command that starts the agent.
    pub fn agent(&self, flags: &[&str]) -> Command {
        let mut command = self.program(&self.cast.agent);
        command.arg("--codex").arg(&self.cast.codex).args(flags);
        command
    }

    /// A program of the scenario. Nothing of this user's is seen: no variable but `PATH`, and a home of its own.
    pub fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "SystemRoot"))
            .envs([("HOME", self.home()), ("CODEX_HOME", self.home())]);
        command
    }

    /// An editor that has just started the agent.
    pub fn edit(&self, manners: Manners, flags: &[&str]) -> Outcome<Editor> {
        let editor = Editor::start(&mut self.agent(flags), manners)?;
        editor.initialize()?;
        Ok(editor)
    }

    /// An editor with a session in the folder.
    pub fn open(&self, manners: Manners, flags: &[&str]) -> Outcome<Talk> {
        let editor = self.edit(manners, flags)?;
        Talk::new(editor, &json!({ "cwd": self.folder(), "mcpServers": [] }))
    }

    /// Nobody is left, and the model was shown what it should.
    pub fn end(self) -> Outcome<()> {
        let gone = see_off(self.home());
        let refused = self.model.map(|model| model.refused()).unwrap_or_default();
        ensure(refused.is_empty(), || format!("the model: {}", refused.join("\n")))?;
        gone
    }
}

/// A session of an editor.
pub struct Talk {
    pub editor: Editor,
    pub session: String,
    /// What was said when it was opened.
    pub opened: Value,
}

impl Talk {
    pub fn new(editor: Editor, params: &Value) -> Outcome<Self> {
        let opened = editor.ask("session/new", params.clone())?;
        let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(Self { editor, session, opened })
    }

    /// Has the model follow its script to the end of a turn; why it stopped.
    pub fn prompt(&self, text: &str) -> Outcome<String> {
        let id = self.begin(text)?;
        self.stopped(id)
    }

    /// The same, which has to end by itself.
    pub fn work(&self) -> Outcome<()> {
        let stopped = self.prompt("Follow the script.")?;
        ensure(stopped == "end_turn", || format!("the turn stopped with {stopped}"))
    }

    /// Asks without waiting.
    pub fn begin(&self, text: &str) -> Outcome<u64> {
        self.begin_with(&json!([{ "type": "text", "text": text }]))
    }

    pub fn begin_with(&self, prompt: &Value) -> Outcome<u64> {
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.editor.send("session/prompt", params)
    }

    pub fn stopped(&self, id: u64) -> Outcome<String> {
        let answer = self.editor.result(id).map_err(|trouble| trouble.at("session/prompt"))?;
        Ok(answer["stopReason"].as_str().unwrap_or_default().to_owned())
    }

    pub fn cancel(&self) -> Outcome<()> {
        self.editor.tell("session/cancel", json!({ "sessionId": self.session }))
    }

    pub fn set_mode(&self, mode: &str) -> Outcome<()> {
        let params = json!({ "sessionId": self.session, "modeId": mode });
        self.editor.ask("session/set_mode", params).map(drop)
    }

    pub fn wire(&self) -> Wire {
        Wire(self.editor.wire())
    }

    /// Ends the editor, and with it the agent; all that passed was in order.
    pub fn close(mut self) -> Outcome<Wire> {
        self.editor.leave()?;
        let wire = self.wire();
        wire.in_order().map_err(|why| self.editor.wrong(&why))?;
        Ok(wire)
    }
}
