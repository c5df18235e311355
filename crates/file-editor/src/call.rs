//! `file-editor call`: calls one tool from the shell. The tool is run as the server runs it.

mod help;
mod output;
mod values;

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command};
use serde_json::Value;
use server::signal::Signals;
use server::{
    Calls, Confirm, Level, Log, Options, Structured, ToolErrors, error_codes, in_process, terminal,
};
use tools::{Effect, Failure, ToolOutput, ToolSpec};

use crate::flags::{self, ChoiceParser, DURABILITIES, FolderFlags};
use crate::runtime;
pub use help::{keys, properties};
pub use output::write_stdout;
use output::{ColorMode, Format, Output};

/// Call one tool, as an agent would
///
/// On a terminal the answer is text with a coloured diff; otherwise it is one JSON object.
///
///     file-editor call read_file --dir=notes name=todo.txt
///     file-editor call edit_file name=todo.txt edits='[{"line":0,"operation":"delete"}]'
///     file-editor call write_text_file path="$PWD/todo.txt" content=- < draft.txt
///     file-editor call search_files pattern=TODO globs='*.rs' globs='*.md'
///     echo '{"name":"todo.txt"}' | file-editor call read_file -
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(verbatim_doc_comment, disable_help_flag = true, after_help = AFTER_HELP)]
pub struct Arguments {
    /// The tool
    #[arg(value_parser = tool_names())]
    tool: Option<String>,

    /// Arguments of the tool; `file-editor call TOOL --help` lists the keys
    ///
    /// Strings are written as they are, other values as JSON. For a list of strings, repeat the key. `key=-` reads the
    /// value from stdin. A single `-` reads all arguments from stdin, as one JSON object.
    #[arg(value_name = "KEY=VALUE")]
    values: Vec<OsString>,

    /// Folder to work in [default: the current one]
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// Answer with JSON, also on a terminal
    #[arg(long, conflicts_with = "text")]
    json: bool,

    /// Answer with text, also into a pipe or file
    #[arg(long)]
    text: bool,

    /// When text is coloured: `auto` (on a terminal, unless `NO_COLOR` is set), `always`, `never` [default: auto]
    ///
    /// `always` implies --text.
    #[arg(long, value_name = "WHEN", value_parser = ChoiceParser::of(&COLORS), hide_possible_values = true)]
    color: Option<String>,

    /// Time limit in seconds, 1 to 300, including the wait for a lock [default: 10]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<String>,

    /// Largest file in megabytes, 1 to 100 [default: 10]
    #[arg(long, value_name = "MB")]
    max_size: Option<String>,

    /// Refuse every edit
    #[arg(long)]
    read_only: bool,

    /// Do not enter the Landlock sandbox (Linux)
    #[arg(long)]
    no_sandbox: bool,

    /// What an edit waits for: `none`, `data`, `full` [default: data]
    #[arg(long, value_name = "LEVEL", value_parser = ChoiceParser::of(&DURABILITIES), hide_possible_values = true)]
    durability: Option<String>,

    /// List the tools
    #[arg(long)]
    list: bool,

    /// Print help; after a tool, help for the tool
    #[arg(short, long)]
    help: bool,
}

const COLORS: [(&str, ColorMode); 3] =
    [("auto", ColorMode::Auto), ("always", ColorMode::Always), ("never", ColorMode::Never)];

const AFTER_HELP: &str = "\
FILE_EDITOR_LLM_BASE_URL and FILE_EDITOR_LLM_MODEL configure a language model, as for the server.

Exit status: 0 if the tool succeeded; 1 if it failed, if an argument is wrong, or if the call was
interrupted. The reason goes to stderr. If the answer is JSON, the tool's error is also written to
stdout as JSON.";

fn tool_names() -> PossibleValuesParser {
    let value = |tool: &'static ToolSpec| {
        PossibleValue::new(tool.name).aliases(tool.alias).help(tool.title)
    };
    tools::agent_tools().map(value).collect::<Vec<_>>().into()
}

/// Finds a tool by its name or alias.
pub fn find(name: &str) -> Option<&'static ToolSpec> {
    tools::agent_tools().find(|tool| tool.has_name(name))
}

