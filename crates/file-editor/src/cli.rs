//! Command line: flags of the server and the commands. Raw values are checked together, so that all faults are reported
//! at once.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};
use server::terminal::{self, Stream};
use server::{AllowedHost, Confirm, Level, Structured, ToolErrors, http};
use tools::ToolSpec;

use crate::flags::{DURABILITIES, Faults, Flags, Words, tell, token, toolsets};
use crate::workplace::Workplace;
use crate::{call, doctor, manual, setup};

/// File tools for AI agents: list, read and edit the text files of one folder over MCP, REST and JSON-RPC.
///
/// The server works in one folder and never leaves it. Edits are atomic, locked across processes, and leave
/// everything they do not address as it is: line endings, encoding marks, mode, owner, links.
///
/// Start it from an MCP client, for instance:
///
///     file-editor --dir=/path/to/folder --transport=stdio
///
/// or let it listen, and talk to it yourself:
///
///     file-editor --dir=. --port=8080
///     curl -H 'Content-Type: application/json' -d '{"name":"notes.txt"}' localhost:8080/read_file
#[derive(Debug, Parser)]
#[command(name = "file-editor", version, max_term_width = 100, verbatim_doc_comment)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
struct Raw {
    #[command(subcommand)]
    command: Option<Command>,

    /// Folder to work in. It must exist and be writable.
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// How clients talk to the server: `http`, `stdio` [default: http]
    ///
    /// http: MCP at `POST /mcp` and `/`, the plain methods at `POST /list_files` and so on.
    /// stdio: MCP and the plain methods, one JSON-RPC message a line.
    #[arg(long, value_name = "TYPE", verbatim_doc_comment, value_parser = Words::of(&TRANSPORTS), hide_possible_values = true)]
    transport: Option<String>,

    /// Port of the HTTP transport, 1024 to 65535 [default: 8080]
    #[arg(long, value_name = "NUMBER")]
    port: Option<String>,

    /// Address or name to listen on [default: localhost, both loopback addresses]
    ///
    /// Beyond loopback only with a token in `FILE_EDITOR_TOKEN`.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Hosts besides loopback that the Host and Origin headers may name, a comma list: `name` or `name:port`
    #[arg(long, value_name = "LIST")]
    allow_host: Option<String>,

    /// Largest file and request in megabytes, 1 to 100 [default: 10]
    ///
    /// A request may have 64 KiB more, for everything around the text.
    #[arg(long, value_name = "MB")]
    max_size: Option<String>,

    /// How long a call may take in seconds, 1 to 300 [default: 10]
    ///
    /// It includes waiting for a file's lock. A call that is refused for its time has written nothing.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<String>,

    /// Toolsets to serve, a comma list of `flat`, `text`, `code`, `all` [default: flat]
    ///
    /// flat: `list_files`, `read_file`, `edit_file`, addressed by file name, lines from 0.
    /// text: `read_text_file`, `write_text_file`, `multi_edit_text_file`, by absolute path, lines from 1.
    /// code: `ai_edit_code`, `ai_get_code_context`, `search_files`, by path from the folder, lines from 1.
    #[arg(long, value_name = "LIST", verbatim_doc_comment, value_parser = Words::of_toolsets(), hide_possible_values = true)]
    tools: Option<String>,

    /// Serve only what reads; every edit is refused
    #[arg(long)]
    read_only: bool,

    /// Do without the second wall around the folder, which the kernel keeps on Linux (Landlock)
    ///
    /// Behind it the process opens no file elsewhere, runs none and makes no TCP connection, whatever goes wrong
    /// in it. Only what has to write elsewhere needs to do without: a core dump, a profiler, a measure of coverage.
    #[arg(long)]
    no_sandbox: bool,

    /// What an edit waits for: `none`, `data`, `full` [default: data]
    ///
    /// none: nothing; a power cut may lose the last edits, or leave their files empty.
    /// data: the new text is on the disk before it takes the file's place; a power cut leaves the old text or the new.
    /// full: the folder is on the disk too; an answered edit survives a power cut. Use it on ext4 without a journal.
    #[arg(long, value_name = "LEVEL", verbatim_doc_comment, value_parser = Words::of(&DURABILITIES), hide_possible_values = true)]
    durability: Option<String>,

    /// How a failing tool answers: `result`, `jsonrpc` [default: result]
    ///
    /// result: a tool result with `isError`, which models see. jsonrpc: a JSON-RPC error.
    #[arg(long, value_name = "KIND", value_parser = Words::of(&TOOL_ERRORS), hide_possible_values = true)]
    tool_errors: Option<String>,

    /// Whether results carry `structuredContent` besides text: `on`, `off` [default: on]
    #[arg(long, value_name = "SWITCH", value_parser = Words::of(&STRUCTURED), hide_possible_values = true)]
    structured: Option<String>,

    /// When a person is asked before anything is written: `never`, `auto` (if the client can ask), `always` [default: never]
    ///
    /// The client shows the change (MCP form elicitation). With `always` whatever cannot be asked about is refused.
    #[arg(long, value_name = "WHEN", value_parser = Words::of(&CONFIRMS), hide_possible_values = true)]
    confirm: Option<String>,

