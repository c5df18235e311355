//! `list_files`: the files of the folder.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::UNIX_EPOCH;

use files::{DirPath, Entry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::store_error::flat_listing_failure;
use crate::{Context, Effect, Failure, Tool, ToolOutput, iso8601, schema};

/// List the text files of the folder: name, time of last change, number of lines (-1: too large or not text). No hidden files, no subfolders.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListFiles {}

/// What `list_files` answers.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ListFilesAnswer {
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

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Row {
    /// File name.
    name: String,
    /// Time of last change, ISO-8601 in UTC.
    modified: String,
    /// Number of lines, -1 if unable to count.
    lines: i64,
}

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const TITLE: &'static str = "List files";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Flat;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<ListFilesAnswer>())
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let listing = list(cx)?;
        let mut text = String::with_capacity(64 + ROW * listing.files.len());
        text.push_str("Files in directory:\n\n");
        let mut object = ListingWriter::of(&listing);
        listing.show(|row| {
            let WrittenRow { name, modified, lines } = row;
            text.extend(["name: ", name, ", modified: ", modified, ", lines: ", lines, "\n"]);
            object.add(&row);
        });
        let gap = if listing.files.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}Total files: {}", listing.files.len());
        let mut blocks = vec![text.into()];
        let skipped = listing.skipped;
        if skipped > 0 {
            let note = format!(
                "{skipped} more not listed: their names contain characters other than letters, digits, `.`, `_` and `-`"
            );
            blocks.push(note.into());
        }
        let written = object.finish(&[
            ("total_count", listing.files.len().into()),
            ("directory", directory(cx)),
            ("skipped", skipped.into()),
        ]);
        Ok(ToolOutput { blocks, written: Some(written), ..ToolOutput::default() })
    }
}

/// Answers `list_files` as a plain method.
pub(super) fn plain(cx: &Context) -> Result<ToolOutput, Failure> {
    let listing = list(cx)?;
    let mut object = ListingWriter::of(&listing);
    listing.show(|row| object.add(&row));
    let written =
        object.finish(&[("total_count", listing.files.len().into()), ("directory", directory(cx))]);
    Ok(ToolOutput { written: Some(written), ..ToolOutput::default() })
}

fn directory(cx: &Context) -> Value {
    cx.root.path().to_string_lossy().into()
}

struct Listing {
    /// Sorted by name.
    files: Vec<Entry>,
    /// Number of lines of each file; `None` if they cannot be counted.
    lines: Vec<Option<usize>>,
    skipped: usize,
}

impl Listing {
    /// Calls `show` for each file, in order.
    fn show(&self, mut show: impl FnMut(WrittenRow)) {
        let (mut modified, mut second) = (String::new(), None);
        let mut lines = String::new();
        for (file, count) in self.files.iter().zip(&self.lines) {
            // Files are often made in the same second, so its text is kept.
            let time = file.modified.duration_since(UNIX_EPOCH).ok();
            let this_second = time.map(|time| time.as_secs());
            if second.is_none() || this_second != second {
                modified = iso8601::seconds(file.modified);
                second = this_second;
            }
            lines.clear();
            let _ = match count {
                Some(count) => write!(lines, "{count}"),
                None => write!(lines, "-1"),
            };
            let name = file.name.to_str().unwrap_or_default();
            show(WrittenRow { name, modified: &modified, lines: &lines });
        }
    }
}

/// A row in the form in which it is written.
struct WrittenRow<'a> {
    name: &'a str,
    modified: &'a str,
    lines: &'a str,
}

/// Approximate size of a row, in bytes.
const ROW: usize = 80;

/// The object of an answer, written as JSON from the start: as values each row would take a dozen allocations.
struct ListingWriter {
    json: String,
    is_first: bool,
}

impl ListingWriter {
    fn of(listing: &Listing) -> Self {
        let mut json = String::with_capacity(256 + ROW * listing.files.len());
        json.push_str("{\"files\":[");
        Self { json, is_first: true }
    }

    /// Appends a row. Nothing in a flat name, a time or a number needs escaping in JSON.
    fn add(&mut self, WrittenRow { name, modified, lines }: &WrittenRow) {
        let head = if self.is_first { "{\"name\":\"" } else { ",{\"name\":\"" };
        self.is_first = false;
        let (modified_is, lines_are) = ("\",\"modified\":\"", "\",\"lines\":");
        self.json.extend([head, name, modified_is, modified, lines_are, lines, "}"]);
    }

    fn finish(mut self, more: &[(&str, Value)]) -> String {
        self.json.push(']');
        for (name, value) in more {
            let _ = write!(self.json, ",\"{name}\":{value}");
        }
        self.json.push('}');
        self.json
    }
}

fn list(cx: &Context) -> Result<Listing, Failure> {
    let mut files = Vec::new();
    let mut skipped = 0;
    let outcome = cx.store.list(&DirPath::root(), cx.call, &mut |entry| {
        let is_hidden = entry.name.as_encoded_bytes().starts_with(b".");
        match entry.name.to_str() {
            _ if is_hidden => {}
            Some(name) if cx.root.accepts_flat_name(name) => files.push(entry),
            _ => skipped += 1,
        }
        ControlFlow::Continue(())
    });
    let failure = |error| flat_listing_failure(&error, cx.limits);
    outcome.map_err(failure)?;
    files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let lines = cx.line_counts.count(cx.store, &files, cx.call);
    cx.call.check().map_err(failure)?;
    Ok(Listing { files, lines, skipped })
}