/// Runs the command. `definition`: the whole command line, for help.
pub fn run(arguments: &Arguments, definition: fn() -> Command) -> ExitCode {
    let tool = arguments.tool.as_deref().and_then(find);
    let text = match tool {
        _ if arguments.list => Ok(help::list()),
        Some(tool) if arguments.help => Ok(help::tool(tool)),
        None if arguments.help => Ok(help::command(definition())),
        Some(tool) => match call(tool, arguments) {
            Ok(code) => return code,
            Err(errors) => Err(errors),
        },
        None => Err(vec!["no tool given; `file-editor call --list` lists them".into()]),
    };
    match text.map(|text| write_stdout(&text)) {
        Ok(code) => code,
        Err(errors) => {
            flags::report_errors(&errors, "file-editor call --help");
            ExitCode::FAILURE
        }
    }
}

/// Calls the tool and prints the outcome, or returns every error in the flags.
fn call(tool: &'static ToolSpec, arguments: &Arguments) -> Result<ExitCode, Vec<String>> {
    let flags = FolderFlags {
        dir: Some(arguments.dir.as_deref().unwrap_or(OsStr::new("."))),
        max_size: arguments.max_size.as_deref(),
        timeout: arguments.timeout.as_deref(),
        durability: arguments.durability.as_deref(),
        // A tool that only reads needs no writable folder.
        read_only: arguments.read_only || tool.effect == Effect::Reads,
        no_sandbox: arguments.no_sandbox,
    };
    let (folder, color) = match (flags::folder_settings(&flags, &[tool]), color(arguments)) {
        (Ok(folder), Ok(color)) => (folder, color),
        (folder, color) => {
            return Err(folder.err().into_iter().flatten().chain(color.err()).collect());
        }
    };
    let options = Options {
        tools: vec![tool],
        access: folder.access,
        tool_errors: ToolErrors::Result,
        structured: Structured::On,
        confirm: Confirm::Never,
        observer: None,
        model: folder.model.clone(),
        instructions: None,
    };
    let (calls, _) = folder.open(options, Log::new(Level::Error));
    calls.log_panics();
    let values = values::read(tool, &arguments.values, in_process::arguments_max(&calls.limits));
    let target = values.as_ref().ok().and_then(error_codes::target).map(String::from);
    let outcome =
        values.map_or_else(|failure| Ok(Err(failure)), |values| run_call(&calls, tool, values));
    calls.log.close(Duration::from_millis(50));
    let format = match (arguments.json, arguments.text) {
        (true, _) => Some(Format::Json),
        (false, true) => Some(Format::Text),
        (false, false) => None,
    };
    let output = Output::new(format, color);
    Ok(match outcome {
        Ok(outcome) => output.print(tool, target.as_deref(), outcome),
        Err(error) => {
            terminal::write_message(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn color(arguments: &Arguments) -> Result<ColorMode, String> {
    let name = arguments.color.as_deref().unwrap_or("auto");
    let found = COLORS.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, color)| color).ok_or("--color must be one of: auto, always, never".into())
}

/// Runs the call. An interrupt cancels it; a second one exits without waiting for its outcome.
fn run_call(
    calls: &Arc<Calls>,
    tool: &'static ToolSpec,
    arguments: Value,
) -> io::Result<Result<ToolOutput, Failure>> {
    let runtime = runtime::build()?;
    let has_status = Cell::new(false);
    let outcome = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let (interrupt, interrupted) = tokio::sync::oneshot::channel::<()>();
        let cancelled = async { drop(interrupted.await) };
        let report = |progress: &str, since: Duration| {
            if terminal::show_status(progress, since) {
                has_status.set(true);
            }
        };
        let call = in_process::call(calls, tool, arguments, cancelled, report);
        let twice = async {
            signals.stop().await;
            drop(interrupt);
            signals.stop().await;
        };
        tokio::select! {
            outcome = call => Ok(outcome),
            () = twice => Err(io::Error::other("interrupted twice; the outcome of the call is unknown")),
        }
    });
    if has_status.get() {
        terminal::clear_status();
    }
    runtime.shutdown_timeout(Duration::from_millis(50));
    outcome
}
