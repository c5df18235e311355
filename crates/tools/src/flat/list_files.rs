//! `list_files`: what the folder holds.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use files::{DirPath, FilePath, PathError, Root, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Context, Dialect, Effect, Failure, Kind, Limits, Reply, Tool, iso8601, schema};

/// List the text files of the folder: name, time of last change, number of lines (-1: too large or not text). No hidden files, no subfolders.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListFiles {}

/// What `list_files` answers.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Answer {
    /// Sorted by name.
    files: Vec<Row>,
    /// Number of files listed.
    total_count: usize,
    /// The folder.
    directory: String,
    /// Files left out because their names hold other characters than letters, digits, `.`, `_` and `-`.
    skipped: usize,
    /// Set instead of everything else when the call failed.
    error: crate::answer::ErrorShape,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Row {
    /// File name.
    pub name: String,
    /// Time of last change, ISO-8601 in UTC.
    pub modified: String,
    /// Number of lines, -1 if unable to count.
    pub lines: i64,
}

pub(super) struct Listing {
    pub rows: Vec<Row>,
    pub skipped: usize,
}

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const TITLE: &'static str = "List files";
    const EFFECT: Effect = Effect::Reads;
    const DIALECT: Dialect = Dialect::Flat;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<Answer>())
    }

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        root.flat_name(target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits) -> Failure {
        super::refused(target, error, limits)
    }

    fn run(self, cx: &Context) -> Result<Reply, Failure> {
        let Listing { rows, skipped } = list(cx)?;
        let mut text = String::from("Files in directory:\n\n");
        for Row { name, modified, lines } in &rows {
            let _ = writeln!(text, "name: {name}, modified: {modified}, lines: {lines}");
        }
        let gap = if rows.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}Total files: {}", rows.len());
        let mut blocks = vec![text.into()];
        if skipped > 0 {
            let note = format!(
                "{skipped} more not listed: their names hold other characters than letters, digits, `.`, `_` and `-`"
            );
            blocks.push(note.into());
        }
        let mut data = data(&rows, cx);
        data.insert("skipped".into(), skipped.into());
        Ok(Reply { blocks, data: Some(data), hash: None, meta: None })
    }
}

pub(super) fn data(rows: &[Row], cx: &Context) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("files".into(), json!(rows));
    data.insert("total_count".into(), rows.len().into());
    data.insert("directory".into(), cx.root.path().to_string_lossy().into());
    data
}

pub(super) fn list(cx: &Context) -> Result<Listing, Failure> {
    let mut entries = Vec::new();
    let mut skipped = 0;
    let outcome = cx.store.list(&DirPath::root(), cx.call, &mut |entry| {
        let name = entry.name.as_encoded_bytes();
        if name.starts_with(b".") {
            return ControlFlow::Continue(());
        }
        match entry.name.to_str().and_then(|name| cx.root.flat_name(name).ok()) {
            Some(path) => entries.push((path, entry)),
            None => skipped += 1,
        }
        ControlFlow::Continue(())
    });
    outcome.map_err(|error| refused(&error, cx))?;
    entries.sort_unstable_by(|(_, one), (_, other)| one.name.cmp(&other.name));

    let mut rows = Vec::with_capacity(entries.len());
    for (path, entry) in entries {
        cx.call.check().map_err(|error| refused(&error, cx))?;
        let lines = cx.line_counts.count(cx.store, &path, &entry, cx.call);
        let lines = lines.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1);
        let name = entry.name.to_string_lossy().into_owned();
        rows.push(Row { name, modified: iso8601::seconds(entry.modified), lines });
    }
    Ok(Listing { rows, skipped })
}

fn refused(error: &StoreError, cx: &Context) -> Failure {
    match error {
        StoreError::Denied { .. } | StoreError::NoFolder => Failure {
            message: "Cannot access working directory".into(),
            ..super::refused("", error, cx.limits)
        },
        StoreError::TimedOut | StoreError::Cancelled => super::refused("", error, cx.limits),
        _ => Failure::new(
            Kind::from(error),
            format!("Filesystem error during directory listing: {error}"),
        ),
    }
}
