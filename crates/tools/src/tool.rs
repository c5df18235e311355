//! The trait `Tool`, the context that a tool is given, and the reply that it returns.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use files::{Call, FilePath, Hash, LineCounts, PathError, Root, Store, StoreError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use text::Text;

use crate::schema::{self, SchemaViolation};
use crate::{Dialect, Failure, FailureKind};

/// A family of tools: how it names its files and words its failures.
pub trait Toolset {
    /// The name by which a toolset is chosen. A tool is known by this name and its own.
    const NAME: &'static str;
    const DIALECT: Dialect;

    /// Returns the file that `target`, as given in the arguments, refers to.
    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError>;

    /// Makes the failure for an error of the store, in the toolset's words; `target` as given in the arguments,
    /// `effect` that of the tool.
    fn refused(target: &str, error: &StoreError, limits: &Limits, effect: Effect) -> Failure;
}

/// The arguments of one tool, ready to run.
///
/// The doc comment of the implementing struct is the description agents see.
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// Another name by which the tool can be called.
    const ALIAS: Option<&'static str> = None;
    /// The title that a person sees in a list of tools.
    const TITLE: &'static str;
    const EFFECT: Effect;
    type Toolset: Toolset;

    /// Returns the schema of `ToolOutput::data`, if the tool answers with data at all.
    fn output_schema() -> Option<Map<String, Value>> {
        None
    }

    /// Returns a fault in the contract's own words, if it has any.
    fn word(_fault: &SchemaViolation) -> Option<ArgumentError> {
        None
    }

    /// Checks the raw arguments, even if they cannot be parsed, for what the JSON schema cannot express.
    fn look(_arguments: &Value) -> Vec<ArgumentError> {
        Vec::new()
    }

    /// Checks what the JSON schema cannot express. Returns every fault found, worded as the contract words it.
    fn check(&self) -> Vec<ArgumentError> {
        Vec::new()
    }

    /// Returns the files as asked for: the log names the first, and an edit waits in the queue of each. A tool that
    /// edits several changes them in one [`Store::update`].
    fn targets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Makes the failure for an error of the store, in the toolset's words; `target` as given in the arguments.
    fn refused(target: &str, error: &StoreError, limits: &Limits) -> Failure {
        Self::Toolset::refused(target, error, limits, Self::EFFECT)
    }

    /// True if a language model must generate the code before the call can run.
    fn needs_generation(&self) -> bool {
        false
    }

    /// Has the language model generate the code, and returns the call twice, ready to run. That takes long, so it must
    /// not be done while anything is held.
    fn generate(self, _cx: &Context, _author: &Generator) -> Result<[Self; 2], Failure> {
        Err(Failure::new(FailureKind::Internal, "Internal error"))
    }

    /// Returns the size of the generated code in bytes, counted against the memory budget.
    fn generated_bytes(&self) -> usize {
        0
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure>;
}

/// A language model, and the receiver of its progress.
pub struct Generator<'a> {
    pub model: &'a model::Settings,
    /// Reports what the model is doing, for the client.
    pub progress: &'a dyn Fn(&str),
}

/// An error in the arguments, with a hint on what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    pub kind: FailureKind,
    pub message: String,
    pub hint: Option<&'static str>,
}

impl ArgumentError {
    pub fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { kind: FailureKind::Invalid, message: message.into(), hint: Some(hint) }
    }

    /// Makes the error about an argument of the right type with a value that makes no sense.
    pub fn unusable(message: impl Into<String>, hint: &'static str) -> Self {
        Self { kind: FailureKind::Unusable, ..Self::new(message, hint) }
    }

    fn plain(message: String) -> Self {
        Self { kind: FailureKind::Invalid, message, hint: None }
    }
}

/// The effect of a tool on files. Annotations and the read-only filter both come from here, so they cannot disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Changes parts of a file.
    Edits,
    /// Changes parts of a file, whatever was there.
    Rewrites,
    /// Replaces a file as a whole.
    Overwrites,
}

/// The context of a call, equal for every transport.
pub struct Context<'a> {
    pub root: &'a Root,
    pub store: &'a dyn Store,
    pub line_counts: &'a LineCounts,
    pub limits: &'a Limits,
    pub call: &'a Call,
    /// The hash that a file must have to be edited, if it was given beside the arguments.
    pub expected: Option<Hash>,
}

/// Every limit on what is read, written or added to an answer.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest file read or written, in bytes.
    pub max_size: u64,
    /// Longest time that a call may take before it publishes.
    pub timeout: Duration,
    /// Lines of a diff that `edit_file` adds to its answer.
    pub diff_lines: usize,
}

