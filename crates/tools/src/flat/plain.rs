//! The three operations of the flat folder as plain methods: bare JSON-RPC and REST.
//!
//! Lines count from 1, unknown properties are refused, and the answers are exactly the objects of the
//! contract's REST schemas.

use files::{FilePath, PathError, Root, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::edit_file::{self, EditRequest, IfMissing, Operation};
use super::{Base, Flat, LineNumber, list_files, read_file};
use crate::answer::Mode;
use crate::schema::SchemaViolation;
use crate::{ArgumentError, Context, Dialect, Effect, Failure, Limits, Tool, ToolOutput, Toolset};

/// The plain methods of the flat folder, as a toolset.
pub struct PlainMethods;

impl Toolset for PlainMethods {
    const NAME: &'static str = "plain";
    const DIALECT: Dialect = Dialect::Plain;

    fn locate(root: &Root, target: &str) -> Result<FilePath, PathError> {
        Flat::locate(root, target)
    }

    fn refused(target: &str, error: &StoreError, limits: &Limits, effect: Effect) -> Failure {
        Flat::refused(target, error, limits, effect)
    }
}

/// List the files of the folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListFiles {}

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const TITLE: &'static str = "List files";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = PlainMethods;

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        list_files::plain(cx)
    }
}

/// Read a file, whole or by lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadFile {
    /// Filename without path components
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 255))]
    name: String,
    /// Starting line number (1-based, inclusive)
    #[schemars(range(min = 1))]
    start_line: Option<LineNumber>,
    /// Ending line number (1-based, inclusive)
    #[schemars(range(min = 1))]
    end_line: Option<LineNumber>,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const EFFECT: Effect = Effect::Reads;
    type Toolset = PlainMethods;

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        read_file::crossed(self.start_line, self.end_line)
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let read = read_file::read(cx, &self.name, self.start_line, self.end_line, Base::One)?;
        let mut data = Map::new();
        data.insert("total_lines".into(), read.total.into());
        let asked = [("start_line", self.start_line), ("end_line", self.end_line)];
        let asked: Map<String, Value> = asked
            .into_iter()
            .filter_map(|(name, line)| Some((name.to_owned(), line?.given().into())))
            .collect();
        if !asked.is_empty() {
            data.insert("range_requested".into(), asked.into());
        }
        let hash = Some(read.hash);
        // The only block becomes the answer's `content`.
        let blocks = vec![read.into_block(String::new())];
        Ok(ToolOutput { blocks, data: Some(data), hash, ..ToolOutput::default() })
    }
}

/// Edit a file by lines, append to it or create it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EditFile {
    /// Filename without path components
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 255))]
    name: String,
    /// Array of line-based edit operations
    #[schemars(length(max = 1000))]
    edits: Option<Vec<Edit>>,
    /// Content to append to end of file
    append: Option<String>,
    /// Create file if it doesn't exist
    #[serde(default)]
    create_if_missing: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Edit {
    /// Line number to edit (1-based)
    #[schemars(range(min = 1))]
    line: LineNumber,
    /// New content for the line (not required for delete)
    content: Option<String>,
    /// Type of edit operation
    operation: Operation,
}

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit file";
    const EFFECT: Effect = Effect::Edits;
    type Toolset = PlainMethods;

    fn word_violation(violation: &SchemaViolation) -> Option<ArgumentError> {
        super::word_violation(violation)
    }

    fn check(&self) -> Vec<ArgumentError> {
        let edits = self.edits.iter().flatten();
        let edits = edits.map(|edit| (edit.operation, edit.content.as_deref()));
        edit_file::argument_errors(edits, self.append.as_deref())
    }

    fn targets(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn run(self, cx: &Context) -> Result<ToolOutput, Failure> {
        let line_edit =
            |e: Edit| edit_file::line_edit(e.line.index(Base::One), e.operation, e.content);
        let request = EditRequest {
            name: self.name,
            edits: self.edits.unwrap_or_default().into_iter().map(line_edit).collect(),
            append: self.append,
            create: match self.create_if_missing {
                Some(true) => IfMissing::Always,
                Some(false) | None => IfMissing::Never,
            },
            expected: cx.expected,
            mode: Mode::Write,
            base: Base::One,
            verify: None,
        };
        let edited = edit_file::edit(cx, &request)?;
        let data = Some(edit_file::plain_data(&edited));
        Ok(ToolOutput { data, hash: Some(edited.after), ..ToolOutput::default() })
    }
}
