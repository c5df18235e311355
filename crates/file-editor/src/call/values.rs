//! `key=value` arguments of the shell, converted to the JSON arguments of a tool.

use std::ffi::OsString;
use std::io::Read as _;

use serde_json::{Map, Value};
use server::in_process;
use tools::{Failure, FailureKind, ToolSpec};

/// Reads the arguments of a call. At most `max_bytes` bytes are read from stdin.
pub fn read(tool: &ToolSpec, words: &[OsString], max_bytes: u64) -> Result<Value, Failure> {
    if let [dash] = words
        && dash == "-"
    {
        let arguments = read_stdin(max_bytes).and_then(|json| Ok(in_process::read(&json)?));
        return arguments.map_err(|reason| invalid(vec![reason]));
    }
    let schema = tool.input_schema();
    let mut stdin = Stdin { max_bytes, is_taken: false };
    let (mut arguments, mut errors) = (Map::new(), Vec::new());
    for word in words {
        let added = split(word).and_then(|(key, value)| {
            let property = schema.get("properties").and_then(|all| all.get(key));
            let value = stdin.resolve(key, value)?;
            add(&mut arguments, key, parse(key, &value, property.unwrap_or(&Value::Null))?)
        });
        errors.extend(added.err());
    }
    if errors.is_empty() { Ok(arguments.into()) } else { Err(invalid(errors)) }
}

fn invalid(errors: Vec<String>) -> Failure {
    Failure::new(FailureKind::Invalid, errors.join("; ")).with_argument_errors(errors)
}

fn split(word: &OsString) -> Result<(&str, &str), String> {
    if word == "-" {
        return Err("`-` reads all arguments from stdin; it cannot be combined with others".into());
    }
    let word =
        word.to_str().ok_or_else(|| format!("not UTF-8: `{}`", abbreviate(&word.display())))?;
    word.split_once('=')
        .ok_or_else(|| format!("`{}` is not of the form key=value", abbreviate(&word)))
}

/// The value that comes from stdin. There is one at most.
struct Stdin {
    max_bytes: u64,
    is_taken: bool,
}

impl Stdin {
    fn resolve(&mut self, key: &str, value: &str) -> Result<String, String> {
        if value != "-" {
            return Ok(value.into());
        }
        if std::mem::replace(&mut self.is_taken, true) {
            return Err(format!("`{key}` cannot be read from stdin: another value already is"));
        }
        let bytes = read_stdin(self.max_bytes)?;
        String::from_utf8(bytes).map_err(|_| format!("`{key}` from stdin is not UTF-8"))
    }
}

fn read_stdin(max_bytes: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let taken = std::io::stdin().lock().take(max_bytes + 1).read_to_end(&mut bytes);
    taken.map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("stdin has more than {max_bytes} bytes; raise --max-size"));
    }
    Ok(bytes)
}

/// Adds a value. A key may be repeated only for a list of texts.
fn add(arguments: &mut Map<String, Value>, key: &str, value: ParsedValue) -> Result<(), String> {
    match (arguments.get_mut(key), value) {
        (None, ParsedValue::Single(value) | ParsedValue::WholeList(value)) => {
            arguments.insert(key.into(), value);
        }
        (None, ParsedValue::ListItem(item)) => {
            arguments.insert(key.into(), vec![item].into());
        }
        (Some(Value::Array(items)), ParsedValue::ListItem(item)) => items.push(item),
        (Some(_), _) => return Err(format!("`{key}` is given twice")),
    }
    Ok(())
}

enum ParsedValue {
    Single(Value),
    /// A whole list.
    WholeList(Value),
    /// An item of a list.
    ListItem(Value),
}

/// Parses a value by its type in the tool's schema. An unknown key is left to the tool, whose error names the key that
/// may be meant.
fn parse(key: &str, value: &str, property: &Value) -> Result<ParsedValue, String> {
    let json = || serde_json::from_str::<Value>(value);
    let wrong = |wanted: &str| format!("`{key}` must be {wanted}, not `{}`", abbreviate(&value));
    match property["type"].as_str() {
        Some("integer") => json().ok().filter(Value::is_number).ok_or_else(|| wrong("an integer")),
        Some("number") => json().ok().filter(Value::is_number).ok_or_else(|| wrong("a number")),
        Some("boolean") => {
            json().ok().filter(Value::is_boolean).ok_or_else(|| wrong("`true` or `false`"))
        }
        Some("array") if property["items"]["type"] == "string" && !value.starts_with('[') => {
            return Ok(ParsedValue::ListItem(value.into()));
        }
        Some("array") => {
            let wrong = |reason| wrong(&format!("a JSON array ({reason})"));
            return match in_process::value(value.as_bytes()) {
                Ok(list @ Value::Array(_)) => Ok(ParsedValue::WholeList(list)),
                Ok(_) => Err(wrong("it is another type".into())),
                Err(reason) => Err(wrong(reason)),
            };
        }
        Some("object") => match in_process::value(value.as_bytes()) {
            Ok(object @ Value::Object(_)) => Ok(object),
            Ok(_) => Err(wrong("a JSON object")),
            Err(reason) => Err(wrong(&format!("a JSON object ({reason})"))),
        },
        _ => Ok(value.into()),
    }
    .map(ParsedValue::Single)
}

/// Returns the beginning of a value, so that errors do not repeat large contents.
fn abbreviate(text: &impl ToString) -> String {
    let text = text.to_string();
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
