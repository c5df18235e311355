//! `search_files`: lines of all files that match a pattern.

use std::fmt::Write as _;

use ::code::search::{
    self, CONTEXT_MAX, CaseSensitivity, FileMatches, Pattern, PatternOptions, RESULTS_MAX,
    ResultKind, ResultLine, SearchError, SearchOptions, SearchPage,
};
use files::tree::Skipped;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::AlsoSearched;
use crate::line_number::{Base, LineNumber};
use crate::schema::SchemaViolation;
use crate::{ArgumentError, Context, Effect, Failure, Tool, ToolOutput, schema};

/// Default number of results of a page.
const RESULTS: usize = 100;
/// Most lines of a page, those around the results included.
const LINES: usize = 4000;

/// Search the text files of the folder for a regular expression or a literal string. Lines are 1-based; files come in the order of their paths, each with its hash. Binary and hidden files and those that .gitignore names are left out. Long results come in pages.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SearchFiles {
    /// Regular expression (Rust's syntax), or what `literal` says
    pattern: String,
    /// Search for the pattern letter by letter
    literal: Option<bool>,
    /// Default `smart`: case counts if the pattern has an upper case letter
    case: Option<CaseRule>,
    /// Whole words only
    word: Option<bool>,
    /// A match may go over several lines
    multiline: Option<bool>,
    /// Folder to search, relative (default: all)
    path: Option<String>,
    /// Only files like these, with `!` not these: `*.rs`, `!tests/**`
    #[schemars(length(max = 100))]
    globs: Option<Vec<String>>,
    /// Hidden files too
    hidden: Option<bool>,
    /// Files that .gitignore names too
    ignored: Option<bool>,
    /// Lines to show before and after each match (default 0)
    #[schemars(range(min = 0, max = 20))]
    context: Option<LineNumber>,
    /// Default `lines`; `counts`: only how many match in which files
    show: Option<ShowOption>,
    /// Results of a page, at most 1000 (default 100)
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<LineNumber>,
    /// `next_cursor` of the page before
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CaseRule {
    Smart,
    Sensitive,
    Insensitive,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ShowOption {
    Lines,
    Counts,
}

/// What `search_files` answers.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct SearchFilesAnswer {
    files: Vec<FileShape>,
    matching_lines: u64,
    matching_files: u64,
    searched_files: u64,
    /// Searched only in part: their lines are too long
    cut_files: u64,
    skipped: Map<String, Value>,
    next_cursor: String,
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
struct FileShape {
    path: String,
    file_hash: String,
    matching_lines: u64,
    lines: Vec<LineShape>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct LineShape {
    line: usize,
    text: String,
    /// False: shown because of its neighbours
    matches: bool,
    /// True: longer than what is shown
    cut: bool,
}

impl Tool for SearchFiles {
    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search files";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = super::Code;

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::answer::<SearchFilesAnswer>())
    }

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        let mut errors = Vec::new();
        if self.pattern.is_empty() {
            errors.push(ArgumentError::new("`pattern` is empty", "say what to search for"));
        }
        errors
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let pattern = self.pattern()?;
        let number = |given: Option<LineNumber>| given.map(|given| given.index(Base::Zero));
        let context = number(self.context).unwrap_or(0).min(CONTEXT_MAX);
        let results = number(self.max_results).unwrap_or(RESULTS).clamp(1, RESULTS_MAX);
        let options = SearchOptions {
            tree: super::tree(
                cx,
                self.path.as_deref(),
                self.globs.as_deref(),
                AlsoSearched {
                    hidden: self.hidden == Some(true),
                    ignored: self.ignored == Some(true),
                },
            )?,
            show: match self.show {
                Some(ShowOption::Counts) => ResultKind::Counts,
                Some(ShowOption::Lines) | None => ResultKind::Lines,
            },
            before: context,
            after: context,
            max_results: results.min(LINES / (1 + 2 * context)),
            cursor: self.cursor.as_deref(),
        };
        let found = search::search(cx.root, &pattern, &options, cx.call).map_err(|error| {
            let path = self.path.as_deref().unwrap_or(".");
            match error {
                SearchError::Cursor => {
                    super::invalid("`cursor` does not come from a search".into())
                        .with_hint("pass the `next_cursor` of the previous page, or leave it out")
                }
                SearchError::Store(error) => super::refused_folder(path, &error, cx.limits),
            }
        })?;
        Ok(reply(&found))
    }
}

