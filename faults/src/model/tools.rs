//! What each tool answers, and what it does to the files: as the contracts and the page on behaviour have it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::lines::{self, Misplaced, Op};
use super::strings;
use super::world::{Kind, MOST, NotText, World, date, decode, hash};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    ListFiles,
    ReadFile,
    EditFile,
    PlainListFiles,
    PlainReadFile,
    PlainEditFile,
    ReadTextFile,
    WriteTextFile,
    MultiEditTextFile,
    AiEditCode,
    SearchFiles,
    AiGetCodeContext,
    ListResources,
    ReadResource,
}

impl Tool {
    /// As callers name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ListFiles | Self::PlainListFiles => "list_files",
            Self::ReadFile | Self::PlainReadFile => "read_file",
            Self::EditFile | Self::PlainEditFile => "edit_file",
            Self::ReadTextFile => "read_text_file",
            Self::WriteTextFile => "write_text_file",
            Self::MultiEditTextFile => "multi_edit_text_file",
            Self::AiEditCode => "ai_edit_code",
            Self::SearchFiles => "search_files",
            Self::AiGetCodeContext => "ai_get_code_context",
            Self::ListResources => "resources/list",
            Self::ReadResource => "resources/read",
        }
    }

    pub fn is_plain(self) -> bool {
        matches!(self, Self::PlainListFiles | Self::PlainReadFile | Self::PlainEditFile)
    }

    pub fn is_resource(self) -> bool {
        matches!(self, Self::ListResources | Self::ReadResource)
    }

    pub fn is_for_code(self) -> bool {
        matches!(self, Self::AiEditCode | Self::SearchFiles | Self::AiGetCodeContext)
    }

    /// What stands before a refusal's words where they are a text.
    pub fn before_refusals(self) -> &'static str {
        let is_flat = matches!(self, Self::ListFiles | Self::ReadFile | Self::EditFile);
        if is_flat || self.is_plain() { "Error: " } else { "" }
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    pub tool: Tool,
    pub arguments: Value,
    /// The file it is about, from the root; empty if it is about all of them.
    pub path: String,
    /// Over HTTP, of a plain method.
    pub if_match: Option<String>,
    /// What its arguments are refused with, whatever the files are.
    pub faulty: Option<Refusal>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i64,
    /// `None`: in whatever words.
    pub message: Option<String>,
}

/// What must be in an answer.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The first text, where its words are known; but for warnings at its end, and where it is the diff.
    pub text: Option<String>,
    /// The second one, but for notes or a diff at its end, and where it is the diff.
    pub second: Option<String>,
    /// `structuredContent`, or the object of a plain method; but for its diff.
    pub data: Option<Value>,
    /// What `_meta` has, at least.
    pub meta: Option<Value>,
    pub hash: Option<String>,
    /// The diff leads from one to the other.
    pub diff: Option<(String, String)>,
    /// Any answer will do that says nothing wrong about the files.
    pub is_context: bool,
}

pub type Expected = Result<Done, Refusal>;

fn refused(code: i64, message: impl Into<String>) -> Refusal {
    Refusal { code, message: Some(message.into()) }
}

/// Whose words a refusal is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Flat,
    Text,
    Code,
}

const NOT_FOUND: i64 = -32001;
const NOT_A_FILE: i64 = -32003;
const NOT_TEXT: i64 = -32004;
const STALE: i64 = -32013;
pub const INVALID: i64 = -32602;

/// What the tool answers now, and does to the world.
pub fn call(world: &mut World, call: &Call) -> Expected {
    if let Some(refusal) = &call.faulty {
        return Err(refusal.clone());
    }
    match call.tool {
        Tool::ListFiles | Tool::PlainListFiles => Ok(list_files(world, call.tool)),
        Tool::ReadFile | Tool::PlainReadFile => read_file(world, call),
        Tool::EditFile | Tool::PlainEditFile => edit_file(world, call),
        Tool::ReadTextFile => read_text_file(world, call),
        Tool::WriteTextFile => write_text_file(world, call),
        Tool::MultiEditTextFile => multi_edit(world, call),
        Tool::AiEditCode => ai_edit_code(world, call),
        Tool::SearchFiles => Ok(search(world, call)),
        Tool::AiGetCodeContext => context(world, call),
        Tool::ListResources => Ok(list_resources(world)),
        Tool::ReadResource => read_resource(world, call),
    }
}

