//! A tool as data: what is said of it, how its arguments are checked, and a call that is ready to run.

use std::sync::OnceLock;

use files::{FilePath, PathError, Root, StoreError};
use serde_json::{Map, Value};

use crate::schema::{self, SchemaViolation};
use crate::{
    ArgumentError, Context, Dialect, Effect, Failure, FailureKind, Generator, Limits, Tool,
    ToolOutput, Toolset,
};

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
    word_violation: fn(&SchemaViolation) -> Option<ArgumentError>,
    check_raw: fn(&Value) -> Vec<ArgumentError>,
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
        let Work::Generate(generate) = work else {
            return Err(Failure::new(FailureKind::Internal, "Internal error"));
        };
        let (generated_bytes, runs) = generate(cx, generator)?;
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
            word_violation: T::word_violation,
            check_raw: T::check_raw,
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

    /// Checks the arguments, and names every error at once.
    pub fn prepare(&'static self, arguments: Value) -> Result<Prepared, Failure> {
        let (found, more) = schema::violations(self.schema(), &arguments);
        let plain = |violation: &SchemaViolation| ArgumentError::plain(violation.to_string());
        let words = |violation: &SchemaViolation| {
            (self.word_violation)(violation).unwrap_or_else(|| plain(violation))
        };
        let mut errors: Vec<ArgumentError> = found.iter().map(words).collect();
        errors.extend((self.check_raw)(&arguments));
        match (self.parse)(arguments) {
            Ok((Parsed { targets, work }, check_errors)) => {
                errors.extend(check_errors);
                if errors.is_empty() {
                    return Ok(Prepared { tool: self, targets, generated_bytes: 0, work });
                }
            }
            // The schema check has found better words for it.
            Err(_) if !errors.is_empty() => {}
            Err(reason) => errors.push(ArgumentError::plain(reason.to_string())),
        }
        Err(Failure::invalid(errors, more))
    }
}

/// Parses the arguments, and returns what [`Tool::check`] finds. Unknown properties are left to the
/// schema.
fn parse<T: Tool>(arguments: Value) -> serde_json::Result<(Parsed, Vec<ArgumentError>)> {
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    let tool: T = serde_json::from_value(arguments)?;
    let (errors, targets) = (tool.check(), tool.targets().into_iter().map(String::from).collect());
    let work = if tool.needs_generation() {
        Work::Generate(Box::new(move |cx, generator| {
            let generated = tool.generate(cx, generator)?;
            Ok((generated[0].generated_bytes(), generated.map(runner)))
        }))
    } else {
        Work::Run(runner(tool))
    };
    Ok((Parsed { targets, work }, errors))
}

fn runner<T: Tool>(tool: T) -> Run {
    Box::new(move |cx| tool.run(cx))
}

impl Failure {
    /// Makes the failure for a call that needs a language model when none is configured.
    pub fn no_model() -> Self {
        let message =
            "`edit_instruction` was given without `code_block`, and no model is configured";
        Self::new(FailureKind::Invalid, message).with_argument_errors(vec![message.into()]).with_hint(
            "write the code yourself and pass it as `code_block`, with `start_line` and `end_line` to replace lines; \
             a model is configured with FILE_EDITOR_LLM_BASE_URL and FILE_EDITOR_LLM_MODEL in the server's environment",
        )
    }

    /// Makes the failure that names every error once; `more` were counted but not kept.
    fn invalid(errors: Vec<ArgumentError>, more: usize) -> Self {
        let (mut messages, mut hints) = (Vec::new(), Vec::new());
        let mut left_out = more;
        let unusable = more == 0 && errors.iter().all(|error| error.kind == FailureKind::Unusable);
        let kind = if unusable { FailureKind::Unusable } else { FailureKind::Invalid };
        for ArgumentError { message, hint, .. } in errors {
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
        let failure = Self::new(kind, messages.join("; ")).with_argument_errors(messages);
        if hints.is_empty() { failure } else { failure.with_hint(hints.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_named_once_and_up_to_a_limit() {
        let error = |number: usize| ArgumentError::plain(format!("error {number}"));
        let most = schema::ERRORS_MAX;
        let errors = |count: usize| (0..count).chain(0..count).map(error).collect();
        assert_eq!(Failure::invalid(errors(most), 0).argument_errors.len(), most);
        let failure = Failure::invalid(errors(most + 3), 4);
        // Errors that are only counted may be equal to each other.
        assert_eq!(failure.argument_errors.len(), most + 1);
        assert_eq!(failure.argument_errors[most], "... and 10 more");
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