impl SearchFiles {
    fn pattern(&self) -> Result<Pattern, Failure> {
        let options = PatternOptions {
            case: match self.case {
                Some(CaseRule::Sensitive) => CaseSensitivity::Sensitive,
                Some(CaseRule::Insensitive) => CaseSensitivity::Insensitive,
                Some(CaseRule::Smart) | None => CaseSensitivity::Smart,
            },
            is_literal: self.literal == Some(true),
            whole_word: self.word == Some(true),
            multi_line: self.multiline == Some(true),
        };
        Pattern::new(&self.pattern, options).map_err(|error| {
            super::invalid(format!("`pattern` cannot be used: {error}"))
                .with_hint("set `literal` to true to search for this exact string")
        })
    }
}

fn reply(found: &SearchPage) -> ToolOutput {
    let mut text = String::new();
    for file in &found.files {
        show_file(file, &mut text);
    }
    let lines = match found.matching_lines {
        1 => "1 line matches".to_owned(),
        count => format!("{count} lines match"),
    };
    let _ = write!(text, "{lines} in {} of {} files", found.matching_files, found.searched_files);
    match found.cut_files {
        0 => {}
        1 => text.push_str("; 1 file was searched only in part: its lines are too long"),
        count => {
            let _ = write!(
                text,
                "; {count} files were searched only in part: their lines are too long"
            );
        }
    }
    if let Some(note) = unapplied_rules(&found.skipped) {
        let _ = write!(text, "; {note}");
    }
    if let Some(next) = &found.next {
        let _ = write!(text, "; for more pass cursor {}", json!(next));
    }
    let mut data = Map::new();
    data.insert("files".into(), found.files.iter().map(file_data).collect());
    data.insert("matching_lines".into(), found.matching_lines.into());
    data.insert("matching_files".into(), found.matching_files.into());
    data.insert("searched_files".into(), found.searched_files.into());
    if found.cut_files > 0 {
        data.insert("cut_files".into(), found.cut_files.into());
    }
    data.insert("skipped".into(), skipped(&found.skipped));
    data.extend(found.next.clone().map(|next| ("next_cursor".into(), next.into())));
    ToolOutput { blocks: vec![text.into()], data: Some(data), ..ToolOutput::default() }
}

/// Appends `path [hash] n`, then `12: a line that matches` and `13- one near it`.
fn show_file(file: &FileMatches, text: &mut String) {
    let _ = writeln!(text, "{} [{}] {}", file.path, file.hash, file.matching_lines);
    let mut last = None;
    for line in &file.lines {
        if last.is_some_and(|last| line.number > last + 1) {
            text.push_str("--\n");
        }
        last = Some(line.number);
        let sign = if line.is_match { ':' } else { '-' };
        let _ = writeln!(text, "{}{sign} {}", Base::One.show(line.number), line_text(line));
    }
    if !file.lines.is_empty() {
        text.push('\n');
    }
}

/// Returns the part of a line that is shown.
fn line_text(line: &ResultLine) -> String {
    let before = if line.offset > 0 { "…" } else { "" };
    let after = if line.offset + line.text.len() < line.length { "…" } else { "" };
    [before, &line.text, after].concat()
}

fn file_data(file: &FileMatches) -> Value {
    let lines: Vec<_> = file.lines.iter().map(line_data).collect();
    let mut data = json!({
        "path": file.path,
        "file_hash": file.hash.to_string(),
        "matching_lines": file.matching_lines,
    });
    if !lines.is_empty() {
        data["lines"] = lines.into();
    }
    data
}

fn line_data(line: &ResultLine) -> Value {
    let mut data = json!({
        "line": Base::One.show(line.number),
        "text": line_text(line),
        "matches": line.is_match,
    });
    if line.is_cut() {
        data["cut"] = true.into();
    }
    data
}

/// Returns a note that some rules of ignore files were not applied, if there are any.
pub(super) fn unapplied_rules(skipped: &Skipped) -> Option<String> {
    match skipped.ignore_rules {
        0 => None,
        1 => Some("1 ignore rule is over a limit and was not applied".to_owned()),
        count => Some(format!("{count} ignore rules are over a limit and were not applied")),
    }
}

/// Returns how many files were not searched, by reason.
pub(super) fn skipped(skipped: &Skipped) -> Value {
    let counts = [
        ("ignored", skipped.ignored),
        ("hidden", skipped.hidden),
        ("binary", skipped.binary),
        ("too_large", skipped.too_large),
        ("special", skipped.special),
        ("unreadable", skipped.unreadable),
        ("ignore_rules", skipped.ignore_rules),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    counts.map(|(name, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_says_so_on_both_sides() {
        let line = |offset, text: &str, length| ResultLine {
            number: 0,
            offset,
            text: text.into(),
            length,
            matches: Vec::new(),
            is_match: true,
        };
        assert_eq!(line_text(&line(0, "abc", 3)), "abc");
        assert_eq!(line_text(&line(0, "abc", 9)), "abc…");
        assert_eq!(line_text(&line(2, "abc", 5)), "…abc");
    }
}