impl Limits {
    pub fn new(max_size: u64, timeout: Duration) -> Self {
        Self { max_size, timeout, diff_lines: 200 }
    }
}

/// The answer of a successful call.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// Texts, in order. The first is the contract's.
    pub blocks: Vec<Block>,
    /// The facts of the answer as an object.
    pub data: Option<Map<String, Value>>,
    /// The facts as an object that is JSON already, for a tool that has very many of them and no `data`.
    pub written: Option<String>,
    /// The file's hash after the call.
    pub hash: Option<Hash>,
    /// Facts about the answer that stand beside it, for a program rather than a model.
    pub meta: Option<Map<String, Value>>,
}

impl ToolOutput {
    /// Returns the approximate size of the reply in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory_bytes).sum();
        let objects = self.data.iter().chain(&self.meta);
        let written = self.written.as_ref().map_or(0, String::capacity);
        blocks + objects.map(members_memory).sum::<usize>() + written
    }

    /// Drops files of which the reply shows only a small part.
    #[must_use]
    pub fn compact(self) -> Self {
        let blocks = self.blocks.into_iter().map(Block::compact).collect();
        Self { blocks, ..self }
    }
}

/// Bytes that a map takes whatever is in it, and bytes for each of its members.
const MAP: usize = 256;
const MEMBER: usize = 96;

/// Returns the approximate size of arguments in memory, in bytes.
pub fn arguments_memory(arguments: &Value) -> usize {
    value_memory(arguments)
}

fn members_memory(members: &Map<String, Value>) -> usize {
    let each = |(name, value): (&String, &Value)| MEMBER + name.len() + value_memory(value);
    MAP + members.iter().map(each).sum::<usize>()
}

fn value_memory(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => size_of::<Value>() + text.capacity(),
        Value::Array(items) => size_of::<Value>() + items.iter().map(value_memory).sum::<usize>(),
        Value::Object(members) => members_memory(members),
    }
}

/// One text of an answer. A read shares the file's own buffer, so that a large file is held once.
#[derive(Clone, Debug, Default)]
pub struct Block {
    head: String,
    body: Option<Slice>,
    is_json: bool,
}

#[derive(Clone, Debug)]
struct Slice {
    text: Text,
    range: Range<usize>,
    breaks: Breaks,
}

/// The form in which the line breaks of a file are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Exact,
    Lf,
}

impl From<String> for Block {
    fn from(head: String) -> Self {
        Self { head, ..Self::default() }
    }
}

impl Block {
    /// Makes a block of `head` and the lines in `range` of `text`, with every line break as `\n`.
    pub fn of_lines(head: String, text: Text, range: Range<usize>) -> Self {
        let body = Some(Slice { text, range, breaks: Breaks::Lf });
        Self { head, body, is_json: false }
    }

    /// Makes a block of exactly what is in `range` of `text`.
    pub fn of_text(text: Text, range: Range<usize>) -> Self {
        let body = Some(Slice { text, range, breaks: Breaks::Exact });
        Self { body, ..Self::default() }
    }

    /// Makes a block that is not a text of the answer but a value in it, written as JSON.
    pub fn of_json(json: String) -> Self {
        Self { head: json, body: None, is_json: true }
    }

    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// True if the file has a byte order mark just before the part that is shown.
    pub fn is_after_mark(&self) -> bool {
        self.body.as_ref().is_some_and(|slice| slice.range.start == 0 && slice.text.has_bom())
    }

    /// Returns the next piece of the text after the first `seen` bytes, and the number of bytes seen then. Pieces are
    /// short enough for a cache, and nothing is copied.
    pub fn piece(&self, seen: usize) -> Option<(&str, usize)> {
        let Some(seen_of_body) = seen.checked_sub(self.head.len()) else {
            let end = self.head.floor_char_boundary(seen + PIECE);
            return Some((&self.head[seen..end], end));
        };
        let slice = self.body.as_ref()?;
        let rest = &slice.text.as_str()[slice.range.clone()][seen_of_body..];
        let near = &rest[..rest.floor_char_boundary(PIECE)];
        let next_return = match slice.breaks {
            Breaks::Exact => None,
            Breaks::Lf => memchr::memchr(b'\r', near.as_bytes()),
        };
        match next_return {
            Some(0) if rest.as_bytes().get(1) == Some(&b'\n') => Some(("\n", seen + 2)),
            Some(0) => Some(("\n", seen + 1)),
            Some(at) => Some((&near[..at], seen + at)),
            None if near.is_empty() => None,
            None => Some((near, seen + near.len())),
        }
    }

