//! Command line: flags of the server and the commands. Values are checked together, so that all errors are reported at
//! once.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};
use server::terminal::{self, Stream};
use server::{AllowedHost, Confirm, Level, Structured, ToolErrors, http};
use tools::ToolSpec;

use crate::flags::{
    ArgumentErrors, ChoiceParser, DURABILITIES, FolderFlags, bearer_token, parse_toolsets,
    report_errors,
};
use crate::folder::FolderSettings;
use crate::{call, completions, doctor, setup};

/// File tools for AI agents: list, read and edit the text files of one folder over MCP, REST and JSON-RPC.
///
/// The server works in one folder and never leaves it. Edits are atomic and take a lock that other processes respect.
/// An edit changes nothing else in the file: line endings, byte order mark, mode, owner and links are kept.
///
/// `file-editor setup` adds it to MCP clients. A client starts it like this:
///
///     file-editor --dir=/path/to/folder --transport=stdio
///
/// Over HTTP:
///
///     file-editor --dir=. --port=8080
///     curl -H 'Content-Type: application/json' -d '{"name":"notes.txt"}' localhost:8080/read_file
#[derive(Debug, Parser)]
#[command(name = "file-editor", version, max_term_width = 100, verbatim_doc_comment)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
struct RawArguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Folder to work in. It must exist and be writable.
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// How clients talk to the server: `http`, `stdio` [default: http]
    ///
    /// http: MCP at `POST /mcp` and `/`, the plain methods at `POST /list_files` and so on.
    /// stdio: MCP and the plain methods, one JSON-RPC message a line.
    #[arg(long, value_name = "TYPE", verbatim_doc_comment, value_parser = ChoiceParser::of(&TRANSPORTS), hide_possible_values = true)]
    transport: Option<String>,

    /// Port of the HTTP transport, 1024 to 65535 [default: 8080]
    #[arg(long, value_name = "NUMBER")]
    port: Option<String>,

    /// Address or name to listen on [default: localhost, both loopback addresses]
    ///
    /// Other addresses require a token in `FILE_EDITOR_TOKEN`.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// More hosts that the Host and Origin headers may name besides loopback, a comma list: `name` or `name:port`
    #[arg(long, value_name = "LIST")]
    allow_host: Option<String>,

    /// Largest file and request in megabytes, 1 to 100 [default: 10]
    ///
    /// A request may be 64 KiB larger, for everything around the text.
    #[arg(long, value_name = "MB")]
    max_size: Option<String>,

    /// Time limit of a call in seconds, 1 to 300 [default: 10]
    ///
    /// Waiting for a file's lock is included. A call that times out has written nothing.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<String>,

    /// Toolsets to serve, a comma list of `flat`, `text`, `code`, `all` [default: flat]
    ///
    /// flat: `list_files`, `read_file`, `edit_file`; files by name, lines from 0.
    /// text: `read_text_file`, `write_text_file`, `multi_edit_text_file`; files by absolute path, lines from 1.
    /// code: `ai_edit_code`, `ai_get_code_context`, `search_files`; files by path from the folder, lines from 1.
    #[arg(long, value_name = "LIST", verbatim_doc_comment, value_parser = ChoiceParser::of_toolsets(), hide_possible_values = true)]
    tools: Option<String>,

    /// Serve only tools that read; refuse every edit
    #[arg(long)]
    read_only: bool,

    /// Do not enter the Landlock sandbox (Linux)
    ///
    /// In the sandbox the kernel refuses the process every file outside the folder, every program and every TCP
    /// connection, except that to a configured language model. Use this flag only for tools that write elsewhere: core
    /// dumps, profilers, coverage.
    #[arg(long)]
    no_sandbox: bool,

    /// What an edit waits for: `none`, `data`, `full` [default: data]
    ///
    /// none: nothing. A power cut may lose the last edits or leave their files empty.
    /// data: the new text is synced before it replaces the file. A power cut leaves the old text or the new one.
    /// full: the folder is synced too. An answered edit survives a power cut. Use it on ext4 without a journal.
    #[arg(long, value_name = "LEVEL", verbatim_doc_comment, value_parser = ChoiceParser::of(&DURABILITIES), hide_possible_values = true)]
    durability: Option<String>,

    /// How a failing tool answers: `result`, `jsonrpc` [default: result]
    ///
    /// result: a tool result with `isError`, which the model sees. jsonrpc: a JSON-RPC error.
    #[arg(long, value_name = "KIND", value_parser = ChoiceParser::of(&TOOL_ERRORS), hide_possible_values = true)]
    tool_errors: Option<String>,

    /// Whether results carry `structuredContent` besides text: `on`, `off` [default: on]
    #[arg(long, value_name = "SWITCH", value_parser = ChoiceParser::of(&STRUCTURED), hide_possible_values = true)]
    structured: Option<String>,

    /// When a person is asked before anything is written: `never`, `auto` (if the client can ask), `always` [default: never]
    ///
    /// The client shows the change (MCP form elicitation). With `always`, a change is refused if the client cannot ask.
    #[arg(long, value_name = "WHEN", value_parser = ChoiceParser::of(&CONFIRMS), hide_possible_values = true)]
    confirm: Option<String>,

    /// Lowest level logged to stderr, one JSON object a line: `error`, `warn`, `info`, `debug` [default: info]
    ///
    /// Contents of files are never logged.
    #[arg(long, value_name = "LEVEL", value_parser = ChoiceParser::of(&Level::ALL), hide_possible_values = true)]
    log: Option<String>,
}

