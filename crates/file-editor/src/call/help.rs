//! Help about tools: the list of them, and the keys of each, from their schemas.

use std::fmt::Write as _;

use clap::Command;
use serde_json::{Map, Value};
use tools::ToolSpec;

/// Columns of a line, as in the help of all commands.
const WIDTH: usize = 100;

/// Returns the help of the command itself, from the definition of the whole command line.
pub fn command(mut definition: Command) -> String {
    let found = definition.find_subcommand_mut("call");
    found.map(|call| call.render_long_help().to_string()).unwrap_or_default()
}

/// Lists the tools, one a line.
pub fn list() -> String {
    let names = tools::agent_tools().map(|tool| tool.name.len());
    let width = names.max().unwrap_or_default();
    tools::agent_tools().fold(String::new(), |mut list, tool| {
        let description = tool.description();
        let first = description.split(['.', ':']).next().unwrap_or_default();
        let alias = tool.alias.map(|alias| format!(" (also {alias})")).unwrap_or_default();
        let _ = writeln!(list, "{:width$}  {first}{alias}", tool.name);
        list
    })
}

/// Returns the help of a tool.
pub fn tool(tool: &ToolSpec) -> String {
    let schema = tool.input_schema();
    let mut usage = format!("Usage: file-editor call {} [OPTIONS]", tool.name);
    for (key, property) in properties(&schema) {
        let word = format!("{key}={}", placeholder(property));
        let word = if is_required(&schema, key) { word } else { format!("[{word}]") };
        let _ = write!(usage, " {word}");
    }
    // Continuation lines are indented below the first word.
    let usage = wrapped(&usage, "Usage: ".len());
    let mut help = format!("{}\n{}", wrapped(tool.description(), 0), usage.trim_start());
    for (index, KeyHelp { usage, meaning, members }) in keys(tool).into_iter().enumerate() {
        let heading = if index == 0 { "\nKeys:\n" } else { "" };
        let _ = writeln!(help, "{heading}  {usage}");
        help.push_str(&wrapped(&meaning, 10));
        help.extend(members.iter().map(|member| wrapped(member, 14)));
    }
    help + "\nOptions, and how to write values: `file-editor call --help`\n"
}

/// Help for a key of a tool's arguments.
pub struct KeyHelp {
    /// The key, a placeholder for its value, and whether it is required.
    pub usage: String,
    pub meaning: String,
    /// Members of an item, if the value is a list of objects.
    pub members: Vec<String>,
}

pub fn keys(tool: &ToolSpec) -> Vec<KeyHelp> {
    let schema = tool.input_schema();
    let key = |(key, property): (&str, &Value)| {
        let required = if is_required(&schema, key) { "  (required)" } else { "" };
        let usage = format!("{key}={}{required}", placeholder(property));
        let item = property.get("items").and_then(Value::as_object);
        let members = item.into_iter().flat_map(|item| {
            properties(item).map(|(name, member)| {
                let required = if is_required(item, name) { ", required" } else { "" };
                format!("\"{name}\" ({}{required}): {}", type_name(member), meaning(member))
            })
        });
        KeyHelp { usage, meaning: meaning(property), members: members.collect() }
    };
    properties(&schema).map(key).collect()
}

/// Returns the properties of an object schema, in their order.
pub fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn meaning(property: &Value) -> String {
    let description = property["description"].as_str().unwrap_or_default();
    match property.get("default") {
        Some(default) => format!("{description} [default: {default}]"),
        None => description.to_owned(),
    }
}

/// Returns the placeholder for a value.
fn placeholder(property: &Value) -> String {
    match (property["type"].as_str().unwrap_or_default(), choices(property)) {
        (_, Some(choices)) => choices,
        ("string", None) => "TEXT".into(),
        ("boolean", None) => "true|false".into(),
        ("array", None) if property["items"]["type"] == "string" => {
            format!("{}...", placeholder(&property["items"]))
        }
        ("array", None) => "JSON-ARRAY".into(),
        ("object", None) => "JSON-OBJECT".into(),
        (kind, None) => kind.to_uppercase(),
    }
}

fn type_name(property: &Value) -> String {
    let kind = property["type"].as_str().unwrap_or("any");
    choices(property).unwrap_or_else(|| kind.to_owned())
}

fn choices(property: &Value) -> Option<String> {
    let names: Vec<&str> = property["enum"].as_array()?.iter().filter_map(Value::as_str).collect();
    Some(names.join("|"))
}

/// Wraps a text to lines of at most [`WIDTH`] columns, each indented. A longer word is not broken.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width <= WIDTH {
            lines.push(' ');
            column += 1 + width;
        } else {
            let break_before = if column > 0 { "\n" } else { "" };
            let _ = write!(lines, "{break_before}{:indent$}", "");
            column = indent + width;
        }
        lines.push_str(word);
    }
    if column > 0 {
        lines.push('\n');
    }
    lines
}