    /// Returns the approximate length of the text, in bytes.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, |slice| slice.range.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of the text, if it is small beside the file that it would keep in memory.
    fn compact(self) -> Self {
        if self.len() < self.memory_bytes() / 4 { self.to_string().into() } else { self }
    }

    /// Returns the size of the block in memory, in bytes: a part of a file keeps the whole of it.
    pub fn memory_bytes(&self) -> usize {
        self.head.capacity() + self.body.as_ref().map_or(0, |slice| slice.text.whole().len())
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mut seen = 0;
        while let Some((piece, next)) = self.piece(seen) {
            f.write_str(piece)?;
            seen = next;
        }
        Ok(())
    }
}

/// Most bytes in a piece of a text.
const PIECE: usize = 64 * 1024;

/// A tool as one row of its toolset.
pub struct ToolSpec {
    /// The name of its toolset. Tools of two toolsets may have the same name.
    pub toolset: &'static str,
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub title: &'static str,
    pub effect: Effect,
    pub dialect: Dialect,
    schema: OnceLock<Map<String, Value>>,
    make_schema: fn() -> Map<String, Value>,
    make_output_schema: fn() -> Option<Map<String, Value>>,
    word: fn(&SchemaViolation) -> Option<ArgumentError>,
    look: fn(&Value) -> Vec<ArgumentError>,
    locate: fn(&Root, &str) -> Result<FilePath, PathError>,
    refused: fn(&str, &StoreError, &Limits) -> Failure,
    parse: fn(Value) -> serde_json::Result<(Parsed, Vec<ArgumentError>)>,
}

/// Arguments after parsing.
struct Parsed {
    targets: Vec<String>,
    work: Work,
}

enum Work {
    Run(Run),
    Generate(Generate),
}

type Run = Box<dyn FnOnce(&Context) -> Result<ToolOutput, Failure> + Send>;
type Generate = Box<dyn FnOnce(&Context, &Generator) -> Result<(usize, [Run; 2]), Failure> + Send>;

/// A call whose arguments were checked, so that it only has to be run.
pub struct Prepared {
    pub tool: &'static ToolSpec,
    /// The files as asked for.
    pub targets: Vec<String>,
    /// Size of the code that a language model generated for it, in bytes.
    pub generated_bytes: usize,
    work: Work,
}

impl Prepared {
    pub fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        match self.work {
            Work::Run(run) => run(cx),
            Work::Generate(_) => Err(Failure::no_model()),
        }
    }

    /// True if a language model must generate the code before the call can run.
    pub fn needs_generation(&self) -> bool {
        matches!(self.work, Work::Generate(_))
    }

    /// Has the code generated, and returns the call twice: once to be run and once to be rehearsed.
    pub fn generate(self, cx: &Context, generator: &Generator) -> Result<[Self; 2], Failure> {
        let Self { tool, targets, work, .. } = self;
        let Work::Generate(write) = work else {
            return Err(Failure::new(FailureKind::Internal, "Internal error"));
        };
        let (generated_bytes, runs) = write(cx, generator)?;
        let ready =
            |run| Self { tool, targets: targets.clone(), generated_bytes, work: Work::Run(run) };
        Ok(runs.map(ready))
    }

    /// Returns the first of the files as asked for.
    pub fn first_target(&self) -> Option<&str> {
        self.targets.first().map(String::as_str)
    }

    /// Returns the paths of the files that the call is about, without those that are invalid.
    pub fn paths(&self, root: &Root) -> Vec<FilePath> {
        self.targets.iter().filter_map(|target| self.locate(root, target)).collect()
    }

    /// Returns the path of one of the files that the call is about; `None` if it is invalid.
    pub(crate) fn locate(&self, root: &Root, target: &str) -> Option<FilePath> {
        (self.tool.locate)(root, target).ok()
    }

    /// Makes the failure for a call that was not even run, in the tool's own words.
    pub fn refused(&self, error: &StoreError, limits: &Limits) -> Failure {
        (self.tool.refused)(self.first_target().unwrap_or_default(), error, limits)
    }
}

impl ToolSpec {
    pub const fn of<T: Tool>() -> Self {
        Self {
            toolset: T::Toolset::NAME,
            name: T::NAME,
            alias: T::ALIAS,
            title: T::TITLE,
            effect: T::EFFECT,
            dialect: T::Toolset::DIALECT,
            schema: OnceLock::new(),
            make_schema: schema::of::<T>,
            make_output_schema: T::output_schema,
            word: T::word,
            look: T::look,
            locate: T::Toolset::locate,
            refused: T::refused,
            parse: parse::<T>,
        }
    }

    /// Returns the names of its toolset and its own: no other tool has both.
    pub fn key(&self) -> (&'static str, &'static str) {
        (self.toolset, self.name)
    }

