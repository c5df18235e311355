//! `ai_get_code_context`: the code that an agent should see before it changes it.

use std::ops::Range;
use std::time::Instant;

use ::code::context::{
    self, CodeContext, ContextRequest, NameMatching, Section, SectionCounts, SourceError, Symbol,
};
use ::code::outline::PartKind;
use files::{Hash, Root, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::AlsoSearched;
use super::budget::{self, Detail};
use crate::answer::short;
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::{ArgumentError, Context, Effect, Failure, FailureKind, Tool, ToolOutput, schema};

/// Default token budget of an answer.
const TOKENS: usize = 4000;
/// Default number of results of each kind, and of the map, which shows only heads.
const RESULTS: usize = 10;
const RESULTS_OF_MAP: usize = 40;
const DEPTH: usize = 3;

/// Find out about code before changing it: lines a question is about, where names are defined and used, outlines of files, the folders. Without arguments: the folders and what matters most. Every answer keeps to `max_tokens`, is made from the files as they are now, and its hashes can be passed to `ai_edit_code`. Files that .gitignore names and hidden ones are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AiGetCodeContext {
    /// What it is about, in words or identifiers
    query: Option<String>,
    /// Names to find: `name`, `Type/method`, `Type::method`
    #[schemars(length(max = 16))]
    symbols: Option<Vec<String>>,
    /// Files to outline; they and what they use come first for `query`. `path:10-80` shows those lines
    #[schemars(length(max = 64))]
    files: Option<Vec<String>>,
    /// Default: what fits the other arguments
    include: Option<Vec<Included>>,
    /// Folder to search, relative (default: all)
    path: Option<String>,
    /// Only files like these, with `!` not these: `*.rs`, `!tests/**`
    #[schemars(length(max = 100))]
    globs: Option<Vec<String>>,
    /// Only such parts
    kinds: Option<Vec<KindFilter>>,
    /// How `symbols` are compared (default `exact`)
    r#match: Option<Matching>,
    /// Levels of folders and outlines (default 3)
    #[schemars(range(min = 1, max = 16))]
    depth: Option<LineNumber>,
    /// Default `auto`: as much as fits
    detail: Option<Detailed>,
    /// What the answer may cost, 256 to 20000 (default 4000)
    #[schemars(range(min = 256, max = 20000))]
    max_tokens: Option<LineNumber>,
    /// Results of each type, at most 100 (default 10)
    #[schemars(range(min = 1, max = 100))]
    max_results: Option<LineNumber>,
    /// `next_cursor` of the page before
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Included {
    Structure,
    Outline,
    Definitions,
    References,
    Snippets,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Matching {
    Exact,
    Prefix,
    Substring,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Detailed {
    Auto,
    Paths,
    Signatures,
    Body,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KindFilter {
    Function,
    Method,
    Class,
    Struct,
    Enum,
    Interface,
    Trait,
    Type,
    Constant,
    Module,
    Macro,
    Field,
}

impl From<KindFilter> for PartKind {
    fn from(kind: KindFilter) -> Self {
        match kind {
            KindFilter::Function => Self::Function,
            KindFilter::Method => Self::Method,
            KindFilter::Class => Self::Class,
            KindFilter::Struct => Self::Struct,
            KindFilter::Enum => Self::Enum,
            KindFilter::Interface => Self::Interface,
            KindFilter::Trait => Self::Trait,
            KindFilter::Type => Self::Type,
            KindFilter::Constant => Self::Constant,
            KindFilter::Module => Self::Module,
            KindFilter::Macro => Self::Macro,
            KindFilter::Field => Self::Field,
        }
    }
}

impl From<Included> for Section {
    fn from(included: Included) -> Self {
        match included {
            Included::Structure => Self::Structure,
            Included::Outline => Self::Outline,
            Included::Definitions => Self::Definitions,
            Included::References => Self::References,
            Included::Snippets => Self::Snippets,
        }
    }
}

/// The kind of an answer: what was asked for, or a map for a caller that asked for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContextKind {
    Answer,
    Map,
}

/// What `ai_get_code_context` answers.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AiGetCodeContextAnswer {
    root: String,
    results: Vec<ResultShape>,
    structure: StructureShape,
    budget: BudgetShape,
    stats: StatsShape,
    next_cursor: String,
    notes: Vec<String>,
    /// After a failure
    status: String,
    file_path: String,
    message: String,
    error: String,
    code: String,
    hint: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ResultShape {
    r#type: String,
    path: String,
    language: String,
    start_line: usize,
    end_line: usize,
    symbol: String,
    kind: String,
    signature: String,
    score: f64,
    why: Vec<String>,
    detail: String,
    text: String,
    /// Lines or rows behind `text`
    more: usize,
    hash: String,
    file_hash: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct StructureShape {
    text: String,
    files: u64,
    dirs: u64,
    languages: Map<String, Value>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct BudgetShape {
    max_tokens: usize,
    used_tokens: usize,
    truncated: bool,
    omitted: Map<String, Value>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct StatsShape {
    files_scanned: u64,
    skipped: Map<String, Value>,
    elapsed_ms: u64,
}

impl Tool for AiGetCodeContext {
    const NAME: &'static str = "ai_get_code_context";
    const TITLE: &'static str = "Get code context";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Code;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<AiGetCodeContextAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        let mut errors = Vec::new();
        for given in self.files.iter().flatten() {
            if is_backwards(given) {
                let message = format!("`files`: invalid line range in `{}`", short(given));
                errors.push(ArgumentError::new(
                    message,
                    "for instance `src/a.rs:10-80`; lines count from 1",
                ));
            }
        }
        for name in self.symbols.iter().flatten() {
            if Symbol::parse(name, NameMatching::Exact).is_none() {
                let message = format!("`symbols`: `{}` is not a name", short(name));
                let hint = "for instance `run`, `Walker/run` or `Walker::run`; to search for words use `query`";
                errors.push(ArgumentError::new(message, hint));
            }
        }
        errors
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let start = Instant::now();
        let (files, excerpts) = self.files(cx.root)?;
        let symbols: Vec<Symbol> = self.symbols();
        let sections: Vec<Section> =
            self.include.iter().flatten().map(|included| (*included).into()).collect();
        let kinds: Vec<PartKind> = self.kinds.iter().flatten().map(|kind| (*kind).into()).collect();
        let number = |given: Option<LineNumber>| given.map(|given| given.index(Base::Zero));
        let query = self.query.as_deref().unwrap_or("").trim();
        let asks = !query.is_empty() || !symbols.is_empty() || self.files.is_some();
        let kind = if asks || sections.contains(&Section::Outline) {
            ContextKind::Answer
        } else {
            ContextKind::Map
        };
        let results = match kind {
            ContextKind::Answer => RESULTS,
            ContextKind::Map => RESULTS_OF_MAP,
        };
        let request = ContextRequest {
            query,
            symbols: &symbols,
            files: &files,
            excerpts: &excerpts,
            sections: &sections,
            kinds: &kinds,
            depth: number(self.depth).unwrap_or(DEPTH),
            max_results: number(self.max_results).unwrap_or(results),
            start: self.start()?,
            tree: super::tree(
                cx,
                self.path.as_deref(),
                self.globs.as_deref(),
                AlsoSearched::default(),
            )?,
        };
        let gathered = context::gather(cx.root, cx.store, &request, cx.call);
        let mut gathered = gathered.map_err(|error| {
            super::refused_folder(self.path.as_deref().unwrap_or("."), &error, cx.limits)
        })?;
        refuse_unreadable(&gathered, files.len() + excerpts.len(), cx)?;
        gathered.notes.extend(super::search_files::unapplied_rules(&gathered.skipped));
        let budget = budget::Budget {
            root: cx.root.path().display().to_string(),
            max_tokens: number(self.max_tokens).unwrap_or(TOKENS),
            detail: self.detail(kind),
            asked: self.digest(),
            elapsed: start.elapsed(),
        };
        let (text, data) = budget.answer(&gathered);
        Ok(ToolOutput { blocks: vec![text.into()], data: Some(data), ..ToolOutput::default() })
    }
}

/// Refuses the call if nothing of what it asked for can be shown.
fn refuse_unreadable(gathered: &CodeContext, asked: usize, cx: &Context) -> Result<(), Failure> {
    let shows_nothing = gathered.items.is_empty() && gathered.structure.is_none();
    match gathered.unreadable.first() {
        Some((path, error)) if shows_nothing && gathered.unreadable.len() == asked => {
            Err(match error {
                SourceError::NotText(reason) => {
                    let message = format!("Cannot read binary file: {}", short(path));
                    Failure { message, ..super::not_text(path, reason) }
                }
                SourceError::Store(StoreError::IsFolder) => {
                    let message = format!("{} is a folder", short(path));
                    Failure::new(FailureKind::Invalid, message.clone())
                        .with_argument_errors(vec![message])
                        .with_hint("`path` is for folders, `files` for files")
                }
                SourceError::Store(error) => super::refused(path, error, cx.limits),
            })
        }
        _ => Ok(()),
    }
}

impl AiGetCodeContext {
    fn symbols(&self) -> Vec<Symbol> {
        let matching = match self.r#match {
            Some(Matching::Exact) | None => NameMatching::Exact,
            Some(Matching::Prefix) => NameMatching::Prefix,
            Some(Matching::Substring) => NameMatching::Substring,
        };
        let names = self.symbols.iter().flatten();
        names.filter_map(|name| Symbol::parse(name, matching)).collect()
    }

    /// Returns the files by their paths from the root, and those of which certain lines are asked for.
    #[expect(clippy::type_complexity, reason = "two lists")]
    fn files(&self, root: &Root) -> Result<(Vec<String>, Vec<(String, Range<usize>)>), Failure> {
        let (mut files, mut excerpts) = (Vec::new(), Vec::new());
        for given in self.files.iter().flatten() {
            let (path, lines) = match with_lines(given) {
                Some((path, lines)) => (path, Some(lines)),
                None => (given.as_str(), None),
            };
            // Files are told apart by where they are, not by how they were written.
            let path = super::path(root, path)?.shown();
            match lines {
                Some(lines) => excerpts.push((path, lines)),
                None if files.contains(&path) => {}
                None => files.push(path),
            }
        }
        Ok((files, excerpts))
    }

    fn detail(&self, kind: ContextKind) -> Detail {
        match (self.detail, kind) {
            (Some(Detailed::Paths), _) => Detail::Path,
            // A caller that knows nothing yet is better served with many heads than with a few bodies.
            (Some(Detailed::Signatures), _) | (Some(Detailed::Auto) | None, ContextKind::Map) => {
                Detail::Signature
            }
            (Some(Detailed::Auto) | None, ContextKind::Answer) | (Some(Detailed::Body), _) => {
                Detail::Body
            }
        }
    }

    /// Returns a digest that tells this question from others, the same for every page of its answer.
    fn digest(&self) -> String {
        let what = (&self.query, &self.symbols, &self.files, &self.include);
        let which = (&self.path, &self.globs, &self.kinds, &self.r#match, &self.depth);
        let asked = format!("{what:?}{which:?}");
        Hash::of(asked.as_bytes()).to_string()[..8].to_owned()
    }

    fn start(&self) -> Result<SectionCounts, Failure> {
        let Some(cursor) = &self.cursor else { return Ok(SectionCounts::default()) };
        budget::parse_cursor(cursor, &self.digest()).ok_or_else(|| {
            let message = "`cursor` does not belong to this query".to_owned();
            Failure::new(FailureKind::Invalid, message.clone())
                .with_argument_errors(vec![message])
                .with_hint("pass the `next_cursor` of the previous page with the same arguments, or leave it out")
        })
    }
}

/// True if the text ends with a range of lines that cannot exist.
fn is_backwards(given: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let lines = given.rsplit_once(':').map_or("", |(_, lines)| lines);
    let asked = lines.split_once('-').is_some_and(|(a, b)| is_number(a) && is_number(b));
    asked && with_lines(given).is_none()
}

/// Splits `path:10-80` or `path:10`.
fn with_lines(given: &str) -> Option<(&str, Range<usize>)> {
    let (path, lines) = given.rsplit_once(':')?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| *number > 0);
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((path, first - 1..last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_behind_a_path() {
        let check = |given: &str, expected: Option<(&str, Range<usize>)>| {
            assert_eq!(with_lines(given), expected, "{given}");
        };
        check("a.rs", None);
        check("a.rs:10-12", Some(("a.rs", 9..12)));
        check("a.rs:10", Some(("a.rs", 9..10)));
        check("a.rs:0-3", None);
        check("a.rs:9-3", None);
        check("C:file", None);
    }

    #[test]
    fn lines_that_cannot_be_are_told_from_other_names() {
        for given in ["a.rs:9-3", "a.rs:0-3", "a.rs:0-0"] {
            assert!(is_backwards(given), "{given}");
        }
        for given in ["a.rs", "a.rs:1-3", "a.rs:x-3", "a.rs:3-x", "a.rs:-3", "a.rs:3-", "a.rs:-"] {
            assert!(!is_backwards(given), "{given}");
        }
    }
}
