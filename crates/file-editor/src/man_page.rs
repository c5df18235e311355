//! `file-editor man`: one manual page for all commands, made from their help.

use std::fmt::Write as _;

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command};

use crate::call;

/// Returns the page in the format of `man`.
pub fn render(command: &Command) -> String {
    let mut page = Page(String::new());
    let name = command.get_name();
    let version = command.get_version().unwrap_or_default();
    page.request(&format!(".TH {} 1 \"\" \"{name} {version}\"", name.to_uppercase()));
    page.heading("NAME");
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    page.line(&format!("{name} - {}", about.trim_end_matches('.')));
    page.heading("SYNOPSIS");
    page.request(".nf");
    for command in with_subcommands(command) {
        for usage in usages(command) {
            page.line(&usage);
        }
    }
    page.request(".fi");
    page.heading("DESCRIPTION");
    page.text(&description(command));
    page.heading("OPTIONS");
    page.arguments(command);
    page.heading("COMMANDS");
    for command in subcommands(command) {
        page.subheading(&usages(command).join(", "));
        page.text(&description(command));
        page.arguments(command);
        page.text(&notes(command));
    }
    page.heading("TOOLS");
    for tool in tools::agent_tools() {
        page.subheading(tool.name);
        page.text(tool.description());
        for key in call::keys(tool) {
            page.term(&key.usage, &key.meaning);
            for member in &key.members {
                page.request(".br");
                page.line(member);
            }
        }
    }
    page.heading("NOTES");
    page.text(&notes(command));
    page.0
}

fn with_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    std::iter::once(command).chain(subcommands(command))
}

/// Returns the commands that are not hidden.
fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// Returns all usages of a command.
fn usages(command: &Command) -> Vec<String> {
    let usages = command.clone().render_usage().to_string();
    let usages = usages.strip_prefix("Usage: ").unwrap_or(&usages);
    usages.lines().map(|usage| usage.trim().to_owned()).collect()
}

fn description(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(StyledStr::to_string).unwrap_or_default()
}

fn notes(command: &Command) -> String {
    let help = command.get_after_long_help().or(command.get_after_help());
    help.map(StyledStr::to_string).unwrap_or_default()
}

/// The page as far as it is written.
struct Page(String);

impl Page {
    fn request(&mut self, request: &str) {
        self.0.push_str(request);
        self.0.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.request(&format!(".SH {title}"));
    }

    fn subheading(&mut self, title: &str) {
        self.request(&format!(".SS \"{}\"", escaped(title).replace('"', "\\(dq")));
    }

    /// Writes a line of text, escaped if it looks like a request.
    fn line(&mut self, line: &str) {
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(self.0, "{guard}{}", escaped(line));
    }

    /// Writes paragraphs. Indented lines keep their breaks.
    fn text(&mut self, text: &str) {
        let mut is_verbatim = false;
        for line in text.lines() {
            if line.starts_with("  ") != is_verbatim && !line.is_empty() {
                is_verbatim = !is_verbatim;
                self.request(if is_verbatim { ".nf" } else { ".fi" });
            }
            match line {
                "" => self.request(".PP"),
                line => self.line(line),
            }
        }
        if is_verbatim {
            self.request(".fi");
        }
    }

    fn arguments(&mut self, command: &Command) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let help = argument.get_long_help().or(argument.get_help());
            let mut help = help.map(StyledStr::to_string).unwrap_or_default();
            if !argument.is_hide_possible_values_set() && argument.get_action().takes_values() {
                let values = argument.get_possible_values();
                let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
                if !names.is_empty() {
                    let _ = write!(help, "\n\nOne of: {}", names.join(", "));
                }
            }
            self.term(&usage(argument), &help);
        }
        self.request(".PP");
    }

    /// Writes a term and its meaning. Line breaks in the meaning are kept.
    fn term(&mut self, word: &str, meaning: &str) {
        self.request(".TP");
        self.line(word);
        for (index, paragraph) in meaning.split("\n\n").enumerate() {
            if index > 0 {
                self.request(".IP");
            }
            for (index, line) in paragraph.lines().enumerate() {
                if index > 0 {
                    self.request(".br");
                }
                self.line(line);
            }
        }
    }
}

/// Formats an argument: `-h, --help`, `--dir=PATH`, `[TOOL]`.
fn usage(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value).and_then(<[_]>::first);
    let (Some(long), value) = (argument.get_long(), value) else {
        return argument.to_string();
    };
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let value = value.map(|value| format!("={value}")).unwrap_or_default();
    format!("{short}--{long}{value}")
}

/// Escapes the characters that `man` would replace by typographic ones.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '`' => escaped.push_str("\\(ga"),
            '\'' => escaped.push_str("\\(aq"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            character => escaped.push(character),
        }
        escaped
    })
}
