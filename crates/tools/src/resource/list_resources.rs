//! `resources/list`: all files below the folder, a page at a time.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use files::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{folder, uri};
use crate::store_error::resource_listing_failure;
use crate::{
    ArgumentError, Context, Effect, Failure, FailureKind, Limits, Tool, ToolOutput, iso8601,
};

/// Files on a page.
const PAGE: usize = 100;

/// List the text files below the folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListResources {
    /// Where the page before ended; nothing to begin
    cursor: Option<String>,
}

/// A page of the list.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// Sorted by the bytes of their names.
    pub files: Vec<Row>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    pub uri: String,
    /// The path below the folder.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of last change, ISO-8601 in UTC.
    pub modified: String,
}

impl Tool for ListResources {
    const NAME: &'static str = "resources/list";
    const TITLE: &'static str = "List resources";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Resources;

    fn check(&self) -> Vec<ArgumentError> {
        let is_broken = self.cursor.as_deref().is_some_and(|cursor| decode(cursor).is_none());
        let error = || {
            ArgumentError::new(
                "Invalid cursor",
                "pass the cursor of the previous page, or none for the first page",
            )
        };
        is_broken.then(error).into_iter().collect()
    }

    fn refused(_: &str, error: &StoreError, limits: &Limits) -> Failure {
        resource_listing_failure(error, limits)
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let page = page(self.cursor.as_deref(), cx)
            .map_err(|error| Self::refused("", &error, cx.limits))?;
        match serde_json::to_value(page) {
            Ok(Value::Object(data)) => Ok(ToolOutput { data: Some(data), ..ToolOutput::default() }),
            _ => Err(Failure::new(FailureKind::Internal, "Internal error")),
        }
    }
}

fn page(cursor: Option<&str>, cx: &Context) -> Result<Page, StoreError> {
    let mut page = Page::default();
    let Some(folder) = folder(cx.root) else { return Ok(page) };
    let after = cursor.and_then(decode).unwrap_or_default();
    cx.store.walk(&after, cx.call, &mut |entry| {
        let Some(name) = entry.name.to_str() else { return ControlFlow::Continue(()) };
        let path = format!("{folder}/{name}");
        // Skips a file that could not be read, for instance because its path is too long.
        if cx.root.absolute(&path).is_err() {
            return ControlFlow::Continue(());
        }
        if page.files.len() == PAGE {
            page.next = page.files.last().map(|row| encode(&row.name));
            return ControlFlow::Break(());
        }
        page.files.push(Row {
            uri: uri::of(&path),
            name: name.to_owned(),
            size: entry.size,
            modified: iso8601::seconds(entry.modified),
        });
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

/// Returns the cursor: the name that a page ended with. The server need not remember it, and the next page is what
/// comes after.
fn encode(name: &str) -> String {
    name.bytes().fold(String::with_capacity(2 * name.len()), |mut cursor, byte| {
        let _ = write!(cursor, "{byte:02x}");
        cursor
    })
}

fn decode(cursor: &str) -> Option<String> {
    let is_hex = cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    if cursor.is_empty() || !is_hex {
        return None;
    }
    let (pairs, []) = cursor.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    String::from_utf8(pairs.iter().map(byte).collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_where_a_page_ended() {
        assert_eq!(encode("a/b"), "612f62");
        for name in ["a", "ä/ß.txt", "\u{10ffff}"] {
            assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        }
        for broken in ["", "6", "612", "6g", "+1", "é1", " 61", "ff", "c3", "61\0"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
