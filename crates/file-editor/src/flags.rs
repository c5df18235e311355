//! Flags and variables that several commands share: the checks and the accepted words.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Arg;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use files::{Access, Durability, Root};
use server::terminal;
use tools::{Effect, ToolSpec};

use crate::workplace::{SecondWall, Workplace};

pub static TOOLSETS: [(&str, &[&[ToolSpec]]); 4] = [
    ("flat", &[&tools::FLAT]),
    ("text", &[&tools::TEXT]),
    ("code", &[&tools::CODE]),
    ("all", &[&tools::FLAT, &tools::TEXT, &tools::CODE]),
];
pub const DURABILITIES: [(&str, Durability); 3] =
    [("none", Durability::None), ("data", Durability::Data), ("full", Durability::Full)];

/// Raw values of the flags that the server and `call` share.
pub struct Flags<'a> {
    pub dir: Option<&'a OsStr>,
    pub max_size: Option<&'a str>,
    pub timeout: Option<&'a str>,
    pub durability: Option<&'a str>,
    pub read_only: bool,
    pub no_sandbox: bool,
}

/// Parser of a word, with the choices for completions. It accepts any word; a wrong one is reported later, together
/// with all other faults.
#[derive(Clone)]
pub struct Words(Vec<&'static str>);

impl Words {
    pub fn of<T>(choices: &[(&'static str, T)]) -> Self {
        Self(choices.iter().map(|(name, _)| *name).collect())
    }
}

impl TypedValueParser for Words {
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

/// Writes every fault in the arguments to stderr, and the command for help.
pub fn tell(faults: &[String], help: &str) {
    for fault in faults {
        terminal::write_message(&format!("error: {fault}"));
    }
    terminal::write_message(&format!("\nFor more information, try `{help}`."));
}

/// Checks the flags and opens the folder for calls of `tools`, or returns every fault.
pub fn workplace(flags: &Flags, tools: &[&'static ToolSpec]) -> Result<Workplace, Vec<String>> {
    let mut faults = Faults::default();
    faults.workplace(flags, Some(tools)).ok_or(faults.0)
}

/// Faults in the arguments, collected so that all of them are reported at once.
#[derive(Default)]
pub struct Faults(pub Vec<String>);

impl Faults {
    /// Returns the value of a check that passed; otherwise adds the fault.
    pub fn keep<T>(&mut self, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }

    /// Checks the flags and opens the folder. `tools`: those that will be called, if they are known.
    pub fn workplace(
        &mut self,
        flags: &Flags,
        tools: Option<&[&'static ToolSpec]>,
    ) -> Option<Workplace> {
        let access = if flags.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let root = self.keep(folder(flags.dir, access));
        let size = "--max-size must be between 1 and 100 MB";
        let max_size = self.number(flags.max_size, 10, 1..=100, size);
        let time = "--timeout must be between 1 and 300 seconds";
        let timeout = self.number(flags.timeout, 10, 1..=300, time);
        let model = self.keep(tools.map_or(Ok(None), author));
        let durability =
            self.choice("--durability", flags.durability.unwrap_or("data"), &DURABILITIES);
        Some(Workplace {
            root: root?,
            max_size: max_size? << 20,
            timeout: Duration::from_secs(timeout?),
            durability: durability?,
            access,
            second_wall: if flags.no_sandbox { SecondWall::Unwanted } else { SecondWall::Wanted },
            model: model?.map(Arc::new),
        })
    }

    /// Parses a number in a range; `default` if none is given.
    pub fn number(
        &mut self,
        raw: Option<&str>,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
        fault: &str,
    ) -> Option<u64> {
        let number = raw.map_or(Some(default), |raw| raw.trim().parse().ok());
        self.keep(number.filter(|number| range.contains(number)).ok_or_else(|| fault.into()))
    }

    /// Returns the value of the choice that `raw` names.
    pub fn choice<T: Copy>(&mut self, flag: &str, raw: &str, choices: &[(&str, T)]) -> Option<T> {
        let found = choices.iter().find(|(name, _)| *name == raw).map(|(_, value)| *value);
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.keep(found.ok_or_else(|| format!("{flag} must be one of: {}", names.join(", "))))
    }
}

/// Opens the folder that `--dir` names, and checks that it can be written to if `access` needs that.
pub fn folder(raw: Option<&OsStr>, access: Access) -> Result<Root, String> {
    let path = raw.filter(|raw| !raw.is_empty()).ok_or("--dir argument is required")?;
    let opened = Root::open(Path::new(path));
    let path = path.display();
    let root = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("Directory does not exist: {path}"),
        std::io::ErrorKind::NotADirectory => format!("Not a directory: {path}"),
        _ => format!("Cannot access directory: {path}: {error}"),
    })?;
    if access == Access::ReadWrite && !root.is_writable() {
        return Err(format!("Directory not writable: {path} (add --read-only to serve it without edits)"));
    }
    Ok(root)
}

/// Returns the token that HTTP requests must carry, if `FILE_EDITOR_TOKEN` is set.
pub fn token() -> Result<Option<String>, &'static str> {
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
fn author(tools: &[&'static ToolSpec]) -> Result<Option<model::Settings>, String> {
    let is_served = tools.iter().any(|entry| entry.effect == Effect::Rewrites);
    let get = |name: &str| std::env::var(name).ok().filter(|_| is_served);
    model::Settings::from_variables(get).map_err(|error| error.to_string())
}

/// Parses a comma list of toolsets and returns their tools, each once.
pub fn toolsets(raw: Option<&str>) -> Result<Vec<&'static ToolSpec>, String> {
    let mut tools: Vec<&'static ToolSpec> = Vec::new();
    for name in raw.unwrap_or("flat").split(',') {
        let Some((_, sets)) = TOOLSETS.iter().find(|(known, _)| *known == name.trim()) else {
            return Err("--tools must be a comma list of: flat, text, code, all".into());
        };
        tools.extend(sets.iter().copied().flatten());
    }
    let mut seen = Vec::new();
    tools.retain(|entry| {
        !seen.contains(&entry.name) && {
            seen.push(entry.name);
            true
        }
    });
    Ok(tools)
}