fn number(value: &Value) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole")]
    let whole = |float: f64| float as usize;
    value.as_f64().map(whole)
}

/// Megabytes with two decimals at most, rounded up.
fn megabytes(bytes: usize) -> String {
    let hundredths = (bytes * 100).div_ceil(1 << 20);
    let shown = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How the tool's caller named the file.
fn named(world: &World, call: &Call, dialect: Dialect) -> String {
    match dialect {
        Dialect::Flat | Dialect::Code => call.path.clone(),
        Dialect::Text => world.absolute(&call.path),
    }
}

fn too_large(at: &str, size: usize, dialect: Dialect) -> Refusal {
    let size = format!("File size {}MB exceeds maximum limit 1MB", megabytes(size));
    match dialect {
        Dialect::Flat => refused(NOT_FOUND, size),
        Dialect::Text => refused(NOT_FOUND, format!("{size}: {at}")),
        Dialect::Code => refused(INVALID, format!("{size}: {at}")),
    }
}

fn not_found(at: &str, dialect: Dialect) -> Refusal {
    match dialect {
        Dialect::Flat => refused(NOT_FOUND, format!("File '{at}' not found")),
        Dialect::Text | Dialect::Code => refused(NOT_FOUND, format!("File not found: {at}")),
    }
}

fn stale(at: &str) -> Refusal {
    refused(STALE, format!("File changed since it was read: {at}"))
}

/// The bytes of a file, `None` if there is none, or why they cannot be had.
fn bytes(world: &World, call: &Call, dialect: Dialect) -> Result<Option<Vec<u8>>, Refusal> {
    let at = named(world, call, dialect);
    match (world.kind(&call.path), dialect) {
        (Kind::Folder, Dialect::Flat) => {
            Err(refused(NOT_A_FILE, format!("'{at}' is not a regular file")))
        }
        (Kind::Folder, Dialect::Text) => Err(refused(NOT_A_FILE, format!("{at} is not a file"))),
        (Kind::Folder, Dialect::Code) => Err(refused(INVALID, format!("{at} is not a file"))),
        (Kind::NoFolder, _) => Err(not_found(&at, dialect)),
        (Kind::Nothing, _) => Ok(None),
        (Kind::File, _) => {
            let bytes = world.files[&call.path].clone();
            if bytes.len() > MOST {
                Err(too_large(&at, bytes.len(), dialect))
            } else {
                Ok(Some(bytes))
            }
        }
    }
}

/// The text of a file, with its mark apart.
fn text(
    bytes: &[u8],
    at: &str,
    dialect: Dialect,
    doing: &str,
) -> Result<(&'static str, String), Refusal> {
    decode(bytes).map(|text| (text.mark, text.body.to_owned())).map_err(|reason| match dialect {
        Dialect::Flat if reason == NotText::Nul => refused(NOT_TEXT, "Cannot read binary file"),
        Dialect::Flat => refused(NOT_TEXT, "File contains invalid UTF-8 encoding"),
        Dialect::Text => refused(NOT_TEXT, format!("Cannot {doing} binary file: {at}")),
        Dialect::Code => refused(INVALID, format!("Cannot {doing} binary file: {at}")),
    })
}

fn is_flat(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn list_files(world: &World, tool: Tool) -> Done {
    let in_root = world.files.iter().filter(|(path, _)| !path.contains('/'));
    let visible: Vec<_> = in_root.filter(|(path, _)| !path.starts_with('.')).collect();
    let (listed, skipped): (Vec<_>, Vec<_>) =
        visible.into_iter().partition(|(path, _)| is_flat(path));
    let mut text = String::from("Files in directory:\n\n");
    let mut rows = Vec::new();
    for (name, bytes) in &listed {
        let count = match decode(bytes) {
            Ok(text) if bytes.len() <= MOST => {
                i64::try_from(lines::lines(text.body).len()).unwrap()
            }
            _ => -1,
        };
        let modified = date(world.modified(name));
        let _ = writeln!(text, "name: {name}, modified: {modified}, lines: {count}");
        rows.push(json!({ "name": name, "modified": modified, "lines": count }));
    }
    let gap = if listed.is_empty() { "" } else { "\n" };
    let _ = write!(text, "{gap}Total files: {}", listed.len());
    let mut data = json!({ "files": rows, "total_count": listed.len(), "directory": world.absolute("").trim_end_matches('/') });
    if tool == Tool::PlainListFiles {
        return Done { data: Some(data), ..Done::default() };
    }
    data["skipped"] = skipped.len().into();
    let second = (!skipped.is_empty()).then(|| {
        let why = "their names contain characters other than letters, digits, `.`, `_` and `-`";
        format!("{} more not listed: {why}", skipped.len())
    });
    Done { text: Some(text), second, data: Some(data), ..Done::default() }
}

fn read_file(world: &World, call: &Call) -> Expected {
    let (at, base) = (&call.path, usize::from(call.tool.is_plain()));
    let bytes = bytes(world, call, Dialect::Flat)?.ok_or_else(|| not_found(at, Dialect::Flat))?;
    let (_, body) = text(&bytes, at, Dialect::Flat, "read")?;
    let (all, hash) = (lines::lines(&body), hash(&bytes));
    let total = all.len();
    let [start, end] = ["start_line", "end_line"].map(|name| number(&call.arguments[name]));
    let is_whole = start.is_none() && (end.is_none() || total == 0);
    let first = start.map_or(0, |start| start - base);
    let last = end.map_or(usize::MAX, |end| end - base).min(total.saturating_sub(1));
    if !is_whole && first >= total {
        let message = format!("Start line {} exceeds file length {total}", first + base);
        return Err(refused(INVALID, message));
    }
    let part = if total == 0 { &[] } else { &all[first..=last] };
    if call.tool == Tool::PlainReadFile {
        let mut data = json!({ "content": lines::shown(part), "total_lines": total });
        for (name, line) in [("start_line", start), ("end_line", end)] {
            if let Some(line) = line {
                data["range_requested"][name] = line.into();
            }
        }
        return Ok(Done { data: Some(data), hash: Some(hash), ..Done::default() });
    }
    let range = match (is_whole, total) {
        (true, _) => format!("({total} lines)"),
        (false, _) => format!("(lines {first}-{last} of {total} total)"),
    };
    let content = match call.arguments["line_numbers"].as_bool() {
        Some(true) => {
            let numbered = part.iter().enumerate();
            let numbered =
                numbered.map(|(index, line)| format!("{}\t{}", first + index, line.text));
            numbered.collect::<Vec<_>>().join("\n")
        }
        _ => lines::shown(part),
    };
    let next = if last + 1 < total { format!(", next_line {}", last + 1) } else { String::new() };
    let summary = match total {
        0 => format!("0 lines, hash {hash}"),
        _ => format!("lines {first}-{last} of {total}{next}, hash {hash}"),
    };
    let text = Some(format!("File: {at} {range}\n\n{content}"));
    Ok(Done { text, second: Some(summary), ..Done::default() })
}

/// What an answer says of a file that was written, or would be.
struct Outcome {
    before: Option<Vec<u8>>,
    after: Vec<u8>,
    dry_run: bool,
}

impl Outcome {
    fn changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }

    /// The hash of the file as it is after the call.
    fn hash(&self) -> Option<String> {
        if self.dry_run { self.before.as_deref().map(hash) } else { Some(hash(&self.after)) }
    }

    fn words(&self, done: Option<String>) -> String {
        let did = match (self.dry_run, self.changed()) {
            (false, true) => done,
            (false, false) => Some("nothing changed: the file already has this text".into()),
            (true, true) => Some(format!(
                "dry run: nothing was written; the hash would be {}",
                hash(&self.after)
            )),
            (true, false) => Some("dry run: nothing would change".into()),
        };
        let hash = self.hash().map(|hash| format!("hash {hash}"));
        did.into_iter().chain(hash).collect::<Vec<_>>().join("\n")
    }

    /// Only the hashes, each in its line.
    fn hash_words(&self) -> String {
        let would_be = (self.dry_run && self.changed())
            .then(|| format!("the hash would be {}\n", hash(&self.after)));
        let hash = self.hash().unwrap_or_default();
        format!("{}hash {hash}", would_be.unwrap_or_default())
    }

    fn add_to(&self, data: &mut Value) {
        if let Some(hash) = self.hash() {
            data["hash"] = hash.into();
        }
        data["changed"] = self.changed().into();
        if self.dry_run {
            data["dry_run"] = true.into();
            data["hash_would_be"] = hash(&self.after).into();
        }
    }

    fn diff(&self) -> Option<(String, String)> {
        let before = self.before.clone().unwrap_or_default();
        decode(&before).ok()?;
        Some((String::from_utf8(before).ok()?, String::from_utf8(self.after.clone()).ok()?))
    }

    fn apply(&self, world: &mut World, path: &str) {
        if !self.dry_run {
            world.files.insert(path.to_owned(), self.after.clone());
        }
    }
}

fn is_dry(call: &Call) -> bool {
    call.arguments["dry_run"] == true
}

/// Whether the caller expects another file than this one.
fn is_stale(call: &Call, bytes: Option<&Vec<u8>>) -> bool {
    let expected = call.if_match.as_deref().or(call.arguments["expected_hash"].as_str());
    expected.is_some_and(|expected| Some(expected.to_lowercase()) != bytes.map(|bytes| hash(bytes)))
}

fn edit_file(world: &mut World, call: &Call) -> Expected {
    let (at, base) = (&call.path, usize::from(call.tool.is_plain()));
    let arguments = &call.arguments;
    let old = bytes(world, call, Dialect::Flat)?;
    let edits = arguments["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
    let append = arguments["append"].as_str();
    let create = arguments["create_if_missing"].as_bool();
    // Nothing can be added to a file, and does not make one.
    let makes_none = old.is_none() && create.is_none() && !call.tool.is_plain();
    let appends = append.is_some_and(|text| !(text.is_empty() && makes_none));
    let is_empty_handed = edits.is_empty() && !appends;
    if is_empty_handed && !(old.is_none() && create == Some(true)) {
        return Err(refused(INVALID, "No edits or append content provided"));
    }
    if is_stale(call, old.as_ref()) {
        return Err(stale(at));
    }
    if old.is_none() && !create.unwrap_or(!call.tool.is_plain()) {
        return Err(not_found(at, Dialect::Flat));
    }
    let was = old.clone().unwrap_or_default();
    let (mark, body) = text(&was, at, Dialect::Flat, "read")?;
    let ops: Vec<_> = edits.iter().map(|edit| line_edit(edit, base)).collect();
    let edited = lines::edit(&body, &ops, append.unwrap_or_default())
        .map_err(|misplaced| misfit(&misplaced, base))?;
    let after = [mark, &edited.text].concat().into_bytes();
    if after.len() > MOST {
        return Err(too_large(at, after.len(), Dialect::Flat));
    }
    let is_created = old.is_none();
    let outcome = Outcome { before: old, after, dry_run: is_dry(call) };
    outcome.apply(world, at);
    let total = lines::lines(&edited.text).len();
    let mut data = json!({
        "success": true,
        "lines_modified": edited.modified,
        "file_created": is_created,
        "new_total_lines": total,
    });
    if call.tool == Tool::PlainEditFile {
        return Ok(Done { data: Some(data), hash: outcome.hash(), ..Done::default() });
    }
    outcome.add_to(&mut data);
    let text = format!(
        "File edited successfully: {at}\nLines modified: {}\nTotal lines: {total}\nFile created: {is_created}",
        edited.modified
    );
    Ok(Done {
        text: Some(text),
        second: Some(outcome.words(None)),
        data: Some(data),
        diff: outcome.diff(),
        ..Done::default()
    })
}

fn line_edit(edit: &Value, base: usize) -> (usize, Op) {
    let content = || edit["content"].as_str().unwrap_or_default().to_owned();
    let op = match edit["operation"].as_str() {
        Some("insert") => Op::Insert(content()),
        Some("replace") => Op::Replace(content()),
        _ => Op::Delete,
    };
    (number(&edit["line"]).unwrap_or_default() - base, op)
}

fn misfit(misplaced: &Misplaced, base: usize) -> Refusal {
    match misplaced {
        Misplaced::OutOfRange { line, op } => {
            refused(INVALID, format!("Line {} out of range for {op} operation", line + base))
        }
        Misplaced::Conflict { edit, prior, line } => {
            let line = line + base;
            let message =
                format!("Edit {edit} conflicts with edit {prior}: both target line {line}");
            refused(-32012, message)
        }
    }
}

fn read_text_file(world: &World, call: &Call) -> Expected {
    let at = world.absolute(&call.path);
    let bytes = bytes(world, call, Dialect::Text)?.ok_or_else(|| not_found(&at, Dialect::Text))?;
    let (_, body) = text(&bytes, &at, Dialect::Text, "read")?;
    let (all, hash) = (lines::lines(&body), hash(&bytes));
    let total = all.len();
    let first = number(&call.arguments["line"]).unwrap_or(1) - 1;
    let limit = number(&call.arguments["limit"]).unwrap_or(usize::MAX);
    let part = &all[first.min(total)..first.saturating_add(limit).min(total).max(first.min(total))];
    let end = first + part.len();
    let has_more = !part.is_empty() && end < total;
    let mut meta = json!({
        "total_lines": total,
        "returned_lines": part.len(),
        "has_more": has_more,
        "hash": hash,
    });
    let mut next = String::new();
    if has_more {
        meta["next_line"] = (end + 1).into();
        next = format!(", next_line {}", end + 1);
    }
    let summary = match (part.len(), total) {
        (0, 0) => format!("0 lines, hash {hash}"),
        (0, _) => {
            format!("no lines from {} on: the file has {total}, hash {hash}", first + 1)
        }
        _ => format!("lines {}-{end} of {total}{next}, hash {hash}", first + 1),
    };
    let content = match call.arguments["line_numbers"].as_bool() {
        Some(true) => {
            let numbered = part
                .iter()
                .enumerate()
                .map(|(index, line)| format!("{}\t{}{}", first + index + 1, line.text, line.end));
            numbered.collect()
        }
        _ => lines::joined(part),
    };
    Ok(Done { text: Some(content), second: Some(summary), meta: Some(meta), ..Done::default() })
}

fn write_text_file(world: &mut World, call: &Call) -> Expected {
    let at = world.absolute(&call.path);
    let parent = || at.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    let makes_folders = call.arguments["create_dirs"] == true;
    let no_parent = || refused(NOT_FOUND, format!("Parent directory not found: {}", parent()));
    let old = match world.kind(&call.path) {
        Kind::Folder => return Err(refused(NOT_A_FILE, format!("{at} is a directory"))),
        Kind::NoFolder if !makes_folders => return Err(no_parent()),
        Kind::NoFolder | Kind::Nothing => None,
        Kind::File => bytes(world, call, Dialect::Text)?,
    };
    if is_stale(call, old.as_ref()) {
        return Err(stale(&at));
    }
    if !world.is_way_free(&call.path) {
        return Err(no_parent());
    }
    let content = call.arguments["content"].as_str().unwrap_or_default().as_bytes();
    let mark = "\u{feff}".as_bytes();
    let had_mark = old.as_ref().is_some_and(|old| old.starts_with(mark));
    let keeps_mark = had_mark && !content.starts_with(mark);
    let after = if keeps_mark { [mark, content].concat() } else { content.to_vec() };
    if after.len() > MOST {
        return Err(too_large(&at, after.len(), Dialect::Text));
    }
    let is_created = old.is_none();
    let size = after.len();
    let outcome = Outcome { before: old, after, dry_run: is_dry(call) };
    outcome.apply(world, &call.path);
    if !outcome.dry_run {
        world.add_folders(&call.path);
    }
    let bytes = if size == 1 { "byte" } else { "bytes" };
    let text = match (outcome.changed(), outcome.dry_run, is_created) {
        (false, ..) => format!("{at} already holds these {size} {bytes}"),
        (_, true, _) => format!("Would write {size} {bytes} to {at}"),
        (_, false, true) => format!("Wrote {size} {bytes} to {at}, a new file"),
        (_, false, false) => format!("Wrote {size} {bytes} to {at}"),
    };
    let mut words = outcome.words(None);
    let mut data = json!({ "success": true, "bytes_written": size, "created": is_created });
    if keeps_mark {
        data["bom_kept"] = true.into();
        words.push_str("\nthe file's byte order mark was kept");
    }
    outcome.add_to(&mut data);
    let diff = if outcome.dry_run { outcome.diff() } else { None };
    let meta = outcome.hash().map(|hash| json!({ "hash": hash }));
    Ok(Done {
        text: Some(text),
        second: Some(words),
        data: Some(data),
        meta,
        diff,
        ..Done::default()
    })
}

fn multi_edit(world: &mut World, call: &Call) -> Expected {
    let at = world.absolute(&call.path);
    let old = bytes(world, call, Dialect::Text)?.ok_or_else(|| not_found(&at, Dialect::Text))?;
    if is_stale(call, Some(&old)) {
        return Err(stale(&at));
    }
    let (mark, body) = text(&old, &at, Dialect::Text, "edit")?;
    let edits: Vec<_> =
        call.arguments["edits"].as_array().into_iter().flatten().map(string_edit).collect();
    let edited = strings::edit(&body, &edits, MOST - mark.len()).map_err(|why| {
        let shown = |edit: usize| &edits[edit].old;
        match why {
            strings::Refused::Empty { edit } => {
                refused(-32600, format!("Edit {edit}: old_string cannot be empty"))
            }
            strings::Refused::Missing { edit } => {
                refused(-32010, format!("Edit {edit}: String not found: {}", shown(edit)))
            }
            strings::Refused::Several { edit, count } => refused(
                -32011,
                format!("Edit {edit}: String appears {count} times: {}", shown(edit)),
            ),
            strings::Refused::Conflict { edit, prior } => {
                refused(-32012, format!("Edit {edit} conflicts with edit {prior}"))
            }
            strings::Refused::TooLarge { size } => too_large(&at, size + mark.len(), Dialect::Text),
        }
    })?;
    let after = [mark, &edited.text].concat().into_bytes();
    let outcome = Outcome { before: Some(old), after, dry_run: is_dry(call) };
    outcome.apply(world, &call.path);
    let mut data = json!({
        "success": true,
        "applied_count": edits.len(),
        "line_ranges": line_ranges(&edited, edits.len()),
    });
    if edited.restyled {
        data["eol_adjusted"] = true.into();
    }
    outcome.add_to(&mut data);
    let plural = if edits.len() == 1 { "" } else { "s" };
    let words = outcome.words(Some(format!("{} edit{plural} applied", edits.len())));
    let meta = outcome.hash().map(|hash| json!({ "hash": hash }));
    Ok(Done {
        second: Some(words),
        data: Some(data),
        meta,
        diff: outcome.diff(),
        ..Done::default()
    })
}

fn string_edit(edit: &Value) -> strings::Edit {
    let string = |name: &str| edit[name].as_str().unwrap_or_default().to_owned();
    strings::Edit {
        old: string("old_string"),
        new: string("new_string"),
        all: edit["replace_all"] == true,
        count: number(&edit["expected_count"]),
        near: number(&edit["near_line"]).map(|line| line - 1),
    }
}

/// Places of an edit that are told.
const PLACES: usize = 100;

/// Of each place; where it is in the end only if there was no other edit that could have moved it.
fn line_ranges(edited: &strings::Edited, edits: usize) -> Value {
    let mut ranges = Vec::new();
    for (index, places) in edited.places.iter().enumerate() {
        for (place, (start, end)) in places.iter().take(PLACES).enumerate() {
            let mut range = Map::new();
            range.insert("edit_index".into(), index.into());
            range.insert("start".into(), (start + 1).into());
            range.insert("end".into(), (end + 1).into());
            if edits == 1 {
                let (start, end) = edited.last_places[place];
                range.insert("final_start".into(), (start + 1).into());
                range.insert("final_end".into(), (end + 1).into());
            }
            ranges.push(Value::Object(range));
        }
    }
    ranges.into()
}

fn ai_edit_code(world: &mut World, call: &Call) -> Expected {
    let (at, arguments) = (&call.path, &call.arguments);
    let old = bytes(world, call, Dialect::Code)?.ok_or_else(|| not_found(at, Dialect::Code))?;
    let (mark, body) = text(&old, at, Dialect::Code, "edit")?;
    let all = lines::lines(&body);
    let total = all.len();
    let [start, end] = ["start_line", "end_line"].map(|name| number(&arguments[name]));
    let range = start.map(|start| (start - 1, end.unwrap_or(start)));
    if let Some(expected) = arguments["expected_hash"].as_str() {
        let part = range.and_then(|(first, end)| all.get(first..end));
        let of_part = part.map(|part| hash(lines::joined(part).as_bytes()));
        if expected != hash(&old) && of_part.as_deref() != Some(expected) {
            return Err(stale(at));
        }
    }
    let by_lines = if start.is_some() { "replace" } else { "insert" };
    let kind = arguments["edit_type"].as_str().unwrap_or(by_lines);
    let (first, end) = range.unwrap_or((total, total + 1));
    let code = arguments["code_block"].as_str().unwrap_or_default().to_owned();
    let out = |line: usize| {
        refused(INVALID, format!("Line {} out of range for {kind} operation", line + 1))
    };
    let edited = if kind == "insert" {
        if first > total {
            return Err(out(first));
        }
        lines::edit(&body, &[(first, Op::Insert(code))], "")
    } else {
        if let Some(line) = [first, end - 1].into_iter().find(|line| *line >= total) {
            return Err(out(line));
        }
        // Of several lines one is left, with the break of the last; that one is replaced.
        let mut rest = all.clone();
        rest[first] = lines::Line { text: "any".into(), end: all[end - 1].end };
        rest.drain(first + 1..end);
        let op = if kind == "delete" { Op::Delete } else { Op::Replace(code) };
        lines::edit(&lines::joined(&rest), &[(first, op)], "")
    };
    let edited = edited.map_err(|misplaced| misfit(&misplaced, 1))?;
    let after = [mark, &edited.text].concat().into_bytes();
    if after.len() > MOST {
        return Err(too_large(at, after.len(), Dialect::Code));
    }
    let outcome = Outcome { before: Some(old), after, dry_run: is_dry(call) };
    outcome.apply(world, at);
    let message = match (outcome.dry_run, outcome.changed()) {
        (false, true) => "File updated successfully.",
        (false, false) => "Nothing changed: the file already has this text.",
        (true, true) => "Dry run: nothing was written.",
        (true, false) => "Dry run: nothing would change.",
    };
    let mut data = json!({
        "status": "success", "file_path": at, "message": message, "generated_by": "agent",
    });
    outcome.add_to(&mut data);
    let text = Some(format!("{message}\n{at}\n{}", outcome.hash_words()));
    Ok(Done { text, data: Some(data), diff: outcome.diff(), ..Done::default() })
}

/// What is shown is the product's to choose; it must be true.
fn context(world: &World, call: &Call) -> Expected {
    if !call.path.is_empty() {
        let bytes = bytes(world, call, Dialect::Code)?;
        text(&bytes.unwrap_or_default(), &call.path, Dialect::Code, "read")?;
    }
    Ok(Done { is_context: true, ..Done::default() })
}

fn search(world: &World, call: &Call) -> Done {
    let arguments = &call.arguments;
    let pattern = arguments["pattern"].as_str().unwrap_or_default();
    let is_sensitive = match arguments["case"].as_str() {
        Some("sensitive") => true,
        Some("insensitive") => false,
        _ => pattern.chars().any(char::is_uppercase),
    };
    let folded = |text: &str| if is_sensitive { text.to_owned() } else { text.to_lowercase() };
    let pattern = folded(pattern);
    let within = arguments["path"].as_str().map_or(String::new(), |path| format!("{path}/"));
    let is_hidden = |path: &str| path.split('/').any(|name| name.starts_with('.'));
    let is_shown = arguments["show"] != "counts";
    let (mut files, mut matching, mut searched) = (Vec::new(), 0, 0);
    for (path, bytes) in &world.files {
        if !path.starts_with(&within) || is_hidden(path) || bytes.len() > MOST {
            continue;
        }
        // What has a NUL is no text, what has broken UTF-8 only in places.
        let Ok(text) = decode(bytes) else { continue };
        searched += 1;
        let lines = lines::lines(text.body);
        let is_match = |line: &lines::Line| folded(&line.text).contains(&pattern);
        let hits: Vec<_> = (0..lines.len()).filter(|index| is_match(&lines[*index])).collect();
        if hits.is_empty() {
            continue;
        }
        matching += hits.len();
        let mut file = json!({
            "path": path, "file_hash": hash(bytes), "matching_lines": hits.len(),
        });
        if is_shown {
            let rows = hits.iter().map(
                |&index| json!({ "line": index + 1, "text": lines[index].text, "matches": true }),
            );
            file["lines"] = rows.collect();
        }
        files.push(file);
    }
    let count = files.len();
    let data = json!({
        "files": files,
        "matching_lines": matching,
        "matching_files": count,
        "searched_files": searched,
    });
    Done { data: Some(data), ..Done::default() }
}

fn list_resources(world: &World) -> Done {
    let visible =
        world.files.iter().filter(|(path, _)| !path.split('/').any(|name| name.starts_with('.')));
    let rows = visible.map(|(path, bytes)| {
        json!({ "name": path, "size": bytes.len(), "modified": date(world.modified(path)) })
    });
    Done { data: Some(rows.collect()), ..Done::default() }
}

fn read_resource(world: &World, call: &Call) -> Expected {
    let at = world.absolute(&call.path);
    let missing = |refusal: Refusal| match &refusal.message {
        Some(message) if message.starts_with("File not found") => {
            Refusal { code: -32002, ..refusal }
        }
        _ => refusal,
    };
    let bytes = bytes(world, call, Dialect::Text)
        .and_then(|bytes| bytes.ok_or_else(|| not_found(&at, Dialect::Text)))
        .map_err(missing)?;
    let (_, body) = text(&bytes, &at, Dialect::Text, "read")?;
    Ok(Done { text: Some(body), ..Done::default() })
}
