//! The files in `packaging`, with their gaps filled: `{{version}}` and the like.

use std::collections::BTreeMap;
use std::fs;

use super::platform::Platform;
use crate::root;

/// What the gaps are filled with, by name.
#[derive(Clone)]
pub struct Values(BTreeMap<String, String>);

/// What is the same for every file. Whose repository it is stands in the workspace's `Cargo.toml`, and nowhere else.
impl Values {
    pub fn new(version: &str, repository: &str) -> Result<Self, String> {
        let owner = repository.strip_prefix("https://github.com/").and_then(|rest| {
            let (owner, name) = rest.split_once('/')?;
            (!owner.is_empty() && name == "file-editor").then_some(owner)
        });
        let owner = owner.ok_or_else(|| {
            format!("`repository` in Cargo.toml is {repository:?}, not https://github.com/<owner>/file-editor")
        })?;
        let values = Self(BTreeMap::new());
        Ok(values
            .with("version", version)
            .with("repository", repository)
            .with("owner", owner)
            // As npm's scopes and names of images must be.
            .with("owner_lowercase", owner.to_lowercase())
            .with("download", format!("{repository}/releases/download/v{version}")))
    }

    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    pub fn with_platform(self, platform: &Platform) -> Self {
        self.with("platform", platform.name)
            .with("system", platform.system)
            .with("processor", platform.processor)
            .with("exe", platform.exe())
    }

    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The file of this name in `packaging`, filled.
    pub fn file(&self, name: &str) -> Result<String, String> {
        let path = root().join("packaging").join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("packaging/{name}: {e}"))?;
        self.fill(&text)
            .map_err(|gap| format!("packaging/{name}: nothing is known for {{{{{gap}}}}}"))
    }

    /// Or the name of the first gap that nothing is known for.
    pub fn fill(&self, template: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else { break };
            filled.push_str(before);
            filled.push_str(self.0.get(name).ok_or(name)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}