    /// What goes to stderr, one JSON object a line: `error`, `warn`, `info`, `debug` [default: info]
    ///
    /// Contents of files never do.
    #[arg(long, value_name = "LEVEL", value_parser = Words::of(&Level::ALL), hide_possible_values = true)]
    log: Option<String>,
}

/// What the binary does besides serving.
#[derive(Debug, Subcommand)]
enum Command {
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(manual::Arguments),
    /// Print the manual page, for `man`
    Man,
    #[command(hide = true)]
    Complete(manual::Question),
}

const TRANSPORTS: [(&str, &str); 2] = [("http", "http"), ("stdio", "stdio")];
const TOOL_ERRORS: [(&str, ToolErrors); 2] =
    [("result", ToolErrors::Result), ("jsonrpc", ToolErrors::JsonRpc)];
const STRUCTURED: [(&str, Structured); 2] = [("on", Structured::On), ("off", Structured::Off)];
const CONFIRMS: [(&str, Confirm); 3] =
    [("never", Confirm::Never), ("auto", Confirm::Auto), ("always", Confirm::Always)];

const AFTER: &str = "\
The same methods answer without a handshake (`list_files`, `read_file`, `edit_file` as JSON-RPC
methods, lines from 1), and as MCP tools (lines from 0) in every protocol version from 2024-11-05
to 2026-07-28.

Environment: FILE_EDITOR_TOKEN, when set, is the bearer token that HTTP requests must carry, but for /health.
LISTEN_FDS and LISTEN_PID hand over a listening socket, which is served in place of --host and --port.

Exit status: 0 at the end of input, on SIGTERM and SIGINT; 1 for a fault in the arguments or of the machine.";

/// The task that the command line asks for.
pub enum Task {
    Serve(Box<Config>),
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(manual::Arguments),
    Man,
    Complete(manual::Question),
}

/// Checked settings of the server.
pub struct Config {
    pub transport: Transport,
    pub workplace: Workplace,
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

/// Reads the command line, or ends the process: with 0 after help and version, with 1 after reporting every fault.
pub fn read() -> Task {
    let mut raw = Raw::try_parse().unwrap_or_else(|error| {
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
        Some(Command::Complete(question)) => return Task::Complete(question),
        None => {}
    }
    let config = check(&raw).unwrap_or_else(|faults| {
        tell(&faults, "file-editor --help");
        std::process::exit(1);
    });
    Task::Serve(Box::new(config))
}

/// Returns the definition of the whole command line, for help, completions and the manual page.
pub fn definition() -> clap::Command {
    let mut definition = Raw::command();
    definition.build();
    definition
}

fn check(raw: &Raw) -> Result<Config, Vec<String>> {
    let mut faults = Faults::default();
    let flags = Flags {
        dir: raw.dir.as_deref(),
        max_size: raw.max_size.as_deref(),
        timeout: raw.timeout.as_deref(),
        durability: raw.durability.as_deref(),
        read_only: raw.read_only,
        no_sandbox: raw.no_sandbox,
    };
    let tools = faults.keep(toolsets(raw.tools.as_deref()));
    let workplace = faults.workplace(&flags, tools.as_deref());
    let port = "--port must be between 1024 and 65535";
    let port = faults.number(raw.port.as_deref(), 8080, 1024..=65535, port);
    let transport =
        faults.choice("--transport", raw.transport.as_deref().unwrap_or("http"), &TRANSPORTS);
    let transport = match transport {
        Some("http") => port.and_then(|port| faults.keep(listen(raw, port))),
        found => found.map(|_| Transport::Stdio),
    };
    let tool_errors = faults.choice(
        "--tool-errors",
        raw.tool_errors.as_deref().unwrap_or("result"),
        &TOOL_ERRORS,
    );
    let structured =
        faults.choice("--structured", raw.structured.as_deref().unwrap_or("on"), &STRUCTURED);
    let confirm = faults.choice("--confirm", raw.confirm.as_deref().unwrap_or("never"), &CONFIRMS);
    let log = faults.choice("--log", raw.log.as_deref().unwrap_or("info"), &Level::ALL);
    match (workplace, transport, tools, tool_errors, structured, confirm, log) {
        (
            Some(workplace),
            Some(transport),
            Some(tools),
            Some(tool_errors),
            Some(structured),
            Some(confirm),
            Some(log),
        ) if faults.0.is_empty() => {
            Ok(Config { transport, workplace, tools, tool_errors, structured, confirm, log })
        }
        _ => Err(faults.0),
    }
}

/// Opens the port, so that a port in use is reported together with the other faults.
fn listen(raw: &Raw, port: u64) -> Result<Transport, String> {
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
    let token = token()?;
    if token.is_none() && !http::is_loopback(&listeners) {
        return Err(format!(
            "--host={host} reaches beyond this machine: set a token in FILE_EDITOR_TOKEN"
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
                    "--allow-host: `{host}` must be a name or an address, with or without a port: \
                     editor.example:8443"
                )
            })
        })
        .collect()
}
