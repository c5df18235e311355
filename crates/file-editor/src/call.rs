//! `file-editor call`: calls one tool from the shell. The tool is run as the server runs it.

mod describe;
mod show;
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

use crate::flags::{self, DURABILITIES, Flags, Words};
use crate::workplace;
pub use describe::{keys, properties};
pub use show::write;
use show::{Shown, When};

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
#[command(verbatim_doc_comment, disable_help_flag = true, after_help = AFTER)]
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
    #[arg(long, value_name = "WHEN", value_parser = Words::of(&COLORS), hide_possible_values = true)]
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
    #[arg(long, value_name = "LEVEL", value_parser = Words::of(&DURABILITIES), hide_possible_values = true)]
    durability: Option<String>,

    /// List the tools
    #[arg(long)]
    list: bool,

    /// Print help; after a tool, help for the tool
    #[arg(short, long)]
    help: bool,
}

const COLORS: [(&str, When); 3] =
    [("auto", When::Auto), ("always", When::Always), ("never", When::Never)];

const AFTER: &str = "\
FILE_EDITOR_LLM_BASE_URL and FILE_EDITOR_LLM_MODEL configure a language model, as for the server.

Exit status: 0 if the tool succeeded; 1 if it failed, if an argument is wrong, or if the call was
interrupted. The reason goes to stderr. If the answer is JSON, the tool's error is also written to
stdout as JSON.";

fn tool_names() -> PossibleValuesParser {
    let value = |entry: &'static ToolSpec| {
        PossibleValue::new(entry.name).aliases(entry.alias).help(entry.title)
    };
    tools::agent_tools().map(value).collect::<Vec<_>>().into()
}

/// Finds a tool by its name or alias.
pub fn find(name: &str) -> Option<&'static ToolSpec> {
    tools::agent_tools().find(|tool| tool.has_name(name))
}

/// Runs the command. `definition`: the whole command line, for help.
pub fn run(arguments: &Arguments, definition: fn() -> Command) -> ExitCode {
    let entry = arguments.tool.as_deref().and_then(find);
    let told = match entry {
        _ if arguments.list => Ok(describe::list()),
        Some(entry) if arguments.help => Ok(describe::tool(entry)),
        None if arguments.help => Ok(describe::command(definition())),
        Some(entry) => match call(entry, arguments) {
            Ok(code) => return code,
            Err(faults) => Err(faults),
        },
        None => Err(vec!["no tool given; `file-editor call --list` lists them".into()]),
    };
    match told.map(|text| write(&text)) {
        Ok(code) => code,
        Err(faults) => {
            flags::tell(&faults, "file-editor call --help");
            ExitCode::FAILURE
        }
    }
}

/// Calls the tool and shows the outcome, or returns every fault in the flags.
fn call(entry: &'static ToolSpec, arguments: &Arguments) -> Result<ExitCode, Vec<String>> {
    let flags = Flags {
        dir: Some(arguments.dir.as_deref().unwrap_or(OsStr::new("."))),
        max_size: arguments.max_size.as_deref(),
        timeout: arguments.timeout.as_deref(),
        durability: arguments.durability.as_deref(),
        // A tool that only reads needs no writable folder.
        read_only: arguments.read_only || entry.effect == Effect::Reads,
        no_sandbox: arguments.no_sandbox,
    };
    let (workplace, color) = match (flags::workplace(&flags, &[entry]), color(arguments)) {
        (Ok(workplace), Ok(color)) => (workplace, color),
        (workplace, color) => {
            return Err(workplace.err().into_iter().flatten().chain(color.err()).collect());
        }
    };
    let options = Options {
        tools: vec![entry],
        access: workplace.access,
        tool_errors: ToolErrors::Result,
        structured: Structured::On,
        confirm: Confirm::Never,
        observer: None,
        model: workplace.model.clone(),
        instructions: None,
    };
    let (calls, _) = workplace.open(options, Log::new(Level::Error));
    calls.log_panics();
    let given = values::read(entry, &arguments.values, in_process::arguments_max(&calls.limits));
    let target = given.as_ref().ok().and_then(error_codes::target).map(String::from);
    let outcome =
        given.map_or_else(|failure| Ok(Err(failure)), |given| answer(&calls, entry, given));
    calls.log.close(Duration::from_millis(50));
    let shown = Shown::new(arguments.json, arguments.text, color);
    Ok(match outcome {
        Ok(outcome) => shown.outcome(entry, target.as_deref(), outcome),
        Err(error) => {
            terminal::write_message(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn color(arguments: &Arguments) -> Result<When, String> {
    let asked = arguments.color.as_deref().unwrap_or("auto");
    let found = COLORS.into_iter().find(|(name, _)| *name == asked);
    found.map(|(_, color)| color).ok_or("--color must be one of: auto, always, never".into())
}

/// Runs the call. An interrupt cancels it; a second one exits without waiting for its outcome.
fn answer(
    calls: &Arc<Calls>,
    entry: &'static ToolSpec,
    given: Value,
) -> io::Result<Result<ToolOutput, Failure>> {
    let runtime = workplace::runtime()?;
    let is_told = Cell::new(false);
    let outcome = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let (interrupt, interrupted) = tokio::sync::oneshot::channel::<()>();
        let taken_back = async { drop(interrupted.await) };
        let report = |doing: &str, since: Duration| {
            if terminal::show_status(doing, since) {
                is_told.set(true);
            }
        };
        let call = in_process::call(calls, entry, given, taken_back, report);
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
    if is_told.get() {
        terminal::clear_status();
    }
    runtime.shutdown_timeout(Duration::from_millis(50));
    outcome
}