    /// True if the tool can be called by this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }

    /// Returns the description of the tool that an agent reads.
    pub fn description(&self) -> &str {
        self.schema().get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the schema of the arguments, without the tool's description, which stands beside it.
    pub fn input_schema(&self) -> Map<String, Value> {
        let mut schema = self.schema().clone();
        schema.remove("description");
        schema
    }

    pub fn output_schema(&self) -> Option<Map<String, Value>> {
        (self.make_output_schema)()
    }

    fn schema(&self) -> &Map<String, Value> {
        self.schema.get_or_init(self.make_schema)
    }

    /// Checks the arguments, and names every fault at once.
    pub fn prepare(&'static self, arguments: Value) -> Result<Prepared, Failure> {
        let (found, more) = schema::violations(self.schema(), &arguments);
        let plain = |fault: &SchemaViolation| ArgumentError::plain(fault.to_string());
        let words = |fault: &SchemaViolation| (self.word)(fault).unwrap_or_else(|| plain(fault));
        let mut faults: Vec<ArgumentError> = found.iter().map(words).collect();
        faults.extend((self.look)(&arguments));
        match (self.parse)(arguments) {
            Ok((Parsed { targets, work }, senseless)) => {
                faults.extend(senseless);
                if faults.is_empty() {
                    return Ok(Prepared { tool: self, targets, generated_bytes: 0, work });
                }
            }
            // The schema check has found better words for it.
            Err(_) if !faults.is_empty() => {}
            Err(reason) => faults.push(ArgumentError::plain(reason.to_string())),
        }
        Err(Failure::invalid(faults, more))
    }
}

/// Parses the arguments, and returns errors about those that make no sense. Unknown properties are left to the
/// schema.
fn parse<T: Tool>(arguments: Value) -> serde_json::Result<(Parsed, Vec<ArgumentError>)> {
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    let tool: T = serde_json::from_value(arguments)?;
    let (faults, targets) = (tool.check(), tool.targets().into_iter().map(String::from).collect());
    let work = if tool.needs_generation() {
        Work::Generate(Box::new(move |cx, generator| {
            let written = tool.generate(cx, generator)?;
            Ok((written[0].generated_bytes(), written.map(runner)))
        }))
    } else {
        Work::Run(runner(tool))
    };
    Ok((Parsed { targets, work }, faults))
}

fn runner<T: Tool>(tool: T) -> Run {
    Box::new(move |cx| tool.run(cx))
}

impl Failure {
    /// Makes the failure for a call that needs a language model when none is configured.
    pub fn no_model() -> Self {
        let message =
            "`edit_instruction` was given without `code_block`, and no model is configured";
        Self::new(FailureKind::Invalid, message).with_faults(vec![message.into()]).with_hint(
            "write the code yourself and pass it as `code_block`, with `start_line` and `end_line` to replace lines; \
             a model is configured with FILE_EDITOR_LLM_BASE_URL and FILE_EDITOR_LLM_MODEL in the server's environment",
        )
    }

