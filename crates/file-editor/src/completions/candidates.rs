//! Completions: the words that may come next on a command line, by its definition and the schemas of the tools.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, ArgAction, Command};
use files::{Call, DirPath, DiskOptions, DiskStore, Durability, Root, Store};
use serde_json::{Map, Value};
use tools::{Dialect, ToolSpec};

use crate::call;
use crate::setup::client::CLIENTS;

/// Limit of the file names offered: a person does not look through more.
const FILES_MAX: usize = 1000;
/// Time limit for listing files, since a person waits after pressing a key.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns all completions that begin with `word`, after the words `before` it, in the format of [`super::CompletionRequest`].
pub fn list(definition: &Command, before: &[String], word: &str) -> String {
    let parsed = ParsedWords::parse(definition, before);
    match parsed.candidates(definition, word) {
        Candidates::Words(words) => {
            let fits = |(offered, _): &&(String, String)| offered.starts_with(word);
            let line = |(word, meaning): &(String, String)| {
                // One line each, even if a help text has several.
                let meaning: Vec<&str> = meaning.split_whitespace().collect();
                format!("{word}\t{}\n", meaning.join(" "))
            };
            words.iter().filter(fits).map(line).collect()
        }
        Candidates::Files { prefix } => format!("\tfiles\t{prefix}\n"),
        Candidates::Folders { prefix } => format!("\tfolders\t{prefix}\n"),
    }
}

enum Candidates {
    /// Whole words, each with its meaning.
    Words(Vec<(String, String)>),
    /// Paths, after the part of the word before them.
    Files {
        prefix: String,
    },
    Folders {
        prefix: String,
    },
}

/// The parsed words before the one to complete.
struct ParsedWords<'a> {
    command: &'a Command,
    flags: Vec<&'a str>,
    /// A flag whose value comes next.
    awaiting_value: Option<&'a Arg>,
    dir: Option<&'a str>,
    positionals: Vec<&'a str>,
}

impl<'a> ParsedWords<'a> {
    fn new(command: &'a Command) -> Self {
        Self {
            command,
            flags: Vec::new(),
            awaiting_value: None,
            dir: None,
            positionals: Vec::new(),
        }
    }

    fn parse(definition: &'a Command, words: &'a [String]) -> Self {
        let mut parsed = Self::new(definition);
        for word in words {
            parsed.add(word);
        }
        parsed
    }

