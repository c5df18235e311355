//! Flags and variables that several commands share: the checks and the accepted words.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Arg;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use files::{Access, Durability, Root};
use server::terminal;
use tools::{Effect, TOOLSETS, ToolSpec};

use crate::folder::{FolderSettings, SandboxMode};

/// The word for all toolsets at once.
const ALL_TOOLSETS: &str = "all";

pub const DURABILITIES: [(&str, Durability); 3] =
    [("none", Durability::None), ("data", Durability::Data), ("full", Durability::Full)];

/// Raw values of the flags about the folder, which the server and `call` share.
pub struct FolderFlags<'a> {
    pub dir: Option<&'a OsStr>,
    pub max_size: Option<&'a str>,
    pub timeout: Option<&'a str>,
    pub durability: Option<&'a str>,
    pub read_only: bool,
    pub no_sandbox: bool,
}

/// Parser of a word, with the choices for completions. It accepts any word; a wrong one is reported later, together
/// with all other errors.
#[derive(Clone)]
pub struct ChoiceParser(Vec<&'static str>);

impl ChoiceParser {
    pub fn of<T>(choices: &[(&'static str, T)]) -> Self {
        Self(choices.iter().map(|(name, _)| *name).collect())
    }

    pub fn of_toolsets() -> Self {
        Self(TOOLSETS.iter().map(|(name, _)| *name).chain([ALL_TOOLSETS]).collect())
    }
}

impl TypedValueParser for ChoiceParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// Writes every error in the arguments to stderr, and the command for help.
pub fn report_errors(errors: &[String], help: &str) {
    for error in errors {
        terminal::write_message(&format!("error: {error}"));
    }
    terminal::write_message(&format!("\nFor more information, try `{help}`."));
}

/// Checks the flags and opens the folder for calls of `tools`, or returns every error.
pub fn folder_settings(
    flags: &FolderFlags,
    tools: &[&'static ToolSpec],
) -> Result<FolderSettings, Vec<String>> {
    let mut errors = ArgumentErrors::default();
    errors.folder_settings(flags, Some(tools)).ok_or(errors.0)
}

/// Errors in the arguments, collected so that all of them are reported at once.
#[derive(Default)]
pub struct ArgumentErrors(pub Vec<String>);

impl ArgumentErrors {
    /// Returns the value of a check that passed; otherwise adds the error.
    pub fn check<T>(&mut self, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|error| self.0.push(error)).ok()
    }

    /// Checks the flags and opens the folder. `tools`: those that will be called, if they are known.
    pub fn folder_settings(
        &mut self,
        flags: &FolderFlags,
        tools: Option<&[&'static ToolSpec]>,
    ) -> Option<FolderSettings> {
        let access = if flags.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let root = self.check(open_folder(flags.dir, access));
        let size = "--max-size must be between 1 and 100 MB";
        let max_size = self.number(flags.max_size, 10, 1..=100, size);
        let time = "--timeout must be between 1 and 300 seconds";
        let timeout = self.number(flags.timeout, 10, 1..=300, time);
        let model = self.check(tools.map_or(Ok(None), model_settings));
        let durability =
            self.choice("--durability", flags.durability.unwrap_or("data"), &DURABILITIES);
        Some(FolderSettings {
            root: root?,
            max_size: max_size? << 20,
            timeout: Duration::from_secs(timeout?),
            durability: durability?,
            access,
            sandbox: if flags.no_sandbox { SandboxMode::Off } else { SandboxMode::On },
            model: model?.map(Arc::new),
        })
    }

    /// Parses a number in a range; `default` if none is given.
    pub fn number(
        &mut self,
        raw: Option<&str>,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
        error: &str,
    ) -> Option<u64> {
        let number = raw.map_or(Some(default), |raw| raw.trim().parse().ok());
        self.check(number.filter(|number| range.contains(number)).ok_or_else(|| error.into()))
    }

    /// Returns the value of the choice that `raw` names.
    pub fn choice<T: Copy>(&mut self, flag: &str, raw: &str, choices: &[(&str, T)]) -> Option<T> {
        let found = choices.iter().find(|(name, _)| *name == raw).map(|(_, value)| *value);
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.check(found.ok_or_else(|| format!("{flag} must be one of: {}", names.join(", "))))
    }
}

/// Opens the folder that `--dir` names, and checks that it can be written to if `access` needs that.
pub fn open_folder(raw: Option<&OsStr>, access: Access) -> Result<Root, String> {
    let path = raw.filter(|raw| !raw.is_empty()).ok_or("--dir argument is required")?;
    let opened = Root::open(Path::new(path));
    let path = path.display();
    let root = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("Directory does not exist: {path}"),
        std::io::ErrorKind::NotADirectory => format!("Not a directory: {path}"),
        _ => format!("Cannot access directory: {path}: {error}"),
    })?;
    if access == Access::ReadWrite && !root.is_writable() {
        return Err(format!(
            "Directory not writable: {path} (add --read-only to serve it without edits)"
        ));
    }
    Ok(root)
}

/// Returns the token that HTTP requests must carry, if `FILE_EDITOR_TOKEN` is set.
pub fn bearer_token() -> Result<Option<String>, &'static str> {
    match std::env::var_os("FILE_EDITOR_TOKEN").map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(token)) if token.is_empty() => Ok(None),
        Some(Ok(token)) if !can_be_carried(&token) => Err(
            "FILE_EDITOR_TOKEN ends with a space or contains a control character, which no HTTP header can carry",
        ),
        Some(Ok(token)) => Ok(Some(token)),
        Some(Err(_)) => Err("FILE_EDITOR_TOKEN is not UTF-8"),
    }
}