    /// Makes the failure that names every fault once; `more` were counted but not kept.
    fn invalid(faults: Vec<ArgumentError>, more: usize) -> Self {
        let (mut messages, mut hints) = (Vec::new(), Vec::new());
        let mut left_out = more;
        let unusable = more == 0 && faults.iter().all(|fault| fault.kind == FailureKind::Unusable);
        let kind = if unusable { FailureKind::Unusable } else { FailureKind::Invalid };
        for ArgumentError { message, hint, .. } in faults {
            if messages.contains(&message) {
                continue;
            }
            if messages.len() >= schema::ERRORS_MAX {
                left_out += 1;
                continue;
            }
            messages.push(message);
            hints.extend(hint.filter(|hint| !hints.contains(hint)));
        }
        if left_out > 0 {
            messages.push(format!("... and {left_out} more"));
        }
        let failure = Self::new(kind, messages.join("; ")).with_faults(messages);
        if hints.is_empty() { failure } else { failure.with_hint(hints.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn block(range: Range<usize>) -> Block {
        let text = Text::decode(Arc::new("a\r\n".repeat(1000).into_bytes())).expect("text");
        Block::of_lines("head\n".into(), text, range)
    }

    #[test]
    fn a_small_part_of_a_file_lets_go_of_it() {
        for (range, kept) in [(0..3000, true), (0..1500, true), (300..306, false), (0..0, false)] {
            let before = block(range.clone());
            assert!(before.memory_bytes() >= 3000);
            let after = before.clone().compact();
            assert_eq!(after.memory_bytes() >= 3000, kept, "{range:?}");
            assert_eq!(after.to_string(), before.to_string(), "{range:?}");
        }
    }

    #[test]
    fn what_a_reply_holds_is_more_than_what_it_says() {
        let rows = vec![json!({ "name": "a.txt", "lines": 3 }); 100];
        let Value::Object(data) = json!({ "files": rows }) else { unreachable!() };
        let said = Value::Object(data.clone()).to_string().len();
        let reply =
            ToolOutput { blocks: vec![block(0..3)], data: Some(data), ..ToolOutput::default() };
        assert!(reply.memory_bytes() > 3000 + said);
    }

    #[test]
    fn what_is_held_is_counted_with_what_it_is_held_in() {
        let value = size_of::<Value>();
        let arguments = json!({ "ab": [true, "xyz"], "c": {} });
        let members = MEMBER + 2 + (value + value + (value + 3)) + MEMBER + 1 + MAP;
        assert_eq!(arguments_memory(&arguments), MAP + members);
        let Value::Object(data) = arguments else { unreachable!() };
        let written = Some(String::with_capacity(1000));
        let of_parts = |reply: ToolOutput| reply.memory_bytes();
        let [blocks, data, written] = [
            ToolOutput { blocks: vec![block(0..3)], ..ToolOutput::default() },
            ToolOutput { data: Some(data), ..ToolOutput::default() },
            ToolOutput { written, ..ToolOutput::default() },
        ];
        let all = ToolOutput {
            blocks: blocks.blocks.clone(),
            data: data.data.clone(),
            meta: data.data.clone(),
            written: Some(String::with_capacity(1000)),
            ..ToolOutput::default()
        };
        let [blocks, data, written] = [blocks, data, written].map(of_parts);
        assert_eq!((data, written), (MAP + members, 1000));
        assert_eq!(all.memory_bytes(), blocks + 2 * data + written);
    }

    #[test]
    fn a_reply_without_the_rest_of_its_files_says_the_same() {
        let Value::Object(data) = json!({ "a": 1 }) else { unreachable!() };
        let hash = Some(Hash::of(b"a"));
        let (blocks, data) = (vec![block(0..3)], Some(data));
        let reply =
            ToolOutput { blocks, data: data.clone(), hash, ..ToolOutput::default() }.compact();
        assert_eq!(reply.blocks[0].to_string(), block(0..3).to_string());
        assert_eq!((reply.data, reply.hash), (data, hash));
    }

    #[test]
    fn blocks_know_what_they_are() {
        let json = Block::of_json("[1]".into());
        assert!(json.is_json() && json.to_string() == "[1]" && !json.is_after_mark());
        assert!(!Block::from("[1]".to_owned()).is_json());
        let text = |bytes: &[u8]| Text::decode(Arc::new(bytes.to_vec())).expect("text");
        let marked = |range| Block::of_text(text(b"\xef\xbb\xbfab"), range).is_after_mark();
        assert!(marked(0..2) && !marked(1..2));
        assert!(!Block::of_text(text(b"ab"), 0..2).is_after_mark());
    }

    #[test]
    fn the_length_of_a_block_is_that_of_its_parts() {
        assert_eq!((block(0..3).len(), block(0..3).is_empty()), (8, false));
        assert_eq!((Block::default().len(), Block::default().is_empty()), (0, true));
    }

    #[test]
    fn faults_are_told_once_and_not_without_end() {
        let error = |number: usize| ArgumentError::plain(format!("fault {number}"));
        let most = schema::ERRORS_MAX;
        let faults = |count: usize| (0..count).chain(0..count).map(error).collect();
        assert_eq!(Failure::invalid(faults(most), 0).faults.len(), most);
        let failure = Failure::invalid(faults(most + 3), 4);
        // Faults that are only counted may be equal to each other.
        assert_eq!(failure.faults.len(), most + 1);
        assert_eq!(failure.faults[most], "... and 10 more");
    }

    #[test]
    fn a_call_knows_its_file_and_whether_it_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::open(dir.path()).expect("a folder");
        let call = |arguments| {
            let tool = crate::find("code", "ai_edit_code").expect("a tool");
            tool.prepare(arguments).expect("arguments")
        };
        let given =
            json!({ "target_file": "a.rs", "edit_instruction": "write it", "code_block": "x" });
        let written = call(given);
        assert!(!written.needs_generation());
        assert_eq!(written.paths(&root), [FilePath::flat("a.rs").expect("a name")]);
        let asked = json!({ "target_file": "../a.rs", "edit_instruction": "write it" });
        assert!(call(asked.clone()).needs_generation());
        assert_eq!(call(asked).paths(&root), []);
    }
}
