//! Helpers that read untrusted JSON and shorten texts.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

/// Limit of the characters of a title.
const TITLE_CHARS_MAX: usize = 120;

/// Limit of the bytes of a command's output that are shown as text.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// Returns a string member that is not empty.
pub fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str().filter(|text| !text.is_empty())
}

/// Returns a list member, or an empty list.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Joins a text to one line that is short enough for a title.
pub fn one_line(text: &str) -> String {
    let mut words = String::new();
    // These words suffice to see that it is too long; the rest may be megabytes.
    for word in text.split_whitespace().take(TITLE_CHARS_MAX + 1) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().take(TITLE_CHARS_MAX + 1));
    }
    match words.char_indices().nth(TITLE_CHARS_MAX) {
        Some(_) => words.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect(),
        None => words,
    }
}

/// Returns a code block with a fence that the text cannot close.
pub fn fenced(text: &str) -> String {
    let longest = text.split(|other| other != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{newline}{fence}")
}

/// Cuts the middle of a long text and says how much was left out.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= OUTPUT_BYTES_MAX {
        return text.into();
    }
    let head = &text[..text.floor_char_boundary(OUTPUT_BYTES_MAX / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - OUTPUT_BYTES_MAX / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}").into()
}

/// Returns the absolute path, as editors require.
pub fn absolute(path: &str, cwd: &Path) -> String {
    cwd.join(path).to_string_lossy().into_owned()
}

/// Returns the path relative to the session's folder, for people.
pub fn relative<'a>(path: &'a str, cwd: &Path) -> Cow<'a, str> {
    match Path::new(path).strip_prefix(cwd) {
        Ok(inside) if inside != Path::new("") => inside.to_string_lossy(),
        _ => path.into(),
    }
}

/// Returns a text block of a tool call.
pub fn text_content(text: impl Into<String>) -> Value {
    let text: String = text.into();
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// Returns a location of a tool call.
pub fn location(path: &str, line: Option<u32>) -> Value {
    match line {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({"path": path}),
    }
}

/// Removes the null members of an object.
pub fn present(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}
