//! Clients that are told of the server by `file-editor setup`, and start it from what that wrote: their own look at the
//! health of their servers says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::codex::ensure;
use crate::install::{Npm, npm};
use crate::program::{self, Ended, PATIENCE, Program};
use crate::scene::Scene;
use crate::{Outcome, Row, Trouble};

pub const CLAUDE: &str = "@anthropic-ai/claude-code@2.1.197";
pub const GEMINI: &str = "@google/gemini-cli@0.61.0";

/// A client that knows no model here, but looks after its servers.
struct Client<'a> {
    /// As `setup` calls it.
    name: &'static str,
    npm: Npm,
    /// What is started, below `node_modules`.
    program: &'static str,
    scene: &'a Scene,
    home: PathBuf,
}

pub fn claude(scene: &Scene) -> Outcome<Vec<Row>> {
    let client = Client {
        name: "claude-code",
        npm: npm(&[CLAUDE])?,
        program: ".bin/claude",
        scene,
        home: scene.aside().to_owned(),
    };
    // It has been here before: this is what setup has to leave alone.
    let before = json!({ "numStartups": 3, "mcpServers": {} });
    fs::write(client.home.join(".claude.json"), before.to_string())?;
    Ok(client.rows())
}

pub fn gemini(scene: &Scene) -> Outcome<Vec<Row>> {
    let client = Client {
        name: "gemini",
        npm: npm(&[GEMINI])?,
        program: ".bin/gemini",
        scene,
        home: scene.aside().to_owned(),
    };
    let own = client.home.join(".gemini");
    fs::create_dir_all(&own)?;
    // It starts no server in a folder that its user has not said to trust.
    let folder = scene.folder().canonicalize()?;
    fs::write(
        own.join("trustedFolders.json"),
        json!({ folder.display().to_string(): "TRUST_FOLDER" }).to_string(),
    )?;
    fs::write(
        own.join("settings.json"),
        "{\n  // mine\n  \"ui\": { \"theme\": \"Default\" }\n}\n",
    )?;
    Ok(client.rows())
}

impl Client<'_> {
    fn rows(&self) -> Vec<Row> {
        let did = self
            .play()
            .map(|()| format!("`setup {}`, then started by it; `--remove`, then gone", self.name));
        vec![Row { transport: "stdio", protocol: "–", did }]
    }

    fn play(&self) -> Outcome<()> {
        let folder = format!("--dir={}", self.scene.folder().display());
        setup(self.scene, &self.home, &[self.name, &folder])?;
        let listed = self.list()?;
        ensure(listed.contains("Connected"), || format!("it does not start it:\n{listed}"))?;
        setup(self.scene, &self.home, &[self.name, "--remove"])?;
        let listed = self.list()?;
        ensure(!listed.contains("file-editor"), || format!("it is still told of it:\n{listed}"))
    }

    /// What it says of its servers, each of which it starts.
    fn list(&self) -> Outcome<String> {
        let mut command = program::client(&self.npm.folder.join("node_modules").join(self.program));
        // Both are scripts, which look for the Node to run them.
        let node = self.npm.node.parent().unwrap_or(Path::new("")).to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([node].into_iter().chain(std::env::split_paths(&path)));
        command.env("PATH", path.map_err(|e| Trouble::NotRun(e.to_string()))?);
        command.env("HOME", &self.home).env("USERPROFILE", &self.home);
        // Nothing of it goes anywhere else.
        command
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
        command.args(["mcp", "list"]).current_dir(self.scene.folder());
        let Ended { said, complained, .. } =
            Program::start(&mut command, Instant::now() + PATIENCE)?.finish()?;
        Ok(said + &complained)
    }
}

/// `file-editor setup`, for somebody with that home.
fn setup(scene: &Scene, home: &Path, arguments: &[&str]) -> Outcome<()> {
    let mut command = Command::new(&scene.binary);
    command.arg("setup").args(arguments).envs([("HOME", home), ("USERPROFILE", home)]);
    command.env("CODEX_HOME", home).env_remove("XDG_CONFIG_HOME");
    Program::start(&mut command, Instant::now() + PATIENCE)?.finish()?.expect(0)?;
    Ok(())
}

/// The configuration of Codex that comes of this one.
pub fn codex(scene: &Scene, configuration: &str, options: &[&str]) -> Outcome<String> {
    let home = scene.aside();
    fs::write(home.join("config.toml"), configuration)?;
    let folder = format!("--dir={}", scene.folder().display());
    setup(scene, home, &[&["codex", &folder], options].concat())?;
    Ok(fs::read_to_string(home.join("config.toml"))?)
}