/// Commands of the binary other than serving.
#[derive(Debug, Subcommand)]
enum Command {
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
    /// Print the manual page, for `man`
    Man,
    #[command(hide = true)]
    Complete(completions::CompletionRequest),
}

const TRANSPORTS: [(&str, &str); 2] = [("http", "http"), ("stdio", "stdio")];
const TOOL_ERRORS: [(&str, ToolErrors); 2] =
    [("result", ToolErrors::Result), ("jsonrpc", ToolErrors::JsonRpc)];
const STRUCTURED: [(&str, Structured); 2] = [("on", Structured::On), ("off", Structured::Off)];
const CONFIRMS: [(&str, Confirm); 3] =
    [("never", Confirm::Never), ("auto", Confirm::Auto), ("always", Confirm::Always)];

const AFTER_HELP: &str = "\
The flat tools are MCP tools (lines from 0) in every protocol version from 2024-11-05 to 2026-07-28,
and plain JSON-RPC methods that need no handshake (lines from 1).

Environment: if FILE_EDITOR_TOKEN is set, HTTP requests must carry it as a bearer token, except for /health.
LISTEN_FDS and LISTEN_PID pass a listening socket (systemd), which replaces --host and --port.

Exit status: 0 at the end of input, on SIGTERM and on SIGINT; 1 if an argument is wrong or the server cannot run.";

/// Task that the command line asks for.
pub enum Task {
    Serve(Box<Config>),
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
    Man,
    Complete(completions::CompletionRequest),
}

/// Checked settings of the server.
pub struct Config {
    pub transport: Transport,
    pub folder: FolderSettings,
    pub tools: Vec<&'static ToolSpec>,
    pub tool_errors: ToolErrors,
    pub structured: Structured,
    pub confirm: Confirm,
    pub log: Level,
}

pub enum Transport {
    Stdio,
    Http(http::ListenOptions),
}

