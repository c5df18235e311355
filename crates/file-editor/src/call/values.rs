//! `key=value` arguments of the shell, converted to the JSON arguments of a tool.

use std::ffi::OsString;
use std::io::Read as _;

use serde_json::{Map, Value};
use server::in_process;
use tools::{Failure, FailureKind, ToolSpec};

/// Reads the arguments of a call. At most `longest` bytes are read from stdin.
pub fn read(entry: &ToolSpec, given: &[OsString], longest: u64) -> Result<Value, Failure> {
    if let [dash] = given
        && dash == "-"
    {
        let arguments = stdin(longest).and_then(|json| Ok(in_process::read(&json)?));
        return arguments.map_err(|reason| invalid(vec![reason]));
    }
    let schema = entry.input_schema();
    let mut stdin = Stdin { longest, is_taken: false };
    let (mut arguments, mut faults) = (Map::new(), Vec::new());
    for word in given {
        let added = split(word).and_then(|(key, value)| {
            let property = schema.get("properties").and_then(|all| all.get(key));
            let value = stdin.or(key, value)?;
            add(&mut arguments, key, parse(key, &value, property.unwrap_or(&Value::Null))?)
        });
        faults.extend(added.err());
    }
    if faults.is_empty() { Ok(arguments.into()) } else { Err(invalid(faults)) }
}

fn invalid(faults: Vec<String>) -> Failure {
    Failure::new(FailureKind::Invalid, faults.join("; ")).with_faults(faults)
}

fn split(word: &OsString) -> Result<(&str, &str), String> {
    if word == "-" {
        return Err("`-` reads all arguments from stdin; it cannot be combined with others".into());
    }
    let word = word.to_str().ok_or_else(|| format!("not UTF-8: `{}`", short(&word.display())))?;
    word.split_once('=').ok_or_else(|| format!("`{}` is not of the form key=value", short(&word)))
}

/// The value that comes from stdin. There is one at most.
struct Stdin {
    longest: u64,
    is_taken: bool,
}

impl Stdin {
    fn or(&mut self, key: &str, value: &str) -> Result<String, String> {
        if value != "-" {
            return Ok(value.into());
        }
        if std::mem::replace(&mut self.is_taken, true) {
            return Err(format!("`{key}` cannot be read from stdin: another value already is"));
        }
        let bytes = stdin(self.longest)?;
        String::from_utf8(bytes).map_err(|_| format!("`{key}` from stdin is not UTF-8"))
    }
}

fn stdin(longest: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let taken = std::io::stdin().lock().take(longest + 1).read_to_end(&mut bytes);
    taken.map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > longest {
        return Err(format!("stdin has more than {longest} bytes; raise --max-size"));
    }
    Ok(bytes)
}

/// Adds a value. A key may be repeated only for a list of texts.
fn add(arguments: &mut Map<String, Value>, key: &str, value: Given) -> Result<(), String> {
    match (arguments.get_mut(key), value) {
        (None, Given::One(value) | Given::All(value)) => {
            arguments.insert(key.into(), value);
        }
        (None, Given::Item(item)) => {
            arguments.insert(key.into(), vec![item].into());
        }
        (Some(Value::Array(items)), Given::Item(item)) => items.push(item),
        (Some(_), _) => return Err(format!("`{key}` is given twice")),
    }
    Ok(())
}

enum Given {
    One(Value),
    /// A whole list.
    All(Value),
    /// An item of a list.
    Item(Value),
}

/// Parses a value by its type in the tool's schema. An unknown key is left to the tool, whose error names the key that
/// may be meant.
fn parse(key: &str, value: &str, property: &Value) -> Result<Given, String> {
    let json = || serde_json::from_str::<Value>(value);
    let wrong = |wanted: &str| format!("`{key}` must be {wanted}, not `{}`", short(&value));
    match property["type"].as_str() {
        Some("integer") => json().ok().filter(Value::is_number).ok_or_else(|| wrong("an integer")),
        Some("number") => json().ok().filter(Value::is_number).ok_or_else(|| wrong("a number")),
        Some("boolean") => {
            json().ok().filter(Value::is_boolean).ok_or_else(|| wrong("`true` or `false`"))
        }
        Some("array") if property["items"]["type"] == "string" && !value.starts_with('[') => {
            return Ok(Given::Item(value.into()));
        }
        Some("array") => {
            let wrong = |reason| wrong(&format!("a JSON array ({reason})"));
            return match in_process::value(value.as_bytes()) {
                Ok(list @ Value::Array(_)) => Ok(Given::All(list)),
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
    .map(Given::One)
}

/// Returns the beginning of a value, so that errors do not repeat large contents.
fn short(text: &impl ToString) -> String {
    let text = text.to_string();
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