/// True if a header can carry the token: blanks at its end are not part of a header.
fn can_be_carried(token: &str) -> bool {
    !token.ends_with([' ', '\t']) && !token.bytes().any(|b| b.is_ascii_control() && b != b'\t')
}

/// Returns the model that the variables name. None unless one of `tools` has a model generate code.
fn model_settings(tools: &[&'static ToolSpec]) -> Result<Option<model::Settings>, String> {
    let is_served = tools.iter().any(|tool| tool.effect == Effect::Rewrites);
    let get = |name: &str| std::env::var(name).ok().filter(|_| is_served);
    model::Settings::from_variables(get).map_err(|error| error.to_string())
}

/// Parses a comma list of toolsets and returns their tools, each once.
pub fn parse_toolsets(raw: Option<&str>) -> Result<Vec<&'static ToolSpec>, String> {
    let mut tools: Vec<&'static ToolSpec> = Vec::new();
    for name in raw.unwrap_or("flat").split(',').map(str::trim) {
        let is_named = |toolset: &str| toolset == name || name == ALL_TOOLSETS;
        let mut named = TOOLSETS.iter().filter(|(toolset, _)| is_named(toolset)).peekable();
        if named.peek().is_none() {
            let known = ChoiceParser::of_toolsets().0.join(", ");
            return Err(format!("--tools must be a comma list of: {known}"));
        }
        tools.extend(named.flat_map(|(_, tools)| *tools));
    }
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert(tool.key()));
    match same_name(&tools) {
        Some(name) => Err(format!("--tools names two toolsets that have a tool `{name}`")),
        None => Ok(tools),
    }
}

/// Returns a name that two of the tools have: a client could not say which of them it calls.
fn same_name(tools: &[&'static ToolSpec]) -> Option<&'static str> {
    let mut names = HashSet::new();
    let all = tools.iter().flat_map(|tool| [tool.name].into_iter().chain(tool.alias));
    all.into_iter().find(|name| !names.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_taken_once_and_a_name_too() {
        let count_of = |raw| parse_toolsets(Some(raw)).map(|tools| tools.len());
        let count = |toolset: usize| TOOLSETS[toolset].1.len();
        assert_eq!(count_of("text"), Ok(count(1)));
        assert_eq!(count_of("text, flat,text"), Ok(count(1) + count(0)));
        assert_eq!(count_of("code,all"), Ok(tools::agent_tools().count()));
        assert_eq!(
            count_of("flat,"),
            Err("--tools must be a comma list of: flat, text, code, all".into())
        );
        let both: Vec<_> = tools::FLAT.iter().chain(&tools::PLAIN).collect();
        assert_eq!(same_name(&both), Some("list_files"));
        assert_eq!(same_name(&both[..3]), None);
    }
}