/// Reads the command line, or ends the process: with 0 after help and version, with 1 after reporting every error.
pub fn read() -> Task {
    let mut raw = RawArguments::try_parse().unwrap_or_else(|error| {
        let stream = if error.use_stderr() { Stream::Stderr } else { Stream::Stdout };
        let _ = terminal::write(stream, &error.render().to_string());
        std::process::exit(i32::from(error.use_stderr()));
    });
    match raw.command.take() {
        Some(Command::Call(arguments)) => return Task::Call(arguments),
        Some(Command::Setup(arguments)) => return Task::Setup(arguments),
        Some(Command::Doctor(arguments)) => return Task::Doctor(arguments),
        Some(Command::Completions(arguments)) => return Task::Completions(arguments),
        Some(Command::Man) => return Task::Man,
        Some(Command::Complete(request)) => return Task::Complete(request),
        None => {}
    }
    let config = check(&raw).unwrap_or_else(|errors| {
        report_errors(&errors, "file-editor --help");
        std::process::exit(1);
    });
    Task::Serve(Box::new(config))
}

/// Returns the definition of the whole command line, for help, completions and the manual page.
pub fn definition() -> clap::Command {
    let mut definition = RawArguments::command();
    definition.build();
    definition
}

fn check(raw: &RawArguments) -> Result<Config, Vec<String>> {
    let mut errors = ArgumentErrors::default();
    let flags = FolderFlags {
        dir: raw.dir.as_deref(),
        max_size: raw.max_size.as_deref(),
        timeout: raw.timeout.as_deref(),
        durability: raw.durability.as_deref(),
        read_only: raw.read_only,
        no_sandbox: raw.no_sandbox,
    };
    let tools = errors.check(parse_toolsets(raw.tools.as_deref()));
    let folder = errors.folder_settings(&flags, tools.as_deref());
    let port = "--port must be between 1024 and 65535";
    let port = errors.number(raw.port.as_deref(), 8080, 1024..=65535, port);
    let transport =
        errors.choice("--transport", raw.transport.as_deref().unwrap_or("http"), &TRANSPORTS);
    let transport = match transport {
        Some("http") => port.and_then(|port| errors.check(listen(raw, port))),
        other => other.map(|_| Transport::Stdio),
    };
    let tool_errors = errors.choice(
        "--tool-errors",
        raw.tool_errors.as_deref().unwrap_or("result"),
        &TOOL_ERRORS,
    );
    let structured =
        errors.choice("--structured", raw.structured.as_deref().unwrap_or("on"), &STRUCTURED);
    let confirm = errors.choice("--confirm", raw.confirm.as_deref().unwrap_or("never"), &CONFIRMS);
    let log = errors.choice("--log", raw.log.as_deref().unwrap_or("info"), &Level::ALL);
    match (folder, transport, tools, tool_errors, structured, confirm, log) {
        (
            Some(folder),
            Some(transport),
            Some(tools),
            Some(tool_errors),
            Some(structured),
            Some(confirm),
            Some(log),
        ) if errors.0.is_empty() => {
            Ok(Config { transport, folder, tools, tool_errors, structured, confirm, log })
        }
        _ => Err(errors.0),
    }
}

/// Opens the port, so that a port in use is reported together with the other errors.
fn listen(raw: &RawArguments, port: u64) -> Result<Transport, String> {
    let hosts = allowed_hosts(raw.allow_host.as_deref().unwrap_or_default())?;
    let host = raw.host.as_deref().unwrap_or("localhost");
    let number = u16::try_from(port).unwrap_or_default();
    let listeners = match http::inherited() {
        Some(listener) => vec![listener],
        None => http::bind(host, number).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => format!("Port {port} is already in use"),
            _ => format!("Cannot listen on {host}:{port}: {error}"),
        })?,
    };
    let token = bearer_token()?;
    if token.is_none() && !http::is_loopback(&listeners) {
        return Err(format!(
            "--host={host} can be reached from other machines: set a token in FILE_EDITOR_TOKEN"
        ));
    }
    Ok(Transport::Http(http::ListenOptions { listeners, hosts, token }))
}

fn allowed_hosts(list: &str) -> Result<Vec<AllowedHost>, String> {
    let hosts = list.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts
        .map(|host| {
            AllowedHost::parse(host).ok_or_else(|| {
                format!(
                    "--allow-host: `{host}` is not a name or an address with an optional port, such as \
                     editor.example:8443"
                )
            })
        })
        .collect()
}