    fn add(&mut self, word: &'a str) {
        if let Some(flag) = self.awaiting_value.take() {
            self.add_value(flag, word);
        } else if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
            self.flags.push(name);
            match (self.flag(name).filter(|flag| takes_value(flag)), value) {
                (Some(flag), Some(value)) => self.add_value(flag, value),
                (flag, _) => self.awaiting_value = flag,
            }
        } else if let Some(command) = self.command.find_subcommand(word) {
            *self = Self::new(command);
        } else if word == "-" || !word.starts_with('-') {
            self.positionals.push(word);
        }
    }

    fn add_value(&mut self, flag: &Arg, value: &'a str) {
        if flag.get_long() == Some("dir") {
            self.dir = Some(value);
        }
    }

    fn flag(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|argument| argument.get_long() == Some(name))
    }

    fn candidates(&self, definition: &Command, word: &str) -> Candidates {
        if let Some(flag) = self.awaiting_value {
            return values(definition, flag, "", word);
        }
        if let Some((name, value)) = word.split_once('=')
            && let Some(name) = name.strip_prefix("--")
        {
            let flag = self.flag(name).filter(|flag| takes_value(flag));
            let prefix = &word[..word.len() - value.len()];
            let none = Candidates::Words(Vec::new());
            return flag.map_or(none, |flag| values(definition, flag, prefix, value));
        }
        if word.starts_with('-') {
            return Candidates::Words(self.unused_flags());
        }
        let tool = self.positionals.first().filter(|_| self.command.get_name() == "call");
        let mut candidates = match tool.and_then(|name| call::find(name)) {
            Some(tool) => self.arguments(tool, word),
            None => Candidates::Words(self.names(definition)),
        };
        if let Candidates::Words(words) = &mut candidates {
            // Flags are offered only where nothing else is, or where commands are.
            if word.is_empty() && (words.is_empty() || self.command.has_subcommands()) {
                words.extend(self.unused_flags());
            }
        }
        candidates
    }

    /// Returns the flags that are not used yet.
    fn unused_flags(&self) -> Vec<(String, String)> {
        let flag = |argument: &Arg| {
            let name = argument.get_long().filter(|name| !self.flags.contains(name))?;
            let ending = if takes_value(argument) { "=" } else { "" };
            Some((format!("--{name}{ending}"), help_text(argument.get_help())))
        };
        let flags = self.command.get_arguments().filter(|argument| !argument.is_hide_set());
        flags.filter_map(flag).collect()
    }

    /// Returns the commands and the choices of the next positional argument.
    fn names(&self, definition: &Command) -> Vec<(String, String)> {
        let commands = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        let commands = commands.filter(|_| self.flags.is_empty() && self.positionals.is_empty());
        let commands =
            commands.map(|command| (command.get_name().to_owned(), help_text(command.get_about())));
        let mut names: Vec<_> = commands.collect();
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        let last = positionals.last().filter(|last| matches!(last.get_action(), ArgAction::Append));
        if let Some(argument) = positionals.get(self.positionals.len()).or(last) {
            let choices = choices(definition, argument).into_iter();
            names.extend(choices.filter(|(name, _)| !self.positionals.contains(&name.as_str())));
        }
        names
    }

    /// Completes the arguments of a tool: its keys, and after a key its values.
    fn arguments(&self, tool: &'static ToolSpec, word: &str) -> Candidates {
        let schema = tool.input_schema();
        let Some((key, value)) = word.split_once('=') else {
            return Candidates::Words(self.unused_keys(&schema));
        };
        let prefix = &word[..word.len() - value.len()];
        match (tool.dialect, key) {
            (Dialect::Flat, "name") => Candidates::Words(self.files(prefix, value)),
            (Dialect::Text, "path") => Candidates::Files { prefix: prefix.into() },
            // These paths are relative to the served folder; shells complete them only if it is the current one.
            (Dialect::Code, "target_file" | "files") if self.serves_current_folder() => {
                Candidates::Files { prefix: prefix.into() }
            }
            (Dialect::Code, "path") if self.serves_current_folder() => {
                Candidates::Folders { prefix: prefix.into() }
            }
            _ => {
                let property = call::properties(&schema).find(|(known, _)| *known == key);
                let values = property.map(|(_, property)| values_of(property)).unwrap_or_default();
                let word = |value: &str| (format!("{prefix}{value}"), String::new());
                Candidates::Words(values.into_iter().map(word).collect())
            }
        }
    }

    /// Returns the keys that are not used yet, or may be repeated.
    fn unused_keys(&self, schema: &Map<String, Value>) -> Vec<(String, String)> {
        let is_given = |key: &str| {
            self.positionals
                .iter()
                .any(|word| word.strip_prefix(key).is_some_and(|v| v.starts_with('=')))
        };
        let keys = call::properties(schema)
            .filter(|(key, property)| property["type"] == "array" || !is_given(key));
        let description =
            |property: &Value| property["description"].as_str().unwrap_or("").to_owned();
        keys.map(|(key, property)| (format!("{key}="), description(property))).collect()
    }

    fn serves_current_folder(&self) -> bool {
        matches!(self.dir, None | Some("." | "./"))
    }

    /// Returns the names of the files in the folder. Hidden files are offered only after a dot.
    fn files(&self, prefix: &str, value: &str) -> Vec<(String, String)> {
        let mut names = Vec::new();
        let Ok(root) = Root::open(Path::new(self.dir.unwrap_or("."))) else { return names };
        let root = Arc::new(root);
        let options = DiskOptions { max_size: 0, durability: Durability::None };
        let store = DiskStore::open(Arc::clone(&root), options);
        let call = Call::until(Instant::now() + LIST_TIMEOUT);
        // Names that were found before an error are offered all the same.
        let _ = store.list(&DirPath::root(), &call, &mut |entry| {
            let name = entry.name.to_string_lossy();
            let is_meant =
                name.starts_with(value) && name.starts_with('.') == value.starts_with('.');
            if is_meant && root.accepts_flat_name(&name) {
                names.push((format!("{prefix}{name}"), String::new()));
            }
            if names.len() < FILES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        names.sort();
        names
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn help_text(help: Option<&StyledStr>) -> String {
    help.map(StyledStr::to_string).unwrap_or_default()
}

/// True if the argument's value has this name in the help, which tells its type.
fn has_value_name(argument: &Arg, name: &str) -> bool {
    argument.get_value_names().is_some_and(|names| names.iter().any(|found| found == name))
}

fn values(definition: &Command, flag: &Arg, prefix: &str, value: &str) -> Candidates {
    if has_value_name(flag, "PATH") {
        return Candidates::Folders { prefix: prefix.into() };
    }
    // In a comma list the last item is completed, and items that are there are not offered again.
    let listed =
        value.rfind(',').filter(|_| has_value_name(flag, "LIST")).map_or("", |at| &value[..=at]);
    let words = choices(definition, flag).into_iter();
    let words = words.filter(|(name, _)| !listed.split(',').any(|there| there == name));
    Candidates::Words(words.map(|(name, help)| (format!("{prefix}{listed}{name}"), help)).collect())
}

/// Returns the choices of an argument. A flag has the same meaning in all commands, so one without choices has those of
/// the server's flag of that name.
fn choices(definition: &Command, argument: &Arg) -> Vec<(String, String)> {
    if has_value_name(argument, "CLIENT") {
        let choice = |name: &str, title: &str| (name.to_owned(), title.to_owned());
        return CLIENTS.iter().map(|client| choice(client.name, client.title)).collect();
    }
    let mut possible = argument.get_possible_values();
    if possible.is_empty() {
        let same =
            |known: &&Arg| known.get_long() == argument.get_long() && known.get_long().is_some();
        possible =
            definition.get_arguments().find(same).map(Arg::get_possible_values).unwrap_or_default();
    }
    let choice = |value: &PossibleValue| {
        let help = help_text(value.get_help());
        let names = value.get_name_and_aliases().map(String::from);
        names.map(move |name| (name, help.clone())).collect::<Vec<_>>()
    };
    possible.iter().flat_map(choice).collect()
}

/// Returns the values that a tool accepts for a key, if they are few.
fn values_of(property: &Value) -> Vec<&str> {
    if property["type"] == "boolean" {
        return vec!["true", "false"];
    }
    let choices = property["enum"].as_array().or(property["items"]["enum"].as_array());
    choices.into_iter().flatten().filter_map(Value::as_str).collect()
}
